"""Tests of report.py: which figure counts, which engines take part, ratios and means, tables and a drawing that parse;
and of memory_report.py."""

import json, os, tempfile, unittest
import xml.etree.ElementTree as xml

import memory_report, report


def result(*medians, cpu=None, difference=0.0):
    turns = [dict(wall_median=us, cpu_median=us if cpu is None else cpu) for us in medians]
    return dict(version="1", turns=turns, checked=512, equal_bits=500, max_difference=difference, largest=2.0)


def cell(threads, batch, **engines):
    return dict(model="m", rows="rows", threads=threads, batch=batch, engines=engines)


class Figures(unittest.TestCase):
    def test_the_smallest_median_counts(self):
        self.assertEqual(report.figure(result(3, 2, 4), threads=2), 2)

    def test_processor_time_counts_with_one_thread_only(self):
        self.assertEqual(report.figure(result(3, 2, cpu=1), threads=1), 1)
        self.assertEqual(report.figure(result(3, 2, cpu=1), threads=2), 2)


class Ratios(unittest.TestCase):
    def ratios(self, *cells):
        return report.ratios(report.compared(report.lines(cells)))

    def test_are_against_the_fastest_peer(self):
        found = self.ratios(cell(1, 64, forestvm=result(2), a=result(6), b=result(3)))
        self.assertEqual(found, {("m", "rows", 1, 64): (1.5, "b")})

    def test_leave_out_wrong_answers_and_other_trees(self):
        own_trees = dict(version="1", turns=result(1)["turns"])
        engines = dict(forestvm=result(2), a=result(1, difference=0.1), catboost=own_trees, b=result(4))
        self.assertEqual(self.ratios(cell(1, 64, **engines)), {("m", "rows", 1, 64): (2, "b")})

    def test_need_both_sides(self):
        self.assertEqual(self.ratios(cell(1, 1, forestvm=result(2)), cell(1, 2, a=result(2))), {})

    def test_have_a_geometric_mean(self):
        self.assertAlmostEqual(report.geometric_mean([0.5, 2, 8]), 2)


class ThroughXgboost(unittest.TestCase):
    def test_scales_what_xgboost_took_here(self):
        records = report.lines([cell(1, 64, forestvm=result(2), xgboost=result(12)), cell(1, 1, forestvm=result(2))])
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/known.csv", "w") as file:
                file.write("model,threads,batch,ratio_to_xgboost\nm,1,64,1.5\nm,1,1,9\nother,1,64,9\n")
            text = report.through_xgboost("elsewhere", f"{folder}/known.csv", records)
        self.assertIn("| m | 4.00 |", text)
        self.assertIn("| geometric mean | **4.00** |", text)
        self.assertNotIn("other", text)


class Report(unittest.TestCase):
    def test_writes_its_files(self):
        cells = [
            cell(t, b, forestvm=result(2), a=result(t * 1.0), b=result(1, difference=9))
            for t in (1, 4)
            for b in (1, 64)
        ]
        cells.append(dict(cell(1, 64, a=result(1)), model="n<o"))
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/cells.jsonl", "w") as file:
                file.writelines(json.dumps(one) + "\n" for one in cells)
            text = report.report(folder)
            with open(f"{folder}/results.json") as file:
                found = json.load(file)
            xml.parse(f"{folder}/speed.svg")
            self.assertTrue(os.path.exists(f"{folder}/report.md"))
        self.assertEqual([one["ratio"] for one in found["ratios"]], [0.5, 0.5, 2, 2])
        self.assertEqual(len(found["figures"]), 13)
        for part in (
            "## 4 threads",
            "**0.50x** a 1 |",
            "| n<o | - | a 1 |",
            "All cells: **1.00x**",
            "2000 of 2048 raw scores",
            "| b | m | 9 |",
            "(1)",
        ):
            self.assertIn(part, text)


def cost(anonymous, mapped=0, libraries=0, held=None, peak=0, load_s=0.0, first_s=0.0, first_batch=0):
    grown = dict(anonymous=anonymous, mapped=mapped, libraries=libraries)
    kept = grown if held is None else dict(anonymous=held, mapped=mapped, libraries=libraries)
    times = dict(version="1", load_s=load_s, first_s=first_s)
    return dict(times, loaded=dict(grown, anonymous=anonymous - first_batch), grown=grown, held=kept, peak=peak)


def record(**engines):
    return dict(model="m", nodes=1000, file="model.ubj", file_bytes=4_000_000, engines=engines)


class Memory(unittest.TestCase):
    def test_the_smallest_sample_counts_for_each_figure(self):
        samples = [cost(5000, held=3000, peak=7000, load_s=1, first_s=2), cost(6000, held=1000, peak=6500, load_s=2)]
        found = memory_report.figures(record(a=dict(samples=samples)))["a"]
        bytes_of = dict(grown=5000, mapped=0, first_batch=0, held=1000, peak=6500)
        self.assertEqual(found, dict(bytes_of, ready_s=2, per_node=5, held_per_node=1))

    def test_what_is_mapped_from_the_model_counts_and_pages_of_libraries_do_not(self):
        found = memory_report.figures(record(a=dict(samples=[cost(2000, mapped=3000, libraries=9000)])))["a"]
        self.assertEqual((found["grown"], found["mapped"], found["held"]), (5000, 3000, 5000))

    def test_tables(self):
        program = dict(program_bytes=1_000_000, node_bytes=9000, compile_s=[0.3, 0.25])
        mine = dict(program, samples=[cost(20_000, mapped=1_000_000, load_s=0.002, first_s=0.001, first_batch=10_000)])
        text = memory_report.report(
            [
                record(forestvm=mine, a=dict(samples=[cost(3_000_000, held=2_000_000, peak=9_000_000, load_s=0.5)])),
                dict(record(forestvm=dict(left_out="why"), a=dict(left_out="absent")), model="n"),
            ]
        )
        for part in (
            "| m | 1,000 | 4.00 (model.ubj) | 1.00 | 0.25 | 9.0 | 1020.0 | 0.01 | 250 | 3.0 | 253 |",
            "| n | 1,000 | 4.00 (model.ubj) | - | - | - | - | - | - | - | - |",
            "| m | 1020.0 / 1020.0 | 3000.0 / 2000.0 |",
            "| m | 1.02 (1.00 mapped) | 3.00 |",
            "| m | 1.02 | 2.00 |",
            "| m | 0.00 | 9.00 |",
            "| m | 3.0 | 500 |",
            "| n | - | - |",
            "| forestvm | why | n |",
            "| a | absent | n |",
        ):
            self.assertIn(part, text)

    def test_nothing_is_left_out_in_silence_or_without_need(self):
        self.assertNotIn("Left out", memory_report.report([record(a=dict(samples=[cost(1)]))]))


if __name__ == "__main__":
    unittest.main()

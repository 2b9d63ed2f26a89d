"""What report.py makes of cells: which figure counts, who takes part, ratios and means, tables and a drawing that parse."""

import json, os, tempfile, unittest
import xml.etree.ElementTree as xml

import report


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


if __name__ == "__main__":
    unittest.main()

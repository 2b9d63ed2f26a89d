"""Tests of the experiments: steps that go on, drawings and pages that parse, sentences. With the folder of a build as
argument, runs `run --quick`, every experiment with the emulator in the GPU's place: test_reproduce.py [BUILD]"""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree as xml

import charts
import exchanges
import gpu
import loops
import measuring
import page
import searches
import steps

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = sys.argv.pop(1) if len(sys.argv) > 1 else ""
EXPERIMENTS = (*exchanges.EXPERIMENTS, *searches.EXPERIMENTS, *loops.EXPERIMENTS, *gpu.EXPERIMENTS)
STYLE = "body { color: black }"


def quietly(function, *arguments):
    """Returns what a function returns, and what it prints for people."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        return function(*arguments), said.getvalue()


class Steps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.measured = folder.name, []

    def store(self, **conditions):
        return steps.Store(self.folder, dict(date="2026-11-24", **conditions))

    def step(self, name, result):
        def measure(results):
            self.measured.append(name)
            if isinstance(result, BaseException):
                raise result
            return result(results) if callable(result) else result

        return steps.Step(name, 1, measure)

    def test_use_results_of_earlier_ones_and_are_measured_once(self):
        both = [self.step("a/b", {"x": 1}), self.step("c", lambda results: results["a/b"]["x"] + 1)]
        for _ in range(2):
            (found, missing), _ = quietly(steps.run, both, self.store(), 60)
            self.assertEqual((found, missing), ({"a/b": {"x": 1}, "c": 2}, {}))
        self.assertEqual(self.measured, ["a/b", "c"])

    def test_a_failure_leaves_the_others(self):
        both = [self.step("a", measuring.Failed("it is refused")), self.step("b", 2)]
        (found, missing), said = quietly(steps.run, both, self.store(), 60)
        self.assertEqual((found, missing), ({"b": 2}, {"a": "it is refused"}))
        self.assertIn("a: it is refused", said)

    def test_a_stopped_run_keeps_what_is_done_and_the_next_goes_on(self):
        stopped = [self.step("a", 1), self.step("b", KeyboardInterrupt()), self.step("c", 3)]
        (found, missing), said = quietly(steps.run, stopped, self.store(), 60)
        self.assertEqual((found, missing), ({"a": 1}, {"b": steps.STOPPED, "c": steps.STOPPED}))
        self.assertIn("goes on from here", said)
        goes_on = [self.step("a", 1), self.step("b", 2), self.step("c", 3)]
        (found, missing), said = quietly(steps.run, goes_on, self.store(), 60)
        self.assertEqual((found, missing), ({"a": 1, "b": 2, "c": 3}, {}))
        self.assertEqual(self.measured, ["a", "b", "b", "c"])
        self.assertIn("1 of 3 steps have results", said)

    def test_none_begins_after_the_end(self):
        (found, missing), _ = quietly(steps.run, [self.step("a", 1)], self.store(), -1)
        self.assertEqual((found, missing), ({}, {"a": "the time was over"}))

    def test_other_conditions_are_refused(self):
        self.store(program="1")
        with self.assertRaisesRegex(measuring.Failed, "program was '1' and is '2'.*--out"):
            self.store(program="2")

    def test_a_damaged_result_is_refused(self):
        store = self.store()
        with open(store.path("a"), "w", encoding="utf-8") as file:
            file.write("{")
        with self.assertRaisesRegex(measuring.Failed, "a.json: .*Delete it"):
            steps.run([self.step("a", 1)], store, 60)


class Drawings(unittest.TestCase):
    def check(self, chart, *texts):
        drawing = xml.fromstring(charts.svg_file([("Heading", chart)] * 2, STYLE))
        self.assertEqual(len(drawing.findall("{http://www.w3.org/2000/svg}svg")), 2)
        said = "".join(xml.fromstring(chart.svg()).itertext())
        for text in (chart.title, *texts):
            self.assertIn(text, said)

    def test_a_matrix_has_its_numbers(self):
        self.check(charts.matrix("a < b", ["x", "y"], ["p"], [[1, None]], "to", "from"), "x", "p", "1.00", "-")

    def test_a_histogram_counts_every_ratio(self):
        chart = charts.histograms("times", {"m": [1, 1, 3, 1000]})
        self.check(chart, "4 schedules", "2 schedules", "≥ 64x")

    def test_dots_have_ratios_on_both_sides_of_one(self):
        self.check(charts.dots("gains", ["m"], {"32 rows": [0.5], "64 rows": [None]}), "32 rows: 0.50x", "0.5x")


class Pages(unittest.TestCase):
    def section(self):
        section = page.Section("s", "A & B", "it is 2x slower", ["Agrees: <yes>"])
        section.charts.append(charts.matrix("matrix", ["x"], ["y"], [[2.0]], "to", "from"))
        section.tables.append(page.Table("numbers", ["model", "us"], [["a|b", "1.00"]]))
        section.missing = {"space/a": "refused", "space/b": "refused"}
        return section

    def test_a_page_is_well_formed_and_fetches_nothing(self):
        text = page.html_page("Title", [("Machine", "x")], [self.section()], STYLE)
        root = xml.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
        said = "".join(root.itertext())
        for words in ("A & B", "Agrees: <yes>", "a|b", "space/a, space/b: refused."):
            self.assertIn(words, said)
        self.assertNotIn("http", text)
        self.assertIsNotNone(root.find(".//svg[@role='img']/title"))

    def test_markdown_has_sentences_and_tables(self):
        text = page.markdown("Title", [("Machine", "x")], [self.section()], "reproduce.svg")
        for words in ("**The paper**: it is", "| a\\|b | 1.00 |", "(reproduce.svg)", "| --- | ---: |"):
            self.assertIn(words, text)


class Experiments(unittest.TestCase):
    def test_names_are_unique_and_the_help_lists_them(self):
        names = [experiment.name for experiment in EXPERIMENTS]
        self.assertEqual(len(names), len(set(names)))
        said = run("--help").stdout
        for name in names:
            self.assertIn(f"\n  {name} ", said)

    def test_what_is_unknown_is_named(self):
        done = run("--only", "space,nothing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--only nothing: expected names among batches, models", done.stderr)
        done = run("--build", "/nowhere")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/cli/forestvm is absent: cmake --build", done.stderr)

    def test_slowdowns_are_against_the_own_schedule(self):
        cells = {"1": {"1": 2.0, "64": 5.0}, "64": {"1": 3.0}}  # the schedule for 64 rows was refused
        self.assertEqual(exchanges.exchanged(cells), [("1", "1", 1.0), ("1", "64", 2.5)])

    def test_the_best_schedule_is_none_with_plans(self):
        finalists = [dict(name="auto", schedule="plan(8)"), dict(name="x", schedule="tile"), dict(name="y")]
        report = dict(batches=[dict(finalists=finalists)], schedules=dict(measured=3), complete=True)
        found = searches.found(report)
        self.assertEqual((found["name"], found["schedule"], found["chosen"]), ("x", "tile", "plan(8)"))

    def test_sections_without_results_say_nothing(self):
        forest = types.SimpleNamespace(name="m")
        setup = types.SimpleNamespace(
            forests=[forest],
            searchable=lambda: [forest],
            batches=(1, 64),
            models_batch=64,
            space_batches=(64,),
            tree_batches=(32,),
            tree_threads=2,
            random=((20, 8, 6),),
            random_batches=(64,),
            gpu_batches=(512,),
            gpu_devices=("rtx4090", "t4"),
            gpu="",
        )
        for experiment in EXPERIMENTS:
            section = experiment.section(setup, {})
            self.assertEqual(section.charts, [], experiment.name)
            self.assertFalse([text for text in section.found if "gree" in text], experiment.name)


class Costs(unittest.TestCase):
    CASES = [(512, "t4"), (4096, "t4")]

    def test_are_read(self):
        text = "named\tgpu\t1\t-\npoint\t7\t512\t2\t3\npoint\t8\t-\t1\t-\nrefused\t9\tbecause\n"
        text += "algorithm\t4096\tt4\t7\t39\n"
        found = measuring.costs_of(text, self.CASES)
        self.assertEqual(found["points"], {"7": [2, 3], "8": [1, None]})
        self.assertEqual((found["first"], found["refused"]), ({"7": [512]}, 1))
        self.assertEqual(found["named"], {"gpu": [1, None]})
        self.assertEqual(found["algorithm"], [dict(case=1, point="7", tried=39)])

    def test_a_gpu_is_found_among_the_devices(self):
        none = "no CUDA device: driver is absent\nno HIP backend: it is absent"
        self.assertEqual(measuring.backend_of(none), "")
        self.assertEqual(measuring.backend_of("no CUDA device\nHIP device 0: MI210, 65520 MiB, driver 6"), "hip")

    def test_another_line_is_refused(self):
        with self.assertRaisesRegex(measuring.Failed, "gpu_costs printed the line 'nonsense'"):
            measuring.costs_of("nonsense\n", self.CASES)


def run(*words):
    return subprocess.run([sys.executable, "-B", f"{HERE}/run", *words], capture_output=True, text=True)


if BUILD:

    class Quick(unittest.TestCase):
        def test_every_experiment_runs_and_a_second_run_has_nothing_left(self):
            with tempfile.TemporaryDirectory() as folder:
                for measured in (True, False):
                    done = run("--quick", "--gpu", "emulator", "--build", BUILD, "--out", folder)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual("left\n" in done.stderr, measured, done.stderr)
                with open(f"{folder}/reproduce.html", encoding="utf-8") as file:
                    root = xml.fromstring(file.read().removeprefix("<!DOCTYPE html>\n"))
                for experiment in EXPERIMENTS:
                    section = root.find(f".//section[@id='{experiment.name}']")
                    self.assertIsNotNone(section.find(".//table/tbody/tr"), f"{experiment.name} has no figures")
                    self.assertIsNotNone(section.find(".//svg/title"), f"{experiment.name} has no drawing")
                xml.parse(f"{folder}/reproduce.svg")


if __name__ == "__main__":
    unittest.main()

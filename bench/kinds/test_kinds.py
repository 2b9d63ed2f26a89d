"""Tests of the scripts in this folder that need no other engine: peers.py, threads.py, exported.py, and what they share:

test_kinds.py FORESTVM LIBRARY

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so.
"""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

try:
    import numpy
except ModuleNotFoundError:
    print("skipped: no NumPy (Debian: python3-numpy)")
    sys.exit()

import explainers
import models
import peers

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parents[1] / "tests" / "data" / "breast_cancer"


def engine(base, kind):
    """Returns an engine that has loaded nothing."""
    made = base.__new__(base)
    made.kind, made.model, made.background = kind, "model.json", None
    return made


def peer(least, difference=1e-7, trouble=None):
    return types.SimpleNamespace(least=least, difference=difference, trouble=trouble, version="1")


class Attributions(unittest.TestCase):
    def test_the_expected_score_is_left_out(self):
        result = numpy.arange(24.0).reshape(2, 3, 4)  # rows, outputs, three features and the expected score
        parts = engine(explainers.Engine, "contributions").attributions(result, 2, 3)
        self.assertEqual(parts[1].tolist(), [[12, 13, 14], [16, 17, 18], [20, 21, 22]])
        pairs = engine(explainers.Engine, "interactions").attributions(numpy.arange(9.0), 1, 2)
        self.assertEqual(pairs.tolist(), [[[[0, 1], [3, 4]]]])

    def test_outputs_that_come_last_or_as_a_list_come_after_the_rows(self):
        one, two = numpy.arange(6.0).reshape(2, 3), numpy.arange(6.0, 12).reshape(2, 3)
        shap = engine(explainers.WithoutExpected, "contributions")
        for result in ([one, two], numpy.stack([one, two], axis=-1)):
            parts = shap.attributions(result, 2, 3)
            self.assertEqual(parts[:, 0].tolist(), one.tolist())
            self.assertEqual(parts[:, 1].tolist(), two.tolist())

    def test_halves_of_pairs_lie_on_both_sides_of_the_diagonal(self):
        result = types.SimpleNamespace(values={(0,): numpy.array([5.0]), (1,): numpy.array([7.0]), (0, 1): numpy.array([2.0])})
        parts = engine(explainers.shapiq, "interactions").attributions(result, 1, 2)
        self.assertEqual(parts.tolist(), [[[[4, 1], [1, 6]]]])

    def test_what_an_engine_does_not_have_is_refused(self):
        with self.assertRaisesRegex(explainers.Skip, "has no interactions"):
            engine(explainers.Engine, "interactions").refuse("background", "interactions")
        with self.assertRaisesRegex(explainers.Skip, "does not read .json files"):
            engine(explainers.Engine, "contributions").refuse(".json")
        engine(explainers.Engine, "contributions").refuse("background", "interactions", ".txt")


class Report(unittest.TestCase):
    def text(self, found):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            peers.report(found, ["forestvm", "a", "b"])
        return said.getvalue()

    def test_has_ratios_and_their_means(self):
        found = {
            "m": {"forestvm": peer(2), "a": peer(8), "b": peer(20)},
            "n": {"forestvm": peer(1), "a": peer(16), "b": peer(float("inf"), trouble="has no interactions")},
        }
        text = self.text(found)
        self.assertIn("| m | 2 | 8 (4) | 20 (10) |", text)
        self.assertIn("| n | 1 | 16 (16) |  |", text)
        self.assertIn("| geometric mean of the ratios |  | 8 | 10 |", text)
        self.assertIn("- b: 1\n  - has no interactions: n", text)

    def test_leaves_wrong_answers_out_of_the_means(self):
        found = {"m": {"forestvm": peer(2), "a": peer(8, difference=0.1), "b": peer(8, difference=1e-4)}}
        text = self.text(found)
        self.assertIn("| m | 2 | 8 (4), wrong | 8 (4) |", text)
        self.assertIn("| geometric mean of the ratios |  |  | 4 |", text)

    def test_differences_are_relative_to_a_rows_sum(self):
        ours = numpy.array([[[1.0, -3.0]], [[0.5, 0.5]]])
        self.assertEqual(peers.difference(ours, ours[:1] + 0.5, "contributions"), 0.125)


class Facts(unittest.TestCase):
    def test_splits_whose_feature_is_above_them_are_repeats(self):
        tree = '{"left_children": [1, 3, -1, -1, -1], "right_children": [2, 4, -1, -1, -1], "split_indices": [7, 7, 0, 0, 0]}'
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "model.json"
            file.write_text('{"learner": {"gradient_booster": {"model": {"trees": [%s]}}}}' % tree)
            self.assertEqual(models.facts(file), (3, 1, 0.5))


class Runs(unittest.TestCase):
    """Runs scripts with a zoo of one small model, and without any other engine."""

    forestvm = library = None

    def run_script(self, script, *options):
        with tempfile.TemporaryDirectory() as zoo:
            for part in ("bench/tiny", "formats"):
                os.makedirs(f"{zoo}/{part}")
            for file in ("model.json", "rows.npy"):
                shutil.copy(DATA / file, f"{zoo}/bench/tiny")
            command = [sys.executable, "-B", HERE / script, *options, self.forestvm, self.library, zoo, "tiny"]
            environment = dict(os.environ, PEERS_HOME=zoo)
            return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)

    def test_peers_time_forestvm_and_name_absent_engines(self):
        for options in ([], ["--interactions"], ["--approximate"], ["--background", "10"], ["--target", "baseline"]):
            done = self.run_script("peers.py", "--rows", "32", "--turns", "1", *options)
            self.assertRegex(done.stdout, r"\| tiny \| [\d.]+ \|")
            self.assertIn("- woodelf: absent", done.stdout)
            self.assertIn("ABSENT: woodelf", done.stderr)
        self.assertIn("target baseline", done.stdout)

    def test_threads_have_the_same_bits(self):
        done = self.run_script("threads.py", "--rows", "300", "--turns", "2")
        self.assertRegex(done.stdout, r"\| tiny (\| [\d.e+-]+ ){6}\|")

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_exported_c_has_the_same_bits(self):
        for output in ("contributions", "interactions", "approx-contributions"):
            done = self.run_script("exported.py", "--rows", "16", "--turns", "1", "--output", output)
            self.assertRegex(done.stdout, r"\| tiny (\| [\d.e+-]+ ){6}\|")


if __name__ == "__main__":
    Runs.library, Runs.forestvm = sys.argv.pop(), sys.argv.pop()
    unittest.main()

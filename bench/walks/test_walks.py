#!/usr/bin/env python3
"""Tests what makes the predictor of walk costs, with two small forests: test_walks.py BENCH_WALKS. It needs numpy."""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = (3, 348)  # three trees for XGBoost's format, and trees of one leaf in LightGBM's
BENCH_WALKS = ""


def script(name):
    loader = importlib.machinery.SourceFileLoader(name, f"{HERE}/{name}")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Walks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.measured = f"{cls.folder.name}/measured.jsonl"
        for seed in SEEDS:
            subprocess.run(cls.collect(seed), check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def collect(cls, seed):
        command = [sys.executable, "-B", f"{HERE}/collect", cls.measured, "--program", BENCH_WALKS]
        return [*command, "--drawn", "1", "--first", str(seed)]

    def test_a_measured_forest_is_left_out(self):
        done = subprocess.run(self.collect(SEEDS[0]), check=True, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        with open(self.measured, encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["name"] for line in file], [f"drawn-{seed}" for seed in SEEDS])

    def test_every_walk_has_features_and_a_time(self):
        data = script("train").Measured([self.measured])
        self.assertEqual(data.features.shape, (len(data.times), len(data.names)))
        self.assertTrue((data.times > 0).all())
        self.assertEqual(set(data.column("has_avx512")), {0, 1})
        self.assertEqual(len(data.auto), 2 * 2 * 10)  # forests, targets, numbers of rows

    def test_regret_is_one_for_the_measured_times_themselves(self):
        data = script("train").Measured([self.measured])
        self.assertTrue((data.regrets(data.times) == 1).all())
        self.assertGreater(data.regrets(-data.times).max(), 1)


if __name__ == "__main__":
    BENCH_WALKS = sys.argv.pop(1)
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("skipped: numpy is not installed")
        sys.exit(0)
    if "avx512" not in open("/proc/cpuinfo", encoding="utf-8").read():
        print("skipped: this CPU has no AVX-512, with and without which walks are timed")
        sys.exit(0)
    unittest.main()

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
    def collect(cls, seed, *more, out=None):
        command = [sys.executable, "-B", f"{HERE}/collect", out or cls.measured, "--program", BENCH_WALKS]
        return [*command, "--drawn", "1", "--first", str(seed), *more]

    def test_a_measured_forest_is_left_out(self):
        done = subprocess.run(self.collect(SEEDS[0]), check=True, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        with open(self.measured, encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["name"] for line in file], [f"drawn-{seed}" for seed in SEEDS])

    def test_some_numbers_of_rows_are_measured_again(self):
        out = f"{self.folder.name}/again.jsonl"
        again = ["--again", self.measured, "--rows", "2"]
        subprocess.run(self.collect(SEEDS[0], *again, out=out), check=True, capture_output=True)
        with open(self.measured, encoding="utf-8") as old, open(out, encoding="utf-8") as new:
            old, new = json.loads(old.readline()), json.loads(new.read())
        self.assertEqual(new["names"], old["names"])
        self.assertEqual(len(new["cells"]), len(old["cells"]))
        for before, cell in zip(old["cells"], new["cells"]):
            self.assertEqual((cell["rows"], cell["target"]), (before["rows"], before["target"]))
            self.assertEqual(cell == before, cell["rows"] != 2)
        wrong = subprocess.run(self.collect(SEEDS[0], "--again", self.measured), capture_output=True, text=True)
        self.assertIn("--again and --rows go together", wrong.stderr)

    def test_every_walk_has_features_and_a_time(self):
        data = script("train").Measured([self.measured])
        self.assertEqual(data.features.shape, (len(data.times), len(data.names)))
        self.assertTrue((data.times > 0).all())
        self.assertEqual(set(data.column("has_avx512")), {0, 1})
        self.assertEqual(len(set(data.column("has_fast_gathers"))), 1)  # a property of the machine
        self.assertEqual(len(data.auto), 2 * 2 * 10)  # forests, targets, numbers of rows

    def test_forests_of_two_machines_are_one_model(self):
        data = script("train").Measured([self.measured, self.measured])
        self.assertEqual(data.titles, [f"drawn-{seed}" for seed in SEEDS])
        self.assertEqual(len(data.auto), 2 * 2 * 2 * 10)

    def test_stand_ins_scale_walks_that_the_forest_does_not_know(self):
        stand_in = script("stand_in")
        names = ["lanes", "layout", "is_coded", "lockstep", "is_unrolled", "has_fast_gathers"]
        of_values, of_trees, longer, tops = [2, 0, 0, 128, 0, 1], [1, 0, 0, 64, 0, 1], [1, 0, 0, 128, 0, 1], [2, 4, 1, 1, 0, 1]
        walks = [{"us": us, "features": features} for us, features in
                 ((8, of_values), (2, of_trees), (4, longer), (1, tops))]  # fmt: skip
        model = {"names": names, "cells": [{"walks": walks, "predicted": [16, 77, 12, 99]}]}
        stand_in.replace_times(model, 0.5)
        self.assertEqual([walk["us"] for walk in walks], [16, 2 * 3, 12, 1 * 2 * 0.5])
        self.assertEqual({walk["features"][-1] for walk in walks}, {0})

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

"""Trains small models of every kind that the installed trainers have, with a new seed each time, and compares
forestvm's predictions of new rows with the trainers' own: fresh_models.py FORESTVM [SEED [WORD]]

Raw scores must have the trainer's bits, leaf numbers must be the same, and values must be near the trainer's (see Case).
A new trainer is a function like those in TRAINERS, which yields cases. WORD keeps the trainers whose function's name has it.
"""
import pathlib
import sys
import tempfile
import time

import numpy

from cases import TEST_ROWS
from compare import differences, listed
from gradient_boosting import catboost_cases, lightgbm_cases, xgboost_cases
from other_trainers import onnx_cases, sklearn_cases, treelite_cases, ydf_cases

TRAINERS = (xgboost_cases, lightgbm_cases, catboost_cases, sklearn_cases, ydf_cases, onnx_cases, treelite_cases)


def main():
    """Compares all cases; the exit code is 1 if a prediction differs."""
    forestvm = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 1_000_000
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    print(f"seed {seed}", flush=True)
    begin, models, different = time.monotonic(), 0, 0
    for cases in TRAINERS:
        if word not in cases.__name__:
            continue
        random = numpy.random.default_rng(seed)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for case in cases(folder, random):
                counts = differences(forestvm, folder, case)
                models += 1
                different += sum(counts.values())
                print(f"{case.name}: of {TEST_ROWS} rows differ: {listed(counts)}", flush=True)
    print(f"{models} models, {different} differences, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if different else 0)


main()

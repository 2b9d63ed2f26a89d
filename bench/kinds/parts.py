#!/usr/bin/env python3
"""Compares how long outputs of trees and stages take with how long raw scores take:

parts.py FORESTVM LIBRARY ZOO [MODEL ...]

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so, ZOO a folder of models as docs/testing.md describes.
All outputs are of the same rows (4096 at most) with one thread, in one process and in turns, so that other work on the
machine disturbs all of them alike. Prints a Markdown table of the smallest processor times per row in microseconds: of
raw scores of a program that does not keep leaves; of raw scores, trees, stages of a tenth of the rounds, and raw scores
of either half of the rounds of one that does; of XGBoost's raw scores, of those of ten stages one after the other, and
of the first half of the rounds. Needs numpy and xgboost-cpu.
"""
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy
import xgboost

from models import XGBOOST, booster_of, models_of

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from library import Forest, Library, compiled  # noqa: E402

ROWS = 4096
TURNS = 7


def measured(forestvm, library, model, rows):
    """Returns the microseconds a row of each output, by name."""
    booster = booster_of(model)
    count = booster.num_boosted_rounds()
    every, half = max(1, count // 10), max(1, count // 2)
    with tempfile.TemporaryDirectory() as folder:
        plain = Forest(library, compiled(forestvm, model, folder, ""))
        kept = Forest(library, compiled(forestvm, model, folder, "trees"))

    def their_raw(end):  # predictions of a DMatrix would be remembered from one call to the next
        return booster.inplace_predict(rows, iteration_range=(0, end), predict_type="margin")

    def stages():
        for end in range(every, 11 * every, every):
            their_raw(min(end, count))

    calls = {
        "raw": plain.call(rows, "raw"),
        "raw, leaves kept": kept.call(rows, "raw"),
        "trees": kept.call(rows, "trees"),
        "staged": kept.call(rows, "staged", every),
        "first half": kept.call(rows, "raw", rounds=(0, half)),
        "second half": kept.call(rows, "raw", rounds=(half, count)),
        "XGBoost raw": lambda: their_raw(count),
        "XGBoost, ten stages": stages,
        "XGBoost, first half": lambda: their_raw(half),
    }
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(TURNS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], (time.process_time() - start) / len(rows) * 1e6)
    ours = kept.call(rows, "staged", every)().reshape(len(rows), -1, max(1, kept.call(rows, "raw")().shape[1]))[:, 0]
    theirs = their_raw(every).reshape(ours.shape)
    if not numpy.array_equal(ours, theirs):
        raise SystemExit(f"{model}: the first stage differs from XGBoost's")
    return best


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    forestvm, library, zoo, *chosen = sys.argv[1:]
    print("XGBoost", xgboost.__version__)
    names = None
    for name, model, rows in models_of(zoo, chosen, XGBOOST):
        best = measured(forestvm, Library(library), model, numpy.ascontiguousarray(rows[:ROWS]))
        if names is None:
            names = list(best)
            print("| model |", " | ".join(names), "|\n|" + "---|" * (len(names) + 1))
        print(f"| {name} |", " | ".join(f"{time:.3g}" for time in best.values()), "|", flush=True)


if __name__ == "__main__":
    main()

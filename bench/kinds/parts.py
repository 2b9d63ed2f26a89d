#!/usr/bin/env python3
"""Compares the time of outputs of trees and stages with that of raw scores: parts.py LIBRARY FORESTVM ZOO [MODEL ...]

LIBRARY is libforestvm_runtime.so, FORESTVM the forestvm program, ZOO a folder of models as docs/testing.md describes.
All outputs are of the same rows (4096 at most) with one thread, in one process and in turns, so that other work on the
machine disturbs all of them alike. Prints a Markdown table of the smallest processor times per row in microseconds: of
raw scores of a program that does not keep leaves; of raw scores, trees, and stages of a tenth of the rounds of one that
does; of XGBoost's raw scores, and of those of ten stages one after the other. Needs numpy and xgboost-cpu.
"""
import gzip
import os
import pathlib
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy
import xgboost

from library import Forest, compiled

ROWS = 4096
TURNS = 7


def measured(library, forestvm, model, rows):
    """Returns the microseconds a row of each output, by name."""
    data = model.read_bytes()
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(bytearray(gzip.decompress(data) if model.suffix == ".gz" else data))
    booster.feature_names = None
    every = max(1, booster.num_boosted_rounds() // 10)
    with tempfile.TemporaryDirectory() as folder:
        plain = Forest(library, compiled(forestvm, model, folder, ""))
        kept = Forest(library, compiled(forestvm, model, folder, "trees"))

    def margins(end):
        # predict() would answer from what it keeps of the same rows' earlier predictions
        return booster.inplace_predict(rows, predict_type="margin", iteration_range=(0, end))

    def stages():
        for end in range(every, 11 * every, every):
            margins(min(end, booster.num_boosted_rounds()))

    calls = {
        "raw": plain.call(rows, "raw"),
        "raw, leaves kept": kept.call(rows, "raw"),
        "trees": kept.call(rows, "trees"),
        "staged": kept.call(rows, "staged", every),
        "XGBoost raw": lambda: margins(booster.num_boosted_rounds()),
        "XGBoost, ten stages": stages,
    }
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(TURNS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], (time.process_time() - start) / len(rows) * 1e6)
    ours = kept.call(rows, "staged", every)().reshape(len(rows), -1, max(1, kept.call(rows, "raw")().shape[1]))[:, 0]
    theirs = margins(every).reshape(ours.shape)
    if not numpy.array_equal(ours, theirs):
        raise SystemExit(f"{model}: the first stage differs from XGBoost's")
    return best


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    library, forestvm, zoo = sys.argv[1:4]
    print("XGBoost", xgboost.__version__)
    names = None
    for folder in sorted(pathlib.Path(zoo).iterdir()):
        names_of_models = ("model.json", "model.ubj", "model.ubj.gz")
        model = next((folder / name for name in names_of_models if (folder / name).exists()), None)
        if model is None or (len(sys.argv) > 4 and folder.name not in sys.argv[4:]):
            continue
        rows = numpy.ascontiguousarray(numpy.load(folder / "rows.npy")[:ROWS], dtype=numpy.float32)
        rows[numpy.isinf(rows)] = numpy.nan  # XGBoost refuses infinities
        best = measured(library, forestvm, model, rows)
        if names is None:
            names = list(best)
            print("| model |", " | ".join(names), "|\n|" + "---|" * (len(names) + 1))
        print(f"| {folder.name} |", " | ".join(f"{best[name]:.3g}" for name in names), "|", flush=True)


if __name__ == "__main__":
    main()

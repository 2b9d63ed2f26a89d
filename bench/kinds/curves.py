#!/usr/bin/env python3
"""Shows how the time of exact contributions grows, beside XGBoost's:

curves.py [--axes depth,features,trees,repeats,rows] [--turns 5] [--smallest N] FORESTVM LIBRARY

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so. XGBoost trains models on random numbers, 100 trees of
depth 6 on 32 features unless an axis says otherwise, and explains some of the rows, as many as it does in half a
second. Both run in one process and in turns, with one thread. Axes: depth; features; trees; repeats (the number of
features that trees can split on: the fewer there are, the more splits have the feature of a split above them); and rows
(a call). Prints a Markdown table for each axis: what the model is like, the smallest processor times per row in
microseconds, how many times as long XGBoost takes, and the largest difference relative to the largest sum of a row's
contributions. --smallest N takes only the first N points of an axis. Needs numpy and xgboost.
"""
import argparse
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy
import xgboost

from models import facts
from timing import timed, timed_often

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from library import Forest, Library, compiled  # noqa: E402

AXES = {
    "depth": (2, 4, 6, 8, 10, 12, 14, 16),
    "features": (8, 32, 128, 500, 1000, 2000, 4000),
    "trees": (10, 30, 100, 300, 1000, 3000),
    "repeats": (32, 16, 8, 4, 2, 1),
    "rows": (1, 2, 4, 8, 16, 32, 64, 256, 1024, 4096),
}
USUAL = {"depth": 6, "features": 32, "trees": 100, "repeats": None, "rows": 4096}
TRAINING_ROWS = 20_000
PEER_SECONDS = 0.5
ARRAY_BYTES = 256_000_000  # the most that the answers take


def trained(place, folder):
    """Trains a model. Returns its file, and rows."""
    random = numpy.random.default_rng(1)
    features = place["features"]
    rows = random.normal(size=(TRAINING_ROWS, features)).astype(numpy.float32)
    used = place["repeats"] or features
    rows[:, used:] = 0
    weights = random.normal(size=used)
    noise = random.normal(size=TRAINING_ROWS)
    target = numpy.sin(2 * rows[:, :used]) @ weights + rows[:, 0] * rows[:, used // 2] + noise
    settings = {"max_depth": place["depth"], "eta": 0.05, "nthread": 1, "min_child_weight": 1, "max_bin": 64}
    if features > used or features <= 32:
        settings["colsample_bytree"] = 1
    else:
        settings["colsample_bynode"] = 32 / features  # so that trees use many of them, and training takes seconds
    booster = xgboost.train(settings, xgboost.DMatrix(rows, target, nthread=1), place["trees"])
    file = folder / "model.json"
    booster.save_model(file)
    return file, rows


def measured(asked, library, file, rows, place):
    """Returns the microseconds a row of forestvm, of XGBoost, and the largest difference."""
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(asked.forestvm, file, folder, "contributions")
        forest = Forest(library, program)
    count = min(place["rows"], ARRAY_BYTES // (4 * forest.width("contributions")))
    rows = numpy.ascontiguousarray(rows[:count])
    predict = forest.call(rows, "contributions")
    booster = xgboost.Booster({"nthread": 1}, model_file=file)

    def explain(some):
        return booster.predict(xgboost.DMatrix(some, nthread=1), pred_contribs=True)

    few = min(count, 4)
    seconds = timed(lambda: explain(rows[:few]))[0]
    few = min(count, max(few, int(PEER_SECONDS / seconds * few)))
    ours, theirs = [], []
    for _ in range(asked.turns):
        taken, answers = timed_often(predict)
        ours.append(taken / count)
        taken, expected = timed_often(lambda: explain(rows[:few]))
        theirs.append(taken / few)
    scale = numpy.abs(expected).sum(axis=-1).max()
    error = numpy.abs(answers[:few] - expected).max() / scale
    forest.close()
    return min(ours) * 1e6, min(theirs) * 1e6, error


def curve(asked, library, axis, folder):
    """Prints the table of an axis."""
    print(f"\n| {axis} | leaves a tree | features used | repeats | forestvm, us a row | XGBoost | ratio | difference |")
    print("|---|---|---|---|---|---|---|---|")
    file = None
    for point in AXES[axis][: asked.smallest]:
        place = {**USUAL, axis: point}
        if file is None or axis != "rows":
            file, rows = trained(place, folder)
            leaves, used, repeats = facts(file)
        ours, theirs, error = measured(asked, library, file, rows, place)
        about = f"{point} | {leaves:.0f} | {used} | {repeats:.0%}"
        print(f"| {about} | {ours:.3g} | {theirs:.4g} | {theirs / ours:.0f} | {error:.1e} |", flush=True)


def main(asked):
    print(f"XGBoost {xgboost.__version__}")
    library = Library(asked.library)
    for axis in asked.axes.split(","):
        if axis not in AXES:
            sys.exit(f"--axes {axis}: expected some of {', '.join(AXES)}")
        with tempfile.TemporaryDirectory() as folder:
            curve(asked, library, axis, pathlib.Path(folder))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axes", default=",".join(AXES), help="separated by commas (default %(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="the least of so many times counts (default %(default)s)")
    parser.add_argument("--smallest", type=int, metavar="N", help="only the first N points of an axis")
    for name in ("forestvm", "library"):
        parser.add_argument(name)
    main(parser.parse_args())

#!/usr/bin/env python3
"""Compares proximity, the number of trees in which two rows share a leaf, with NumPy:

proximity.py ZOO [MODEL ...]

ZOO is a folder of models as docs/testing.md describes. Compares 4096 rows with 4096 others, with one thread, by
`Forest.proximity`, which predicts the leaves, too. NumPy compares a row's leaves with those of all others at once, 64
rows altogether: as `Forest.apply` returns them (int32), and in the smallest type that holds them; the time of the
prediction is left out. The counts must be equal. Prints a Markdown table of the smallest processor times for a pair of
rows in nanoseconds. Needs numpy, xgboost-cpu and the package forestvm.
"""
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy

import forestvm
from models import XGBOOST, models_of
from timing import timed

ROWS, NUMPY_ROWS = 4096, 64
TURNS = 5


def numpy_proximity(leaves, others):
    return numpy.stack([numpy.sum(others == row, axis=1, dtype=numpy.int32) for row in leaves])


def least(function):
    """Returns the least processor time of some calls in nanoseconds, and the last result."""
    calls = [timed(function) for _ in range(TURNS)]
    return min(seconds for seconds, _ in calls) * 1e9, calls[-1][1]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print("| model | trees | forestvm | NumPy, int32 | NumPy, smallest type | ratios |")
    print("|---|---|---|---|---|---|")
    ratios = []
    for name, model, rows in models_of(sys.argv[1], sys.argv[2:], XGBOOST):
        forest = forestvm.load(model, threads=1)
        rows = numpy.resize(rows, (2 * ROWS, rows.shape[1]))
        time_of_mine, counts = least(lambda: forest.proximity(rows[:ROWS], rows[ROWS:]))
        mine = time_of_mine / ROWS**2
        leaves = forest.apply(rows)
        theirs = []
        for some in (leaves, leaves.astype(numpy.min_scalar_type(leaves.max()))):
            time_of_numpy, expected = least(lambda: numpy_proximity(some[:NUMPY_ROWS], some[ROWS:]))
            theirs.append(time_of_numpy / (NUMPY_ROWS * ROWS))
            if not numpy.array_equal(counts[:NUMPY_ROWS], expected):
                sys.exit(f"{name}: the counts differ")
        ratios.append([time / mine for time in theirs])
        print(
            f"| {name} | {forest.num_trees} | {mine:.3g} | {theirs[0]:.3g} | {theirs[1]:.3g} "
            f"| {ratios[-1][0]:.0f}, {ratios[-1][1]:.0f} |",
            flush=True,
        )
    means = numpy.exp(numpy.mean(numpy.log(ratios), axis=0))
    print(f"\nGeometric means of the ratios: {means[0]:.0f} and {means[1]:.0f}")


main()

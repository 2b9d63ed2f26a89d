#!/usr/bin/env python3
"""Compares proximity, the number of trees in which two rows share a leaf, with NumPy:

proximity.py ZOO [MODEL ...]

ZOO is a folder of models as docs/testing.md describes. Compares 4096 rows with 4096 others, with one thread. forestvm
is timed twice: with int32 leaves and an array for the counts given, as NumPy has them, and by `Forest.proximity`, which
predicts the leaves and makes the array, too. NumPy compares the leaves of 64 rows with those of all others in two ways,
of which the table has the faster: row by row, `(others == row).sum(axis=1)`, and tree by tree, adding
`leaves[:, None] == others` to an array. It does so with int32 and with the smallest type that holds the leaves. The
counts must be equal. Prints a Markdown table of the smallest processor times for a pair of rows in nanoseconds. Needs
numpy, xgboost-cpu and the package forestvm.
"""
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy

import forestvm
from forestvm import _core
from models import XGBOOST, models_of
from timing import timed

ROWS, NUMPY_ROWS = 4096, 64
TURNS = 5


def by_rows(leaves, others):
    return numpy.stack([numpy.sum(others == row, axis=1, dtype=numpy.int32) for row in leaves])


def by_trees(leaves, others):
    """Takes leaves tree by tree."""
    counts = numpy.zeros((leaves.shape[1], others.shape[1]), numpy.int32)
    for mine, theirs in zip(leaves, others):
        counts += mine[:, None] == theirs
    return counts


def least(function):
    """Returns the least processor time of some calls in nanoseconds, and the last result."""
    calls = [timed(function) for _ in range(TURNS)]
    return min(seconds for seconds, _ in calls) * 1e9, calls[-1][1]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print("| model | trees | leaves given | all | NumPy, int32 | NumPy, smallest type | given: ratios | all: ratios |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for name, model, rows in models_of(sys.argv[1], sys.argv[2:], XGBOOST):
        forest = forestvm.load(model, threads=1)
        rows = numpy.resize(rows, (2 * ROWS, rows.shape[1]))
        time_of_all, counts = least(lambda: forest.proximity(rows[:ROWS], rows[ROWS:]))
        leaves = forest.apply(rows)
        given = numpy.zeros_like(counts)
        # Forest.proximity calls this function after its predictions.
        time_of_given, _ = least(lambda: _core.share_leaves(leaves[:ROWS], leaves[ROWS:], given, None))
        mine = numpy.array([time_of_given, time_of_all]) / ROWS**2
        theirs = []
        for some in (leaves, leaves.astype(numpy.min_scalar_type(leaves.max()))):
            in_trees = numpy.ascontiguousarray(some.T)
            ways = (
                least(lambda: by_rows(some[:NUMPY_ROWS], some[ROWS:])),
                least(lambda: by_trees(in_trees[:, :NUMPY_ROWS], in_trees[:, ROWS:])),
            )
            theirs.append(min(time for time, _ in ways) / (NUMPY_ROWS * ROWS))
            if not all(numpy.array_equal(some[:NUMPY_ROWS], expected) for some in (counts, given) for _, expected in ways):
                sys.exit(f"{name}: the counts differ")
        ratios.append([time / part for part in mine for time in theirs])
        numbers = " | ".join(f"{time:.3g}" for time in (*mine, *theirs))
        ratio = "{:.0f}, {:.0f} | {:.0f}, {:.0f}"
        print(f"| {name} | {forest.num_trees} | {numbers} | {ratio.format(*ratios[-1])} |", flush=True)
    means = numpy.exp(numpy.mean(numpy.log(ratios), axis=0))
    print(f"\nGeometric means of the ratios: {ratio.format(*means)}")


main()

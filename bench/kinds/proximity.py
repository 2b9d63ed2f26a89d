#!/usr/bin/env python3
"""Compares proximity, the number of trees in which two rows share a leaf, with NumPy:

proximity.py [--themselves] [--rows N] ZOO [MODEL ...]

ZOO is a folder of models as docs/testing.md describes. Compares 4096 rows with 4096 others, with one thread. forestvm
is timed twice: with int32 leaves and an array for the counts given, as NumPy has them, and by `Forest.proximity`, which
predicts the leaves and makes the array, too. NumPy compares the leaves of 64 rows with those of all others in two ways,
of which the table has the faster: row by row, `(others == row).sum(axis=1)`, and tree by tree, adding
`leaves[:, None] == others` to an array. It does so with int32 and with the smallest type that holds the leaves. The
counts must be equal. The table also has the time of the loop that is found in most programs, which adds
`numpy.equal.outer(leaves, others)` of all rows, tree by tree: the time of its first 8 trees, for as many trees as there
are. Prints a Markdown table of the smallest processor times for a pair of rows in nanoseconds. Needs
numpy, xgboost-cpu and the package forestvm.

With --themselves it compares rows with themselves, leaves given, and has the time of the same call with these rows as the
others, too, in turns. Both calls must give the same counts. --rows says how many rows instead of 4096.
"""
import argparse
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy

import forestvm
from forestvm import _core
from models import XGBOOST, models_of
from timing import timed

NUMPY_ROWS = 64
TABLE_TREES = 8
TURNS = 5


def by_rows(leaves, others):
    return numpy.stack([numpy.sum(others == row, axis=1, dtype=numpy.int32) for row in leaves])


def by_trees(leaves, others):
    """Takes leaves tree by tree."""
    counts = numpy.zeros((leaves.shape[1], others.shape[1]), numpy.int32)
    for mine, theirs in zip(leaves, others):
        counts += mine[:, None] == theirs
    return counts


def by_tables(leaves, others):
    """Takes leaves tree by tree, and makes a table of all pairs of rows for each."""
    counts = numpy.zeros((leaves.shape[1], others.shape[1]), numpy.int32)
    for mine, theirs in zip(leaves, others):
        counts += numpy.equal.outer(mine, theirs)
    return counts


def least(function):
    """Returns the least processor time of some calls in nanoseconds, and the last result."""
    calls = [timed(function) for _ in range(TURNS)]
    return min(seconds for seconds, _ in calls) * 1e9, calls[-1][1]


def least_of_numpy(leaves, others, counts):
    """Returns NumPy's least times for a pair: with int32, with the smallest type, and of whole tables; or None if the
    counts differ."""
    times = []
    for dtype in (leaves.dtype, numpy.min_scalar_type(leaves.max())):
        few, all_others = leaves[:NUMPY_ROWS].astype(dtype), others.astype(dtype)
        few_in_trees, others_in_trees = numpy.ascontiguousarray(few.T), numpy.ascontiguousarray(all_others.T)
        ways = (
            least(lambda: by_rows(few, all_others)),
            least(lambda: by_trees(few_in_trees, others_in_trees)),
        )
        if not all(numpy.array_equal(some[:NUMPY_ROWS], found) for some in counts for _, found in ways):
            return None
        times.append(min(time for time, _ in ways) / (NUMPY_ROWS * len(others)))
    trees = leaves.shape[1]
    some_trees = [numpy.ascontiguousarray(some.T[:TABLE_TREES]) for some in (leaves, others)]
    time, _ = least(lambda: by_tables(*some_trees))
    times.append(time / min(trees, TABLE_TREES) * trees / (len(leaves) * len(others)))
    return times


def measured(forest, rows, count):
    """Returns forestvm's times of a pair, with leaves given and of everything, NumPy's, and the ratios."""
    time_of_all, counts = least(lambda: forest.proximity(rows[:count], rows[count:]))
    leaves = forest.apply(rows)
    given = numpy.zeros_like(counts)
    # Forest.proximity calls this function after its predictions.
    time_of_given, _ = least(lambda: _core.share_leaves(leaves[:count], leaves[count:], given, None))
    mine = [time_of_given / count**2, time_of_all / count**2]
    theirs = least_of_numpy(leaves[:count], leaves[count:], (counts, given))
    return theirs and (*mine, *theirs, *(time / part for part in mine for time in theirs))


def measured_with_themselves(forest, rows, count):
    """Returns forestvm's times of a pair of rows that are given once and twice, NumPy's, and the ratios."""
    leaves = forest.apply(rows[:count])
    once, twice = (numpy.zeros((count, count), numpy.int32) for _ in range(2))
    times = []
    for _ in range(TURNS):
        times.append(
            (
                timed(lambda: _core.share_leaves(leaves, None, once, None))[0],
                timed(lambda: _core.share_leaves(leaves, leaves, twice, None))[0],
            )
        )
    mine = [min(some) * 1e9 / count**2 for some in zip(*times)]
    theirs = least_of_numpy(leaves, leaves, (once,)) if numpy.array_equal(once, twice) else None
    return theirs and (*mine, *theirs, mine[1] / mine[0], *(time / mine[0] for time in theirs))


def main():
    parser = argparse.ArgumentParser(description="Compares proximity with NumPy.")
    parser.add_argument("--themselves", action="store_true", help="compares rows with themselves")
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("zoo")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    if options.themselves:
        mine, of_mine = "themselves | given twice", "twice: ratio | NumPy: ratios"
        form, measure = "{:.2f} | {:.0f}, {:.0f}, {:.0f}", measured_with_themselves
    else:
        mine, of_mine = "leaves given | all", "given: ratios | all: ratios"
        form, measure = "{:.0f}, {:.0f}, {:.0f} | {:.0f}, {:.0f}, {:.0f}", measured
    print(f"| model | trees | {mine} | NumPy, int32 | NumPy, smallest type | NumPy, whole tables | {of_mine} |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for name, model, rows in models_of(options.zoo, options.models, XGBOOST):
        forest = forestvm.load(model, threads=1)
        numbers = measure(forest, numpy.resize(rows, (2 * options.rows, rows.shape[1])), options.rows)
        if numbers is None:
            sys.exit(f"{name}: the counts differ")
        ratios.append(numbers[5:])
        times = " | ".join(f"{time:.3g}" for time in numbers[:5])
        print(f"| {name} | {forest.num_trees} | {times} | {form.format(*ratios[-1])} |", flush=True)
    print(f"\nGeometric means of the ratios: {form.format(*numpy.exp(numpy.mean(numpy.log(ratios), axis=0)))}")


main()

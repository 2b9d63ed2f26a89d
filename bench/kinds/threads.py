#!/usr/bin/env python3
"""Shows how many times as fast two threads compute contributions as one:

threads.py [--rows 4096] [--turns 200] FORESTVM LIBRARY ZOO [MODEL ...]

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so, ZOO a folder of models as docs/testing.md describes.
Contexts with one and two threads explain the same rows in turns. Prints a Markdown table of the smallest times of a row
in microseconds: by the clock, for which the machine should be quiet, with two cores free; and the processor time of the
thread that works most, which other programs disturb less: they only keep a thread from its share of the rows, and the
turn in which the shares were most even counts. Both contexts must have the same bits. Needs numpy and Linux.
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time

import numpy

from models import XGBOOST, models_of

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from library import Forest, Library, compiled  # noqa: E402

DEFAULT = ("airline", "higgs", "abalone", "covtype", "epsilon", "airline-ohe")
THREADS = (1, 2)


def seconds_of_threads():
    """Returns the processor seconds of each thread of this process, by clock_getcpuclockid's numbers for Linux's
    threads: schedstat has them to the last tick only."""
    return {thread: time.clock_gettime(~int(thread) << 3 | 6) for thread in os.listdir("/proc/self/task")}


def timed(call):
    """Returns the seconds of a call: by the clock, and of the processor for the thread that works most."""
    before, begin = seconds_of_threads(), time.perf_counter()
    call()
    wall, after = time.perf_counter() - begin, seconds_of_threads()
    return numpy.array([wall, max(after[thread] - before.get(thread, 0) for thread in after)])


def main(asked):
    library = Library(asked.library)
    print("| model | one thread | two | times as fast | busiest of one | of two | times as fast |")
    print("|---|---|---|---|---|---|---|")
    gains = []
    for name, model, rows in models_of(asked.zoo, tuple(asked.models) or DEFAULT, ("model.txt", *XGBOOST)):
        rows = numpy.resize(rows, (asked.rows, rows.shape[1]))
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(asked.forestvm, model, folder, "contributions")
            forests = [Forest(library, program, threads) for threads in THREADS]
        calls = [forest.call(rows, "contributions") for forest in forests]
        least = numpy.full((len(calls), 2), numpy.inf)
        for _ in range(asked.turns):
            for i, call in enumerate(calls):
                least[i] = numpy.minimum(least[i], timed(call) / len(rows) * 1e6)
        one, two = (call().copy() for call in calls)
        if not numpy.array_equal(one, two):
            sys.exit(f"{name}: contributions of two threads differ")
        for forest in forests:
            forest.close()
        gains.append(least[0] / least[1])
        cells = [f"{least[0, i]:.3g} | {least[1, i]:.3g} | {gains[-1][i]:.2f}" for i in range(2)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    means = numpy.exp(numpy.log(gains).mean(axis=0))
    print(f"\nGeometric means: {means[0]:.2f} and {means[1]:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--turns", type=int, default=200)
    for name in ("forestvm", "library", "zoo"):
        parser.add_argument(name)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    main(parser.parse_args())

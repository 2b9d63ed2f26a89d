#!/usr/bin/env python3
"""Shows how many times as fast two threads compute contributions as one:

threads.py [--rows 4096] [--turns 200] FORESTVM LIBRARY ZOO [MODEL ...]

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so, ZOO a folder of models as docs/testing.md describes.
Contexts with one and two threads explain the same rows in turns. Prints a Markdown table of the smallest times of a row
in microseconds, by the clock: the machine should be quiet, and two of its cores free. Both must have the same bits.
Needs numpy.
"""
import argparse
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


def main(asked):
    library = Library(asked.library)
    print("| model | one thread | two threads | times as fast |\n|---|---|---|---|")
    gains = []
    for name, model, rows in models_of(asked.zoo, tuple(asked.models) or DEFAULT, ("model.txt", *XGBOOST)):
        rows = numpy.resize(rows, (asked.rows, rows.shape[1]))
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(asked.forestvm, model, folder, "contributions")
            forests = [Forest(library, program, threads) for threads in THREADS]
        calls = [forest.call(rows, "contributions") for forest in forests]
        least = [float("inf")] * len(calls)
        for _ in range(asked.turns):
            for i, call in enumerate(calls):
                begin = time.perf_counter()
                call()
                least[i] = min(least[i], (time.perf_counter() - begin) / len(rows) * 1e6)
        one, two = (call().copy() for call in calls)
        if not numpy.array_equal(one, two):
            sys.exit(f"{name}: contributions of two threads differ")
        for forest in forests:
            forest.close()
        gains.append(least[0] / least[1])
        print(f"| {name} | {least[0]:.3g} | {least[1]:.3g} | {gains[-1]:.2f} |", flush=True)
    print(f"\nGeometric mean: {numpy.exp(numpy.log(gains).mean()):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--turns", type=int, default=200)
    for name in ("forestvm", "library", "zoo"):
        parser.add_argument(name)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    main(parser.parse_args())

#!/usr/bin/env python3
"""Compares contributions or interactions of exported C with those of the library, a row a call:

exported.py [--rows 64] [--turns 5] [--output contributions] [--target auto] FORESTVM LIBRARY ZOO [MODEL ...]

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so, ZOO a folder of models as docs/testing.md describes.
The C is compiled by `cc -O2 -ffp-contract=off`, and both explain the same rows in turns. Prints a Markdown table: bytes
of constant tables and of stack, as `export --report` says them; without contributions, too; and the smallest processor
times of a row in microseconds. Both must write the same bits. Needs numpy, a C compiler and models with float32 rows.
"""
import argparse
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy

from models import XGBOOST, models_of
from timing import timed

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from library import Forest, Library, compiled  # noqa: E402

DEFAULT = ("airline", "higgs", "abalone", "covtype", "epsilon", "airline-ohe")
REPORT = re.compile(r"tables (\d+) bytes, stack (\d+) bytes")


def exported(forestvm, program):
    """Exports a program. Returns the C file, and the bytes of tables and of stack."""
    source = program.with_suffix(".c")
    command = [forestvm, "export", str(program), "-o", str(source), "--report"]
    found = REPORT.search(subprocess.run(command, check=True, capture_output=True, text=True).stderr)
    return source, int(found[1]), int(found[2])


def function_of(source, output):
    """Compiles a C file. Returns the function that writes an output."""
    library = source.with_suffix(".so")
    options = ["-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared"]
    subprocess.run(["cc", *options, "-o", str(library), str(source)], check=True)
    function = getattr(ctypes.CDLL(str(library)), "forest_predict_" + output.replace("-", "_"))
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p], None
    return function


def main(asked):
    library = Library(asked.library)
    output = asked.output
    print("| model | tables, kB | without contributions | stack, kB | exported C, us a row | library | ratio |")
    print("|---|---|---|---|---|---|---|")
    ratios = []
    for name, model, rows in models_of(asked.zoo, tuple(asked.models) or DEFAULT, XGBOOST):
        rows = numpy.resize(rows, (asked.rows, rows.shape[1]))
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(asked.forestvm, model, folder, output)
            plain = exported(asked.forestvm, compiled(asked.forestvm, model, folder, ""))[1]
            source, tables, stack = exported(asked.forestvm, program)
            function = function_of(source, output)
            forest = Forest(library, program, target=asked.target)
        calls = [forest.call(rows[i : i + 1], output) for i in range(len(rows))]
        out = numpy.empty((1, forest.width(output)), numpy.float32)

        def explain(row):
            function(row, 1, rows.shape[1], out.ctypes.data)

        addresses = [rows[i:].ctypes.data for i in range(len(rows))]
        for call, address in zip(calls, addresses):
            explain(address)
            if out.tobytes() != call().tobytes():
                sys.exit(f"{name}: exported C writes other bits")
        least = [numpy.inf, numpy.inf]
        for _ in range(asked.turns):
            least[0] = min(least[0], timed(lambda: [explain(address) for address in addresses])[0])
            least[1] = min(least[1], timed(lambda: [call() for call in calls])[0])
        forest.close()
        times = [seconds / len(rows) * 1e6 for seconds in least]
        ratios.append(times[0] / times[1])
        sizes = f"{tables / 1000:.0f} | {plain / 1000:.0f} | {stack / 1000:.1f}"
        print(f"| {name} | {sizes} | {times[0]:.3g} | {times[1]:.3g} | {ratios[-1]:.3g} |", flush=True)
    print(f"\nGeometric mean: {numpy.exp(numpy.log(ratios).mean()):.3g}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--turns", type=int, default=5)
    outputs = ("contributions", "interactions", "approx-contributions")
    parser.add_argument("--output", default=outputs[0], choices=outputs)
    parser.add_argument("--target", default="auto")
    for argument in ("forestvm", "library", "zoo"):
        parser.add_argument(argument)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    main(parser.parse_args())

#!/usr/bin/env python3
"""Measures calls from Python: what they cost above the C call, and beside the trainers' own packages.

    calls.py overhead MODEL ROWS [--library LIBRARY]
    calls.py peers MODEL ROWS [--rows 1,64,4096] [--threads 1,2] [--seconds 0.5]

MODEL is a model file of XGBoost or LightGBM, ROWS an .npy matrix of its rows. `overhead` needs the runtime library
(libforestvm_runtime.so), whose call it takes from the times of Python's; all are CPU times of the calling thread, the
least of several turns. `peers` prints the median and the 99th percentile of wall-clock times in microseconds, one line
for each form of rows, number of rows and number of threads.
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import forestvm

TURNS = 15


def least(call: Callable[[], Any], calls: int) -> float:
    """Returns the CPU time of a call in nanoseconds, less that of an empty call."""

    def turn(function: Callable[[], Any]) -> float:
        begin = time.thread_time_ns()
        for _ in range(calls):
            function()
        return (time.thread_time_ns() - begin) / calls

    nothing = min(turn(lambda: None) for _ in range(TURNS))
    return min(turn(call) for _ in range(TURNS)) - nothing


def c_call(library: str, program: bytes, rows: np.ndarray[Any, Any]) -> float:
    """Returns the CPU time of fvm_predict_f32 in nanoseconds, measured by a loop in C."""
    import re
    import subprocess

    with tempfile.TemporaryDirectory() as folder:
        model, source, binary = (Path(folder, name) for name in ("model.fvm", "loop.c", "loop"))
        model.write_bytes(program)
        np.ascontiguousarray(rows).tofile(Path(folder, "rows"))
        source.write_text(LOOP)
        include = Path(__file__).resolve().parents[2] / "include"
        runtime = Path(library).resolve()
        subprocess.run(
            ["cc", "-O2", "-I", include, source, "-o", binary, runtime, f"-Wl,-rpath,{runtime.parent}"], check=True
        )
        arguments = [binary, model, Path(folder, "rows"), str(rows.shape[0]), str(rows.shape[1])]
        done = subprocess.run(arguments, check=True, capture_output=True, text=True)
        match = re.match(r"[0-9.]+", done.stdout)
        assert match is not None
        return float(match[0])


LOOP = """
#include <forestvm/forestvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char** argv) {
  size_t rows = (size_t)atol(argv[3]), columns = (size_t)atol(argv[4]);
  float *data = malloc(rows * columns * 4), *out = malloc(rows * 4 * 1024);
  FILE* file = fopen(argv[2], "rb");
  if (argc != 5 || fread(data, 4, rows * columns, file) != rows * columns) return 1;
  fvm_program* program;
  fvm_context* context;
  uint32_t width;
  if (fvm_program_open(argv[1], NULL, &program) || fvm_context_create(program, &context) ||
      fvm_program_width(program, FVM_OUTPUT_VALUE, &width))
    return puts(fvm_last_error()), 1;
  double best = 1e300;
  int calls = rows > 8 ? 5000 : 50000;
  for (int turn = 0; turn < 15; ++turn) {
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int i = 0; i < calls; ++i)
      if (fvm_predict_f32(context, data, rows, columns, FVM_OUTPUT_VALUE, out, rows * width)) return 1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    double time = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / calls;
    if (time < best) best = time;
  }
  printf("%g\\n", best);
}
"""


def frames(rows: np.ndarray[Any, Any], names: list[str]) -> dict[str, Any]:
    """Returns the rows in each form whose package is installed."""
    forms: dict[str, Any] = {"NumPy": rows, "NumPy, Fortran order": np.asfortranarray(rows)}
    try:
        import pandas

        forms["pandas"] = pandas.DataFrame(rows, columns=names)
        forms["pandas, mixed"] = forms["pandas"].astype({names[0]: "float64"})
    except ImportError:
        print("pandas is not installed")
    try:
        import polars

        forms["polars"] = polars.DataFrame({name: rows[:, i] for i, name in enumerate(names)})
    except ImportError:
        print("polars is not installed")
    try:
        import pyarrow

        forms["Arrow"] = pyarrow.table({name: rows[:, i] for i, name in enumerate(names)})
    except ImportError:
        print("pyarrow is not installed")
    return forms


def produce(form: Any) -> Callable[[], Any] | None:
    """Returns a function that makes a form's rows available, as its package does it: an array, or Arrow's structs."""
    if hasattr(form, "iloc"):
        return form.to_numpy
    if hasattr(form, "__arrow_c_stream__"):
        return lambda: drain(form)
    return None


class ArrowArrayStream(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")
    ]


def drain(form: Any) -> None:
    """Takes the schema and all arrays of a stream, and releases them."""
    capsule = form.__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    at = pointer(capsule, b"arrow_array_stream")
    stream = ArrowArrayStream.from_address(at)
    take = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    for function, words, release_at in ((stream.get_schema, 9, 7), (stream.get_next, 10, 8), (stream.get_next, 10, 8)):
        struct = (ctypes.c_void_p * words)()
        take(function)(at, ctypes.addressof(struct))
        if struct[release_at]:
            release(struct[release_at])(ctypes.addressof(struct))


def overhead(options: argparse.Namespace) -> None:
    forest = forestvm.load(options.model, threads=1)
    names = list(forest.feature_names) or [f"c{i}" for i in range(forest.num_features)]
    print(f"{'rows':>5} {'form':24} {'call':>9} {'C call':>9} {'producer':>9} {'beyond':>9}  (ns)")
    for count in (1, 64):
        rows = np.ascontiguousarray(np.load(options.rows)[:count], dtype=np.float32)
        c = c_call(options.library, forest.to_bytes(), rows)
        calls = 20000 if count == 1 else 4000
        out = forest.predict(rows)

        def line(name: str, call: Callable[[], Any], producer: float = 0.0) -> None:
            taken = least(call, calls)
            print(f"{count:5} {name:24} {taken:9.0f} {c:9.0f} {producer:9.0f} {taken - c - producer:9.0f}")

        line("NumPy, out", lambda: forest.predict(rows, out=out))
        for name, form in frames(rows, names).items():
            producer = produce(form)
            line(name, lambda: forest.predict(form), 0.0 if producer is None else least(producer, calls // 4))


def percentiles(call: Callable[[], Any], seconds: float) -> tuple[float, float, int]:
    call()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - begin)
    return float(np.median(times)) / 1e3, float(np.percentile(times, 99)) / 1e3, len(times)


def trainer_call(model: str, threads: int) -> tuple[str, Callable[[Any], Any]]:
    if Path(model).suffix == ".txt":
        import lightgbm

        booster = lightgbm.Booster(model_file=model)
        return "LightGBM", lambda X: booster.predict(X, num_threads=threads)
    import xgboost

    other = xgboost.Booster(model_file=model)
    other.set_param({"nthread": threads})
    other.feature_names = None
    return "XGBoost", lambda X: other.inplace_predict(X, validate_features=False)


def peers(options: argparse.Namespace) -> None:
    base = np.load(options.rows).astype(np.float32)
    print(f"{'threads':>7} {'rows':>8} {'form':24} {'engine':10} {'median':>10} {'p99':>10}  (us)")
    for threads in map(int, options.threads.split(",")):
        forest = forestvm.load(options.model, threads=threads)
        names = list(forest.feature_names) or [f"c{i}" for i in range(forest.num_features)]
        name, trainer = trainer_call(options.model, threads)
        for count in map(int, options.counts.split(",")):
            rows = np.ascontiguousarray(base[np.arange(count) % len(base)])
            for form, X in frames(rows, names).items():
                for engine, call in (("forestvm", forest.predict), (name, trainer)):
                    median, p99, _ = percentiles(lambda: call(X), options.seconds)
                    print(f"{threads:7} {count:8} {form:24} {engine:10} {median:10.1f} {p99:10.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("overhead", overhead), ("peers", peers)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("model")
        command.add_argument("rows")
        if name == "overhead":
            command.add_argument("--library", required=True)
        else:
            command.add_argument("--rows", dest="counts", default="1,64,4096")
            command.add_argument("--threads", default="1")
            command.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()

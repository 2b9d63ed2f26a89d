#!/usr/bin/env python3
"""Measures calls from Python: what they cost above the C call, and beside the trainers' own packages.

    calls.py overhead MODEL ROWS [--library LIBRARY]
    calls.py choices MODEL ROWS
    calls.py peers MODEL ROWS [--rows 1,64,4096,1000000] [--threads 1,2] [--seconds 0.2] [--clock wall|cpu]
                              [--cache FOLDER]

MODEL is a model file of XGBoost, ROWS an .npy matrix of its rows. `./dev bench-python` installs what is needed and
runs all. `overhead` needs the runtime library (libforestvm_runtime.so), whose call it takes from the times of
Python's; all are CPU times of the calling thread, the least of several turns. A producer's time is that of a loop in C
that takes the arrays and releases them.

`choices` prints what the package's choices cost: the CPU time of importing it beyond that of NumPy, in new processes;
the time in which the global lock is released and taken, beside the shortest call that does so; and the CPU time, of all
threads, of calls with one and two threads on the executor that this package was built with.

`peers` prints the median and the 99th percentile of the times in microseconds, one row of a table for each number of
threads, number of rows and form of rows, one column for each engine: XGBoost, LightGBM, lleaves, ONNX Runtime and
daal4py, as far as they are installed, with the same trees. Each cell takes `--seconds`, or three calls if these take
longer, or two if a call takes more than a second. An engine that does not take a form is given a NumPy array of float32
that the form's own method makes in the time that counts; its times have a star. The clock `cpu` is that of all threads
of the process, for machines that do other work too. `--cache` keeps what lleaves compiles, which takes it minutes.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import hashlib
import re
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import forestvm

TURNS = 15
TREE = Path(__file__).resolve().parents[2]


def least(call: Callable[[], Any], calls: int) -> float:
    """Returns the CPU time of a call in nanoseconds, minus the time of an empty call."""

    def turn(function: Callable[[], Any]) -> float:
        begin = time.thread_time_ns()
        for _ in range(calls):
            function()
        return (time.thread_time_ns() - begin) / calls

    nothing = min(turn(lambda: None) for _ in range(TURNS))
    return min(turn(call) for _ in range(TURNS)) - nothing


def c_call(library: str, program: bytes, rows: np.ndarray[Any, Any]) -> float:
    """Returns the CPU time of fvm_predict_f32 in nanoseconds, measured by a loop in C."""
    with tempfile.TemporaryDirectory() as folder:
        model, source, binary = (Path(folder, name) for name in ("model.fvm", "loop.c", "loop"))
        model.write_bytes(program)
        np.ascontiguousarray(rows).tofile(Path(folder, "rows"))
        source.write_text(LOOP)
        include = TREE / "include"
        runtime = Path(library).resolve()
        subprocess.run(
            ["cc", "-O2", "-I", include, source, "-o", binary, runtime, f"-Wl,-rpath,{runtime.parent}"], check=True
        )
        arguments = [binary, model, Path(folder, "rows"), str(rows.shape[0]), str(rows.shape[1])]
        done = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True)
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


def producer(form: Any, drain: Callable[[Any, int], float]) -> float:
    """Returns the time in nanoseconds that a form's package takes to give its rows; 0 for NumPy and pandas."""
    if hasattr(form, "iloc") or not hasattr(form, "__arrow_c_stream__"):
        return 0.0
    return min(drain(form, 2000) for _ in range(TURNS))


def make_drain(folder: str) -> Callable[[Any, int], float]:
    """Compiles the loop that takes schema and arrays of a stream and releases them. It returns the time of a turn."""
    source, library = Path(folder, "drain.c"), Path(folder, "drain.so")
    source.write_text(DRAIN)
    includes = [f"-I{TREE / 'include'}", f"-I{sysconfig.get_path('include')}"]
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", *includes, source, "-o", library], check=True)
    drain = ctypes.PyDLL(str(library)).drain
    drain.restype, drain.argtypes = ctypes.c_double, [ctypes.py_object, ctypes.c_int]
    return drain


DRAIN = """
#include <Python.h>
#include <forestvm/arrow_c_data.h>
#include <string.h>
#include <time.h>
typedef struct Stream {
  int (*get_schema)(struct Stream*, struct ArrowSchema*);
  int (*get_next)(struct Stream*, struct ArrowArray*);
} Stream;
static void take_stream(PyObject* object) {
  PyObject* capsule = PyObject_CallMethod(object, "__arrow_c_stream__", NULL);
  Stream* stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
  struct ArrowSchema schema;
  struct ArrowArray array;
  stream->get_schema(stream, &schema);
  for (;;) {
    memset(&array, 0, sizeof array);
    stream->get_next(stream, &array);
    if (array.release == NULL) break;
    array.release(&array);
  }
  schema.release(&schema);
  Py_DECREF(capsule);
}
double drain(PyObject* object, int calls) {
  int one = PyObject_HasAttrString(object, "__arrow_c_array__");
  struct timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (int i = 0; i < calls; ++i)
    if (one)
      Py_DECREF(PyObject_CallMethod(object, "__arrow_c_array__", NULL));
    else
      take_stream(object);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / calls;
}
"""


def overhead(options: argparse.Namespace) -> None:
    forest = forestvm.load(options.model, threads=1)
    names = list(forest.feature_names) or [f"c{i}" for i in range(forest.num_features)]
    print(f"{'rows':>5} {'form':24} {'call':>9} {'C call':>9} {'producer':>9} {'beyond':>9}  (ns)")
    for count in (1, 64):
        rows = np.ascontiguousarray(np.load(options.rows)[:count], dtype=np.float32)
        c = c_call(options.library, forest.to_bytes(), rows)
        calls = 20000 if count == 1 else 4000
        out = forest.predict(rows)

        def line(name: str, call: Callable[[], Any], given: float = 0.0) -> None:
            taken = least(call, calls)
            print(f"{count:5} {name:24} {taken:9.0f} {c:9.0f} {given:9.0f} {taken - c - given:9.0f}")

        line("NumPy, out", lambda: forest.predict(rows, out=out))
        with tempfile.TemporaryDirectory() as folder:
            drain = make_drain(folder)
            forms = frames(rows, names)
            if "Arrow" in forms:
                forms["Arrow, a batch"] = forms["Arrow"].to_batches()[0]
            for name, form in forms.items():
                line(name, lambda: forest.predict(form), producer(form, drain))


def importing(code: str) -> float:
    """Returns the CPU time of a new process that runs a program of Python, in milliseconds: the least of several."""

    def turn() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    return min(turn() for _ in range(TURNS))


def cpu_time(call: Callable[[], Any], calls: int) -> float:
    """Returns the CPU time of a call, of all threads, in nanoseconds."""
    begin = time.process_time_ns()
    for _ in range(calls):
        call()
    return (time.process_time_ns() - begin) / calls


def choices(options: argparse.Namespace) -> None:
    numpy_alone = importing("import numpy")
    print(f"import: {importing('import forestvm') - numpy_alone:.1f} ms beyond NumPy, which takes {numpy_alone:.1f} ms")

    # ctypes releases the global lock for functions of a CDLL, not for those of a PyDLL.
    kept, released = (least(functools.partial(library(None).labs, 1), 20000) for library in (ctypes.PyDLL, ctypes.CDLL))
    forest = forestvm.load(options.model, threads=1)
    rows = np.ascontiguousarray(np.resize(np.load(options.rows), (65536, forest.num_features)), dtype=np.float32)
    shortest = -(-1024 // (forest.num_trees + forest.num_features // 8 + 1))  # kLongCall of core/result_array.cpp
    one, few = (least(functools.partial(forest.predict, rows[:count]), 4000) for count in (1, shortest))
    print(
        f"global lock: {released - kept:.0f} ns to release and take it; the shortest call that does so has {shortest} "
        f"rows and takes {few:.0f} ns, a call with one row {one:.0f} ns"
    )
    for threads in (1, 2):
        forest = forestvm.load(options.model, threads=threads)
        for count in (512, 4096, 65536):
            call = functools.partial(forest.predict, rows[:count])
            call()
            taken = min(cpu_time(call, max(1, 65536 // count)) for _ in range(TURNS))
            print(f"{forest.description}: {count} rows take {taken / 1e3:.0f} us of all threads' CPU time")


def percentiles(call: Callable[[], Any], seconds: float, clock: Callable[[], int]) -> tuple[float, float]:
    """Returns the median and the 99th percentile of a call's times in microseconds."""
    times: list[int] = []

    def timed() -> None:
        begin = clock()
        call()
        times.append(clock() - begin)

    begin = time.perf_counter()
    timed()
    end = time.perf_counter() + seconds
    if end - begin - seconds > 1:
        timed()  # the first call counts too, because calls this long need no warming up
    else:
        times.clear()
        while time.perf_counter() < end or len(times) < 3:
            timed()
    return float(np.median(times)) / 1e3, float(np.percentile(times, 99)) / 1e3


def as_numpy(form: Any) -> np.ndarray[Any, Any]:
    if isinstance(form, np.ndarray):
        return np.ascontiguousarray(form, dtype=np.float32)
    if hasattr(form, "to_numpy"):
        return np.ascontiguousarray(form.to_numpy(), dtype=np.float32)
    return np.column_stack([column.to_numpy() for column in form.columns])


def engines(model: str, threads: int, folder: str, cache: str | None) -> dict[str, Callable[[Any], Any]]:
    """Returns the calls of the other engines, with the trees of an XGBoost model."""
    import xgboost

    sys.path.insert(0, str(TREE / "bench" / "peers"))
    import convert

    booster = xgboost.Booster(model_file=model)
    booster.set_param({"nthread": threads})
    booster.feature_names = None
    found: dict[str, Callable[[Any], Any]] = {"XGBoost": lambda X: booster.inplace_predict(X, validate_features=False)}
    _, *trees = convert.load(booster)
    text = Path(folder, "model.txt")
    text.write_text(convert.to_lightgbm(*trees))
    digest = hashlib.sha256(text.read_bytes()).hexdigest()[:16]

    def lightgbm() -> Callable[[Any], Any]:
        import lightgbm

        other = lightgbm.Booster(model_file=str(text))
        return lambda X: other.predict(X, num_threads=threads)

    def lleaves() -> Callable[[Any], Any]:
        import lleaves

        other = lleaves.Model(model_file=str(text))
        other.compile(cache=Path(cache or folder, f"lleaves-{digest}.bin"))
        return lambda X: other.predict(X, n_jobs=threads)

    def onnx_runtime() -> Callable[[Any], Any]:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(convert.to_onnx(*trees).SerializeToString(), options)
        return lambda X: session.run(None, {"X": X})

    def daal4py() -> Callable[[Any], Any]:
        import daal4py
        from daal4py.mb import convert_model

        daal4py.daalinit(threads)
        other = convert_model(booster)
        return lambda X: other.predict(X)

    others = {"LightGBM": lightgbm, "lleaves": lleaves, "ONNX Runtime": onnx_runtime, "daal4py": daal4py}
    for name, make in others.items():
        try:
            found[name] = make()
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
    return found


def cells(call: Callable[[Any], Any], X: Any, seconds: float, clock: Callable[[], int]) -> tuple[float, float, str]:
    """Returns an engine's median and 99th percentile, with a star if the engine takes only NumPy's rows."""
    try:
        call(X[:1] if not isinstance(X, np.ndarray) else X[:1].copy(order="A"))
    except Exception:  # each package has its own kinds of errors for what it does not take
        return *percentiles(lambda: call(as_numpy(X)), seconds, clock), "*"
    return *percentiles(lambda: call(X), seconds, clock), ""


def text_of(microseconds: float) -> str:
    return f"{microseconds:,.0f}" if microseconds >= 100 else f"{microseconds:.1f}"


def peers(options: argparse.Namespace) -> None:
    base = np.load(options.rows).astype(np.float32)
    clock = time.process_time_ns if options.clock == "cpu" else time.perf_counter_ns
    slower: list[str] = []
    count_of_cells = 0
    with tempfile.TemporaryDirectory() as folder:
        for threads in map(int, options.threads.split(",")):
            forest = forestvm.load(options.model, threads=threads)
            names = list(forest.feature_names) or [f"c{i}" for i in range(forest.num_features)]
            calls = {"forestvm": forest.predict, **engines(options.model, threads, folder, options.cache)}
            if count_of_cells == 0:
                print(f"| threads | rows | form | {' | '.join(calls)} |\n|{'---|' * (3 + len(calls))}")
            for count in map(int, options.counts.split(",")):
                rows = np.ascontiguousarray(base[np.arange(count) % len(base)])
                for form, X in frames(rows, names).items():
                    taken = {name: cells(call, X, options.seconds, clock) for name, call in calls.items()}
                    texts = (f"{text_of(median)} / {text_of(p99)}{star}" for median, p99, star in taken.values())
                    cell = f"{threads} | {count:,} | {form}"
                    print(f"| {cell} | {' | '.join(texts)} |", flush=True)
                    count_of_cells += 1
                    fastest = min(taken, key=lambda name: taken[name][0])
                    if fastest != "forestvm":
                        slower.append(f"{cell}: {fastest}")
    print(f"\nforestvm takes the least time in {count_of_cells - len(slower)} of {count_of_cells} cells.")
    for line in slower:
        print(f"- {line} takes less")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("overhead", overhead), ("choices", choices), ("peers", peers)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("model")
        command.add_argument("rows")
        if name == "overhead":
            command.add_argument("--library", required=True)
        elif name == "peers":
            command.add_argument("--rows", dest="counts", default="1,64,4096,1000000")
            command.add_argument("--threads", default="1,2")
            command.add_argument("--cache")
            command.add_argument("--seconds", type=float, default=0.2)
            command.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()

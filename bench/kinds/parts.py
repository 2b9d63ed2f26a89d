#!/usr/bin/env python3
"""Compares the time of outputs of trees and stages with that of raw scores: parts.py LIBRARY FORESTVM ZOO [MODEL ...]

LIBRARY is libforestvm_runtime.so, FORESTVM the forestvm program, ZOO a folder of models as docs/testing.md describes.
All outputs are of the same rows (4096 at most) with one thread, in one process and in turns, so that other work on the
machine disturbs all of them alike. Prints a Markdown table of the smallest processor times per row in microseconds: of
raw scores of a program that does not keep leaves; of raw scores, trees, and stages of a tenth of the rounds of one that
does; of XGBoost's raw scores, and of those of ten stages one after the other. Needs numpy and xgboost-cpu.
"""
import ctypes
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy
import xgboost

ROWS = 4096
TURNS = 7
RAW, TREES, STAGED = 0, 5, 6


class OpenOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("target", ctypes.c_char_p),
        ("threads", ctypes.c_uint32),
        ("verification", ctypes.c_int32),
    ]


class Rows(ctypes.Structure):
    """fvm_rows; dense rows leave the fields after `data` zero."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_int32),
        ("type", ctypes.c_int32),
        ("row_count", ctypes.c_size_t),
        ("column_count", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("strides", ctypes.c_ssize_t * 2),
        ("offsets", ctypes.c_void_p),
        ("columns", ctypes.c_void_p),
        ("value_count", ctypes.c_size_t),
        ("absent", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
        ("byte_count", ctypes.c_size_t),
        ("encoder", ctypes.c_uint64),
        ("hashed", ctypes.c_int32),
        ("extra", ctypes.c_int32),
        ("schema", ctypes.c_void_p),
    ]


class CallOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("base_margin", ctypes.c_void_p),
        ("base_margin_rows", ctypes.c_size_t),
        ("base_margin_outputs", ctypes.c_size_t),
        ("base_margin_type", ctypes.c_int32),
        ("early_stop_every", ctypes.c_uint32),
        ("early_stop_margin", ctypes.c_double),
        ("rounds_begin", ctypes.c_uint32),
        ("rounds_end", ctypes.c_uint32),
        ("stage_every", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class Forest:
    """A program in the C library, which predicts with one thread."""

    def __init__(self, library, program):
        self.library = ctypes.CDLL(library)
        self.library.fvm_last_error.restype = ctypes.c_char_p
        options = OpenOptions(ctypes.sizeof(OpenOptions), b"auto", 1, 0)
        self.program, self.context = ctypes.c_void_p(), ctypes.c_void_p()
        opened = self.library.fvm_program_open(str(program).encode(), ctypes.byref(options), ctypes.byref(self.program))
        self.check(opened)
        self.check(self.library.fvm_context_create(self.program, ctypes.byref(self.context)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.library.fvm_last_error().decode())

    def call(self, rows, output, every=0):
        """Returns a function that predicts the rows into one array."""
        options = CallOptions(ctypes.sizeof(CallOptions), None, 0, 0, 0, 0, 10.0, 0, 0, every, 0)
        width = ctypes.c_uint32()
        self.check(self.library.fvm_call_width(self.program, output, ctypes.byref(options), ctypes.byref(width)))
        out = numpy.empty((len(rows), width.value), numpy.float32)
        given = Rows(ctypes.sizeof(Rows), 0, 0, *rows.shape, rows.ctypes.data)

        def predict():
            self.check(
                self.library.fvm_predict_with(
                    self.context,
                    ctypes.byref(given),
                    output,
                    0,
                    ctypes.byref(options),
                    out.ctypes.data_as(ctypes.c_void_p),
                    ctypes.c_size_t(out.size),
                )
            )
            return out

        return predict


def compiled(forestvm, model, folder, capabilities):
    program = pathlib.Path(folder) / f"{capabilities or 'plain'}.fvm"
    words = [forestvm, "compile", str(model), "-o", str(program)]
    subprocess.run(words + (["--with", capabilities] if capabilities else []), check=True)
    return program


def measured(library, forestvm, model, rows):
    """Returns the microseconds a row of each output, by name."""
    data = model.read_bytes()
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(bytearray(gzip.decompress(data) if model.suffix == ".gz" else data))
    booster.feature_names = None
    matrix = xgboost.DMatrix(rows, nthread=1)
    every = max(1, booster.num_boosted_rounds() // 10)
    with tempfile.TemporaryDirectory() as folder:
        plain = Forest(library, compiled(forestvm, model, folder, ""))
        kept = Forest(library, compiled(forestvm, model, folder, "trees"))

    def stages():
        for end in range(every, 11 * every, every):
            booster.predict(matrix, output_margin=True, iteration_range=(0, min(end, booster.num_boosted_rounds())))

    calls = {
        "raw": plain.call(rows, RAW),
        "raw, leaves kept": kept.call(rows, RAW),
        "trees": kept.call(rows, TREES),
        "staged": kept.call(rows, STAGED, every),
        "XGBoost raw": lambda: booster.predict(matrix, output_margin=True),
        "XGBoost, ten stages": stages,
    }
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(TURNS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], (time.process_time() - start) / len(rows) * 1e6)
    ours = kept.call(rows, STAGED, every)().reshape(len(rows), -1, max(1, kept.call(rows, RAW)().shape[1]))[:, 0]
    theirs = booster.predict(matrix, output_margin=True, iteration_range=(0, every)).reshape(ours.shape)
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

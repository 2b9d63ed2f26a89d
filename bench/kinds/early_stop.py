#!/usr/bin/env python3
"""Measures what an early stop of predictions saves, beside LightGBM's own (pred_early_stop):

early_stop.py FORESTVM LIBRARY

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so. Trains LightGBM models on random numbers, and finds
the margin at which rows get a third of the rounds on average, checked after every 10. All calls are of the same 4096
rows, or of some of them, with one thread, in one process and in turns. Prints a Markdown table of the smallest
processor times per row in microseconds: of raw scores of a program that does not keep leaves, and of one that does, of
raw scores with an early stop, of exported C without and with an early stop, and of LightGBM in both ways. Raw scores must
have LightGBM's bits, rounded to float32. Needs numpy, lightgbm and a C compiler.
"""
import ctypes
import pathlib
import subprocess
import sys
import tempfile
import time

import lightgbm
import numpy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from library import Forest, Library, compiled  # noqa: E402

ROWS, EVERY, TURNS = 4096, 10, 9
MODELS = [
    ("300 trees of 31 leaves", "binary", 300, 31),
    ("1000 trees of 31 leaves", "binary", 1000, 31),
    ("500 trees of 127 leaves", "binary", 500, 127),
    ("3 classes x 200 trees of 31 leaves", "multiclass", 200, 31),
]


def trained(objective, trees, leaves, folder):
    """Returns a booster as its file has it, the file, and rows."""
    random = numpy.random.default_rng(1)
    train, rows = (random.normal(size=(count, 28)).astype(numpy.float32) for count in (8000, ROWS))
    score = train[:, 0] * 2 + train[:, 1] * train[:, 2] + train[:, 3]
    classes = 3 if objective == "multiclass" else 2
    labels = numpy.digitize(score, [-2, 2] if classes == 3 else [0])
    params = {"objective": objective, "num_leaves": leaves, "learning_rate": 0.05, "verbosity": -1, "num_threads": 1}
    if classes == 3:
        params["num_class"] = 3
    file = folder / "model.txt"
    lightgbm.train(params, lightgbm.Dataset(train, labels), trees).save_model(file)
    return lightgbm.Booster(model_file=file), file, rows


class Options(ctypes.Structure):
    """The options of exported C of such a model."""

    _fields_ = [
        ("rounds_begin", ctypes.c_uint32),
        ("rounds_end", ctypes.c_uint32),
        ("base_margin", ctypes.c_void_p),
        ("early_stop_every", ctypes.c_uint32),
        ("early_stop_margin", ctypes.c_double),
    ]


def exported(forestvm, program, folder):
    """Returns the function for raw scores, with options, of a program that is exported and compiled as C."""
    source, library = pathlib.Path(folder) / "forest.c", pathlib.Path(folder) / "forest.so"
    subprocess.run([forestvm, "export", program, "-o", source], check=True)
    options = ["-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared"]
    subprocess.run(["cc", *options, "-o", library, source], check=True)
    function = ctypes.CDLL(str(library)).forest_predict_raw_with
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
    return function


def margin_of_a_third(booster, rows):
    """Returns a margin, and the mean share of the rounds that rows get with it."""
    rounds = booster.current_iteration()
    stages = range(EVERY, rounds + 1, EVERY)
    sure = []
    for end in stages:
        raw = booster.predict(rows, raw_score=True, num_iteration=end, num_threads=1).reshape(len(rows), -1)
        ranked = numpy.sort(raw, axis=1)
        sure.append(2 * abs(raw[:, 0]) if raw.shape[1] == 1 else ranked[:, -1] - ranked[:, -2])
    sure = numpy.array(sure)

    def share(margin):
        decided = sure > margin
        first = numpy.where(decided.any(axis=0), decided.argmax(axis=0) + 1, len(stages))
        return first.mean() / len(stages)

    low, high = 0.0, float(sure.max())
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < 1 / 3 else (low, middle)
    return high, share(high)


def measured(calls, rows):
    """Returns the smallest microseconds a row of each call, by name. All calls are repeated in turns."""
    repeats = max(1, 512 // rows)
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(TURNS):
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(repeats):
                call()
            best[name] = min(best[name], (time.process_time() - start) / repeats / rows * 1e6)
    return best


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    forestvm, library = sys.argv[1], Library(sys.argv[2])
    print(f"LightGBM {lightgbm.__version__}")
    titles = None
    for name, objective, trees, leaves in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            booster, file, rows = trained(objective, trees, leaves, pathlib.Path(folder))
            plain = Forest(library, compiled(forestvm, file, folder, ""))
            program = compiled(forestvm, file, folder, "early-stop")
            kept = Forest(library, program)
            function = exported(forestvm, program, folder)
        margin, share = margin_of_a_third(booster, rows)
        stop = {"pred_early_stop": True, "pred_early_stop_freq": EVERY, "pred_early_stop_margin": margin}
        for count in (1, 64, 512, ROWS):
            some = rows[:count]

            def theirs(**options):
                return booster.predict(some, raw_score=True, num_threads=1, **options)

            wide = numpy.ascontiguousarray(some, numpy.float64)
            out = numpy.empty((count, 3 if objective == "multiclass" else 1))
            options = Options(early_stop_every=EVERY, early_stop_margin=margin)

            def written(options):
                if function(options and ctypes.byref(options), wide.ctypes.data, count, 28, out.ctypes.data) != 0:
                    sys.exit(f"{name}: exported C refuses the options")
                return out

            calls = {
                "raw": plain.call(some, "raw"),
                "raw, leaves kept": kept.call(some, "raw"),
                "early stop": kept.call(some, "raw", stop=(margin, EVERY)),
                "exported C": lambda: written(None),
                "exported C, early stop": lambda: written(options),
                "LightGBM": theirs,
                "LightGBM, early stop": lambda: theirs(**stop),
            }
            ours, expected = calls["early stop"](), calls["LightGBM, early stop"]()
            if not numpy.array_equal(ours, expected.reshape(ours.shape).astype(numpy.float32)):
                sys.exit(f"{name}: raw scores differ from LightGBM's")
            if not numpy.array_equal(written(options), expected.reshape(out.shape)):
                sys.exit(f"{name}: raw scores of exported C differ from LightGBM's")
            best = measured(calls, count)
            if titles is None:
                titles = list(best)
                print("| model | rounds a row | rows a call |", " | ".join(titles), "| early stop / raw |")
                print("|" + "---|" * (len(titles) + 4))
            times = " | ".join(f"{time:.3g}" for time in best.values())
            print(f"| {name} | {share:.0%} | {count} | {times} | {best['early stop'] / best['raw']:.2f} |", flush=True)


if __name__ == "__main__":
    main()

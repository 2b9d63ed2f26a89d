#!/usr/bin/env python3
"""Compares contributions against a background with those of the package shap, and times them for more rows:

background.py FORESTVM LIBRARY ZOO [MODEL ...]

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so, ZOO a folder of models as docs/testing.md describes.
The background has other rows than those that are explained; where the model has too few rows, they are repeated with a
little noise. Prints two Markdown tables: processor times per row in microseconds for backgrounds of 10 to 10,000 rows
with the size of the program and the seconds that compiling took, and beside shap's TreeExplainer with
feature_perturbation="interventional" for a background of 100 rows, with the largest difference relative to the largest
sum of a row's contributions, and how far the sums of shap's values are from the raw scores. After the models of the
zoo comes one that LightGBM trains here. All run on one thread. Needs numpy, xgboost-cpu, lightgbm and shap.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import lightgbm
import numpy
import shap

from models import XGBOOST, background_of, booster_of, models_of
from timing import timed

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from library import Forest, Library  # noqa: E402

ROWS = 1024
SHAP_ROWS = 16
TURNS = 3


def explained(forestvm, library, model, rows, background, folder):
    """Returns the microseconds of a row, the contributions, the bytes of the program, and the seconds of compiling."""
    numpy.save(folder / "background.npy", background)
    program = folder / "program.fvm"
    command = [forestvm, "compile", str(model), "-o", str(program), "--with", "contributions"]
    begin = time.perf_counter()
    subprocess.run([*command, "--background", str(folder / "background.npy")], check=True)
    seconds = time.perf_counter() - begin
    forest = Forest(library, program)
    predict = forest.call(rows, "contributions")
    times = [timed(predict) for _ in range(TURNS)]
    forest.close()
    return min(taken for taken, _ in times) / len(rows) * 1e6, times[0][1], program.stat().st_size, seconds


def trained_lightgbm(folder):
    """Trains a model of 50 trees with 31 leaves."""
    random = numpy.random.default_rng(1)
    rows = random.normal(size=(3000, 8)).astype(numpy.float32)
    target = rows[:, 0] * rows[:, 1] + numpy.sin(3 * rows[:, 2]) + rows[:, 3]
    settings = {"num_leaves": 31, "verbose": -1, "num_threads": 1}
    lightgbm.train(settings, lightgbm.Dataset(rows, target), 50).save_model(folder / "lightgbm.txt")
    return "lightgbm 50 x 31 leaves", folder / "lightgbm.txt", rows


def main(forestvm, library, zoo, *names):
    library = Library(library)
    comparisons = []
    print("| model | rows of the background | us a row | MB | seconds to compile |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        models = list(models_of(zoo, names or ("abalone", "airline", "lgb_regression"), ("model.txt", *XGBOOST)))
        for name, model, rows in (*models, trained_lightgbm(folder)):
            some = numpy.resize(rows, (ROWS, rows.shape[1]))
            for count in (10, 100, 1000, 10_000):
                background = background_of(rows, count)
                us, parts, size, seconds = explained(forestvm, library, model, some, background, folder)
                print(f"| {name} | {count} | {us:.3g} | {size / 1e6:.3g} | {seconds:.2g} |", flush=True)
                if count != 100:
                    continue
                booster = lightgbm.Booster(model_file=str(model)) if model.suffix == ".txt" else booster_of(model)
                explainer = shap.TreeExplainer(booster, background, feature_perturbation="interventional")
                taken, theirs = timed(lambda: explainer.shap_values(some[:SHAP_ROWS], check_additivity=False))
                outputs = parts.reshape(ROWS, -1, rows.shape[1] + 1)
                ours = outputs[:SHAP_ROWS, :, :-1]
                theirs = numpy.asarray(theirs).reshape(SHAP_ROWS, rows.shape[1], -1).transpose(0, 2, 1)
                scale = numpy.abs(outputs).sum(axis=-1).max()
                error = numpy.abs(ours - theirs).max() / scale
                sums = theirs.sum(axis=-1) + explainer.expected_value
                off = numpy.abs(sums - outputs[:SHAP_ROWS].sum(axis=-1)).max() / scale
                them = taken / SHAP_ROWS * 1e6
                comparisons.append(f"| {name} | {us:.3g} | {them:.0f} | {them / us:.0f} | {error:.1e} | {off:.1e} |")
    print("\n| model | forestvm, us a row | shap, us a row | ratio | largest difference | shap's sums off by |")
    print("|---|---|---|---|---|---|")
    print("\n".join(comparisons))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])

#!/usr/bin/env python3
"""Shows how the time and memory of contributions against a background change with the number of its rows:

background.py FORESTVM LIBRARY ZOO [MODEL ...]

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so, ZOO a folder of models as docs/testing.md describes.
The background has other rows than those that are explained; where the model has too few rows, they are repeated with a
little noise. Prints a Markdown table of processor times per row in microseconds, with one thread, for backgrounds of 10
to 10,000 rows, with the size of the program and the seconds that compiling took. After the models of the zoo comes one
that LightGBM trains here. `peers.py --background` compares with other engines. Needs numpy and lightgbm.
"""
import pathlib
import subprocess
import sys
import tempfile
import time

import lightgbm
import numpy

from models import XGBOOST, background_of, models_of
from timing import timed

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from library import Forest, Library  # noqa: E402

ROWS = 1024
TURNS = 3


def explained(forestvm, library, model, rows, background, folder):
    """Returns the microseconds of a row, the bytes of the program, and the seconds of compiling."""
    numpy.save(folder / "background.npy", background)
    program = folder / "program.fvm"
    command = [forestvm, "compile", str(model), "-o", str(program), "--with", "contributions"]
    begin = time.perf_counter()
    subprocess.run([*command, "--background", str(folder / "background.npy")], check=True)
    seconds = time.perf_counter() - begin
    forest = Forest(library, program)
    predict = forest.call(rows, "contributions")
    taken = min(timed(predict)[0] for _ in range(TURNS))
    forest.close()
    return taken / len(rows) * 1e6, program.stat().st_size, seconds


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
    print("| model | rows of the background | us a row | MB | seconds to compile |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        models = list(models_of(zoo, names or ("abalone", "airline", "lgb_regression"), ("model.txt", *XGBOOST)))
        for name, model, rows in (*models, trained_lightgbm(folder)):
            some = numpy.resize(rows, (ROWS, rows.shape[1]))
            for count in (10, 100, 1000, 10_000):
                background = background_of(rows, count)
                us, size, seconds = explained(forestvm, library, model, some, background, folder)
                print(f"| {name} | {count} | {us:.3g} | {size / 1e6:.3g} | {seconds:.2g} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])

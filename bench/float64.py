"""Compares the time of float64 rows with that of float32 rows: float64.py FORESTVM [TARGET ...]

Trains LightGBM models on random numbers, and prints a table of the smallest times per row, in microseconds. Cells are
measured in turns, so that other work on the machine disturbs all of them alike. Needs the packages of
tests/trainers/requirements-2026.txt.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import lightgbm
import numpy

ROUNDS = 3
SECONDS = "0.2"
# Name, features, trees, rows. 256 rows of 400 float64 numbers fit the second-level cache, 4000 do not.
CASES = (
    ("28 features, 50 trees", 28, 50, 16_384),
    ("28 features, 100 trees", 28, 100, 16_384),
    ("400 features, 10 trees, 256 rows", 400, 10, 256),
    ("400 features, 10 trees, 4000 rows", 400, 10, 4_000),
)


def write_case(folder, features, trees, rows):
    """Trains a model and draws rows. Returns the model's file, and the files of the rows by type."""
    random = numpy.random.default_rng(1)
    training = random.normal(size=(4_000, features))
    target = training @ random.normal(size=features) + random.normal(size=len(training)) > 0
    settings = {"objective": "binary", "num_leaves": 31, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(training, target.astype(int)), trees)
    model = folder / f"{features}_{trees}.txt"
    booster.save_model(model)
    drawn = random.normal(size=(rows, features))
    files = {name: folder / f"{features}_{rows}_{name}.npy" for name in ("float32", "float64")}
    for name, file in files.items():
        numpy.save(file, drawn.astype(name))
    return model, files


def times(forestvm, model, rows, batches, target):
    """Returns the time of a row for each number of rows a call."""
    command = [forestvm, "bench", model, rows, "--batch", batches, "--target", target]
    command += ["--seconds", SECONDS, "--json"]
    lines = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {line["batch"]: line["us_per_row_min"] for line in lines}


def main(forestvm, *targets):
    print("| model and rows | target | rows a call | float32 | float64 | ratio |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, features, trees, rows in CASES:
            model, files = write_case(pathlib.Path(folder), features, trees, rows)
            # A call with more rows than the file has would repeat them, beyond the cache.
            batches = "1,16,64" if rows < 512 else "1,16,64,512,4096"
            for target in targets or ("auto",):
                best = {kind: {} for kind in files}
                for _ in range(ROUNDS):
                    for kind, file in files.items():
                        for batch, time in times(forestvm, model, file, batches, target).items():
                            best[kind][batch] = min(time, best[kind].get(batch, time))
                for batch, narrow in best["float32"].items():
                    wide = best["float64"][batch]
                    cells = (name, target, batch, f"{narrow:.3f}", f"{wide:.3f}", f"{wide / narrow:.2f}")
                    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

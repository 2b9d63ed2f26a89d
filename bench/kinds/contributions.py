#!/usr/bin/env python3
"""Compares how long forestvm and the trainers take for contributions or interactions:

contributions.py [--interactions | --approximate] [--rows 4096] FORESTVM LIBRARY ZOO [MODEL ...]

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so, ZOO a folder of models as docs/testing.md describes.
All engines compute the contributions of the same rows in calls of `--rows` (a trainer gets fewer if it would take
minutes) with one thread, in one process and in turns, so that other work on the machine disturbs all of them alike. Prints a Markdown table of the
smallest processor times per row in microseconds, and of the largest difference between forestvm's contributions and the
trainer's, relative to the largest sum of a row's contributions. With --interactions both compute interactions, which only
XGBoost has; their arrays take at most 512 MB. With --approximate both compute approximate contributions, which only
XGBoost has, too. Needs numpy, xgboost-cpu, lightgbm and catboost.
"""
import argparse
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")

import catboost
import lightgbm
import numpy
import xgboost

from models import XGBOOST, booster_of, models_of, trained_lightgbm
from timing import timed, timed_often

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from library import Forest, Library, compiled  # noqa: E402

TURNS = 5
# The names of outputs, and the arguments with which XGBoost predicts them.
XGBOOST_OPTIONS = {
    "contributions": {"pred_contribs": True},
    "interactions": {"pred_interactions": True},
    "approx-contributions": {"pred_contribs": True, "approx_contribs": True},
}
TRAINER_SECONDS = 5  # a trainer gets as many rows as it explains in about this time
ARRAY_BYTES = 512_000_000  # the most that the answers to the rows take


def trainer_of(model, kind):
    """Returns the trainer's name and version, and a function that explains rows with one thread."""
    if model.suffix == ".cbm":
        booster = catboost.CatBoost()
        booster.load_model(str(model))

        def explain(rows):
            pool = catboost.Pool(rows, thread_count=1)
            return booster.get_feature_importance(pool, type="ShapValues", thread_count=1)

        return f"CatBoost {catboost.__version__}", explain
    if model.suffix == ".txt":
        booster = lightgbm.Booster(model_file=str(model))
        name = f"LightGBM {lightgbm.__version__}"
        return name, lambda rows: booster.predict(rows, pred_contrib=True, num_threads=1)
    booster = booster_of(model)
    options = XGBOOST_OPTIONS[kind]
    return f"XGBoost {xgboost.__version__}", lambda rows: booster.predict(xgboost.DMatrix(rows, nthread=1), **options)


def compare(forestvm, library, kind, name, model, rows):
    """Returns a row of the table."""
    engine, explain = trainer_of(model, kind)
    with tempfile.TemporaryDirectory() as folder:
        forest = Forest(library, compiled(forestvm, model, folder, kind))
    rows = rows[: ARRAY_BYTES // (4 * forest.width(kind))]
    predict = forest.call(rows, kind)
    few = min(len(rows), 1 if kind == "interactions" else 16)
    taken, _ = timed(lambda: explain(rows[:few]))
    few = min(len(rows), max(few, int(TRAINER_SECONDS / TURNS / taken * few)))
    ours = theirs = float("inf")
    for _ in range(TURNS):
        taken, out = timed_often(predict)
        ours = min(ours, taken / len(rows))
        taken, answers = timed_often(lambda: explain(rows[:few]))
        theirs = min(theirs, taken / few)
    answers = answers.reshape(few, -1)
    parts = answers.reshape(few, -1, rows.shape[1] + 1)
    if kind == "interactions":
        parts = answers.reshape(few, -1, rows.shape[1] + 1, rows.shape[1] + 1).sum(axis=-1)
    per_output = numpy.abs(parts).sum(axis=-1).max()
    error = numpy.abs(out[:few] - answers).max() / per_output
    return f"| {name} | {engine} | {ours * 1e6:.3g} | {theirs * 1e6:.0f} | {theirs / ours:.0f} | {error:.1e} |", theirs / ours


def main(kind, count, forestvm, library, zoo, names):
    chosen = tuple(names) or ("airline", "higgs", "abalone", "covtype")
    if kind == "contributions" and not names:
        chosen += ("epsilon", "airline-ohe", "cat_oblivious_logloss")
    print("| model | trainer | forestvm, us a row | trainer, us a row | ratio | largest difference |\n|---|---|---|---|---|---|")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        models = list(models_of(zoo, chosen, ("model.cbm", "model.txt", *XGBOOST)))
        if kind == "contributions":
            models.append(trained_lightgbm(pathlib.Path(folder)))
        for name, model, rows in models:
            rows = numpy.resize(rows, (count, rows.shape[1]))
            line, ratio = compare(forestvm, Library(library), kind, name, model, rows)
            print(line, flush=True)
            ratios.append(ratio)
    print(f"\nGeometric mean of the ratios: {numpy.exp(numpy.log(ratios).mean()):.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--interactions", dest="kind", action="store_const", const="interactions", default="contributions")
    kinds.add_argument("--approximate", dest="kind", action="store_const", const="approx-contributions")
    parser.add_argument("--rows", type=int, default=4096)
    for name in ("forestvm", "library", "zoo"):
        parser.add_argument(name)
    parser.add_argument("names", nargs="*", metavar="MODEL")
    asked = parser.parse_args()
    main(asked.kind, asked.rows, asked.forestvm, asked.library, asked.zoo, asked.names)

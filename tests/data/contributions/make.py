#!/usr/bin/env python3
"""Makes the trainers' own contributions and interactions for the first rows of models in this repository: make.py

Writes NAME.npy for each model that MODELS lists: what XGBoost's pred_contribs, LightGBM's pred_contrib and CatBoost's
ShapValues give for its first ROWS rows, in an array (rows, features + 1) or (rows, outputs, features + 1); and
NAME.interactions.npy for those that INTERACTIONS lists: what XGBoost's pred_interactions gives; and NAME.approx.npy for
those that APPROXIMATE lists: what XGBoost's approx_contribs gives. Made with numpy 2.4.6, xgboost-cpu 3.2.0, lightgbm
4.7.0 and catboost 1.2.10.
"""
import pathlib

import catboost
import lightgbm
import numpy
import xgboost

HERE = pathlib.Path(__file__).parent
ROWS = 12
# The folder and the model of each file, in the folder tests/data.
MODELS = (
    ("breast_cancer", "model.json"),
    ("diabetes", "model.json"),
    ("digits", "model.ubj"),
    ("margins/dart", "model.json"),
    ("margins/classes", "model.json"),
    ("lightgbm/4.7.0_categories", "model.txt"),
    ("lightgbm/4.7.0_classes", "model.txt"),
    ("lightgbm/4.7.0_forest", "model.txt"),
    ("lightgbm/4.7.0_nan", "model.txt"),
    ("lightgbm/4.7.0_none", "model.txt"),
    ("lightgbm/4.7.0_one_leaf", "model.txt"),
    ("lightgbm/4.7.0_zero", "model.txt"),
    ("catboost/1.2.10_classes", "model.cbm"),
    ("catboost/1.2.10_nan_max", "model.cbm"),
    ("catboost/1.2.10_targets", "model.cbm"),
)
# Models of XGBoost of which interactions are kept, too.
INTERACTIONS = ("breast_cancer", "diabetes", "margins/dart", "margins/classes")
# Models of XGBoost of which approximate contributions are kept, too.
APPROXIMATE = ("breast_cancer", "diabetes", "digits", "margins/dart", "margins/classes")


def of_xgboost(model, rows, **kind):
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(model)
    booster.feature_names = None
    return booster.predict(xgboost.DMatrix(rows, nthread=1), **kind)


def contributions(model, rows):
    if model.suffix == ".cbm":
        booster = catboost.CatBoost()
        booster.load_model(str(model))
        return booster.get_feature_importance(catboost.Pool(rows), type="ShapValues", thread_count=1)
    if model.suffix == ".txt":
        booster = lightgbm.Booster(model_file=str(model))
        answers = booster.predict(rows.astype(numpy.float64), pred_contrib=True, num_threads=1)
        outputs = booster.num_model_per_iteration()
        return answers if outputs == 1 else answers.reshape(len(rows), outputs, -1)
    return of_xgboost(model, rows, pred_contribs=True)


for folder, model in MODELS:
    rows = numpy.load(HERE.parent / folder / "rows.npy")[:ROWS]
    answers = contributions(HERE.parent / folder / model, rows)
    numpy.save(HERE / (folder.replace("/", "_") + ".npy"), numpy.ascontiguousarray(answers))
    print(folder, answers.shape, answers.dtype)
    if folder in INTERACTIONS:
        answers = of_xgboost(HERE.parent / folder / model, rows, pred_interactions=True)
        numpy.save(HERE / (folder.replace("/", "_") + ".interactions.npy"), numpy.ascontiguousarray(answers))
    if folder in APPROXIMATE:
        answers = of_xgboost(HERE.parent / folder / model, rows, pred_contribs=True, approx_contribs=True)
        numpy.save(HERE / (folder.replace("/", "_") + ".approx.npy"), numpy.ascontiguousarray(answers))

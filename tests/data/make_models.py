#!/usr/bin/env python3
"""Makes the example models of this folder from public data sets that scikit-learn carries.

    python3 make_models.py        needs numpy, scikit-learn and xgboost; made with the versions in each meta.json

Per data set: a model trained on 70% of the rows, the other rows as rows.csv (header of feature names, empty cell = missing)
and rows.npy (the same numbers, float32), and XGBoost's own answers for them: expected_raw.npy (raw score) and expected.npy
(prediction). Deterministic: fixed seeds, one thread, exact splits.
"""
import json
import os

import numpy as np
import sklearn
import xgboost as xgb
from sklearn import datasets

HERE = os.path.dirname(os.path.abspath(__file__))
TREES = dict(tree_method="exact", nthread=1, seed=1, verbosity=0)


def number(x):
    """Returns the shortest decimal text that reads back to the same float32; empty for a missing value."""
    if np.isnan(x):
        return ""
    text = np.format_float_positional(x, unique=True, trim="-")
    assert np.float32(text) == x and np.float32(float(text)) == x
    return text


def write_csv(path, names, rows):
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write(",".join(names) + "\n")
        for row in rows:
            out.write(",".join(number(x) for x in row) + "\n")


def make(folder, model_file, source, x, y, names, params, rounds):
    x = np.ascontiguousarray(x, dtype=np.float32)
    order = np.random.RandomState(1).permutation(len(x))
    train, rest = order[: len(x) * 7 // 10], order[len(x) * 7 // 10 :]
    booster = xgb.train(dict(TREES, **params), xgb.DMatrix(x[train], y[train], feature_names=names), rounds)
    target = os.path.join(HERE, folder)
    os.makedirs(target, exist_ok=True)
    booster.save_model(os.path.join(target, model_file))
    rows = np.ascontiguousarray(x[rest])
    query = xgb.DMatrix(rows, feature_names=names)
    raw, value = booster.predict(query, output_margin=True), booster.predict(query)
    write_csv(os.path.join(target, "rows.csv"), names, rows)
    for name, array in (("rows", rows), ("expected_raw", raw), ("expected", value)):
        np.save(os.path.join(target, name + ".npy"), np.ascontiguousarray(array, dtype=np.float32))
    meta = {
        "source": source,
        "made_with": {"numpy": np.__version__, "scikit-learn": sklearn.__version__, "xgboost": xgb.__version__},
        "objective": params["objective"],
        "trees": len(booster.get_dump()),
        "features": rows.shape[1],
        "rows": len(rows),
        "rows_are": "held out: not seen in training",
        "missing_cells": int(np.isnan(rows).sum()),
    }
    with open(os.path.join(target, "meta.json"), "w", encoding="utf-8", newline="\n") as out:
        json.dump(meta, out, indent=2)
        out.write("\n")
    print(folder, meta["trees"], "trees,", os.path.getsize(os.path.join(target, model_file)), "bytes")


cancer = datasets.load_breast_cancer()
make("breast_cancer", "model.json", "Breast Cancer Wisconsin (Diagnostic), UCI Machine Learning Repository, CC BY 4.0",
     cancer.data, cancer.target, list(cancer.feature_names),
     dict(objective="binary:logistic", max_depth=5, eta=0.05), 200)

digits = datasets.load_digits()
make("digits", "model.ubj", "Optical Recognition of Handwritten Digits (test part), UCI Machine Learning Repository, CC BY 4.0",
     digits.data, digits.target, list(digits.feature_names),
     dict(objective="multi:softprob", num_class=10, max_depth=4, eta=0.3), 20)

diabetes = datasets.load_diabetes(scaled=False)
holes = np.random.RandomState(2).rand(*diabetes.data.shape) < 0.15
make("diabetes", "model.json", "Diabetes data of Efron, Hastie, Johnstone and Tibshirani (2004), Least Angle Regression; 15% of the cells emptied",
     np.where(holes, np.nan, diabetes.data), diabetes.target, list(diabetes.feature_names),
     dict(objective="reg:squarederror", max_depth=4, eta=0.05), 80)

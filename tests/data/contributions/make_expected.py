#!/usr/bin/env python3
"""Makes the expected scores of XGBoost 3.3 and later, which adds the means of trees in float64: make_expected.py

Writes NAME.expected.npy for each model that MODELS lists: the last numbers of pred_contribs for its first row, an array
(outputs,); and margins_classes.margin_expected.npy: those of its first ROWS rows with their margins, an array (rows,
outputs). Made with numpy 2.5.5 and xgboost-cpu 3.4.1.
"""
import pathlib

import numpy
import xgboost

HERE = pathlib.Path(__file__).parent
ROWS = 12
MODELS = (
    ("breast_cancer", "model.json"),
    ("diabetes", "model.json"),
    ("digits", "model.ubj"),
    ("margins/binary", "model.json"),
    ("margins/classes", "model.json"),
    ("margins/dart", "model.json"),
    ("margins/vectors", "model.json"),
)


def expected(model, rows, margins=None):
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(model)
    booster.feature_names = None
    answers = booster.predict(xgboost.DMatrix(rows, base_margin=margins, nthread=1), pred_contribs=True)
    return numpy.ascontiguousarray(answers[..., -1])


for folder, model in MODELS:
    rows = numpy.load(HERE.parent / folder / "rows.npy")[:ROWS]
    scores = numpy.atleast_1d(expected(HERE.parent / folder / model, rows)[0])
    numpy.save(HERE / (folder.replace("/", "_") + ".expected.npy"), scores)
    print(folder, scores)
folder = HERE.parent / "margins/classes"
margins = numpy.load(folder / "margin.npy")[:ROWS]
numpy.save(
    HERE / "margins_classes.margin_expected.npy",
    expected(folder / "model.json", numpy.load(folder / "rows.npy")[:ROWS], margins),
)

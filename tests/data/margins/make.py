#!/usr/bin/env python3
"""Makes the models of this folder: small models with margins of their own for each row, and the trainers' answers.

    python3 make.py        needs numpy, xgboost and lightgbm; made with xgboost-cpu 3.2.0 and lightgbm 4.7.0

Each model has its file, rows.npy (40 x 4 float32, a tenth missing), margin.npy (40 or 40 x outputs) and
expected_raw.npy, the raw scores that start from the margins. XGBoost's scores are those of Booster.predict; of its
scalar trees there are also expected_contributions.npy, expected_approx.npy and expected_interactions.npy. LightGBM's
predict takes no margins, so its scores are those that it passes to a user's metric while it trains on these rows with
init_score. Deterministic: fixed seeds, one thread.
"""
import os

import lightgbm
import numpy as np
import xgboost

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = 40


def data():
    rng = np.random.RandomState(3)
    x = rng.normal(size=(300, 4)).astype(np.float32)
    y = x[:, 0] + 0.5 * x[:, 1] * (x[:, 2] > 0)
    x[rng.rand(300, 4) < 0.1] = np.nan
    return x, y


def save(name, rows, margin, raw):
    folder = os.path.join(HERE, name)
    for file, array in (("rows", rows), ("margin", margin), ("expected_raw", raw)):
        np.save(os.path.join(folder, file + ".npy"), array)


def make_xgboost(name, x, y, margin, **params):
    os.makedirs(os.path.join(HERE, name), exist_ok=True)
    params = dict(tree_method="hist", max_depth=3, eta=0.4, nthread=1, seed=1, verbosity=0, **params)
    booster = xgboost.train(params, xgboost.DMatrix(x, y), 6)
    booster.save_model(os.path.join(HERE, name, "model.json"))
    rows = xgboost.DMatrix(x[:ROWS], base_margin=margin, nthread=1)
    save(name, x[:ROWS], margin, booster.predict(rows, output_margin=True))
    if "multi_strategy" in params:  # XGBoost 3.2 has no contributions of leaves that are vectors
        return
    for file, kind in (("contributions", dict(pred_contribs=True)),
                       ("approx", dict(pred_contribs=True, approx_contribs=True)),
                       ("interactions", dict(pred_interactions=True))):
        np.save(os.path.join(HERE, name, f"expected_{file}.npy"), booster.predict(rows, **kind))


def make_lightgbm(name, x, y, margin):
    os.makedirs(os.path.join(HERE, name), exist_ok=True)
    seen = []

    def see(scores, _):
        seen.append(scores.copy())
        return "none", 0.0, False

    params = dict(objective="regression", num_leaves=7, learning_rate=0.3, min_data_in_leaf=3, num_threads=1, seed=1,
                  deterministic=True, force_row_wise=True, verbose=-1, metric="None")
    train = lightgbm.Dataset(x, y, init_score=margin)
    booster = lightgbm.train(params, train, 6, valid_sets=[train], feval=see)
    booster.save_model(os.path.join(HERE, name, "model.txt"))
    save(name, x, margin, seen[-1])


def main():
    x, y = data()
    rng = np.random.RandomState(4)
    classes = np.digitize(y, [-0.5, 0.5])
    margin = rng.normal(size=(ROWS, 3)).astype(np.float32)
    make_xgboost("binary", x, y > 0, margin[:, 0], objective="binary:logistic")
    make_xgboost("classes", x, classes, margin, objective="multi:softprob", num_class=3)
    make_xgboost("vectors", x, np.stack([y, -y, y * y], 1), margin, multi_strategy="multi_output_tree")
    make_xgboost("dart", x, y, margin[:, 1], booster="dart", rate_drop=0.3, objective="reg:squarederror")
    make_lightgbm("lightgbm", x[:ROWS], y[:ROWS], rng.normal(size=ROWS))


if __name__ == "__main__":
    main()

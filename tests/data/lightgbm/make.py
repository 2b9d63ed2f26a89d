#!/usr/bin/env python3
"""Makes the models of this folder: one small LightGBM model per form that a release of LightGBM writes.

Run once per release, by an interpreter that has that release (2.x and 3.x need numpy < 2):
    python3 -m venv v2.3.1 && v2.3.1/bin/pip install lightgbm==2.3.1 "numpy<2" scipy scikit-learn
    v2.3.1/bin/python make.py
It writes <release>_<what>/ beside itself for the rows of CASES with its own release number: the model, 48 rows, and that
release's own raw scores, predictions and leaf numbers of the file it wrote. DUMPED models get a JSON dump too.
Deterministic: fixed seeds, one thread. The case "pandas" needs pandas.
"""
import json
import os
import warnings

import lightgbm
import numpy as np

warnings.filterwarnings("ignore")

FOREST = dict(boosting="rf", bagging_freq=1, bagging_fraction=0.7, feature_fraction=0.7)
# release, what, training parameters
CASES = [
    ("2.0.12", "first", dict(objective="regression")),
    ("2.2.3", "categories", dict(objective="regression", min_data_per_group=5, cat_smooth=1, cat_l2=0.1, num_leaves=12)),
    ("2.3.1", "binary", dict(objective="binary", zero_as_missing=True)),
    ("2.3.1", "forest", dict(objective="regression", **FOREST)),
    ("3.3.5", "ova", dict(objective="multiclassova", num_class=3, sigmoid=0.7)),
    ("4.7.0", "nan", dict(objective="regression")),
    ("4.7.0", "zero", dict(objective="binary", zero_as_missing=True, sigmoid=0.7)),
    ("4.7.0", "none", dict(objective="poisson", use_missing=False)),
    ("4.7.0", "classes", dict(objective="multiclass", num_class=3)),
    ("4.7.0", "forest", dict(objective="multiclass", num_class=3, **FOREST)),
    ("4.7.0", "sqrt", dict(objective="regression", reg_sqrt=True)),
    ("4.7.0", "lambda", dict(objective="cross_entropy_lambda")),
    ("4.7.0", "one_leaf", dict(objective="regression", min_data_in_leaf=300)),
    ("4.7.0", "categories", dict(objective="regression", min_data_per_group=5, cat_smooth=1, cat_l2=0.1, num_leaves=12)),
    ("4.7.0", "linear", dict(objective="regression", linear_tree=True, linear_lambda=0.01)),
    ("4.7.0", "pandas", dict(objective="binary", min_data_per_group=5, cat_smooth=1, cat_l2=0.1)),
]
DUMPED = ["2.2.3_categories", "4.7.0_categories", "4.7.0_classes", "4.7.0_linear", "4.7.0_pandas", "4.7.0_one_leaf"]
NAMES = ["age", "pressure", "größe", "x/y", "a=b", "last"]
HERE = os.path.dirname(os.path.abspath(__file__))


def training_data():
    rng = np.random.RandomState(7)
    x = rng.normal(size=(300, 6)).astype(np.float32)
    x[:, 3] = np.round(x[:, 3])
    x[rng.rand(300, 6) < 0.2] = 0
    x[rng.rand(300, 6) < 0.1] = np.nan
    y = np.abs(np.nan_to_num(x[:, 0]) + 0.5 * np.nan_to_num(x[:, 2]) * np.isnan(x[:, 1]) - 0.3 * (x[:, 3] > 0)) + 0.1
    return x, y


def labels(y, objective):
    if objective.startswith("multiclass"):
        return np.digitize(y, [0.4, 0.9])
    return (y > 0.6).astype(float) if objective.startswith(("binary", "cross")) else y


def rows_of(x):
    """Returns rows of the training data, with some cells replaced by values that are easily mishandled."""
    rng = np.random.RandomState(8)
    rows = x[:48].copy()
    tiny = np.float32(1e-35)
    above = np.nextafter(tiny, np.float32(1))
    odd = np.array([np.nan, 0, -0.0, tiny, -tiny, above, -above, np.inf, -np.inf, 1e-45, 3e38], np.float32)
    at = rng.rand(*rows.shape) < 0.25
    rows[at] = rng.choice(odd, at.sum())
    return rows


def with_categories(x, y, rows):
    """Turns features 3 and 4 into categories, of 3 and 70 codes, on which y then depends; the rows have invalid codes
    too."""
    rng = np.random.RandomState(9)
    x, rows = x.copy(), rows.copy()
    for feature, count in ((3, 3), (4, 70)):
        codes = rng.randint(0, count, len(x))
        y = y + codes * 7 % 5
        x[:, feature] = np.where(np.isnan(x[:, feature]), np.nan, codes)
        odd = [-0.99, -0.5, -1, -2, 3.7, 69.99, 70, 2.0**24, 2.0**31, 2.0**32, 3e38, np.inf, -np.inf, np.nan, -0.0, 1e-40]
        rows[:, feature] = np.where(rng.rand(48) < 0.5, rng.choice(odd, 48), rng.randint(0, count, 48) + rng.choice([0, 0.6], 48))
    return x, y, rows


def data_frame(x, rows):
    """Returns x and rows as data frames in which features 3 and 4 have named categories, and rows with their codes. The
    order of a frame's own categories does not matter: LightGBM goes by the names that it stored."""
    import pandas

    rng = np.random.RandomState(10)
    kinds = {3: ["rot", "grün", 'say "no"', "a, b"], 4: [10, -5, 7], 5: [True, False]}
    coded = rows.copy()
    frames = []
    for values in (x, rows):
        frame = pandas.DataFrame(values, columns=NAMES)
        for feature, names in kinds.items():
            codes = rng.randint(-1, len(names), len(values))
            order = names if values is x else names[::-1]
            frame[NAMES[feature]] = pandas.Categorical([names[c] if c >= 0 else None for c in codes], categories=order)
            if values is rows:
                coded[:, feature] = np.where(codes < 0, np.nan, codes)
        frames.append(frame)
    return frames[0], frames[1], coded


numeric = training_data()
numeric += (rows_of(numeric[0]),)
for release, what, params in CASES:
    if release != lightgbm.__version__:
        continue
    folder = os.path.join(HERE, release + "_" + what)
    os.makedirs(folder, exist_ok=True)
    names = [name if name.isascii() else "g" for name in NAMES] if release < "3" else NAMES
    params = dict(dict(num_leaves=7, min_data_in_leaf=10, learning_rate=0.3, num_threads=1, seed=1, verbosity=-1), **params)
    categories = what == "categories"
    x, y, rows = with_categories(*numeric) if categories else numeric
    query = rows
    if what == "pandas":
        x, query, rows = data_frame(x, rows)
        y = y + (x[NAMES[3]] == "grün") + 2 * (x[NAMES[4]] == -5) + 0.5 * (x[NAMES[5]] == True)  # noqa: E712
    data = lightgbm.Dataset(x, labels(np.asarray(y), params["objective"]), feature_name="auto" if what in ("nan", "first") else names,
                            categorical_feature=[3, 4] if categories else "auto")
    model = os.path.join(folder, "model.txt")
    lightgbm.train(params, data, 5).save_model(model)
    booster = lightgbm.Booster(model_file=model)
    if os.path.basename(folder) in DUMPED:
        with open(os.path.join(folder, "model.json"), "w", encoding="utf-8", newline="\n") as out:
            json.dump(booster.dump_model(num_iteration=-1), out)
    if what == "pandas":
        query.astype({name: float for name in NAMES[:3]}).to_csv(os.path.join(folder, "rows.csv"), index=False,
                                                               lineterminator="\n", float_format="%.17g")
    np.save(os.path.join(folder, "rows.npy"), rows)
    np.save(os.path.join(folder, "expected_raw.npy"), booster.predict(query, raw_score=True))
    np.save(os.path.join(folder, "expected.npy"), booster.predict(query))
    np.save(os.path.join(folder, "expected_leaf.npy"), booster.predict(query, pred_leaf=True).astype(np.int32))
    print(folder, os.path.getsize(model), "bytes")


def make_tied():
    """Makes scores of different sizes whose probabilities are equal, and the label that LGBMClassifier gives."""
    x, y, rows = numeric
    judge = lightgbm.LGBMClassifier(n_estimators=1, num_leaves=3, min_child_samples=10, n_jobs=1, verbosity=-1)
    judge.fit(x, np.arange(len(x)) % 3)
    folder = os.path.join(HERE, "4.7.0_tied")
    os.makedirs(folder, exist_ok=True)
    model, tree, lines = os.path.join(folder, "model.txt"), -1, []
    for line in judge.booster_.model_to_string().split("\n"):
        tree += line.startswith("Tree=")
        if line.startswith("leaf_value="):
            line = "leaf_value=" + " ".join([["0", "1e-20", "2e-20"][tree]] * len(line.split()))
        if not line.startswith("tree_sizes="):
            lines.append(line)
    with open(model, "w", encoding="utf-8", newline="\n") as out:
        out.write("\n".join(lines))
    booster = judge._Booster = lightgbm.Booster(model_file=model)
    np.save(os.path.join(folder, "rows.npy"), rows)
    np.save(os.path.join(folder, "expected_raw.npy"), booster.predict(rows, raw_score=True))
    np.save(os.path.join(folder, "expected.npy"), booster.predict(rows))
    np.save(os.path.join(folder, "expected_leaf.npy"), booster.predict(rows, pred_leaf=True).astype(np.int32))
    np.save(os.path.join(folder, "expected_class.npy"), judge.predict(rows).astype(np.int64))


if lightgbm.__version__ == "4.7.0":
    make_tied()

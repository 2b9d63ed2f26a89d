#!/usr/bin/env python3
"""Makes the models of this folder: one small YDF model directory per form, from random numbers.

    python3 -m venv v && v/bin/pip install ydf==0.16.1 pandas && v/bin/python make.py

A folder's name begins with the release. Each folder has the model as YDF saved it (model/), rows.csv, the result of
YDF's predict() for these rows (expected.npy), its leaf numbers (expected_leaf.npy) and, for models whose probabilities
tie, the result of predict_class() (expected_class.npy). Deterministic: fixed seeds, one thread.
"""
import os
import shutil

import numpy as np
import pandas
import ydf

HERE = os.path.dirname(os.path.abspath(__file__))
ydf.verbose(0)
SMALL = dict(num_threads=1, random_seed=1)
BOOSTED = dict(SMALL, num_trees=4, max_depth=4, validation_ratio=0.0, compute_permutation_variable_importance=False)
FOREST = dict(SMALL, num_trees=4, max_depth=4, compute_oob_performances=False)
NUMBERS, TEXTS = ["a", "größe", "e"], ["c", "d"]


def frame(rows, seed, odd):
    """Returns rows; with `odd` also values that are easily mishandled."""
    rng = np.random.RandomState(seed)
    data = pandas.DataFrame({name: rng.normal(size=rows).astype(np.float32) for name in NUMBERS})
    data["c"] = rng.choice(["red", "green", "blue", "lime", "ü"], size=rows)
    data["d"] = rng.choice(["k%d" % i for i in range(40)], size=rows)
    data["f"] = rng.rand(rows) < 0.4
    for name in NUMBERS:
        data.loc[rng.rand(rows) < 0.1, name] = np.nan
        if odd:
            cells = rng.rand(rows) < 0.15
            data.loc[cells, name] = rng.choice(np.array([np.inf, -np.inf, -0.0, 1e-45, 3.4e38], np.float32), size=int(cells.sum()))
    for name in TEXTS:
        data.loc[rng.rand(rows) < 0.1, name] = ""
        if odd:
            data.loc[rng.rand(rows) < 0.15, name] = rng.choice(["unseen", "red ", "<OOD>"])
    return data


def target(data):
    return (np.nan_to_num(data["a"].to_numpy()) + (data["c"] == "red") - 0.5 * data["f"] + 0.3 * (data["d"] < "k2")
            + 0.4 * np.isnan(data["größe"].to_numpy())).to_numpy()


TRAIN, ROWS = frame(400, 1, False), frame(48, 2, True)
Y = target(TRAIN)
TASK = ydf.Task


def classes(number):
    return np.digitize(Y, np.quantile(Y, np.arange(1, number) / number)).astype(str)


def boosted(label, task=TASK.CLASSIFICATION, **more):
    return ydf.GradientBoostedTreesLearner(label="y", task=task, **dict(BOOSTED, **more)).train(TRAIN.assign(y=label))


def forest(label, task=TASK.CLASSIFICATION, **more):
    return ydf.RandomForestLearner(label="y", task=task, **dict(FOREST, **more)).train(TRAIN.assign(y=label))


def oblique(**more):
    numbers = TRAIN[NUMBERS].assign(y=classes(2))
    return ydf.GradientBoostedTreesLearner(label="y", split_axis="SPARSE_OBLIQUE", **dict(BOOSTED, **more)).train(numbers)


def ranking():
    groups = TRAIN.assign(y=np.clip(np.round(Y + 1), 0, 4), group=np.repeat(np.arange(40), 10).astype(str))
    return ydf.GradientBoostedTreesLearner(label="y", task=TASK.RANKING, ranking_group="group", **BOOSTED).train(groups)


def tied(loss):
    """Returns a model that gives some rows a probability of exactly 0.5: its base is the opposite of a leaf."""
    model = boosted(classes(2), loss=loss, num_trees=1, max_depth=2)
    node = model.get_tree(0).root
    while not node.is_leaf:
        node = node.pos_child
    model.set_initial_predictions([-node.value.value])
    return model


def logits_with_base():
    model = boosted(classes(3), apply_link_function=False)
    model.set_initial_predictions([0.5, -0.25, 0.125])
    return model


def counts():
    return np.round(np.exp(Y))


def cart():
    model = ydf.CartLearner(label="y", task=TASK.REGRESSION, max_depth=5, validation_ratio=0.0, **SMALL).train(TRAIN.assign(y=Y))
    model.set_node_format(ydf.NodeFormat.BLOB_SEQUENCE_GZIP)
    return model


def isolation():
    return ydf.IsolationForestLearner(num_trees=4, subsample_count=32, max_depth=4, **SMALL).train(TRAIN[NUMBERS])


CASES = {
    "binary": lambda: boosted(classes(2)),
    "binary_large": lambda: boosted(np.random.RandomState(4).randint(2, size=len(Y)).astype(str), num_trees=2, max_depth=12,
                                    min_examples=1),  # a tree of more than 64 leaves
    "binary_missing": lambda: boosted(TRAIN["a"].isna().astype(int).astype(str), allow_na_conditions=True),
    "classes": lambda: boosted(classes(3)),
    "discretized": lambda: boosted(classes(2), discretize_numerical_columns=True, num_discretized_numerical_bins=16),
    "focal": lambda: boosted(classes(2), loss="BINARY_FOCAL_LOSS"),
    "logits": lambda: boosted(classes(2), apply_link_function=False),
    "logits_classes": logits_with_base,
    "logits_poisson": lambda: boosted(counts(), TASK.REGRESSION, loss="POISSON", apply_link_function=False),
    "logits_poisson_large": lambda: boosted(counts(), TASK.REGRESSION, loss="POISSON", apply_link_function=False, num_trees=2,
                                            max_depth=12, min_examples=1),  # a tree of more than 64 leaves
    "oblique": oblique,
    "poisson": lambda: boosted(counts(), TASK.REGRESSION, loss="POISSON"),
    "ranking": ranking,
    "regression": lambda: boosted(Y, TASK.REGRESSION),
    "tied": lambda: tied("BINOMIAL_LOG_LIKELIHOOD"),
    "tied_focal": lambda: tied("BINARY_FOCAL_LOSS"),
    "cart_gzip": cart,
    "forest_regression": lambda: forest(Y, TASK.REGRESSION),
    "forest_shares": lambda: forest(classes(3), winner_take_all=False),
    "forest_votes": lambda: forest(classes(2)),
    "forest_votes_classes": lambda: forest(classes(3)),
    "isolation": isolation,
    "multinomial_two": lambda: boosted(classes(2), loss="MULTINOMIAL_LOG_LIKELIHOOD"),
    "slow_only": lambda: boosted(classes(2), missing_value_policy="LOCAL_IMPUTATION"),
}


def number(x):
    return "nan" if np.isnan(x) else np.format_float_scientific(np.float32(x), unique=True, trim="-") if np.isfinite(x) else str(x)


def write_rows(path, names):
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write(",".join(names) + "\n")
        for row in ROWS[names].itertuples(index=False):
            out.write(",".join('"%s"' % x if isinstance(x, str) else str(bool(x)).lower() if isinstance(x, (bool, np.bool_)) else number(x)
                               for x in row) + "\n")


for name, train in CASES.items():
    folder = os.path.join(HERE, ydf.__version__ + "_" + name)
    shutil.rmtree(folder, ignore_errors=True)
    model = train()
    prefix = dict(advanced_options=ydf.ModelIOOptions(file_prefix="tree_1_")) if name == "regression" else {}
    model.save(os.path.join(folder, "model"), **prefix)
    names = model.input_feature_names()
    write_rows(os.path.join(folder, "rows.csv"), names)
    if name in ("multinomial_two", "slow_only"):
        continue  # predict() refuses them
    label = "0" if model.task() == TASK.CLASSIFICATION else 0.0
    rows = ROWS.assign(y=label, group="0")  # columns that YDF wants and does not use
    answers = model.predict(rows)
    np.save(os.path.join(folder, "expected.npy"), answers.astype(np.float32))
    np.save(os.path.join(folder, "expected_leaf.npy"), model.predict_leaves(rows).astype(np.int32))
    if model.task() == TASK.CLASSIFICATION and np.any(answers == 0.5):
        np.save(os.path.join(folder, "expected_class.npy"), model.predict_class(rows).astype(str))
    print(name, names, answers.shape, os.listdir(os.path.join(folder, "model")))

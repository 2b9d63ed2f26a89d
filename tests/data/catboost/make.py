#!/usr/bin/env python3
"""Makes the models of this folder: one small CatBoost model per form of the file.

Run once per release, by an interpreter that has that release (1.0.6 needs Python 3.8, 1.2 numpy < 2):
    python3 -m venv v1.2.10 && v1.2.10/bin/pip install catboost==1.2.10 pandas
    v1.2.10/bin/python make.py
It writes <release>_<what>/ beside itself for the rows of CASES with its own release number: the model as .cbm, and as
JSON if that format can hold all of it; 40 rows; and that release's own raw scores, predictions and leaf numbers for the
.cbm. Deterministic: fixed seeds, one thread.
"""
import json
import os

import catboost
import numpy as np
import pandas

COUNTERS = dict(max_ctr_complexity=2, one_hot_max_size=3, depth=3)
# release, what, categories, also as JSON, training parameters
CASES = [
    ("1.2.10", "nan_max", "none", True, dict(loss_function="Logloss", nan_mode="Max", depth=3)),
    ("1.2.10", "classes", "none", False, dict(loss_function="MultiClass", grow_policy="Depthwise", depth=3, nan_mode="Min")),
    ("1.2.10", "lossguide", "none", True, dict(loss_function="Tweedie:variance_power=1.5", grow_policy="Lossguide", max_leaves=7)),
    ("1.2.10", "targets", "none", False, dict(loss_function="MultiRMSE", depth=2)),
    ("1.2.10", "scaled", "none", False, dict(loss_function="RMSE", depth=2)),
    ("1.2.10", "one_hot", "text", False, dict(loss_function="Logloss", one_hot_max_size=20, depth=3)),
    ("1.2.10", "counters", "text", True, dict(loss_function="MultiClass", simple_ctr=["Borders", "Buckets", "Counter"], **COUNTERS)),
    ("1.2.10", "means", "text", False, dict(loss_function="RMSE", simple_ctr=["BinarizedTargetMeanValue"], **COUNTERS)),
    ("1.2.10", "labels", "text", False, dict(loss_function="MultiLogloss", **COUNTERS)),
    ("1.2.10", "numbers", "whole", False, dict(loss_function="Poisson", **COUNTERS)),
    ("1.2.10", "uncertainty", "whole", False, dict(loss_function="RMSEWithUncertainty", **COUNTERS)),
    ("1.0.6", "names", "text", True, dict(loss_function="Logloss", **COUNTERS)),
    ("1.2", "counters", "text", False, dict(loss_function="CrossEntropy", grow_policy="Depthwise", **COUNTERS)),
]
HERE = os.path.dirname(os.path.abspath(__file__))
RNG = np.random.RandomState(5)
COUNT, ROWS = 300, 40
TEXTS = ["", "a", "b", " a", "größe", "a long text, \"quoted\", which takes more than thirty-two bytes"]


def numbers_of(count):
    x = RNG.normal(size=(count, 3)).astype(np.float32)
    x[RNG.rand(count, 3) < 0.1] = np.nan
    return x


def table_of(numbers, categories, texts):
    """Returns the table with two numeric columns, three categorical ones, and one numeric one."""
    if categories == "none":
        return pandas.DataFrame(numbers)
    count = len(numbers)
    first = RNG.choice(texts, count)
    second = RNG.randint(0, 30, count)
    third = RNG.randint(0, 3, count)
    if categories == "text":
        second, third = second.astype(str), np.array(["u", "v", "w"])[third]
    else:
        first = RNG.randint(-4, 4, count)
    columns = [numbers[:, 0], numbers[:, 1], first, second, third, numbers[:, 2]]
    return pandas.DataFrame(dict(zip(["age", "height", "city", "shop", "kind", "last"], columns)))


def target_of(table, numbers, loss):
    codes = table.apply(lambda column: column.astype(str).map(len) if column.dtype != np.float32 else 0 * column.fillna(0))
    y = np.nan_to_num(numbers[:, 0]) + np.nan_to_num(numbers[:, 1]) ** 2 + 0.3 * codes.sum(axis=1).to_numpy()
    if loss == "MultiClass":
        return np.array(["none", "some", "many"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    if loss in ("MultiLogloss", "MultiRMSE"):
        both = np.stack([y, -y + np.nan_to_num(numbers[:, 2])], axis=1)
        return (both > np.median(both, axis=0)).astype(int) if loss == "MultiLogloss" else both
    if loss == "CrossEntropy":
        return 1 / (1 + np.exp(y.mean() - y))
    return (y > np.median(y)).astype(int) if loss == "Logloss" else np.abs(y)


def write_csv(path, table):
    """Writes numbers as the shortest text that reads back to the same float32, and categories in quotes."""
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write(",".join(table.columns) + "\n")
        for row in table.itertuples(index=False):
            cells = ['"' + x.replace('"', '""') + '"' if isinstance(x, str) else "" if np.isnan(x)
                     else np.format_float_positional(np.float32(x), unique=True, trim="-") for x in row]
            out.write(",".join(cells) + "\n")


def make(release, what, categories, as_json, parameters):
    numbers = numbers_of(COUNT)
    table = table_of(numbers, categories, TEXTS[:-1] + ["only in training"])
    names = None if categories == "none" else ["city", "shop", "kind"]
    loss = parameters["loss_function"].split(":")[0]
    classifies = loss in ("Logloss", "MultiClass", "MultiLogloss", "CrossEntropy")
    kind = catboost.CatBoostClassifier if classifies else catboost.CatBoostRegressor
    model = kind(iterations=3, learning_rate=0.5, random_seed=1, thread_count=1, verbose=0, allow_writing_files=False,
                 cat_features=names, **parameters)
    model.fit(table, target_of(table, numbers, loss))
    if what == "scaled":
        model.set_scale_and_bias(0.37, 1.25)
    numbers = numbers_of(ROWS)
    numbers[:6, 0] = [np.inf, -np.inf, -0.0, 1e-45, 3e38, -3e38]
    rows = table_of(numbers, categories, TEXTS)
    target = os.path.join(HERE, release + "_" + what)
    os.makedirs(target, exist_ok=True)
    model.save_model(os.path.join(target, "model.cbm"))
    pool = catboost.Pool(rows, cat_features=names)
    if as_json:
        model.save_model(os.path.join(target, "model.json"), format="json", pool=pool)
    if categories == "text":
        write_csv(os.path.join(target, "rows.csv"), rows)
    else:
        np.save(os.path.join(target, "rows.npy"), np.ascontiguousarray(rows.to_numpy(np.float32)))
    answers = {
        "expected_raw": model.predict(pool, prediction_type="RawFormulaVal"),
        "expected": model.predict_proba(pool) if classifies else model.predict(pool),
    }
    for name, array in answers.items():
        np.save(os.path.join(target, name + ".npy"), np.ascontiguousarray(array, dtype=np.float64))
    np.save(os.path.join(target, "expected_leaf.npy"), np.ascontiguousarray(model.calc_leaf_indexes(pool), dtype=np.int32))


def make_labels(what, loss, leaves, threshold=None):
    """Makes a model with given leaf values, whose labels are hard to get right, and stores these labels."""
    numbers = np.nan_to_num(numbers_of(COUNT))
    kind = catboost.CatBoostClassifier
    model = kind(iterations=1, depth=2, loss_function=loss, random_seed=1, thread_count=1, verbose=0, allow_writing_files=False)
    model.fit(numbers, np.arange(COUNT) % (2 if loss == "Logloss" else 3))
    target = os.path.join(HERE, "1.2.10_" + what)
    os.makedirs(target, exist_ok=True)
    path = os.path.join(target, "model.json")
    model.save_model(path, format="json")
    with open(path) as file:
        document = json.load(file)
    document["oblivious_trees"][0]["leaf_values"] = leaves
    document["scale_and_bias"] = [1, [0.0] * (len(leaves) // 4)]
    if threshold is not None:
        document["model_info"]["binclass_probability_threshold"] = repr(threshold)
    with open(path, "w") as file:
        json.dump(document, file)
    model = kind()
    model.load_model(path, format="json")
    os.remove(path)
    model.save_model(os.path.join(target, "model.cbm"))
    rows = np.nan_to_num(numbers_of(ROWS))
    np.save(os.path.join(target, "rows.npy"), rows)
    np.save(os.path.join(target, "expected_raw.npy"), model.predict(rows, prediction_type="RawFormulaVal"))
    np.save(os.path.join(target, "expected.npy"), model.predict_proba(rows))
    np.save(os.path.join(target, "expected_leaf.npy"), np.ascontiguousarray(model.calc_leaf_indexes(rows), dtype=np.int32))
    np.save(os.path.join(target, "expected_class.npy"), model.predict(rows).reshape(-1).astype(np.int64))


for case in CASES:
    if case[0] == catboost.__version__:
        make(*case)
        print(case[0], case[1])
def make_unseen(what, loss, **classes):
    """Makes a model with declared classes that training does not see."""
    numbers = np.nan_to_num(numbers_of(COUNT))
    names = np.array(classes.get("class_names", [0, 1, 2, 3]))
    y = names[np.where(numbers[:, 0] > 0, 2, np.where(numbers[:, 1] > 0, 0, 3))]
    model = catboost.CatBoostClassifier(iterations=3, depth=2, loss_function=loss, random_seed=1, thread_count=1, verbose=0,
                                        allow_writing_files=False, **classes)
    model.fit(numbers, y)
    target = os.path.join(HERE, "1.2.10_" + what)
    os.makedirs(target, exist_ok=True)
    model.save_model(os.path.join(target, "model.cbm"))
    model.save_model(os.path.join(target, "model.json"), format="json")
    rows = np.nan_to_num(numbers_of(ROWS))
    np.save(os.path.join(target, "rows.npy"), rows)
    np.save(os.path.join(target, "expected_raw.npy"), model.predict(rows, prediction_type="RawFormulaVal"))
    np.save(os.path.join(target, "expected.npy"), model.predict_proba(rows))
    np.save(os.path.join(target, "expected_leaf.npy"), np.ascontiguousarray(model.calc_leaf_indexes(rows), dtype=np.int32))
    labels = model.predict(rows).reshape(-1)
    np.save(os.path.join(target, "expected_class.npy"), labels.astype(str if "class_names" in classes else np.int64))


if catboost.__version__ == "1.2.10":
    make_unseen("unseen", "MultiClass", class_names=["a", "b", "c", "d"])
    make_unseen("unseen_one_vs_all", "MultiClassOneVsAll", classes_count=6)
    # Probabilities are equal where scores are not.
    make_labels("tied_one_vs_all", "MultiClassOneVsAll", [40.0, 80.0, 1.0, 1.0, 40.0, 80.0, 80.0, 40.0, 1.0, 40.0, 40.0, 80.0])
    make_labels("tied_classes", "MultiClass", [0.0, 2.0**-60, 0.0, 0.0, 0.0, 2.0**-60, 2.0**-60, 0.0, 0.0, 2.0**-60, 2.0**-59, 0.0])
    # Scores at the logit of the threshold and beside it.
    logit = -np.log(1 / 0.3 - 1)
    make_labels("threshold", "Logloss", [logit, np.nextafter(logit, 1), np.nextafter(logit, -1), 0.0], 0.3)

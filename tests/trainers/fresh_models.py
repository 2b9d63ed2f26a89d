"""Trains small models of every kind that the installed trainers have, with a new seed each time, and compares
forestvm's predictions of new rows with the trainers' own: fresh_models.py FORESTVM [SEED]

Raw scores must have the trainer's bits, leaf numbers must be the same, and values must be within 2 units in the last
place. A new trainer is a function like those in TRAINERS, which yields cases.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import numpy

TRAINING_ROWS = 2_000
TEST_ROWS = 3_000
COLUMNS = 8


@dataclass
class Case:
    """A model as its trainer saved it, rows, and the trainer's answers. Leaves of None are not compared."""

    name: str
    file: pathlib.Path
    rows: numpy.ndarray
    raw: numpy.ndarray
    value: numpy.ndarray
    leaves: numpy.ndarray | None


def table(random, count, categories):
    """Returns float32 rows with missing values; the columns in `categories` hold codes."""
    rows = random.normal(size=(count, COLUMNS)).astype(numpy.float32)
    for column, codes in categories.items():
        rows[:, column] = random.integers(0, codes, count)
    rows[random.random(rows.shape) < 0.05] = numpy.nan
    return rows


def target_of(random, rows):
    """Returns a target that depends on the rows."""
    known = numpy.nan_to_num(rows)
    return known @ numpy.linspace(-1, 1, COLUMNS) + known[:, 0] * 7 % 3 + random.normal(size=len(rows)) * 0.1


def labels_of(objective, target):
    """Returns the labels that an objective takes."""
    if objective.startswith("multi"):
        return numpy.digitize(target, numpy.quantile(target, [0.3, 0.6]))
    if "binary" in objective or "cross" in objective or "logi" in objective:
        return (target > numpy.median(target)).astype(float)
    if any(word in objective for word in ("poisson", "gamma", "tweedie")):
        return numpy.floor(numpy.exp(target / 6)) + 1
    return target


def xgboost_cases(folder, random):
    """Yields models of XGBoost."""
    import xgboost

    vectors = {"multi_strategy": "multi_output_tree", "tree_method": "hist"}
    kinds = [
        ("squared error", "json", {"objective": "reg:squarederror", "max_depth": 8}, {}),
        ("logistic", "ubj", {"objective": "binary:logistic"}, {}),
        ("softprob", "json", {"objective": "multi:softprob", "num_class": 3}, {}),
        ("dart", "ubj", {"objective": "binary:logistic", "booster": "dart", "rate_drop": 0.3}, {}),
        ("tweedie", "json", {"objective": "reg:tweedie"}, {}),
        ("parallel trees", "json", {"objective": "count:poisson", "num_parallel_tree": 3, "subsample": 0.6}, {}),
        ("categories", "ubj", {"objective": "reg:squarederror", "tree_method": "hist"}, {0: 5, 3: 60}),
        ("vector leaves", "ubj", {"objective": "multi:softprob", "num_class": 3, **vectors}, {}),
    ]
    for name, form, given, categories in kinds:
        params = {"max_depth": 5, "eta": 0.3, "nthread": 2, "verbosity": 0, "seed": 1, **given}
        kinds_of_columns = ["c" if column in categories else "q" for column in range(COLUMNS)]
        train, rows = table(random, TRAINING_ROWS, categories), table(random, TEST_ROWS, categories)
        labels = labels_of(params["objective"], target_of(random, train))
        matrix = xgboost.DMatrix(train, labels, feature_types=kinds_of_columns)
        trained = xgboost.train(params, matrix, 30)
        file = folder / f"xgboost {name}.{form}"
        trained.save_model(file)
        booster = xgboost.Booster(model_file=file)
        query = xgboost.DMatrix(rows, feature_types=kinds_of_columns)
        # XGBoost cannot predict leaf numbers of trees with vector leaves.
        leaves = None if name == "vector leaves" else booster.predict(query, pred_leaf=True)
        yield Case(f"XGBoost {xgboost.__version__}, {name}", file, rows, booster.predict(query, output_margin=True),
                   booster.predict(query), leaves)


def lightgbm_cases(folder, random):
    """Yields models of LightGBM, each as text and as its JSON dump."""
    import lightgbm

    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
    kinds = [
        ("regression", {"objective": "regression", "num_leaves": 63}, {}),
        ("binary, zero as missing", {"objective": "binary", "zero_as_missing": True}, {}),
        ("multi-class", {"objective": "multiclass", "num_class": 3}, {}),
        ("one against all", {"objective": "multiclassova", "num_class": 3}, {}),
        ("dart", {"objective": "cross_entropy", "boosting": "dart"}, {}),
        ("random forest", {"objective": "binary", **forest}, {}),
        ("tweedie", {"objective": "tweedie"}, {}),
        ("categories", {"objective": "regression", "min_data_per_group": 5, "cat_smooth": 1}, {0: 5, 3: 60}),
    ]
    for name, given, categories in kinds:
        params = {"num_leaves": 31, "num_threads": 2, "verbosity": -1, "seed": 1, **given}
        train, rows = table(random, TRAINING_ROWS, categories), table(random, TEST_ROWS, categories)
        labels = labels_of(params["objective"], target_of(random, train))
        trained = lightgbm.train(params, lightgbm.Dataset(train, labels, categorical_feature=list(categories)), 30)
        text = folder / f"lightgbm {name}.txt"
        trained.save_model(text)
        booster = lightgbm.Booster(model_file=text)
        dump = folder / f"lightgbm {name}.json"
        dump.write_text(json.dumps(booster.dump_model(num_iteration=-1)), encoding="utf-8")
        for form, file in (("text", text), ("dump", dump)):
            yield Case(
                f"LightGBM {lightgbm.__version__}, {name}, {form}",
                file,
                rows,
                booster.predict(rows, raw_score=True),
                booster.predict(rows),
                booster.predict(rows, pred_leaf=True),
            )


# scikit-learn's models, which forestvm reads from .skops files, are not among them yet.
TRAINERS = (xgboost_cases, lightgbm_cases)


def predicted(forestvm, folder, case, kind):
    """Returns what forestvm predicts."""
    rows, out = folder / "rows.npy", folder / "out.npy"
    numpy.save(rows, case.rows)
    subprocess.run([forestvm, "run", case.file, rows, "-o", out, "--output", kind], check=True)
    return numpy.load(out)


def flat(array, like):
    """Returns the array in the type and shape of another."""
    return numpy.asarray(array, dtype=like.dtype).reshape(like.shape)


def differences(forestvm, folder, case):
    """Returns how many raw scores, values and leaf numbers differ."""
    raw = predicted(forestvm, folder, case, "raw")
    value = predicted(forestvm, folder, case, "value")
    bits = numpy.uint32 if raw.dtype == numpy.float32 else numpy.uint64
    counts = [int((raw.view(bits) != flat(case.raw, raw).view(bits)).sum()),
              int((numpy.abs(value - flat(case.value, value)) > 2 * numpy.spacing(numpy.abs(value))).sum())]
    if case.leaves is not None:
        leaves = predicted(forestvm, folder, case, "leaf")
        counts.append(int((leaves != flat(case.leaves, leaves)).sum()))
    return counts


def main():
    """Compares all cases; the exit code is 1 if a prediction differs."""
    forestvm = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 1_000_000
    print(f"seed {seed}", flush=True)
    different = 0
    for cases in TRAINERS:
        random = numpy.random.default_rng(seed)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for case in cases(folder, random):
                counts = differences(forestvm, folder, case)
                different += sum(counts)
                print(f"{case.name}: of {len(case.rows)} rows {counts[0]} raw scores differ, {counts[1]} values"
                      + (f", {counts[2]} leaf numbers" if len(counts) > 2 else ""), flush=True)
    sys.exit(1 if different else 0)


main()

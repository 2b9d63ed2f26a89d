#!/usr/bin/env python3
"""Makes small .skops files of scikit-learn's estimators, with rows and scikit-learn's own answers.

    python3 make_models.py [NAME...]    needs numpy, scikit-learn and skops; pandas for scikit-learn 1.9

Run it once with each release of scikit-learn whose formulas differ: 1.1.3 (skops 0.6), 1.3.2 (skops 0.9), 1.5.2 (skops
0.10) and 1.9.1 (skops 0.16). It adds the folders <release>_<name>, for all names or for those given. Deterministic:
fixed seeds, one thread. Each folder has model.skops, rows.npy (float64) and what the estimator has of expected.npy
(predict_proba, predict of a regressor, decision_function of IsolationForest), expected_raw.npy (decision_function),
expected_class.npy (index of the predicted label; of several outputs the labels, which are numbers) and
expected_leaf.npy (apply).
"""
import os
import sys
import zipfile

import numpy as np
import sklearn
import skops.io
from sklearn.ensemble import (AdaBoostClassifier, AdaBoostRegressor, BaggingClassifier, BaggingRegressor, ExtraTreesClassifier,
                              GradientBoostingClassifier, GradientBoostingRegressor, HistGradientBoostingClassifier,
                              HistGradientBoostingRegressor, IsolationForest, RandomForestClassifier,
                              RandomForestRegressor, RandomTreesEmbedding)
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

HERE = os.path.dirname(os.path.abspath(__file__))
RELEASE = sklearn.__version__.rsplit(".", 1)[0]
NEW = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
NAN_IN_TREES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 3)

random = np.random.RandomState(5)
X = random.randn(160, 4).round(3)
SIGN = (X[:, 0] + X[:, 1] > 0.3).astype(int)
FOUR = SIGN + 2 * (X[:, 2] > 0)
TEN = (4 * SIGN + random.randint(0, 6, 160)).astype(int)
REAL = X[:, 0] * X[:, 1] + X[:, 3]
QUERY = random.randn(24, 4).round(3)
QUERY[:4] = X[:4]
HOLES = QUERY.copy()
HOLES[::3, 1] = np.nan


def stack(answer):
    """Returns predict_proba's arrays side by side, if there is one for each output."""
    return np.hstack(answer) if isinstance(answer, list) else answer


def save(name, model, rows, sklearn_rows=None):
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    folder = os.path.join(HERE, RELEASE + "_" + name)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.skops")
    skops.io.dump(model, path)
    repack(path)
    given = rows if sklearn_rows is None else sklearn_rows
    estimator = model.steps[-1][1] if isinstance(model, Pipeline) else model
    answers = {"rows": np.asarray(rows, dtype=np.float64)}
    if isinstance(estimator, IsolationForest):
        answers["expected"] = estimator.decision_function(given)
        answers["expected_class"] = (estimator.predict(given) < 0).astype(np.int64)
    elif hasattr(estimator, "predict_proba"):
        answers["expected"] = stack(model.predict_proba(given))
        if isinstance(estimator.classes_, list):
            answers["expected_class"] = model.predict(given).astype(np.int64)
        else:
            answers["expected_class"] = np.searchsorted(estimator.classes_, model.predict(given)).astype(np.int64)
        if hasattr(estimator, "decision_function") and not isinstance(estimator, BaggingClassifier):
            answers["expected_raw"] = estimator.decision_function(given)
    elif hasattr(estimator, "predict"):
        answers["expected"] = model.predict(given)
    if hasattr(estimator, "apply"):
        answers["expected_leaf"] = np.asarray(estimator.apply(given), dtype=np.int64).reshape(len(rows), -1)
    for key, array in answers.items():
        np.save(os.path.join(folder, key + ".npy"), np.ascontiguousarray(array))
    print(os.path.basename(folder), os.path.getsize(path), "bytes")


def tie(model):
    """Makes scores of different sizes whose probabilities are equal: the second class has the largest score."""
    if hasattr(model, "estimators_"):
        for k, stage in enumerate(model.estimators_[0]):
            stage.tree_.value[:] = [0, 2.0**-58, 2.0**-60, 0][k] / model.learning_rate
        return
    model._baseline_prediction[:] = 0
    for k, stage in enumerate(model._predictors[0]):
        stage.nodes["value"] = [0, 2.0**-58, 2.0**-60, 0][k]


def repack(path):
    """Compresses the archive with dates that do not change."""
    with zipfile.ZipFile(path) as old:
        entries = [(info.filename, old.read(info)) for info in old.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in entries:
            new.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)


holes = HOLES if NAN_IN_TREES else QUERY
weights = {k: 0.3 + 0.7 * k for k in range(10)}
save("tree_weights", DecisionTreeClassifier(max_depth=3, class_weight=weights, random_state=0).fit(X, TEN), holes)
save("forest", RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, FOUR), QUERY)
save("isolation", IsolationForest(n_estimators=5, max_samples=32, max_features=3, random_state=0).fit(X), QUERY)
save("isolation_bootstrap", IsolationForest(n_estimators=5, max_samples=40, bootstrap=True, random_state=0, contamination=0.2).fit(X), QUERY)
save("boosting_two", GradientBoostingClassifier(n_estimators=4, max_depth=2).fit(X, SIGN), QUERY)
save("boosting_four", GradientBoostingClassifier(n_estimators=3, max_depth=2).fit(X, FOUR), QUERY)
save("boosting_exponential", GradientBoostingClassifier(n_estimators=4, loss="exponential", max_depth=2).fit(X, SIGN), QUERY)
save("boosting_zero", GradientBoostingRegressor(n_estimators=4, init="zero", max_depth=2).fit(X, REAL), QUERY)
save("hist_two", HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=5).fit(X, SIGN), HOLES)
save("hist_four", HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=5).fit(X, FOUR), HOLES)
save("hist_poisson", HistGradientBoostingRegressor(max_iter=4, max_leaf_nodes=5, loss="poisson").fit(X, np.exp(REAL)), HOLES)
stump = DecisionTreeClassifier(max_depth=2)
samme = {} if NEW else {"algorithm": "SAMME"}
save("ada_two", AdaBoostClassifier(stump, n_estimators=4, random_state=0, **samme).fit(X, SIGN), QUERY)
save("ada_four", AdaBoostClassifier(stump, n_estimators=4, random_state=0, **samme).fit(X, FOUR), QUERY)
save("ada_values", AdaBoostRegressor(n_estimators=7, random_state=0).fit(X, REAL), QUERY)
if not NEW:
    smooth = DecisionTreeClassifier(max_depth=2, min_samples_leaf=20)
    save("ada_logarithms", AdaBoostClassifier(smooth, n_estimators=4, random_state=0, algorithm="SAMME.R").fit(X, FOUR), QUERY)
    save("ada_logarithms_two", AdaBoostClassifier(smooth, n_estimators=4, random_state=0, algorithm="SAMME.R").fit(X, SIGN), QUERY)
save("bagging", BaggingClassifier(DecisionTreeClassifier(max_depth=3), 4, max_features=3, random_state=0).fit(X, FOUR), holes)

# Columns 1 and 3 have codes, most of them not consecutive; unknown codes, fractions and negative numbers are
# missing.
C = X.copy()
C[:, 1] = 3 * random.randint(0, 40, 160)
C[:, 3] = random.randint(0, 6, 160)
C[::7, 3] = np.nan
effect = np.where(C[:, 1] % 2 == 0, 1.0, -1.0) + np.where(np.isin(C[:, 3], [1, 4]), 2.0, 0.0) + 0.3 * X[:, 0]
rows = C[:24].copy()
rows[:, 1] = [0, 3, 6, 9, 12, 15, 1, 2, 4, 3.5, -1, -0.0, 1e-300, 6.0000001, 1e9, 300, 256, 117, 118, 60, 63, 66, 69, np.nan]
rows[:, 3] = [0, 1, 2, 3, 4, 5, 6, 255, 256, -0.5, 0.5, -3, 1e-310, 1, 4, 2, np.nan, 1.5, 4.0000001, 3, 3, 4, 1, 0]
hist = dict(max_iter=6, max_leaf_nodes=8, min_samples_leaf=4)
if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 4):
    # C converts these to bytes.
    rows[:, 1] = [0, 3, 6, 9, 12, 15, 1, 2, 4, 3.5, -1, -0.0, 256, 259, 262.75, 300, -253, 117, -0.5, 60, 65536, 2**31 - 1, 3e9, np.nan]
    save("hist_bytes", HistGradientBoostingRegressor(categorical_features=[1, 3], **hist).fit(C, effect), rows)

if NEW:
    import pandas

    Y = np.column_stack([REAL, -REAL + X[:, 2]])
    labels = np.array(["few", "more", "many", "\u00fcber alle"])
    save("tree_outputs", DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, Y), HOLES)
    save("extra_tree", ExtraTreeClassifier(max_depth=3, random_state=0).fit(X, FOUR == 1), QUERY)
    save("extra_trees", ExtraTreesClassifier(3, max_depth=3, random_state=0).fit(X, labels[FOUR]), QUERY)
    save("forest_values", RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, Y), QUERY)
    save("forest_two_outputs", RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, np.column_stack([SIGN, FOUR])), QUERY)
    save("embedding", RandomTreesEmbedding(3, max_depth=3, random_state=0).fit(X), QUERY)
    for kind, model in {"boosting": GradientBoostingClassifier(n_estimators=1, max_depth=2, init="zero"),
                        "hist": HistGradientBoostingClassifier(max_iter=1, max_leaf_nodes=4)}.items():
        tie(model.fit(X, FOUR))
        save("tied_" + kind, model, QUERY)
    rare = np.where(np.arange(160) < 2, 9, FOUR)
    save("bagging_rare", BaggingClassifier(DecisionTreeClassifier(max_depth=3), 4, max_samples=30, random_state=1).fit(X, rare), QUERY)
    save("bagging_values", BaggingRegressor(DecisionTreeRegressor(max_depth=3), 3, bootstrap_features=True, random_state=0).fit(X, Y), QUERY)
    save("boosting_huber", GradientBoostingRegressor(n_estimators=4, loss="huber", max_depth=2).fit(X, REAL), QUERY)
    frame = pandas.DataFrame(X, columns=["length", "width", "colour", "age"])
    save("pipeline", Pipeline([("scale", "passthrough"), ("none", None), ("forest", RandomForestClassifier(2, max_depth=3, random_state=0))])
         .fit(frame, FOUR), QUERY, pandas.DataFrame(QUERY, columns=frame.columns))
    save("hist_categories", HistGradientBoostingRegressor(categorical_features=[1, 3], **hist).fit(C, effect), rows)
    colours = np.array(["blue", "green", "grey", "red", "yellow"])
    frame = pandas.DataFrame({"length": X[:, 0], "colour": pandas.Categorical(colours[random.randint(0, 5, 160)])})
    effect = np.isin(frame["colour"], ["green", "yellow"]) + 0.4 * frame["length"] > 0.4
    codes = np.array([0, 1, 2, 3, 4, np.nan] * 4)
    names = np.array([colours[int(k)] if k == k else None for k in codes], dtype=object)
    query = pandas.DataFrame({"length": QUERY[:, 0], "colour": pandas.Categorical(names)})
    save("hist_names", HistGradientBoostingClassifier(**hist).fit(frame, effect), np.column_stack([QUERY[:, 0], codes]), query)

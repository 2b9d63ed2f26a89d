#!/usr/bin/env python3
"""Makes the models of this folder: one small XGBoost model per form that a release of XGBoost writes.

Run once per release, by an interpreter that has that release (1.x and 2.x need numpy < 2):
    python3 -m venv v1.0.2 && v1.0.2/bin/pip install --no-deps xgboost==1.0.2 && v1.0.2/bin/pip install "numpy<2" scipy
    v1.0.2/bin/python make.py
It writes <release>_<what>/ beside itself for the rows of CASES with its own release number: the model, 24 rows with
missing values, and that release's own raw scores and predictions of the file it wrote. Deterministic: fixed seeds, one
thread.
"""
import json
import os
import warnings

import numpy as np
import xgboost as xgb

warnings.filterwarnings("ignore")

# release, what, file format, training parameters. base_score is left out where the release is to estimate it.
CASES = [
    ("1.0.2", "logistic", "json", dict(objective="binary:logistic", base_score=0.7)),
    ("1.0.2", "logitraw", "json", dict(objective="binary:logitraw", base_score=0.7)),
    ("1.0.2", "softprob", "json", dict(objective="multi:softprob", num_class=3, base_score=0.7)),
    ("1.0.2", "pruned", "json", dict(objective="reg:squarederror", base_score=0.7, gamma=9.0)),
    ("1.1.1", "poisson", "json", dict(objective="count:poisson", base_score=0.7)),
    ("1.1.1", "pruned", "json", dict(objective="reg:squarederror", base_score=0.7, gamma=9.0)),
    ("1.2.1", "logitraw", "json", dict(objective="binary:logitraw", base_score=0.123456789)),
    ("1.2.1", "dart", "json", dict(objective="binary:logistic", base_score=0.7, booster="dart", rate_drop=0.3)),
    ("1.2.1", "aft", "json", dict(objective="survival:aft", base_score=0.7)),
    ("1.3.3", "logitraw", "json", dict(objective="binary:logitraw", base_score=0.7)),
    ("1.3.3", "dart", "json", dict(objective="binary:logistic", base_score=0.7, booster="dart", rate_drop=0.3)),
    ("1.3.3", "gamma", "json", dict(objective="reg:gamma", base_score=0.7)),
    ("1.4.2", "dart", "json", dict(objective="binary:logistic", base_score=0.7, booster="dart", rate_drop=0.3)),
    ("1.4.2", "names", "json", dict(objective="reg:tweedie", base_score=0.7)),
    ("1.5.2", "cox", "json", dict(objective="survival:cox", base_score=0.7)),
    ("1.5.2", "rank", "json", dict(objective="rank:pairwise", base_score=0.7)),
    ("1.6.2", "logistic", "ubj", dict(objective="binary:logistic", base_score=0.7)),
    ("1.6.2", "targets", "json", dict(objective="reg:squarederror", base_score=0.7)),
    ("1.7.6", "absolute", "json", dict(objective="reg:absoluteerror", tree_method="hist")),
    ("1.7.6", "dart", "ubj", dict(objective="binary:logistic", base_score=0.7, booster="dart", rate_drop=0.3)),
    ("1.7.6", "forest", "json", dict(objective="reg:logistic", base_score=0.7, num_parallel_tree=2, subsample=0.7)),
    ("2.0.3", "logitraw", "json", dict(objective="binary:logitraw")),
    ("2.0.3", "poisson", "json", dict(objective="count:poisson")),
    ("2.0.3", "categories", "json", dict(objective="reg:squarederror", tree_method="hist", max_depth=4, max_cat_to_onehot=5)),
    ("2.0.3", "forest", "ubj", dict(objective="reg:squaredlogerror", num_parallel_tree=2, subsample=0.7)),
    ("2.1.4", "softmax", "ubj", dict(objective="multi:softmax", num_class=3, base_score=0.7)),
    ("2.1.4", "vectors", "ubj", dict(objective="reg:squarederror", tree_method="hist", multi_strategy="multi_output_tree")),
    ("2.1.4", "hinge", "json", dict(objective="binary:hinge")),
    ("3.0.5", "logistic", "json", dict(objective="binary:logistic")),
    ("3.0.5", "quantiles", "json", dict(objective="reg:quantileerror", quantile_alpha=[0.2, 0.8], tree_method="hist")),
    ("3.0.5", "vectors", "json", dict(objective="multi:softprob", num_class=3, tree_method="hist", multi_strategy="multi_output_tree")),
    ("3.1.3", "softprob", "json", dict(objective="multi:softprob", num_class=3)),
    ("3.1.3", "targets", "ubj", dict(objective="reg:squarederror", tree_method="hist")),
    ("3.2.0", "vectors", "json", dict(objective="binary:logistic", tree_method="hist", multi_strategy="multi_output_tree")),
    ("3.2.0", "named", "json", dict(objective="reg:squarederror", tree_method="hist", max_depth=4, max_cat_to_onehot=3)),
    ("3.2.0", "pruned", "ubj", dict(objective="reg:pseudohubererror", gamma=9.0)),
    ("3.2.0", "labels", "json", dict(objective="binary:logistic", tree_method="hist")),
    ("3.2.0", "early", "json", dict(objective="binary:logistic", eval_metric="logloss")),
    ("3.2.0", "categories", "json", dict(objective="reg:squarederror", tree_method="hist", max_depth=4, max_cat_to_onehot=5)),
    ("3.2.0", "categories_classes", "ubj", dict(objective="multi:softprob", num_class=3, tree_method="hist", max_depth=4)),
    ("3.4.1", "dart", "json", dict(objective="binary:logistic", rate_drop=0.3)),
    ("3.4.1", "quantiles", "json", dict(objective="reg:quantileerror", quantile_alpha=[0.4, 0.5, 0.6], eta=1.5, tree_method="hist")),
    ("3.4.1", "expectiles", "ubj", dict(objective="reg:expectileerror", expectile_alpha=[0.1, 0.5, 0.9], tree_method="hist")),
]
NAMES = ["age", "blood pressure", "größe", "x/y", "quote\"d", "a,b", "tab", "last"]


def training_data():
    rng = np.random.RandomState(7)
    x = rng.normal(size=(200, 8)).astype(np.float32)
    x[rng.rand(200, 8) < 0.1] = np.nan
    score = np.nan_to_num(x) @ np.linspace(-1, 1, 8)
    return x, score, (score + rng.normal(size=200) * 0.5 > 0.4).astype(np.float32)


def with_categories(x, score):
    """Turns features 0 and 3 into categories, of 4 and 70 codes, on which the score then depends."""
    rng = np.random.RandomState(8)
    for feature, count in ((0, 4), (3, 70)):
        codes = rng.randint(0, count, len(x))
        score = score + codes * 7 % 5 - 2
        x[:, feature] = np.where(np.isnan(x[:, feature]), np.nan, codes)
    return x, score


def odd_categories(rows):
    """Returns numbers that are invalid codes, or that seem to be."""
    odd = [-0.5, -0.0, 3.7, -1, 2.0**24, 2.0**24 - 1, 1e9, 3e38, np.inf, -np.inf, 69.99, 70, 0.6, -1e-40, np.nan, 2.0**31]
    for i, x in enumerate(odd):
        rows[i, (0, 3)[i % 2]] = x
        rows[i, (3, 0)[i % 2]] = odd[(i * 5 + 3) % len(odd)] if i % 3 == 0 else i % 4
    return rows


def data_frame(x, score):
    """Returns x as a data frame in which feature 0 has texts and feature 3 has integers as categories, and the score
    that depends on them."""
    import pandas

    rng = np.random.RandomState(9)
    frame = pandas.DataFrame(x, columns=NAMES)
    for feature, names in ((0, ["red", "green, dark", "blue", "Red"]), (3, [30, -7, 2**40])):
        codes = rng.randint(-1, len(names), len(x))
        score = score + codes * 7 % 5
        frame[NAMES[feature]] = pandas.Categorical([names[c] if c >= 0 else None for c in codes], categories=names)
        x[:, feature] = np.where(codes < 0, np.nan, codes)
    return frame, score


def labels(what, objective, score, binary):
    positive = np.exp(score * 0.5).astype(np.float32)
    if what == "labels":
        return np.column_stack([binary, score > 0]).astype(np.float32)
    if what == "vectors" and objective.startswith("binary"):
        return np.column_stack([binary, score > 0]).astype(np.float32)
    if what == "targets" or (what == "vectors" and not objective.startswith("multi")):
        return np.column_stack([score, score * score]).astype(np.float32)
    if objective.startswith("multi"):
        return np.digitize(score, [-0.7, 0.7]).astype(np.float32)
    if objective == "count:poisson":
        return np.floor(positive)
    if objective == "survival:cox":
        return np.where(binary > 0, positive, -positive)
    if objective in ("reg:gamma", "reg:tweedie", "reg:squaredlogerror", "survival:aft"):
        return positive
    if objective.startswith(("binary", "rank", "reg:logistic")):
        return binary
    return score.astype(np.float32)


def one_output_flat(a):
    return np.ascontiguousarray(a.reshape(-1) if a.ndim == 2 and a.shape[1] == 1 else a, dtype=np.float32)


def make(what, extension, given):
    x, score, binary = training_data()
    categories = what.startswith("categories")
    if categories:
        x, score = with_categories(x, score)
    objective = given["objective"]
    params = dict(dict(max_depth=2, eta=0.3, verbosity=0, seed=3, nthread=1, tree_method="exact"), **given)
    rounds = 2 if objective.startswith("multi") else 4
    if what == "pruned":
        params["max_depth"], rounds = 3, 3
    frame = None
    if what == "named":
        frame, score = data_frame(x, score)
    names = NAMES if what == "names" else None
    y = labels(what, objective, score, binary)
    types = ["c" if i in (0, 3) else "q" for i in range(8)] if categories else None
    if frame is not None:
        data = xgb.DMatrix(frame, y, enable_categorical=True)
    else:
        data = xgb.DMatrix(x, y, feature_names=names, feature_types=types)
    if objective.startswith("rank"):
        data.set_group([50] * 4)
    if objective == "survival:aft":
        data.set_float_info("label_lower_bound", y)
        data.set_float_info("label_upper_bound", y)
    if what == "early":
        flipped = xgb.DMatrix(x, 1 - y)
        trained = xgb.train(params, data, 6, evals=[(flipped, "flipped")], early_stopping_rounds=3, verbose_eval=False)
    else:
        trained = xgb.train(params, data, rounds)
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), xgb.__version__ + "_" + what)
    os.makedirs(folder, exist_ok=True)
    model = os.path.join(folder, "model." + extension)
    trained.save_model(model)
    if (xgb.__version__, what) == ("2.1.4", "vectors"):
        trained.save_model(os.path.join(folder, "model.json"))
    judge = xgb.Booster()
    if (xgb.__version__, what) == ("1.0.2", "pruned"):
        judge = trained  # 1.0.2 cannot read back its own file when a node was pruned
    else:
        judge.load_model(model)
    rows = np.ascontiguousarray(x[:24])
    if categories:  # a DMatrix accepts no infinities
        rows = odd_categories(rows)
        raw, value = (judge.inplace_predict(rows, predict_type=kind) for kind in ("margin", "value"))
    elif frame is not None:
        frame = frame[:24]
        frame.to_csv(os.path.join(folder, "rows.csv"), index=False, lineterminator="\n")
        query = xgb.DMatrix(frame, enable_categorical=True)
        raw, value = judge.predict(query, output_margin=True), judge.predict(query)
    else:
        query = xgb.DMatrix(rows, feature_names=names)
        raw, value = judge.predict(query, output_margin=True), judge.predict(query)
    np.save(os.path.join(folder, "rows.npy"), rows)
    np.save(os.path.join(folder, "expected_raw.npy"), one_output_flat(raw))
    np.save(os.path.join(folder, "expected.npy"), one_output_flat(value))
    print(os.path.basename(folder), os.path.getsize(model), "bytes")


for release, what, extension, given in CASES:
    if release == xgb.__version__:
        make(what, extension, given)


def make_tied():
    """Makes scores of different sizes whose probabilities are equal, and the label that XGBClassifier gives."""
    rng = np.random.RandomState(3)
    x = rng.normal(size=(60, 3)).astype(np.float32)
    trained = xgb.XGBClassifier(n_estimators=1, max_depth=1, n_jobs=1).fit(x, np.arange(60) % 3)
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), xgb.__version__ + "_tied")
    os.makedirs(folder, exist_ok=True)
    model = os.path.join(folder, "model.json")
    trained.save_model(model)
    with open(model) as file:
        document = json.load(file)
    document["learner"]["learner_model_param"]["base_score"] = "[0E0,0E0,0E0]"
    for k, tree in enumerate(document["learner"]["gradient_booster"]["model"]["trees"]):
        for node, left in enumerate(tree["left_children"]):
            if left == -1:
                tree["split_conditions"][node] = [0.0, 2.0**-31, 2.0**-30][k]
    with open(model, "w") as file:
        json.dump(document, file)
    judge = xgb.XGBClassifier()
    judge.load_model(model)
    rows = np.ascontiguousarray(x[:24])
    np.save(os.path.join(folder, "rows.npy"), rows)
    np.save(os.path.join(folder, "expected_raw.npy"), judge.predict(rows, output_margin=True))
    np.save(os.path.join(folder, "expected.npy"), judge.predict_proba(rows))
    np.save(os.path.join(folder, "expected_class.npy"), judge.predict(rows).astype(np.int64))


if xgb.__version__ == "3.2.0":
    make_tied()

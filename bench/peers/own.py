"""Models of trainers whose trees no other format holds: each is trained here, on drawn rows, and compared with its own
trainer's engine (and with the engines that read it).

own.py ydf FOLDER: run by `prepare` in the environment of YDF, which `prepare` does not share."""

import json, os, subprocess, sys
import numpy as np

TRAIN, ROWS, FEATURES = 20000, 16384, 28
CATEGORIES = (5, 10, 20, 50, 100, 200, 500, 1000)


def drawn(count, features=FEATURES, missing=0.0):
    """Returns rows, and a target that depends on pairs of features."""
    random = np.random.default_rng(11)
    X = random.standard_normal((count, features), dtype=np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + (X[:, 3] > 0.3) * X[:, 4] + 0.3 * random.standard_normal(count)
    X[random.random(X.shape) < missing] = np.nan
    return X, y


def write(out, X, raw, **facts):
    np.save(f"{out}/rows.npy", np.ascontiguousarray(X, dtype=np.float32))
    np.save(f"{out}/rows.raw.npy", raw)
    return dict(facts, rows=["rows"], nf=X.shape[1], K=1 if raw.ndim == 1 else raw.shape[1])


def write_sklearn(out, model, X, predict, trees, leaves):
    import joblib, skl2onnx, skops.io, treelite

    skops.io.dump(model, f"{out}/model.skops")
    joblib.dump(model, f"{out}/model.joblib")
    treelite.sklearn.import_model(model).serialize(f"{out}/model.tl")
    options = {type(model): {"zipmap": False}} if hasattr(model, "classes_") else None
    try:
        onnx = skl2onnx.to_onnx(model, X[:1], options=options)
        with open(f"{out}/model.onnx", "wb") as file:
            file.write(onnx.SerializeToString())
    except Exception as error:  # converters lag behind scikit-learn
        print(f"{out}: no ONNX: {error!r}"[:200], flush=True)
    # forestvm's raw scores of a forest are sums; scikit-learn answers with their mean.
    facts = dict(trainer="sklearn", output="value", source=f"{out}/model.skops", n_trees=trees, leaves=int(leaves))
    return write(out, X, predict(X), **facts)


def write_forest(out, model, y):
    X, _ = drawn(TRAIN + ROWS)
    model.fit(X[:TRAIN], y)
    leaves = sum(tree.get_n_leaves() for tree in model.estimators_)
    predict = model.predict_proba if hasattr(model, "classes_") else model.predict
    return write_sklearn(out, model, X[TRAIN:], predict, len(model.estimators_), leaves)


def sklearn_classes(out):
    """Trains a forest of five classes, whose leaves are vectors."""
    from sklearn.ensemble import RandomForestClassifier

    _, y = drawn(TRAIN)
    settings = dict(n_estimators=100, max_depth=10, n_jobs=-1, random_state=1)
    return write_forest(out, RandomForestClassifier(**settings), np.digitize(y, (-1.5, -0.5, 0.5, 1.5)))


def sklearn_forest(out):
    from sklearn.ensemble import ExtraTreesRegressor

    _, y = drawn(TRAIN)
    return write_forest(out, ExtraTreesRegressor(n_estimators=100, max_depth=12, n_jobs=-1, random_state=1), y)


def sklearn_hist(out):
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y = drawn(TRAIN + ROWS, missing=0.05)
    model = HistGradientBoostingRegressor(max_iter=200, random_state=1).fit(X[:TRAIN], y[:TRAIN])
    trees = [tree for round in model._predictors for tree in round]
    leaves = sum(tree.get_n_leaf_nodes() for tree in trees)
    return write_sklearn(out, model, X[TRAIN:], model.predict, len(trees), leaves)


def lightgbm_linear(out):
    """Trains trees whose leaves are linear functions of the row (linear_tree)."""
    import lightgbm

    X, y = drawn(TRAIN + ROWS, missing=0.02)
    settings = dict(objective="regression", linear_tree=True, linear_lambda=0.01, num_leaves=31, verbosity=-1, seed=1)
    data = lightgbm.Dataset(X[:TRAIN], y[:TRAIN], params={"linear_tree": True, "verbosity": -1})
    booster = lightgbm.train(settings, data, 200)
    booster.save_model(f"{out}/lgb.txt")
    leaves = sum(tree["num_leaves"] for tree in booster.dump_model()["tree_info"])
    facts = dict(trainer="lightgbm", source=f"{out}/lgb.txt", linear=True)
    facts.update(n_trees=booster.num_trees(), leaves=leaves)
    return write(out, X[TRAIN:], booster.predict(X[TRAIN:], raw_score=True), **facts)


def categories(X, y, count):
    """Replaces the first columns by categories. Three in ten are the range that the target lies in; the others are
    random, small numbers being frequent."""
    random = np.random.default_rng(12)
    X = X.copy()
    for column, levels in enumerate(CATEGORIES):
        frequent = np.minimum(random.zipf(1.5, count) - 1, levels - 1)
        X[:, column] = np.where(random.random(count) < 0.3, np.clip(y * 2 + 5, 0, levels - 1), frequent).astype(int)
    return X


def catboost_counters(out):
    """Trains CatBoost on categories, with its default counters."""
    import catboost

    X, y = drawn(TRAIN + ROWS, len(CATEGORIES) + 6)
    X = categories(X, y, len(X))
    columns = list(range(len(CATEGORIES)))
    settings = dict(iterations=300, depth=6, verbose=False, allow_writing_files=False, random_seed=1, thread_count=2)
    model = catboost.CatBoostClassifier(cat_features=columns, **settings)
    model.fit(table(X[:TRAIN], columns), y[:TRAIN] > 0)
    model.save_model(f"{out}/catboost.cbm")
    raw = model.predict(table(X[TRAIN:], columns), prediction_type="RawFormulaVal")
    facts = dict(trainer="catboost", source=f"{out}/catboost.cbm", catboost_trees=True, categories=columns)
    return write(out, X[TRAIN:], raw, n_trees=model.tree_count_, leaves=64 * model.tree_count_, **facts)


def catboost_classes(out):
    """Trains CatBoost on seven classes, so that leaves are vectors."""
    import catboost

    X, y = drawn(TRAIN + ROWS)
    settings = dict(iterations=300, depth=6, verbose=False, allow_writing_files=False, random_seed=1, thread_count=2)
    model = catboost.CatBoostClassifier(loss_function="MultiClass", **settings)
    model.fit(X[:TRAIN], np.digitize(y[:TRAIN], (-1.5, -0.9, -0.3, 0.3, 0.9, 1.5)))
    model.save_model(f"{out}/catboost.cbm")
    raw = model.predict(X[TRAIN:], prediction_type="RawFormulaVal")
    facts = dict(trainer="catboost", source=f"{out}/catboost.cbm", catboost_trees=True)
    return write(out, X[TRAIN:], raw, n_trees=model.tree_count_, leaves=64 * model.tree_count_, **facts)


def xgboost_vectors(out):
    """Trains XGBoost on five targets at once, so that leaves are vectors."""
    import xgboost

    X, y = drawn(TRAIN + ROWS)
    targets = np.stack([y * X[:, k] for k in range(5)], axis=1)[:TRAIN]
    settings = dict(n_estimators=200, max_depth=6, tree_method="hist", multi_strategy="multi_output_tree", n_jobs=2)
    booster = xgboost.XGBRegressor(**settings).fit(X[:TRAIN], targets).get_booster()
    booster.save_model(f"{out}/model.ubj")
    leaves = sum(tree.count("leaf=") for tree in booster.get_dump())
    raw = booster.predict(xgboost.DMatrix(X[TRAIN:]), output_margin=True)
    facts = dict(trainer="xgboost", source=f"{out}/model.ubj", n_trees=200, leaves=leaves)
    return write(out, X[TRAIN:], raw, **facts)


def table(X, columns):
    """Returns a table for CatBoost, which takes categories as whole numbers and not as floats."""
    import pandas

    frame = pandas.DataFrame(X)
    return frame.astype({column: int for column in columns})


def ydf_boosted(out):
    python = f"{os.environ['PEERS_HOME']}/v-ydf/bin/python"
    subprocess.run([python, os.path.abspath(__file__), "ydf", out], check=True)
    with open(f"{out}/ydf.json") as file:
        return json.load(file)


def train_ydf(out):
    import ydf

    X, y = drawn(TRAIN + ROWS)
    named = {f"f{i}": X[:, i] for i in range(FEATURES)}
    rows = {name: column[:TRAIN] for name, column in named.items()}
    learner = ydf.GradientBoostedTreesLearner(
        label="y", task=ydf.Task.REGRESSION, num_trees=200, validation_ratio=0.0, max_depth=6
    )
    model = learner.train(dict(rows, y=y[:TRAIN].astype(np.float32)), verbose=0)
    model.save(f"{out}/ydf")
    raw = model.predict({name: column[TRAIN:] for name, column in named.items()})
    trees = list(model.iter_trees())
    facts = dict(trainer="ydf", source=f"{out}/ydf", n_trees=len(trees), leaves=sum(map(count_leaves, trees)))
    with open(f"{out}/ydf.json", "w") as file:
        json.dump(write(out, X[TRAIN:], raw, **facts), file)


def count_leaves(tree):
    open_nodes, leaves = [tree.root], 0
    while open_nodes:
        node = open_nodes.pop()
        if node.is_leaf:
            leaves += 1
        else:
            open_nodes += [node.pos_child, node.neg_child]
    return leaves


MODELS = {
    "own-catboost-classes": catboost_classes,
    "own-catboost-counters": catboost_counters,
    "own-lightgbm-linear": lightgbm_linear,
    "own-sklearn-classes": sklearn_classes,
    "own-sklearn-forest": sklearn_forest,
    "own-sklearn-hist": sklearn_hist,
    "own-xgboost-vectors": xgboost_vectors,
    "own-ydf": ydf_boosted,
}

if __name__ == "__main__":
    train_ydf(sys.argv[2])

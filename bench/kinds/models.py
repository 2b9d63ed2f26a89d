"""Reads the models of the zoo (docs/testing.md), trains one with LightGBM, and gives XGBoost's Booster of a model,
facts about a model, and the rows of a background."""
import gzip
import json
import pathlib

import numpy

XGBOOST = ("model.json", "model.ubj", "model.ubj.gz")


def models_of(zoo, names, files):
    """Returns (name, model file, rows) of the models in the zoo that have one of the files: those with the given names,
    all of the benchmarks if there are none."""
    folders = [folder for part in ("bench", "formats") for folder in sorted((pathlib.Path(zoo) / part).iterdir())]
    for folder in folders:
        if folder.name not in names if names else folder.parent.name != "bench":
            continue
        for file in files:
            if (folder / file).exists():
                rows = numpy.load(folder / "rows.npy").astype(numpy.float32)
                rows[numpy.isinf(rows)] = numpy.nan  # XGBoost refuses infinities
                yield folder.name, folder / file, rows
                break


def booster_of(model):
    """Returns the Booster in a file of XGBoost. It predicts with one thread, and rows need no names."""
    import xgboost

    data = model.read_bytes()
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(bytearray(gzip.decompress(data) if model.suffix == ".gz" else data))
    booster.feature_names = None
    return booster


def facts(file):
    """Returns facts about a model of XGBoost, a JSON file: the leaves of a tree, the features that splits have, and the
    share of splits that have the feature of a split above them."""
    trees = json.loads(file.read_text())["learner"]["gradient_booster"]["model"]["trees"]
    splits = repeats = 0
    used = set()
    for tree in trees:
        waiting = [(0, frozenset())]
        while waiting:
            node, above = waiting.pop()
            if tree["left_children"][node] < 0:
                continue
            feature = tree["split_indices"][node]
            splits, repeats = splits + 1, repeats + (feature in above)
            used.add(feature)
            waiting += [(tree[side][node], above | {feature}) for side in ("left_children", "right_children")]
    return splits / len(trees) + 1, len(used), repeats / max(splits, 1)


def trained_lightgbm(folder):
    """Trains a model of 100 trees with 255 leaves, as LightGBM grows them leaf by leaf."""
    import lightgbm

    random = numpy.random.default_rng(1)
    rows = random.normal(size=(50_000, 28)).astype(numpy.float32)
    target = rows[:, 0] * rows[:, 1] + numpy.sin(3 * rows[:, 2]) + rows[:, 3:10].sum(axis=1) > 0
    settings = {"objective": "binary", "num_leaves": 255, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(rows, target.astype(int)), 100)
    booster.save_model(folder / "lightgbm.txt")
    return "lightgbm 100 x 255 leaves, 28 features", folder / "lightgbm.txt", rows


def background_of(rows, count):
    """Returns `count` rows: those of the model in another order, with a little noise where they repeat."""
    random = numpy.random.default_rng(2)
    drawn = rows[random.permutation(len(rows))]
    background = numpy.resize(drawn, (count, rows.shape[1])).astype(numpy.float64)
    background[len(rows) :] *= random.normal(1, 0.05, background[len(rows) :].shape)
    return numpy.clip(background, -1e38, 1e38).astype(numpy.float32)

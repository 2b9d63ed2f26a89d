"""Trains forests on the data sets that scikit-learn brings, real and made, with XGBoost and LightGBM."""

import warnings

import numpy as np


def data_sets():
    """Yields the name, the rows and the labels of each data set; labels are whole numbers for classes."""
    from sklearn import datasets

    for load in (
        datasets.load_breast_cancer,
        datasets.load_digits,
        datasets.load_wine,
        datasets.load_iris,
        datasets.load_diabetes,
    ):
        data = load()
        yield load.__name__.removeprefix("load_"), data.data, data.target
    yield "friedman", *datasets.make_friedman1(6000, 20, noise=0.5, random_state=1)
    yield "moons", *datasets.make_moons(5000, noise=0.3, random_state=2)
    yield "hastie", *datasets.make_hastie_10_2(8000, random_state=3)
    yield "wide", *datasets.make_classification(3000, 400, n_informative=60, random_state=4)
    yield "classes", *datasets.make_classification(4000, 50, n_informative=25, n_classes=6, random_state=5)


def kind_of(labels):
    classes = np.unique(labels)
    if len(classes) > 30:
        return "regression", labels
    return ("binary" if len(classes) == 2 else "multiclass"), np.searchsorted(classes, labels)


def train_xgboost(path, rows, labels, kind, classes, rounds, depth):
    import xgboost

    objective = {"regression": "reg:squarederror", "binary": "binary:logistic", "multiclass": "multi:softprob"}[kind]
    settings = {"objective": objective, "max_depth": depth, "nthread": 1, "eta": 0.2, "seed": depth}
    if kind == "multiclass":
        settings["num_class"] = classes
    xgboost.train(settings, xgboost.DMatrix(rows, labels), rounds).save_model(path)


def train_lightgbm(path, rows, labels, kind, classes, rounds, leaves):
    import lightgbm

    settings = {"objective": kind, "num_leaves": leaves, "num_threads": 1, "verbose": -1, "seed": leaves}
    settings["min_data_in_leaf"] = 5
    if kind == "multiclass":
        settings["num_class"] = classes
    lightgbm.train(settings, lightgbm.Dataset(rows, labels), rounds).save_model(path)


def models(folder):
    """Yields the name of each forest and a function that trains it and returns its file."""
    warnings.simplefilter("ignore")
    for name, rows, numbers in data_sets():
        kind, labels = kind_of(numbers)
        classes = len(np.unique(labels)) if kind == "multiclass" else 1
        for i, (rounds, depth, leaves) in enumerate([(10, 3, 15), (60, 6, 31), (200, 4, 63), (300, 8, 255)]):
            rounds = max(1, rounds // (1 if classes == 1 else 3))

            def xgboost_model(path=f"{folder}/{name}-{i}.ubj", rows=rows, labels=labels, kind=kind, classes=classes,
                              rounds=rounds, depth=depth):
                train_xgboost(path, rows, labels, kind, classes, rounds, depth)
                return path

            def lightgbm_model(path=f"{folder}/{name}-{i}.txt", rows=rows, labels=labels, kind=kind,
                               classes=classes, rounds=rounds, leaves=leaves):
                train_lightgbm(path, rows, labels, kind, classes, rounds, leaves)
                return path

            yield f"xgboost-{name}-{i}", xgboost_model
            yield f"lightgbm-{name}-{i}", lightgbm_model

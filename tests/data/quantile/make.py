"""Writes the forests of this folder, their training rows, and the quantiles that quantile-forest predicts.

    pip install quantile-forest==1.4.2 scikit-learn==1.9.1 skops
    python tests/data/quantile/make.py
"""

import zipfile
from pathlib import Path

import numpy
import skops.io
from quantile_forest import ExtraTreesQuantileRegressor, RandomForestQuantileRegressor
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

HERE = Path(__file__).parent
QUANTILES = [0.5, 0.0, 0.1, 0.25, 1 / 3, 0.9, 0.999, 1.0]
ROUNDED = {"extra_trees": False, "random_forest": False, "whole_targets": True}


def make(name: str) -> None:
    """Writes a forest and its quantiles."""
    random = numpy.random.default_rng(20261128)
    X = random.normal(size=(160, 4)).astype(numpy.float32).astype(numpy.float64)
    y = X[:, 0] * 3 + X[:, 1] ** 2 + random.normal(size=160)
    if ROUNDED[name]:
        y = numpy.round(y)  # many rows have the same target
    rows = numpy.concatenate([X[:20], random.normal(size=(40, 4))]).astype(numpy.float32)
    options = {"n_estimators": 12, "min_samples_leaf": 4, "bootstrap": False, "max_features": 2, "random_state": 7}
    extra = name == "extra_trees"
    judge = (ExtraTreesQuantileRegressor if extra else RandomForestQuantileRegressor)(max_samples_leaf=None, **options)
    forest = (ExtraTreesRegressor if extra else RandomForestRegressor)(**options)
    judge.fit(X, y)
    forest.fit(X, y)
    assert (judge.apply(rows) == forest.apply(rows)).all()
    skops.io.dump(forest, HERE / f"{name}.skops", compression=zipfile.ZIP_DEFLATED)
    numpy.save(HERE / f"{name}.X.npy", X)
    numpy.save(HERE / f"{name}.y.npy", y)
    numpy.save(HERE / f"{name}.rows.npy", rows)
    numpy.save(HERE / f"{name}.expected.npy", judge.predict(rows, quantiles=QUANTILES))


if __name__ == "__main__":
    for name in ROUNDED:
        make(name)

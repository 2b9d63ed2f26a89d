"""Quantiles of the targets of training rows, against the answers of quantile-forest."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import forestvm

FOLDER = Path(__file__).parents[3] / "tests/data/quantile"
QUANTILES = (0.5, 0.0, 0.1, 0.25, 1 / 3, 0.9, 0.999, 1.0)


def test_quantiles() -> None:
    for name in ("extra_trees", "random_forest", "whole_targets"):
        X, y, rows, expected = (np.load(FOLDER / f"{name}.{part}.npy") for part in ("X", "y", "rows", "expected"))
        forest = forestvm.load(FOLDER / f"{name}.skops", samples=(X, y))
        got = forest.quantiles(rows, QUANTILES)
        assert got.dtype == np.float64 and got.shape == (60, 8)
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(forest.quantiles(rows), forest.quantiles(rows, [0.1, 0.5, 0.9]))
        np.testing.assert_array_equal(forest.quantiles(rows, [0.25]), got[:, 3:4])
        np.testing.assert_array_equal(forest.quantiles(rows[:, :], QUANTILES, dtype="float32"), got.astype("float32"))


def test_forests_of_quantiles_are_copied_and_pickled() -> None:
    X, y, rows = (np.load(FOLDER / f"extra_trees.{part}.npy") for part in ("X", "y", "rows"))
    forest = forestvm.load(FOLDER / "extra_trees.skops", samples=(X, y))
    some = forest.of_quantiles([0.25, 1])
    for again in (some, pickle.loads(pickle.dumps(some)), copy.deepcopy(some), some.of_quantiles(QUANTILES[3::4])):
        np.testing.assert_array_equal(again.predict(rows, output="quantile"), forest.quantiles(rows, [0.25, 1.0]))
    np.testing.assert_array_equal(some.quantiles(rows, [0.9]), forest.quantiles(rows, [0.9]))
    np.testing.assert_array_equal(some.predict(rows), forest.predict(rows))
    np.testing.assert_array_equal(forest.predict(rows, output="quantile"), forest.quantiles(rows))


def test_refusals() -> None:
    model = FOLDER / "extra_trees.skops"
    X, y = np.load(FOLDER / "extra_trees.X.npy"), np.load(FOLDER / "extra_trees.y.npy")
    forest = forestvm.load(model, samples=(X, y))
    for wrong in ([], [1.5], [-0.1], [float("nan")], "text", 0.5):
        with pytest.raises(forestvm.Usage, match="quantiles is"):
            forest.quantiles(X, wrong)  # type: ignore[arg-type]
        with pytest.raises(forestvm.Usage, match="quantiles is"):
            forest.of_quantiles(wrong)  # type: ignore[arg-type]
    for without in (lambda: forestvm.load(model).quantiles(X), lambda: forestvm.load(model).of_quantiles([0.5])):
        with pytest.raises(forestvm.Refused, match="samples=\\(X, y\\)"):
            without()
    with pytest.raises(forestvm.Refused, match="160 rows, but 3 targets"):
        forestvm.load(model, samples=(X, y[:3]))
    with pytest.raises(forestvm.Refused, match="the target of row 0 is not finite"):
        forestvm.load(model, samples=(X, np.full(160, np.nan)))
    with pytest.raises(forestvm.Refused, match="must be \\(rows, 4\\)"):
        forestvm.load(model, samples=(X[:, :2], y))
    with pytest.raises(forestvm.Usage, match="y has the shape"):
        forestvm.load(model, samples=(X, X))
    with pytest.raises(forestvm.Usage, match="expected \\(X, y\\)"):
        forestvm.load(model, samples=(X,))  # type: ignore[arg-type]

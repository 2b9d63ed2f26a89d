"""Rows that share leaves, against the leaves that apply gives."""

import numpy as np
import pytest
from small_models import normal_rows

import forestvm

xgboost = pytest.importorskip("xgboost")

ROWS = normal_rows(1, 300)
OTHERS = normal_rows(2, 500)
TARGET = np.nan_to_num(ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2])


def forest() -> forestvm.Forest:
    return forestvm.from_xgboost(xgboost.XGBRegressor(n_estimators=20, max_depth=5).fit(ROWS, TARGET))


def test_counts_and_weights() -> None:
    trained = forest()
    same = trained.apply(ROWS)[:, None, :] == trained.apply(OTHERS)[None, :, :]
    counts = trained.proximity(ROWS, OTHERS)
    assert counts.dtype == np.int32 and np.array_equal(counts, same.sum(axis=2))
    weights = (same / np.maximum(same.sum(axis=1, keepdims=True), 1)).mean(axis=2)
    np.testing.assert_allclose(trained.proximity(ROWS, OTHERS, weights=True), weights, atol=1e-15)
    own = trained.proximity(ROWS)
    assert np.array_equal(np.diag(own), np.full(300, 20)) and np.array_equal(own, own.T)


def test_the_nearest() -> None:
    trained = forest()
    counts = trained.proximity(ROWS, OTHERS)
    rows, best = trained.proximity(ROWS, OTHERS, top=3)
    assert np.array_equal(rows, np.argsort(-counts, axis=1, kind="stable")[:, :3])
    assert np.array_equal(best, np.take_along_axis(counts, rows, axis=1))
    own = trained.proximity(ROWS)
    np.fill_diagonal(own, -1)
    assert np.array_equal(trained.proximity(ROWS, top=1)[0][:, 0], own.argmax(axis=1))
    with pytest.raises(forestvm.Usage, match="expected 1 to 299"):
        trained.proximity(ROWS, top=300)

"""Rows that share leaves, against the leaves that apply gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forestvm

Rows = np.ndarray[Any, Any]


def test_counts_and_weights(breast_cancer: Path, rows: Rows) -> None:
    forest = forestvm.load(breast_cancer)
    few = rows[:50]
    same = forest.apply(rows)[:, None, :] == forest.apply(few)[None, :, :]
    counts = forest.proximity(rows, few)
    assert counts.dtype == np.int32 and np.array_equal(counts, same.sum(axis=2))
    weights = (same / np.maximum(same.sum(axis=1, keepdims=True), 1)).mean(axis=2)
    np.testing.assert_allclose(forest.proximity(rows, few, weights=True), weights, atol=1e-15)
    own = forest.proximity(rows)
    assert np.array_equal(np.diag(own), np.full(len(rows), forest.num_trees)) and np.array_equal(own, own.T)


def test_rows_with_themselves(breast_cancer: Path, rows: Rows) -> None:
    """More rows than are compared together, each pair once, have the numbers of rows that are given twice."""
    forest = forestvm.load(breast_cancer)
    random = np.random.default_rng(1)
    many = rows[random.integers(0, len(rows), 1301)] * random.normal(1, 0.1, (1301, rows.shape[1]))
    for weights in (False, True):
        own, others = (forest.proximity(many, Y, weights=weights) for Y in (None, many))
        assert np.array_equal(own, others)
        scores = own.copy()
        np.fill_diagonal(scores, -1)
        expected = np.argsort(-scores, axis=1, kind="stable")[:, :3]
        nearest, best = forest.proximity(many, top=3, weights=weights)
        assert np.array_equal(nearest, expected)
        assert np.array_equal(best, np.take_along_axis(own, nearest, axis=1))


def test_the_nearest(breast_cancer: Path, rows: Rows) -> None:
    forest = forestvm.load(breast_cancer)
    few = rows[:50]
    counts = forest.proximity(rows, few)
    nearest, best = forest.proximity(rows, few, top=3)
    assert np.array_equal(nearest, np.argsort(-counts, axis=1, kind="stable")[:, :3])
    assert np.array_equal(best, np.take_along_axis(counts, nearest, axis=1))
    own = forest.proximity(rows)
    np.fill_diagonal(own, -1)
    assert np.array_equal(forest.proximity(rows, top=1)[0][:, 0], own.argmax(axis=1))
    with pytest.raises(forestvm.Usage, match="expected 1 to 49"):
        forest.proximity(few, top=50)

"""Outputs of single trees and stages, and rounds that calls choose: against the trainers' own, bit for bit."""

import copy
import pickle

import numpy as np
import pytest
from small_models import normal_rows

import forestvm

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")


ROWS = normal_rows(2, 500)
TARGET = np.nan_to_num(ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2])
CLASSES = np.digitize(TARGET, [-0.5, 0.5])


def test_of_xgboost() -> None:
    for model in (
        xgboost.XGBClassifier(n_estimators=11, max_depth=4, num_parallel_tree=2).fit(ROWS, CLASSES),
        xgboost.XGBRegressor(n_estimators=11, booster="dart", rate_drop=0.3, max_depth=4).fit(ROWS, TARGET),
    ):
        forest = forestvm.from_xgboost(model, keep_leaves=True)
        matrix = xgboost.DMatrix(ROWS)

        def raw(begin: int, end: int) -> np.ndarray:
            scores = model.get_booster().predict(matrix, output_margin=True, iteration_range=(begin, end))
            return scores.reshape(len(ROWS), -1)

        stages = forest.staged(ROWS, every=4)
        assert stages.shape == (500, 3, forest.num_outputs) and stages.dtype == np.float32
        for stage, end in enumerate((4, 8, 11)):
            assert np.array_equal(stages[:, stage], raw(0, end))
        some = forest.of_rounds(3, 7)
        assert np.array_equal(some.predict_raw(ROWS).reshape(len(ROWS), -1), raw(3, 7))
        trees = forest.trees(ROWS)
        assert trees.shape == (500, forest.num_trees)
        if forest.num_outputs == 1:
            sums = np.full(len(ROWS), forest.of_rounds(0, 1).predict_raw(ROWS) - trees[:, 0])
            np.testing.assert_allclose(trees.sum(axis=1) + sums, forest.predict_raw(ROWS), rtol=1e-5)


def test_of_lightgbm() -> None:
    model = lightgbm.LGBMClassifier(n_estimators=7, verbose=-1).fit(ROWS, CLASSES)
    forest = forestvm.from_lightgbm(model, keep_leaves=True)
    stages = forest.staged(ROWS, every=3)
    for stage, end in enumerate((3, 6, 7)):
        expected = model.booster_.predict(ROWS, raw_score=True, num_iteration=end)
        assert np.array_equal(stages[:, stage], expected)
    expected = model.booster_.predict(ROWS, start_iteration=2, num_iteration=3, raw_score=True)
    assert np.array_equal(forest.of_rounds(2, 5).predict_raw(ROWS), expected)
    trees = forest.trees(ROWS)
    sums = np.zeros((len(ROWS), 3))
    for number in range(trees.shape[1]):
        sums[:, number % 3] += trees[:, number]
    assert np.array_equal(sums, forest.predict_raw(ROWS))


def test_of_scikit_learn() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    rows = np.nan_to_num(ROWS)
    model = ensemble.GradientBoostingClassifier(n_estimators=6, max_depth=3).fit(rows, CLASSES)
    forest = forestvm.from_sklearn(model, keep_leaves=True)
    stages = forest.staged(rows)
    for stage, expected in enumerate(model.staged_decision_function(rows)):
        np.testing.assert_allclose(stages[:, stage], expected, rtol=0, atol=1e-15)  # as decision_function


def small_forest() -> forestvm.Forest:
    model = xgboost.XGBRegressor(n_estimators=6, max_depth=3).fit(ROWS, TARGET)
    return forestvm.from_xgboost(model, keep_leaves=True)


def test_rows_of_every_kind_have_the_same_bits() -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    pandas = pytest.importorskip("pandas")
    forest = small_forest()
    rows = np.nan_to_num(ROWS, nan=1.5)
    for answer in (forest.trees, lambda of: forest.staged(of, 4)):
        expected = answer(rows)
        sparse, frame = scipy_sparse.csr_matrix(rows), pandas.DataFrame(rows)
        for other in (np.asfortranarray(rows), rows.astype(np.float64), frame, sparse):
            assert np.array_equal(answer(other), expected)
        assert answer(rows[:0]).shape == (0, *expected.shape[1:])
    assert forest.trees(rows, dtype=np.float64).dtype == np.float64


def test_forests_of_rounds_are_copied_and_pickled() -> None:
    some = small_forest().of_rounds(1, 4)
    expected = some.predict(ROWS)
    assert not np.array_equal(expected, small_forest().predict(ROWS))
    for again in (pickle.loads(pickle.dumps(some)), copy.deepcopy(some), pickle.loads(pickle.dumps(some, protocol=5))):
        assert np.array_equal(again.predict(ROWS), expected)
    assert some.staged(ROWS, 2).shape == (500, 2, 1) and some.trees(ROWS).shape == (500, 3)


def test_errors() -> None:
    forest = small_forest()
    with pytest.raises(forestvm.Usage, match="expected A:B with A < B, and B at most 6"):
        forest.of_rounds(3, 7)
    with pytest.raises(forestvm.Usage, match="every is 0"):
        forest.staged(ROWS, 0)
    with pytest.raises(forestvm.Usage, match="compile the model for the rounds"):
        forest.of_rounds(0, 2).apply(ROWS)
    model = xgboost.XGBRegressor(n_estimators=2, max_depth=3).fit(ROWS, TARGET)
    plain = forestvm.from_xgboost(model)
    with pytest.raises(forestvm.Refused, match="keep_leaves=True"):
        plain.trees(ROWS)
    with pytest.raises(forestvm.Usage, match="keep_leaves"):
        forestvm.load(plain.to_bytes(), keep_leaves=True)

"""Outputs of single trees and stages, and rounds that calls choose: against the trainers' own, bit for bit."""

import concurrent.futures
import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
from conftest import DATA
from small_models import normal_rows

import forestvm

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")


MODEL = DATA / "breast_cancer" / "model.json"
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
        # decision_function has the same tolerance in its test.
        np.testing.assert_allclose(stages[:, stage], expected, rtol=0, atol=1e-15)


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


def test_integers_of_any_type_are_rounds() -> None:
    forest = small_forest()
    assert np.array_equal(forest.staged(ROWS, np.int64(4)), forest.staged(ROWS, 4))
    some = forest.of_rounds(np.int32(1), np.uint8(4))
    assert np.array_equal(some.predict(ROWS), forest.of_rounds(1, 4).predict(ROWS))
    assert np.array_equal(pickle.loads(pickle.dumps(some)).predict(ROWS), some.predict(ROWS))


def test_calls_of_one_kind_share_their_memory() -> None:
    forest = small_forest()
    assert forest._kept_calls() is forest
    first = forest._kept_calls(every=4)
    assert forest._kept_calls(every=4) is first and forest._kept_calls(every=3) is not first
    some = forest.of_rounds(0, 5)
    assert some.staged(ROWS, 4).shape == (500, 2, 1) and some.staged(ROWS, 2).shape == (500, 3, 1)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        wanted = {every: forest.staged(ROWS, every) for every in (2, 3, 4)}
        for every, stages in pool.map(lambda n: (2 + n % 3, forest.staged(ROWS, 2 + n % 3)), range(60)):
            assert np.array_equal(stages, wanted[every])
    kept = weakref.ref(forest._kept_calls(every=4))
    assert kept() is not None
    del forest, first
    gc.collect()
    assert kept() is None


def test_errors() -> None:
    forest = small_forest()
    with pytest.raises(forestvm.Usage, match="expected A:B with A < B, and B at most 6"):
        forest.of_rounds(3, 7)
    # In C, 2**32 would be 0, and 0, 0 stands for all rounds.
    for wrong in ((0, 0), (5, 5), (3, 2), (-1, 2), (0, 2**32), (2**32, 2**32 + 2), (0, "best"), (0, True), (0, 2.0)):
        with pytest.raises(forestvm.Usage, match=r"expected \(begin, end\), where 0 <= begin < end"):
            forest.of_rounds(*wrong)
        with pytest.raises(forestvm.Usage, match=r"expected \(begin, end\), where 0 <= begin < end"):
            forestvm.load(MODEL, rounds=wrong)
    for wrong in (0, -1, 2**32, True, np.True_, 1.0, "1", None):
        with pytest.raises(forestvm.Usage, match=f"every is {wrong!r}".replace("(", ".").replace(")", ".")):
            forest.staged(ROWS, wrong)
    with pytest.raises(forestvm.Usage, match="compile the model for the rounds"):
        forest.of_rounds(0, 2).apply(ROWS)
    model = xgboost.XGBRegressor(n_estimators=2, max_depth=3).fit(ROWS, TARGET)
    plain = forestvm.from_xgboost(model)
    with pytest.raises(forestvm.Refused, match="keep_leaves=True"):
        plain.trees(ROWS)
    with pytest.raises(forestvm.Usage, match="keep_leaves"):
        forestvm.load(plain.to_bytes(), keep_leaves=True)


def test_uncertainty() -> None:
    folder = DATA / "uncertainty"
    rows = np.load(folder / "rows.npy")
    for path in sorted(folder.glob("*.json")):
        forest = forestvm.load(path, keep_leaves=True)
        members = np.load(folder / f"{path.stem}.members.npy")
        got = forest.virt_ensembles(rows, 4)
        assert got.shape == members.shape and got.dtype == np.float64
        np.testing.assert_array_max_ulp(got, members, 2)
        expected = np.load(folder / f"{path.stem}.uncertainty.npy")
        np.testing.assert_array_max_ulp(forest.uncertainty(rows, 4), expected, 4)
        expected = np.load(folder / f"{path.stem}.uncertainty_17.npy")
        np.testing.assert_array_max_ulp(forest.of_rounds(0, 17).uncertainty(rows, 3), expected, 4)
        with pytest.raises(forestvm.Usage, match="12 of them: expected 1 to 11"):
            forest.virt_ensembles(rows, 12)
        for wrong in (0, 1.5, "4"):
            with pytest.raises(forestvm.Usage, match="ensembles is"):
                forest.uncertainty(rows, wrong)
    model = lightgbm.LGBMRegressor(
        n_estimators=9, boosting_type="rf", subsample=0.5, subsample_freq=1, verbose=-1, random_state=1
    ).fit(ROWS, TARGET)
    forest = forestvm.from_lightgbm(model, keep_leaves=True)
    spread = forest.uncertainty(ROWS)
    trees = forest.trees(ROWS)
    np.testing.assert_allclose(spread[:, 0], trees.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(spread[:, 1], trees.var(axis=1), rtol=1e-9, atol=1e-15)
    with pytest.raises(forestvm.Refused, match="averages its trees"):
        forest.virt_ensembles(ROWS)
    with pytest.raises(forestvm.Refused, match="keep_leaves=True"):
        forestvm.from_lightgbm(model).uncertainty(ROWS)

"""Contributions and interactions: against XGBoost's and LightGBM's own, for rows of every kind; shapes and errors."""

import math
from pathlib import Path

import numpy as np
import pytest
from small_models import normal_rows

import forestvm

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")


ROWS = normal_rows(1, 600)
TARGET = np.nan_to_num(ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2])


def test_of_xgboost() -> None:
    model = xgboost.XGBRegressor(n_estimators=20, max_depth=5).fit(ROWS, TARGET)
    forest = forestvm.from_xgboost(model, contributions=True)
    expected = model.get_booster().predict(xgboost.DMatrix(ROWS), pred_contribs=True)
    parts = forest.contributions(ROWS)
    assert parts.shape == (600, 6) and parts.dtype == np.float32
    np.testing.assert_allclose(parts, expected, atol=1e-5)
    np.testing.assert_allclose(parts.sum(axis=1), forest.predict_raw(ROWS), atol=1e-5)


def test_interactions_of_xgboost() -> None:
    model = xgboost.XGBRegressor(n_estimators=20, max_depth=5).fit(ROWS, TARGET)
    forest = forestvm.from_xgboost(model, interactions=True)
    expected = model.get_booster().predict(xgboost.DMatrix(ROWS), pred_interactions=True)
    pairs = forest.interactions(ROWS)
    assert pairs.shape == (600, 6, 6) and pairs.dtype == np.float32
    np.testing.assert_allclose(pairs, expected, atol=1e-5)
    np.testing.assert_allclose(pairs.sum(axis=2), forest.contributions(ROWS), atol=1e-5)
    out = np.empty((600, 6, 6), dtype=np.float64)
    assert forest.interactions(ROWS, out=out) is out and np.array_equal(out.astype(np.float32), pairs)
    with pytest.raises(forestvm.Usage, match="144 bytes, more than 100"):
        forest.interactions(ROWS, max_bytes=100)
    assert np.array_equal(forest.interactions(ROWS, max_bytes=144), pairs)
    for wide in ({"out": out}, {"dtype": np.float64}):
        with pytest.raises(forestvm.Usage, match="288 bytes, more than 144"):
            forest.interactions(ROWS, max_bytes=144, **wide)
    for explain in (forest.interactions, forest.contributions):
        with pytest.raises(forestvm.Usage, match="expected an array of NumPy, not list"):
            explain(ROWS, out=[])
    with pytest.raises(forestvm.Refused, match="interactions=True"):
        small_forest().interactions(ROWS)


@pytest.mark.parametrize("classes", [1, 3])
def test_margins_of_xgboost(classes: int) -> None:
    if classes == 1:
        model = xgboost.XGBRegressor(n_estimators=10, max_depth=4).fit(ROWS, TARGET)
    else:
        model = xgboost.XGBClassifier(n_estimators=5, max_depth=4).fit(ROWS, np.digitize(TARGET, [-0.5, 0.5]))
    forest = forestvm.from_xgboost(model, interactions=True, contributions=True, approx_contributions=True)
    margin = np.random.default_rng(5).normal(size=(600, classes)).astype(np.float32)
    booster, rows = model.get_booster(), xgboost.DMatrix(ROWS, base_margin=margin)
    for explain, options in (
        (forest.contributions, {"pred_contribs": True}),
        (forest.approx_contributions, {"pred_contribs": True, "approx_contribs": True}),
        (forest.interactions, {"pred_interactions": True}),
    ):
        expected = booster.predict(rows, **options)
        parts = explain(ROWS, base_margin=margin)
        assert parts.dtype == np.float32
        np.testing.assert_allclose(parts, expected, atol=1e-5)
        assert np.array_equal(explain(ROWS, base_margin=margin.tolist()), parts)
        out = np.empty_like(parts)
        assert explain(ROWS, base_margin=margin, out=out) is out and np.array_equal(out, parts)
        few = explain(ROWS, base_margin=margin, features=[3, 1])
        some = np.ix_([3, 1, 5], [3, 1, 5]) if "pred_interactions" in options else [3, 1, 5]
        assert np.array_equal(few, parts[(..., *some)] if isinstance(some, tuple) else parts[..., some])
        assert not np.array_equal(explain(ROWS), parts)
    if classes == 1:
        assert np.array_equal(
            forest.contributions(ROWS, base_margin=margin[:, 0]), forest.contributions(ROWS, base_margin=margin)
        )


def test_wrong_margins() -> None:
    model = xgboost.XGBRegressor(n_estimators=2, max_depth=2).fit(ROWS, TARGET)
    forest = forestvm.from_xgboost(model, contributions=True)
    for margin, error, message in (
        (np.zeros(599), forestvm.Usage, "has 599 rows"),
        (np.zeros(601), forestvm.Usage, "has 601 rows, and there are 600 rows to predict"),
        (np.zeros((600, 2)), forestvm.Usage, r"has the shape \(600, 2\): expected \(rows,\)"),
        (np.full(600, np.nan), forestvm.Usage, "row 0, output 0: nan is no finite number of float32"),
        (["a"] * 600, forestvm.UnsupportedInput, "holds values of type <U1, not numbers"),
    ):
        with pytest.raises(error, match=message):
            forest.contributions(ROWS, base_margin=margin)
    with pytest.raises(forestvm.Refused, match="are for models of XGBoost, and of LightGBM"):
        averaged = lightgbm.LGBMRegressor(
            boosting_type="rf", n_estimators=2, subsample=0.5, subsample_freq=1, verbose=-1
        ).fit(ROWS, TARGET)
        forestvm.from_lightgbm(averaged, contributions=True).contributions(ROWS, base_margin=np.zeros(600))


def test_approximate_of_xgboost() -> None:
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=4).fit(ROWS, np.digitize(TARGET, [-0.5, 0.5]))
    forest = forestvm.from_xgboost(model, approx_contributions=True)
    expected = model.get_booster().predict(xgboost.DMatrix(ROWS), pred_contribs=True, approx_contribs=True)
    parts = forest.approx_contributions(ROWS)
    assert parts.shape == (600, 3, 6) and parts.dtype == np.float32
    assert np.array_equal(parts, expected)
    with pytest.raises(forestvm.Refused, match="approx_contributions=True"):
        small_forest().approx_contributions(ROWS)


def test_of_lightgbm_classes() -> None:
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(ROWS, np.digitize(TARGET, [-0.5, 0.5]))
    forest = forestvm.from_lightgbm(model, contributions=True)
    parts = forest.contributions(ROWS)
    assert parts.shape == (600, 3, 6) and parts.dtype == np.float64
    expected = model.booster_.predict(ROWS, pred_contrib=True).reshape(600, 3, 6)
    np.testing.assert_allclose(parts, expected, atol=1e-12)
    assert np.array_equal(parts[..., -1], expected[..., -1])
    pairs = forestvm.from_lightgbm(model, interactions=True).interactions(ROWS)
    assert pairs.shape == (600, 3, 6, 6) and pairs.dtype == np.float64
    np.testing.assert_allclose(pairs.sum(axis=-1), parts, atol=1e-12)


def small_forest() -> forestvm.Forest:
    model = xgboost.XGBRegressor(n_estimators=5, max_depth=3).fit(ROWS, TARGET)
    return forestvm.from_xgboost(model, contributions=True)


def test_rows_of_every_kind_have_the_same_bits() -> None:
    scipy_sparse = pytest.importorskip("scipy.sparse")
    pandas = pytest.importorskip("pandas")
    forest = small_forest()
    rows = np.nan_to_num(ROWS, nan=1.5)
    expected = forest.contributions(rows)
    assert np.array_equal(forest.contributions(np.asfortranarray(rows)), expected)
    assert np.array_equal(forest.contributions(rows.astype(np.float64)), expected)
    assert np.array_equal(forest.contributions(pandas.DataFrame(rows)), expected)
    assert np.array_equal(forest.contributions(scipy_sparse.csr_matrix(rows)), expected)
    assert np.array_equal(np.concatenate([forest.contributions(rows[:7]), forest.contributions(rows[7:])]), expected)
    assert np.array_equal(forest.contributions(rows[:1])[0], forest.predict_one(rows[0], output="contributions"))


def test_out_and_dtype() -> None:
    forest = small_forest()
    out = np.empty((600, 6), dtype=np.float32)
    assert forest.contributions(ROWS, out=out) is out
    assert np.array_equal(out, forest.contributions(ROWS))
    wide = forest.contributions(ROWS, dtype=np.float64)
    assert wide.dtype == np.float64 and np.array_equal(wide.astype(np.float32), out)
    with pytest.raises(forestvm.Usage, match="shape"):
        forest.contributions(ROWS, out=np.empty((600, 5), dtype=np.float32))
    assert forest.contributions(ROWS[:0]).shape == (0, 6)


def test_a_program_keeps_them(tmp_path: Path) -> None:
    forest = small_forest()
    forest.save(tmp_path / "model.fvm")
    again = forestvm.load(tmp_path / "model.fvm", contributions=True)
    assert np.array_equal(again.contributions(ROWS), forest.contributions(ROWS))


def test_without_them_is_an_error(tmp_path: Path) -> None:
    model = xgboost.XGBRegressor(n_estimators=2).fit(ROWS, TARGET)
    forest = forestvm.from_xgboost(model)
    with pytest.raises(forestvm.Refused, match="contributions=True"):
        forest.contributions(ROWS)
    forest.save(tmp_path / "model.fvm")
    for asked in ("contributions", "interactions"):
        with pytest.raises(forestvm.Usage, match="without them"):
            forestvm.load(tmp_path / "model.fvm", **{asked: True})


def test_chosen_features_are_the_columns_of_all() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=list("abcde"))
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(frame, np.digitize(TARGET, [-0.5, 0.5]))
    forest = forestvm.from_lightgbm(model, interactions=True, approx_contributions=True)
    for method, order in ((forest.contributions, 1), (forest.approx_contributions, 1), (forest.interactions, 2)):
        whole = method(frame)
        for features, at in (
            (["b", "d"], [1, 3, 5]),
            (["d", 0, np.int32(1)], [3, 0, 1, 5]),
            ((4,), [4, 5]),
            (np.array([2, 1]), [2, 1, 5]),
            (list("abcde"), [0, 1, 2, 3, 4, 5]),
        ):
            expected = whole[..., at] if order == 1 else whole[..., at, :][..., at]
            assert np.array_equal(method(frame, features=features), expected)
            assert np.array_equal(method(ROWS[:7], features=features), expected[:7])
            out = np.empty(expected.shape)
            assert method(frame, features=features, out=out) is out and np.array_equal(out, expected)
        assert np.array_equal(method(frame), whole)
    with pytest.raises(forestvm.Usage, match="shape"):
        forest.contributions(frame, features=["a"], out=np.empty((600, 3, 6)))
    row_bytes = 3 * 2 * 2 * 8
    assert forest.interactions(frame, features=["a"], max_bytes=row_bytes).shape == (600, 3, 2, 2)
    with pytest.raises(forestvm.Usage, match="max_bytes|96 bytes"):
        forest.interactions(frame, features=["a"], max_bytes=row_bytes - 1)


def test_features_that_cannot_be_chosen_are_errors() -> None:
    forest = small_forest()
    for unknown in (["a"], [5], [-1], [True], [1.0], [None], [10**30]):
        with pytest.raises(forestvm.FeatureMismatch, match="has no feature") as caught:
            forest.contributions(ROWS, features=unknown)
        assert caught.value.where == "features" and caught.value.extra == (str(unknown[0]),)
    for wrong, text in (([], "no feature"), ([1, 2, 1], "feature 1 comes twice"), ("f1", "a list"), (3, "a list")):
        with pytest.raises(forestvm.Usage, match=text):
            forest.contributions(ROWS, features=wrong)


def test_the_strongest_terms_of_each_row() -> None:
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(ROWS, np.digitize(TARGET, [-0.5, 0.5]))
    forest = forestvm.from_lightgbm(model, interactions=True)
    parts, pairs = forest.contributions(ROWS), forest.interactions(ROWS)
    features, values = forest.contributions(ROWS, top=3)
    assert features.shape == values.shape == (600, 3, 3) and features.dtype == np.int64
    chosen, chosen_values = forest.contributions(ROWS, features=[4, 0, 2], top=2)
    couples, couple_values = forest.interactions(ROWS, top=4)
    assert couples.shape == (600, 3, 4, 2) and couple_values.shape == (600, 3, 4)
    every = [(i, j) for i in range(5) for j in range(i, 5)]
    for row, output in np.ndindex(600, 3):
        one, two = parts[row, output], pairs[row, output]
        best = sorted(range(5), key=lambda f: (-abs(one[f]), f))[:3]
        assert features[row, output].tolist() == best and values[row, output].tolist() == one[best].tolist()
        best = sorted((0, 2, 4), key=lambda f: (-abs(one[f]), f))[:2]
        assert chosen[row, output].tolist() == best and chosen_values[row, output].tolist() == one[best].tolist()
        both = sorted(every, key=lambda pair: (-abs(two[pair]), pair))[:4]
        assert couples[row, output].tolist() == [list(pair) for pair in both]
        assert couple_values[row, output].tolist() == [two[pair] for pair in both]
    for wrong in (0, 6, -1, True, 1.0, "2"):
        with pytest.raises(forestvm.Usage, match="top is .*: expected 1 to 5, the number of features"):
            forest.contributions(ROWS, top=wrong)
    with pytest.raises(forestvm.Usage, match="expected 1 to 3, the number of pairs"):
        forest.interactions(ROWS, features=[1, 2], top=4)
    with pytest.raises(forestvm.Usage, match="takes no out"):
        forest.contributions(ROWS, top=1, out=np.empty((600, 3, 6)))


def test_against_a_background() -> None:
    model = xgboost.XGBRegressor(n_estimators=8, max_depth=3).fit(ROWS, TARGET)
    background, rows = ROWS[:60], ROWS[60:90]
    forest = forestvm.from_xgboost(model, contributions=True, background=background)
    parts = forest.contributions(rows)
    np.testing.assert_allclose(parts, by_coalitions(model, rows, background), atol=1e-5)
    assert np.array_equal(forest.explain(rows).values, parts[:, :-1])
    again = forestvm.from_xgboost(model, contributions=True, background=background.tolist())
    assert np.array_equal(again.contributions(rows), parts)
    with pytest.raises(forestvm.Refused, match=r"its shape is \(60, 4\), but it must be \(rows, 5\)"):
        forestvm.from_xgboost(model, contributions=True, background=background[:, :4])
    with pytest.raises(forestvm.Refused, match=r"its shape is \(0, 5\)"):
        forestvm.from_xgboost(model, contributions=True, background=background[:0])
    for wrong, text in ((background[0], r"shape \(5,\)"), ({"a": [1]}, "columns with names"), ([["x"]], "no array")):
        with pytest.raises(forestvm.Usage, match=text):
            forestvm.from_xgboost(model, contributions=True, background=wrong)
    with pytest.raises(forestvm.Usage, match="contributions=True"):
        forestvm.from_xgboost(model, background=background)
    for contributions in (False, True):
        with pytest.raises(forestvm.Usage, match="interactions are not computed against a background"):
            forestvm.from_xgboost(model, contributions=contributions, interactions=True, background=background)
    with pytest.raises(forestvm.Refused, match="against a background, for which there are no interactions"):
        forest.interactions(rows)
    with pytest.raises(forestvm.Usage, match="this is a program"):
        forestvm.load(forest.to_bytes(), contributions=True, background=background)


def by_coalitions(model: xgboost.XGBRegressor, rows: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Returns the Shapley values of the games in which features that do not take part are those of the background."""
    features = rows.shape[1]
    worth = np.empty((1 << features, len(rows)))
    for coalition in range(1 << features):
        known = np.array([coalition >> f & 1 for f in range(features)], dtype=bool)
        mixed = np.where(known, rows[:, None, :], background[None, :, :]).reshape(-1, features)
        worth[coalition] = model.predict(mixed).reshape(len(rows), -1).mean(axis=1, dtype=np.float64)
    parts = np.zeros((len(rows), features + 1))
    for coalition in range(1 << features):
        size = coalition.bit_count()
        for f in range(features):
            if not coalition >> f & 1:
                weight = math.factorial(size) * math.factorial(features - 1 - size) / math.factorial(features)
                parts[:, f] += weight * (worth[coalition | 1 << f] - worth[coalition])
    parts[:, -1] = worth[0]
    return parts


def test_of_averaged_forests() -> None:
    options = {"n_estimators": 9, "num_leaves": 7, "verbose": -1, "subsample": 0.7, "subsample_freq": 1}
    for target in (TARGET, np.digitize(TARGET, [-0.5, 0.5])):
        kind = lightgbm.LGBMRegressor if target is TARGET else lightgbm.LGBMClassifier
        model = kind(boosting_type="rf", **options).fit(ROWS, target)
        forest = forestvm.from_lightgbm(model, interactions=True, approx_contributions=True)
        for method in (forest.contributions, forest.approx_contributions, forest.interactions):
            sums = method(ROWS)
            assert np.array_equal(method(ROWS, averaged=True), sums / 9)
            out = np.empty_like(sums)
            assert method(ROWS, averaged=True, out=out) is out and np.array_equal(out, sums / 9)
            numbers, largest = method(ROWS, top=2, averaged=True)
            expected, undivided = method(ROWS, top=2)
            assert np.array_equal(numbers, expected) and np.array_equal(largest, undivided / 9)
        raw = forest.contributions(ROWS, averaged=True).sum(axis=-1)
        np.testing.assert_allclose(raw, model.booster_.predict(ROWS, raw_score=True) / 9, atol=1e-12)
    boosted = forestvm.from_xgboost(xgboost.XGBRegressor(n_estimators=2).fit(ROWS, TARGET), contributions=True)
    with pytest.raises(forestvm.Refused, match="is for forests that average their trees") as raised:
        boosted.contributions(ROWS, averaged=True)
    assert raised.value.where == "averaged"

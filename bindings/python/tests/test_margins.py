"""Rows with margins of their own, against XGBoost's base_margin and LightGBM's init_score, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import DATA
from small_models import forms, normal_rows

import forestvm

lightgbm = pytest.importorskip("lightgbm")
pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
xgboost = pytest.importorskip("xgboost")

ROWS = normal_rows(2, 500)
TARGET = np.nan_to_num(ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2])
CLASSES = np.digitize(TARGET, [-0.5, 0.5])
MARGINS = np.random.default_rng(5).normal(size=(500, 3)).astype(np.float32)


def model_of(kind: str, **options: Any) -> Any:
    size = {"n_estimators": 7, "max_depth": 4}
    if kind == "classes":
        return xgboost.XGBClassifier(**size, **options).fit(ROWS, CLASSES), MARGINS
    if kind == "binary":
        return xgboost.XGBClassifier(**size, **options).fit(ROWS, CLASSES > 0), MARGINS[:, 0].copy()
    return xgboost.XGBRegressor(**size, **options).fit(ROWS, TARGET), MARGINS[:, 0].copy()


@pytest.fixture(scope="module")
def forest() -> forestvm.Forest:
    return forestvm.from_xgboost(model_of("regression")[0])


@pytest.mark.parametrize("kind", ["regression", "binary", "classes"])
def test_of_xgboost(kind: str) -> None:
    model, margins = model_of(kind)
    forest = forestvm.from_xgboost(model)
    expected = model.predict(ROWS, output_margin=True, base_margin=margins)
    assert np.array_equal(forest.predict_raw(ROWS, base_margin=margins), expected)
    assert not np.array_equal(forest.predict_raw(ROWS), expected)
    assert np.array_equal(forest.predict_raw(ROWS, base_margin=margins.astype(float)), expected)
    assert np.array_equal(forest.predict_raw(ROWS, base_margin=margins.tolist()), expected)
    assert np.array_equal(forest.predict(ROWS, output="raw", base_margin=margins), expected)
    if kind == "regression":
        assert np.array_equal(forest.predict(ROWS, base_margin=margins), expected)
        return
    probabilities = model.predict_proba(ROWS, base_margin=margins)
    np.testing.assert_array_max_ulp(forest.predict_proba(ROWS, base_margin=margins), probabilities, 2)
    assert np.array_equal(forest.predict_class(ROWS, base_margin=margins), model.predict(ROWS, base_margin=margins))


def test_of_multi_softmax() -> None:
    model, margins = model_of("classes", objective="multi:softmax")
    forest = forestvm.from_xgboost(model)
    assert np.array_equal(
        forest.predict_proba(ROWS, base_margin=margins), model.predict_proba(ROWS, base_margin=margins)
    )


def test_of_lightgbm() -> None:
    model = lightgbm.LGBMClassifier(n_estimators=7, verbose=-1).fit(ROWS, CLASSES)
    forest = forestvm.from_lightgbm(model, keep_leaves=True)
    margins = MARGINS.astype(float)
    # LightGBM's raw scores are sums from 0, and its training rows start from their init_score.
    sums = margins.copy()
    for tree, added in enumerate(np.moveaxis(forest.trees(ROWS), 1, 0)):
        sums[:, tree % 3] += added
    assert np.array_equal(forest.predict_raw(ROWS, base_margin=margins), sums)
    stages = forest.staged(ROWS, every=7, base_margin=margins)
    assert np.array_equal(stages[:, -1], sums)


FORMS = [*forms(), ("objects", lambda rows: rows.astype(object)), ("lists", lambda rows: rows.tolist())]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_rows_of_every_form(forest: forestvm.Forest, name: str, form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, margins = form(ROWS.astype(float)), MARGINS[:, 0].copy()
    assert np.array_equal(forest.predict(rows), forest.predict(ROWS)), name
    assert np.array_equal(forest.predict(rows, base_margin=margins), forest.predict(ROWS, base_margin=margins))
    # Blocks of 64 rows: each block takes the margins of its own rows.
    monkeypatch.setattr("forestvm._rows._BLOCK_BYTES", 1)
    assert np.array_equal(forest.predict(rows, base_margin=margins), forest.predict(ROWS, base_margin=margins))


def test_arrow_in_chunks_and_streams(forest: forestvm.Forest) -> None:
    margins = MARGINS[:, 0].copy()
    expected = forest.predict(ROWS, base_margin=margins)
    batches = [
        pyarrow.record_batch([ROWS[begin:end, i] for i in range(5)], names=[f"f{i}" for i in range(5)])
        for begin, end in ((0, 7), (7, 7), (7, 300), (300, 500))
    ]
    table = pyarrow.Table.from_batches(batches)
    assert np.array_equal(forest.predict(table, base_margin=margins), expected)
    stream = forest.predict_stream(table, base_margin=margins)
    for _ in range(2):  # each reading takes the margins from the first on
        read = pyarrow.RecordBatchReader.from_stream(stream).read_all()
        assert np.array_equal(read["prediction"].to_numpy(), expected)
    for wrong in (margins[:-1], np.append(margins, 0)):
        with pytest.raises(pyarrow.ArrowInvalid, match="base_margin: has"):
            pyarrow.RecordBatchReader.from_stream(forest.predict_stream(table, base_margin=wrong)).read_all()


def test_encoded_rows_and_series(forest: forestvm.Forest) -> None:
    margins = MARGINS[:, 0].copy()
    expected = forest.predict(ROWS, base_margin=margins)
    assert np.array_equal(forest.predict(forest.encode(ROWS), base_margin=margins), expected)
    assert np.array_equal(forest.predict(ROWS, base_margin=pandas.Series(margins)), expected)
    assert np.array_equal(forest.predict(ROWS, base_margin=margins[:, np.newaxis]), expected)
    assert np.array_equal(forest.predict(ROWS, base_margin=np.repeat(margins, 2)[::2]), expected)
    assert np.array_equal(forest.predict(ROWS, base_margin=None), forest.predict(ROWS))
    out = np.empty(500, np.float32)
    assert forest.predict(ROWS, base_margin=margins, out=out) is out and np.array_equal(out, expected)
    assert forest.predict(ROWS[:0], base_margin=margins[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("margins", "error", "said"),
    [
        (MARGINS[:499, 0], forestvm.Usage, "has 499 rows, and there are at least 500 rows to predict"),
        (np.zeros(501), forestvm.Usage, "has 501 rows, and there are 500 rows to predict"),
        (MARGINS, forestvm.Usage, r"has the shape \(500, 3\): expected \(rows,\)"),
        (1.5, forestvm.Usage, r"has the shape \(\): expected \(rows,\)"),
        (["a"] * 500, forestvm.UnsupportedInput, "holds values of type <U1, not numbers"),
        ([[1.0], [1.0, 2.0]], forestvm.UnsupportedInput, "is no array of numbers"),
        (np.where(np.arange(500) == 9, np.nan, 0), forestvm.Usage, "row 9, output 0: nan is no finite number of float"),
        (np.where(np.arange(500) == 9, 1e300, 0), forestvm.Usage, r"row 9, output 0: 1e\+300 is no finite number"),
        (np.ma.MaskedArray(np.zeros(500), mask=np.arange(500) == 3), forestvm.Usage, "row 3, output 0"),
    ],
)
def test_margins_that_are_refused(forest: forestvm.Forest, margins: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said) as raised:
        forest.predict(ROWS, base_margin=margins)
    assert raised.value.where == "base_margin"


def test_what_takes_no_margins(forest: forestvm.Forest) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'base_margin'"):
        forest.apply(ROWS, base_margin=MARGINS[:, 0])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'base_margin'"):
        forest.predict_one(ROWS[0], base_margin=1)  # type: ignore[call-arg]
    with pytest.raises(forestvm.Usage, match="margin"):
        forest.predict(ROWS, output="leaf", base_margin=MARGINS[:, 0])
    other = forestvm.load(DATA / "catboost" / "1.2.10_numbers" / "model.cbm")
    rows = np.zeros((2, other.num_features))
    with pytest.raises(forestvm.Refused, match="margin"):
        other.predict(rows, base_margin=np.zeros((2, other.num_outputs)))


def test_estimators_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from forestvm.sklearn import ForestClassifier, ForestRegressor

    model, margins = model_of("regression")
    assert np.array_equal(
        ForestRegressor(model).predict(ROWS, base_margin=margins), model.predict(ROWS, base_margin=margins)
    )
    model, margins = model_of("classes")
    estimator = ForestClassifier(model)
    assert np.array_equal(estimator.predict(ROWS, base_margin=margins), model.predict(ROWS, base_margin=margins))
    assert np.array_equal(
        estimator.decision_function(ROWS, margins), model.predict(ROWS, output_margin=True, base_margin=margins)
    )
    probabilities = estimator.predict_proba(ROWS, base_margin=margins)
    np.testing.assert_array_max_ulp(probabilities, model.predict_proba(ROWS, base_margin=margins), 2)
    assert np.array_equal(estimator.predict_log_proba(ROWS, base_margin=margins), np.log(probabilities))

"""accelerate: rows that trainers refuse, or convert in ways of their own, get the estimator's own answer or error."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from small_models import FEATURES, binary, target, training_rows

import forestvm

lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
pandas = pytest.importorskip("pandas")
polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
pytest.importorskip("sklearn")
from scipy import sparse  # noqa: E402
from sklearn import ensemble, tree  # noqa: E402
from sklearn.base import clone  # noqa: E402

ROWS = np.nan_to_num(training_rows(), nan=0.5)
NAMES = list("abcdef")
FRAME = pandas.DataFrame(ROWS, columns=NAMES)
LARGE = np.rint(ROWS * 1e17).astype(np.int64)  # most are no float64 numbers
METHODS = ("predict", "predict_proba", "decision_function", "apply")

ESTIMATORS = {
    "XGBRegressor": xgboost.XGBRegressor(n_estimators=3, max_depth=4, n_jobs=1),
    "XGBClassifier": xgboost.XGBClassifier(n_estimators=3, max_depth=4, n_jobs=1),
    "LGBMRegressor": lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, n_jobs=1),
    "LGBMClassifier": lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1),
    "DecisionTreeClassifier": tree.DecisionTreeClassifier(max_depth=4),
    "RandomForestRegressor": ensemble.RandomForestRegressor(n_estimators=3, random_state=0),
    "GradientBoostingClassifier": ensemble.GradientBoostingClassifier(n_estimators=3, random_state=0),
    "HistGradientBoostingClassifier": ensemble.HistGradientBoostingClassifier(max_iter=3),
    "HistGradientBoostingRegressor": ensemble.HistGradientBoostingRegressor(max_iter=3),
}


class Matrix(np.ndarray):
    """An array of another class."""


class Frame(pandas.DataFrame):
    """A frame of another class."""


def first_column(values: Any) -> Any:
    return FRAME.assign(a=values)


def named(names: Any) -> Any:
    frame = FRAME.copy()
    frame.columns = names
    return frame


def objects(first: Any) -> Any:
    return pandas.Series([first, *ROWS[1:, 0]], dtype=object)


POLARS = polars.DataFrame(FRAME)
SOME_LARGE = ROWS.copy()
SOME_LARGE[:3, 0] = 1e300, 1e39, 3.4028236e38

ARRAYS: dict[str, Any] = {
    "objects": ROWS.astype(object),
    "objects with None": np.where(ROWS > 1, None, ROWS),
    "texts": ROWS.astype(str),
    "bytes": ROWS.astype("S10"),
    "times": ROWS.astype("datetime64[s]"),
    "complex": ROWS.astype(complex),
    "float128": ROWS.astype(np.longdouble),
    "float16": ROWS.astype(np.float16),
    "other byte order, float32": ROWS.astype(">f4"),
    "other byte order, float64": ROWS.astype(">f8"),
    "other byte order, int32": ROWS.astype(">i4"),
    "large int64": LARGE,
    "large uint64": np.abs(LARGE).astype(np.uint64),
    "bool": ROWS > 0,
    "beyond float32": SOME_LARGE,
    "infinities": np.where(ROWS > 1, np.inf, ROWS),
    "negative zeros": np.where(ROWS == 0, -0.0, ROWS),
    "denormal": ROWS * 1e-310,
    "mask": np.ma.MaskedArray(ROWS, mask=ROWS > 1),
    "mask of nothing": np.ma.MaskedArray(ROWS),
    "matrix": np.matrix(ROWS),
    "subclass": ROWS.view(Matrix),
    "structured": np.array([tuple(row) for row in ROWS], dtype=[(name, "f8") for name in NAMES]),
    "lists": ROWS.tolist(),
    "strides": ROWS[::-1, ::-1],
    "CSR": sparse.csr_matrix(ROWS),
    "CSR array": sparse.csr_array(ROWS),
    "CSR of integers": sparse.csr_matrix(ROWS.astype(int)),
    "CSR of bool": sparse.csr_matrix(ROWS > 0),
    "CSR beyond float32": sparse.csr_matrix(SOME_LARGE),
    "CSR with NaN": sparse.csr_matrix(training_rows()),
    "CSC": sparse.csc_matrix(ROWS),
    "COO": sparse.coo_matrix(ROWS),
}
FRAMES: dict[str, Any] = {
    "objects": FRAME.astype(object),
    "a column of objects": first_column(FRAME.a.astype(object)),
    "None": first_column(objects(None)),
    "pandas.NA": first_column(objects(pandas.NA)),
    "a text": first_column(objects("1.5")),
    "texts": FRAME.astype(str),
    "categories": first_column(FRAME.a.astype("category")),
    "categories of integers": FRAME.assign(b=FRAME.b.astype(int).astype("category")),
    "nullable": FRAME.astype("Float64"),
    "nullable integers": FRAME.assign(b=pandas.array([None, *FRAME.b[1:].astype(int)], dtype="Int64")),
    "nullable bool": (FRAME > 0).astype("boolean"),
    "large nullable integers": pandas.DataFrame(LARGE, columns=NAMES).astype("Int64"),
    "Arrow": FRAME.astype("double[pyarrow]"),
    "Arrow with nulls": first_column(pandas.array([None, *ROWS[1:, 0]], dtype="double[pyarrow]")),
    "Arrow bool": (FRAME > 0).astype("bool[pyarrow]"),
    "times": first_column(pandas.to_datetime(np.arange(len(FRAME)))),
    "durations": first_column(pandas.to_timedelta(np.arange(len(FRAME)))),
    "periods": first_column(pandas.period_range("2020", periods=len(FRAME), freq="D")),
    "intervals": first_column(pandas.cut(FRAME.a, 4)),
    "sparse": FRAME.astype(pandas.SparseDtype("float64", 0.0)),
    "a sparse column": first_column(FRAME.a.astype(pandas.SparseDtype("float64", 0.0))),
    "float128": first_column(FRAME.a.astype(np.longdouble)),
    "complex": FRAME.astype(complex),
    "float16": first_column(FRAME.a.astype(np.float16)),
    "other byte order": first_column(FRAME.a.astype(">f8")),
    "large integers": FRAME.assign(b=LARGE[:, 1]),
    "float32 and int32": FRAME.astype("f4").assign(b=(ROWS[:, 1] * 1e8).astype(np.int32)),
    "float32 and int64": FRAME.astype("f4").assign(b=LARGE[:, 1]),
    "reversed": FRAME[NAMES[::-1]],
    "MultiIndex": named(pandas.MultiIndex.from_tuples([("g", name) for name in NAMES])),
    "tuples": named([("g", name) for name in NAMES]),
    "texts of tuples": named([str(("g", name)) for name in NAMES]),
    "texts of pairs": named([f"g {name}" for name in NAMES]),
    "numbers as names": named(list(range(FEATURES))),
    "numbers and texts as names": named([*NAMES[:-1], FEATURES - 1]),
    "one name twice": named(["a", *NAMES[:1], *NAMES[2:]]),
    "subclass": Frame(FRAME),
    "beyond float32": pandas.DataFrame(SOME_LARGE, columns=NAMES),
    "polars": POLARS,
    "polars, texts": POLARS.with_columns(polars.col("a").cast(polars.String)),
    "polars, nulls alone": POLARS.with_columns(polars.lit(None).alias("a")),
    "polars, dates": POLARS.with_columns(polars.col("b").cast(polars.Int32).cast(polars.Date)),
    "polars, decimals": POLARS.with_columns(polars.col("a").cast(polars.Decimal(10, 2))),
    "polars, large integers": polars.DataFrame(LARGE, schema=NAMES),
    "polars, bool": polars.DataFrame(FRAME > 0),
    "polars, lazy": POLARS.lazy(),
    "Arrow table": pyarrow.Table.from_pandas(FRAME),
    "Arrow batch": pyarrow.RecordBatch.from_pandas(FRAME),
    "Arrow float16": pyarrow.Table.from_pandas(FRAME.astype("f2")),
    "Arrow dictionary": pyarrow.Table.from_pandas(FRAME.assign(a=FRAME.a.astype("category"))),
    "Arrow null column": pyarrow.Table.from_pandas(FRAME.assign(a=None)),
    "Arrow times": pyarrow.Table.from_pandas(first_column(pandas.to_datetime(np.arange(len(FRAME))))),
}


def outcome(estimator: Any, method: str, rows: Any) -> tuple[Any, set[str]]:
    """Returns what a call gives, or the class and the text of its error, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result: Any
        try:
            result = getattr(estimator, method)(rows)
        except Exception as error:  # estimators raise errors of any class
            result = (type(error), re.sub(r"\[\d\d:\d\d:\d\d\]|0x[0-9a-f]+", "", str(error))[:200])
    return result, {str(warning.message) for warning in caught}


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple):  # an error
        assert ours == theirs
        return
    assert type(ours) is type(theirs) and ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if theirs.dtype.kind == "f":
        ulp = np.spacing(np.maximum(np.abs(theirs), 0.5))
        assert (np.abs(ours - theirs) <= 4 * ulp).all()
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("fitted_on", ["arrays", "frames", "pairs of names"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_odd_rows_get_what_the_estimator_gives(name: str, fitted_on: str) -> None:
    labels = target(ROWS) if name.endswith("Regressor") else binary(ROWS)
    training = {"arrays": ROWS, "frames": FRAME, "pairs of names": FRAMES["MultiIndex"]}[fitted_on]
    if name.startswith("LGBM") and fitted_on == "pairs of names":
        with pytest.raises(lightgbm.basic.LightGBMError, match="JSON characters"):
            clone(ESTIMATORS[name]).fit(training, labels)
        return
    model = clone(ESTIMATORS[name]).fit(training, labels)
    fast = forestvm.accelerate(model)
    for kind, rows in [*ARRAYS.items(), *FRAMES.items()]:
        for method in METHODS:
            if hasattr(model, method):
                theirs, their_warnings = outcome(model, method, rows)
                ours, our_warnings = outcome(fast, method, rows)
                try:
                    assert_same(ours, theirs)
                    assert our_warnings == their_warnings
                except AssertionError as error:
                    raise AssertionError(f"{method} of {kind}: {ours!r} and {theirs!r}") from error


def test_the_log_names_the_column() -> None:
    model = xgboost.XGBRegressor(n_estimators=2, n_jobs=1).fit(FRAME, target(ROWS))
    fast = forestvm.accelerate(model)
    for rows in (FRAMES["None"], FRAMES["polars, dates"], FRAMES["categories"]):
        outcome(fast, "predict", rows)
    outcome(fast, "apply", ROWS)
    assert [(entry.method, entry.reason) for entry in forestvm.log(fast)] == [
        ("predict", "the column 'a' has values of type object, not plain numbers"),
        ("predict", "the column 'b' has values of type Date, not plain numbers"),
        ("predict", "the columns of categories are not the model's"),
        ("apply", "the rows have no names, and the model has some"),
    ]

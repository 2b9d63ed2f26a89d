"""Numbers that stand for missing values, and encoded rows, in every form of frames and tables."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA
from frames import FRAMES, arrow_table

import forestvm

Array = np.ndarray[Any, Any]


@pytest.fixture
def forest(breast_cancer: Path) -> forestvm.Forest:
    return forestvm.load(breast_cancer, threads=1)


def test_missing_numbers_of_frames(forest: forestvm.Forest, rows: Array) -> None:
    names = list(forest.feature_names)
    holes = np.where(np.random.default_rng(1).random(rows.shape) < 0.2, np.float32(np.nan), rows)
    filled = np.where(np.isnan(holes), np.float32(9999), holes)
    wanted = forest.predict(holes)
    assert not np.array_equal(forest.predict(filled), wanted)
    for name, make in FRAMES.items():
        if name == "Arrow, dictionaries":
            continue
        try:
            frame = make(filled, names)
        except pytest.skip.Exception:
            continue  # the package is absent, which test_the_packages_are_there reports
        for number in (9999, 9999.0, np.float32(9999)):
            assert np.array_equal(forest.predict(frame, missing=number), wanted), name
        assert np.array_equal(forest.predict_proba(make(filled[:3], names), missing=9999)[:, 1], wanted[:3]), name
        assert bytes(forest.encode(frame, missing=9999)) == bytes(forest.encode(holes)), name
        with pytest.raises(forestvm.Usage, match="missing is '0', not a number"):
            forest.predict(frame, missing="0")


def test_missing_numbers_of_streams(forest: forestvm.Forest, rows: Array) -> None:
    arrow = pytest.importorskip("pyarrow")
    holes = np.where(np.random.default_rng(1).random(rows.shape) < 0.2, np.float32(9999), rows)
    table = arrow_table(holes, list(forest.feature_names))
    wanted = forest.predict(table, missing=9999)
    assert not np.array_equal(wanted, forest.predict(table))
    for missing in (9999, np.float32(9999)):
        stream = forest.predict_stream(table, missing=missing)
        for _ in range(2):
            answers = arrow.RecordBatchReader.from_stream(stream).read_all()
            assert answers["prediction"].to_numpy().tobytes() == wanted.tobytes()
    for missing in (None, np.nan):
        answers = arrow.table(forest.predict_stream(table, missing=missing))
        assert answers["prediction"].to_numpy().tobytes() == forest.predict(table).tobytes()
    with pytest.raises(forestvm.Usage, match="missing is '0', not a number"):
        forest.predict_stream(table, missing="0")


def test_missing_numbers_of_arrow_are_compared_as_the_trainer_compares() -> None:
    """XGBoost rounds to float32 first. Nulls, offsets and bits stay what they are."""
    arrow, xgboost = pytest.importorskip("pyarrow"), pytest.importorskip("xgboost")
    random = np.random.default_rng(4)
    columns = {
        "float64": random.choice([0.1, float(np.float32(0.1)), 0.2, np.nan], 500),
        "int64": random.choice([2**24, 2**24 + 1, 3], 500),
        "bool": random.random(500) < 0.5,
        "int8": random.integers(-2, 3, 500).astype(np.int8),
    }
    rows = np.stack([column.astype(np.float64) for column in columns.values()], axis=1)
    target = np.nan_to_num((rows - np.nanmean(rows, axis=0)) / np.nanstd(rows, axis=0)).sum(axis=1)
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(rows, target), 20)
    booster.feature_names = list(columns)
    forest = forestvm.from_xgboost(booster, threads=1)
    table = arrow.table({name: arrow.array(column, from_pandas=True) for name, column in columns.items()})
    changed = 0
    for missing in (0, 1, 0.1, 2**24 + 1, -2):
        matrix = xgboost.DMatrix(rows, missing=missing, feature_names=list(columns))
        wanted = booster.predict(matrix)
        changed += bool((wanted != forest.predict(rows)).any())
        for begin in (0, 1, 3, 8, 77):
            for given in (table[begin:], table[begin:].combine_chunks(), table[begin:].to_batches()[0]):
                assert forest.predict(given, missing=missing).tobytes() == wanted[begin:].tobytes(), (missing, begin)
                assert forest.predict(forest.encode(given, missing=missing)).tobytes() == wanted[begin:].tobytes()
    assert changed >= 3


def test_a_missing_number_that_may_be_a_code_is_refused() -> None:
    """XGBoost compares it with the codes that a frame happens to use."""
    pandas, xgboost = pytest.importorskip("pandas"), pytest.importorskip("xgboost")
    random = np.random.default_rng(4)
    frame = pandas.DataFrame({"a": random.choice(["x", "y", "z"], 200), "b": random.integers(0, 4, 200)})
    frame["a"] = frame.a.astype("category")
    model = xgboost.XGBRegressor(n_jobs=1, n_estimators=3, enable_categorical=True).fit(frame, frame.b)
    forest = forestvm.from_xgboost(model, threads=1)
    frames = [frame]
    if importlib.util.find_spec("pyarrow") is not None:
        arrow = importlib.import_module("pyarrow")
        frames.append(arrow.Table.from_pandas(frame, preserve_index=False))
    for given in frames:
        for missing in (0, 2.0):
            with pytest.raises(forestvm.UnsupportedInput, match="may be the code of a category"):
                forest.predict(given, missing=missing)
            if hasattr(given, "schema"):
                with pytest.raises(Exception, match="may be the code of a category"):
                    arrow.RecordBatchReader.from_stream(forest.predict_stream(given, missing=missing)).read_all()
        for missing in (3, 0.5, -1):
            model.set_params(missing=missing)
            assert forest.predict(given, missing=missing).tobytes() == model.predict(frame).tobytes(), missing
    model.set_params(missing=0)
    fast = forestvm.accelerate(model)
    assert fast.predict(frame).tobytes() == model.predict(frame).tobytes()
    assert "may be the code of a category" in forestvm.log(fast)[0].reason


def test_encoded_chunks_of_any_size(forest: forestvm.Forest, rows: Array) -> None:
    """Blocks of 64 rows are filled by several chunks, of tables and of streams whose length is not known."""
    arrow = pytest.importorskip("pyarrow")
    table = arrow_table(np.concatenate([rows, rows]), list(forest.feature_names))
    wanted = bytes(forest.encode(np.concatenate([rows, rows])))
    for sizes in ((1,), (7, 64), (63, 1, 0, 65), (128, 5), (300,)):
        parts, begin = [], 0
        while begin < len(table):
            parts.append(table.slice(begin, sizes[len(parts) % len(sizes)]))
            begin += len(parts[-1])
        chunks = arrow.concat_tables(parts)
        stream = arrow.RecordBatchReader.from_batches(table.schema, chunks.to_batches())
        assert bytes(forest.encode(chunks)) == wanted, sizes
        encoded = forest.encode(stream)
        assert (bytes(encoded), len(encoded)) == (wanted, len(table)), sizes
    for empty in (table[:0], arrow.RecordBatchReader.from_batches(table.schema, [])):
        assert len(forest.encode(empty)) == 0
    with pytest.raises(forestvm.FeatureMismatch, match="mean radius"):
        forest.encode(table.drop_columns(["mean radius"]))
    with pytest.raises(forestvm.Refused, match="no encoder"):
        forestvm.load(DATA / "breast_cancer" / "model.json", schedule="layout(tree, sparse8)").encode(table[:0])


def test_an_integer_beyond_float64_does_not_stand_for_missing_values() -> None:
    forest = forestvm.load(DATA / "breast_cancer" / "model.json")
    with pytest.raises(forestvm.Usage, match="missing is an integer that exceeds all float64 numbers"):
        forest.predict(np.zeros((1, forest.num_features)), missing=10**400)

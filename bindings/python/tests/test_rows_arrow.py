"""Fast ways of reading tables of Arrow and polars: what they remember of the last table must fit the next one."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA

import forestvm

pa = pytest.importorskip("pyarrow")
polars = pytest.importorskip("polars")

Array = np.ndarray[Any, Any]


@pytest.fixture
def forest(breast_cancer: Path) -> forestvm.Forest:
    return forestvm.load(breast_cancer, threads=1)


@pytest.fixture
def small(rows: Array) -> Array:
    """Returns rows of integers that all types of numbers can represent. Some are missing."""
    small = np.abs(rows[:9]).clip(0, 100).astype(int).astype(np.float32)
    small[3:, ::4] = np.nan
    return small


def table_of(rows: Array, names: list[str], types: list[Any] | None = None) -> Any:
    types = types or [pa.float32()]
    columns = [pa.array(rows[:, i], types[i % len(types)], from_pandas=True) for i in range(len(names))]
    return pa.table(columns, names=names)


def frame_of(rows: Array, names: list[str], types: list[Any] | None = None) -> Any:
    types = types or [polars.Float32]
    columns = [[None if np.isnan(number) else float(number) for number in column] for column in rows.T]
    series = [polars.Series(name, columns[i]).cast(types[i % len(types)]) for i, name in enumerate(names)]
    return polars.DataFrame(series)


def streamed(frame: Any) -> Any:
    """Returns an object that has the frame's stream alone."""

    class Streamed:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return frame.__arrow_c_stream__(requested_schema)

    return Streamed()


def test_tables_of_other_types_follow_each_other(forest: forestvm.Forest, small: Array) -> None:
    names = list(forest.feature_names)
    wanted = forest.predict(small)
    schemas = [[pa.float32()], [pa.float64()], [pa.int8(), pa.float32()], [pa.uint64(), pa.float64(), pa.int16()]]
    tables = [table_of(small, names, types) for types in schemas]
    tables += [pa.table([column.dictionary_encode() for column in table.columns], names=names) for table in tables]
    tables += [table.cast(table.schema.with_metadata({"a": "b"})) for table in tables[:2]]
    order = np.arange(len(names))[::-1]
    reversed_ = table_of(small[:, order], [names[i] for i in order])
    for _ in range(2):
        for table in (*tables, reversed_, *tables[::-1], streamed(tables[2]), frame_of(small, names), reversed_):
            parts = [table, *([table[:1], table[1:3]] if hasattr(table, "slice") else [])]
            parts += table.to_batches() if hasattr(table, "to_batches") else []
            for part, expected in zip(parts, (wanted, wanted[:1], wanted[1:3], wanted)):
                assert np.array_equal(forest.predict(part), expected)
    swapped = table_of(small, [names[1], names[0], *names[2:]])
    assert np.array_equal(forest.predict(swapped), forest.predict(small[:, [1, 0, *range(2, len(names))]]))
    with pytest.raises(forestvm.UnsupportedInput, match=names[3]):
        forest.predict(tables[0].set_column(3, names[3], pa.array([b"a"] * len(small))))
    with pytest.raises(forestvm.FeatureMismatch):
        forest.predict(tables[0].rename_columns(["other", *names[1:]]))
    assert np.array_equal(forest.predict(tables[0]), wanted)


class OneArray:
    """An object with one array, which it gives or refuses, and perhaps a stream."""

    def __init__(self, batch: Any, error: Exception | None = None) -> None:
        self._batch, self._error = batch, error

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        if self._error is not None:
            raise self._error
        return self._batch.__arrow_c_array__(requested_schema)


class ArrayOrStream(OneArray):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._batch.__arrow_c_stream__(requested_schema)


class RecordBatch(OneArray):
    """Stands for the class of a release of pyarrow that does not export an array without its schema."""

    __module__ = "pyarrow.lib"

    @property
    def schema(self) -> Any:
        return self._batch.schema


def test_arrays_are_taken_without_a_stream(forest: forestvm.Forest, small: Array) -> None:
    names = list(forest.feature_names)
    batch = table_of(small, names).to_batches()[0]
    wanted = forest.predict(small)
    for _ in range(2):
        for given in (
            batch,
            RecordBatch(batch),
            OneArray(batch),
            ArrayOrStream(batch),
            ArrayOrStream(batch, ValueError("2 chunks")),
        ):
            for _ in range(2):
                assert np.array_equal(forest.predict(given), wanted)
            answers = pa.RecordBatchReader.from_stream(forest.predict_stream(given)).read_all()
            assert np.array_equal(answers.column(0).to_numpy(), wanted)
        with pytest.raises(ValueError, match="2 chunks"):
            forest.predict(OneArray(batch, ValueError("2 chunks")))
        for stop in (KeyboardInterrupt(), MemoryError()):
            with pytest.raises(type(stop)):
                forest.predict(ArrayOrStream(batch, stop))
    assert np.array_equal(forest.predict(batch[2:5]), wanted[2:5])


FRAME_TYPES = [
    [polars.Float32],
    [polars.Float64],
    [polars.Int64],
    [polars.Int8, polars.Float32, polars.UInt32],
    [polars.UInt64, polars.Float64, polars.Int16, polars.Float32],
]


@pytest.mark.parametrize("name", ["breast_cancer", "4.7.0_classes"])
def test_few_rows_of_polars_are_read_as_numbers(name: str, request: pytest.FixtureRequest) -> None:
    path = DATA / "breast_cancer" / "model.json" if name == "breast_cancer" else DATA / "lightgbm" / name / "model.txt"
    forest = forestvm.load(path, threads=1)
    names = list(forest.feature_names)
    small = np.random.default_rng(3).integers(0, 100, (9, len(names))).astype(np.float32)
    small[3:, ::4] = np.nan
    order = np.random.default_rng(4).permutation(len(names))
    frames = [frame_of(small, names, types) for types in FRAME_TYPES]
    frames += [frame[[names[i] for i in order]] for frame in frames]
    more = frames[1].with_columns(other=polars.lit("a"))
    wanted = {output: forest.predict(small, output=output) for output in ("value", "raw", "class", "leaf", "proba")}
    assert np.array_equal(forest.predict(frames[0]), wanted["value"])
    with pytest.raises(forestvm.FeatureMismatch):
        forest.predict(more[:1])
    for frame in frames:
        forest.predict(frame[:1])  # makes the columns known
    for frame in (*frames, more):
        options = {"extra": "ignore"} if frame is more else {}
        forest.predict(frame, **options)
        for count in (1, 2, 8):
            part = frame[-count:]
            before = forest.predict(streamed(part), **options)
            forest.predict(frame, **options)
            with pytest.MonkeyPatch.context() as patch:
                patch.delattr(polars.DataFrame, "__arrow_c_stream__")
                for output, numbers in wanted.items():
                    got = forest.predict(part, output=output, **options)
                    assert (got.dtype, got.tobytes()) == (numbers.dtype, numbers[-count:].tobytes()), (count, output)
                out = np.empty(before.shape)
                assert forest.predict(part, out=out, **options) is out
            assert np.array_equal(out, before)
    assert forest.predict(frames[0][:0]).shape == (0, *wanted["value"].shape[1:])


def test_few_rows_of_polars_that_are_no_numbers(forest: forestvm.Forest, small: Array) -> None:
    """The columns have the names of the last frame's columns, and other types."""
    names = list(forest.feature_names)
    frame = frame_of(small[:3], names)
    wanted = forest.predict(small[:3])
    day = datetime.datetime(2020, 1, 1)
    bad = {
        "Date": day.date(),
        "Datetime": day,
        "Duration": datetime.timedelta(1),
        "Time": day.time(),
        "Decimal": Decimal("1.5"),
        "String": "1",
        "Binary": b"1",
        "List": [1.0],
        "Struct": {"a": 1.0},
    }
    for value in bad.values():
        assert np.array_equal(forest.predict(frame), wanted)
        with pytest.raises(forestvm.UnsupportedInput, match=names[2]):
            forest.predict(frame.with_columns(polars.Series(names[2], [value] * 3)))
    flags = frame.with_columns(polars.Series(names[2], [True, None, False]))
    numbers = small[:3].copy()
    numbers[:, 2] = [1, np.nan, 0]
    assert np.array_equal(forest.predict(flags), forest.predict(numbers))
    for wrong in (frame.rename({names[0]: "other"}), frame.drop(names[0]), frame.with_columns(other=1)):
        with pytest.raises(forestvm.FeatureMismatch):
            forest.predict(wrong)
    swapped = frame.rename({names[0]: "x"}).rename({names[1]: names[0]}).rename({"x": names[1]})
    assert np.array_equal(forest.predict(swapped), forest.predict(small[:3, [1, 0, *range(2, len(names))]]))
    assert np.array_equal(forest.predict(swapped, columns="position"), wanted)
    assert np.array_equal(forest.predict(frame), wanted)


def test_few_rows_of_polars_with_large_integers() -> None:
    names = ["a", "b", "c"]
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    large = np.array([2**24 + 1, 2**24 + 3, 2**53 - 1, -(2**53), 2**62 + 1, -(2**60) - 1, 2**53 + 2**30 + 1])
    training = np.stack([large.astype(float), np.arange(7.0), np.ones(7)], axis=1).repeat(20, axis=0)
    target = np.arange(7).repeat(20) % 3
    matrix = xgboost.DMatrix(training.astype(np.float32), target, feature_names=names)
    single = forestvm.load(bytes(xgboost.train({"nthread": 1}, matrix, 5).save_raw("ubj")), threads=1)
    data = lightgbm.Dataset(training, target, feature_name=names)
    booster = lightgbm.train({"verbose": -1, "num_threads": 1, "min_data_in_leaf": 1}, data, 5)
    double = forestvm.load(booster.model_to_string().encode(), threads=1)
    for forest in (single, double):
        for number in large.tolist():
            frame = polars.DataFrame({"a": [number], "b": [3], "c": [1.0]})
            forest.predict(polars.DataFrame({"a": [1], "b": [3], "c": [1.0]}))  # makes the columns known
            if forest is double and float(number) != number:
                with pytest.raises(forestvm.Refused, match=str(abs(number))):
                    forest.predict(frame)
                continue
            answers = forest.predict(frame)
            assert answers.tobytes() == forest.predict(streamed(frame)).tobytes()
            rounded = np.array([[np.float32(number) if forest is single else number, 3, 1]], dtype="float64")
            assert answers.tobytes() == forest.predict(rounded).tobytes()


def test_few_rows_of_polars_with_texts() -> None:
    """A model with named categories takes a frame with codes and then a frame with texts in the same columns."""
    lightgbm, pandas = pytest.importorskip("lightgbm"), pytest.importorskip("pandas")
    random = np.random.default_rng(1)
    colours = random.choice(["red", "green", "blue"], 300)
    frame = pandas.DataFrame({"x": random.normal(size=300), "colour": pandas.Categorical(colours)})
    target = (colours == "red") * 2.0 + frame.x
    booster = lightgbm.train({"verbose": -1, "num_threads": 1}, lightgbm.Dataset(frame, target), 5)
    forest = forestvm.load(booster.model_to_string().encode(), threads=1)
    wanted = booster.predict(frame)
    codes = polars.DataFrame({"x": frame.x.to_numpy(), "colour": frame.colour.cat.codes.to_numpy()})
    texts = polars.DataFrame({"x": frame.x.to_numpy(), "colour": colours.tolist()})
    for i in range(6):
        assert forest.predict(codes[i]) == wanted[i]
        assert forest.predict(texts[i]) == wanted[i]
        assert forest.predict(texts[i].cast({"colour": polars.Categorical})) == wanted[i]


def test_a_table_whose_stream_has_another_length_is_refused(
    forest: forestvm.Forest, small: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = list(forest.feature_names)
    frame = polars.concat([frame_of(small, names)] * 2, rechunk=False)
    wanted = forest.predict(np.concatenate([small, small]))
    assert np.array_equal(forest.predict(frame), wanted)
    for length, message in ((5, "more rows"), (17, "more rows"), (19, "fewer rows")):
        with monkeypatch.context() as patch:
            patch.setattr(polars.DataFrame, "__len__", lambda self: length)
            with pytest.raises(forestvm.Usage, match=message):
                forest.predict(frame)
    with pytest.raises(forestvm.Usage, match="^out"):
        forest.predict(frame, out=np.empty(17, np.float32))
    out = np.empty(18, np.float32)
    assert np.array_equal(forest.predict(frame, out=out), wanted)

"""Frames and tables: pandas, polars, Arrow, DuckDB, dictionaries; names and categories."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import DATA
from frames import FRAMES, arrow_chunks, arrow_table, pandas_frame, polars_chunks, polars_frame, structured

import forestvm
from forestvm import _frames

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow", "duckdb"])
def test_the_packages_are_there(package: str) -> None:
    pytest.importorskip(package)


@pytest.fixture
def forest(breast_cancer: Path) -> forestvm.Forest:
    return forestvm.load(breast_cancer, threads=1)


@pytest.fixture(params=[name for name in FRAMES if name != "structured"])
def make(request: pytest.FixtureRequest) -> Callable[[Array, list[str]], Any]:
    return FRAMES[request.param]


def test_missing_and_extra_columns(
    forest: forestvm.Forest, rows: Array, make: Callable[[Array, list[str]], Any]
) -> None:
    names = list(forest.feature_names)
    wanted = forest.predict(rows)
    with pytest.raises(forestvm.FeatureMismatch) as mismatch:
        forest.predict(make(rows[:, 2:], names[2:]))
    assert mismatch.value.missing == tuple(names[:2])
    assert mismatch.value.extra == ()
    assert mismatch.value.expected == forest.feature_names
    more = np.concatenate([rows[:, :1], rows], axis=1)
    with pytest.raises(forestvm.FeatureMismatch) as mismatch:
        forest.predict(make(more, ["other", *names]))
    assert mismatch.value.extra == ("other",)
    assert np.array_equal(forest.predict(make(more, ["other", *names]), extra="ignore"), wanted)
    with pytest.raises(forestvm.FeatureMismatch):
        forest.predict(make(rows, ["other", *names[1:]]), extra="ignore")
    renamed = make(rows, [f"x{i}" for i in range(30)])
    with pytest.raises(forestvm.FeatureMismatch):
        forest.predict(renamed)
    assert np.array_equal(forest.predict(renamed, columns="position"), wanted)
    with pytest.raises(forestvm.FeatureMismatch):
        forest.predict(make(more, ["other", *names]), columns="position")
    for _ in range(3):  # the order of the columns is remembered, and forgotten when it changes
        for order in (np.arange(30), np.arange(30)[::-1]):
            frame = make(rows[:, order], [names[i] for i in order])
            assert np.array_equal(forest.predict(frame), wanted)
    for options in ({"columns": "order"}, {"extra": "drop"}, {"missing": "0"}):
        with pytest.raises(forestvm.Usage):
            forest.predict(make(rows, names), **options)


def test_outputs_of_frames(forest: forestvm.Forest, rows: Array, make: Callable[[Array, list[str]], Any]) -> None:
    names = list(forest.feature_names)
    for output in ("value", "raw", "class", "leaf", "proba"):
        wanted = forest.predict(rows, output=output)
        got = forest.predict(make(rows, names), output=output)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert np.array_equal(got, wanted)
        assert forest.predict(make(rows[:0], names), output=output).shape == (0, *wanted.shape[1:])
    out = np.empty(len(rows), dtype=np.float64)
    assert forest.predict(make(rows, names), out=out) is out
    assert np.array_equal(out, forest.predict(rows, dtype="float64"))
    with pytest.raises(forestvm.Usage, match="^out"):
        forest.predict(make(rows, names), out=np.empty(3, dtype=np.float32))


def test_columns_twice(forest: forestvm.Forest, rows: Array) -> None:
    names = list(forest.feature_names)
    for make in (pandas_frame, arrow_table):
        with pytest.raises(forestvm.FeatureMismatch, match="several columns"):
            forest.predict(make(np.concatenate([rows, rows[:, :1]], axis=1), [*names, names[0]]))


def test_names_that_lightgbm_writes_with_underscores() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    frame = pandas_frame(rows, ["mean size", "b", "c"])
    booster = lightgbm.train({"verbose": -1, "num_threads": 1}, lightgbm.Dataset(frame, rows[:, 0] - rows[:, 2]), 5)
    forest = forestvm.load(booster.model_to_string().encode())
    assert np.array_equal(forest.predict(frame[["c", "mean size", "b"]]), booster.predict(frame))


def test_names_that_the_trainer_made_up_match_by_position() -> None:
    xgboost = pytest.importorskip("xgboost")
    rows = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    matrix = xgboost.DMatrix(rows, rows[:, 0], feature_names=["0", "1", "2"])
    forest = forestvm.load(bytes(xgboost.train({"nthread": 1}, matrix, 3).save_raw("ubj")))
    wanted = forest.predict(rows)
    assert np.array_equal(forest.predict(pandas_frame(rows, ["x", "y", "z"])), wanted)
    assert np.array_equal(forest.predict(pandas_frame(rows[:, ::-1], ["2", "1", "0"])), wanted)


def test_columns_without_numbers_are_refused_by_name(forest: forestvm.Forest, rows: Array) -> None:
    names = list(forest.feature_names)
    pandas = pytest.importorskip("pandas")
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    frame = pandas_frame(rows, names)
    texts = ["a"] * len(rows)
    dates = pandas.date_range("2020-01-01", periods=len(rows))
    for bad in (
        frame.assign(**{names[3]: texts}),
        frame.assign(**{names[3]: dates}),
        frame.assign(**{names[3]: pandas.Categorical(texts)}),
        polars_frame(rows, names).with_columns(polars.lit("a").alias(names[3])),
        arrow_table(rows, names).set_column(3, names[3], arrow.array(dates)),
        {**dict(zip(names, rows.T)), names[3]: texts},
        {**dict(zip(names, rows.T)), names[3]: [1j] * len(rows)},
    ):
        with pytest.raises(forestvm.UnsupportedInput, match=names[3]) as error:
            forest.predict(bad)
        assert names[3] in error.value.where
    with pytest.raises(forestvm.UnsupportedInput, match="lengths"):
        forest.predict({**dict(zip(names, rows.T)), names[3]: rows[:5, 3]})
    for bad in (arrow_table(rows, names)[names[0]], frame[names[0]]):
        with pytest.raises(forestvm.UnsupportedInput):
            forest.predict(bad)


def test_a_text_among_numbers_is_named(forest: forestvm.Forest, rows: Array) -> None:
    """The column has no categories, so that the message must not speak of their codes."""
    names = list(forest.feature_names)
    pandas = pytest.importorskip("pandas")
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    rows = rows[:3]
    frame = pandas_frame(rows, names)
    row = dict(zip(names, rows[0].tolist()))
    for bad in (
        frame.assign(**{names[3]: [1.5, "n/a", "other"]}),
        frame.assign(**{names[3]: pandas.Series([None, "n/a", "other"], dtype="string")}),
        frame.assign(**{names[3]: pandas.Categorical([1.5, "n/a", 2], categories=[1.5, 2, "n/a"])}),
        polars_frame(rows, names).with_columns(polars.Series(names[3], [None, "n/a", "1"])),
        polars_frame(rows, names).with_columns(polars.Series(names[3], [None, "n/a", None], polars.Categorical)),
        arrow_table(rows, names).set_column(3, names[3], arrow.array([None, "n/a", "1"])),
        arrow_table(rows, names).set_column(3, names[3], arrow.array([None, "n/a", "1"]).dictionary_encode()),
        {**dict(zip(names, rows.T)), names[3]: [1.5, "n/a", None]},
        {**row, names[3]: "n/a"},
    ):
        predict = forest.predict_one if isinstance(bad, dict) and bad[names[3]] == "n/a" else forest.predict
        with pytest.raises(forestvm.UnsupportedInput) as error:
            predict(bad)
        text = str(error.value)
        assert names[3] in text and 'it holds the text "n/a", and the model expects numbers here' in text, text
        assert "codes" not in text


def categories_of_pandas() -> tuple[Any, Any, Any]:
    """Returns a model of LightGBM with categories, its frame, and the numbers for it."""
    lightgbm = pytest.importorskip("lightgbm")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    count = 400
    frame = pandas.DataFrame(
        {
            "x": rng.normal(size=count),
            "colour": pandas.Categorical(rng.choice(["red", "green", "blue", "black"], count)),
            "size": pandas.Categorical(rng.choice([10, -5, 7], count)),
            "flag": pandas.Categorical(rng.choice([True, False], count)),
        }
    )
    target = frame.colour.isin(["red", "black"]) + 2.0 * (frame["size"] == 7) + frame.flag.astype(float) + frame.x
    data = lightgbm.Dataset(frame, target)
    booster = lightgbm.train({"verbose": -1, "num_threads": 1, "min_data_per_group": 5, "cat_smooth": 1}, data, 10)
    return booster, frame, forestvm.load(booster.model_to_string().encode(), threads=1)


def test_categories_are_matched_by_value() -> None:
    booster, frame, forest = categories_of_pandas()
    pandas = pytest.importorskip("pandas")
    wanted = booster.predict(frame)
    assert np.array_equal(forest.predict(frame), wanted)
    assert forest.categories["colour"] == ("black", "blue", "green", "red")
    assert len(set(wanted)) > 50
    other = frame.copy()  # other categories, in another order, some of them never used
    other["colour"] = pandas.Categorical(
        frame.colour.astype(object), categories=["red", "violet", "black", "green", "blue"]
    )
    other["size"] = pandas.Categorical(frame["size"].astype(object), categories=[7, 10, 3, -5])
    assert np.array_equal(forest.predict(other), wanted)
    for texts in (frame.colour.astype(object), frame.colour.astype(str), frame.colour.astype("string")):
        assert np.array_equal(forest.predict(frame.assign(colour=texts)), wanted)
    assert np.array_equal(forest.predict(frame[["flag", "size", "colour", "x"]]), wanted)
    for i in range(20):
        row = {"x": frame.x[i], "colour": frame.colour[i], "size": str(frame["size"][i]), "flag": frame.flag[i]}
        assert forest.predict_one(row) == wanted[i]
    unseen = frame.copy()
    unseen["colour"] = pandas.Categorical(["violet", None] * (len(frame) // 2))
    assert np.array_equal(forest.predict(unseen), booster.predict(unseen))
    codes = np.stack([frame.x, *(frame[name].cat.codes for name in ("colour", "size", "flag"))], axis=1)
    assert np.array_equal(forest.predict(codes), wanted)
    encoded = forest.encode(frame)
    assert np.array_equal(forest.predict(encoded), wanted)


def test_categories_of_polars_and_arrow_are_matched_by_value() -> None:
    booster, frame, forest = categories_of_pandas()
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    wanted = booster.predict(frame)
    colours = frame.colour.astype(str).tolist()
    plain = {
        "x": frame.x.to_numpy(),
        "size": frame["size"].astype(int).to_numpy(),
        "flag": frame.flag.astype(str).tolist(),
    }
    numbers = {**plain, "size": [str(size) for size in plain["size"]]}
    polars.Series(["other", "levels", "first"], dtype=polars.Categorical)  # pollutes the global cache
    for kind in (polars.String, polars.Categorical, polars.Enum(["green", "unused", "red", "blue", "black"])):
        table = polars.DataFrame({**numbers, "colour": polars.Series(colours, dtype=kind)})
        assert np.array_equal(forest.predict(table), wanted)
    sizes = arrow.array(plain["size"]).dictionary_encode()
    for kind in (
        arrow.string(),
        arrow.large_string(),
        arrow.string_view(),
        arrow.dictionary(arrow.int8(), arrow.string()),
    ):
        column = (
            arrow.array(colours).cast(kind)
            if "dictionary" not in str(kind)
            else arrow.array(colours).dictionary_encode().cast(kind)
        )
        table = arrow.table({"x": plain["x"], "size": sizes, "flag": plain["flag"], "colour": column})
        assert np.array_equal(forest.predict(table), wanted), kind
    parts = [arrow.array(part).dictionary_encode() for part in (colours[:100], colours[100:101], colours[101:])]
    chunked = arrow.table({**numbers, "colour": arrow.chunked_array(parts)})  # a dictionary for each chunk
    assert np.array_equal(forest.predict(chunked), wanted)


def test_numbers_that_may_be_names_or_codes_of_categories_are_refused() -> None:
    """The categories of `size` are -5, 7 and 10: the number 7 may be the second one, and 1 its code."""
    booster, frame, forest = categories_of_pandas()
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    wanted = booster.predict(frame)
    for sizes in (frame["size"].astype(int), frame["size"].cat.codes, frame["size"].astype(float).astype(object)):
        plain = frame.assign(size=sizes)
        with pytest.raises(ValueError, match="categorical_feature do not match"):
            booster.predict(plain)
        columns = {name: plain[name].astype(str if name in ("colour", "flag") else float).to_numpy() for name in plain}
        tables = [plain, columns, polars.DataFrame(columns), arrow.table(columns), plain.convert_dtypes()]
        for table in tables:
            with pytest.raises(forestvm.UnsupportedInput, match="size.*names or codes of "):
                forest.predict(table)
            with pytest.raises(forestvm.UnsupportedInput, match="size.*names or codes"):
                forest.encode(table)
        with pytest.raises(forestvm.UnsupportedInput, match="size.*names or codes"):
            forest.predict_one({name: column[0] for name, column in columns.items()})
        assert forest.predict(arrow.table(columns).slice(0, 0)).shape == forest.predict(plain[:0]).shape == (0,)
    coded = frame.assign(size=frame["size"].cat.codes, colour=frame.colour.cat.codes, flag=frame.flag.cat.codes)
    columns = {name: coded[name].to_numpy() for name in coded}
    for table in (coded, arrow.table(columns), polars.DataFrame(columns)):
        assert np.array_equal(forest.predict(table, columns="position"), wanted)
    unknown = frame.assign(size=frame["size"].where(frame.x > 10))  # None of them is there.
    assert np.array_equal(forest.predict(frame.assign(size=np.nan)), forest.predict(unknown))


def test_integers_of_mixed_frames_are_not_rounded() -> None:
    forest = forestvm.load(DATA / "lightgbm" / "4.7.0_classes" / "model.txt", threads=1)
    names = list(forest.feature_names)
    frame = pandas_frame(np.zeros((3, len(names))), names)
    frame[names[1]] = np.array([1, 2**53 + 1, 3])
    assert frame.to_numpy().dtype == np.float64  # pandas rounds
    with pytest.raises(forestvm.Refused, match="9007199254740993"):
        forest.predict(frame)
    frame[names[1]] = frame[names[1]].astype("Int64")
    frame.loc[0, names[1]] = None
    with pytest.raises(forestvm.Refused, match="9007199254740993"):
        forest.predict(frame)
    frame[names[1]] = [1e300, np.nan, -np.inf]
    assert np.array_equal(forest.predict(frame), forest.predict(frame.to_numpy()))


def frames_of_several_types(rows: Array, names: list[str]) -> dict[str, Any]:
    """Frames whose columns lie in memory in different ways."""
    pandas = pytest.importorskip("pandas")
    types = [np.dtype(name) for name in ("float32", "float64", "float16", "int64", "int8", "uint16", "bool")]
    columns = {name: rows[:, i].astype(types[i % len(types)]) for i, name in enumerate(names)}
    matrix = pandas_frame(np.ascontiguousarray(rows), names, copy=False)
    apart = pandas.DataFrame({name: pandas.Series(column) for name, column in columns.items()}, copy=False)
    return {
        "a block of each type": apart.copy(),
        "a block of each column": apart,
        "one row-major block": matrix,
        "blocks with gaps": matrix.assign(**{names[1]: columns[names[1]]}),
        "every second row": apart.copy().iloc[::2],
        "from the last row to the first": matrix.assign(**{names[1]: columns[names[1]]}).iloc[::-1],
        "no row": apart.iloc[:0],
    }


@pytest.mark.parametrize("count", [1, 2, 64, 65, 4096])
def test_frames_of_several_types_are_read_where_pandas_keeps_them(
    forest: forestvm.Forest, rows: Array, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    names = list(forest.feature_names)
    rows = np.abs(rows[np.arange(count) % len(rows)] * 3).clip(0, 100)
    for name, frame in frames_of_several_types(rows, names).items():
        columns = {column: frame[column].to_numpy() for column in names}
        wanted = {output: forest.predict(columns, output=output) for output in ("value", "raw", "leaf", "proba")}
        forest.predict(frame)  # makes the columns known
        with monkeypatch.context() as without:
            without.setattr(pandas.DataFrame, "to_numpy", None)
            without.setattr(pandas.DataFrame, "iloc", None)
            for output, numbers in wanted.items():
                assert np.array_equal(forest.predict(frame, output=output), numbers), name
            out = np.empty(len(frame))
            assert forest.predict(frame, out=out, dtype="float64") is out, name
            assert np.array_equal(out, wanted["value"]), name
        with monkeypatch.context() as without:
            without.setattr(_frames, "predict_known", lambda *rows: NotImplemented)
            assert np.array_equal(forest.predict(frame), wanted["value"]), name
    dates = frame.assign(**{names[0]: pandas.Timestamp(0)})
    dates.columns = frame.columns
    with pytest.raises(forestvm.UnsupportedInput):
        forest.predict(dates)


def test_frames_with_other_internals_are_left_to_other_ways(forest: forestvm.Forest, rows: Array) -> None:
    names = list(forest.feature_names)
    frame = pandas_frame(rows, names).astype({names[0]: "float64"})
    wanted = forest.predict(frame)
    manager = frame._mgr

    def with_manager(**changes: Any) -> Any:
        given = {name: getattr(manager, name) for name in ("axes", "blocks", "blknos", "blklocs")} | changes
        kept = {name: value for name, value in given.items() if value is not None}
        return _frames.predict_known(forest, SimpleNamespace(_mgr=SimpleNamespace(**kept)), "value", None, None)

    assert np.array_equal(with_manager(), wanted)
    assert with_manager(axes=[frame.columns.copy(), frame.index]) is NotImplemented
    for name in ("axes", "blocks", "blknos", "blklocs"):
        assert with_manager(**{name: None}) is NotImplemented
    for name in ("blknos", "blklocs"):
        numbers = getattr(manager, name)
        for wrong in (numbers[1:], numbers.astype("int32"), numbers - 100, numbers + 100, list(numbers)):
            assert with_manager(**{name: wrong}) is NotImplemented
    last = manager.blocks[-1].values
    for values in (last[:, 1:], last[0], last.astype(object), last.tolist()):
        assert with_manager(blocks=(*manager.blocks[:-1], SimpleNamespace(values=values))) is NotImplemented
    assert with_manager(blocks=()) is NotImplemented
    assert _frames.predict_known(forest, None, "value", None, None) is NotImplemented


def test_streams_are_read_batch_by_batch(forest: forestvm.Forest, rows: Array) -> None:
    arrow = pytest.importorskip("pyarrow")
    names = list(forest.feature_names)
    schema = arrow_table(rows, names).schema
    made = []

    def batches(fail: bool) -> Iterator[Any]:
        for i in range(20):
            made.append(i)
            yield arrow_table(rows[i : i + 3], names).to_batches()[0]
        if fail:
            raise RuntimeError("the disk is gone")

    reader = arrow.RecordBatchReader.from_batches(schema, batches(False))
    wanted = np.concatenate([forest.predict(rows[i : i + 3]) for i in range(20)])
    assert np.array_equal(forest.predict(reader), wanted)
    assert len(made) == 20
    with pytest.raises((forestvm.Environment, RuntimeError), match="the disk is gone"):
        forest.predict(arrow.RecordBatchReader.from_batches(schema, batches(True)))
    assert forest.predict(arrow.RecordBatchReader.from_batches(schema, iter([]))).shape == (0,)


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_frames_of_one_type_are_not_copied(forest: forestvm.Forest, rows: Array, order: Any) -> None:
    many = np.asarray(np.tile(rows, (300, 1)), order=order)
    frame = pandas_frame(many, list(forest.feature_names), copy=False)
    assert np.shares_memory(frame.to_numpy(), many)
    mixed = frame.assign(**{forest.feature_names[0]: frame.iloc[:, 0].astype("float64")})
    forest.predict(frame)
    for X in (many, frame, mixed):
        if X is mixed and order == "C":
            continue  # pandas keeps the columns of such a frame apart in memory
        tracemalloc.start()
        forest.predict(X)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < many.nbytes / 4


@pytest.mark.parametrize("output", ["value", "raw", "class", "leaf", "proba"])
def test_predictions_as_a_stream(forest: forestvm.Forest, rows: Array, output: str) -> None:
    arrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    table = arrow_chunks(rows, list(forest.feature_names))
    wanted = forest.predict(rows, output=output)
    stream = forest.predict_stream(table, output=output, name="answer")
    for _ in range(2):  # a table can be read again
        result = arrow.RecordBatchReader.from_stream(stream).read_all()
        assert result.column_names == (
            ["answer"] if wanted.ndim == 1 else [f"answer_{i}" for i in range(wanted.shape[1])]
        )
        columns = [column.to_numpy() for column in result.columns]
        assert all(column.dtype == wanted.dtype for column in columns)
        assert np.array_equal(np.stack(columns, axis=1).reshape(wanted.shape), wanted)
    assert np.array_equal(polars.DataFrame(stream).to_numpy().reshape(wanted.shape), wanted)


@pytest.mark.parametrize("count", [0, 1, 20_000])
@pytest.mark.parametrize("output", ["value", "leaf"])
def test_a_stream_of_a_polars_frame_comes_in_parts(
    forest: forestvm.Forest, rows: Array, output: str, count: int
) -> None:
    """The rows of a frame with several chunks are read in parts, so that polars does not copy the whole frame."""
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("polars")
    names, columns = list(forest.feature_names), 3000
    many = np.resize(rows, (count, rows.shape[1]))
    frame = polars_chunks(many, names) if count else polars_frame(many, names)
    extra = {f"extra {i}": frame[names[0]] for i in range(columns - len(names))}
    frame = frame.with_columns(**extra)
    wanted = forest.predict(many, output=output)
    stream = forest.predict_stream(frame, output=output, extra="ignore")
    for _ in range(2):
        batches = list(arrow.RecordBatchReader.from_stream(stream))
        assert max([len(batch) for batch in batches], default=0) <= (32 << 20) // (8 * columns)
        result = arrow.Table.from_batches(batches, arrow.RecordBatchReader.from_stream(stream).schema)
        values = np.stack([column.to_numpy() for column in result.columns], axis=1)
        assert np.array_equal(values.reshape(wanted.shape), wanted)


def test_a_stream_predicts_as_its_consumer_asks(forest: forestvm.Forest, rows: Array) -> None:
    arrow = pytest.importorskip("pyarrow")
    names = list(forest.feature_names)
    made = []

    def batches() -> Iterator[Any]:
        for i in range(5):
            made.append(i)
            yield arrow_table(rows[i : i + 3, ::-1], names[::-1]).to_batches()[0]
        raise RuntimeError("the disk is gone")

    reader = arrow.RecordBatchReader.from_batches(arrow_table(rows[:, ::-1], names[::-1]).schema, batches())
    stream = arrow.RecordBatchReader.from_stream(forest.predict_stream(reader))
    assert made == []
    for i in range(5):
        batch = stream.read_next_batch()
        assert made == list(range(i + 1))
        assert np.array_equal(batch.column(0).to_numpy(), forest.predict(rows[i : i + 3]))
    with pytest.raises(Exception, match="the disk is gone"):
        stream.read_next_batch()
    del stream
    wrong = arrow_table(rows[:, 1:], names[1:])
    with pytest.raises(forestvm.FeatureMismatch):
        arrow.RecordBatchReader.from_stream(forest.predict_stream(wrong))
    with pytest.raises(forestvm.UnsupportedInput):
        forest.predict_stream(rows)
    regression = forestvm.load(DATA / "diabetes" / "model.json")
    table = arrow_table(np.zeros((2, regression.num_features), np.float32), list(regression.feature_names))
    with pytest.raises(forestvm.Refused):
        arrow.RecordBatchReader.from_stream(regression.predict_stream(table, output="class"))


def test_columns_of_one_name_that_the_model_does_not_use() -> None:
    pandas = pytest.importorskip("pandas")
    forest = forestvm.load(DATA / "breast_cancer" / "model.json")
    values = np.random.default_rng(1).normal(size=(5, forest.num_features))
    features = pandas.DataFrame(values, columns=list(forest.feature_names))
    ids = pandas.DataFrame([[1, 2]] * 5, columns=["id", "id"])
    frame = pandas.concat([ids, features], axis=1)
    assert forest.predict(frame, extra="ignore").tobytes() == forest.predict(features).tobytes()
    with pytest.raises(forestvm.FeatureMismatch, match="several columns are called 'id'"):
        forest.predict(frame)
    twice = pandas.concat([frame, features[["mean radius"]]], axis=1)
    with pytest.raises(forestvm.FeatureMismatch, match="several columns are called 'mean radius'$"):
        forest.predict(twice, extra="ignore")

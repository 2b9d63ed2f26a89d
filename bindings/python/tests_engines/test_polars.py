"""polars: expressions that forestvm's extension answers as a plugin."""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, Case, Codes, assert_same, case

import forestvm

polars = pytest.importorskip("polars")

from forestvm.engines import polars as engine  # noqa: E402  (imports polars, which may be absent)


@pytest.mark.parametrize("streaming", [False, True])
def test_expressions(model: Case, streaming: bool) -> None:
    frame = polars.from_arrow(model.rows)
    query = frame.lazy().with_columns(
        engine.expr(model.forest), engine.expr(model.forest, model.features, output="leaf", name="leaf")
    )
    got = query.collect(engine="streaming" if streaming else "in-memory").sort("id")
    assert got.schema == query.collect_schema()
    assert_same(got["prediction"].to_numpy(), model.values)
    assert_same(got["leaf"].to_numpy(), model.leaves)
    none = query.filter(polars.col("id") < 0).collect()
    assert none.shape[0] == 0 and none.schema == got.schema


def test_chunks_that_end_at_different_rows(model: Case) -> None:
    whole = polars.from_arrow(model.rows)
    pieces = [whole.slice(0, 1), whole.slice(1, 1000), whole.slice(0, 0), whole.slice(1001)]
    chunks = polars.concat(pieces, rechunk=False)
    first = model.features[0]
    frame = chunks.with_columns(chunks[first].rechunk())
    assert frame[first].n_chunks() == 1 and frame[model.features[1]].n_chunks() >= 3
    predict = engine.expr(model.forest, threads=1)
    assert_same(frame.select(predict).to_series().to_numpy(), model.values)
    assert_same(frame.slice(995, 12).select(predict).to_series().to_numpy(), model.values[995:1007])
    for row in (0, 1000, 1001, 2999):
        assert_same(frame.slice(row, 1).select(predict).to_series().to_numpy(), model.values[row : row + 1])


def test_outputs_of_many_numbers(listed: Case) -> None:
    frame = polars.from_arrow(listed.rows)
    got = frame.lazy().select("id", engine.expr(listed.forest, output=listed.output)).collect().sort("id")
    assert_same(got["prediction"].to_numpy(), listed.values)
    with pytest.raises(forestvm.Refused, match="load the model with contributions=True"):
        engine.expr(case("classes").forest, output="contributions")


def test_missing_numbers_and_columns_by_position(codes: Codes) -> None:
    whole = polars.from_arrow(codes.rows)
    frame = polars.concat([whole[:100], whole[100:]], rechunk=False)
    predict = engine.expr(codes.forest, frame.columns, **codes.options)
    assert_same(frame.select(predict).to_series().to_numpy(), codes.values)
    with pytest.raises(polars.exceptions.ComputeError, match="may be names or codes of categories"):
        frame.select(engine.expr(codes.forest, frame.columns, missing=-99))
    with pytest.raises(forestvm.Usage, match="missing is 'none', not a number"):
        engine.expr(codes.forest, missing="none")
    # The number may be the code of a category, whatever the codes of the frame are.
    name = codes.forest.feature_names[3]
    texts = polars.Series("c3", ["rot", None] * 150, polars.Categorical)
    assert name in codes.forest.categories
    with pytest.raises(polars.exceptions.ComputeError, match="may be the code of a category in column 3"):
        frame.with_columns(texts).select(engine.expr(codes.forest, frame.columns, missing=0, columns="position"))


@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
def test_categories_in_polars_types(kind: str) -> None:
    model = case("categories")
    frame = polars.from_arrow(model.rows)
    for name in model.forest.categories:
        texts = frame[name].drop_nulls().unique()
        dtype = polars.Categorical if kind == "Categorical" else polars.Enum(texts)
        frame = frame.with_columns(polars.col(name).cast(dtype))
    assert_same(frame.select(engine.expr(model.forest)).to_series().to_numpy(), model.values)


def test_more_expressions_than_the_plugin_keeps_open() -> None:
    model = case("classes")
    frame = polars.from_arrow(model.rows)
    for _ in range(2):
        many = [engine.expr(model.forest, threads=i, name=str(i)) for i in range(1, 21)]
        for column in frame.select(many):
            assert_same(column.to_numpy(), model.values)


def test_predictions_do_not_wait_for_python(tmp_path: Path) -> None:
    """Another thread's query ends while this thread holds Python's lock without a break."""
    model = case("float32")
    frame = polars.from_arrow(model.rows)
    file, whole, written = tmp_path / "held.arrow", 0, 0
    for repeats in (64, 512, 4096):  # until the query is still at work when the lock is held
        many = polars.concat([frame] * repeats)
        query = many.lazy().select("id", engine.expr(model.forest))
        query.sink_ipc(file)  # the plugin opens the forest, with Python's lock
        whole = file.stat().st_size
        file.unlink()
        thread = threading.Thread(target=query.sink_ipc, args=[file])
        thread.start()
        while not file.exists():
            time.sleep(0.0001)
        at_first, written = size_with_lock_held(file, whole)
        thread.join()
        if at_first < whole:
            break
    else:
        pytest.fail("the query always ended before the lock was held")
    assert written == whole
    assert_same(polars.read_ipc(file).sort("id")["prediction"].to_numpy(), np.repeat(model.values, repeats, axis=0))


def size_with_lock_held(file: Path, whole: int) -> tuple[int, int]:
    """Holds Python's lock until a file has `whole` bytes, or for a minute. Returns the file's first and last size; -1
    stands for a file that does not exist."""
    # Calls through PyDLL keep the lock, and the interval stops the interpreter from passing it on.
    held = ctypes.PyDLL(None)
    held.lseek.restype = ctypes.c_int64
    deadline = time.monotonic() + 60
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        opened = held.open(bytes(file), 0)
        first = last = held.lseek(opened, ctypes.c_int64(0), 2)
        while last < whole and time.monotonic() < deadline:
            held.usleep(1000)
            last = held.lseek(opened, ctypes.c_int64(0), 2)
        held.close(opened)
    finally:
        sys.setswitchinterval(interval)
    return first, last


def test_a_stored_query_runs_in_another_process(tmp_path: Path) -> None:
    model = case("classes")
    query = polars.from_arrow(model.rows.slice(0, 50)).lazy().sort("id").select(engine.expr(model.forest))
    query.serialize(tmp_path / "query")
    script = f"""
import numpy, polars
frame = polars.LazyFrame.deserialize({str(tmp_path / "query")!r}).collect()
numpy.save({str(tmp_path / "answer.npy")!r}, frame["prediction"].to_numpy())
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    assert_same(np.load(tmp_path / "answer.npy"), model.values[:50])


def test_options_hold_no_code() -> None:
    with pytest.raises(forestvm.Refused, match="the options of the expression hold builtins.print"):
        engine._opened(pickle.dumps({"digest": print}))
    with pytest.raises(forestvm.Environment, match="no program .*abc.fvm"):
        engine._opened(pickle.dumps({"digest": "abc", "threads": 1, "rounds": None, "output": "value"}))


def test_another_version_of_polars_interface_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, plugin = tmp_path / "plugin.c", tmp_path / "plugin.so"
    source.write_text("unsigned _polars_plugin_get_version(void) { return 9 << 16; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", plugin, source], check=True)
    monkeypatch.setattr(engine, "_PLUGIN", plugin)
    with pytest.raises(forestvm.Environment, match=f"polars {polars.__version__} does not take plugins.*version: 9"):
        engine.expr(case("classes").forest)


def test_wrong_calls_are_told_why() -> None:
    classes = case("classes").forest
    with pytest.raises(forestvm.Usage, match="2 columns for 6 features"):
        engine.expr(classes, ["a", "b"])
    with pytest.raises(forestvm.Usage, match="output is 'odds'"):
        engine.expr(classes, output="odds")
    with pytest.raises(forestvm.Usage, match="the model has no names"):
        engine.expr(forestvm.load(DATA / "xgboost_versions" / "3.0.5_logistic" / "model.json"))
    labels = forestvm.load(DATA / "xgboost_versions" / "2.1.4_softmax" / "model.ubj")
    with pytest.raises(forestvm.Refused, match='values are labels: stream "raw"'):
        engine.expr(labels, [str(i) for i in range(labels.num_features)], output="proba")
    with pytest.raises(polars.exceptions.ColumnNotFoundError):
        polars.DataFrame({"a": [1.0]}).select(engine.expr(classes))
    dates = polars.DataFrame({name: [None] for name in classes.feature_names}, schema_overrides={"age": polars.Date})
    with pytest.raises(polars.exceptions.ComputeError, match='column "age": its type is date'):
        dates.select(engine.expr(classes))

"""python -m forestvm predict: Parquet and Arrow files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA

import forestvm

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

from forestvm import _predict_files  # noqa: E402
from forestvm.engines import _arrow  # noqa: E402

MODEL = DATA / "breast_cancer" / "model.json"
ROWS = 1000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Returns rows with the features in another order, and a column that is not a feature."""
    names = forestvm.load(MODEL).feature_names
    values = np.random.default_rng(1).normal(size=(ROWS, len(names)))
    columns = {name: pa.array(values[:, i], mask=values[:, i] > 1.5) for i, name in reversed(list(enumerate(names)))}
    return pa.table({"id": pa.array(np.arange(ROWS)), **columns})


def run(*arguments: object) -> int:
    return _predict_files.main(["predict", str(MODEL), *map(str, arguments)])


def write(table: pa.Table, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=300)
    else:
        with pa.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table, max_chunksize=300)
    return path


def read(path: Path) -> pa.Table:
    return parquet.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(str(path)).read_all()


@pytest.mark.parametrize("from_ending", [".parquet", ".arrow", ".feather"])
@pytest.mark.parametrize("to_ending", [".parquet", ".arrow"])
def test_files_of_each_kind(table: pa.Table, tmp_path: Path, from_ending: str, to_ending: str) -> None:
    forest = forestvm.load(MODEL)
    rows, predictions = write(table, tmp_path / f"rows{from_ending}"), tmp_path / f"predictions{to_ending}"
    assert run(rows, predictions, "--batch-rows", 64, "--threads", 2, "--quiet") == 0
    got = read(predictions)
    assert got.column_names == [*table.column_names, "prediction"]
    assert got.select(table.column_names).equals(table)
    assert got["prediction"].to_numpy().tobytes() == forest.predict(table, extra="ignore").tobytes()


def test_outputs_of_several_columns_beside_chosen_ones(table: pa.Table, tmp_path: Path) -> None:
    forest = forestvm.load(MODEL)
    rows, predictions = write(table, tmp_path / "rows.parquet"), tmp_path / "leaves.parquet"
    assert run(rows, predictions, "--output", "leaf", "--name", "leaf", "--keep", "id") == 0
    got = read(predictions)
    assert got.column_names == ["id", *(f"leaf_{i}" for i in range(forest.num_trees))]
    leaves = np.stack([column.to_numpy() for column in got.columns[1:]], axis=1)
    assert np.array_equal(leaves, forest.apply(table, extra="ignore"))
    assert run(rows, tmp_path / "alone.parquet", "--keep", "") == 0
    assert read(tmp_path / "alone.parquet").column_names == ["prediction"]


def test_missing_numbers_and_columns_by_position(table: pa.Table, tmp_path: Path) -> None:
    forest = forestvm.load(MODEL)
    table = table.select(list(forest.feature_names))
    wanted = forest.predict(table).tobytes()
    marked = pa.table([column.fill_null(99.0) for column in table.columns], [f"c{i}" for i in range(30)])
    rows, predictions = write(marked, tmp_path / "rows.parquet"), tmp_path / "predictions.parquet"
    assert run(rows, predictions, "--missing", "99") == 2
    assert run(rows, predictions, "--missing", "99", "--columns", "position") == 0
    assert read(predictions)["prediction"].to_numpy().tobytes() == wanted
    assert run(rows, predictions, "--columns", "position") == 1  # the file has other predictions
    assert run(rows, tmp_path / "other.parquet", "--columns", "position") == 0
    assert read(tmp_path / "other.parquet")["prediction"].to_numpy().tobytes() != wanted


def test_contributions_are_a_column_of_lists(table: pa.Table, tmp_path: Path) -> None:
    forest = forestvm.load(MODEL, contributions=True)
    rows = write(table, tmp_path / "rows.parquet")
    for ending in (".parquet", ".arrow"):
        predictions = tmp_path / f"parts{ending}"
        assert run(rows, predictions, "--output", "contributions", "--name", "parts", "--keep", "id") == 0
        got = read(predictions)
        assert got.schema.field("parts").type == pa.list_(pa.float32(), 31)
        parts = np.stack(got["parts"].to_numpy())
        assert parts.tobytes() == forest.contributions(table, extra="ignore").tobytes()


def test_quantiles_are_those_that_are_asked_for(tmp_path: Path) -> None:
    X, y, rows = (np.load(DATA / "quantile" / f"extra_trees.{part}.npy") for part in ("X", "y", "rows"))
    forest = forestvm.load(DATA / "quantile" / "extra_trees.skops", samples=(X, y))
    forest.save(tmp_path / "model.fvm")
    table = pa.table({f"c{i}": column for i, column in enumerate(rows.T)})
    model, predictions = tmp_path / "model.fvm", tmp_path / "out.parquet"

    def run_with(*options: str) -> int:
        arguments = ("predict", model, write(table, tmp_path / "rows.parquet"), predictions, "--columns", "position")
        return _predict_files.main([*map(str, arguments), "--output", "quantile", *options])

    for options, quantiles in (((), (0.1, 0.5, 0.9)), (("--quantiles", "0.25,1"), (0.25, 1.0))):
        assert run_with(*options) == 0
        got = np.stack(read(predictions)["prediction"].to_numpy())
        np.testing.assert_array_equal(got, forest.quantiles(rows, quantiles))
        assert run_with("--quantiles", "0.5") == 1, "the file has other predictions"
        predictions.unlink()
    assert run_with("--quantiles", "0.5,x") == 2


def test_no_rows(table: pa.Table, tmp_path: Path) -> None:
    assert run(write(table.slice(0, 0), tmp_path / "rows.arrow"), tmp_path / "out.parquet") == 0
    assert read(tmp_path / "out.parquet").num_rows == 0


def test_a_folder_goes_on_where_it_was_interrupted(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, out = tmp_path / "rows", tmp_path / "out"
    for number, path in enumerate(("a.parquet", "day=2/b.arrow", "day=3/c.parquet")):
        write(table.slice(number * 100), rows / path)
    (rows / "_SUCCESS").write_text("")
    for hidden in ("_delta_log/0.parquet", "day=2/_temporary/0/b.parquet", ".tmp/c.arrow"):
        (rows / hidden).parent.mkdir(parents=True)
        (rows / hidden).write_text("no rows")
    write_file = _predict_files._predict_file
    written = []
    monkeypatch.setattr(_predict_files, "_predict_file", lambda *all: (written.append(all[0].name), write_file(*all)))
    predict_batch, unfinished = _arrow.with_predictions, out / "day=3" / ".c.parquet.unfinished"

    def interrupted(forest: forestvm.Forest, batch: pa.RecordBatch, *others: object) -> pa.RecordBatch:
        # c.parquet begins at row 200, so that its first batch is written by now.
        if batch["id"][0].as_py() == 300 and unfinished.exists():
            assert unfinished.stat().st_size > 100
            raise KeyboardInterrupt
        return predict_batch(forest, batch, *others)

    with monkeypatch.context() as patch:
        patch.setattr(_arrow, "with_predictions", interrupted)
        assert run(rows, out, "--batch-rows", 100) == 130
    assert "interrupted" in capsys.readouterr().err
    assert list((out / "day=3").iterdir()) == []
    assert run(rows, out) == 0
    assert written == ["a.parquet", "b.arrow", "c.parquet", "c.parquet"]
    assert "a.parquet: done by an earlier run" in capsys.readouterr().err
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*")) == [
        "a.parquet",
        "day=2/b.arrow",
        "day=3/c.parquet",
    ]
    wanted = forestvm.load(MODEL).predict(table.slice(200), extra="ignore")
    assert np.array_equal(read(out / "day=3/c.parquet")["prediction"].to_numpy(), wanted)
    # A run for another output neither replaces the files nor takes them for its own.
    assert run(rows, out, "--output", "raw") == 1
    assert "was not written by this command with this program" in capsys.readouterr().err
    for options in ({"contract": "fast"}, {"schedule": "layout(tree, sparse8)"}):  # other programs of the model
        forestvm.load(MODEL, **options).save(tmp_path / "other.fvm")
        assert _predict_files.main(["predict", str(tmp_path / "other.fvm"), str(rows), str(out)]) == 1
        assert "was not written by this command with this program" in capsys.readouterr().err
    # Rows that are newer than their predictions are predicted again.
    os.utime(rows / "a.parquet")
    os.utime(out / "a.parquet", (0, 0))
    assert run(rows, out) == 0
    assert written[4:] == ["a.parquet"]


def test_rows_that_are_replaced_by_older_ones_are_predicted_again(table: pa.Table, tmp_path: Path) -> None:
    forest = forestvm.load(MODEL)
    rows, out = write(table.slice(0, 500), tmp_path / "rows.parquet"), tmp_path / "out.parquet"
    assert run(rows, out) == 0
    other = table.slice(500)
    os.utime(write(other, rows), (0, 0))
    assert run(rows, out) == 0
    assert read(out)["prediction"].to_numpy().tobytes() == forest.predict(other, extra="ignore").tobytes()


def test_dictionaries_that_differ_become_values(table: pa.Table, tmp_path: Path) -> None:
    town = pa.chunked_array([pa.array(["a", "b"] * 250).dictionary_encode(), pa.array(["c"] * 500).dictionary_encode()])
    rows = tmp_path / "rows.parquet"
    parquet.write_table(table.append_column("town", town), rows, row_group_size=500)
    assert run(rows, tmp_path / "out.arrow", "--keep", "town") == 0
    assert read(tmp_path / "out.arrow")["town"].to_pylist() == town.to_pylist()


def test_dictionaries_that_grow_from_batch_to_batch(table: pa.Table, tmp_path: Path) -> None:
    rows = tmp_path / "rows.arrow"
    dictionaries = [["a", "b"], ["a", "b", "c"]]
    halves = [
        table.slice(500 * i, 500)
        .append_column("town", pa.DictionaryArray.from_arrays(pa.array([i + 1] * 500, pa.int32()), dictionary))
        .combine_chunks()
        for i, dictionary in enumerate(dictionaries)
    ]
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_file(str(rows), halves[0].schema, options=options) as file:
        for half in halves:
            file.write_table(half)
    assert run(rows, tmp_path / "out.arrow", "--keep", "town") == 0
    assert read(tmp_path / "out.arrow")["town"].to_pylist() == ["b"] * 500 + ["c"] * 500


def test_an_error_of_writing_names_the_file_that_is_written(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise pa.ArrowInvalid("no such type")

    monkeypatch.setattr(_predict_files, "_writer", broken)
    assert run(write(table, tmp_path / "rows.parquet"), tmp_path / "out.arrow") == 1
    assert "out.arrow: cannot be written: no such type" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_columns_of_one_name(
    table: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    rows, out = write(table.append_column("id", table["id"]), tmp_path / f"rows{ending}"), tmp_path / "out.parquet"
    for options in ([], ["--keep", "id"]):
        assert run(rows, out, *options) == 1
        assert f"rows{ending}: several columns are called 'id'" in capsys.readouterr().err
    assert run(rows, out, "--keep", "") == 0
    assert read(out)["prediction"].to_numpy().tobytes() == forestvm.load(MODEL).predict(table, extra="ignore").tobytes()
    twice = write(table.append_column("mean radius", table["id"]), tmp_path / f"twice{ending}")
    assert run(twice, tmp_path / "refused.parquet", "--keep", "") == 2
    assert "several columns are called 'mean radius'" in capsys.readouterr().err


def test_batches_of_wide_predictions_have_fewer_rows(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    predict = _arrow.with_predictions
    monkeypatch.setattr(
        _arrow, "with_predictions", lambda *all: (counts.append(all[1].num_rows), predict(*all))[1]
    )
    monkeypatch.setattr(_predict_files, "_BATCH_BYTES", 31 * 4 * 100)
    rows = write(table, tmp_path / "rows.parquet")
    assert run(rows, tmp_path / "out.parquet", "--output", "contributions", "--name", "parts") == 0
    assert max(counts) == 100 and sum(counts) == ROWS


def test_a_killed_run_leaves_nothing_that_the_next_one_does_not_overwrite(
    table: pa.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, out = write(table, tmp_path / "rows.arrow"), tmp_path / "out.arrow"
    code = f"""
import time
from forestvm import _predict_files
from forestvm.engines import _arrow
predict = _arrow.with_predictions
def slowly(forest, batch, *others):
    if batch["id"][0].as_py() > 0:
        print("midway", flush=True)
        time.sleep(100)
    return predict(forest, batch, *others)
_arrow.with_predictions = slowly
_predict_files.main(["predict", {str(MODEL)!r}, {str(rows)!r}, {str(out)!r}, "--batch-rows", "100"])
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "midway\n"
        assert run(rows, out) == 1
        assert "out.arrow: another run is writing this file" in capsys.readouterr().err
        process.kill()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.arrow.unfinished", "rows.arrow"]
    assert run(rows, out) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.arrow", "rows.arrow"]
    assert read(out)["prediction"].to_numpy().tobytes() == forestvm.load(MODEL).predict(table, extra="ignore").tobytes()


PEAK = """
import sys, threading, time
from forestvm import _predict_files

def own_memory():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024

def watch():
    global peak
    while True:
        peak = max(peak, own_memory())
        time.sleep(0.002)

peak = 0
threading.Thread(target=watch, daemon=True).start()
assert _predict_files.main(["predict", *sys.argv[1:], "--threads", "2", "--quiet"]) == 0
print(peak)
"""


@pytest.mark.parametrize(
    ("ending", "counts", "options", "more"),
    [
        # The larger file has 48 MB more.
        (".parquet", (200_000, 600_000), [], 48_000_000),
        # The larger file has 32 MB more of predictions.
        (".arrow", (20_000, 60_000), ["--batch-rows", "4096", "--output", "leaf", "--keep", ""], 32_000_000),
    ],
)
def test_memory_does_not_grow_with_the_rows(
    tmp_path: Path, ending: str, counts: tuple[int, int], options: list[str], more: int
) -> None:
    """Predicts files of one row group or batch. How far pyarrow reads ahead depends on the load of the machine."""
    names = forestvm.load(MODEL).feature_names
    peaks = []
    for count in counts:
        random = np.random.default_rng(1)
        rows = pa.table({name: random.normal(size=count).astype(np.float32) for name in names})
        path = tmp_path / f"{count}{ending}"
        if ending == ".parquet":
            parquet.write_table(rows, path, row_group_size=count, use_dictionary=False)
        else:
            with pa.ipc.new_file(str(path), rows.schema) as file:
                file.write_table(rows)
        command = [sys.executable, "-c", PEAK, MODEL, path, tmp_path / f"out{ending}", *options]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        (tmp_path / f"out{ending}").unlink()
    assert peaks[1] - peaks[0] < more * 2 // 3, peaks


def test_an_error_leaves_no_file(table: pa.Table, tmp_path: Path) -> None:
    rows = write(table.drop_columns(["mean radius"]), tmp_path / "in" / "rows.parquet")
    assert run(rows, tmp_path / "out" / "predictions.parquet") == 2
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("rows", "predictions", "options", "status", "said"),
    [
        ("absent.parquet", "out.parquet", [], 1, "absent.parquet: no such file"),
        ("rows.csv", "out.parquet", [], 2, "rows.csv: the file's name must end in .parquet, .arrow, .feather"),
        ("rows.parquet", "out.csv", [], 2, "out.csv: the file's name must end in"),
        ("rows.parquet", "rows.parquet", [], 2, "the predictions would replace the rows"),
        ("text.parquet", "out.parquet", [], 1, "text.parquet: not a file of Parquet"),
        ("text.arrow", "out.parquet", [], 1, "text.arrow: not a file of Arrow IPC"),
        ("empty", "out", [], 1, "has no file that ends in"),
        ("folder", "folder/out", [], 2, "the folder of predictions lies in the folder of rows"),
        ("rows.parquet", "out.parquet", ["--name", "id"], 2, "the rows have a column 'id' already"),
        ("rows.parquet", "out.parquet", ["--keep", "id,x"], 2, "columns that the rows do not have: x"),
        ("rows.parquet", "out.parquet", ["--batch-rows", "0"], 2, "--batch-rows is 0"),
        ("rows.parquet", "out.parquet", ["--threads", "0"], 2, "threads is 0"),
        ("rows.parquet", "out.parquet", ["--quantiles", "0.5"], 2, "--quantiles is for --output quantile"),
        ("rows.parquet", "out.parquet", ["--output", "quantile"], 1, "samples=(X, y)"),
        ("rows.parquet", "out.parquet", ["--output", "proba", "--keep", "id,id"], 2, "--keep names 'id' twice"),
    ],
)
def test_wrong_usage_says_what_is_wrong(
    table: pa.Table,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rows: str,
    predictions: str,
    options: list[str],
    status: int,
    said: str,
) -> None:
    write(table, tmp_path / "rows.parquet")
    write(table, tmp_path / "folder" / "rows.parquet")
    (tmp_path / "empty").mkdir()
    for name in ("text.parquet", "text.arrow", "rows.csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    assert run(tmp_path / rows, tmp_path / predictions, *options) == status
    assert said in capsys.readouterr().err


def test_the_command_itself(table: pa.Table, tmp_path: Path) -> None:
    rows = write(table, tmp_path / "rows.parquet")
    command = [sys.executable, "-m", "forestvm", "predict", MODEL, rows, tmp_path / "out.parquet"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == ""
    assert f"{ROWS} of {ROWS} rows" in done.stderr
    assert subprocess.run(command[:3], capture_output=True).returncode == 2


def test_predictions_may_have_the_name_of_a_column_that_is_not_kept(table: pa.Table, tmp_path: Path) -> None:
    rows = write(table.rename_columns(["leaf_0", *table.column_names[1:]]), tmp_path / "rows.parquet")
    out = tmp_path / "out.parquet"
    assert run(rows, out, "--keep", "mean radius", "--output", "leaf", "--name", "leaf") == 0
    got = read(out).drop_columns(["mean radius"])
    leaves = np.stack([column.to_numpy() for column in got.columns], axis=1)
    assert np.array_equal(leaves, forestvm.load(MODEL).apply(table, extra="ignore"))

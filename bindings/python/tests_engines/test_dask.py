"""Dask: collections with and without a distributed client."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MODELS, Case, Codes, Files, assert_same, case, check_one_copy, columns_named, table_of

import forestvm

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
frames = pytest.importorskip("dask.dataframe")
arrays = pytest.importorskip("dask.array")
datasets = pytest.importorskip("pyarrow.dataset")

from forestvm.engines import dask as engine  # noqa: E402  (imports Dask, which may be absent)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as made:
        yield made


def check(model: Case) -> None:
    table = model.rows.to_pandas()
    frame = frames.from_pandas(table, npartitions=3)
    # Some partitions have no rows, and some have one.
    parts = [frame, frame[frame.id < 0], frames.from_pandas(table.iloc[:2], npartitions=2)]
    rows = frames.concat(parts, interleave_partitions=True, ignore_unknown_divisions=True)
    for output, wanted in (("value", model.values), ("leaf", model.leaves)):
        predicted = engine.predict(rows, model.forest, output=output, name="p")
        got = predicted.compute()
        order = rows.id.compute().to_numpy()
        assert_same(got.to_numpy() if wanted.ndim == 1 else columns_named(got, "p", wanted), wanted[order])


def test_frames_without_a_client(model: Case) -> None:
    check(model)


def test_frames_on_two_workers(client: Any, model: Case) -> None:
    check(model)


def test_outputs_of_many_numbers_are_a_column_of_lists(client: Any, listed: Case, tmp_path: Path) -> None:
    frame = frames.from_pandas(listed.rows.to_pandas(), npartitions=3)
    predicted = engine.predict(frame, listed.forest, output=listed.output, name="p")
    got = predicted.compute()
    assert got.dtype == predicted.dtype and got.dtype.pyarrow_dtype.list_size == listed.values.shape[1]
    assert_same(np.stack(got.to_numpy()), listed.values)
    engine.predict(frame, listed.forest, output=listed.output, name="p", keep=["id"]).to_parquet(tmp_path)
    table = datasets.dataset(tmp_path, format="parquet").to_table().sort_by("id")
    assert_same(np.stack(table["p"].to_numpy()), listed.values)


def test_missing_numbers_and_columns_by_position(client: Any, codes: Codes) -> None:
    frame = frames.from_pandas(codes.rows.to_pandas(), npartitions=3)
    assert_same(engine.predict(frame, codes.forest, **codes.options).compute().to_numpy(), codes.values)
    array = arrays.from_array(codes.rows.to_pandas().to_numpy(), chunks=(70, 4))
    assert_same(engine.predict(array, codes.forest, missing=-99).compute(), codes.values)


def test_columns_to_keep_must_be_there() -> None:
    model = case("classes")
    frame = frames.from_pandas(model.rows.to_pandas(), npartitions=1)
    with pytest.raises(forestvm.Usage, match="keep is 'id': expected a list of columns"):
        engine.predict(frame, model.forest, keep="id")
    with pytest.raises(forestvm.Usage, match="keep names a column that the frame does not have: 'other'"):
        engine.predict(frame, model.forest, keep=["id", "other"])


def test_arrays(client: Any) -> None:
    forest = forestvm.load(MODELS["classes"], contributions=True)
    rows = np.random.default_rng(1).normal(size=(500, 6))
    collection = arrays.from_array(rows, chunks=(70, 4))
    for output in ("value", "raw", "class", "leaf", "contributions"):
        predicted = engine.predict(collection, forest, output=output)
        wanted = forest.predict(rows, output=output)
        assert predicted.shape == wanted.shape and predicted.dtype == wanted.dtype
        assert_same(predicted.compute(), wanted)


def test_graphs_do_not_hold_the_program(client: Any) -> None:
    import cloudpickle

    model = case("float32")
    assert len(model.forest.to_bytes()) > 20_000
    empty = frames.from_pandas(model.rows.slice(0, 0).to_pandas(), npartitions=1)
    assert len(cloudpickle.dumps(engine.predict(empty, model.forest).dask)) < 10_000


def test_workers_of_a_machine_have_one_copy_of_the_program(client: Any) -> None:
    model = case("float32")
    engine.predict(frames.from_pandas(model.rows.to_pandas(), npartitions=8), model.forest).compute()
    check_one_copy(model.forest, 2)


def test_workers_keep_no_copy_of_the_program_in_their_own_memory(client: Any, large: forestvm.Forest) -> None:
    def data_and_memory(dask_worker: Any) -> tuple[int, int]:
        import dask.dataframe  # noqa: F401  (tasks import it, which must not count as the program's memory)
        from dask.sizeof import sizeof

        status = Path("/proc/self/status").read_text()
        own = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon:"))
        return sum(map(sizeof, dask_worker.data.values())), own

    rows = frames.from_pandas(table_of(large, 1000).to_pandas(), npartitions=8)
    small = case("classes")  # each worker imports what it needs before its memory is measured
    client.run(small.forest.predict, small.rows.to_pandas(), extra="ignore")
    before = client.run(data_and_memory)
    predicted = engine.predict(rows, large)
    assert_same(predicted.compute().to_numpy(), large.predict(rows.compute()))
    check_one_copy(large, 2)
    after = client.run(data_and_memory)
    assert predicted.npartitions == 8 and all(size < 10_000 for size, _ in after.values()), after
    assert all(own - before[worker][1] < 10_000_000 for worker, (_, own) in after.items()), (before, after)


def test_a_million_rows_in_files(client: Any, files: Files, tmp_path: Path) -> None:
    predicted = engine.predict(frames.read_parquet(files.folder), files.forest, name="p", keep=["id"])
    predicted.to_parquet(tmp_path / "predictions", write_index=False)
    files.check(tmp_path / "predictions")


def test_a_killed_worker_loses_no_rows(client: Any, model: Case, tmp_path: Path) -> None:
    frame = frames.from_pandas(model.rows.to_pandas(), npartitions=60)

    def slow(part: Any, folder: str) -> Any:
        import tempfile
        import time

        time.sleep(0.05)
        tempfile.mkstemp(dir=folder)  # counts the partitions that have been read
        return part

    rows = frame.map_partitions(slow, str(tmp_path), meta=frame._meta)
    victim = next(iter(client.run(os.getpid).values()))
    running = client.compute(engine.predict(rows, model.forest, name="p"))
    while len(os.listdir(tmp_path)) < 5:
        time.sleep(0.01)
    os.kill(victim, signal.SIGKILL)
    assert len(os.listdir(tmp_path)) < 60
    got = running.result(timeout=600)
    assert_same(got if model.values.ndim == 1 else columns_named(got, "p", model.values), model.values)


def test_workers_that_start_later_have_the_program(client: Any) -> None:
    """Dask drops replicas of scattered data that no task waits for; here all workers that saw `predict` are gone."""
    model = case("classes")
    predicted = engine.predict(frames.from_pandas(model.rows.to_pandas(), npartitions=4), model.forest, name="p")
    before = set(client.run(os.getpid).values())
    Path(os.environ["FORESTVM_PROGRAMS"], f"{model.forest.program_fingerprint}.fvm").unlink()
    client.restart(timeout=600)
    assert not before & set(client.run(os.getpid).values())
    assert_same(columns_named(predicted.compute(), "p", model.values), model.values)


def test_what_is_no_collection_is_refused() -> None:
    with pytest.raises(forestvm.UnsupportedInput, match="list is no array or frame of Dask"):
        engine.predict([1, 2], case("classes").forest)
    with pytest.raises(forestvm.Usage, match="no columns with names to keep"):
        engine.predict(arrays.zeros((5, 6)), case("classes").forest, keep=["id"])
    with pytest.raises(forestvm.Refused, match="load the model with contributions=True"):
        engine.predict(arrays.zeros((5, 6)), case("classes").forest, output="contributions")
    with pytest.raises(forestvm.FeatureMismatch):
        engine.predict(
            frames.from_pandas(case("classes").rows.to_pandas()[["age"]], npartitions=1), case("classes").forest
        )

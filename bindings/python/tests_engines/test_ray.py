"""Ray: datasets, and a deployment of Serve."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MODELS, Case, Codes, Files, assert_same, case, columns_named, processes

import forestvm

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
ray = pytest.importorskip("ray")

from forestvm.engines import ray as engine  # noqa: E402  (imports Ray, which may be absent)


@pytest.fixture(scope="module", autouse=True)
def machine() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_datasets(model: Case) -> None:
    rows = ray.data.from_arrow([model.rows, model.rows.slice(0, 0), model.rows.slice(5, 1)]).repartition(5)
    order = np.append(np.arange(len(model.values)), 5)
    for output, wanted in (("value", model.values), ("leaf", model.leaves)):
        predicted = engine.predict(rows, model.forest, output=output, name="p")
        got = pa.concat_tables(ray.get(predicted.to_arrow_refs())).to_pandas().sort_values("id", kind="stable")
        assert got.id.to_numpy().tolist() == sorted(order.tolist())
        assert_same(columns_named(got, "p", wanted), wanted[np.sort(order)])


def test_outputs_of_many_numbers_are_a_column_of_lists(listed: Case) -> None:
    predicted = engine.predict(ray.data.from_arrow(listed.rows), listed.forest, output=listed.output, name="p")
    got = pa.concat_tables(ray.get(predicted.to_arrow_refs())).sort_by("id")
    assert_same(np.stack(got["p"].to_numpy()), listed.values)
    with pytest.raises(forestvm.Refused, match="load the model with contributions=True"):
        engine.deployment(case("classes").forest, output="contributions")


def test_missing_numbers_and_columns_by_position(codes: Codes) -> None:
    from ray import serve

    predicted = engine.predict(ray.data.from_arrow(codes.rows), codes.forest, name="p", **codes.options)
    got = pa.concat_tables(ray.get(predicted.to_arrow_refs()))
    assert_same(got["p"].to_numpy(), codes.values)
    handle = serve.run(engine.deployment(codes.forest, **codes.options).bind())
    assert_same(handle.predict.remote(codes.rows).result(), codes.values)
    serve.shutdown()


def test_batches_of_one_row(model: Case) -> None:
    rows = ray.data.from_arrow([model.rows.slice(row, 1) for row in range(20)])
    predicted = engine.predict(rows, model.forest, name="p")
    got = pa.concat_tables(ray.get(predicted.to_arrow_refs())).to_pandas().sort_values("id")
    assert_same(columns_named(got, "p", model.values[:20]), model.values[:20])


def test_actors_read_the_program_in_the_object_store(large: forestvm.Forest) -> None:
    class Dataset:
        def schema(self, fetch_if_missing: bool) -> None:
            """Says that the columns are not known yet."""

        def map_batches(self, function: Any, **options: Any) -> Any:
            return function, options

    actor, options = engine.predict(Dataset(), large)
    assert len(ray.cloudpickle.dumps((actor, options))) < 10_000
    assert len(ray.cloudpickle.dumps(engine.deployment(large).func_or_class)) < 10_000

    class Actor(actor):
        def program(self) -> tuple[bool, str, str]:
            """Returns whether the program can be written to, and the permissions and the file of its memory."""
            memory = np.frombuffer(self._forest, np.uint8)
            for line in Path("/proc/self/maps").read_text().splitlines():
                span, permissions, *rest = line.split(maxsplit=5)
                begin, end = (int(number, 16) for number in span.split("-"))
                if begin <= memory.ctypes.data < end:
                    assert memory.ctypes.data + memory.nbytes <= end
                    return memory.flags.writeable, permissions, rest[-1]
            raise AssertionError("no such memory")

    actors = [ray.remote(Actor).remote(*options["fn_constructor_args"]) for _ in range(2)]
    for writeable, permissions, file in ray.get([each.program.remote() for each in actors]):
        assert not writeable and permissions.endswith("s") and "plasma" in file


def test_a_million_rows(files: Files, tmp_path: Path) -> None:
    # Reads the file itself, because Ray's own reader may wait for ever where a file has no rows.
    tables = [parquet.read_table(path) for path in sorted(files.folder.iterdir())]
    predicted = engine.predict(ray.data.from_arrow(tables), files.forest, name="p", concurrency=2)
    predicted.select_columns(files.columns).write_parquet(str(tmp_path / "predictions"))
    files.check(tmp_path / "predictions")


def test_a_killed_worker_loses_no_rows(model: Case, tmp_path: Path) -> None:
    def slowly(rows: pa.Table) -> pa.Table:
        time.sleep(0.1)
        return rows

    def note(rows: pa.Table) -> pa.Table:
        (tmp_path / str(rows["id"][0])).touch()
        return rows

    rows = ray.data.from_arrow([model.rows.slice(begin, 50) for begin in range(0, len(model.values), 50)])
    slow = rows.map_batches(slowly, batch_format="pyarrow")
    predicted = engine.predict(slow, model.forest, name="p", concurrency=2).map_batches(note, batch_format="pyarrow")
    tables: list[pa.Table] = []
    running = threading.Thread(target=lambda: tables.extend(ray.get(predicted.to_arrow_refs())))
    running.start()
    while len(list(tmp_path.iterdir())) < 5:
        assert running.is_alive()
        time.sleep(0.01)
    os.kill(processes("ray::MapWorker(")[0], signal.SIGKILL)
    assert len(list(tmp_path.iterdir())) < 60
    running.join()
    got = pa.concat_tables(tables).to_pandas().sort_values("id")
    assert got.id.tolist() == list(range(len(model.values)))
    assert_same(columns_named(got, "p", model.values), model.values)


def post(content: bytes) -> tuple[int, Any]:
    request = urllib.request.Request(
        "http://127.0.0.1:8000/", data=content, headers={"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_deployment_answers_json() -> None:
    from ray import serve

    model = case("classes")
    handle = serve.run(engine.deployment(model.forest).bind())
    rows = np.random.default_rng(1).normal(size=(20, 6))
    status, answer = post(json.dumps({"rows": rows.tolist()}).encode())
    assert status == 200
    assert_same(np.array(answer["predictions"]), model.forest.predict(rows))
    named = {name: rows[:, i].tolist() for i, name in reversed(list(enumerate(model.forest.feature_names)))}
    assert post(json.dumps({"rows": named}).encode()) == (status, answer)
    assert_same(handle.predict.remote(rows).result(), model.forest.predict(rows))
    for content, said in (
        (b'{"rows": [[1, 2]]}', "the rows have 2 columns, the model has 6 features"),
        (b'{"rows": {"x": [1]}}', "columns are missing"),
        (b'{"instances": []}', 'expected {"rows": ...}'),
        (b"[1", "Expecting"),
        (b'{"rows": [["a", "b", "c", "d", "e", "f"]]}', "not numbers"),
    ):
        status, answer = post(content)
        assert status == 400 and said in answer["error"]
    serve.shutdown()


DEPLOY = """
import sys
import ray
from ray import serve
import forestvm
from forestvm.engines import ray as engine

ray.init(address="auto", log_to_driver=False)
forest = forestvm.load(sys.argv[1], rounds=(0, int(sys.argv[2])), threads=1)
serve.run(engine.deployment(forest).bind())
"""


def deploy(rounds: int) -> None:
    """Makes a deployment of the first rounds of a model in a process that ends afterwards."""
    command = [sys.executable, "-c", DEPLOY, str(MODELS["classes"]), str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-4000:]


def keepers() -> list[int]:
    """Returns the processes that own programs of deployments."""
    return processes("ray::_Keeper")


def test_a_deployment_outlives_the_process_that_has_made_it() -> None:
    from ray import serve

    rows = np.random.default_rng(1).normal(size=(20, 6))
    wanted = {n: forestvm.load(MODELS["classes"], rounds=(0, n)).predict(rows) for n in (2, 3)}
    assert (wanted[2] != wanted[3]).any()
    for rounds in (2, 3):
        deploy(rounds)
        (replica,) = processes("ray::ServeReplica:default:forestvm")
        handle = serve.get_app_handle("default")
        assert_same(handle.predict.remote(rows).result(), wanted[rounds])
        os.kill(replica, signal.SIGKILL)
        # Another replica takes its place, though the process that has put the program in the object store has ended.
        wait_until(lambda: processes("ray::ServeReplica:default:forestvm") not in ([], [replica]))
        wait_until(lambda: serve.status().applications["default"].status == "RUNNING")
        assert_same(handle.predict.remote(rows).result(), wanted[rounds])
        wait_until(lambda: len(keepers()) == 1)  # the earlier keeper has ended, and its program is freed
    serve.delete("default")
    wait_until(lambda: not keepers())
    serve.shutdown()


def wait_until(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.2)

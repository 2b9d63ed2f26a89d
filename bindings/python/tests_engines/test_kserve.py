"""KServe: its server in a process of its own, asked in three ways."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, MODELS, UNCERTAIN, assert_same, check_one_copy

import forestvm

if importlib.util.find_spec("kserve") is None:  # not imported: its gRPC messages clash with those of Triton's client
    pytest.skip("no package kserve", allow_module_level=True)
UNNAMED = DATA / "xgboost_versions" / "3.2.0_early" / "model.json"
PORT, GRPC_PORT, SWAP_PORT, SWAP_GRPC_PORT, SHARING_PORT = range(18080, 18085)

SERVER = """
import sys, kserve
from forestvm.engines.kserve import Model, allow_slow_start

if __name__ == "__main__":
    allow_slow_start(120)  # importing packages takes long on a busy machine
    port, grpc_port, workers = map(int, sys.argv[1:4])
    models = [Model(path, name) for name, path in zip(sys.argv[4::2], sys.argv[5::2])]
    ports = {"http_port": port, "grpc_port": grpc_port, "enable_grpc": grpc_port != 0}
    kserve.ModelServer(workers=workers, **ports).start(models)
"""


@contextlib.contextmanager
def serving(folder: Path, port: int, grpc_port: int, workers: int, models: dict[str, Path]) -> Iterator[Path]:
    """Runs a server, and gives the file of its messages."""
    script, log = folder / "server.py", folder / "log"
    script.write_text(SERVER)
    command = [sys.executable, str(script), str(port), str(grpc_port), str(workers)]
    for name, path in models.items():
        command += [name, str(path)]
    with open(log, "wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    try:
        deadline = time.monotonic() + 300
        while not is_ready(port):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield log
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_ready(port: int) -> bool:
    try:
        return get("/v2/health/ready", port=port)[0] == 200
    except OSError:
        return False


def get(path: str, content: bytes | None = None, port: int = PORT) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data=content, headers={"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with serving(tmp_path_factory.mktemp("kserve"), PORT, GRPC_PORT, 1, {**MODELS, "unnamed": UNNAMED}):
        yield


@pytest.fixture(params=["float32", "classes"])
def model(request: pytest.FixtureRequest) -> tuple[str, forestvm.Forest, np.ndarray]:
    forest = forestvm.load(MODELS[request.param])
    rows = np.random.default_rng(5).normal(scale=20, size=(50, forest.num_features)).astype(forest._row_dtype)
    return request.param, forest, rows


def test_json_of_both_versions(model: tuple[str, forestvm.Forest, np.ndarray]) -> None:
    name, forest, rows = model
    wanted = forest.predict(rows)
    datatype = {"float32": "FP32", "float64": "FP64"}[str(rows.dtype)]
    tensor = {"name": "rows", "shape": list(rows.shape), "datatype": datatype, "data": rows.reshape(-1).tolist()}
    status, answer = get(f"/v2/models/{name}/infer", json.dumps({"inputs": [tensor]}).encode())
    assert status == 200, answer
    (output,) = answer["outputs"]
    assert_same(np.array(output["data"], wanted.dtype).reshape(output["shape"]), wanted)
    columns = [
        {"name": column, "shape": [len(rows)], "datatype": datatype, "data": rows[:, i].tolist()}
        for i, column in reversed(list(enumerate(forest.feature_names)))
    ]
    assert get(f"/v2/models/{name}/infer", json.dumps({"inputs": columns}).encode())[1]["outputs"] == answer["outputs"]
    status, answer = get(f"/v1/models/{name}:predict", json.dumps({"instances": rows.tolist()}).encode())
    assert status == 200
    assert_same(np.array(answer["predictions"], wanted.dtype), wanted)
    instances = [dict(zip(forest.feature_names, row)) for row in rows.tolist()]
    assert get(f"/v1/models/{name}:predict", json.dumps({"instances": instances}).encode()) == (status, answer)


@pytest.mark.parametrize("way", ["http", "grpc"])
def test_tritons_clients(model: tuple[str, forestvm.Forest, np.ndarray], way: str) -> None:
    clients = pytest.importorskip(f"tritonclient.{way}")
    name, forest, rows = model
    port = PORT if way == "http" else GRPC_PORT
    client = clients.InferenceServerClient(f"127.0.0.1:{port}")
    tensor = clients.InferInput("rows", list(rows.shape), {"float32": "FP32", "float64": "FP64"}[str(rows.dtype)])
    tensor.set_data_from_numpy(rows)
    answer = client.infer(name, [tensor])
    assert_same(answer.as_numpy("prediction"), forest.predict(rows))


def feature_tensors(name: str) -> list[dict[str, Any]]:
    """Returns the tensors that the metadata of a model with names shall have."""
    forest = forestvm.load(MODELS[name])
    number = {"float32": "FP32", "float64": "FP64"}[forest._row_dtype]
    return [
        {"name": feature, "datatype": "BYTES" if feature in forest.categories else number, "shape": [-1]}
        for feature in forest.feature_names
    ]


@pytest.mark.parametrize("name", [*MODELS, "unnamed"])
def test_metadata_names_types_and_shapes(name: str) -> None:
    status, answer = get(f"/v2/models/{name}")
    assert status == 200
    unnamed = [{"name": "rows", "datatype": "FP32", "shape": [-1, 8]}]
    assert answer["inputs"] == (unnamed if name == "unnamed" else feature_tensors(name))
    datatype = "FP32" if name in ("float32", "unnamed") else "FP64"
    shape = [-1, 3] if name == "classes" else [-1]
    assert answer["outputs"] == [{"name": "prediction", "datatype": datatype, "shape": shape}]
    clients = pytest.importorskip("tritonclient.grpc")
    told = clients.InferenceServerClient(f"127.0.0.1:{GRPC_PORT}").get_model_metadata(name, as_json=True)
    for key in ("inputs", "outputs"):
        tensors = [{**tensor, "shape": list(map(int, tensor["shape"]))} for tensor in told[key]]
        assert tensors == answer[key]


def rows_with_categories() -> dict[str, list[Any]]:
    """Makes rows by feature. Some texts are no categories of the model."""
    forest = forestvm.load(MODELS["categories"])
    random = np.random.default_rng(6)
    return {
        name: random.choice([*forest.categories[name], "unseen"], 40).tolist()
        if name in forest.categories
        else random.normal(scale=20, size=40).tolist()
        for name in forest.feature_names
    }


def test_named_categories() -> None:
    forest = forestvm.load(MODELS["categories"])
    rows = rows_with_categories()
    wanted = forest.predict(rows).tolist()
    assert len(set(wanted)) > 5
    instances = [dict(zip(rows, row)) for row in zip(*rows.values())]
    status, answer = get("/v1/models/categories:predict", json.dumps({"instances": instances}).encode())
    assert (status, answer) == (200, {"predictions": wanted})
    tensors = [{**tensor, "shape": [40], "data": rows[tensor["name"]]} for tensor in feature_tensors("categories")]
    status, answer = get("/v2/models/categories/infer", json.dumps({"inputs": tensors}).encode())
    assert status == 200 and answer["outputs"][0]["data"] == wanted
    tensors[-1]["data"][3] = None  # a missing value
    status, answer = get("/v2/models/categories/infer", json.dumps({"inputs": tensors}).encode())
    assert status == 200 and answer["outputs"][0]["data"] == forest.predict(rows).tolist()


@pytest.mark.parametrize("way", ["http", "grpc", "grpc with contents"])
def test_named_categories_from_tritons_clients(way: str) -> None:
    module = way.split()[0]
    clients = pytest.importorskip(f"tritonclient.{module}")
    rows = rows_with_categories()
    inputs = []
    for described in feature_tensors("categories"):
        values, texts = rows[described["name"]], described["datatype"] == "BYTES"
        tensor = clients.InferInput(described["name"], [40], described["datatype"])
        if way == "grpc with contents":  # Triton's clients send bytes instead, other clients send contents
            contents = tensor._get_tensor().contents
            if texts:
                contents.bytes_contents.extend(value.encode() for value in values)
            else:
                contents.fp64_contents.extend(values)
        else:
            tensor.set_data_from_numpy(np.array(values, object if texts else None))
        inputs.append(tensor)
    client = clients.InferenceServerClient(f"127.0.0.1:{PORT if module == 'http' else GRPC_PORT}")
    answer = client.infer("categories", inputs)
    if way == "grpc with contents":
        got = np.array(answer.get_response().outputs[0].contents.fp64_contents)
    else:
        got = answer.as_numpy("prediction")
    assert_same(got, forestvm.load(MODELS["categories"]).predict(rows))


def test_bytes_that_are_no_text_are_told() -> None:
    clients = pytest.importorskip("tritonclient.grpc")
    tensor = clients.InferInput("x/y", [1], "BYTES")
    tensor.set_data_from_numpy(np.array([b"\xff"], object))
    client = clients.InferenceServerClient(f"127.0.0.1:{GRPC_PORT}")
    with pytest.raises(Exception, match="tensor 'x/y': 'utf-8' codec can't decode") as error:
        client.infer("categories", [tensor])
    assert str(error.value.status()) == "StatusCode.INVALID_ARGUMENT"


def test_a_model_uses_one_thread_unless_told() -> None:
    code = f"""
from forestvm.engines import kserve
for threads in ({{}}, {{"threads": 2}}):
    print(kserve.Model({str(MODELS["classes"])!r}, **threads)._forest._options["threads"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["1", "2"], done.stderr


def test_a_number_that_is_missing() -> None:
    forest = forestvm.load(MODELS["classes"])
    rows = np.random.default_rng(5).normal(scale=20, size=(50, forest.num_features)).round(3)
    rows[:, 1] = np.where(rows[:, 1] > 0, -99, rows[:, 1])
    code = f"""
import asyncio, json, sys
from forestvm.engines import kserve
for missing in ({{}}, {{"missing": -99}}):
    answer = asyncio.run(kserve.Model({str(MODELS["classes"])!r}, **missing).predict({{"instances": {rows.tolist()}}}))
    print(json.dumps(answer["predictions"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    got = [np.array(json.loads(line)) for line in done.stdout.splitlines()[-2:]]
    assert len(got) == 2, done.stderr
    assert_same(got[0], forest.predict(rows))
    assert_same(got[1], forest.predict(np.where(rows == -99, np.nan, rows)))
    assert (got[0] != got[1]).any()


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("/v1/models/classes:predict", {"instances": [[1, 2]]}, "the rows have 2 columns, the model has 6 features"),
        ("/v1/models/classes:predict", {"instances": [{"x": 1}]}, "columns are missing"),
        ("/v1/models/classes:predict", {"instances": [{"x": 1}, {"y": 2}]}, "different features"),
        ("/v1/models/classes:predict", {"instances": [{"x": 1}, {"x": 1, "y": 2}]}, "different features"),
        (
            "/v2/models/classes/infer",
            {"inputs": [{"name": "rows", "shape": [1, 2], "datatype": "FP64", "data": [1, 2]}]},
            "2 columns",
        ),
        (
            "/v2/models/classes/infer",
            {"inputs": [{"name": "rows", "shape": [2, 6], "datatype": "FP64", "data": [1, 2]}]},
            "rows",
        ),
        (
            "/v2/models/classes/infer",
            {"inputs": [{"name": "rows", "shape": [1, 1, 6], "datatype": "FP64", "data": [1] * 6}]},
            "expected one tensor",
        ),
        (
            "/v2/models/classes/infer",
            {"inputs": [{"name": "rows", "shape": [1, 6], "datatype": "BYTES", "data": ["a"] * 6}]},
            "tensor 'rows': its datatype is BYTES, the model takes FP64",
        ),
        (
            "/v2/models/classes/infer",
            {"inputs": [{"name": "x", "shape": [1, 6], "datatype": "FP64", "data": [1] * 6}]},
            "tensor 'x': the tensor [rows, features] is named 'rows'",
        ),
        (
            "/v2/models/categories/infer",
            {"inputs": [{"name": "x/y", "shape": [1], "datatype": "INT32", "data": [1]}]},
            "tensor 'x/y': its datatype is INT32, the model takes FP64 or BYTES",
        ),
        (
            "/v2/models/categories/infer",
            {"inputs": [{"name": "x/y", "shape": [1], "datatype": "BYTES", "data": [5]}]},
            "tensor 'x/y': 5 is not a text",
        ),
        (
            "/v2/models/categories/infer",
            {"inputs": [{"name": "age", "shape": [1], "datatype": "BYTES", "data": ["old"]}]},
            "tensor 'age': its datatype is BYTES, the model takes FP64",
        ),
        (
            "/v2/models/categories/infer",
            {"inputs": [{"name": "x/y", "shape": [2], "datatype": "BYTES", "data": ["rot"]}]},
            "tensor 'x/y': cannot reshape",
        ),
        (
            "/v2/models/categories/infer",
            {"inputs": [{"name": "ages", "shape": [1], "datatype": "FP64", "data": [1]}]},
            "the model has no features called 'ages'",
        ),
        ("/v2/models/categories/infer", {"inputs": []}, "columns are missing"),
        (
            "/v2/models/classes/infer",
            {"inputs": [{"name": "age", "shape": [1], "datatype": "FP64", "data": [1]}] * 2},
            "tensor 'age': the request has it twice",
        ),
        (
            "/v2/models/classes/infer",
            {
                "inputs": [{"name": "rows", "shape": [1, 6], "datatype": "FP64", "data": [1] * 6}],
                "outputs": [{"name": "odds"}],
            },
            "asks for the output 'odds': the model has 'prediction'",
        ),
    ],
)
def test_wrong_requests_are_told_why(path: str, content: Any, said: str) -> None:
    status, answer = get(path, json.dumps(content).encode())
    assert status == 400 and said in answer


@pytest.mark.parametrize("way", ["http", "grpc"])
def test_wrong_binary_requests_are_told_why(way: str) -> None:
    clients = pytest.importorskip(f"tritonclient.{way}")
    from tritonclient.utils import np_to_triton_dtype

    client = clients.InferenceServerClient(f"127.0.0.1:{PORT if way == 'http' else GRPC_PORT}")
    for name, rows, said in (
        ("rows", np.zeros((1, 2)), "the rows have 2 columns, the model has 6 features"),
        ("rows", np.zeros((1, 1, 6)), "expected one tensor"),
        ("other", np.zeros(3), "columns are missing"),
        ("x", np.zeros((1, 6)), "is named 'rows'"),
        ("rows", np.full((1, 6), "a", dtype=object), "its datatype is BYTES, the model takes FP64"),
        ("rows", np.zeros((1, 6), bool), "its datatype is BOOL, the model takes FP64"),
        ("rows", np.zeros((1, 6), np.int32), "its datatype is INT32, the model takes FP64"),
        ("rows", np.zeros((1, 6), np.float32), "its datatype is FP32, the model takes FP64"),
        ("rows", np.zeros((1, 6), np.float16), "its datatype is FP16, the model takes FP64"),
    ):
        tensor = clients.InferInput(name, list(rows.shape), np_to_triton_dtype(rows.dtype))
        tensor.set_data_from_numpy(rows)
        with pytest.raises(Exception, match=said) as error:
            client.infer("classes", [tensor])
        assert str(error.value.status()) in ("400", "StatusCode.INVALID_ARGUMENT")


def test_health_and_models_that_are_not_there() -> None:
    assert get("/v2/health/live") == (200, {"live": True})
    assert get("/v2/models/classes/ready")[0] == 200
    assert get("/v1/models/classes") == (200, {"name": "classes", "ready": True})
    assert get("/v2/models/other/infer", b'{"inputs": []}')[0] == 404


def metrics(port: int = PORT) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/plain")
        return str(answer.read().decode())


def test_metrics_count_and_time_predictions() -> None:
    def measured(what: str) -> float:
        found = re.search(rf'^request_predict_seconds_{what}{{model_name="classes"}} (\S+)$', metrics(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    count, seconds = measured("count"), measured("sum")
    for _ in range(7):
        assert get("/v1/models/classes:predict", b'{"instances": [[1, 2, 3, 4, 5, 6]]}')[0] == 200
    assert measured("count") == count + 7
    assert measured("sum") > seconds
    assert 'request_predict_seconds_bucket{le="+Inf",model_name="classes"}' in metrics()


def test_contributions_and_outputs_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "model.fvm"
    forestvm.load(MODELS["classes"]).save(path)
    code = f"""
import asyncio
from forestvm.engines import kserve
model = kserve.Model({str(MODELS["classes"])!r}, output="contributions")
print(asyncio.run(model.get_output_types())[0]["shape"])
print(asyncio.run(model.predict({{"instances": [[1, 2, 3, 4, 5, 6]]}}))["predictions"])
try:
    kserve.Model({str(path)!r}, output="contributions")
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    forest = forestvm.load(MODELS["classes"], contributions=True)
    wanted = forest.predict([[1, 2, 3, 4, 5, 6]], output="contributions").tolist()
    assert done.stdout.splitlines()[:2] == ["[-1, 21]", str(wanted)]
    assert "load it with contributions=True" in done.stdout


def test_a_worker_process_starts_before_it_has_read_the_model() -> None:
    """KServe kills worker processes that do not answer after some seconds."""
    code = f"""
import asyncio, pickle, threading, time
from forestvm.engines import kserve
model = kserve.Model({str(MODELS["float32"])!r})
pickled = pickle.dumps(model)
may_load, load = threading.Event(), kserve.load_with
kserve.load_with = lambda *arguments: may_load.wait() and load(*arguments)
copy = pickle.loads(pickled)
assert model.ready and not copy.ready
threading.Timer(0.5, may_load.set).start()
async def types(): return await copy.get_input_types(), await model.get_input_types()
given, wanted = asyncio.run(types())
assert given == wanted and copy.ready
kserve.load_with = None
pickle.loads(pickled)  # ends the process
time.sleep(100)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "cannot read the model" in done.stderr + done.stdout


def test_worker_processes_have_one_copy_of_a_program(tmp_path: Path) -> None:
    """They map a program file where it lies, and the program of a model in the folder of programs."""
    forests = {"program": forestvm.load(MODELS["classes"]), "model": forestvm.load(UNCERTAIN)}
    program = tmp_path / "program.fvm"
    forests["program"].save(program)
    with serving(tmp_path, SHARING_PORT, 0, 2, {"program": program, "model": UNCERTAIN}) as log:
        for name, file in (("program", program), ("model", None)):
            check_one_copy(forests[name], 3, file)  # two worker processes, and the one that has started them
        assert "a program of its own" not in log.read_text()


def test_a_program_that_cannot_be_shared_is_served(tmp_path: Path) -> None:
    (tmp_path / "folder").touch()
    code = f"""
import asyncio
from forestvm.engines import kserve
model = kserve.Model({str(MODELS["classes"])!r})
print(asyncio.run(model.predict({{"instances": [[1, 2, 3, 4, 5, 6]]}}))["predictions"])
"""
    environment = {**os.environ, "FORESTVM_PROGRAMS": str(tmp_path / "folder")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, env=environment)
    wanted = forestvm.load(MODELS["classes"]).predict([[1, 2, 3, 4, 5, 6]]).tolist()
    assert done.stdout.splitlines()[-1] == str(wanted), done.stderr
    assert "a program of its own" in done.stderr + done.stdout


def test_the_server_answers_while_a_new_file_is_read(tmp_path: Path) -> None:
    """Requests that begin after the replacement wait for the new program; the server does something else meanwhile."""
    path = tmp_path / "model.fvm"
    programs = [forestvm.load(MODELS["float32"], rounds=(0, rounds)) for rounds in (10, 20)]
    programs[0].save(path)
    replaced = tmp_path / "replaced.fvm"
    programs[1].save(replaced)
    code = f"""
import asyncio, os, threading
from forestvm.engines import kserve
model = kserve.Model({str(path)!r})
may_load, load, loads = threading.Event(), kserve.load_with, []
def load_slowly(*arguments):
    loads.append(arguments)
    assert may_load.wait(60)
    return load(*arguments)
kserve.load_with = load_slowly
rows = {{"instances": [[0.5] * 30]}}
async def ask():
    print((await model.predict(rows))["predictions"])
    os.replace({str(replaced)!r}, {str(path)!r})
    waiting = [asyncio.create_task(model.predict(rows)) for _ in range(3)]
    while not loads:
        await asyncio.sleep(0.01)
    assert not any(task.done() for task in waiting)
    may_load.set()  # runs only if this thread is not the one that reads the file
    for task in waiting:
        print((await task)["predictions"])
    assert len(loads) == 1
asyncio.run(ask())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    old, new = (str(forest.predict([[0.5] * 30]).tolist()) for forest in programs)
    assert old != new
    assert done.stdout.splitlines() == [old, new, new, new]


class Asker:
    """A connection to the server whose program is replaced, which asks in one way for predictions of the same rows."""

    def __init__(self, way: str, rows: np.ndarray) -> None:
        self._way, self._rows = way, rows
        if way == "grpc":
            self._clients = pytest.importorskip("tritonclient.grpc")
            self._client = self._clients.InferenceServerClient(f"127.0.0.1:{SWAP_GRPC_PORT}")
        else:
            self._client = http.client.HTTPConnection("127.0.0.1", SWAP_PORT, timeout=60)

    def ask(self) -> list[float]:
        """Returns the predictions; raises if the server does not give any."""
        rows = self._rows
        if self._way == "grpc":
            tensor = self._clients.InferInput("rows", list(rows.shape), "FP32")
            tensor.set_data_from_numpy(rows)
            return self._client.infer("swapped", [tensor]).as_numpy("prediction").tolist()
        if self._way == "v1":
            answer = self._post("/v1/models/swapped:predict", {"instances": rows.tolist()})
            return answer["predictions"]
        tensor = {"name": "rows", "shape": list(rows.shape), "datatype": "FP32", "data": rows.reshape(-1).tolist()}
        answer = self._post("/v2/models/swapped/infer", {"inputs": [tensor]})
        return answer["outputs"][0]["data"]

    def _post(self, path: str, content: Any) -> Any:
        self._client.request("POST", path, json.dumps(content), {"content-type": "application/json"})
        answer = self._client.getresponse()
        content = answer.read().decode()
        assert answer.status == 200, content
        return json.loads(content)

    def close(self) -> None:
        self._client.close()


def test_a_program_is_replaced_while_clients_ask(tmp_path: Path) -> None:
    """Each answer is wholly of one program, none is lost, and an answer after a replacement is of the new program."""
    programs = [forestvm.load(MODELS["float32"], rounds=(0, rounds)) for rounds in (10, 20)]
    rows = np.random.default_rng(5).normal(scale=20, size=(300, 30)).astype(np.float32)
    wanted = [forest.predict(rows).tolist() for forest in programs]
    assert not any(map(float.__eq__, *wanted))
    path = tmp_path / "swapped.fvm"
    programs[0].save(path)
    ways = ("v1", "v2", "grpc")
    seen: dict[str, set[int]] = {way: set() for way in ways}
    lost: list[BaseException] = []
    stopped = threading.Event()

    def hammer(way: str) -> None:
        asker = Asker(way, rows)
        try:
            while not stopped.is_set():
                seen[way].add(wanted.index(asker.ask()))
        except BaseException as error:
            lost.append(error)

    with serving(tmp_path, SWAP_PORT, SWAP_GRPC_PORT, 2, {"swapped": path}) as log:
        clients = [threading.Thread(target=hammer, args=[way]) for way in ("v1", *ways)]
        for client in clients:
            client.start()
        for swap in range(1, 31):
            programs[swap % 2].save(path)
            for way in ways:
                asker = Asker(way, rows)  # new connections go to any of the worker processes
                assert asker.ask() == wanted[swap % 2], way
                asker.close()
        (tmp_path / "broken").write_bytes(b"no program")
        (tmp_path / "broken").rename(path)
        for way in ways * 3:
            asker = Asker(way, rows)
            # Each worker process keeps the last program that it has read, which need not be the last one of all.
            assert asker.ask() in wanted
            asker.close()
        stopped.set()
        for client in clients:
            client.join()
        assert get("/v2/health/ready", port=SWAP_PORT)[0] == 200
        assert "the old model stays in use" in log.read_text()
    assert not lost
    assert seen == {way: {0, 1} for way in ways}

"""KServe: its server in a process of its own, asked in three ways."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MODELS, assert_same

import forestvm

if importlib.util.find_spec("kserve") is None:  # not imported: its gRPC messages clash with those of Triton's client
    pytest.skip("no package kserve", allow_module_level=True)
PORT, GRPC_PORT = 18080, 18081

SERVER = """
import sys, kserve
from forestvm.engines.kserve import Model
models = [Model(path, name) for name, path in zip(sys.argv[3::2], sys.argv[4::2])]
kserve.ModelServer(http_port=int(sys.argv[1]), grpc_port=int(sys.argv[2]), workers=1).start(models)
"""


def get(path: str, content: bytes | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}{path}", data=content, headers={"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    named = [text for name, path in MODELS.items() for text in (name, str(path))]
    log = tmp_path_factory.mktemp("kserve") / "log"
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(PORT), str(GRPC_PORT), *named], stdout=file, stderr=file
        )
    deadline = time.monotonic() + 120
    while True:
        try:
            if get("/v2/health/ready")[0] == 200:
                break
        except OSError:
            pass
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
    yield
    process.terminate()
    process.wait()


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


def test_metadata_names_types_and_shapes() -> None:
    status, answer = get("/v2/models/classes")
    assert status == 200
    assert answer["inputs"] == [{"name": "rows", "datatype": "FP64", "shape": [-1, 6]}]
    assert answer["outputs"] == [{"name": "prediction", "datatype": "FP64", "shape": [-1, 3]}]


def test_named_categories() -> None:
    forest = forestvm.load(MODELS["categories"])
    row = {name: forest.categories[name][1] if name in forest.categories else 1.5 for name in forest.feature_names}
    status, answer = get("/v1/models/categories:predict", json.dumps({"instances": [row]}).encode())
    assert (status, answer) == (200, {"predictions": [forest.predict_one(row)]})


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("/v1/models/classes:predict", {"instances": [[1, 2]]}, "the rows have 2 columns, the model has 6 features"),
        ("/v1/models/classes:predict", {"instances": [{"x": 1}]}, "columns are missing"),
        ("/v1/models/classes:predict", {"instances": [{"x": 1}, {"y": 2}]}, "different features"),
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
            "",
        ),
    ],
)
def test_wrong_requests_are_told_why(path: str, content: Any, said: str) -> None:
    status, answer = get(path, json.dumps(content).encode())
    assert status == 400 and said in answer

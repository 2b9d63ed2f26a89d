"""Ray: datasets, and a deployment of Serve."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import Case, assert_same, case, columns_named

pa = pytest.importorskip("pyarrow")
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

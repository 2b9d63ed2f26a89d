"""MLflow's pyfunc flavour."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Case, Codes, assert_same, case

import forestvm

mlflow = pytest.importorskip("mlflow")

from forestvm.engines import mlflow as engine  # noqa: E402  (imports MLflow, which may be absent)


def test_saved_models_answer_as_the_forest(model: Case, tmp_path: Path) -> None:
    frame = model.rows.to_pandas()
    engine.save(model.forest, tmp_path / "model")
    assert_same(mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(frame), model.values)
    engine.save(model.forest, tmp_path / "leaves", output="leaf", threads=1)
    assert_same(mlflow.pyfunc.load_model(str(tmp_path / "leaves")).predict(frame), model.leaves)


def test_outputs_of_many_numbers(listed: Case, tmp_path: Path) -> None:
    engine.save(listed.forest, tmp_path / "model", output=listed.output)
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert_same(loaded.predict(listed.rows.to_pandas()), listed.values)
    with pytest.raises(forestvm.Refused, match="load the model with contributions=True"):
        engine.save(case("classes").forest, tmp_path / "other", output="contributions")


def test_a_model_uses_one_thread_unless_told(tmp_path: Path) -> None:
    forest = case("classes").forest
    for number, (options, wanted) in enumerate((({}, 1), ({"threads": 2}, 2), ({"threads": None}, None))):
        engine.save(forest, tmp_path / str(number), **options)
        loaded = mlflow.pyfunc.load_model(str(tmp_path / str(number)))
        assert loaded._model_impl.forest._options["threads"] == wanted
    with pytest.raises(forestvm.Usage, match="threads is 0"):
        engine.save(forest, tmp_path / "none", threads=0)


def test_a_model_with_a_signature(tmp_path: Path) -> None:
    from mlflow.models import infer_signature

    model = case("classes")
    rows = np.zeros((2, 6))
    engine.save(model.forest, tmp_path / "model", signature=infer_signature(rows, model.forest.predict(rows)))
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert_same(loaded.predict(rows), model.forest.predict(rows))
    with pytest.raises(forestvm.Usage, match="output is 'odds'"):
        engine.save(model.forest, tmp_path / "other", output="odds")


def content_of(rows: Any) -> dict[str, Any]:
    """Returns the request to MLflow's scoring server for an array or a frame, in which missing values are null."""
    if isinstance(rows, np.ndarray):
        return {"inputs": rows.tolist()}
    return {"dataframe_split": json.loads(rows.to_json(orient="split"))}


def test_missing_numbers_and_columns_by_position(codes: Codes, tmp_path: Path) -> None:
    engine.save(codes.forest, tmp_path / "model", **codes.options)
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert_same(loaded.predict(codes.rows.to_pandas()), codes.values)


def test_wrong_rows_are_told_why(tmp_path: Path) -> None:
    """In the process, and as MLflow's scoring server answers: with status 400 and the text of the error."""
    from mlflow.pyfunc import scoring_server

    model = case("classes")
    engine.save(model.forest, tmp_path / "model")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    rows = model.rows.to_pandas()[:3]
    client = pytest.importorskip("starlette.testclient").TestClient(scoring_server.init(loaded))
    wrong = {
        "columns are missing: 'age'": rows.drop(columns="age"),
        "column 'age': it holds the text": rows.assign(age="old"),
        "the rows have 2 columns, the model has 6 features": np.zeros((2, 2)),
    }
    for said, given in wrong.items():
        with pytest.raises(forestvm.Usage, match=said):
            loaded.predict(given)
        answer = client.post("/invocations", json=content_of(given))
        assert answer.status_code == 400 and re.search(said, answer.text), answer.text
    right = client.post("/invocations", json=content_of(rows))
    assert_same(np.array(right.json()["predictions"]), model.values[:3])

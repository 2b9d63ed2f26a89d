"""Forest.explain: its object for rows of every form, and SHAP's own explanations of a model where SHAP is installed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forestvm

Rows = np.ndarray[Any, Any]


@pytest.fixture
def without_shap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shap", None)  # makes importing it fail


@pytest.fixture
def forest(breast_cancer: Path) -> forestvm.Forest:
    return forestvm.load(breast_cancer, contributions=True)


def test_contributions_and_data(forest: forestvm.Forest, rows: Rows, without_shap: None) -> None:
    parts = forest.contributions(rows)
    explanation = forest.explain(rows)
    assert type(explanation) is forestvm.Explanation and len(explanation) == len(rows)
    assert explanation.shape == (171, 30) and repr(explanation) == "<forestvm.Explanation: values of shape (171, 30)>"
    assert np.array_equal(explanation.values, parts[:, :-1]) and np.array_equal(explanation.base_values, parts[:, -1])
    assert explanation.data is rows
    assert explanation.feature_names == list(forest.feature_names) and explanation.output_names is None
    some = explanation[3:5]
    assert np.array_equal(some.values, parts[3:5, :-1]) and np.array_equal(some.data, rows[3:5])
    one = explanation[7]
    assert one.shape == (30,) and one.base_values == parts[7, -1] and one.feature_names == explanation.feature_names
    assert forest.explain(rows[:0]).shape == (0, 30)


def test_columns_are_in_the_order_of_the_features(forest: forestvm.Forest, rows: Rows, without_shap: None) -> None:
    table = dict(zip(forest.feature_names[::-1], rows.T[::-1]))
    more = table | {"more": rows[:, 0]}
    assert np.array_equal(forest.explain(more, extra="ignore").data, rows)
    with pytest.raises(forestvm.FeatureMismatch):
        forest.explain(more)


@pytest.mark.parametrize("form", ["dictionary", "structured", "pandas.DataFrame", "polars.DataFrame", "pyarrow.table"])
def test_tables(form: str, forest: forestvm.Forest, rows: Rows, without_shap: None) -> None:
    names = list(forest.feature_names[::-1])
    table: Any = dict(zip(names, rows.T[::-1]))
    if form == "structured":
        table = np.rec.fromarrays(list(table.values()), names=names)
    elif form != "dictionary":
        package, function = form.split(".")
        table = getattr(pytest.importorskip(package), function)(table)
    explanation = forest.explain(table)
    assert explanation.data.dtype == np.float32 and np.array_equal(explanation.data, rows)
    assert np.array_equal(explanation.values, forest.contributions(rows)[:, :-1])


def test_values_that_are_no_numbers_stay_as_they_are(without_shap: None) -> None:
    pandas = pytest.importorskip("pandas")
    lightgbm = pytest.importorskip("lightgbm")
    colours = pandas.Series(["red", "green", "blue", "green"] * 50, dtype="category")
    frame = pandas.DataFrame({"colour": colours, "size": np.arange(200) % 7})
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(frame, np.arange(200) % 4)
    explanation = forestvm.from_lightgbm(model, contributions=True).explain(frame[["size", "colour"]])
    assert explanation.feature_names == ["colour", "size"]
    assert explanation.data[:3].tolist() == [["red", 0], ["green", 1], ["blue", 2]]


def test_other_forms_of_rows(forest: forestvm.Forest, rows: Rows, without_shap: None) -> None:
    assert np.array_equal(forest.explain(rows[:3].tolist()).data, rows[:3].astype(np.float64))
    assert forest.explain(forest.encode(rows)).data is None
    scipy_sparse = pytest.importorskip("scipy.sparse")
    assert forest.explain(scipy_sparse.csr_matrix(rows)).data is None


def test_names_of_the_rows_serve_models_without_names(
    tmp_path: Path, breast_cancer: Path, rows: Rows, without_shap: None
) -> None:
    pandas = pytest.importorskip("pandas")
    model = json.loads(breast_cancer.read_text(encoding="utf-8"))
    model["learner"]["feature_names"] = []
    nameless = tmp_path / "model.json"
    nameless.write_text(json.dumps(model), encoding="utf-8")
    forest = forestvm.load(nameless, contributions=True)
    assert forest.explain(rows).feature_names is None
    names = [f"column {i}" for i in range(30)]
    assert forest.explain(pandas.DataFrame(rows, columns=names)).feature_names == names


def test_without_contributions_is_an_error(breast_cancer: Path, rows: Rows) -> None:
    with pytest.raises(forestvm.Refused, match="contributions=True"):
        forestvm.load(breast_cancer).explain(rows)


def test_shap_is_not_imported_before_it_is_needed(breast_cancer: Path, rows: Rows) -> None:
    program = (
        "import sys, forestvm, numpy\n"
        f"forest = forestvm.load({str(breast_cancer)!r}, contributions=True)\n"
        "forest.contributions(numpy.zeros((1, 30), dtype=numpy.float32))\n"
        "forestvm.Explanation\n"
        "assert 'shap' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("classes", [2, 3])
def test_beside_shap(classes: int) -> None:
    shap = pytest.importorskip("shap")
    xgboost = pytest.importorskip("xgboost")
    pandas = pytest.importorskip("pandas")
    rows = np.random.default_rng(1).normal(size=(200, 4)).astype(np.float32)
    frame = pandas.DataFrame(rows, columns=["a", "b", "c", "d"])
    target = np.digitize(rows[:, 0] * rows[:, 1] + rows[:, 2], [-0.5, 0.5] if classes == 3 else [0.0])
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=4).fit(frame, target)
    expected = shap.TreeExplainer(model)(frame)
    explanation = forestvm.from_xgboost(model, contributions=True).explain(frame)
    assert isinstance(explanation, shap.Explanation)
    assert explanation.shape == expected.shape
    np.testing.assert_allclose(explanation.values, expected.values, atol=1e-5)
    np.testing.assert_allclose(explanation.base_values, expected.base_values, atol=1e-5)
    assert np.array_equal(explanation.data, expected.data)
    assert list(explanation.feature_names) == list(expected.feature_names) == list(frame.columns)
    assert np.array_equal(explanation[..., 0].values, explanation.values[..., 0])
    strongest = np.argsort(-explanation.abs.mean(0).values, axis=0)
    assert strongest.shape == explanation.shape[1:]

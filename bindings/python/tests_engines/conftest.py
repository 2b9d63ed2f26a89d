"""Models and rows that every engine must answer as one process does."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import forestvm

pa = pytest.importorskip("pyarrow")

DATA = Path(__file__).resolve().parents[3] / "tests" / "data"
MODELS = {
    "float32": DATA / "breast_cancer" / "model.json",
    "classes": DATA / "lightgbm" / "4.7.0_classes" / "model.txt",
    "categories": DATA / "lightgbm" / "4.7.0_pandas" / "model.txt",
}
ROWS = 3000


class Case(NamedTuple):
    """A model, rows in another order of columns with an id, and the predictions of one process in the order of ids."""

    forest: forestvm.Forest
    rows: pa.Table
    values: np.ndarray
    leaves: np.ndarray

    @property
    def features(self) -> list[str]:
        """The names of the columns in the model's order."""
        return [name for name in self.rows.column_names if name != "id"][::-1]


def case(name: str) -> Case:
    forest = forestvm.load(MODELS[name], threads=1)
    random = np.random.default_rng(3)
    names = list(forest.feature_names)
    columns = {}
    for column in names:
        missing = random.random(ROWS) < 0.1
        categories = forest.categories.get(column)
        if categories is not None:
            texts = np.array([*categories, "unseen"], dtype=object)[random.integers(0, len(categories) + 1, ROWS)]
            columns[column] = pa.array(texts, pa.string(), mask=missing)
        else:
            columns[column] = pa.array(random.normal(scale=20, size=ROWS), pa.float64(), mask=missing)
    rows = pa.table(columns)
    values, leaves = forest.predict(rows), forest.apply(rows)
    assert len(np.unique(values)) > 20
    reversed_rows = rows.select(names[::-1]).append_column("id", pa.array(np.arange(ROWS)))
    return Case(forest, reversed_rows, values, leaves)


@pytest.fixture(scope="session", params=list(MODELS))
def model(request: pytest.FixtureRequest) -> Case:
    return case(request.param)


@pytest.fixture(scope="session", autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sets a new folder for the machine's programs, for this process and those that it starts."""
    folder = tmp_path_factory.mktemp("programs")
    os.environ["FORESTVM_PROGRAMS"] = str(folder)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return folder


def assert_same(got: object, wanted: np.ndarray) -> None:
    """Compares types, shapes and bits."""
    array = np.stack(list(got)) if getattr(got, "dtype", None) == object else np.asarray(got)
    assert array.dtype == wanted.dtype and array.shape == wanted.shape
    assert array.tobytes() == wanted.tobytes()


def columns_named(frame: object, name: str, wanted: np.ndarray) -> object:
    """Returns the columns of predictions of a frame of pandas."""
    if wanted.ndim == 1:
        return frame[name].to_numpy()
    return frame[[f"{name}_{i}" for i in range(wanted.shape[1])]].to_numpy()

"""Models for the tests, and the trainers' own answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

TREE = Path(__file__).resolve().parents[3]
DATA = TREE / "tests" / "data"
ZOO = Path(os.environ.get("FORESTVM_ZOO") or TREE.parent / "shared" / "zoo")
COUNTS = (0, 1, 63, 64, 65, 4096)


class ModelFile(NamedTuple):
    trainer: str
    name: str
    path: Path


def model_files() -> list[ModelFile]:
    """Returns models of this year's XGBoost and LightGBM: those in the tree, and in the folder of further models if it
    is there. Releases differ in the last bits, and forestvm follows the one that wrote the model."""
    files = []
    for trainer, parent, prefix in (
        ("xgboost", DATA / "xgboost_versions", "3.2.0"),
        ("lightgbm", DATA / "lightgbm", "4.7.0"),
        ("xgboost", ZOO / "formats", "xgb_"),
        ("lightgbm", ZOO / "formats", "lgb_"),
    ):
        for folder in sorted(parent.glob(f"{prefix}*/")):
            for name in ("model.ubj", "model.json") if trainer == "xgboost" else ("model.txt",):
                if (folder / name).exists() and (folder / "rows.npy").exists():
                    files.append(ModelFile(trainer, folder.name, folder / name))
                    break
    return files


class Answers(NamedTuple):
    """The rows of a model, and what its trainer's own package gives for them."""

    rows: np.ndarray[Any, Any]
    raw: np.ndarray[Any, Any]
    value: np.ndarray[Any, Any]
    leaf: np.ndarray[Any, Any]


def xgboost_answers(path: Path, rows: np.ndarray[Any, Any]) -> Answers:
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.Booster(model_file=str(path))
    booster.set_param({"nthread": 1})
    matrix = xgboost.DMatrix(rows, feature_names=booster.feature_names, feature_types=booster.feature_types)
    raw = booster.predict(matrix, output_margin=True)
    leaf = booster.predict(matrix, pred_leaf=True)
    return Answers(rows, raw, booster.predict(matrix), leaf.reshape(len(rows), -1).astype(np.int32))


def lightgbm_answers(path: Path, rows: np.ndarray[Any, Any]) -> Answers:
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.Booster(model_file=str(path))
    booster.pandas_categorical = None  # rows hold codes
    options: dict[str, Any] = {"num_threads": 1, "num_iteration": -1}
    leaf = booster.predict(rows, pred_leaf=True, **options).reshape(len(rows), -1).astype(np.int32)
    return Answers(rows, booster.predict(rows, raw_score=True, **options), booster.predict(rows, **options), leaf)


def answers_of(model: ModelFile, count: int = max(COUNTS)) -> Answers:
    rows = np.load(model.path.parent / "rows.npy")
    rows = np.ascontiguousarray(rows[np.arange(count) % len(rows)], dtype=np.float32)
    if model.trainer == "xgboost":
        rows = np.clip(rows, -3e38, 3e38)  # its package refuses infinities
    return (xgboost_answers if model.trainer == "xgboost" else lightgbm_answers)(model.path, rows)


def ulps(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> int:
    """Returns the largest distance of two arrays of one type, in numbers of that type; NaN equals NaN."""
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    kind = np.int32 if got.dtype == np.float32 else np.int64
    ordered = []
    for array in (got, wanted):
        bits = np.ascontiguousarray(array).view(kind).astype(object if kind is np.int64 else np.int64)
        ordered.append(np.where(bits < 0, -(2 ** (8 * array.itemsize - 1)) - bits, bits))
    distance = np.abs(ordered[0] - ordered[1])
    distance[np.isnan(got) & np.isnan(wanted)] = 0
    return int(distance.max(initial=0))


@pytest.fixture(scope="session")
def breast_cancer() -> Path:
    return DATA / "breast_cancer" / "model.json"


@pytest.fixture(scope="session")
def rows() -> np.ndarray[Any, Any]:
    return np.load(DATA / "breast_cancer" / "rows.npy")


@pytest.fixture(autouse=True, scope="session")
def _trainers_use_one_thread() -> Iterator[None]:
    """Keeps OpenMP from waiting for threads that have no CPU: forests do not use it."""
    try:
        import threadpoolctl
    except ImportError:  # without it the tests are slower
        yield
        return
    with threadpoolctl.threadpool_limits(1, user_api="openmp"):
        yield

"""Models for the tests, and the trainers' own answers."""

from __future__ import annotations

import gzip
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
    """Returns models of this year's XGBoost and LightGBM: those in the source tree and, if it exists, in the folder of
    further models. Releases of a trainer differ in the last bits, and forestvm follows the release that wrote the
    model, so that models of older releases cannot be compared with the installed package."""
    return _models_in(
        ("xgboost", DATA / "xgboost_versions", "3.2.0"),
        ("lightgbm", DATA / "lightgbm", "4.7.0"),
        ("xgboost", ZOO / "formats", "xgb_"),
        ("lightgbm", ZOO / "formats", "lgb_"),
    )


def other_model_files() -> list[ModelFile]:
    """Returns the models of this year's CatBoost and scikit-learn whose rows are numbers."""
    return _models_in(
        ("catboost", DATA / "catboost", "1.2.10"),
        ("sklearn", DATA / "skops", "1.9"),
        ("catboost", ZOO / "formats", "cat_"),
        ("sklearn", ZOO / "formats", "skops_"),
    )


_NAMES = {
    "xgboost": ("model.ubj", "model.json"),
    "lightgbm": ("model.txt",),
    "catboost": ("model.cbm",),
    "sklearn": ("model.skops",),
}


def _models_in(*folders: tuple[str, Path, str]) -> list[ModelFile]:
    files = []
    for trainer, parent, prefix in folders:
        for folder in sorted(parent.glob(f"{prefix}*/")):
            for name in _NAMES[trainer]:
                if (folder / name).exists() and (folder / "rows.npy").exists():
                    files.append(ModelFile(trainer, folder.name, folder / name))
                    break
    return files


def large_model_files() -> list[ModelFile]:
    """Returns the models of the folder of further models that benchmarks use too, with up to 26,000 trees."""
    names = ("model.ubj", "model.json", "model.ubj.gz")
    folders = sorted((ZOO / "bench").glob("*/"))
    paths = [next((folder / name for name in names if (folder / name).exists()), None) for folder in folders]
    return [ModelFile("xgboost", path.parent.name, path) for path in paths if path is not None]


def content_of(path: Path) -> bytearray:
    """Returns the bytes of a model's file, which may be compressed."""
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        return bytearray(file.read())


class Answers(NamedTuple):
    """The rows of a model, and what its trainer's own package gives for them: arrays, or None if it gives nothing."""

    rows: np.ndarray[Any, Any]
    raw: Any
    value: Any
    leaf: Any


def xgboost_answers(path: Path, rows: np.ndarray[Any, Any]) -> Answers:
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.Booster(model_file=content_of(path))
    booster.set_param({"nthread": 1})
    matrix = xgboost.DMatrix(rows, feature_names=booster.feature_names, feature_types=booster.feature_types)
    raw = booster.predict(matrix, output_margin=True)
    leaf_rows = matrix if path.suffix != ".gz" else matrix.slice(range(min(len(rows), 65)))
    leaf = booster.predict(leaf_rows, pred_leaf=True)
    return Answers(rows, raw, booster.predict(matrix), leaf.reshape(leaf_rows.num_row(), -1).astype(np.int32))


def lightgbm_answers(path: Path, rows: np.ndarray[Any, Any]) -> Answers:
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.Booster(model_file=str(path))
    booster.pandas_categorical = None  # rows hold codes
    options: dict[str, Any] = {"num_threads": 1, "num_iteration": -1}
    leaf = booster.predict(rows, pred_leaf=True, **options).reshape(len(rows), -1).astype(np.int32)
    return Answers(rows, booster.predict(rows, raw_score=True, **options), booster.predict(rows, **options), leaf)


def catboost_answers(path: Path, rows: np.ndarray[Any, Any]) -> Answers:
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoost().load_model(str(path))
    if model.get_cat_feature_indices():
        pytest.skip("no rows of numbers: this trainer takes categories as texts and integers")
    raw = model.predict(rows, prediction_type="RawFormulaVal", thread_count=1)
    return Answers(rows, raw, None, model.calc_leaf_indexes(rows, thread_count=1).astype(np.int32))


def sklearn_answers(path: Path, rows: np.ndarray[Any, Any]) -> Answers:
    """Returns what the forest of an estimator predicts: probabilities of a classifier, decisions of an IsolationForest,
    numbers of a regressor."""
    io = pytest.importorskip("skops.io")
    model = io.load(path, trusted=io.get_untrusted_types(file=path))
    method = next(name for name in ("predict_proba", "decision_function", "predict", "apply") if hasattr(model, name))
    if method == "apply":
        return Answers(rows, None, None, model.apply(rows).astype(np.int32))
    try:
        value = getattr(model, method)(rows)
    except TypeError as error:
        pytest.skip(f"no rows of numbers: the categories are texts: {error}")
    return Answers(rows, None, np.concatenate(value, axis=1) if isinstance(value, list) else value, None)


def answers_of(model: ModelFile, count: int = max(COUNTS), integers: bool = False) -> Answers:
    """Returns the model's rows, or rows of integers that float32 has, and the trainer's answers."""
    rows = np.load(model.path.parent / "rows.npy")
    rows = np.ascontiguousarray(rows[np.arange(count) % len(rows)], dtype=np.float32)
    if integers:
        rows = np.rint(np.nan_to_num(rows, nan=-1.0).clip(-(2**24), 2**24))
    if model.trainer in ("xgboost", "sklearn"):
        rows = np.clip(rows, -3e38, 3e38)  # their packages refuse infinities
    answers = {
        "xgboost": xgboost_answers,
        "lightgbm": lightgbm_answers,
        "catboost": catboost_answers,
        "sklearn": sklearn_answers,
    }
    return answers[model.trainer](model.path, rows)


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

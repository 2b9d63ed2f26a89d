"""Rows in every form of NumPy and SciPy, against the trainer's own package: raw scores and leaves bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ZOO, ModelFile, model_files, other_model_files
from frames import FRAMES

import forestvm

Array = np.ndarray[Any, Any]


def strided(rows: Array) -> Array:
    wide = np.full((len(rows) * 2, rows.shape[1] + 3), 7, dtype=rows.dtype)
    wide[::2, 2:-1] = rows
    return wide[::2, 2:-1]


def every_second_column(rows: Array) -> Array:
    wide = np.full((len(rows), rows.shape[1] * 2), 7, dtype=rows.dtype)
    wide[:, ::2] = rows
    return wide[:, ::2]


def unaligned(rows: Array) -> Array:
    memory = np.empty(rows.nbytes + 1, dtype=np.uint8)
    array = memory[1:].view(rows.dtype).reshape(rows.shape)
    array[...] = rows
    return array


def reverse(rows: Array) -> Array:
    return np.ascontiguousarray(rows[::-1, ::-1])[::-1, ::-1]


def masked(rows: Array) -> Array:
    missing = np.isnan(rows)
    return np.ma.masked_array(np.where(missing, np.float32(5), rows), mask=missing)


def sparse(kind: str) -> Callable[[Array], Any]:
    """Returns a function that lists all values, missing and zero ones too."""

    def make(rows: Array) -> Any:
        scipy_sparse = pytest.importorskip("scipy.sparse")
        count, width = rows.shape
        matrix = scipy_sparse.csr_matrix(
            (rows.reshape(-1), np.tile(np.arange(width), count), np.arange(count + 1) * width), shape=rows.shape
        )
        return matrix.asformat(kind)

    return make


class Dlpack:
    """An object that has only DLPack's methods."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


FORMS: dict[str, Callable[[Array], Any]] = {
    "float32": lambda rows: rows,
    "float64": lambda rows: rows.astype(np.float64),
    "fortran": np.asfortranarray,
    "fortran float64": lambda rows: np.asfortranarray(rows, dtype=np.float64),
    "strided": strided,
    "every second column": every_second_column,
    "negative strides": reverse,
    "unaligned": unaligned,
    "other byte order": lambda rows: rows.astype(">f4"),
    "long double": lambda rows: rows.astype(np.longdouble),
    "read-only": lambda rows: np.frombuffer(rows.tobytes(), dtype=rows.dtype).reshape(rows.shape),
    "masked": masked,
    "objects": lambda rows: np.where(np.isnan(rows), None, rows.astype(object)),
    "lists": lambda rows: rows.tolist() if len(rows) else rows,
    "DLPack": Dlpack,
    "CSR": sparse("csr"),
    "CSC": sparse("csc"),
    "COO": sparse("coo"),
}

MODELS = model_files()


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: f"{model.trainer}-{model.name}")
def model(request: pytest.FixtureRequest) -> ModelFile:
    return request.param


def loaded(model: ModelFile) -> forestvm.Forest:
    return forestvm.load(model.path, threads=1)


def test_there_are_models_of_the_zoo() -> None:
    if not ZOO.is_dir():
        pytest.skip(f"no further models: {ZOO} is absent; FORESTVM_ZOO names their folder")
    assert len(MODELS) > 60


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "float16"]
)
@pytest.mark.parametrize("name", ["breast_cancer", "4.7.0_classes"])
def test_small_numbers_of_every_type(name: str, dtype: str) -> None:
    from conftest import DATA

    path = DATA / "breast_cancer" / "model.json" if name == "breast_cancer" else DATA / "lightgbm" / name / "model.txt"
    forest = forestvm.load(path, threads=1)
    rows = np.random.default_rng(1).integers(0, 100, (200, forest.num_features)).astype(dtype)
    wanted = forest.predict_raw(rows.astype(np.float32)).tobytes()
    for X in (rows, np.asfortranarray(rows), strided(rows), reverse(rows), rows.astype(rows.dtype.newbyteorder(">"))):
        assert forest.predict_raw(X).tobytes() == wanted


def test_float64_rows_at_each_threshold_and_a_number_beside_it(model: ModelFile) -> None:
    """Trainers that compare in float32 round the rows first; LightGBM compares them in float64."""
    if model.trainer == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        booster = lightgbm.Booster(model_file=str(model.path))
        if booster.pandas_categorical:
            pytest.skip("no leaves to compare with: this trainer takes categories in frames only")
        table = booster.trees_to_dataframe()
        splits = table[table.decision_type.isin(["<="])]
        pairs = list(zip(splits.split_feature, splits.threshold.astype(float)))
        features = {name: i for i, name in enumerate(booster.feature_name())}
    else:
        xgboost = pytest.importorskip("xgboost")
        booster = xgboost.Booster(model_file=str(model.path))
        types, booster.feature_names = booster.feature_types, None  # without names: the table of trees escapes them
        try:
            table = booster.trees_to_dataframe()
        except xgboost.core.XGBoostError as error:
            pytest.skip(f"no thresholds to test: the trainer makes no table of the trees: {str(error).splitlines()[0]}")
        splits = table[(table.Feature != "Leaf") & table.Split.notna()]
        pairs = list(zip(splits.Feature, splits.Split.astype(float)))
        features = {f"f{i}": i for i in range(booster.num_features())}
    forest = loaded(model)
    pairs = list(dict.fromkeys(pairs))
    base = np.clip(np.load(model.path.parent / "rows.npy").astype(np.float64), -3e38, 3e38)
    rows = values_beside(base, [(features[feature], threshold) for feature, threshold in pairs])
    if model.trainer == "lightgbm":
        wanted = booster.predict(rows, raw_score=True, num_iteration=-1)
    else:
        matrix = xgboost.DMatrix(rows, feature_types=types)
        wanted = booster.predict(matrix, output_margin=True)
    check_float64_rows(forest, rows, wanted)


@pytest.mark.parametrize(
    "model",
    [file for file in other_model_files() if file.trainer == "catboost"],
    ids=lambda model: f"{model.trainer}-{model.name}",
)
def test_float64_rows_at_each_border_of_catboost(model: ModelFile) -> None:
    """CatBoost rounds rows to float32, in which its borders are."""
    catboost = pytest.importorskip("catboost")
    booster = catboost.CatBoost().load_model(str(model.path))
    if booster.get_cat_feature_indices():
        pytest.skip("no rows of numbers: this trainer takes categories as texts and integers")
    pairs = [(feature, border) for feature, borders in booster.get_borders().items() for border in borders]
    base = np.load(model.path.parent / "rows.npy").astype(np.float64)
    rows = values_beside(base, pairs)
    check_float64_rows(loaded(model), rows, booster.predict(rows, prediction_type="RawFormulaVal", thread_count=1))


def values_beside(base: Array, pairs: list[tuple[int, float]]) -> Array:
    """Returns three rows for each feature and threshold: the float64 numbers below it, at it, and above it."""
    rows = base[np.arange(3 * len(pairs)) % len(base)]
    for i, (feature, threshold) in enumerate(pairs):
        for j, value in enumerate((np.nextafter(threshold, -np.inf), threshold, np.nextafter(threshold, np.inf))):
            rows[3 * i + j, feature] = value
    return rows


def check_float64_rows(forest: forestvm.Forest, rows: Array, wanted: Any) -> None:
    """Compares the raw scores of rows as arrays, tables, and tables of few rows, which polars may give as numbers."""
    for X in (rows, np.asfortranarray(rows)):
        raw = forest.predict_raw(X)
        assert raw.tobytes() == np.ascontiguousarray(wanted).reshape(raw.shape).tobytes()
    names = [f"c{i}" for i in range(rows.shape[1])]
    for name in ("polars", "polars, 2 chunks", "Arrow", "Arrow, offsets", "pandas", "dictionary"):
        try:
            table = FRAMES[name](rows, names)
        except pytest.skip.Exception:
            continue  # the package is absent, which test_the_packages_are_there reports
        assert forest.predict_raw(table, columns="position").tobytes() == raw.tobytes(), name
        for begin in range(0, min(len(rows), 120), 8):
            part = FRAMES[name](rows[begin : begin + 8], names)
            few = forest.predict_raw(part, columns="position")
            assert few.tobytes() == raw[begin : begin + 8].tobytes(), (name, begin)


def test_fields_of_arrays_are_read_as_their_buffers_are(breast_cancer: Path, rows: Array) -> None:
    """Types, strides and flags that decide whether rows and `out` are taken as they are."""
    forest = forestvm.load(breast_cancer, threads=1)
    small = np.abs(rows[:70]).clip(0, 100)
    for name in ("e", "f", "d", "g", "?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", ">f4", ">i8"):
        typed = small.astype(name)
        wanted = forest.predict(typed.astype("f"))
        for make in (np.array, np.asfortranarray, strided, every_second_column, reverse, unaligned):
            form = make(typed)
            assert np.array_equal(forest.predict(form), wanted), name
            assert np.array_equal(forest.predict(form[:1]), wanted[:1]), name
            assert forest.predict(form[:0]).shape == (0,), name
    constant = np.broadcast_to(small[0], small.shape)
    assert np.array_equal(forest.predict(constant), np.repeat(forest.predict(small[:1]), len(small)))
    read_only = np.empty(len(small), dtype="f")
    read_only.flags.writeable = False
    every_second, swapped = np.empty(2 * len(small), "f")[::2], np.empty(len(small), ">f4")
    for out in (read_only, every_second, swapped, np.empty((len(small), 1), "f")):
        with pytest.raises(forestvm.Usage, match="out"):
            forest.predict(small, out=out)
    long = np.empty(len(small), dtype="q")
    assert np.array_equal(forest.predict_class(small, out=long), forest.predict_class(small))

"""Forest: what it says of a model, shapes and types of predictions, options and errors."""

from __future__ import annotations

import copy
import gc
import gzip
import json
import math
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, ZOO, answers_of, model_files

import forestvm

Array = np.ndarray[Any, Any]
LIGHTGBM = DATA / "lightgbm"


def test_the_facts_of_a_model(breast_cancer: Path) -> None:
    forest = forestvm.load(breast_cancer)
    assert forest.num_features == 30
    assert forest.num_outputs == 1
    assert forest.feature_names[:2] == ("mean radius", "mean texture")
    assert (forest.trainer, forest.objective, forest.contract) == ("xgboost", "binary:logistic", "trainer")
    assert forest.classes == ()
    assert dict(forest.categories) == {}
    assert len(forest.fingerprint) == 16 and len(forest.program_fingerprint) == 32
    assert "200 trees" in repr(forest)
    assert forest.num_trees == 200


@pytest.mark.parametrize("option", ["schedule", "contract", "target", "device"])
def test_an_option_that_is_no_text_is_named(breast_cancer: Path, option: str) -> None:
    with pytest.raises(forestvm.Usage, match=f"{option} is 3, not a text") as caught:
        forestvm.load(breast_cancer, **{option: 3})
    assert caught.value.where == option


def test_an_unknown_output_is_told_the_known_ones(breast_cancer: Path, rows: Array) -> None:
    for output in ("values", 3, ""):
        with pytest.raises(forestvm.Usage, match='output: expected one of "raw", "value", .*, "uncertainty"'):
            forestvm.load(breast_cancer).predict(rows, output=output)


def test_a_model_may_come_from_a_path_bytes_a_buffer_and_a_gzip_file(
    breast_cancer: Path, rows: Array, tmp_path: Path
) -> None:
    wanted = forestvm.load(breast_cancer).predict(rows)
    content = breast_cancer.read_bytes()
    packed = tmp_path / "model"
    packed.write_bytes(gzip.compress(content))
    program = tmp_path / "model.fvm"
    forestvm.load(content).save(program)
    sources: list[Any] = [str(breast_cancer), content, bytearray(content), memoryview(content), packed, str(program)]
    for source in (*sources, program.read_bytes(), np.frombuffer(content, dtype=np.uint8)):
        assert np.array_equal(forestvm.load(source).predict(rows), wanted)
    forest = forestvm.load(program)
    assert forest.to_bytes() == program.read_bytes() == bytes(memoryview(forest))
    assert np.array_equal(forestvm.Forest.from_buffer(program.read_bytes()).predict(rows), wanted)


@pytest.mark.parametrize("count", [0, 1, 2, 65])
def test_shapes_do_not_depend_on_the_number_of_rows(count: int) -> None:
    cases = {
        DATA / "breast_cancer" / "model.json": (np.float32, 1, 2),
        DATA / "digits" / "model.ubj": (np.float32, 10, 10),
        LIGHTGBM / "4.7.0_classes" / "model.txt": (np.float64, 3, 3),
        LIGHTGBM / "4.7.0_zero" / "model.txt": (np.float64, 1, None),
    }
    for path, (dtype, width, classes) in cases.items():
        forest = forestvm.load(path, threads=1)
        rows = np.zeros((count, forest.num_features), dtype=np.float32)
        shape = (count,) if width == 1 else (count, width)
        for output in ("value", "raw"):
            result = forest.predict(rows, output=output)
            assert (result.shape, result.dtype) == (shape, dtype)
        leaf = forest.apply(rows)
        assert (leaf.shape, leaf.dtype) == ((count, forest.num_trees), np.int32)
        if classes is not None:
            proba = forest.predict_proba(rows)
            assert (proba.shape, proba.dtype) == ((count, classes), dtype)
            labels = forest.predict_class(rows)
            assert (labels.shape, labels.dtype) == ((count,), np.int64)


def test_a_model_of_one_tree_has_leaves_of_two_dimensions() -> None:
    forest = forestvm.load(LIGHTGBM / "4.7.0_one_leaf" / "model.txt")
    assert forest.apply(np.zeros((3, forest.num_features))).shape == (3, forest.num_trees)


def test_binary_probabilities_are_those_of_both_classes(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer)
    p = forest.predict(rows)
    assert np.array_equal(forest.predict_proba(rows), np.stack([1 - p, p], axis=1))
    assert np.array_equal(forest.predict_class(rows), (p > 0.5).astype(np.int64))
    wide = forest.predict_proba(rows, dtype="float64")
    assert wide.dtype == np.float64
    assert np.allclose(wide, forest.predict_proba(rows), rtol=1e-6)


def test_probabilities_of_multi_softmax_are_those_of_xgboosts_wrapper() -> None:
    special = pytest.importorskip("scipy.special")
    models = [model for model in model_files() if model.name == "xgb_softmax"]
    if not models:
        pytest.skip(f"no model of multi:softmax: {ZOO} is absent")
    forest = forestvm.load(models[0].path)
    rows = answers_of(models[0], 200).rows
    wanted = special.softmax(forest.predict_raw(rows), axis=1)
    assert forest.predict_proba(rows).tobytes() == wanted.tobytes()
    assert forest.predict_proba(rows[:0]).shape == (0, wanted.shape[1])


def test_models_without_classes_refuse_them() -> None:
    forest = forestvm.load(DATA / "diabetes" / "model.json")
    rows = np.zeros((2, forest.num_features))
    for call in (forest.predict_class, forest.predict_proba):
        with pytest.raises(forestvm.Refused, match="squarederror"):
            call(rows)


def test_out_is_written_and_returned(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer)
    for dtype in (np.float32, np.float64):
        out = np.full(len(rows), np.nan, dtype=dtype)
        assert forest.predict(rows, out=out) is out
        assert np.array_equal(out, forest.predict(rows, dtype=dtype))
    proba = np.empty((len(rows), 2), dtype=np.float32)
    assert forest.predict_proba(np.asarray(rows, order="F", dtype=">f4"), out=proba) is proba
    assert np.array_equal(proba, forest.predict_proba(rows))
    labels = np.empty(len(rows), dtype=np.int32)
    assert np.array_equal(forest.predict_class(rows, out=labels), forest.predict_class(rows))


@pytest.mark.parametrize(
    "out",
    [
        np.empty(5, dtype=np.float32),
        np.empty((3, 1), dtype=np.float32),
        np.empty(3, dtype=np.int64),
        np.empty(3, dtype=np.float16),
        np.empty(6, dtype=np.float32)[::2],
        np.frombuffer(bytes(12), dtype=np.float32),
        [0.0, 0.0, 0.0],
    ],
    ids=["length", "dimensions", "integers", "float16", "strided", "read-only", "list"],
)
def test_an_out_that_does_not_fit_is_refused(breast_cancer: Path, rows: Array, out: Any) -> None:
    forest = forestvm.load(breast_cancer)
    with pytest.raises(forestvm.Usage, match="^out"):
        forest.predict(rows[:3], out=out)
    with pytest.raises(forestvm.Usage, match="^out"):
        forest.predict(rows[:3].tolist(), out=out)


def test_types_in_which_predictions_would_lose_digits_are_refused(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer)
    for dtype in ("int32", "float16", "complex64", "O"):
        with pytest.raises(forestvm.Usage, match="dtype"):
            forest.predict(rows, dtype=dtype)
    with pytest.raises(forestvm.Usage, match="dtype"):
        forest.predict_class(rows, dtype="float64")
    with pytest.raises(TypeError):
        forest.predict(rows, dtype="no type")
    with pytest.raises(forestvm.Usage, match="dtype"):
        forest.predict(rows, dtype="float64", out=np.empty(len(rows), dtype=np.float32))
    assert np.array_equal(forest.predict_class(rows, dtype="int32"), forest.predict_class(rows))


def test_lightgbm_scores_as_float32_are_rounded_once() -> None:
    forest = forestvm.load(LIGHTGBM / "4.7.0_classes" / "model.txt")
    rows = np.load(LIGHTGBM / "4.7.0_classes" / "rows.npy")
    assert np.array_equal(forest.predict_raw(rows, dtype=np.float32), forest.predict_raw(rows).astype(np.float32))


def test_one_row(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer)
    wanted = float(forest.predict(rows[:1])[0])
    row = rows[0]
    names = forest.feature_names
    shuffled = dict(reversed(list(zip(names, row.tolist()))))
    forms: list[Any] = [
        row,
        row.astype(float),
        row.tolist(),
        tuple(row),
        rows[:, ::1][0],
        np.repeat(row, 2)[::2],
        row.astype(">f4"),
        shuffled,
    ]
    for form in forms:
        answer = forest.predict_one(form)
        assert type(answer) is float
        assert answer == wanted
    assert forest.predict_one(row, output="class") == forest.predict_class(rows[:1])[0]
    assert type(forest.predict_one(row, output="class")) is int
    assert np.array_equal(forest.predict_one(row, output="proba"), forest.predict_proba(rows[:1])[0])
    assert np.array_equal(forest.predict_one(row.tolist(), output="leaf"), forest.apply(rows[:1])[0])
    missing = row.tolist()
    missing[3] = None
    missing[4] = math.nan
    with_nan = row.copy()
    with_nan[3:5] = np.nan
    assert forest.predict_one(missing) == forest.predict_one(with_nan)
    for bad in (row[:5], rows, row.tolist()[:5], [*row.tolist()[:29], "x"], {"mean radius": 1.0}, None, "row"):
        with pytest.raises(forestvm.Usage):
            forest.predict_one(bad)
    with pytest.raises(forestvm.Usage):
        forest.predict_one(row, out=np.empty(1))


def test_integers_that_are_no_float64_are_refused_by_models_that_compare_float64() -> None:
    forest = forestvm.load(LIGHTGBM / "4.7.0_classes" / "model.txt")
    rows = np.zeros((3, forest.num_features), dtype=np.int64)
    rows[1, 2] = 2**53 + 1
    for form in (rows, rows.tolist(), rows.astype(object), rows.astype(np.longdouble)):
        with pytest.raises(forestvm.Refused, match="9007199254740993"):
            forest.predict(form)
    with pytest.raises(forestvm.Refused, match="9007199254740993"):
        forest.predict(rows, missing=-1)


def test_a_number_may_stand_for_missing_values() -> None:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(3)
    rows = rng.integers(-2, 3, (300, 4)).astype(np.float32)
    target = rows[:, 0] * 2 + (rows[:, 1] == 0)
    for missing in (0, -1.0):
        booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(rows, target, missing=missing), 5)
        wanted = booster.predict(xgboost.DMatrix(rows, missing=missing))
        forest = forestvm.load(bytes(booster.save_raw("ubj")))
        for form in (rows, rows.astype(np.int64), rows.astype(float), np.asfortranarray(rows), rows.tolist()):
            assert forest.predict(form, missing=missing).tobytes() == wanted.tobytes()
        assert forest.predict_one(rows[0], missing=missing) == wanted[0]
        assert not np.array_equal(forest.predict(rows), wanted)
        for no_missing in (None, math.nan, np.nan, np.float32("nan")):
            assert np.array_equal(forest.predict(rows, missing=no_missing), forest.predict(rows))
    for bad in ("0", [0], True):
        with pytest.raises(forestvm.Usage, match="missing"):
            forest.predict(rows, missing=bad)


def test_absent_values_of_sparse_rows_are_what_they_are_for_the_trainer() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(5)
    rows = rng.integers(-2, 3, (200, 6)).astype(np.float64)
    target = rows[:, 0] + (rows[:, 1] == 0)
    matrix = sparse.random(200, 6, 0.4, format="csr", random_state=1)
    matrix.data[::3] = 0  # explicit zeros
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(np.where(rows == 0, np.nan, rows), target), 5)
    forest = forestvm.load(bytes(booster.save_raw("ubj")))
    wanted = booster.predict(xgboost.DMatrix(matrix))
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(rows, target)
    other = lightgbm.train({"verbose": -1, "num_threads": 1, "min_data_in_leaf": 5, "zero_as_missing": True}, data, 5)
    other_forest = forestvm.load(other.model_to_string().encode())
    shuffled = matrix.copy()
    for begin, end in zip(shuffled.indptr, shuffled.indptr[1:]):
        shuffled.indices[begin:end] = shuffled.indices[begin:end][::-1]
        shuffled.data[begin:end] = shuffled.data[begin:end][::-1]
    shuffled.has_sorted_indices = False
    for form in (matrix, matrix.tocsc(), matrix.tocoo(), sparse.csr_array(matrix), shuffled):
        assert forest.predict(form).tobytes() == wanted.tobytes()
        assert other_forest.predict(form).tobytes() == other.predict(matrix).tobytes()
    twice = sparse.csr_matrix((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 6))
    assert forest.predict(twice) == forest.predict(sparse.csr_matrix([[3.0, 0, 0, 0, 0, 0]]))
    with pytest.raises(forestvm.FeatureMismatch):
        forest.predict(sparse.csr_matrix((3, 7)))
    assert forest.predict(sparse.csr_matrix((0, 6))).shape == (0,)


def test_schedule_files_that_cannot_be_read(breast_cancer: Path, tmp_path: Path) -> None:
    absent, broken = tmp_path / "absent", tmp_path / "broken"
    broken.write_bytes(b"interleave(\xff)")
    with pytest.raises(forestvm.Environment, match="absent: cannot read the file: No such file") as raised:
        forestvm.load(breast_cancer, schedule=absent)
    assert raised.value.where == str(absent)
    with pytest.raises(forestvm.Refused, match="broken: byte 11 is not UTF-8"):
        forestvm.load(breast_cancer, schedule=broken)


def test_options(breast_cancer: Path, rows: Array, tmp_path: Path) -> None:
    wanted = forestvm.load(breast_cancer).predict_raw(rows)
    schedule = tmp_path / "rows.schedule"
    schedule.write_text("tile(batch, b0, b1, 8)\nreorder(b0, tree, b1)\n")
    options: list[dict[str, Any]] = [
        {"schedule": "xgboost"},
        {"schedule": schedule},
        {"schedule": "tile(batch, b0, b1, 8)\nreorder(b0, tree, b1)"},
        {"target": "baseline"},
        {"threads": 2},
        {"strict": True},
    ]
    for option in options:
        assert np.array_equal(forestvm.load(breast_cancer, **option).predict_raw(rows), wanted)
    assert forestvm.load(breast_cancer, contract="reproducible").contract == "reproducible"
    assert forestvm.load(breast_cancer, rounds=(0, 10)).num_trees == 10


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"schedule": "no-such"}, forestvm.Refused),
        ({"schedule": "tile(batch"}, forestvm.Refused),
        ({"contract": "best"}, forestvm.Usage),
        ({"target": "z80"}, forestvm.Error),
        ({"target": None}, forestvm.Usage),
        ({"device": "tpu"}, forestvm.Usage),
        ({"device": "cuda:x"}, forestvm.Usage),
        ({"threads": 0}, forestvm.Usage),
        ({"threads": -1}, forestvm.Usage),
        ({"threads": 10**9}, forestvm.Usage),
        ({"threads": "2"}, forestvm.Usage),
        ({"threads": True}, forestvm.Usage),
        ({"rounds": (3, 2)}, forestvm.Usage),
        ({"rounds": (0, 10**6)}, forestvm.Usage),
        ({"rounds": "last"}, forestvm.Usage),
        ({"rounds": (-1, 2)}, forestvm.Usage),
        ({"no_such": 1}, TypeError),
    ],
)
def test_options_that_make_no_sense(breast_cancer: Path, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        forestvm.load(breast_cancer, **options)


def test_auto_suits_numbers_of_rows_per_call(breast_cancer: Path) -> None:
    every = forestvm.load(breast_cancer)
    rows = np.random.default_rng(3).normal(size=(100, 30)).astype(np.float32)
    for for_rows in (1, 4096, np.int64(64), [4096], (1, 1), iter([64])):
        forest = forestvm.load(breast_cancer, for_rows=for_rows)
        assert forest.schedule != every.schedule
        assert len(forest.to_bytes()) < len(every.to_bytes())
        np.testing.assert_array_equal(forest.predict(rows), every.predict(rows))
    for for_rows in (2**32 - 1, [4096, 1], (1, 4096), range(1, 5000)):
        forest = forestvm.load(breast_cancer, for_rows=for_rows)
        np.testing.assert_array_equal(forest.predict(rows), every.predict(rows))
    one, other = (forestvm.load(breast_cancer, for_rows=numbers).to_bytes() for numbers in ((1, 4096), [4096, 1, 1]))
    assert one == other
    for wrong in (0, -1, 2**32, 1.5, True, "1", "", (), [1, 0], [1.0], object()):
        with pytest.raises(forestvm.Usage, match="for_rows"):
            forestvm.load(breast_cancer, for_rows=wrong)
    for schedule in ("xgboost", "tile(batch, b0, b1, 8)"):
        with pytest.raises(forestvm.Usage, match="for_rows: is for the schedule auto"):
            forestvm.load(breast_cancer, for_rows=1, schedule=schedule)


def test_auto_suits_a_number_of_threads(breast_cancer: Path) -> None:
    rows = np.random.default_rng(3).normal(size=(40, 30)).astype(np.float32)
    document = json.loads(breast_cancer.read_text())
    model = document["learner"]["gradient_booster"]["model"]
    model["trees"] = [dict(tree, id=i) for i, tree in enumerate(model["trees"] * 10)]
    model["tree_info"] *= 10
    model["gbtree_model_param"]["num_trees"] = str(len(model["trees"]))
    model["iteration_indptr"] = list(range(len(model["trees"]) + 1))
    large = json.dumps(document).encode()
    plain, shared = (forestvm.load(large, for_threads=count, threads=2) for count in (1, 2))
    assert plain.schedule == forestvm.load(large).schedule
    assert "tile(batch, b0, b1, 4)" in shared.schedule
    assert "tile(batch, b0, b1, 4)" not in plain.schedule
    for count in (1, 4, 5, 40):
        np.testing.assert_array_equal(shared.predict(rows[:count]), plain.predict(rows[:count]))
    assert forestvm.load(breast_cancer, for_threads=2).schedule == forestvm.load(breast_cancer).schedule
    for wrong in (0, -1, 2**32, 1.5, True, "2", None):
        with pytest.raises(forestvm.Usage, match="for_threads"):
            forestvm.load(breast_cancer, for_threads=wrong)
    with pytest.raises(forestvm.Usage, match="for_threads: is for the schedule auto"):
        forestvm.load(breast_cancer, for_threads=2, schedule="xgboost")


def test_programs_have_their_schedule_contract_and_rounds(breast_cancer: Path) -> None:
    program = forestvm.load(breast_cancer).to_bytes()
    options = {"schedule": "auto", "for_rows": 1, "for_threads": 2, "contract": "fast", "rounds": (0, 3)}
    for option, value in options.items():
        with pytest.raises(forestvm.Usage, match=f"^{option}: "):
            forestvm.load(program, **{option: value})
    forestvm.load(program, contract="trainer", strict=True)


def test_errors_say_where(tmp_path: Path, breast_cancer: Path) -> None:
    absent = tmp_path / "absent.json"
    with pytest.raises(forestvm.Environment, match="absent.json") as environment:
        forestvm.load(absent)
    assert isinstance(environment.value, OSError)
    assert environment.value.where == str(absent)
    broken = tmp_path / "broken.json"
    broken.write_text('{"learner": {}}')
    with pytest.raises(forestvm.Refused) as refused:
        forestvm.load(broken)
    assert refused.value.where.startswith(f"{broken}: learner")
    with pytest.raises(forestvm.Refused):
        forestvm.load(b"")
    for source in (None, 3, ["a"], {}, object()):
        with pytest.raises(forestvm.Usage):
            forestvm.load(source)
    image = bytearray(forestvm.load(breast_cancer).to_bytes())
    image[len(image) // 2] ^= 1
    with pytest.raises(forestvm.Refused):
        forestvm.load(image)


def test_classes_of_errors() -> None:
    assert issubclass(forestvm.Usage, ValueError)
    assert issubclass(forestvm.Environment, OSError)
    assert issubclass(forestvm.Internal, RuntimeError)
    assert issubclass(forestvm.FeatureMismatch, forestvm.Usage)
    assert issubclass(forestvm.UnsupportedInput, (forestvm.Usage, TypeError))
    for kind in (
        forestvm.Refused,
        forestvm.Usage,
        forestvm.Environment,
        forestvm.Internal,
        forestvm.FeatureMismatch,
        forestvm.UnsupportedInput,
    ):
        assert issubclass(kind, forestvm.Error)
        assert kind.__module__ == "forestvm"
        error = kind("the message", "the place")
        again = copy.copy(error)
        assert (str(again), again.where) == ("the message", "the place")


@pytest.mark.parametrize(
    "X",
    [
        np.zeros(30),
        np.zeros((2, 3, 30)),
        np.zeros((2, 30), dtype=complex),
        np.zeros((2, 30), dtype="M8[s]"),
        np.full((2, 30), "a"),
        [[1, 2], [3]],
        [],
        "rows.csv",
        None,
        5,
        object(),
        [["a"] * 30],
        np.float32(5),
    ],
    ids=repr,
)
def test_rows_that_are_none(breast_cancer: Path, X: Any) -> None:
    forest = forestvm.load(breast_cancer)
    for call in (forest.predict, forest.predict_proba, forest.encode):
        with pytest.raises(forestvm.UnsupportedInput):
            call(X)


def test_arguments(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer)
    assert np.array_equal(forest.predict(X=rows), forest.predict(rows))
    for call in (
        lambda: forest.predict(),
        lambda: forest.predict(rows, rows),
        lambda: forest.predict(rows, X=rows),
        lambda: forest.predict(rows, no_such=1),
        lambda: forest.predict_raw(rows, output="value"),
        lambda: forestvm.Forest(),
    ):
        with pytest.raises(TypeError):
            call()
    for options in ({"output": "score"}, {"output": 1}, {"columns": "order"}, {"extra": "drop"}):
        for call, X in ((forest.predict, rows), (forest.predict, forest.encode(rows)), (forest.predict_one, rows[0])):
            with pytest.raises(forestvm.Usage, match=next(iter(options))):
                call(X, **options)
    with pytest.raises(forestvm.Usage, match="columns: expected \"name\" or \"position\", not 'order'") as caught:
        forest.predict(rows, columns="order")
    assert caught.value.where == "columns"
    assert np.array_equal(forest.predict(rows, columns="position", extra=None), forest.predict(rows))
    name = "".join(["va", "lue"])  # not interned
    assert np.array_equal(forest.predict(rows, output=name), forest.predict(rows))


def test_wrong_numbers_of_columns(breast_cancer: Path) -> None:
    forest = forestvm.load(breast_cancer)
    for width in (0, 1, 29, 31):
        for X in (np.zeros((2, width)), np.zeros((0, width), dtype=np.float32)):
            with pytest.raises(forestvm.FeatureMismatch, match="30 features") as mismatch:
                forest.predict(X)
            assert mismatch.value.expected == forest.feature_names


def test_encoded_rows_of_another_model_are_refused(breast_cancer: Path, rows: Array) -> None:
    forest, other = forestvm.load(breast_cancer), forestvm.load(DATA / "digits" / "model.ubj")
    encoded = forest.encode(rows)
    assert np.array_equal(forest.predict_proba(encoded), forest.predict_proba(rows))
    with pytest.raises(forestvm.Error):
        other.predict(encoded)
    with pytest.raises(forestvm.Usage):
        forest.predict(encoded, missing=0)
    with pytest.raises(forestvm.Usage):
        forestvm.EncodedRows(3, 3, 1, b"short")


def test_forests_can_be_referred_to_weakly_and_die(breast_cancer: Path) -> None:
    forest = forestvm.load(breast_cancer)
    view = memoryview(forest)
    dead = weakref.ref(forest)
    del forest
    gc.collect()
    assert dead() is not None  # the view keeps it alive
    view.release()
    gc.collect()
    assert dead() is None


def test_nothing_but_numpy_is_imported() -> None:
    program = (
        "import sys, forestvm, numpy\n"
        "forest = forestvm.load(sys.argv[1])\n"
        "forest.predict(numpy.zeros((2, 30), dtype='float32')); forest.predict([[0.0] * 30])\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules} & "
        "{'pandas', 'polars', 'pyarrow', 'scipy', 'sklearn', 'xgboost', 'lightgbm', 'catboost', 'torch'}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(DATA / "breast_cancer" / "model.json")],
        capture_output=True, text=True, check=True, env=os.environ,
    )
    assert done.stdout.strip() == ""


def test_results_where_the_c_functions_of_numpy_are_not_found(breast_cancer: Path) -> None:
    """numpy.empty makes the arrays then."""
    program = """
import sys
import numpy as np
try:
    import numpy._core._multiarray_umath as numpy_c
except ImportError:
    import numpy.core._multiarray_umath as numpy_c
numpy_c._ARRAY_API = None
import forestvm
forest = forestvm.load(sys.argv[1])
rows = np.zeros((3, 30), np.float32)
for answer in (forest.predict(rows), forest.predict_proba(rows), forest.predict_class(rows), forest.apply(rows)):
    print(answer.shape, answer.dtype, answer.flags.c_contiguous, answer.flags.owndata)
"""
    done = subprocess.run([sys.executable, "-c", program, breast_cancer], capture_output=True, text=True, check=True)
    forest = forestvm.load(breast_cancer)
    rows = np.zeros((3, 30), np.float32)
    answers = (forest.predict(rows), forest.predict_proba(rows), forest.predict_class(rows), forest.apply(rows))
    expected = [f"{answer.shape} {answer.dtype} True True" for answer in answers]
    assert done.stdout.splitlines() == expected

"""Rows with masks, Python's objects, and names of several levels: predicted as what they stand for, or refused."""

from __future__ import annotations

import datetime
import decimal
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA
from small_models import training_rows

import forestvm
from forestvm import _rows

NAMES = tuple("abcdef")
ROWS = np.nan_to_num(training_rows(count=100), nan=0.5)
MASK = ROWS > 1
HOLES = np.where(MASK, np.nan, ROWS)


def text_model(names: tuple[str, ...] = NAMES) -> bytes:
    """Returns a small model of LightGBM with these names, whose trees send missing values to leaves of their own."""
    tree = """Tree={0}
num_leaves=3
num_cat=0
split_feature={0} {1}
split_gain=1 1
threshold=0.3 -0.2
decision_type=10 10
left_child=1 -1
right_child=-2 -3
leaf_value={2} {3} {4}
leaf_weight=1 1 1
leaf_count=1 1 1
internal_value=0 0
internal_weight=0 0
internal_count=3 2
is_linear=0
shrinkage=1


"""
    trees = "".join(tree.format(i, (i + 1) % 6, 2.0**i, 3.0**i, -(5.0**i)) for i in range(6))
    head = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=5\n"
    head += f"objective=regression\nfeature_names={' '.join(names)}\nfeature_infos={' '.join(['[-9:9]'] * 6)}\n\n"
    return (head + trees + "end of trees\n").encode()


@pytest.fixture(scope="module")
def forest() -> forestvm.Forest:
    forest = forestvm.load(text_model())
    assert not np.array_equal(forest.predict(HOLES), forest.predict(ROWS))
    return forest


def objects(of_missing: Any) -> np.ndarray:
    out = ROWS.astype(object)
    out[MASK] = of_missing
    return out


def lists_with_masked_values() -> list[list[Any]]:
    return [[np.ma.masked if hole else x for x, hole in zip(row, mask)] for row, mask in zip(ROWS.tolist(), MASK)]


MASKED = {
    "float64": np.ma.MaskedArray(ROWS, mask=MASK),
    "float64 that fills with 7": np.ma.MaskedArray(ROWS, mask=MASK, fill_value=7),
    "Fortran order": np.ma.MaskedArray(np.asfortranarray(ROWS), mask=MASK),
    "objects": np.ma.MaskedArray(ROWS.astype(object), mask=MASK),
    "objects with None": objects(None),
    "objects with NaN": objects(float("nan")),
    "list of arrays with masks": [np.ma.MaskedArray(row, mask=mask) for row, mask in zip(ROWS, MASK)],
    "tuple of arrays with masks": tuple(np.ma.MaskedArray(row, mask=mask) for row, mask in zip(ROWS, MASK)),
    "lists with None": objects(None).tolist(),
    "columns with masks": {name: np.ma.MaskedArray(ROWS[:, i], mask=MASK[:, i]) for i, name in enumerate(NAMES)},
    "columns of objects": {name: objects(None)[:, i] for i, name in enumerate(NAMES)},
    "columns of lists": {name: objects(None)[:, i].tolist() for i, name in enumerate(NAMES)},
    "lists with masked values": lists_with_masked_values(),
    "objects with masked values": np.array(lists_with_masked_values(), dtype=object),
    "tuples with masked values": tuple(map(tuple, lists_with_masked_values())),
    "columns of masked values": dict(zip(NAMES, map(list, zip(*lists_with_masked_values())))),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", MASKED)
def test_masked_values_are_missing(forest: forestvm.Forest, kind: str) -> None:
    rows, wanted = MASKED[kind], forest.predict(HOLES)
    assert np.array_equal(forest.predict(rows), wanted)
    assert np.array_equal(forest.predict(forest.encode(rows)), wanted)
    assert np.array_equal(forest.predict(rows, missing=7), wanted)
    first = {name: column[0] for name, column in rows.items()} if isinstance(rows, dict) else rows[0]
    assert forest.predict_one(first) == wanted[0]


def test_masks_of_other_types(forest: forestvm.Forest) -> None:
    whole = np.ma.MaskedArray(ROWS.astype(int), mask=MASK)
    wanted = forest.predict(np.where(MASK, np.nan, ROWS.astype(int)))
    assert np.array_equal(forest.predict(whole), wanted)
    truths = np.ma.MaskedArray(ROWS > 0, mask=MASK)
    assert np.array_equal(forest.predict(truths), forest.predict(np.where(MASK, np.nan, ROWS > 0)))
    every = np.ma.MaskedArray(ROWS, mask=True)
    assert np.array_equal(forest.predict(every), forest.predict(np.full_like(ROWS, np.nan)))
    kind = [(name, "f8") for name in NAMES]
    structured = np.ma.array([tuple(row) for row in ROWS], dtype=kind, mask=[tuple(row) for row in MASK])
    assert np.array_equal(forest.predict(structured), forest.predict(HOLES))
    assert forest.predict_one(np.ma.MaskedArray(ROWS[3], mask=ROWS[3] < 0)) == forest.predict_one(
        np.where(ROWS[3] < 0, np.nan, ROWS[3])
    )


def test_a_background_with_a_mask(forest: forestvm.Forest) -> None:
    model = DATA / "breast_cancer" / "model.json"
    rows = np.load(DATA / "breast_cancer" / "rows.npy")[:20]
    mask = rows > np.median(rows, axis=0)
    masked, holes = (
        forestvm.load(model, contributions=True, background=background).contributions(rows)
        for background in (np.ma.MaskedArray(rows, mask=mask), np.where(mask, np.nan, rows))
    )
    assert np.array_equal(masked, holes)


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (decimal.Decimal("1.5"), forestvm.UnsupportedInput, "is not a number"),
        ("1.5", forestvm.UnsupportedInput, "'1.5' is not a number"),
        (1 + 0j, forestvm.UnsupportedInput, "is not a number"),
        (datetime.datetime(2026, 1, 1), forestvm.UnsupportedInput, "is not a number"),
        (10**30, forestvm.Refused, "is not a float64 number"),
        (2**53 + 1, forestvm.Refused, "9007199254740993 is not a float64 number"),
        pytest.param(10**400, forestvm.Refused, "an integer of 1329 bits is not a float64 number", id="10**400"),
        pytest.param(-(10**400), forestvm.Refused, "an integer of 1329 bits is not a float64 number", id="10**400"),
    ],
)
def test_objects_that_are_no_numbers_are_refused(
    forest: forestvm.Forest, value: Any, error: type[forestvm.Error], said: str
) -> None:
    rows = ROWS.astype(object)
    rows[7, 2] = value
    with pytest.raises(error, match=said) as caught:
        forest.predict(rows)
    assert caught.value.where == "X"


def test_names_of_several_levels_match_or_are_refused(forest: forestvm.Forest) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=pandas.MultiIndex.from_tuples([("g", name) for name in NAMES]))
    with pytest.raises(forestvm.FeatureMismatch, match=r"columns are missing: 'a'.*\('g', 'a'\)") as caught:
        forest.predict(frame)
    assert caught.value.missing == NAMES and caught.value.extra[0] == "('g', 'a')"
    wanted = forest.predict(ROWS)
    assert np.array_equal(forest.predict(frame, columns="position"), wanted)
    frame.columns = frame.columns.droplevel(0)
    assert np.array_equal(forest.predict(frame[list(NAMES[::-1])]), wanted)
    frame.columns = pandas.MultiIndex.from_tuples([(name,) for name in NAMES])
    with pytest.raises(forestvm.FeatureMismatch):
        forest.predict(frame)


def test_names_of_several_levels_that_xgboost_joined_are_refused_in_any_order() -> None:
    pandas, xgboost = pytest.importorskip("pandas"), pytest.importorskip("xgboost")
    frame = pandas.DataFrame(ROWS, columns=pandas.MultiIndex.from_tuples([("g", name) for name in NAMES]))
    model = xgboost.XGBRegressor(n_estimators=2, max_depth=2).fit(frame, ROWS[:, 0])
    forest = forestvm.from_xgboost(model)
    assert forest.feature_names == tuple(f"g {name}" for name in NAMES)
    for rows in (frame, frame.iloc[:, ::-1]):
        with pytest.raises(forestvm.FeatureMismatch, match="columns are missing: 'g a'"):
            forest.predict(rows)
    joined = frame.set_axis([" ".join(name) for name in frame.columns], axis=1)
    assert np.array_equal(forest.predict(joined.iloc[:, ::-1]), model.predict(frame))


@pytest.mark.filterwarnings("error")
def test_masked_values_beside_texts() -> None:
    forest = forestvm.load(DATA / "pmml" / "drawn_none" / "model.pmml")
    columns: dict[str, list[Any]] = {"a": [1.0] * 3, "b": [0.1] * 3, "i": [1] * 3}
    masked, holes = ({**columns, "k": ["red", missing, "blue"]} for missing in (np.ma.masked, None))
    assert np.array_equal(forest.predict(masked), forest.predict(holes))
    assert forest.predict_one({name: values[1] for name, values in masked.items()}) == forest.predict(holes)[1]


def test_fractions_in_fields_of_integers() -> None:
    """The model compares in float32, which would round some fractions away."""
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    forest = forestvm.load(DATA / "pmml" / "integers_float" / "model.pmml")
    numbers = [2.0000000000000004, 1.5, 2.0, 2147483647.0, 2147483648.0, 0.9999999999999999]
    columns = {"b": [0.5] * 6, "i": numbers, "k": ["red"] * 6}
    array = np.array([columns["b"], numbers, [0] * 6], dtype=float).T
    wanted = forest.predict(array)
    assert np.isnan(wanted).tolist() == [True, True, False, False, True, True]
    forms = (columns, pandas.DataFrame(columns), pyarrow.table(columns), array.tolist(), array.astype(object))
    for rows in (*forms, np.asfortranarray(array), forest.encode(array)):
        assert np.array_equal(forest.predict(rows), wanted, equal_nan=True)
    for rows in forms:
        assert np.array_equal(forest.predict(rows, missing=-99), wanted, equal_nan=True)


def test_what_is_no_rows_is_told_by_its_type() -> None:
    forest = forestvm.load(DATA / "breast_cancer" / "model.json")
    rows = np.load(DATA / "breast_cancer" / "rows.npy")[:2]
    row = dict(zip(forest.feature_names, rows[0]))
    for X, said in (
        (None, "a NoneType holds no rows that can be read: pass a matrix, a frame or a table"),
        ((row for row in rows), "a generator holds no rows"),
        ([row, row], "a list of dictionaries: pass a dictionary of columns"),
        (row, "column 'mean radius': has 0 dimensions, not one: predict_one takes one row"),
    ):
        with pytest.raises(forestvm.UnsupportedInput, match=said):
            forest.predict(X)
    with pytest.raises(forestvm.Usage, match="not dict: from_xgboost, from_lightgbm"):
        forestvm.load(row)  # type: ignore[arg-type]


def test_lazy_frames_are_to_be_collected() -> None:
    polars = pytest.importorskip("polars")
    forest = forestvm.load(DATA / "breast_cancer" / "model.json")
    with pytest.raises(forestvm.UnsupportedInput, match="a LazyFrame holds no rows that can be read: collect it first"):
        forest.predict(polars.LazyFrame({"x": [1.0]}))


def test_indices_of_sparse_rows_are_not_cut() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    forest = forestvm.load(DATA / "breast_cancer" / "model.json")
    rows = sparse.csr_matrix((1, forest.num_features))
    rows.data, rows.indptr = np.array([1.0]), np.array([0, 1])
    rows.has_canonical_format = True
    for index in (2**32 + 3, -(2**32) + 3):
        rows.indices = np.array([index])
        with pytest.raises(forestvm.Refused, match="indices of columns that are not from 0 to 29"):
            forest.predict(rows)


SPARSE_FORMS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("kind", ["indices", "missing", "duplicates", "offsets", "csc", "coo", "lil", "bsr", "dia"])
def test_sparse_rows_are_converted_a_part_at_a_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    forest = forestvm.load(DATA / "breast_cancer" / "model.json", threads=1)
    block = 1 << 16
    monkeypatch.setattr(_rows, "_BLOCK_BYTES", block)
    rows = sparse.random(40_000, forest.num_features, density=0.3, format="csr", dtype="float32", random_state=1)
    rows.data *= 100
    wanted, codes = forest.predict(rows), bytes(forest.encode(rows))
    options: dict[str, Any] = {}
    assert rows.has_canonical_format
    if kind in SPARSE_FORMS:
        rows = rows.asformat(kind)
    else:
        rows.indptr = rows.indptr.astype("int64")  # an indptr of another type is converted
    if kind == "indices":
        rows.indices = rows.indices.astype("int64")
    elif kind == "missing":
        options["missing"] = -1.0
    elif kind == "duplicates":  # each value is half of the sum
        rows = sparse.csr_matrix((np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), rows.indptr * 2), rows.shape)
    elif kind == "offsets":
        rows.indptr = rows.indptr.astype("int32")
    before = rows.copy()
    forest.predict(before, **options)  # imports what is needed
    out = np.empty_like(wanted)
    tracemalloc.start()
    forest.predict(rows, out=out, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert out.tobytes() == wanted.tobytes()
    assert peak < 8 * block < 4 * rows.nnz
    for name in ("data", "indices", "indptr", "row", "col", "rows", "offsets"):
        assert np.array_equal(getattr(rows, name, None), getattr(before, name, None))
    assert bytes(forest.encode(rows, **options)) == codes


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("block", [1, 1 << 16, 64 << 20])
@pytest.mark.parametrize("form", SPARSE_FORMS)
def test_sparse_rows_of_all_forms_are_those_of_scipys_csr(
    form: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    forest = forestvm.load(DATA / "breast_cancer" / "model.json", threads=1)
    monkeypatch.setattr(_rows, "_BLOCK_BYTES", block)
    width = forest.num_features
    for count, density in ((0, 0.0), (1, 0.5), (130, 0.0), (1000, 0.02), (999, 0.4), (20, 1.0)):
        csr = sparse.random(count, width, density=density, format="csr", random_state=count)
        csr.data = (csr.data * 100).round()
        csr.data[::5] = 0  # zeros that are listed
        for made in (csr.asformat(form), sparse.csr_array(csr).asformat(form)):
            check_as_csr(forest, made)


def check_as_csr(forest: forestvm.Forest, rows: Any) -> None:
    """Compares rows with the CSR that SciPy makes of them."""
    csr = rows.tocsr(copy=True)
    csr.sum_duplicates()
    assert forest.predict(rows).tobytes() == forest.predict(csr).tobytes()
    assert bytes(forest.encode(rows)) == bytes(forest.encode(csr))


@pytest.mark.parametrize("block", [1, 1 << 16])
def test_sparse_rows_may_be_out_of_order_and_list_columns_twice(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    forest = forestvm.load(DATA / "breast_cancer" / "model.json", threads=1)
    monkeypatch.setattr(_rows, "_BLOCK_BYTES", block)
    random, count, width = np.random.default_rng(1), 1000, forest.num_features
    given = random.integers(0, count, 5000), random.integers(0, width, 5000)
    values = random.normal(size=5000) * 100
    check_as_csr(forest, sparse.coo_matrix((values, given), shape=(count, width)))
    order = np.argsort(given[0], kind="stable")
    check_as_csr(forest, sparse.coo_matrix((values[order], (given[0][order], given[1][order])), shape=(count, width)))
    blocks = random.normal(size=(60, 100, 3)) * 100  # 60 blocks of 100 rows and 3 columns
    bsr = sparse.bsr_matrix((blocks, np.arange(60)[::-1] % 10, np.arange(11) * 6), shape=(count, width))
    check_as_csr(forest, bsr)
    check_as_csr(forest, sparse.bsr_matrix((blocks, np.arange(60) % 5, np.arange(11) * 6), shape=(count, width)))
    # Diagonals out of order, which do not reach all columns.
    offsets = np.array([3, -900, 0, -17, 29, -999, -500])
    check_as_csr(forest, sparse.dia_matrix((random.normal(size=(7, 22)) * 100, offsets), shape=(count, width)))


@pytest.mark.parametrize(("name", "index"), [("row", -1), ("row", 3), ("col", -1), ("col", 30)])
def test_coo_rows_with_wrong_indices_are_refused(name: str, index: int) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    forest = forestvm.load(DATA / "breast_cancer" / "model.json")
    rows = sparse.coo_matrix(np.ones((3, forest.num_features)))
    getattr(rows, name)[7] = index
    with pytest.raises(forestvm.Refused, match=f"indices of {'rows' if name == 'row' else 'columns'} that are not"):
        forest.predict(rows)


@pytest.mark.parametrize("index", [-50_000_000, 3, 100_000_000])
def test_csc_rows_with_wrong_indices_are_refused(index: int) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    forest = forestvm.load(DATA / "breast_cancer" / "model.json")
    rows = sparse.csc_matrix(np.ones((3, forest.num_features)))
    rows.indices[7] = index
    with pytest.raises(forestvm.Refused, match="indices of rows that are not"):
        forest.predict(rows)


def test_parts_of_uneven_csc_rows_have_few_values(monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    monkeypatch.setattr(forestvm._rows, "_BLOCK_BYTES", 1 << 16)
    forest = forestvm.load(DATA / "breast_cancer" / "model.json")
    dense = np.zeros((20_000, forest.num_features))
    dense[:200] = 1.5
    parts = list(forestvm._sparse_rows.parts(forest, sparse.csc_matrix(dense), None))
    assert max(len(part[2]) for _, _, part in parts) <= 64 * forest.num_features
    assert (forest.predict(sparse.csc_matrix(dense)) == forest.predict(sparse.csr_matrix(dense))).all()


def test_a_dictionary_has_no_order_for_a_model_without_names(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    values = np.random.default_rng(1).normal(size=(50, 2)).astype("float32")
    xgboost.train({}, xgboost.DMatrix(values, values[:, 1]), 3).save_model(tmp_path / "model.json")
    forest = forestvm.load(tmp_path / "model.json")
    assert not forest.feature_names
    with pytest.raises(forestvm.Usage, match="no names of features, by which a dictionary's values"):
        forest.predict_one({"b": 1.0, "a": 2.0})
    assert forest.predict_one({"b": 1.0, "a": 2.0}, columns="position") == forest.predict_one([1.0, 2.0])

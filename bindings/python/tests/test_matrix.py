"""Every model, form of rows, number of rows and output, against the trainer's own package on the same rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import (
    COUNTS,
    Answers,
    ModelFile,
    answers_of,
    content_of,
    large_model_files,
    model_files,
    other_model_files,
    ulps,
)
from frames import FRAMES
from test_rows import FORMS

import forestvm

Array = np.ndarray[Any, Any]
OUTPUTS = ("raw", "value", "class", "proba", "leaf")
# Forms of rows that are tried with every output. Other forms are tried with raw scores.
ARRAYS = ("float32", "float64", "fortran", "strided", "CSR", "DLPack")
TABLES = ("pandas", "polars, 2 chunks", "Arrow", "Arrow, 3 chunks", "Arrow, offsets", "Arrow, nulls")
DICTIONARIES = "Arrow, dictionaries"
# Forms that make an object of Python for each value: thousands of rows take too long.
FEW_ROWS = {"objects": 300, "lists": 300, "structured": 65}


class Case(NamedTuple):
    model: ModelFile
    forest: forestvm.Forest
    answers: Answers
    wanted: dict[str, Array]  # the forest's predictions of NumPy's float32 rows, which the trainer's package confirmed

    def order(self) -> Array:
        """Returns an order of the columns of tables: another one than the model's if they are matched by name."""
        count = self.forest.num_features
        by_name = self.forest.feature_names and not self.options()
        return np.random.default_rng(2).permutation(count) if by_name else np.arange(count)

    def options(self) -> dict[str, str]:
        """Returns options for tables. In columns that are matched by name, codes of numbers' categories are refused."""
        return {"columns": "position"} if self.forest._ambiguous_features else {}

    def names(self) -> list[str]:
        return names_of(self.forest)


def names_of(forest: forestvm.Forest) -> list[str]:
    return list(forest.feature_names) or [f"c{i}" for i in range(forest.num_features)]


def labels_of(forest: forestvm.Forest, answers: Answers) -> Array:
    """Returns the labels that the trainer's wrapper for scikit-learn would derive from the answers."""
    if forest._probabilities == "softmax":
        return answers.value.astype(np.int64)
    several = answers.value.ndim == 2 and not forest.objective.startswith("binary")
    return answers.value.argmax(axis=1) if several else (answers.value > 0.5).astype(np.int64)


def check_probabilities(forest: forestvm.Forest, got: Array, answers: Answers, most: int) -> None:
    if forest._probabilities == "softmax":
        special = pytest.importorskip("scipy.special")
        assert np.array_equal(got, special.softmax(answers.raw, axis=1))
    elif forest._probabilities == "pair":
        assert np.array_equal(got[:, 0], 1 - got[:, 1])
        assert ulps(got[:, 1], answers.value.astype(got.dtype)) <= most
    else:
        assert ulps(got, answers.value.astype(got.dtype)) <= most


def check_others(forest: forestvm.Forest, wanted: dict[str, Array], answers: Answers) -> None:
    """Compares the answers of a trainer's package that does not give all of them."""
    if answers.raw is not None:
        assert wanted["raw"].tobytes() == np.ascontiguousarray(answers.raw).tobytes()
    if answers.leaf is not None:
        assert np.array_equal(wanted["leaf"], answers.leaf)
    if answers.value is not None:
        got, value = wanted["value"], answers.value
        assert got.shape == value.shape
        largest = np.abs(value) if value.ndim == 1 else np.abs(value).max(axis=1, keepdims=True)
        least = 2.3e-16 if forest.objective == "IsolationForest" else 0  # a difference of two numbers near 0.5
        assert (np.abs(got - value) <= np.maximum(4 * np.spacing(largest), least)).all()


def confirmed(forest: forestvm.Forest, answers: Answers, trainer: str) -> dict[str, Array]:
    """Compares all outputs of NumPy's float32 rows with the trainer's answers. Returns those that the model has."""
    most = 2 if trainer == "xgboost" else 3
    wanted = {}
    for output in OUTPUTS:
        rows = answers.rows[: len(answers.leaf)] if output == "leaf" and answers.leaf is not None else answers.rows
        try:
            wanted[output] = forest.predict(rows, output=output)
        except forestvm.Refused as refusal:
            assert output in ("class", "proba") and re.search("no classes|not probabilities", str(refusal)), refusal
    raw = wanted["raw"]
    if trainer in ("catboost", "sklearn"):
        check_others(forest, wanted, answers)
        return wanted
    assert raw.tobytes() == np.ascontiguousarray(answers.raw).astype(raw.dtype, casting="no").tobytes()
    assert ulps(wanted["value"], answers.value.astype(raw.dtype).reshape(wanted["value"].shape)) <= most
    assert np.array_equal(wanted["leaf"], answers.leaf)
    if "class" in wanted:
        assert np.array_equal(wanted["class"], labels_of(forest, answers))
    if "proba" in wanted:
        check_probabilities(forest, wanted["proba"], answers, most)
    return wanted


ALL = [*model_files(), *other_model_files(), *large_model_files()]


@pytest.fixture(scope="module", params=ALL, ids=lambda model: f"{model.trainer}-{model.name}")
def case(request: pytest.FixtureRequest) -> Case:
    model = request.param
    forest = forestvm.load(content_of(model.path), threads=1)
    answers = answers_of(model)
    return Case(model, forest, answers, confirmed(forest, answers, model.trainer))


def check(case: Case, name: str, make: Callable[[Array], Any], outputs: tuple[str, ...] = OUTPUTS) -> None:
    """Compares the predictions of rows in a form, for every number of rows."""
    for count in COUNTS:
        count = min(count, FEW_ROWS.get(name, count))
        try:
            X = make(case.answers.rows[:count])
        except pytest.skip.Exception:
            return  # the package is absent, which test_the_packages_are_there reports
        for output in outputs:
            if output not in case.wanted or count > len(case.wanted[output]):
                continue  # the trainer was asked for the leaves of a few rows of the largest models
            options = case.options() if name in FRAMES else {}
            got, wanted = case.forest.predict(X, output=output, **options), case.wanted[output][:count]
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), (name, count, output)
            assert got.tobytes() == np.ascontiguousarray(wanted).tobytes(), (name, count, output)


def test_arrays(case: Case) -> None:
    for name, make in FORMS.items():
        if name in ARRAYS:
            check(case, name, make)
        else:
            check(case, name, make, ("raw",))


def test_tables(case: Case) -> None:
    """Columns in another order than the model's features are matched by name."""
    names = case.names()
    order = case.order()
    mixed = [names[i] for i in order]
    for name, make in FRAMES.items():
        if name == DICTIONARIES and (case.forest.categories or case.model.trainer == "catboost"):
            continue  # values of dictionaries are names of categories, but these rows hold codes
        outputs = OUTPUTS if name in (*TABLES, DICTIONARIES) else ("raw",)
        check(case, name, lambda rows: make(rows[:, order], mixed), outputs)


def test_dictionaries_of_named_categories() -> None:
    """Dictionaries of columns and of single values, whose categories are names, against the trainer's recorded answers
    for the codes in the models' rows."""
    tried = []
    for model in [*model_files(), *other_model_files()]:
        forest = forestvm.load(content_of(model.path), threads=1)
        hashed = set(forest._hashed_features)
        if not forest.categories and not hashed:
            continue
        tried.append(model.name)
        folder = model.path.parent
        rows = np.load(folder / "rows.npy")[:60]
        raw = np.load(folder / "expected_raw.npy")[: len(rows)]
        names = names_of(forest)

        def named(feature: int, value: float, forest: forestvm.Forest = forest, hashed: set[int] = hashed) -> Any:
            """Returns a value as a dictionary has it: None if it is missing, and the name of a category."""
            texts = forest.categories.get(forest.feature_names[feature] if forest.feature_names else feature)
            if np.isnan(value):
                return None
            if texts is not None:
                return texts[int(value)] if 0 <= value < len(texts) else None
            return str(int(value)) if feature in hashed else float(value)

        # A number that is the code of no category has no name.
        known = np.array([all(np.isnan(x) or named(i, x) is not None for i, x in enumerate(row)) for row in rows])
        rows, raw = rows[known], raw[known]
        assert len(rows) > 10
        columns = {names[i]: [named(i, row[i]) for row in rows] for i in reversed(range(len(names)))}
        options = {} if forest.feature_names else {"columns": "position"}
        if not forest.feature_names:
            columns = dict(reversed(columns.items()))
        got = forest.predict_raw(columns, **options)
        assert got.tobytes() == raw.astype(got.dtype).reshape(got.shape).tobytes(), model.name
        for output in OUTPUTS:
            try:
                wanted = forest.predict(columns, output=output, **options)
            except forestvm.Refused as refusal:
                assert output in ("class", "proba") and re.search("no classes|not probabilities", str(refusal)), refusal
                continue
            for i in range(len(rows)):
                row = {name: values[i] for name, values in columns.items()}
                one = forest.predict_one(row, output=output, **options)
                assert np.asarray(one, wanted.dtype).tobytes() == wanted[i].tobytes(), (model.name, output, i)
    assert {"3.2.0_named", "4.7.0_pandas", "1.2.10_numbers", "1.9_hist_names"} <= set(tried)


def test_integers(case: Case) -> None:
    answers = answers_of(case.model, integers=True)
    wanted = confirmed(case.forest, answers, case.model.trainer)
    names = case.names()
    given = case._replace(answers=answers, wanted=wanted)
    forms = {name: FORMS[name] for name in ("float32", "fortran", "strided")}
    forms |= {name: lambda rows, make=FRAMES[name]: make(rows, names) for name in TABLES if "nulls" not in name}
    for name, make in forms.items():
        check(given, name, lambda rows: make(rows.astype(np.int64)))


def test_encoded_rows(case: Case) -> None:
    try:
        case.forest.encode(case.answers.rows[:1])
    except forestvm.Refused as refusal:
        assert "has no encoder" in str(refusal), refusal
        pytest.skip(f"no encoded rows: {refusal}")
    check(case, "encoded", case.forest.encode)
    assert len(case.forest.encode(case.answers.rows[:65])) == 65
    names = case.names()
    codes_of_dictionaries = case.forest.categories or case.model.trainer == "catboost"
    tables = [name for name in (*TABLES, DICTIONARIES) if name != DICTIONARIES or not codes_of_dictionaries]
    forms = {name: FORMS[name] for name in ("float64", "fortran", "CSR", "CSC", "DLPack")}
    forms |= {name: lambda rows, make=FRAMES[name]: make(rows, names) for name in tables}
    for count in COUNTS:
        rows = case.answers.rows[:count]
        wanted = bytes(case.forest.encode(rows))
        for name, make in forms.items():
            try:
                X = make(rows)
            except pytest.skip.Exception:
                continue  # the package is absent, which test_the_packages_are_there reports
            options = case.options() if name in FRAMES else {}
            assert bytes(case.forest.encode(X, **options)) == wanted, (name, count)

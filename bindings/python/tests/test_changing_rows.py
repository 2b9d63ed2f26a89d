"""Rows that other threads change while they are predicted. A call must read a list or dictionary as it was at one
moment, or refuse it. Python without a global lock lets other threads change it between any two items that a call
reads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forestvm

from conftest import ModelFile, model_files, other_model_files

Array = np.ndarray[Any, Any]
CALLS = int(os.environ.get("FORESTVM_CALLS", "100000")) // 50


def assert_answers(
    change: Callable[[], None],
    answer_is_right: Callable[[], bool],
    calls: int = CALLS,
    *,
    may_refuse: bool = True,
) -> None:
    """Calls `answer_is_right` in three threads while another one calls `change` again and again.

    `may_refuse` says that calls may raise Usage, because `change` makes the rows invalid at some times.
    """
    done = threading.Event()

    def changes() -> None:
        while not done.is_set():
            change()

    def predict() -> int:
        right = 0
        for _ in range(calls):
            try:
                right += answer_is_right()
            except forestvm.Usage:
                if not may_refuse:
                    raise
                right += 1
        return right

    with ThreadPoolExecutor(4) as pool:
        changing = pool.submit(changes)
        try:
            assert [future.result() for future in [pool.submit(predict) for _ in range(3)]] == [calls] * 3
        finally:
            done.set()
        changing.result()


def new_numbers(row: list[float]) -> list[float]:
    """Returns new number objects, which are freed as soon as they are removed from the row that other threads read."""
    return [number + 0.0 for number in row]


def test_a_list(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer)
    wanted = {forest.predict_one(row) for row in rows[:2]}
    assert len(wanted) == 2
    others = [rows[0].tolist(), rows[1].tolist()]
    row = list(others[0])

    def change() -> None:
        for other in others:
            row[:] = new_numbers(other)
            row.clear()

    assert_answers(change, lambda: forest.predict_one(row) in wanted, 3 * CALLS)


def test_a_list_that_keeps_its_length(breast_cancer: Path, rows: Array) -> None:
    """No answer belongs to a mixture of two rows."""
    forest = forestvm.load(breast_cancer)
    wanted = {forest.predict_one(row) for row in rows[:2]}
    others = [rows[0].tolist(), rows[1].tolist()]
    row = list(others[0])

    def change() -> None:
        for other in others:
            row[:] = new_numbers(other)

    assert_answers(change, lambda: forest.predict_one(row) in wanted, 20 * CALLS, may_refuse=False)
    assert_answers(change, lambda: forest.predict_one(row, missing=-5) in wanted, may_refuse=False)


def test_a_list_of_lists(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer)
    wanted = {forest.predict_one(row) for row in rows[:2]}
    others = [rows[0].tolist(), rows[1].tolist()]
    table = [list(row) for row in others]

    def change() -> None:
        for i, other in enumerate(others):
            table[1 - i][:] = new_numbers(other)
            table.append(new_numbers(other))
            table[i].clear()
            table[i].extend(new_numbers(other))
            table.pop()

    assert_answers(change, lambda: wanted.issuperset(forest.predict(table).tolist()))
    assert_answers(change, lambda: wanted.issuperset(forest.predict(tuple(table), dtype=np.float32).tolist()))


def test_a_dictionary(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer)
    wanted = {forest.predict_one(row) for row in rows[:2]}
    names = forest.feature_names
    others = [dict(zip(names, row.tolist())) for row in rows[:2]]
    row = dict(others[0])

    def change() -> None:
        for other in others:
            row.update(dict(zip(names, new_numbers(list(other.values())))))
            last = row.pop(names[-1])
            row["another"] = last
            row.clear()

    assert_answers(change, lambda: forest.predict_one(row) in wanted, CALLS // 2)


def test_a_dictionary_of_columns(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer)
    wanted = {forest.predict_one(row) for row in rows[:2]}
    names = forest.feature_names
    others = [{name: [number] * 3 for name, number in zip(names, row.tolist())} for row in rows[:2]]
    columns = dict(others[0])

    def change() -> None:
        for other in others:
            columns.update({name: new_numbers(column) for name, column in other.items()})
        for name in names:  # some columns have another length for some time
            columns[name].append(0.0)
            columns[name].pop()
        columns.clear()

    assert_answers(change, lambda: wanted.issuperset(forest.predict(columns).tolist()), CALLS // 4)


@pytest.mark.parametrize("file", model_files() + other_model_files(), ids=lambda file: f"{file.trainer}-{file.name}")
def test_the_numbers_of_an_array(file: ModelFile) -> None:
    """A call reads an array while others write to it, so answers belong to some mixture of rows. Whatever number is
    written meanwhile, the call reads and writes nothing outside its arrays."""
    forest = forestvm.load(file.path, threads=2)
    rows = np.load(file.path.parent / "rows.npy")[:200]
    wanted = forest.predict(rows)
    strange = np.array([np.nan, np.inf, -np.inf, -1, 0, 0.5, 31, 32, 1e6, 3e38, -3e38, 1e-40], rows.dtype)
    shared = rows.copy()
    random = np.random.default_rng(1)

    def change() -> None:
        shared[:] = rows
        shared[:, random.integers(rows.shape[1])] = random.choice(strange, len(rows))

    def answers() -> bool:
        try:
            return bool(forest.predict(shared).shape[0] == forest.predict_raw(shared[:3]).shape[0] + len(rows) - 3)
        except forestvm.Refused:  # a category that the trainer refuses
            return True

    assert_answers(change, answers, max(5, CALLS // 100))
    assert forest.predict(rows).tobytes() == wanted.tobytes()

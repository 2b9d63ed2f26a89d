"""The types that mypy finds for calls, where they depend on the arguments."""

from __future__ import annotations

import pathlib

import pytest

# assert_type fails for another type, and a comment "type: ignore" that is not needed is an error, too.
CALLS = """
from typing import Any, Optional, Union

from numpy.typing import NDArray
from typing_extensions import assert_type

import forestvm

Array = NDArray[Any]
Pair = tuple[Array, Array]


def calls(forest: forestvm.Forest, rows: Array, top: Optional[int]) -> None:
    assert_type(forest.contributions(rows), Array)
    assert_type(forest.contributions(rows, features=["a"], out=rows), Array)
    assert_type(forest.contributions(rows, top=None), Array)
    assert_type(forest.contributions(rows, top=2), Pair)
    assert_type(forest.contributions(rows, top=top), Union[Array, Pair])
    forest.contributions(rows, out=rows, top=2)  # type: ignore[call-overload]
    assert_type(forest.interactions(rows, max_bytes=1 << 20), Array)
    assert_type(forest.interactions(rows, top=2), Pair)
    assert_type(forest.approx_contributions(rows), Array)
    assert_type(forest.approx_contributions(rows, dtype="float32", top=2), Pair)
    assert_type(forest.proximity(rows, rows, weights=True), Array)
    assert_type(forest.proximity(rows, top=2), Pair)
    forest.proximity(rows, top="2")  # type: ignore[call-overload]
    numbers, values = forest.contributions(rows, top=2)
    assert_type(numbers, Array)
"""


def test_explanations_and_proximities_with_top(tmp_path: pathlib.Path) -> None:
    mypy = pytest.importorskip("mypy.api")
    source, cache = tmp_path / "calls.py", tmp_path / "cache"
    source.write_text(CALLS)
    said, errors, status = mypy.run(["--strict", f"--cache-dir={cache}", str(source)])
    assert (status, errors) == (0, ""), said

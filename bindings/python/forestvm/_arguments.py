"""Checks of the arguments of calls, before the extension gets them."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._errors import UnsupportedInput, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


def background_rows(background: Any, contributions: bool, interactions: bool) -> NDArray[Any] | None:
    """Returns the rows of a background as the extension takes them."""
    if background is None:
        return None
    if interactions:
        raise Usage("interactions are not computed against a background: load the model without one", "background")
    if not contributions:
        raise Usage("background is for contributions: give contributions=True, too", "background")
    return _matrix(background, "background")


def sample_rows(samples: tuple[Any, Any] | None) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Returns training rows and their targets as the extension takes them."""
    if samples is None:
        return None, None
    import numpy

    try:
        rows, targets = samples
    except (TypeError, ValueError):
        raise Usage("samples: expected (X, y), training rows and their targets", "samples") from None
    try:
        numbers = numpy.ascontiguousarray(targets, dtype=numpy.float64)
    except (TypeError, ValueError) as error:
        raise UnsupportedInput(f"samples: y is no array of numbers: {error}", "samples") from None
    if numpy.ndim(targets) != 1:
        raise Usage(f"samples: y has the shape {numpy.shape(targets)}: expected (rows,)", "samples")
    return _matrix(rows, "samples"), numbers


def _matrix(rows: Any, option: str) -> NDArray[Any]:
    """Returns rows in the order of the model's features as an array of float64."""
    if isinstance(rows, dict) or hasattr(rows, "columns") or hasattr(rows, "column_names"):
        name = type(rows).__name__
        raise UnsupportedInput(
            f"{name} has columns with names, which are not matched: give an array in the order of the model's features",
            option,
        )
    import numpy

    try:
        if isinstance(rows, numpy.ma.MaskedArray):
            rows = numpy.ma.filled(rows.astype(numpy.float64), numpy.nan)
        matrix = numpy.ascontiguousarray(rows, dtype=numpy.float64)
    except (TypeError, ValueError) as error:
        raise UnsupportedInput(f"{option} is no array of numbers: {error}", option) from None
    if matrix.ndim != 2:
        raise Usage(f"{option} has the shape {matrix.shape}: expected (rows, features)", option)
    return matrix


def quantiles_of(quantiles: Any) -> tuple[float, ...]:
    """Returns quantiles as the extension takes them."""
    try:
        numbers = tuple(float(quantile) for quantile in quantiles)
    except (TypeError, ValueError):
        raise Usage(f"quantiles is {quantiles!r}: expected numbers from 0 to 1", "quantiles") from None
    if not numbers or not all(0 <= number <= 1 for number in numbers):
        raise Usage(f"quantiles is {quantiles!r}: expected numbers from 0 to 1", "quantiles")
    return numbers


def early_stop_of(early_stop: Any) -> tuple[float, int]:
    """Returns the margin of an early stop, and the rounds from one test to the next. The defaults are LightGBM's."""
    expected = (
        f"early_stop is {early_stop!r}: expected {{'margin': M, 'every': N}}, a margin of 0 or more and 1 round or more"
    )
    if not isinstance(early_stop, Mapping) or not set(early_stop) <= {"margin", "every"}:
        raise Usage(expected, "early_stop")
    every = whole(early_stop.get("every", 10))
    try:
        margin = float(early_stop.get("margin", 10))
    except (TypeError, ValueError):
        raise Usage(expected, "early_stop") from None
    if not margin >= 0 or every is None or not 0 < every < 2**32:
        raise Usage(expected, "early_stop")
    return margin, every


def has_buffer(source: object) -> bool:
    try:
        return memoryview(source).c_contiguous  # type: ignore[arg-type]
    except TypeError:
        return False


def rounds_of(rounds: tuple[int, int] | str | None) -> tuple[int, int]:
    """Returns the numbers that the extension takes: an end of -1 means all rounds, -2 those up to the best one."""
    if rounds is None:
        return 0, -1
    if rounds == "best":
        return 0, -2
    if not isinstance(rounds, tuple) or len(rounds) != 2:
        raise Usage(f"rounds is {rounds!r}: expected (begin, end) or \"best\"", "rounds")
    begin, end = map(whole, rounds)
    # The extension takes numbers below 2**31, and `of_rounds` gives it 0, 0 for all rounds.
    if begin is None or end is None or not 0 <= begin < end < 2**31:
        raise Usage(f"rounds is {rounds!r}: expected (begin, end), where 0 <= begin < end < 2**31", "rounds")
    return begin, end


def rows_per_call(for_rows: int | Iterable[int] | None) -> array[int]:
    """Returns numbers of rows per call, ascending, as the extension takes them; none for all."""
    if for_rows is None:
        return array("I")
    try:
        numbers = [for_rows] if whole(for_rows) is not None else list(for_rows)  # type: ignore[arg-type]
    except TypeError:
        numbers = []
    if not numbers:
        raise Usage(f"for_rows is {for_rows!r}: expected a whole number from 1, or several", "for_rows")
    return array("I", sorted({count_of(number, "for_rows") for number in numbers}))


def whole(number: Any) -> int | None:
    """Returns the integer that `number` is, of any type of integers; None if it is none, or a bool."""
    if type(number).__name__ in ("bool", "bool_"):  # NumPy's bool has both names
        return None
    try:
        return operator.index(number)
    except TypeError:
        return None


def count_of(number: Any, where: str) -> int:
    """Returns a whole number that the C ABI holds in 32 bits, from 1."""
    found = whole(number)
    if found is None or not 0 < found < 2**32:
        raise Usage(f"{where} is {number!r}: expected a whole number from 1", where)
    return found


def check_array(out: Any) -> None:
    """Checks that an array was given to write to, or None."""
    import numpy

    if out is not None and not isinstance(out, numpy.ndarray):
        raise Usage(f"expected an array of NumPy, not {type(out).__name__}", "out")

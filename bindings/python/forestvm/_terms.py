"""Predicts explanations: contributions and interactions, of all or of chosen features, or the strongest of a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from ._arguments import check_array, whole
from ._errors import FeatureMismatch, Refused, Usage

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from ._forest import Forest


class Terms(NamedTuple):
    """The terms that a call asks for: (features + 1) ** order numbers of each row for each output of the model."""

    output: str
    order: int  # 1: contributions; 2: interactions
    features: Sequence[str | int] | None
    top: int | None
    max_bytes: int | None = None  # the most bytes that the terms of a row may take


def predict(
    forest: Forest,
    terms: Terms,
    X: Any,
    *,
    out: NDArray[Any] | None,
    dtype: DTypeLike | None,
    averaged: bool,
    **options: Any,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
    """Predicts terms. See Forest.contributions for the options."""
    output, order, features, top, max_bytes = terms
    chosen = None if features is None else numbers_of(forest, features)
    ascending = () if chosen is None else tuple(sorted(chosen))
    used = len(ascending) or forest.num_features
    if top is not None:
        check_top(top, used, order, out)
    axes = (used + 1,) * order
    shape = axes if forest.num_outputs == 1 else (forest.num_outputs, *axes)
    check_array(out)
    if max_bytes is not None:
        size = forest._new_result(0, "raw", None, dtype).itemsize if out is None else out.itemsize
        row_bytes = math.prod(shape) * size
        if row_bytes > max_bytes:
            raise Usage(f"the {output} of a row take {row_bytes} bytes, more than {max_bytes}", "max_bytes")
    if out is not None and (out.shape[1:] != shape or not out.flags.c_contiguous):
        wanted = ", ".join(map(str, shape))
        raise Usage(f"expected an array of the shape (rows, {wanted}) in C order, not {out.shape}", "out")
    calls = forest._kept_calls(features=ascending)
    flat_out = None if out is None else out.reshape(len(out), math.prod(shape))
    flat = calls.predict(X, output=output, out=flat_out, dtype=dtype, **options)
    numbers = flat.reshape(len(flat), *shape) if out is None else out
    if averaged:
        numpy.divide(numbers, _rounds_of(forest), out=numbers)
    if top is not None:
        return strongest(numbers, ascending or range(used), top, order)
    if chosen is not None and chosen != ascending:
        arranged = in_order(numbers, ascending, chosen, order)
        if out is None:
            return arranged
        out[...] = arranged
    return numbers


def _rounds_of(forest: Forest) -> float:
    """Returns the number of rounds whose trees a forest averages."""
    if forest._averaged_rounds == 0:
        which = f"{forest.trainer}, {forest.objective}"
        raise Refused(f"is for forests that average their trees; this one ({which}) does not", "averaged")
    return forest._averaged_rounds


def numbers_of(forest: Forest, features: Sequence[str | int]) -> tuple[int, ...]:
    """Returns the numbers of features that are given by name or by number."""
    if isinstance(features, (str, bytes)) or not hasattr(features, "__iter__"):
        raise Usage(f"features is {features!r}: expected a list of names or numbers", "features")
    names = {name: number for number, name in enumerate(forest.feature_names)}
    numbers = tuple(_number_of(forest, names, feature) for feature in features)
    if not numbers:
        raise Usage("no feature is chosen", "features")
    if len(set(numbers)) < len(numbers):
        twice = next(number for i, number in enumerate(numbers) if number in numbers[:i])
        raise Usage(f"feature {twice} comes twice", "features")
    return numbers


def _number_of(forest: Forest, names: dict[str, int], feature: Any) -> int:
    number = names.get(feature) if isinstance(feature, str) else whole(feature)
    if number is None or not 0 <= number < forest.num_features:
        raise FeatureMismatch(
            f"the model has no feature {feature!r}", "features", extra=(str(feature),), expected=forest.feature_names
        )
    return number


def check_top(top: Any, features: int, order: int, out: object) -> None:
    """Checks the number of terms that are wanted of each row."""
    most = features if order == 1 else features * (features + 1) // 2
    number = whole(top)
    if number is None or not 0 < number <= most:
        what = "features" if order == 1 else "pairs of features"
        raise Usage(f"top is {top!r}: expected 1 to {most}, the number of {what} to choose from", "top")
    if out is not None:
        raise Usage("top gives two new arrays: it takes no out", "out")


def in_order(
    numbers: NDArray[Any], ascending: tuple[int, ...], chosen: tuple[int, ...], order: int
) -> NDArray[Any]:
    """Returns terms of ascending features in the order of `chosen`, with the expected score last."""
    at = [*(ascending.index(feature) for feature in chosen), len(chosen)]
    for axis in range(1, order + 1):
        numbers = numbers.take(at, axis=-axis)
    return numbers


def strongest(
    numbers: NDArray[Any], features: Sequence[int], top: int, order: int
) -> tuple[NDArray[numpy.int64], NDArray[Any]]:
    """Returns the features of the largest terms by their absolute values, and these terms. NaN comes last."""
    count = len(features)
    called = numpy.asarray(features, dtype=numpy.int64)
    if order == 1:
        terms = numbers[..., :count]
    else:
        first, second = numpy.triu_indices(count)
        terms = numbers[..., first, second]
        called = numpy.stack((called[first], called[second]), axis=1)
    sizes = numpy.where(numpy.isnan(terms), -1, numpy.abs(terms))
    at = numpy.argsort(-sizes, axis=-1, kind="stable")[..., :top]
    return called[at], numpy.take_along_axis(terms, at, axis=-1)

"""Some of the terms of explanations: contributions and interactions of chosen features, and the strongest of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from ._arguments import whole
from ._errors import FeatureMismatch, Usage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._forest import Forest


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

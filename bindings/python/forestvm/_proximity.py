"""Compares rows by the leaves that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from . import _core
from ._errors import Usage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._forest import Forest


def compare(
    forest: Forest, X: Any, Y: Any, top: int | None, weights: bool, **options: Any
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
    """Counts shared leaves. See Forest.proximity."""
    leaves = forest.apply(X, **options)
    others = None if Y is None else forest.apply(Y, **options)
    count = len(leaves if others is None else others)
    dtype = numpy.float64 if weights else numpy.int32
    if top is None:
        out = numpy.empty((len(leaves), count), dtype)
        _core.share_leaves(leaves, others, out, None)
        return out
    known = max(0, count - 1) if others is None else count
    if not isinstance(top, int) or not 0 < top <= known:
        raise Usage(f"top is {top!r}: expected 1 to {known}, the number of rows to compare with", "top")
    rows, out = numpy.empty((len(leaves), top), numpy.int64), numpy.empty((len(leaves), top), dtype)
    _core.share_leaves(leaves, others, out, rows)
    return rows, out

"""Predictions of rows with margins of their own: XGBoost's `base_margin`, LightGBM's `init_score`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from . import _device_rows
from ._errors import Refused, UnsupportedInput, Usage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._forest import Forest


def predict(
    forest: Forest,
    base_margin: Any,
    X: Any,
    output: str,
    out: NDArray[Any] | None,
    dtype: Any,
    missing: float | None,
    columns: str | None,
    extra: str | None,
) -> NDArray[Any]:
    """Predicts rows of any form with margins, for Forest.predict and its variants."""
    if _device_rows.is_on_gpu(X):
        raise Refused("margins need rows of the host", "base_margin")
    calls = forest_with(forest, base_margin)
    predicted = calls.predict(
        X, output=output, out=out, dtype=dtype, missing=missing, columns=columns or "name", extra=extra or "error"
    )
    margins = calls._margin_rows
    if margins != len(predicted):  # if there were too few margins, predict has said so
        raise Usage(f"has {margins} rows, and there are {len(predicted)} rows to predict", "base_margin")
    return predicted


def forest_with(forest: Forest, base_margin: Any) -> Forest:
    """Returns a forest whose sums start from these margins, for one call with as many rows."""
    calls: Forest = forest._with_margins(_matrix_of(forest, base_margin))
    calls._options, calls._names = forest._options, forest._names
    calls._schema = calls._calls = None
    return calls


def _matrix_of(forest: Forest, base_margin: Any) -> NDArray[Any]:
    """Returns margins as an array (rows, outputs) of the type of raw scores, each a finite number."""
    try:
        given = numpy.asarray(base_margin)
    except ValueError as error:
        raise UnsupportedInput(f"is no array of numbers: {error}", "base_margin") from None
    if given.dtype.kind not in "biuf":
        raise UnsupportedInput(f"holds values of type {given.dtype}, not numbers", "base_margin")
    outputs = forest.num_outputs
    if given.ndim == 1 and outputs == 1:
        given = given[:, numpy.newaxis]
    if given.ndim != 2 or given.shape[1] != outputs:
        wanted = "(rows,)" if outputs == 1 else f"(rows, {outputs})"
        raise Usage(f"has the shape {given.shape}: expected {wanted}", "base_margin")
    with numpy.errstate(over="ignore"):  # numbers beyond float32 become infinite, and are reported below
        margins = numpy.ascontiguousarray(given, dtype=forest._new_result(0, "raw", None, None).dtype)
    if isinstance(base_margin, numpy.ma.MaskedArray):
        margins = numpy.where(numpy.ma.getmaskarray(base_margin).reshape(margins.shape), numpy.nan, margins)
    finite = numpy.isfinite(margins)
    if not finite.all():
        row, output = (int(at[0]) for at in numpy.nonzero(~finite))
        number = f"row {row}, output {output}: {given[row, output]}"
        raise Usage(f"{number} is no finite number of {margins.dtype}", "base_margin")
    return margins

"""Predictions of rows whose sums end once they are decided: LightGBM's `pred_early_stop`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _arguments, _device_rows
from ._errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ._forest import Forest


def predict(
    forest: Forest,
    early_stop: Mapping[str, float],
    X: Any,
    output: str,
    out: NDArray[Any] | None,
    dtype: Any,
    missing: float | None,
    columns: str | None,
    extra: str | None,
    base_margin: Any,
) -> NDArray[Any]:
    """Predicts rows of any form with an early stop, for Forest.predict and its variants."""
    asked = _arguments.early_stop_of(early_stop)
    if _device_rows.is_on_gpu(X):
        raise Refused("an early stop needs rows of the host", "early_stop")
    return forest._kept_calls(early_stop=asked).predict(
        X,
        output=output,
        out=out,
        dtype=dtype,
        missing=missing,
        columns=columns or "name",
        extra=extra or "error",
        base_margin=base_margin,
    )

"""Compares the numbers of an accelerated estimator with the estimator's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def difference(method: str, ours: Any, own: Any, ulps: int, absolute: float) -> str | None:
    """Returns where two results of a method differ, or None.

    Floating-point numbers may differ by `ulps` units in the last place or by `absolute`; everything else must be equal.
    """
    if isinstance(own, list):
        if len(ours) != len(own):
            return f"{method} gives {len(ours)} arrays, the estimator {len(own)}"
        found = [difference(f"{method}[{k}]", a, b, ulps, absolute) for k, (a, b) in enumerate(zip(ours, own))]
        return next((text for text in found if text is not None), None)
    ours, own = np.asarray(ours), np.asarray(own)
    if ours.shape != own.shape or ours.dtype != own.dtype:
        return f"{method} gives {ours.dtype} {ours.shape}, the estimator {own.dtype} {own.shape}"
    if own.dtype.kind == "f":
        wrong = ~_is_close(method, ours, own, ulps, absolute)
    else:
        wrong = ours != own
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{method} of row {at[0]} is {ours[at]!r}, the estimator's {own[at]!r}; {wrong.sum()} of {own.size} differ"


def _is_close(
    method: str, ours: npt.NDArray[Any], own: npt.NDArray[Any], ulps: int, absolute: float
) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        scale = np.abs(own)
        if method == "predict_proba" and own.ndim == 2 and own.shape[1] == 2:
            scale = scale.max(axis=1, keepdims=True)  # 1 - p has the error of p
        close = np.abs(ours - own) <= np.maximum(ulps * np.spacing(scale), absolute)
    return np.asarray(close | (ours == own) | (np.isnan(ours) & np.isnan(own)))

"""Small models of each trainer, freshly trained, and rows on which implementations differ first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

COUNTS = (1, 63, 64, 65, 4096)
FEATURES = 6


def training_rows(seed: int = 1, count: int = 400) -> np.ndarray:
    """Returns float64 rows of small numbers, many of which are equal, with missing values in two columns."""
    random = np.random.default_rng(seed)
    rows = np.round(random.normal(size=(count, FEATURES)), 2)
    rows[:, 1] = np.floor(rows[:, 1] * 3)
    rows[random.random(count) < 0.1, 2] = np.nan
    rows[random.random(count) < 0.5, 3] = 0
    return rows


def normal_rows(seed: int, count: int) -> np.ndarray:
    """Returns float32 rows of 5 normal numbers, one of which in twenty is missing."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, 5)).astype(np.float32)
    rows[random.random(rows.shape) < 0.05] = np.nan
    return rows


def target(rows: np.ndarray) -> np.ndarray:
    return np.nan_to_num(rows[:, 0] + rows[:, 1] * rows[:, 3] - rows[:, 2]) + 0.1 * rows[:, 5]


def binary(rows: np.ndarray) -> np.ndarray:
    return (target(rows) > 0).astype(int)


def classes(rows: np.ndarray) -> np.ndarray:
    return np.digitize(target(rows), [-1, 0, 1])


def awkward_rows(thresholds: Iterable[tuple[int, float]], missing: bool = True, infinite: bool = True) -> np.ndarray:
    """Returns float64 rows: numbers at thresholds (feature, number) and beside them, zeros of both signs, others."""
    base = training_rows(seed=2, count=60)
    special = [0.0, -0.0, 1e-310, -1e-310, 1e-45, 3e38, -3e38]
    special += [np.nan] if missing else []
    special += [np.inf, -np.inf] if infinite else []
    cells = [(feature, number) for number in special for feature in range(FEATURES)]
    largest = float(np.finfo(np.float32).max)
    for feature, t in [(f, t) for f, t in thresholds if infinite or abs(t) < largest][:120]:
        single = np.float32(np.clip(t, -largest, largest))
        near = [np.nextafter(t, -np.inf), t, np.nextafter(t, np.inf)]
        with np.errstate(over="ignore"):
            near += [float(np.nextafter(single, np.float32(s * np.inf))) for s in (-1, 1)] + [float(single)]
        cells += [(feature, number) for number in near]
    rows = np.resize(base, (len(cells), FEATURES))
    for row, (feature, number) in zip(rows, cells):
        row[feature] = number
    rows = np.concatenate([base, rows])
    return rows if missing else np.nan_to_num(rows, nan=0.25, posinf=np.inf, neginf=-np.inf)


def resized(rows: Any, count: int) -> Any:
    """Returns the rows of an array or a frame, repeated from the first until there are `count`."""
    index = np.resize(np.arange(rows.shape[0]), count)
    return rows.iloc[index].reset_index(drop=True) if hasattr(rows, "iloc") else rows[index]


def to_float32(rows: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return rows.astype(np.float32)


def forms(names: list[str] | None = None, sparse: bool = True) -> list[tuple[str, Callable[[np.ndarray], Any]]]:
    """Returns the ways in which rows are given, by name."""
    out: list[tuple[str, Callable[[np.ndarray], Any]]] = [
        ("float32", to_float32),
        ("float64", lambda rows: rows),
        ("fortran", np.asfortranarray),
    ]
    if names is not None:
        import pandas

        out.append(("pandas", lambda rows: pandas.DataFrame(rows, columns=names)))
    if sparse:
        from scipy.sparse import csr_matrix

        out.append(("csr", csr_matrix))
    return out


def assert_bits(ours: Any, theirs: Any) -> None:
    """Requires two arrays of one type and shape to have the same numbers, zeros of the same sign."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if ours.dtype.kind == "f":
        assert np.array_equal(np.signbit(ours), np.signbit(theirs))
    np.testing.assert_array_equal(ours, theirs)


def assert_ulps(ours: Any, theirs: Any, ulps: int) -> None:
    """Requires two arrays of one type and shape to be within `ulps` units in the last place."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    wrong = ~((np.abs(ours - theirs) <= ulps * np.spacing(np.abs(theirs))) | (ours == theirs))
    assert not wrong.any(), (ours[wrong][:3], theirs[wrong][:3])

"""Matches the columns of rows with names to a model's features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._errors import FeatureMismatch, Usage

if TYPE_CHECKING:
    from ._forest import Forest

_SHOWN = 5


def check_options(columns: str, extra: str) -> None:
    if columns not in ("name", "position"):
        raise Usage(f'columns: expected "name" or "position", not {columns!r}', "columns")
    if extra not in ("error", "ignore"):
        raise Usage(f'extra: expected "error" or "ignore", not {extra!r}', "extra")


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def check_count(forest: Forest, count: int) -> None:
    """Checks the number of columns of rows that are matched by position."""
    if count != forest.num_features:
        raise FeatureMismatch(
            f"the rows have {count} column{'s' if count != 1 else ''}, the model has {forest.num_features} features",
            "X",
            expected=forest.feature_names,
        )


def are_made_up(names: Sequence[str]) -> bool:
    """Returns whether a trainer gave these names to features that had none: LightGBM's Column_0, and f0 or 0."""
    return any(all(name == f"{stem}{i}" for i, name in enumerate(names)) for stem in ("Column_", "f", ""))


def order_of(forest: Forest, given: Sequence[object], columns: str, extra: str) -> list[int] | None:
    """Returns the number of the column that each feature has in rows with these names; None if all are in order.

    A model without names takes columns by position; so does one whose trainer made the names up, unless the rows use
    these.
    """
    check_options(columns, extra)
    names = forest.feature_names
    if columns == "position" or not names:
        check_count(forest, len(given))
        return None
    texts = [str(name) for name in given]
    if texts == list(names):
        return None
    at = {text: i for i, text in enumerate(texts)}
    repeated = {text for text, count in Counter(texts).items() if count > 1} if len(at) != len(texts) else set()
    if forest.trainer == "lightgbm":  # its files have underscores in place of spaces
        for i, text in enumerate(texts):
            at.setdefault("_".join(text.split(" ")), i)
    missing = [name for name in names if name not in at]
    if len(missing) == len(names) and are_made_up(names) and not repeated:
        check_count(forest, len(texts))
        return None
    order = [at.get(name, -1) for name in names]
    used = set(order)
    ambiguous = sorted(repeated if extra == "error" else repeated & {texts[i] for i in used if i >= 0})
    if ambiguous:
        raise FeatureMismatch(f"several columns are called {_list(ambiguous)}", "X", expected=names)
    unused = [text for i, text in enumerate(texts) if i not in used]
    if missing or (unused and extra == "error"):
        parts = [f"columns are missing: {_list(missing)}"] if missing else []
        if unused:
            parts.append(
                f"the model has no features called {_list(unused)}"
                + ("" if missing else ' (extra="ignore" drops them)')
            )
        raise FeatureMismatch("; ".join(parts), "X", missing, unused, names)
    return order

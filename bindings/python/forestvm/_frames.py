"""Rows in columns: frames of pandas and polars, Arrow tables, NumPy's structured arrays, dictionaries of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import _names, _rows
from ._errors import Refused, UnsupportedInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._forest import Forest

_BLOCK_BYTES = 64 << 20


def rows_of(forest: Forest, X: Any, missing: float | None, columns: str, extra: str) -> _rows.Rows:
    if isinstance(X, numpy.ndarray):
        names: Sequence[Any] = X.dtype.names or ()
        return columns_of(forest, names, [X[name] for name in names], missing, columns, extra)
    if isinstance(X, dict):
        return columns_of(forest, list(X), list(X.values()), missing, columns, extra)
    if hasattr(X, "iloc"):
        return PandasRows(forest, X, missing, columns, extra)
    return _arrow_rows(forest, X, missing, columns, extra)


def columns_of(
    forest: Forest, names: Sequence[Any], values: Sequence[Any], missing: float | None, columns: str, extra: str
) -> ColumnRows:
    order = _names.order_of(forest, names, columns, extra)
    used = values if order is None else [values[i] for i in order]
    return ColumnRows(forest, used, missing)


class ColumnRows:
    """Columns, one for each feature, each an array, a sequence, or a column of pandas or Arrow."""

    def __init__(self, forest: Forest, columns: Sequence[Any], missing: float | None) -> None:
        self._forest, self._missing = forest, missing
        codes = _rows.categories_of(forest)
        names = forest.feature_names
        self._columns = []
        for feature, values in enumerate(columns):
            where = f"column {names[feature]!r}" if names else f"column {feature}"
            self._columns.append(_Column(values, codes.get(feature), where, feature in forest._hashed_features))
        counts = {len(column) for column in self._columns}
        if len(counts) > 1:
            raise UnsupportedInput(f"the columns have different lengths: {sorted(counts)}", "X")
        self.count = counts.pop() if counts else 0

    def block(self, begin: int, end: int) -> NDArray[Any]:
        dtype = self._forest._row_dtype
        block = numpy.empty((end - begin, len(self._columns)), dtype=dtype, order="F")
        for feature, column in enumerate(self._columns):
            block[:, feature] = column.numbers(begin, end, dtype, self._missing)
        return block


class _Column:
    """The values of one feature."""

    def __init__(self, values: Any, codes: tuple[dict[str, int], float | None] | None, where: str, hashed: bool) -> None:
        self._values, self._codes, self._where, self._hashed = values, codes, where, hashed

    def __len__(self) -> int:
        return len(self._values)

    def numbers(self, begin: int, end: int, dtype: str, missing: float | None) -> NDArray[Any]:
        values = self._values[begin:end] if not hasattr(self._values, "iloc") else self._values.iloc[begin:end]
        kind = getattr(values, "dtype", None)
        if hasattr(values, "cat"):  # a Series of categories, which may be different in every frame
            table = self._mapped([_text(value) for value in values.cat.categories])
            numbers = numpy.append(table, numpy.nan)[numpy.asarray(values.cat.codes)]
            return numbers.astype(dtype)
        if not isinstance(values, numpy.ndarray) and not isinstance(kind, numpy.dtype) and hasattr(values, "to_numpy"):
            values = _from_nullable(values)
        array = values if isinstance(values, numpy.ndarray) else numpy.asarray(values)
        if array.dtype.kind in "UTO" or array.dtype.kind == "S":
            texts = array.astype(object)
            if any(isinstance(value, (str, bytes)) for value in texts):
                return self._texts(texts).astype(dtype)
        return _rows.numbers(array, dtype, missing, self._where)

    def _texts(self, values: NDArray[Any]) -> NDArray[Any]:
        """Maps texts to the codes of their categories."""
        distinct: dict[Any, int] = {}
        at = numpy.array([-1 if _is_missing(value) else distinct.setdefault(value, len(distinct)) for value in values], dtype=int)
        return numpy.append(self._mapped([_text(value) for value in distinct]), numpy.nan)[at]

    def _mapped(self, texts: Sequence[str]) -> NDArray[Any]:
        """Returns the number of each category."""
        if self._codes is None:
            reason = "compares texts by their hash, which is not supported for frames yet" if self._hashed else "has no names of categories for it"
            raise UnsupportedInput(f"holds categories or texts, and the model {reason}: pass its codes as numbers", self._where)
        codes, unseen = self._codes
        unknown = [text for text in texts if text not in codes]
        if unknown and unseen is None:
            raise Refused(f"{unknown[0]!r} is no category of the model", self._where)
        other = numpy.nan if unseen is None else unseen
        return numpy.array([codes.get(text, other) for text in texts], dtype="float64")


def _is_missing(value: Any) -> bool:
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _from_nullable(values: Any) -> NDArray[Any]:
    """Converts a column of an extension type of pandas."""
    kind = values.dtype.kind if hasattr(values.dtype, "kind") else "O"
    if kind in "biuf":
        if not values.isna().any():
            return numpy.asarray(values.to_numpy(dtype=getattr(values.dtype, "numpy_dtype", None)))
        if kind in "iu" and values.dtype.itemsize == 8:
            return numpy.asarray(values.to_numpy(dtype=object, na_value=None))
        return numpy.asarray(values.to_numpy(dtype="float64", na_value=numpy.nan))
    return numpy.asarray(values.to_numpy(dtype=object))


class PandasRows:
    """A frame of pandas. Frames of one type of numbers are read where they lie."""

    def __init__(self, forest: Forest, frame: Any, missing: float | None, columns: str, extra: str) -> None:
        order = _names.order_of(forest, frame.columns, columns, extra)
        self.count = len(frame)
        self._forest, self._frame, self._missing, self._order = forest, frame, missing, order
        self._plain = not forest._category_tables and not forest._hashed_features

    def block(self, begin: int, end: int) -> NDArray[Any]:
        frame = self._frame if (begin, end) == (0, self.count) else self._frame.iloc[begin:end]
        if self._plain:
            array = frame.to_numpy()
            if array.dtype.kind in "biuf" and (array.dtype != "float64" or not _hides_integers(frame, array)):
                return _rows.ArrayRows(self._forest, array, self._missing, self._order).block(0, len(frame))
        used = range(frame.shape[1]) if self._order is None else self._order
        rows = ColumnRows(self._forest, [frame.iloc[:, i] for i in used], self._missing)
        return rows.block(0, len(frame))


def _hides_integers(frame: Any, array: NDArray[Any]) -> bool:
    """Returns whether 64-bit integers of a mixed frame may have been rounded in its array."""
    largest = numpy.abs(array).max(initial=0, where=~numpy.isnan(array))
    return bool(largest > 2.0**53) and any(getattr(dtype, "kind", "O") in "iuO" for dtype in frame.dtypes)


def _arrow_rows(forest: Forest, X: Any, missing: float | None, columns: str, extra: str) -> _rows.Rows:
    raise UnsupportedInput(f"{type(X).__name__} is no form of rows that is known", "X")

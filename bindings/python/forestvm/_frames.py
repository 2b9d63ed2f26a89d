"""Rows in columns: frames of pandas, NumPy's structured arrays, dictionaries of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy

from . import _core, _names, _rows
from ._errors import Refused, UnsupportedInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._forest import Forest

    # A part of a column: its numbers; or indices of categories, the numbers of the categories, and whether some of the
    # categories are refused.
    Part = Union[NDArray[Any], tuple[NDArray[Any], NDArray[Any], bool]]

# Frames with more values are read column by column, which costs time for each column but copies nothing.
_FEW_VALUES = 1 << 18
_REFUSED = 0x7FF80000_00000FED  # the bits of a category that the trainer refuses


def rows_of(forest: Forest, X: Any, missing: float | None, columns: str, extra: str) -> _rows.Rows:
    if isinstance(X, dict):
        X = dict(X)  # a copy, because another thread may change the dictionary
        return columns_of(forest, list(X), list(X.values()), missing, columns, extra)
    if isinstance(X, numpy.ndarray):
        names = X.dtype.names or ()
        return columns_of(forest, names, [X[name] for name in names], missing, columns, extra)
    return _pandas_rows(forest, X, missing, columns, extra)


def predict_known(forest: Forest, X: Any, output: str, out: NDArray[Any] | None, dtype: Any) -> Any:
    """Predicts a frame of pandas with the columns of the previous one. Returns NotImplemented for other rows.

    Takes the matrices in which pandas keeps the columns of each type, because its public methods need 25 us for a frame
    of two types. These matrices are not part of pandas' interface: where they are not as expected, the caller reads the
    frame through the interface, with the same result.
    """
    manager: Any = getattr(X, "_mgr", None)
    try:
        if manager.axes[0] is not forest._schema:
            return NotImplemented
        blocks = [block.values for block in manager.blocks]
        if len(blocks) > 1:
            return forest._predict_blocks(blocks, manager.blknos, manager.blklocs, output, out, dtype)
    except AttributeError:
        return NotImplemented
    array = blocks[0].T if blocks else None
    if not _core.is_direct(array, forest.num_features):
        return NotImplemented
    return forest.predict(array, output=output, out=out, dtype=dtype)


def columns_of(
    forest: Forest, names: Sequence[Any], values: Sequence[Any], missing: float | None, columns: str, extra: str
) -> ColumnRows:
    order = _names.order_of(forest, names, columns, extra)
    return ColumnRows(forest, values if order is None else [values[i] for i in order], missing, columns)


def _pandas_rows(forest: Forest, frame: Any, missing: float | None, columns: str, extra: str) -> _rows.Rows:
    """Returns the rows of a frame. A frame of one type of numbers is read where it lies; a small frame of several types
    becomes one array."""
    if frame.ndim != 2:
        raise UnsupportedInput(f"a {type(frame).__name__} has one dimension, not 2: predict_one takes one row", "X")
    order = _names.order_of(forest, frame.columns, columns, extra)
    if not forest._category_tables and not forest._hashed_features:
        if order is None and columns == "name" and len(forest.feature_names) == frame.shape[1]:
            forest._schema = frame.columns
        array = pandas_array(frame, frame.shape[1])
        if array is not None:
            return _rows.ArrayRows(forest, array, missing, order)
    used = range(frame.shape[1]) if order is None else order
    return ColumnRows(forest, [frame.iloc[:, i] for i in used], missing, columns)


def pandas_array(frame: Any, width: int) -> NDArray[Any] | None:
    """Returns a frame of `width` columns as an array, if they are numbers and that copies little and rounds nothing."""
    few = len(frame) * width <= _FEW_VALUES
    if not few:
        # Several blocks would be copied into one array, and values of pandas' own types become Python's objects. Blocks
        # are not part of pandas' interface: a frame without them is read column by column, with the same result.
        blocks: Sequence[Any] = getattr(getattr(frame, "_mgr", None), "blocks", ())
        if len(blocks) != 1 or not isinstance(getattr(blocks[0], "values", None), numpy.ndarray):
            return None
    array: NDArray[Any] = frame.to_numpy()
    dtype = array.dtype
    if dtype.kind not in "biuf":
        return None
    if few and dtype.char == "d" and _core.has_large(array):
        return None if any(getattr(dtype, "kind", "O") in "iu" for dtype in frame.dtypes) else array
    return array


class ColumnRows(_rows.Rows):
    """Columns, one for each feature, each an array, a sequence, or a Series of pandas."""

    def __init__(self, forest: Forest, values: Sequence[Any], missing: float | None, columns: str) -> None:
        super().__init__(forest)
        ambiguous = forest._ambiguous_features if columns == "name" else []
        self._columns = [
            _Column(forest, feature, column, missing, feature in ambiguous) for feature, column in enumerate(values)
        ]
        counts = {len(column.values) for column in self._columns}
        if len(counts) > 1:
            raise UnsupportedInput(f"the columns have different lengths: {sorted(counts)}", "X")
        self.count = counts.pop() if counts else 0

    def pieces(self) -> Iterator[tuple[int, int]]:
        if all(column.is_direct for column in self._columns):
            return iter([(0, self.count)])
        return super().pieces()

    def predict(self, begin: int, end: int, output: str, out: NDArray[Any]) -> None:
        parts = [column.part(begin, end) for column in self._columns]
        self._forest._predict_columns(parts, end - begin, output, out)

    def block(self, begin: int, end: int) -> NDArray[Any]:
        block = numpy.empty((end - begin, len(self._columns)), dtype=self._forest._number_dtype, order="F")
        for feature, column in enumerate(self._columns):
            part = column.part(begin, end)
            block[:, feature] = (
                _codes(part, column.where)
                if isinstance(part, tuple)
                else _rows.numbers(part, str(block.dtype), None, column.where)
            )
        return block


def _codes(part: tuple[NDArray[Any], NDArray[Any], bool], where: str) -> NDArray[Any]:
    """Returns the numbers of a part whose values are indices of categories."""
    indices, numbers, refuses = part
    values: NDArray[Any] = numpy.append(numbers, numpy.nan)[indices]
    if refuses and (values.view(numpy.uint64) == _REFUSED).any():
        raise Refused(f"{where}: holds a category that the model does not have", where)
    return values


class _Column:
    """The values of one feature."""

    def __init__(self, forest: Forest, feature: int, values: Any, missing: float | None, is_ambiguous: bool) -> None:
        self._forest, self._feature, self._missing = forest, feature, missing
        #: Whether plain numbers may be names of categories or codes.
        self._is_ambiguous = is_ambiguous
        names = forest.feature_names
        self.where = f"column {names[feature]!r}" if names else f"column {feature}"
        self._table: tuple[NDArray[Any], bool] | None = None
        if hasattr(values, "cat"):  # a Series of categories, which may be other ones in every frame
            categories = list(values.cat.categories)
            if missing is not None and (missing in categories or (missing in range(len(categories)))):
                raise UnsupportedInput(
                    f"the number may be the code of a category in {self.where}: the frame's codes are not the model's",
                    "missing",
                )
            self._table = self._numbers_of(categories)
            values = values.cat.codes.to_numpy()
        elif hasattr(values, "iloc") and isinstance(values.dtype, numpy.dtype):
            values = values.to_numpy()
        elif not hasattr(values, "iloc") and not isinstance(values, numpy.ndarray):
            values = _array_of(values, self.where)
        if isinstance(values, numpy.ndarray) and values.ndim != 1:
            hint = ": predict_one takes one row" if values.ndim == 0 else ""
            raise UnsupportedInput(f"{self.where}: has {values.ndim} dimensions, not one{hint}", self.where)
        self.values = values
        #: Whether the extension reads the column where it lies.
        self.is_direct = isinstance(values, numpy.ndarray) and (
            self._table is not None
            or (
                missing is None
                and _core.is_direct(values[:, numpy.newaxis], 1)
                and values.strides == (values.itemsize,)
            )
        )

    def part(self, begin: int, end: int) -> Part:
        """Returns a part of the column in a form that the extension reads."""
        values = (
            self.values[begin:end]
            if isinstance(self.values, numpy.ndarray)
            else _from_extension(self.values.iloc[begin:end])
        )
        if self._table is not None:
            return numpy.ascontiguousarray(values), *self._table
        if self.is_direct:
            return self._checked(values)
        if isinstance(values, numpy.ma.MaskedArray):
            mask, values = numpy.ma.getmaskarray(values), values.data.astype(object)
            values[mask] = None
        if values.dtype.kind in "UTOS":
            objects = values.astype(object)
            if any(isinstance(value, (str, bytes)) for value in objects):
                return self._texts(objects)
        if self._missing is None and values.dtype.kind in "biuf" and values.dtype.char != "g":
            return self._checked(numpy.array(values, dtype=values.dtype.newbyteorder("=")))
        return self._checked(_rows.numbers(values, self._forest._number_dtype, self._missing, self.where))

    def _checked(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Returns the numbers, unless nothing says whether they are names of categories or codes."""
        if self._is_ambiguous and (numbers == numbers).any():
            raise UnsupportedInput(
                f"{self.where}: holds numbers, which may be names or codes of the model's categories: pass categories "
                'or texts for names, columns="position" for codes',
                self.where,
            )
        return numbers

    def _texts(self, values: NDArray[Any]) -> Part:
        """Maps texts to the codes of their categories."""
        distinct: dict[Any, int] = {}
        indices = numpy.fromiter(
            (-1 if _is_missing(value) else distinct.setdefault(value, len(distinct)) for value in values),
            numpy.int32,
            len(values),
        )
        return indices, *self._numbers_of([value.decode() if isinstance(value, bytes) else value for value in distinct])

    def _numbers_of(self, categories: list[Any]) -> tuple[NDArray[Any], bool]:
        """Returns the number of each category, and whether the trainer refuses some."""
        numbers = numpy.empty(len(categories))
        refused = self._forest._category_numbers(self._feature, [_plain(category) for category in categories], numbers)
        if refused is not None and not self._takes_texts():
            first, reason = refused
            value = categories[first]
            shown = "" if isinstance(value, str) else f"{value!r:.80}: "
            raise UnsupportedInput(f"{self.where}: {shown}{reason}", self.where)
        return numbers, refused is not None

    def _takes_texts(self) -> bool:
        tables = self._forest._category_tables
        return self._feature in self._forest._hashed_features or any(
            feature == self._feature for feature, _, _ in tables
        )


def _plain(category: Any) -> Any:
    """Returns a category as a text or a number of Python's; truth values are texts, as in the names of categories."""
    if isinstance(category, (bool, numpy.bool_)):
        return str(bool(category))
    return category.item() if isinstance(category, numpy.generic) else category


def _array_of(values: Any, where: str) -> NDArray[Any]:
    stable = _rows.frozen(values)
    try:
        array = numpy.asarray(stable)
    except ValueError as error:
        raise UnsupportedInput(f"{where}: {type(values).__name__}: {error}", where) from error
    if array.dtype.kind == "U" and not isinstance(values, numpy.ndarray):  # NumPy makes texts of numbers beside texts
        array = numpy.array(list(stable), dtype=object)
    return array


def _is_missing(value: Any) -> bool:
    return value is None or value is numpy.ma.masked or type(value).__name__ in ("NAType", "NaTType") or value != value


def _from_extension(values: Any) -> NDArray[Any]:
    """Converts a column of an extension type of pandas."""
    kind = getattr(values.dtype, "kind", "O")
    if kind in "biuf" and not values.isna().any():
        return numpy.asarray(values.to_numpy(dtype=getattr(values.dtype, "numpy_dtype", None)))
    if kind in "biuf" and not (kind in "iu" and values.dtype.itemsize == 8):
        return numpy.asarray(values.to_numpy(dtype="float64", na_value=numpy.nan))
    return numpy.asarray(values.to_numpy(dtype=object))

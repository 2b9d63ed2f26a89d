"""Rows in forms that the extension does not read itself. They are converted a block of at most 64 MiB at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy

from . import _core, _device_rows, _names
from ._errors import Internal, Refused, UnsupportedInput, Usage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._forest import Forest

_BLOCK_BYTES = 64 << 20
_EXACT = 2**53  # integers up to here are float64 numbers
_MASKED = id(numpy.ma.masked)  # comparing identities is faster than comparing values, and masked values equal nothing


class Rows:
    """The base of forms of rows that are converted, block by block, to what the extension reads."""

    count: int

    def __init__(self, forest: Forest) -> None:
        self._forest = forest

    def block(self, begin: int, end: int) -> NDArray[Any]:
        """Returns a part of the rows as a matrix."""
        raise NotImplementedError

    def predict(self, begin: int, end: int, output: str, out: NDArray[Any]) -> None:
        self._forest.predict(self.direct(begin, end), output=output, out=out)

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Cuts rows into blocks of at most 64 MiB of float64, at multiples of 64 rows; there is at least one."""
        step = max(64, _BLOCK_BYTES // (8 * max(1, self._forest.num_features)) // 64 * 64)
        for begin in range(0, max(1, self.count), step):
            yield begin, min(begin + step, self.count)

    def direct(self, begin: int, end: int) -> NDArray[Any]:
        block = self.block(begin, end)
        if not _core.is_direct(block, self._forest.num_features):
            raise Internal(f"rows of {block.dtype}, strides {block.strides} were not converted")
        return block


def predict(
    forest: Forest,
    X: Any,
    output: str,
    out: NDArray[Any] | None,
    dtype: Any,
    missing: float | None,
    columns: str | None,
    extra: str | None,
) -> NDArray[Any]:
    """Predicts rows of any form, for Forest.predict and its variants."""
    if forest._schema is not None and missing is None and columns is None and extra is None:
        known: NDArray[Any] = _frames.predict_known(forest, X, output, out, dtype)
        if known is not NotImplemented:
            return known
    if _device_rows.is_on_gpu(X):
        on_gpu: NDArray[Any] = _device_rows.predict(
            forest, X, output, out, dtype, missing, columns or "name", extra or "error"
        )
        return on_gpu
    if output == "proba" and forest._probabilities == "softmax":
        raw = forest.predict_raw(X, missing=missing, columns=columns or "name", extra=extra or "error")
        return _softmax(raw, forest._new_result(len(raw), output, out, dtype))
    if isinstance(X, _core.EncodedRows):
        raise Usage("missing: encoded rows have their missing values already", "missing")
    if _sparse_rows.is_sparse(X):
        return _sparse_rows.predict(forest, X, output, out, dtype, missing)
    if _is_arrow(X) and not hasattr(X, "iloc"):
        return forest._predict_arrow(X, output, out, dtype, missing_number(missing), columns, extra)
    rows = _rows_of(forest, X, missing, columns or "name", extra or "error")
    result = forest._new_result(rows.count, output, out, dtype)
    for begin, end in rows.pieces():
        rows.predict(begin, end, output, result[begin:end])
    return result


def predict_one(
    forest: Forest, row: Any, output: str, missing: float | None, columns: str | None, extra: str | None
) -> Any:
    """Predicts one row of any form, for Forest.predict_one."""
    if isinstance(row, dict):
        if not forest.feature_names and columns != "position":
            raise Usage(
                "the model has no names of features, by which a dictionary's values could be found: pass a list, or "
                'columns="position" if they are in order',
                "row",
            )
        row = dict(row)  # a copy, because another thread may change the dictionary
        names, values = list(row), list(row.values())
    elif hasattr(row, "index") and hasattr(row, "to_numpy"):  # a Series of pandas
        names, values = list(row.index), list(row)
    else:
        names, values = [], row
    if names:
        table = _frames.columns_of(
            forest, names, [[value] for value in values], missing, columns or "name", extra or "error"
        )
        answers = forest._new_result(1, output, None, None)
        table.predict(0, 1, output, answers)
    else:
        if _device_rows.is_on_gpu(values):
            raise UnsupportedInput("the row lies in a GPU's memory: predict takes rows there", "row")
        array = array_of(frozen(values))
        if array.ndim != 1:
            raise UnsupportedInput(f"a row has one dimension, not {array.ndim}: predict takes several rows", "row")
        answers = forest.predict(array[numpy.newaxis], output=output, missing=missing)
    return answers[0] if answers.ndim > 1 else answers[0].item()


def encode(forest: Forest, X: Any, missing: float | None, columns: str, extra: str) -> _core.EncodedRows:
    _names.check_options(columns, extra)
    if _sparse_rows.is_sparse(X):
        encoded = _core.EncodedRows(X.shape[0], *forest._encoder, None)
        for begin, _, part in _sparse_rows.parts(forest, X, missing):
            forest._encode(encoded, part, begin)
        return encoded
    if _is_arrow(X) and not hasattr(X, "iloc"):
        return forest._encode_arrow(X, missing_number(missing), columns, extra)
    rows = _rows_of(forest, X, missing, columns, extra)
    encoded = _core.EncodedRows(rows.count, *forest._encoder, None)
    for begin, end in Rows.pieces(rows):
        forest._encode(encoded, rows.direct(begin, end), begin)
    return encoded


def _softmax(raw: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
    """Computes what XGBClassifier.predict_proba does for multi:softmax, through SciPy's softmax."""
    exponentials = numpy.exp(raw - raw.max(axis=1, keepdims=True)) if len(raw) else raw
    numpy.divide(exponentials, exponentials.sum(axis=1, keepdims=True), out=out, casting="unsafe")
    return out


def missing_number(missing: float | None) -> float | None:
    """Returns the number that stands for missing values; None if there is none but NaN."""
    if missing is not None and (isinstance(missing, bool) or not isinstance(missing, (int, float, numpy.number))):
        raise Usage(f"missing is {missing!r}, not a number", "missing")
    try:
        return None if missing is None or math.isnan(missing) else float(missing)
    except OverflowError:
        raise Usage("missing is an integer that exceeds all float64 numbers", "missing") from None


def _rows_of(forest: Forest, X: Any, missing: float | None, columns: str, extra: str) -> Rows:
    _names.check_options(columns, extra)
    missing = missing_number(missing)
    if isinstance(X, numpy.ndarray) and X.dtype.names is None:
        return ArrayRows(forest, X, missing)
    if isinstance(X, (numpy.ndarray, dict)) or hasattr(X, "iloc"):
        return _frames.rows_of(forest, X, missing, columns, extra)
    if _device_rows.is_on_gpu(X):
        raise UnsupportedInput("the rows lie in a GPU's memory, and the host encodes: pass rows of the host", "X")
    if hasattr(X, "__dlpack__"):
        return ArrayRows(forest, from_dlpack(X), missing)
    return ArrayRows(forest, _from_sequence(X), missing)


def _is_arrow(X: Any) -> bool:
    return hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")


def from_dlpack(X: Any) -> NDArray[Any]:
    try:
        return numpy.from_dlpack(X)
    except (BufferError, TypeError, RuntimeError) as error:
        raise UnsupportedInput(f"{type(X).__name__} as DLPack: {error}", "X") from error


def frozen(values: Any) -> Any:
    """Returns a list as a tuple: if another thread changes a list while NumPy reads it, NumPy raises RuntimeError, or
    reads parts of two rows. In lists and tuples, NaN replaces NumPy's masked values, about which NumPy warns, or which
    it turns into "0.0" beside texts. Returns all other values as they are."""
    if type(values) is list:
        values = tuple(values)
    if type(values) is tuple and _MASKED in map(id, values):
        return tuple(numpy.nan if value is numpy.ma.masked else value for value in values)
    return values


def array_of(values: Any) -> NDArray[Any]:
    """Returns an array of what NumPy makes arrays of. Masks stay, which numpy.asarray would drop."""
    if isinstance(values, numpy.ma.MaskedArray) or (
        type(values) in (list, tuple) and any(isinstance(row, numpy.ma.MaskedArray) for row in values)
    ):
        return numpy.ma.asarray(values) if isinstance(values, numpy.ndarray) else _stacked(values)
    return numpy.asarray(values)


def _stacked(rows: Any) -> NDArray[Any]:
    """Returns the matrix of rows, or the vector of numbers, some of which have masks."""
    parts = [numpy.ma.asarray(row) for row in rows]
    stacked: NDArray[Any] = numpy.ma.stack(parts)
    return stacked


def _from_sequence(X: Any) -> NDArray[Any]:
    if type(X) in (list, tuple):
        X = [frozen(row) for row in frozen(X)]
    try:
        array = array_of(X)
    except ValueError as error:  # rows of different lengths
        raise UnsupportedInput(f"{type(X).__name__}: {error}", "X") from error
    if array.ndim == 0:
        hint = ": collect it first" if hasattr(X, "collect") else ": pass a matrix, a frame or a table"
        raise UnsupportedInput(f"a {type(X).__name__} holds no rows that can be read{hint}", "X")
    if array.ndim == 1 and array.size and isinstance(array[0], dict):
        raise UnsupportedInput(
            "a list of dictionaries: pass a dictionary of columns or a frame, or each dictionary to predict_one", "X"
        )
    if array.shape == (0,):
        raise UnsupportedInput("an empty sequence has no number of columns: pass an array of shape (0, features)", "X")
    return array


class ArrayRows(Rows):
    """A NumPy array of any type, layout and class."""

    def __init__(
        self, forest: Forest, array: NDArray[Any], missing: float | None, order: list[int] | None = None
    ) -> None:
        if array.ndim != 2:
            hint = {0: ": pass a matrix or a frame", 1: ": predict_one takes one row"}.get(array.ndim, "")
            raise UnsupportedInput(
                f"the rows have {array.ndim} dimension{'s' if array.ndim != 1 else ''}, not 2{hint}", "X"
            )
        if order is None:
            _names.check_count(forest, array.shape[1])
        super().__init__(forest)
        self.count = int(array.shape[0])
        self._array, self._missing, self._order = array, missing, order

    def block(self, begin: int, end: int) -> NDArray[Any]:
        block = self._array[begin:end]
        if self._order is not None:
            block = block[:, self._order]
        if isinstance(block, numpy.ma.MaskedArray):
            mask = numpy.ma.getmaskarray(block)
            block = numbers(block.data, self._forest._number_dtype, self._missing, "X").copy()
            block[mask] = numpy.nan
            return block
        block = numpy.asarray(block)
        if self._missing is None and _core.is_direct(block, self._forest.num_features):
            return block
        if self._missing is None and block.dtype.kind in "biuf" and block.dtype.char != "g":
            return numpy.array(block, dtype=block.dtype.newbyteorder("="), order="C")
        return numbers(block, self._forest._number_dtype, self._missing, "X")


def numbers(values: NDArray[Any], dtype: str, missing: float | None, where: str) -> NDArray[Any]:
    """Converts numbers of any type to `dtype`, in which the model reads them. To float32, numbers are rounded as the
    trainer rounds them; to float64, numbers that float64 cannot represent are refused. `missing` becomes NaN."""
    kind = values.dtype.kind
    if kind not in "biufO":
        raise UnsupportedInput(f"{where}: values of type {values.dtype} are not numbers", where)
    if kind == "O":
        converted = _objects(values, where).astype(dtype)
    else:
        converted = values.astype(dtype, order="C")
    if dtype == "float64" and values.dtype.char in "lLqQg":
        equal = (
            (converted.astype(values.dtype) == values) & (numpy.abs(converted) < 2.0**64)
            if kind in "iu"
            else (converted == values) | (values != values)
        )
        if not equal.all():
            raise Refused(
                f"{where}: {str(values[~equal].flat[0])} is not a float64 number, and rounded it could go another way "
                "in this model",
                where,
            )
    if missing is not None:
        converted[converted == numpy.asarray(missing, dtype=dtype)] = numpy.nan
    return converted


def _objects(values: NDArray[Any], where: str) -> NDArray[Any]:
    """Converts Python's numbers; None, and what pandas calls missing, become NaN."""
    out = numpy.empty(values.shape, dtype="float64")
    for at, value in enumerate(values.flat):
        if value is None or value is numpy.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
            number = numpy.nan
        elif isinstance(value, (int, float, numpy.number, numpy.bool_)):
            try:
                number = float(value)
            except OverflowError:  # an integer beyond the largest float64
                number = math.inf
            if isinstance(value, (int, numpy.integer)) and (math.isinf(number) or int(number) != int(value)):
                text = str(value) if abs(int(value)) < 10**40 else f"an integer of {int(value).bit_length()} bits"
                raise Refused(f"{where}: {text} is not a float64 number", where)
        else:
            raise UnsupportedInput(f"{where}: {value!r} is not a number", where)
        out.flat[at] = number
    return out


from . import _frames, _sparse_rows  # noqa: E402  (their classes and functions need those of this module)

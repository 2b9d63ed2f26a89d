"""Predicts sparse rows of SciPy. SciPy is not imported unless a caller passes such rows. CSR is read where it lies;
CSC, LIL, BSR, DIA and COO whose rows ascend become CSR a part at a time, and other forms as a whole."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy

from . import _names, _rows
from ._errors import Refused, UnsupportedInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._forest import Forest

    # The parts of rows that the extension reads: offsets, columns, values, and whether absent values are 0.
    Part = tuple[NDArray[numpy.int64], NDArray[numpy.int32], NDArray[Any], bool]


def is_sparse(X: Any) -> bool:
    """Returns whether X is a sparse matrix or array of SciPy."""
    return type(X).__module__.startswith("scipy.sparse")


def predict(
    forest: Forest, X: Any, output: str, out: NDArray[Any] | None, dtype: Any, missing: float | None
) -> NDArray[Any]:
    result = forest._new_result(X.shape[0], output, out, dtype)
    for begin, end, part in parts(forest, X, missing):
        forest._predict_csr(*part, output, result[begin:end])
    return result


def parts(forest: Forest, X: Any, missing: float | None) -> Iterator[tuple[int, int, Part]]:
    """Returns parts of sparse rows, at multiples of 64 rows: begin, end, and what the extension reads. Values that the
    rows do not list are missing for models of XGBoost and 0 for other models, as in the trainers."""
    if X.ndim != 2:
        raise UnsupportedInput(f"the rows have {X.ndim} dimension{'s' if X.ndim != 1 else ''}, not 2", "X")
    _names.check_count(forest, X.shape[1])
    missing = _rows.missing_number(missing)
    form = _form_of(X)
    source = form.rows
    is_read = source.format == "csr" and source.has_canonical_format
    copies = not is_read or source.indices.dtype.itemsize > 4 or _must_convert(source.data, missing)
    copies = copies or (source.indptr.dtype.itemsize < 8 and source.indptr.size * 8 > _rows._BLOCK_BYTES)
    for begin, end in form.pieces() if copies else [(0, X.shape[0])]:
        part = source
        if not is_read:
            part = form.part(begin, end)
            part.sum_duplicates()
        offsets, indices, values = part.indptr, part.indices, part.data
        if is_read and copies:
            first, last = offsets[begin], offsets[end]
            offsets, indices, values = offsets[begin : end + 1] - first, indices[first:last], values[first:last]
        if indices.dtype.itemsize > 4:
            _check_indices(indices, X.shape[1], "columns")
        if _must_convert(values, missing):
            values = _rows.numbers(values, forest._number_dtype, missing, "X")
        yield (
            begin,
            end,
            (
                numpy.ascontiguousarray(offsets, dtype="int64"),
                numpy.ascontiguousarray(indices, dtype="int32"),
                numpy.ascontiguousarray(values),
                forest.trainer != "xgboost",
            ),
        )


def _must_convert(values: NDArray[Any], missing: float | None) -> bool:
    """Returns whether the extension cannot read the values of sparse rows as they are."""
    dtype = values.dtype
    return missing is not None or dtype.kind not in "biuf" or dtype.char == "g" or not dtype.isnative


def _check_indices(indices: NDArray[Any], count: int, what: str) -> None:
    if indices.size and not 0 <= indices.min() <= indices.max() < count:
        raise Refused(f"the rows have indices of {what} that are not from 0 to {count - 1}", "X")


class _Form:
    """Rows in one of SciPy's sparse forms, of which parts become CSR."""

    # The memory that a value takes while a part is converted.
    value_bytes = 128

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def values_before(self, row: int) -> int:
        """Returns how many values the rows before a row have. It may be an estimate that grows with the row."""
        raise NotImplementedError

    def part(self, begin: int, end: int) -> Any:
        """Returns a part of the rows as CSR that shares no memory with them. A row may list a column twice."""
        raise NotImplementedError

    def _shape(self, begin: int, end: int) -> tuple[int, int]:
        return end - begin, self.rows.shape[1]

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Cuts the rows at multiples of 64 into parts that take at most 64 MiB while they are converted, unless 64 rows
        take more; there is at least one."""
        count, most = self.rows.shape[0], _rows._BLOCK_BYTES // self.value_bytes
        begin = 0
        while True:
            limit = self.values_before(begin) + most
            fitting = bisect.bisect_right(range(count + 1), limit, begin, key=self.values_before) - 1 - begin
            end = min(begin + min(fitting, most), count)
            if end < count:
                end = min(begin + max(64, (end - begin) // 64 * 64), count)
            yield begin, end
            if end == count:
                return
            begin = end


class _Csr(_Form):
    value_bytes = 16

    def values_before(self, row: int) -> int:
        return int(self.rows.indptr[row])

    def part(self, begin: int, end: int) -> Any:
        part = self.rows[begin:end]
        return part.copy() if part is self.rows else part


class _Counted(_Form):
    """Rows whose values are counted once, for each 64 rows together."""

    # The values before the end of each block of 64 rows.
    _before: NDArray[numpy.int64]

    def values_before(self, row: int) -> int:
        return int(self._before[(row - 1) // 64]) if row else 0


class _Csc(_Counted):
    value_bytes = 64

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        counts = numpy.zeros(-(-rows.shape[0] // 64), numpy.int64)
        step = max(1, _rows._BLOCK_BYTES // self.value_bytes)
        for begin in range(0, rows.nnz, step):
            counts += numpy.bincount(rows.indices[begin : min(begin + step, rows.nnz)] // 64, minlength=len(counts))
        self._before = numpy.cumsum(counts)

    def part(self, begin: int, end: int) -> Any:
        return self.rows[begin:end].tocsr()


class _Coo(_Form):
    """Values with their rows, which ascend, and columns."""

    def values_before(self, row: int) -> int:
        return int(bisect.bisect_left(self.rows.row, row))

    def part(self, begin: int, end: int) -> Any:
        listed = slice(self.values_before(begin), self.values_before(end))
        indices = self.rows.row[listed] - begin, self.rows.col[listed]
        return type(self.rows)((self.rows.data[listed], indices), shape=self._shape(begin, end)).tocsr()


class _Lil(_Counted):
    """Lists of columns and of values for each row."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        lists = rows.rows
        counts = (sum(map(len, lists[begin : begin + 64])) for begin in range(0, len(lists), 64))
        self._before = numpy.cumsum(numpy.fromiter(counts, numpy.int64))

    def part(self, begin: int, end: int) -> Any:
        lists, values = self.rows.rows[begin:end], self.rows.data[begin:end]
        offsets = numpy.append(0, numpy.cumsum(numpy.fromiter(map(len, lists), numpy.int64, end - begin)))
        flat = itertools.chain.from_iterable
        columns = numpy.fromiter(flat(lists), numpy.int64, offsets[-1])
        numbers = numpy.fromiter(flat(values), self.rows.dtype, offsets[-1])
        return _csr((numbers, columns, offsets), self._shape(begin, end))


class _Bsr(_Form):
    """CSR whose values are dense blocks of several rows and columns."""

    def values_before(self, row: int) -> int:
        height, width = self.rows.blocksize
        outer, inner = divmod(row, height)
        offsets = self.rows.indptr[outer : outer + 2].tolist()
        return int(height * width * offsets[0] + (inner * width * (offsets[1] - offsets[0]) if inner else 0))

    def part(self, begin: int, end: int) -> Any:
        height, width = self.rows.blocksize
        outer, inner = numpy.divmod(numpy.arange(begin, end), height)
        first, last = self.rows.indptr[outer], self.rows.indptr[outer + 1]
        blocks = _ranges(first, last)
        values = self.rows.data[blocks, numpy.repeat(inner, last - first)]
        columns = self.rows.indices[blocks, numpy.newaxis] * width + numpy.arange(width)
        offsets = numpy.append(0, numpy.cumsum(last - first, dtype=numpy.int64) * width)
        return _csr((values.ravel(), columns.ravel(), offsets), self._shape(begin, end))


class _Dia(_Form):
    """Diagonals, whose numbers lie at their columns. Zeros there are absent values, as SciPy has them."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        self._width = min(rows.data.shape[1], rows.shape[1])

    def values_before(self, row: int) -> int:
        return row * min(len(self.rows.offsets), int(self._width))

    def part(self, begin: int, end: int) -> Any:
        offsets = self.rows.offsets
        crossing = numpy.flatnonzero((offsets > -end) & (offsets < self._width - begin))
        offsets = offsets[crossing].astype(numpy.int64)
        first, last = numpy.maximum(0, offsets + begin), numpy.minimum(self._width, offsets + end)
        columns = _ranges(first, last)
        values = self.rows.data[numpy.repeat(crossing, last - first), columns]
        rows = columns - numpy.repeat(offsets, last - first) - begin
        listed = values != 0
        return _csr((values[listed], (rows[listed], columns[listed])), self._shape(begin, end))


_FORMS: dict[str, type[_Form]] = {"csr": _Csr, "csc": _Csc, "coo": _Coo, "lil": _Lil, "bsr": _Bsr, "dia": _Dia}


def _form_of(X: Any) -> _Form:
    """Returns the form of rows. DOK, and COO whose rows do not ascend, become CSR as a whole: the values of a part lie
    anywhere in them."""
    if X.format == "coo":
        _check_indices(X.row, X.shape[0], "rows")
        _check_indices(X.col, X.shape[1], "columns")
    if X.format == "csc":
        _check_indices(X.indices, X.shape[0], "rows")
    if X.format not in _FORMS or (X.format == "coo" and not _ascends(X.row)):
        X = X.tocsr()
    return _FORMS[X.format](X)


def _ascends(numbers: NDArray[Any]) -> bool:
    step = max(1, _rows._BLOCK_BYTES // 16)
    pieces = (numbers[begin : begin + step + 1] for begin in range(0, len(numbers), step))
    return all(bool((piece[:-1] <= piece[1:]).all()) for piece in pieces)


def _ranges(first: NDArray[Any], last: NDArray[Any]) -> NDArray[numpy.int64]:
    """Returns the numbers of ranges, one range after another."""
    counts = (last - first).astype(numpy.int64)
    ends = numpy.cumsum(counts)
    numbers: NDArray[numpy.int64] = numpy.repeat(first - (ends - counts), counts)
    numbers += numpy.arange(len(numbers))
    return numbers


def _csr(content: tuple[Any, ...], shape: tuple[int, int]) -> Any:
    from scipy import sparse

    return sparse.csr_matrix(content, shape=shape)

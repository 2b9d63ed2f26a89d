"""Makers of frames and tables of each kind from an array of rows, which several files of tests use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]


def pandas_frame(rows: Array, names: list[str], **options: Any) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows, columns=names, **options)


def pandas_fortran(rows: Array, names: list[str]) -> Any:
    return pandas_frame(np.asfortranarray(rows), names, copy=False)


def pandas_mixed(rows: Array, names: list[str]) -> Any:
    """Returns a frame whose columns have four types in turn."""
    frame = pandas_frame(rows, names)
    for i, name in enumerate(names):
        frame[name] = frame[name].astype(("float32", "float64", "Float32", "Float64")[i % 4])
    return frame


def polars_frame(rows: Array, names: list[str]) -> Any:
    return pytest.importorskip("polars").DataFrame({name: rows[:, i] for i, name in enumerate(names)})


def polars_chunks(rows: Array, names: list[str]) -> Any:
    polars = pytest.importorskip("polars")
    middle = len(rows) // 3
    return polars.concat([polars_frame(rows[:middle], names), polars_frame(rows[middle:], names)], rechunk=False)


def arrow_table(rows: Array, names: list[str]) -> Any:
    arrow = pytest.importorskip("pyarrow")
    return arrow.table([arrow.array(rows[:, i]) for i in range(len(names))], names=names)


def arrow_chunks(rows: Array, names: list[str]) -> Any:
    """Returns a table of three chunks, one of which is empty."""
    arrow = pytest.importorskip("pyarrow")
    middle = len(rows) // 2
    return arrow.concat_tables([arrow_table(part, names) for part in (rows[:middle], rows[:0], rows[middle:])])


def arrow_offsets(rows: Array, names: list[str]) -> Any:
    """Returns a table whose columns begin at the fourth value of their memory."""
    padded = np.concatenate([np.full((3, rows.shape[1]), 7, rows.dtype), rows])
    return arrow_table(padded, names)[3:]


def arrow_nulls(rows: Array, names: list[str]) -> Any:
    """Returns a table in which NaNs are nulls. Columns are float32 and float64 in turns and begin at odd offsets."""
    arrow = pytest.importorskip("pyarrow")
    padded = np.concatenate([np.zeros((5, rows.shape[1]), rows.dtype), rows])
    columns = [
        arrow.array(padded[:, i], type=(arrow.float32(), arrow.float64())[i % 2], from_pandas=True)[5:]
        for i in range(len(names))
    ]
    return arrow.table(columns, names=names)


def arrow_dictionaries(rows: Array, names: list[str]) -> Any:
    """Returns a table of two chunks, each with its own dictionary. Indices have several types; some NaNs are nulls."""
    arrow = pytest.importorskip("pyarrow")
    middle = len(rows) // 2
    kinds = (arrow.int16(), arrow.int32(), arrow.uint16(), arrow.int64())

    def column(part: Array, i: int) -> Any:
        values = arrow.array(part[:, i], from_pandas=i % 2 == 0).dictionary_encode()
        return values.cast(arrow.dictionary(kinds[i % 4], values.type.value_type))

    parts = (rows[:middle], rows[middle:])
    columns = [arrow.chunked_array([column(part, i) for part in parts]) for i in range(len(names))]
    return arrow.table(columns, names=names)


def arrow_batch(rows: Array, names: list[str]) -> Any:
    """Returns an object that has only the method `__arrow_c_array__`."""
    arrow = pytest.importorskip("pyarrow")

    class OneArray:
        def __init__(self, batch: Any) -> None:
            self._batch = batch

        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            return self._batch.__arrow_c_array__(requested_schema)

    return OneArray(arrow.record_batch([arrow.array(rows[:, i]) for i in range(len(names))], names=names))


def duckdb_relation(rows: Array, names: list[str]) -> Any:
    duckdb = pytest.importorskip("duckdb")
    table = arrow_table(rows, names)
    return duckdb.from_arrow(table)


def structured(rows: Array, names: list[str]) -> Any:
    array = np.empty(len(rows), dtype=[(name, rows.dtype) for name in names])
    for i, name in enumerate(names):
        array[name] = rows[:, i]
    return array


FRAMES: dict[str, Callable[[Array, list[str]], Any]] = {
    "pandas": pandas_frame,
    "pandas, Fortran order": pandas_fortran,
    "pandas, mixed": pandas_mixed,
    "polars": polars_frame,
    "polars, 2 chunks": polars_chunks,
    "Arrow": arrow_table,
    "Arrow, 3 chunks": arrow_chunks,
    "Arrow, offsets": arrow_offsets,
    "Arrow, nulls": arrow_nulls,
    "Arrow, dictionaries": arrow_dictionaries,
    "Arrow, one array": arrow_batch,
    "DuckDB": duckdb_relation,
    "dictionary": lambda rows, names: dict(zip(names, rows.T)),
    "structured": structured,
}

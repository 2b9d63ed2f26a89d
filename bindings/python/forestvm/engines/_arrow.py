"""Predictions as columns of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.compute

from .._errors import Refused, Usage
from .._forest import Forest
from ._program import LISTS, Call, no_predictions

if TYPE_CHECKING:
    from numpy.typing import NDArray


def schema_of(forest: Forest, output: str, name: str) -> pyarrow.Schema:
    """Returns the columns of predictions: `name`, or `name_0`, `name_1`, ... if there are several numbers a row.
    Contributions and the like are one column of lists, because a row may have thousands."""
    names = forest.feature_names or [str(i) for i in range(forest.num_features)]
    rows = pyarrow.record_batch([pyarrow.array([], pyarrow.float64()) for _ in names], names=list(names))
    return _predictions(forest, rows, Call(output), name).schema


def check_free(kept: Sequence[str], added: Sequence[str], where: str = "name") -> None:
    """Checks that no column that is kept has the name of one of predictions."""
    taken = sorted(set(kept) & set(added))
    if taken:
        raise Usage(f"the rows have a column {taken[0]!r} already: choose another name for the predictions", where)


def with_predictions(
    forest: Forest, rows: pyarrow.RecordBatch, call: Call, name: str, keep: Sequence[str] | None = None
) -> pyarrow.RecordBatch:
    """Returns the rows' columns `keep`, or all, with the columns of predictions after them."""
    predictions = _predictions(forest, rows, call, name)
    kept = rows if keep is None else rows.select(list(keep))
    check_free(kept.schema.names, predictions.schema.names)
    return pyarrow.RecordBatch.from_arrays(
        kept.columns + predictions.columns, schema=pyarrow.schema([*kept.schema, *predictions.schema])
    )


def one_column(forest: Forest, columns: list[Any], call: Call) -> pyarrow.Array:
    """Predicts the rows of arrays, one for each feature in the model's order, or of a single array of structs by name.
    Several numbers a row are a list."""
    return as_column(call.predict(forest, _rows_of(forest, columns)))


def type_of(forest: Forest, output: str) -> pyarrow.DataType:
    """Returns the type of `one_column`."""
    return as_column(no_predictions(forest, output)).type


def as_column(numbers: NDArray[Any]) -> pyarrow.Array:
    """Returns predictions as one column. Several numbers a row are a list."""
    if numbers.ndim == 1:
        return pyarrow.array(numbers)
    return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(numbers.reshape(-1)), numbers.shape[1])


def _rows_of(forest: Forest, columns: list[Any]) -> pyarrow.RecordBatch:
    arrays = [column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column for column in columns]
    if len(arrays) == 1 and isinstance(arrays[0], pyarrow.StructArray):
        if arrays[0].null_count:
            number = pyarrow.compute.index(arrays[0].is_null(), True).as_py()
            raise Refused(f"row {number} is null as a whole", "columns")
        return pyarrow.RecordBatch.from_struct_array(arrays[0])
    if len(arrays) != forest.num_features:
        raise Usage(
            f"{len(arrays)} columns for {forest.num_features} features: give all, or one struct with their names",
            "columns",
        )
    names = forest.feature_names or [str(i) for i in range(forest.num_features)]
    return pyarrow.RecordBatch.from_arrays(arrays, names=list(names))


def _predictions(forest: Forest, rows: pyarrow.RecordBatch, call: Call, name: str) -> pyarrow.RecordBatch:
    if call.output in LISTS:
        return pyarrow.record_batch([as_column(call.predict(forest, rows))], names=[name])
    stream = forest.predict_stream(rows, name=name, extra="ignore", **call._asdict())
    table = pyarrow.RecordBatchReader.from_stream(stream).read_all().combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pyarrow.RecordBatch.from_pylist([], schema=table.schema)

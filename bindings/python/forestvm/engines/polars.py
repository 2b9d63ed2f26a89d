"""Predictions as an expression of polars.

    frame.with_columns(forestvm.engines.polars.expr(forest))    # adds a column "prediction"

The expression reads the columns that have the features' names, in lazy and streaming queries too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars

from .._errors import Usage
from .._forest import Forest
from ._program import no_predictions, program_of

_TYPES = {"float32": polars.Float32, "float64": polars.Float64, "int64": polars.Int64, "int32": polars.Int32}


def expr(
    forest: Forest, columns: Sequence[str] | None = None, *, output: str = "value", name: str = "prediction"
) -> polars.Expr:
    """Returns an expression of the predictions. Several numbers a row are an Array.

    columns: the columns of the features, in the model's order; None: those with the features' names.
    """
    program_of(forest, output, 1)
    names = list(forest.feature_names) if columns is None else list(columns)
    if len(names) != forest.num_features:
        reason = (
            "the model has no names: give the columns of its features"
            if not names
            else f"{len(names)} columns for {forest.num_features} features"
        )
        raise Usage(reason, "columns")
    sample = no_predictions(forest, output)
    number = _TYPES[str(sample.dtype)]
    dtype: Any = number if sample.ndim == 1 else polars.Array(number, sample.shape[1])

    def predict(rows: polars.Series) -> polars.Series:
        return polars.Series(name, forest.predict(rows.struct.unnest(), output=output, columns="position"), dtype=dtype)

    return polars.struct(names).map_batches(predict, return_dtype=dtype, is_elementwise=True).alias(name)

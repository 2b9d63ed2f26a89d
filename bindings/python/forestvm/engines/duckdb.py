"""Predictions in DuckDB's SQL.

    forestvm.engines.duckdb.register(connection, "score", forest)
    connection.sql("SELECT score(t) FROM rows t")           # a row as a struct: features by name
    connection.sql("SELECT score(age, income) FROM rows")   # features in the model's order

DuckDB calls Python's functions from one thread at a time; the forest's own threads share the work of a call.
"""

from __future__ import annotations

from typing import Any

import pyarrow

from .._forest import Forest
from . import _arrow
from ._program import call_of, check_output

_TYPES = {"float": "FLOAT", "double": "DOUBLE", "int64": "BIGINT", "int32": "INTEGER"}


def register(
    connection: Any,
    name: str,
    forest: Forest,
    *,
    output: str = "value",
    missing: float | None = None,
    columns: str = "name",
) -> None:
    """Adds a function to a connection. It takes a column for each feature, or one struct whose fields have their names.

    NULL is a missing value. Several numbers a row are an array, FLOAT[3] for example.

    missing: a number that is missing, besides NaN and NULL.
    columns: "name", or "position": a struct's fields are the features in the model's order, and numbers are codes of
             categories, where they could be names, too.
    """
    check_output(forest, output)
    call = call_of(output, missing, columns)
    type_ = _arrow.type_of(forest, output)
    many = pyarrow.types.is_fixed_size_list(type_)
    returned = f"{_TYPES[str(type_.value_type)]}[{type_.list_size}]" if many else _TYPES[str(type_)]

    def score(*given: Any) -> pyarrow.Array:
        return _arrow.one_column(forest, list(given), call)

    connection.create_function(name, score, None, returned, type="arrow", null_handling="special")

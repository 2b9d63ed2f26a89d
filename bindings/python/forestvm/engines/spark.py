"""Predictions in Spark 4: of a DataFrame, or in expressions and SQL.

    predictions = forestvm.engines.spark.predict(df, forest)          # df with a column "prediction"
    score = forestvm.engines.spark.udf(session, forest)
    df.select(score(*forest.feature_names)); session.udf.register("score", score)

The program is a file that Spark sends to each executor once; tasks know only its name. Workers need forestvm and
pyarrow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type

from .._forest import Forest
from . import _arrow
from ._program import Call, Program, call_of, mapped_file, program_of


def predict(
    df: Any,
    forest: Forest,
    *,
    output: str = "value",
    name: str = "prediction",
    missing: float | None = None,
    columns: str = "name",
    threads: int = 1,
) -> Any:
    """Returns `df` with the predictions: a column `name`, or `name_0`, `name_1`, ... if a row has several numbers.

    Columns are matched to features by name, whatever their order; further columns are kept.
    missing: a number that is missing, besides NaN and NULL.
    columns: "name", or "position": the columns are the features in the model's order, and there are no others.
    threads: threads of each task; Spark runs a task for each core.
    """
    program, call = program_of(forest, output, threads), call_of(output, missing, columns)
    predictions = _arrow.schema_of(forest, output, name)
    _arrow.check_free(df.columns, predictions.names)
    _send(df.sparkSession, program, forest)
    added = from_arrow_schema(pyarrow.schema([(column.name, _spark_type(column.type)) for column in predictions]))
    schema = type(df.schema)(df.schema.fields + added.fields)
    return df.mapInArrow(functools.partial(_predict_batches, program, call, name), schema)


def udf(
    session: Any,
    forest: Forest,
    *,
    output: str = "value",
    missing: float | None = None,
    columns: str = "name",
    threads: int = 1,
) -> Any:
    """Returns a function of columns, for expressions and for `session.udf.register`.

    It takes a column for each feature, in the model's order, or one struct whose fields have the features' names, such
    as `struct("*")`. Several numbers a row are an array.

    missing: a number that is missing, besides NaN and NULL.
    columns: "name", or "position": a struct's fields are the features in the model's order, and numbers are codes of
             categories, where they could be names, too.
    """
    from pyspark.sql.functions import arrow_udf

    program, call = program_of(forest, output, threads), call_of(output, missing, columns)
    _send(session, program, forest)
    returned = from_arrow_type(_spark_type(_arrow.type_of(forest, output)))
    return arrow_udf(_column_function(program, call), returned)


def _spark_type(type_: pyarrow.DataType) -> pyarrow.DataType:
    """Returns the type in which Spark takes numbers of a type: its arrays are lists of any length."""
    return pyarrow.list_(type_.value_type) if pyarrow.types.is_fixed_size_list(type_) else type_


def _column_function(program: Program, call: Call) -> Callable[..., pyarrow.Array]:
    def score(*columns: pyarrow.Array) -> pyarrow.Array:
        return _predict_columns(program, call, columns)

    # Spark reads the kind of function from the types of its parameters, which must be classes and not texts.
    score.__annotations__ = {"columns": pyarrow.Array, "return": pyarrow.Array}
    return score


def _send(session: Any, program: Program, forest: Forest) -> None:
    session.addArtifacts(str(program.file_of(forest)), file=True)


def _opened(program: Program) -> Forest:
    from pyspark import SparkFiles

    return program.open(lambda: mapped_file(SparkFiles.get(program.file_name)))


def _predict_batches(
    program: Program, call: Call, name: str, batches: Iterator[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    forest = _opened(program)
    for rows in batches:
        batch = _arrow.with_predictions(forest, rows, call, name)
        yield batch.cast(pyarrow.schema([(column.name, _spark_type(column.type)) for column in batch.schema]))


def _predict_columns(program: Program, call: Call, columns: tuple[Any, ...]) -> pyarrow.Array:
    numbers = _arrow.one_column(_opened(program), list(columns), call)
    return numbers.cast(_spark_type(numbers.type))

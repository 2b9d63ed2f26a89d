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
from ._program import Program, file_of, mapped_file, program_of


def predict(df: Any, forest: Forest, *, output: str = "value", name: str = "prediction", threads: int = 1) -> Any:
    """Returns `df` with the predictions: a column `name`, or `name_0`, `name_1`, ... if a row has several numbers.

    Columns are matched to features by name, whatever their order; further columns are kept.
    threads: threads of each task; Spark runs a task for each core.
    """
    program = _sent(df.sparkSession, forest, output, threads)
    added = from_arrow_schema(_arrow.schema_of(forest, output, name))
    schema = type(df.schema)(df.schema.fields + added.fields)
    return df.mapInArrow(functools.partial(_predict_batches, program, output, name), schema)


def udf(session: Any, forest: Forest, *, output: str = "value", threads: int = 1) -> Any:
    """Returns a function of columns, for expressions and for `session.udf.register`.

    It takes a column for each feature, in the model's order, or one struct whose fields have the features' names, such
    as `struct("*")`. Several numbers a row are an array.
    """
    from pyspark.sql.functions import arrow_udf

    program = _sent(session, forest, output, threads)
    types = [field.type for field in _arrow.schema_of(forest, output, "prediction")]
    returned = types[0] if len(types) == 1 else pyarrow.list_(types[0])
    return arrow_udf(_column_function(program, output), from_arrow_type(returned))


def _column_function(program: Program, output: str) -> Callable[..., pyarrow.Array]:
    def score(*columns: pyarrow.Array) -> pyarrow.Array:
        return _predict_columns(program, output, columns)

    # Spark reads the kind of function from the types of its parameters, which must be classes and not texts.
    score.__annotations__ = {"columns": pyarrow.Array, "return": pyarrow.Array}
    return score


def _sent(session: Any, forest: Forest, output: str, threads: int) -> Program:
    program = program_of(forest, output, threads)
    session.addArtifacts(str(file_of(forest)), file=True)
    return program


def _opened(program: Program) -> Forest:
    from pyspark import SparkFiles

    return program.open(lambda: mapped_file(SparkFiles.get(program.file_name)))


def _predict_batches(
    program: Program, output: str, name: str, batches: Iterator[pyarrow.RecordBatch]
) -> Iterator[pyarrow.RecordBatch]:
    forest = _opened(program)
    for rows in batches:
        yield _arrow.with_predictions(forest, rows, output, name)


def _predict_columns(program: Program, output: str, columns: tuple[Any, ...]) -> pyarrow.Array:
    numbers = _arrow.one_column(_opened(program), list(columns), output)
    if pyarrow.types.is_fixed_size_list(numbers.type):
        return numbers.cast(pyarrow.list_(numbers.type.value_type))
    return numbers

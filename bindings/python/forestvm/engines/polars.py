"""Predictions as an expression of polars.

    frame.with_columns(forestvm.engines.polars.expr(forest))    # adds a column "prediction"

The expression reads the columns that have the features' names, in lazy and streaming queries too. polars runs it on its
own threads, without Python: forestvm's extension is a plugin of polars. The expression holds a digest of the program,
so that a stored query also runs in another process that has the program's file.
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars

from .. import _core
from .._errors import Environment, Refused, Usage
from .._forest import Forest
from ._program import Call, Program, call_of, folder, hold, program_of

_PLUGIN = Path(_core.__file__)


def expr(
    forest: Forest,
    features: Sequence[str] | None = None,
    *,
    output: str = "value",
    name: str = "prediction",
    missing: float | None = None,
    columns: str = "name",
    threads: int | None = None,
) -> polars.Expr:
    """Returns an expression of the predictions. Several numbers a row are an Array.

    features: the columns of the features, in the model's order; None: those with the features' names.
    missing:  a number that is missing, besides NaN and null.
    columns:  "name", or "position": numbers are codes of categories, where they could be names, too.
    threads:  threads of a call; None: as many CPUs as the process may use. Streaming queries also call it on several
              threads at once.
    """
    program, call = program_of(forest, output, threads), call_of(output, missing, columns)
    names = list(forest.feature_names) if features is None else list(features)
    if not names or len(names) != forest.num_features:
        reason = (
            "the model has no names: give the columns of its features"
            if not names
            else f"{len(names)} columns for {forest.num_features} features"
        )
        raise Usage(reason, "features")
    program.file_of(forest)
    _check_interface(_PLUGIN, program, call)
    return _expression(_PLUGIN, program, call, names).alias(name)


def _expression(plugin: Path, program: Program, call: Call, columns: Sequence[str]) -> polars.Expr:
    from polars.plugins import register_plugin_function

    return register_plugin_function(
        plugin_path=plugin,
        function_name="forestvm_predict",
        args=list(columns),
        kwargs={**program._asdict(), **call._asdict()},
        is_elementwise=True,
    )


@functools.cache
def _check_interface(plugin: Path, program: Program, call: Call) -> None:
    """Checks that polars takes the plugin and the plugin the expression, by asking for the type of the predictions."""
    frame = polars.LazyFrame(schema={"x": polars.Float64})
    try:
        frame.select(_expression(plugin, program, call, ["x"])).collect_schema()
    except (ImportError, polars.exceptions.PolarsError) as error:
        # polars puts these words before an error of the plugin itself.
        _, refused, reason = str(error).partition("the plugin failed with message: ")
        if refused:
            raise Refused(reason, "output") from None
        raise Environment(
            f"polars {polars.__version__} does not take plugins for version 0.1 of its interface: {error}", "polars"
        ) from error


class _Options(pickle.Unpickler):
    """Reads texts and numbers, and nothing that would run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise Refused(f"the options of the expression hold {module}.{name}", "polars")


def _opened(options: bytes) -> tuple[Forest, str, float | None, bool]:
    """Called by the plugin with an expression's options, as polars pickles them. Returns the forest, the output, the
    number that is missing, and whether columns are taken by position."""
    read = _Options(io.BytesIO(options)).load()
    program = Program(read["digest"], read["threads"], read["rounds"], read["quantiles"])
    path = folder() / program.file_name
    if not hold(path):
        raise Environment(f"no program {path}: call forestvm.engines.polars.expr on this machine first", str(path))
    return program.mapped(path), read["output"], read["missing"], read["columns"] == "position"

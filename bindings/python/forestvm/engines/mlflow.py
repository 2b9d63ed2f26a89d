"""Forests as models of MLflow's pyfunc flavour.

    forestvm.engines.mlflow.save(forest, "model")
    mlflow.pyfunc.load_model("model").predict(frame)

`mlflow.pyfunc.spark_udf` and `mlflow models serve` take the same folder.
"""

from __future__ import annotations

import os
from typing import Any

import mlflow.pyfunc

from .. import __version__
from .._forest import Forest
from .._load import load
from ._program import Call, call_of, program_of, with_choices


def save(
    forest: Forest,
    path: str | os.PathLike[str],
    *,
    output: str = "value",
    missing: float | None = None,
    columns: str = "name",
    threads: int | None = 1,
    **options: Any,
) -> None:
    """Writes a folder that `mlflow.pyfunc.load_model` reads. The program in it is verified when it is loaded.

    output:  the predictions that the model gives: "value", "raw", "class", "leaf", ...
    missing: a number that is missing, besides NaN and None.
    columns: "name", or "position": the columns are the features in the model's order, and there are no others.
    threads: threads of a call; None: as many CPUs as the loading process may use.
    options: further arguments of `mlflow.pyfunc.save_model`, such as signature and metadata.
    """
    program, call = program_of(forest, output, threads), call_of(output, missing, columns)
    options.setdefault("pip_requirements", [f"forestvm=={__version__}"])
    mlflow.pyfunc.save_model(
        os.fspath(path),
        loader_module=__name__,
        data_path=str(program.file_of(forest)),
        model_config={
            **call._asdict(),
            "threads": threads,
            "rounds": program.rounds and list(program.rounds),
            "quantiles": program.quantiles and list(program.quantiles),
        },
        **options,
    )


def _load_pyfunc(path: str, model_config: dict[str, Any] | None = None) -> _Model:
    """Called by MLflow with the path of the program."""
    options = model_config or {}
    forest = load(path, threads=options.get("threads", 1))
    call = Call(options.get("output", "value"), options.get("missing"), options.get("columns", "name"))
    return _Model(with_choices(forest, options.get("rounds"), options.get("quantiles")), call)


class _Model:
    def __init__(self, forest: Forest, call: Call) -> None:
        self.forest, self._call = forest, call

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        return self._call.predict(self.forest, model_input)

"""Predictions of Ray's datasets, and a deployment of Ray Serve.

    forestvm.engines.ray.predict(dataset, forest)       # the dataset with a column "prediction"
    ray.serve.run(forestvm.engines.ray.deployment(forest).bind())

The program lies in the object store of each machine, where its actors read it in place.
"""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow
import ray

from .._errors import Error, Usage
from .._forest import Forest
from . import _arrow
from ._program import Call, Program, call_of, program_of

_KEEPER = "forestvm-program"  # the name of the actor that keeps a deployment's program


def predict(
    dataset: Any,
    forest: Forest,
    *,
    output: str = "value",
    name: str = "prediction",
    missing: float | None = None,
    columns: str = "name",
    threads: int = 1,
    concurrency: Any = (1, 2),
    num_cpus: float = 0.5,
) -> Any:
    """Returns `dataset` with the columns of predictions: `name`, or `name_0`, `name_1`, ...

    Columns are matched to features by name, whatever their order; further columns are kept.
    missing:     a number that is missing, besides NaN and nulls.
    columns:     "name", or "position": the columns are the features in the model's order, and there are no others.
    threads:     threads of each actor.
    concurrency: the number of actors, or the least and the most.
    num_cpus:    the part of a CPU that Ray counts for an actor: actors that take all CPUs would stop the reading tasks,
                 which need some too.
    """
    program, call = program_of(forest, output, threads), call_of(output, missing, columns)
    known = dataset.schema(fetch_if_missing=False)  # where it is not known, the actors check it
    if known is not None:
        _arrow.check_free(known.names, _arrow.schema_of(forest, output, name).names)
    image = ray.put(numpy.frombuffer(memoryview(forest), dtype=numpy.uint8))
    return dataset.map_batches(
        _Predictor,
        fn_constructor_args=(program, image, call, name),
        batch_format="pyarrow",
        zero_copy_batch=True,
        concurrency=concurrency,
        num_cpus=num_cpus,
    )


class _Predictor:
    """The class of an actor, which predicts batches of a dataset."""

    def __init__(self, program: Program, image: Any, call: Call, name: str) -> None:
        # The array lies in the object store, read-only, and is borrowed.
        self._forest = program.forest_of(ray.get(image) if isinstance(image, ray.ObjectRef) else image)
        self._call, self._name = call, name

    def __call__(self, rows: pyarrow.Table) -> pyarrow.Table:
        batches = [_arrow.with_predictions(self._forest, batch, self._call, self._name) for batch in rows.to_batches()]
        if batches:
            return pyarrow.Table.from_batches(batches)
        return _empty(self._forest, rows, self._call.output, self._name)


def _empty(forest: Forest, rows: pyarrow.Table, output: str, name: str) -> pyarrow.Table:
    added = _arrow.schema_of(forest, output, name)
    _arrow.check_free(rows.schema.names, added.names)
    schema = pyarrow.schema([*rows.schema, *added])
    return schema.empty_table()


def deployment(
    forest: Forest,
    *,
    output: str = "value",
    missing: float | None = None,
    columns: str = "name",
    threads: int = 1,
    name: str = "forestvm",
    **options: Any,
) -> Any:
    """Returns a deployment of Ray Serve: `ray.serve.run(deployment(forest).bind())`.

    It answers JSON: {"rows": [[1.5, 2], ...]} or {"rows": {"age": [31, ...], ...}} with {"predictions": [...]}, and
    what it cannot take with status 400 and {"error": "..."}. Handles call `.predict.remote(rows)`.

    missing: a number that is missing, besides NaN and null.
    columns: "name", or "position": the columns of rows with names are the features in the model's order.
    options: further arguments of `ray.serve.deployment`, such as num_replicas.
    """
    from ray import serve
    from ray.serve.config import DeploymentActorConfig

    program, call = program_of(forest, output, threads), call_of(output, missing, columns)
    image = ray.put(numpy.frombuffer(memoryview(forest), dtype=numpy.uint8))
    actors = [*(options.pop("deployment_actors", None) or []), DeploymentActorConfig(**_keeper_of(image))]

    class Server(_Server):
        def __init__(self) -> None:
            keeper = serve.get_deployment_actor(_KEEPER)
            super().__init__(program, ray.get(keeper.image.remote())[0], call)

    return serve.deployment(name=name, deployment_actors=actors, **options)(Server)


def _keeper_of(image: Any) -> dict[str, Any]:
    """Returns the arguments of the configuration of an actor that keeps an image for a deployment."""
    return {
        "name": _KEEPER,
        "actor_class": ray.remote(_Keeper),
        "init_args": ([image],),  # in a list, Ray passes the reference and not the array
        "actor_options": {"num_cpus": 0},
    }


class _Keeper:
    """The class of an actor that has the life of a deployment, and owns the program's image for its replicas.

    Ray frees an object when its owner ends, even if others use it, and the process that makes a deployment often ends
    long before a replica is started in place of another one, or on another machine.
    """

    def __init__(self, images: list[Any]) -> None:
        self._image = ray.put(ray.get(images[0]))

    def image(self) -> list[Any]:
        """Returns a list with the reference to the image, in place of which Ray would pass the array itself."""
        return [self._image]


class _Server:
    def __init__(self, program: Program, image: Any, call: Call) -> None:
        self._image = image  # Ray counts a reference as a use of the object.
        self._forest = program.forest_of(ray.get(image))
        self._call = call

    def predict(self, rows: Any) -> Any:
        """Predicts rows of any form that Forest.predict takes."""
        return self._call.predict(self._forest, rows, extra="error")

    async def __call__(self, request: Any) -> Any:
        from starlette.responses import JSONResponse

        try:
            content = await request.json()
            if not isinstance(content, dict) or set(content) != {"rows"}:
                raise Usage('expected {"rows": ...}', "request")
            return {"predictions": self.predict(content["rows"]).tolist()}
        except (Error, ValueError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)

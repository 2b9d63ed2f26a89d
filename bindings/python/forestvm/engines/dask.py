"""Predictions of Dask's collections.

    forestvm.engines.dask.predict(frame, forest)    # a Series or DataFrame of predictions, or an array for an array

Tasks know a digest of the program. Where there is a distributed client, the scheduler sends the program to each worker,
also to those that start later, in a plugin. It becomes a file on each machine, which its workers map: no worker has a
copy in its own memory. Scattered data would not do: Dask drops replicas that no task waits for, and cancels the tasks
if the worker with the last one dies. Without a client the tasks run on this machine, whose file they map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._errors import Environment, UnsupportedInput, Usage
from .._forest import Forest
from ._program import LISTS, Call, Program, call_of, file_with, no_predictions, program_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

try:
    from distributed import WorkerPlugin
except ImportError:  # Dask has the other schedulers without this package
    WorkerPlugin = object


def predict(
    collection: Any,
    forest: Forest,
    *,
    output: str = "value",
    name: str = "prediction",
    keep: Sequence[str] = (),
    missing: float | None = None,
    columns: str = "name",
    threads: int = 1,
) -> Any:
    """Returns predictions, lazily, in the partitions or chunks of `collection`.

    collection: a DataFrame of Dask, whose columns are matched by name, or an array whose columns are the features.
    keep:       columns of the frame that the result has before the predictions. Dask itself may refuse to assign the
                predictions to a frame that it reads from files, because it joins small files if few columns are used.
    missing:    a number that is missing, besides NaN and nulls.
    columns:    "name", or "position": a frame's columns are the features in the model's order, and there are no others.
    threads:    threads of each task; Dask runs several tasks at once.

    A frame gives a Series `name`, or a DataFrame if there are columns to keep, or several numbers a row: `name_0`,
    `name_1`, ...; an array gives an array.
    """
    program, call = program_of(forest, output, threads), call_of(output, missing, columns)
    _send(program, forest)
    if hasattr(collection, "map_blocks"):
        if keep:
            raise Usage("an array has no columns with names to keep", "keep")
        return _predict_array(collection, program, no_predictions(forest, output), call)
    if not hasattr(collection, "map_partitions"):
        raise UnsupportedInput(f"{type(collection).__name__} is no array or frame of Dask", "collection")
    if isinstance(keep, str):
        raise Usage(f"keep is {keep!r}: expected a list of columns", "keep")
    kept = list(keep)
    absent = [column for column in kept if column not in collection.columns]
    if absent:
        raise Usage(f"keep names a column that the frame does not have: {absent[0]!r}", "keep")
    meta = _frame(forest, collection._meta, call, name, kept)
    return collection.map_partitions(_predict_frame, program, call, name, kept, meta=meta, enforce_metadata=False)


def _send(program: Program, forest: Forest) -> None:
    """Makes the program's file on the machines of the client's workers, or on this one if there is no client."""
    try:
        from distributed import default_client

        client = default_client()
    except (ImportError, ValueError):
        program.file_of(forest)
    else:
        sender = _Sender(program.digest, memoryview(forest))
        # A lambda is sent itself, so that the scheduler needs no forestvm.
        if not client.run_on_scheduler(lambda name, dask_scheduler: name in dask_scheduler.worker_plugins, sender.name):
            client.register_plugin(sender)


class _Sender(WorkerPlugin):  # type: ignore[misc]
    """Brings a program to a worker. The scheduler keeps the first one of a name, and gets no other."""

    idempotent = True

    def __init__(self, digest: str, image: Buffer) -> None:
        self.name = f"forestvm-{digest}"
        self._digest, self._image = digest, image

    def __reduce__(self) -> tuple[Any, ...]:
        return _Sender, (self._digest, bytes(self._image))

    def setup(self, worker: object) -> None:
        file_with(self._digest, lambda: self._image)
        self._image = b""  # the file has the program


def _opened(program: Program) -> Forest:
    def absent() -> Buffer:
        raise Environment(f"this machine has no file {program.file_name}: was predict called with another client?")

    return program.open(absent)


def _predict_array(array: Any, program: Program, sample: Any, call: Call) -> Any:
    """Predicts in the chunks of an array; `sample` has the type and shape of the predictions of no rows."""
    if array.ndim != 2:
        raise UnsupportedInput(f"the array has {array.ndim} dimensions, not 2", "collection")
    if array.numblocks[1] != 1:
        array = array.rechunk({1: -1})
    shape: dict[str, Any] = {"drop_axis": 1} if sample.ndim == 1 else {"chunks": (array.chunks[0], sample.shape[1:])}
    return array.map_blocks(_predict_block, program, call, dtype=sample.dtype, meta=sample, **shape)


def _predict_block(block: Any, program: Program, call: Call) -> Any:
    return call.predict(_opened(program), block)


def _predict_frame(frame: Any, program: Program, call: Call, name: str, keep: list[str]) -> Any:
    return _frame(_opened(program), frame, call, name, keep)


def _frame(forest: Forest, frame: Any, call: Call, name: str, keep: list[str]) -> Any:
    import pandas

    from . import _arrow

    numbers = call.predict(forest, frame)
    if numbers.ndim > 1 and call.output not in LISTS:
        names = [f"{name}_{i}" for i in range(numbers.shape[1])]
        predictions = pandas.DataFrame(numbers, index=frame.index, columns=names)
    else:
        values = numbers if numbers.ndim == 1 else pandas.arrays.ArrowExtensionArray(_arrow.as_column(numbers))
        predictions = pandas.Series(values, index=frame.index, name=name)
    if not keep:
        return predictions
    _arrow.check_free(keep, [name] if predictions.ndim == 1 else list(predictions.columns))
    return pandas.concat([frame[keep], predictions], axis=1)

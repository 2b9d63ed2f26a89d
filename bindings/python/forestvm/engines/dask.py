"""Predictions of Dask's collections.

    forestvm.engines.dask.predict(frame, forest)    # a Series or DataFrame of predictions, or an array for an array

Tasks know a digest of the program. Where there is a distributed client, the program is scattered once and becomes a
file on each machine, which its workers map: no worker has a copy in its own memory. Without a client the tasks run on
this machine, whose file they map.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._errors import UnsupportedInput, Usage
from .._forest import Forest
from ._program import LISTS, Program, file_with, mapped_file, no_predictions, program_of

if TYPE_CHECKING:
    from typing_extensions import Buffer


def predict(
    collection: Any,
    forest: Forest,
    *,
    output: str = "value",
    name: str = "prediction",
    keep: Sequence[str] = (),
    threads: int = 1,
) -> Any:
    """Returns predictions, lazily, in the partitions or chunks of `collection`.

    collection: a DataFrame of Dask, whose columns are matched by name, or an array whose columns are the features.
    keep:       columns of the frame that the result has before the predictions. Dask itself may refuse to assign the
                predictions to a frame that it reads from files, because it joins small files if few columns are used.
    threads:    threads of each task; Dask runs several tasks at once.

    A frame gives a Series `name`, or a DataFrame if there are columns to keep, or several numbers a row: `name_0`,
    `name_1`, ...; an array gives an array.
    """
    program = program_of(forest, output, threads)
    image = _image(program, forest)
    if hasattr(collection, "map_blocks"):
        if keep:
            raise Usage("an array has no columns with names to keep", "keep")
        return _predict_array(collection, program, image, no_predictions(forest, output), output)
    if not hasattr(collection, "map_partitions"):
        raise UnsupportedInput(f"{type(collection).__name__} is no array or frame of Dask", "collection")
    kept = list(keep)
    meta = _frame(forest, collection._meta, output, name, kept)
    return collection.map_partitions(
        _predict_frame, program, image, output, name, kept, meta=meta, enforce_metadata=False
    )


def _image(program: Program, forest: Forest) -> Any:
    """Returns the program for the workers of the client, or the path of its file if there is no client."""
    try:
        from distributed import default_client

        client = default_client()
    except (ImportError, ValueError):
        return str(program.file_of(forest))
    # The key makes all collections share one image.
    key = f"forestvm-{program.digest}"
    return client.scatter({key: _Image(program.digest, memoryview(forest))}, broadcast=True, hash=False)[key]


class _Image:
    """The bytes of a program. A worker that receives them has the machine's file in their place."""

    def __init__(self, digest: str, memory: Buffer) -> None:
        self._digest, self.memory = digest, memory

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        image = pickle.PickleBuffer(self.memory) if protocol >= 5 else bytes(self.memory)
        return _received, (self._digest, image)


def _received(digest: str, image: Buffer) -> _Image:
    return _Image(digest, mapped_file(file_with(digest, lambda: image)))


def _opened(program: Program, image: _Image | str) -> Forest:
    return program.open(lambda: mapped_file(image) if isinstance(image, str) else image.memory)


def _predict_array(array: Any, program: Program, image: Any, sample: Any, output: str) -> Any:
    """Predicts in the chunks of an array; `sample` has the type and shape of the predictions of no rows."""
    if array.ndim != 2:
        raise UnsupportedInput(f"the array has {array.ndim} dimensions, not 2", "collection")
    if array.numblocks[1] != 1:
        array = array.rechunk({1: -1})
    shape: dict[str, Any] = {"drop_axis": 1} if sample.ndim == 1 else {"chunks": (array.chunks[0], sample.shape[1:])}
    return array.map_blocks(_predict_block, program, image, output, dtype=sample.dtype, meta=sample, **shape)


def _predict_block(block: Any, program: Program, image: Any, output: str) -> Any:
    return _opened(program, image).predict(block, output=output)


def _predict_frame(frame: Any, program: Program, image: Any, output: str, name: str, keep: list[str]) -> Any:
    return _frame(_opened(program, image), frame, output, name, keep)


def _frame(forest: Forest, frame: Any, output: str, name: str, keep: list[str]) -> Any:
    import pandas

    from . import _arrow

    numbers = forest.predict(frame, output=output, extra="ignore")
    if numbers.ndim > 1 and output not in LISTS:
        names = [f"{name}_{i}" for i in range(numbers.shape[1])]
        predictions = pandas.DataFrame(numbers, index=frame.index, columns=names)
    else:
        values = numbers if numbers.ndim == 1 else pandas.arrays.ArrowExtensionArray(_arrow.as_column(numbers))
        predictions = pandas.Series(values, index=frame.index, name=name)
    return pandas.concat([frame[keep], predictions], axis=1) if keep else predictions

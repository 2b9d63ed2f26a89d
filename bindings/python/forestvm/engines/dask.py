"""Predictions of Dask's collections.

    forestvm.engines.dask.predict(frame, forest)    # a Series or DataFrame of predictions, or an array for an array

Tasks know the program's fingerprint. Where there is a distributed client, the program is scattered once and each
machine keeps it as a file, which its workers map; without a client the tasks run on this machine, whose file they map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from .._errors import UnsupportedInput, Usage
from .._forest import Forest
from ._program import Program, file_of, mapped_file, no_predictions, program_of


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
    image = _image(forest)
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


def _image(forest: Forest) -> Any:
    """Returns the program for the workers of the client, or the path of its file if there is no client."""
    try:
        from distributed import default_client

        client = default_client()
    except (ImportError, ValueError):
        return str(file_of(forest))
    # The key makes all collections share one copy.
    return client.scatter(
        {f"forestvm-{forest.fingerprint}": numpy.frombuffer(memoryview(forest), dtype=numpy.uint8)},
        broadcast=True,
        hash=False,
    )[f"forestvm-{forest.fingerprint}"]


def _opened(program: Program, image: Any) -> Forest:
    return program.open(lambda: mapped_file(image) if isinstance(image, str) else memoryview(image))


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

    numbers = forest.predict(frame, output=output, extra="ignore")
    if numbers.ndim == 1 and not keep:
        return pandas.Series(numbers, index=frame.index, name=name)
    names = [name] if numbers.ndim == 1 else [f"{name}_{i}" for i in range(numbers.shape[1])]
    predictions = pandas.DataFrame(numbers, index=frame.index, columns=names)
    return pandas.concat([frame[keep], predictions], axis=1) if keep else predictions

"""Rows in a GPU's memory, which DLPack or __cuda_array_interface__ describes. They are read where they lie."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from . import _core, _names
from ._errors import UnsupportedInput, Usage

if TYPE_CHECKING:
    from ._forest import Forest

# DLPack's numbers of kinds of memory, and how `device=` of `load` calls them.
_HOST = (1, 3, 11)  # The host's memory, pinned or not.
_MANAGED = 13  # CUDA's memory that the host and GPUs read.
_GPUS = {2: "cuda", 10: "hip"}
_KINDS_OF_RESULTS = {"f": ("float32", "float64"), "i": ("int32", "int64")}


class _Array(NamedTuple):
    """An array in a GPU's memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in bytes
    dtype: str
    vendor: str
    device: int | None  # the ordinal, if the array tells it
    read_only: bool
    owner: object  # keeps the memory alive


def is_on_gpu(X: Any) -> bool:
    """Returns whether an object lies in other memory than the host's. Raises UnsupportedInput for memory that nothing
    here reads."""
    if isinstance(X, (numpy.ndarray, dict, list, tuple)) or hasattr(X, "iloc"):
        return False
    if hasattr(X, "__dlpack_device__"):
        kind = X.__dlpack_device__()[0]
        if kind in _HOST or kind == _MANAGED:
            return False
        if kind not in _GPUS:
            raise UnsupportedInput(f"the rows lie in memory that is not read (kind {kind} of DLPack)", "X")
        return True
    return hasattr(X, "__cuda_array_interface__")


def predict(
    forest: Forest, X: Any, output: str, out: Any, dtype: Any, missing: float | None, columns: str, extra: str
) -> Any:
    """Predicts rows in the memory of the forest's GPU to `out`, which lies there too."""
    _names.check_options(columns, extra)
    if missing is not None and not math.isnan(missing):
        raise UnsupportedInput("missing: rows in a GPU's memory are read as they are, where NaN is missing", "missing")
    wanted = forest._new_result(0, output, None, dtype)
    vendor, ordinal = _device_of(forest)
    stream = _stream_of(X, out)
    rows = _array_of(X, "X", stream)
    _check_device(rows, vendor, "X")
    count, stride = _rows_of(forest, rows)
    shape = (count, *wanted.shape[1:])
    if out is None:
        raise Usage(
            f"the rows lie in a GPU's memory: pass an array of {wanted.dtype} of the shape {shape} there, to which the "
            "predictions are written",
            "out",
        )
    if not is_on_gpu(out):
        raise Usage("the rows lie in a GPU's memory, and the predictions of such rows are written there", "out")
    result = _array_of(out, "out", stream)
    _check_device(result, vendor, "out")
    types = (str(wanted.dtype),) if dtype is not None else _KINDS_OF_RESULTS[wanted.dtype.kind]
    if result.dtype not in types:
        raise Usage(f"holds numbers of {result.dtype}, not {' or '.join(types)}", "out")
    if result.shape != shape or not _in_one_piece(result):
        raise Usage(f"expected an array of the shape {shape} in C order, not {result.shape}", "out")
    if result.read_only:
        raise Usage("the array cannot be written", "out")
    devices = {array.device for array in (rows, result) if array.device is not None}
    if len(devices) > 1:
        raise Usage("lies in another GPU's memory than the rows", "out")
    device = devices.pop() if devices else ordinal
    forest._predict_device(rows.address, count, stride, device, stream, output, result.address, result.dtype)
    return out


def _device_of(forest: Forest) -> tuple[str, int]:
    device = forest._options["device"]
    if device is None:
        raise UnsupportedInput(
            'the rows lie in a GPU\'s memory, and the forest runs on the host: load it with device="cuda" or "hip", or '
            "pass rows of the host",
            "X",
        )
    vendor, _, ordinal = device.partition(":")
    return vendor, int(ordinal or 0)


def _check_device(array: _Array, vendor: str, where: str) -> None:
    if array.vendor != vendor:
        raise UnsupportedInput(
            f"lies in the memory of a device of {array.vendor}, and the forest runs on one of {vendor}", where
        )


def _interface_of(X: Any) -> dict[str, Any] | None:
    """Returns X.__cuda_array_interface__ if it is the better description: version 3 names a stream, DLPack does not."""
    interface: dict[str, Any] | None = getattr(X, "__cuda_array_interface__", None)
    if interface is None or (interface["version"] < 3 and hasattr(X, "__dlpack__")):
        return None
    return interface


def _stream_of(*arrays: Any) -> int:
    """Returns the stream on which the owners of the arrays work; 0, the default stream, if none tells it."""
    streams = set()
    for array in arrays:
        interface = _interface_of(array)
        stream = None if interface is None else interface.get("stream")
        if stream is not None:
            if stream == 0:
                raise Usage("__cuda_array_interface__: the stream 0 is not allowed, because it has two meanings", "X")
            streams.add(0 if stream == 1 else int(stream))  # 1 is what CUDA calls the default stream
    if len(streams) > 1:
        raise Usage("the owner of the array works on another stream than the owner of the rows", "out")
    return streams.pop() if streams else 0


def _array_of(X: Any, where: str, stream: int) -> _Array:
    interface = _interface_of(X)
    if interface is None:
        return _from_dlpack(X, where, stream)
    if interface.get("mask") is not None:
        raise UnsupportedInput("arrays with a mask are not read: NaN is missing", where)
    address, read_only = interface["data"]
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    dtype = _type_called(interface["typestr"])
    device = X.__dlpack_device__()[1] if hasattr(X, "__dlpack_device__") else None
    return _Array(
        address, shape, None if strides is None else tuple(strides), dtype, "cuda", device, read_only, X
    )


def _from_dlpack(X: Any, where: str, stream: int) -> _Array:
    """Asks for an array that is ready for work on a stream. DLPack gives CUDA's default stream the number 1."""
    kind = X.__dlpack_device__()[0]
    number = stream or (1 if _GPUS[kind] == "cuda" else 0)
    try:
        try:
            capsule = X.__dlpack__(stream=number, max_version=(1, 0))
        except TypeError:  # This owner knows only DLPack's first version.
            capsule = X.__dlpack__(stream=number)
    except (BufferError, TypeError, RuntimeError) as error:
        raise UnsupportedInput(f"{type(X).__name__} as DLPack: {error}", where) from error
    address, shape, strides, typestr, kind, device, read_only = _core.read_dlpack(capsule)
    dtype = _type_called(typestr)
    in_bytes = None
    if strides is not None:
        size = numpy.dtype(dtype).itemsize if dtype in numpy.sctypeDict else 1
        in_bytes = tuple(stride * size for stride in strides)
    return _Array(address, shape, in_bytes, dtype, _GPUS[kind], device, read_only, capsule)


def _type_called(text: str) -> str:
    """Returns NumPy's name of a type; the text itself if NumPy has no such type."""
    try:
        dtype = numpy.dtype(text)
    except TypeError:
        return text
    return str(dtype)


def _rows_of(forest: Forest, rows: _Array) -> tuple[int, int]:
    """Returns the number of rows, and the values from one to the next."""
    if len(rows.shape) != 2:
        raise UnsupportedInput(f"the rows have {len(rows.shape)} dimensions, not 2", "X")
    count, width = rows.shape
    _names.check_count(forest, width)
    if rows.dtype != "float32":
        raise UnsupportedInput(f"rows in a GPU's memory are read as they are: as float32, not {rows.dtype}", "X")
    if rows.strides is None or count == 0:
        return count, width
    row, column = rows.strides
    if (width > 1 and column != 4) or (count > 1 and (row < 4 * width or row % 4 != 0)):
        raise UnsupportedInput(
            f"rows in a GPU's memory are read as they are: row by row (C order), not with the strides {rows.strides}",
            "X",
        )
    return count, row // 4 if count > 1 else width


def _in_one_piece(array: _Array) -> bool:
    if array.strides is None or 0 in array.shape:
        return True
    stride = numpy.dtype(array.dtype).itemsize
    for length, given in zip(reversed(array.shape), reversed(array.strides)):
        if length > 1 and given != stride:
            return False
        stride *= length
    return True

"""A model for KServe's server: Open Inference Protocol over REST and gRPC, and the first version's JSON.

    kserve.ModelServer().start([forestvm.engines.kserve.Model("model.fvm")])

Rows are a tensor [rows] for each feature by its name, of the datatype that the model's metadata say, or one tensor
`rows` [rows, features] of numbers. If the model's file is replaced, requests that begin afterwards are answered by the
new file.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import uuid
from pathlib import Path
from typing import Any

import kserve
from kserve.errors import InvalidInput
from kserve.logging import logger
from kserve.protocol.rest.multiprocess.server import RESTServerProcess

from .. import _names
from .._errors import Error, Usage
from .._forest import Forest
from ._program import OUTPUTS, call_of, load_with, no_predictions, program_of

_ROWS, _PREDICTION = "rows", "prediction"  # The tensors of a request and of an answer.
_PROGRAM_MAGIC = b"\x89FVM\r\n\x1a\n"  # the first bytes of a program file
_DATATYPES = {"float32": "FP32", "float64": "FP64", "int64": "INT64", "int32": "INT32"}
_TEXT = "BYTES"


def allow_slow_start(seconds: float) -> None:
    """Changes how long the worker processes of this process's servers may take to start, and later to answer a ping.

    KServe has no option for this: it kills worker processes that take 5 seconds, and starts others.
    """
    if "timeout" not in inspect.signature(RESTServerProcess.is_alive).parameters:
        raise Usage("this release of KServe has another way to watch its worker processes")
    RESTServerProcess.is_alive.__defaults__ = (seconds,)


class Model(kserve.Model):  # type: ignore[misc]
    """Serves the program or model file at a path."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        *,
        output: str = "value",
        missing: float | None = None,
        threads: int | None = 1,
    ) -> None:
        """Reads the file at `path`.

        name:    the model's name in requests; None: the file's name without its ending.
        output:  the predictions that the model gives, as for `Forest.predict`.
        missing: a number that is missing, besides NaN: JSON has no NaN, and the protocol's tensors no nulls.
        threads: threads of a request in each worker process; None: as many CPUs as the process may use.
        """
        if output not in OUTPUTS:
            raise Usage(f"output is {output!r}: expected one of {', '.join(OUTPUTS)}", "output")
        super().__init__(name or Path(path).stem)
        self._path, self._threads = path, threads
        self._call = call_of(output, missing, "name")
        self._loading: threading.Thread | None = None
        self._lock = threading.Lock()
        self.load()

    def load(self) -> bool:
        """Reads the file. Requests that are being answered keep the program with which they began."""
        version = _version_of(self._path)  # read before the file, so that a file replaced meanwhile is read again
        forest = load_with(self._path, self._call.output, self._threads)
        self._forest = _shared(forest, self._path, self._call.output, self._threads)
        self._version = version
        self.ready = True
        return True

    async def _current(self) -> Forest:
        """Returns the forest of the file as it is now, or the last one that could be read.

        Another thread reads the file, because the server answers nobody while this one is busy.
        """
        if self._loading is not None or _version_of(self._path) != self._version:
            await asyncio.to_thread(self._refresh)
        return self._forest

    def _refresh(self) -> None:
        with self._lock:
            if self._loading is not None:
                self._loading.join()
                self._loading = None
            version = _version_of(self._path)
            if version == self._version:
                return  # another request has read it
            try:
                self.load()
            except Error as error:
                self._version = version
                logger.error("the old model stays in use: %s", error)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state that the server passes to its worker processes. They open the file themselves."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_forest", "_loading", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begins to read the file in another thread. The server could kill a worker process that is busy reading a
        large model (see allow_slow_start), so the process starts before the model is ready."""
        self.__dict__.update(state)
        self.ready = False
        self._lock = threading.Lock()
        self._loading = threading.Thread(target=self._load_or_exit, name="forestvm reads a model")
        self._loading.start()

    def _load_or_exit(self) -> None:
        """Reads the file. Ends the process if that fails, because the server then starts another one."""
        try:
            self.load()
        except BaseException as error:
            logger.error("cannot read the model: %s", error)
            os._exit(1)

    async def get_input_types(self) -> list[dict[str, Any]]:
        """Returns the model's metadata: a tensor for each feature, or one for all if the model does not name them."""
        forest = await self._current()
        number, names = _DATATYPES[forest._row_dtype], forest.feature_names
        if not names or _names.are_made_up(names):
            return [{"name": _ROWS, "datatype": number, "shape": [-1, forest.num_features]}]
        texts = forest.categories
        return [{"name": name, "datatype": _TEXT if name in texts else number, "shape": [-1]} for name in names]

    async def get_output_types(self) -> list[dict[str, Any]]:
        sample = no_predictions(await self._current(), self._call.output)
        return [{"name": _PREDICTION, "datatype": _DATATYPES[str(sample.dtype)], "shape": [-1, *sample.shape[1:]]}]

    async def predict(self, payload: Any, headers: Any = None, response_headers: Any = None) -> Any:
        """Answers a request. Raises InvalidInput (status 400) for input that the model cannot take."""
        forest = await self._current()
        try:
            if isinstance(payload, dict):
                return {"predictions": self._call.predict(forest, _instances(payload), extra="error").tolist()}
            predictions = self._call.predict(forest, _tensors(forest, payload), extra="error")
        except (Error, ValueError) as error:
            raise InvalidInput(str(error)) from error
        answer = kserve.InferOutput(_PREDICTION, list(predictions.shape), _DATATYPES[str(predictions.dtype)])
        answer.set_data_from_numpy(predictions, binary_data=payload.use_binary_outputs)
        return kserve.InferResponse(payload.id or uuid.uuid4().hex, self.name, [answer])


def _version_of(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """Returns numbers that change when another file takes this name; none if there is no file."""
    try:
        facts = os.stat(path)
    except OSError:
        return ()
    return facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_size


def _shared(forest: Forest, path: str | os.PathLike[str], output: str, threads: int | None) -> Forest:
    """Returns the forest of a file in memory that worker processes share: of the program file at `path`, which has been
    mapped, or of a file in the folder of programs if `path` has a model, which each of them has compiled."""
    try:
        if not os.path.isdir(path):  # directories are models of YDF
            with open(path, "rb") as file:
                if file.read(len(_PROGRAM_MAGIC)) == _PROGRAM_MAGIC:
                    return forest
        program = program_of(forest, output, threads)
        return program.mapped(program.file_of(forest))
    except (Error, OSError) as error:
        logger.warning("each worker process keeps a program of its own in memory: %s", error)
        return forest


def _instances(request: dict[str, Any]) -> Any:
    """Returns the rows of the first version's JSON: lists of numbers, or objects with the features' names."""
    rows = request.get("instances")
    if not isinstance(rows, list) or not rows:
        raise Usage('expected {"instances": [...]} with at least one row', "request")
    if not isinstance(rows[0], dict):
        return rows
    names = rows[0].keys()  # JSON's objects have no order
    if any(not isinstance(row, dict) or row.keys() != names for row in rows):
        raise Usage("the rows have different features", "request")
    return {name: [row[name] for row in rows] for name in names}


def _tensors(forest: Forest, request: Any) -> Any:
    """Returns the rows of a request. Its tensors must be named in the model's metadata or after its features."""
    for output in request.request_outputs or []:
        if output.name != _PREDICTION:
            raise Usage(f"the request asks for the output {output.name!r}: the model has {_PREDICTION!r}", "request")
    tensors = request.inputs
    if len(tensors) == 1 and len(tensors[0].shape) == 2:
        if tensors[0].name != _ROWS:
            raise Usage(f"tensor {tensors[0].name!r}: the tensor [rows, features] is named {_ROWS!r}", "request")
        return _array(forest, tensors[0])
    if any(len(tensor.shape) != 1 for tensor in tensors):
        raise Usage("expected one tensor [rows, features], or a tensor [rows] for each feature", "request")
    columns: dict[str, Any] = {}
    for tensor in tensors:
        if tensor.name in columns:
            raise Usage(f"tensor {tensor.name!r}: the request has it twice", "request")
        columns[tensor.name] = _array(forest, tensor)
    return columns


def _array(forest: Forest, tensor: Any) -> Any:
    """Returns a tensor's numbers, or texts for a feature whose categories have names."""
    wanted = [_DATATYPES[forest._row_dtype], *([_TEXT] if tensor.name in forest.categories else [])]
    if tensor.datatype not in wanted:
        expected = " or ".join(wanted)
        raise Usage(f"tensor {tensor.name!r}: its datatype is {tensor.datatype}, the model takes {expected}", "request")
    try:
        array = tensor.as_numpy()
        if tensor.datatype == _TEXT:
            array[:] = [_text(value) for value in array]
        return array
    except Exception as error:  # whatever the server's package raises for data that do not fit their shape or type
        raise Usage(f"tensor {tensor.name!r}: {error}", "request") from error


def _text(value: Any) -> str | None:
    """Returns an element of a tensor of texts: JSON has texts and null, binary tensors and gRPC have bytes in UTF-8."""
    if isinstance(value, bytes):
        return value.decode()
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    return value

"""A program that many processes use: one file on each machine, mapped by all of its processes."""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from .._errors import Environment, Refused, Usage
from .._forest import Forest

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

OUTPUTS = ("value", "raw", "class", "leaf", "proba")

_opened: dict[Program, Forest] = {}
_lock = threading.Lock()


class Program(NamedTuple):
    """The facts about a program that a task carries: a few bytes, however large the program is."""

    fingerprint: str
    threads: int

    @property
    def file_name(self) -> str:
        """The name of the program's file on each machine, without a folder."""
        return _file_name(self.fingerprint)

    def mapped(self, path: str | os.PathLike[str]) -> Forest:
        """Returns the forest of a mapped file. Raises Refused if the file holds another program."""
        forest = Forest.from_buffer(mapped_file(path), threads=self.threads)
        if forest.fingerprint != self.fingerprint:
            raise Refused(f"the file holds another program: fingerprint {forest.fingerprint}", os.fspath(path))
        return forest

    def open(self, image: Callable[[], Buffer]) -> Forest:
        """Returns the forest, which this process opens once. `image` is called if this machine has no file yet."""
        with _lock:
            forest = _opened.get(self)
            if forest is None:
                forest = _opened[self] = self.mapped(file_with(self.fingerprint, image))
            return forest


def program_of(forest: Forest, output: str, threads: int | None) -> Program:
    """Returns what tasks need to know of a forest. The options that they will use are checked here."""
    from .. import _threads

    if not isinstance(forest, Forest):
        raise Usage(f"expected a forestvm.Forest, not {type(forest).__name__}", "forest")
    if output not in OUTPUTS:
        raise Usage(f"output is {output!r}: expected one of {', '.join(OUTPUTS)}", "output")
    return Program(forest.fingerprint, _threads.thread_count(threads))


def no_predictions(forest: Forest, output: str) -> NDArray[Any]:
    """Returns the predictions of no rows, which have the type and the number of columns of all predictions."""
    return forest.predict(numpy.empty((0, forest.num_features), numpy.float32), output=output)


def file_of(forest: Forest) -> Path:
    """Returns the path of the forest's program on this machine. Writes the file unless it exists."""
    return file_with(forest.fingerprint, lambda: memoryview(forest))


def folder() -> Path:
    """Returns the folder of this machine's programs: FORESTVM_PROGRAMS, or one of this user's among temporary files.

    Nobody else may write to it, because a file that changes while it is mapped would crash the process.
    """
    chosen = os.environ.get("FORESTVM_PROGRAMS")
    path = Path(chosen) if chosen else Path(tempfile.gettempdir(), f"forestvm-{os.getuid()}")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = os.lstat(path) if not chosen else os.stat(path)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise Environment(
            f"{path}: others may write to this folder: set FORESTVM_PROGRAMS to one of your own", str(path)
        )
    return path


def _file_name(fingerprint: str) -> str:
    if re.fullmatch("[0-9a-f]+", fingerprint) is None:
        raise Usage(f"{fingerprint!r} is no fingerprint", "fingerprint")
    return f"{fingerprint}.fvm"


def file_with(fingerprint: str, image: Callable[[], Buffer]) -> Path:
    """Returns a program's file on this machine. `image` gives its bytes if there is no file yet."""
    path = folder() / _file_name(fingerprint)
    if path.exists():
        return path
    # The file is written under another name, so that other processes see the whole file or none. Linking keeps a file
    # that another process has put in place meanwhile: replacing it would leave that process with a copy of its own.
    written, name = tempfile.mkstemp(dir=path.parent, prefix=f"{fingerprint}.")
    try:
        with os.fdopen(written, "wb") as file:
            file.write(image())
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
    return path


def mapped_file(path: str | os.PathLike[str]) -> mmap.mmap:
    """Returns a file's memory, which processes share and cannot write to."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

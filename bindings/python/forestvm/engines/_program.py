"""A program that many processes use: one file on each machine, mapped by all of its processes."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy

from .. import _names, _rows
from .._errors import Environment, Refused, Usage
from .._forest import Forest, digest_of
from .._load import load

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

# Outputs whose numbers of a row are one list, and the option with which `load` makes a forest that has them. Quantiles
# need the training rows: their forests are loaded from programs.
LISTS: dict[str, str | None] = {
    "contributions": "contributions",
    "approx-contributions": "approx_contributions",
    "interactions": "interactions",
    "trees": "keep_leaves",
    "staged": "keep_leaves",
    "virt-ensembles": "keep_leaves",
    "uncertainty": "keep_leaves",
    "quantile": None,
}
OUTPUTS = ("value", "raw", "class", "leaf", "proba", *LISTS)

_PROGRAM_FILE = re.compile(r"[0-9a-f]{32}\.fvm")
_UNFINISHED_FILE = re.compile(r"[0-9a-f]{32}\.[a-z0-9_]{8}")  # a file that mkstemp has named
_SECONDS_UNFINISHED = 3600  # A program is written in less time.
_MOST_HELD = 64

_opened: dict[Program, Forest] = {}
_lock = threading.Lock()
# The files of the programs that this process asked for last, the last one at the end. They are locked, so that other
# processes do not remove them before a task of this process, or one that it has started, opens them.
_held: dict[Path, BinaryIO] = {}
_holding = threading.Lock()


class Program(NamedTuple):
    """The facts about a program that a task carries: a few bytes, however large the program is."""

    digest: str  # Forest.program_fingerprint
    threads: int
    rounds: tuple[int, int] | None = None  # Rounds that Forest.of_rounds chose; the forest holds the whole program.
    quantiles: tuple[float, ...] | None = None  # Quantiles that Forest.of_quantiles chose.

    @property
    def file_name(self) -> str:
        """The name of the program's file on each machine, without a folder."""
        return _file_name(self.digest)

    def file_of(self, forest: Forest) -> Path:
        """Returns the path of the program's file on this machine. Writes the file unless it exists."""
        return file_with(self.digest, lambda: memoryview(forest))

    def mapped(self, path: str | os.PathLike[str]) -> Forest:
        """Returns the forest of a mapped file. Raises Refused if the file holds another program."""
        memory = mapped_file(path)
        if digest_of(memory) != self.digest:
            raise Refused("the file does not hold the program after which it is named: remove it", os.fspath(path))
        return self.forest_of(memory)

    def forest_of(self, image: Buffer) -> Forest:
        """Returns the forest of the program's bytes, which it borrows where they lie if they are read-only."""
        forest = Forest.from_buffer(image, threads=self.threads)
        return with_choices(forest, self.rounds, self.quantiles)

    def open(self, image: Callable[[], Buffer]) -> Forest:
        """Returns the forest, which this process opens once. `image` is called if this machine has no file yet."""
        with _lock:
            forest = _opened.get(self)
            if forest is None:
                forest = _opened[self] = self.mapped(file_with(self.digest, image))
            return forest


class Call(NamedTuple):
    """The options with which tasks predict."""

    output: str
    missing: float | None = None  # the number that is missing, besides NaN
    columns: str = "name"

    def predict(self, forest: Forest, rows: Any, extra: str = "ignore") -> NDArray[Any]:
        return forest.predict(rows, output=self.output, missing=self.missing, columns=self.columns, extra=extra)


def call_of(output: str, missing: float | None, columns: str) -> Call:
    """Returns the options of calls, which are checked here and not in a task."""
    _names.check_options(columns, "ignore")
    return Call(output, _rows.missing_number(missing), columns)


def program_of(forest: Forest, output: str, threads: int | None) -> Program:
    """Returns what tasks need to know of a forest. The options that they will use are checked here."""
    from .. import _threads

    check_output(forest, output)
    device = forest._options.get("device")
    if device is not None:
        text = f"the forest runs on the GPU {device!r}, and tasks run on the host: load it without device="
        raise Usage(text, "forest")
    chosen = {name: forest._options.get(name) for name in ("rounds", "quantiles")}
    return Program(forest.program_fingerprint, _threads.thread_count(threads), **chosen)


def with_choices(forest: Forest, rounds: Sequence[int] | None, quantiles: Sequence[float] | None) -> Forest:
    """Returns the forest with the rounds and the quantiles that a forest of its program had, if any."""
    if rounds is not None:
        forest = forest.of_rounds(*rounds)
    return forest if quantiles is None else forest.of_quantiles(quantiles)


def check_output(forest: Forest, output: str) -> None:
    """Checks that a forest has an output."""
    if not isinstance(forest, Forest):
        raise Usage(f"expected a forestvm.Forest, not {type(forest).__name__}", "forest")
    if output not in OUTPUTS:
        raise Usage(f"output is {output!r}: expected one of {', '.join(OUTPUTS)}", "output")
    no_predictions(forest, output)  # fails here, not in a task, if the model has no such output


def load_with(source: str | os.PathLike[str], output: str, threads: int | None) -> Forest:
    """Loads a model or a program that must have an output."""
    option = LISTS.get(output)
    needed: dict[str, Any] = {} if option is None else {option: True}
    forest = load(source, threads=threads, **needed)
    no_predictions(forest, output)  # fails here if the model has no such output
    return forest


def no_predictions(forest: Forest, output: str) -> NDArray[Any]:
    """Returns the predictions of no rows, which have the type and the number of columns of all predictions."""
    return forest.predict(numpy.empty((0, forest.num_features), numpy.float32), output=output)


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


def _file_name(digest: str) -> str:
    if re.fullmatch("[0-9a-f]+", digest) is None:
        raise Usage(f"{digest!r} is not the digest of a program", "digest")
    return f"{digest}.fvm"


def file_with(digest: str, image: Callable[[], Buffer]) -> Path:
    """Returns a program's file on this machine, which is held. `image` gives its bytes if there is no file yet."""
    path = folder() / _file_name(digest)
    written = False
    while not hold(path):  # another process may remove the new file before it is held, if it is larger than all may be
        _write(path, image)
        written = True
    if written:
        trim(path.parent)
    return path


def _write(path: Path, image: Callable[[], Buffer]) -> None:
    # The file is written under another name, so that other processes see the whole file or none. Linking keeps a file
    # that another process has put in place meanwhile: replacing it would leave that process with a copy of its own.
    written, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.stem}.")
    try:
        with os.fdopen(written, "wb") as file:
            file.write(image())
        _put_in_place(name, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def hold(path: Path) -> bool:
    """Returns whether a program's file exists, and notes that it is used now. No process removes it before this one has
    ended or held _MOST_HELD other files."""
    with _holding:
        held = _held.pop(path, None)
        if held is not None and not is_at(path, held.fileno()):
            held.close()
            held = None
        if held is None:
            try:
                held = open(path, "rb")
            except FileNotFoundError:
                return False
            _share(held)
        _held[path] = held
        if len(_held) > _MOST_HELD:
            _held.pop(next(iter(_held))).close()
        with contextlib.suppress(OSError):  # a file system that cannot be written to
            os.utime(path)
        return is_at(path, held.fileno())


def _share(file: BinaryIO) -> None:
    """Locks a file together with other processes that use it, until all copies of its descriptor are closed."""
    with contextlib.suppress(OSError):  # the file system has no locks
        fcntl.flock(file, fcntl.LOCK_SH)  # waits for _remove_unused at most


def is_at(path: Path, opened: int) -> bool:
    """Returns whether an open file still has its name, which another process may have given to another file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(opened))
    except FileNotFoundError:
        return False


def trim(programs: Path) -> None:
    """Removes the files of programs that were used least lately, until the rest have the size that the folder may have,
    and what killed processes have left. Files that a process maps or holds stay, and so do all others than programs."""
    most = _most_bytes()
    files = []
    now = time.time()
    for path in programs.iterdir():
        with contextlib.suppress(OSError):
            facts = path.stat()
            if _PROGRAM_FILE.fullmatch(path.name):
                files.append((facts.st_mtime_ns, facts.st_size, path))
            elif _UNFINISHED_FILE.fullmatch(path.name) and now - facts.st_mtime > _SECONDS_UNFINISHED:
                path.unlink()
    size = sum(bytes_ for _, bytes_, _ in files)
    for _, bytes_, path in sorted(files):
        if size <= most:
            return
        if _remove_unused(path):
            size -= bytes_


def _remove_unused(path: Path) -> bool:
    """Removes a file, unless a process uses it. Returns whether it is gone."""
    try:
        with open(path, "rb") as file:
            # A process that opens the file now waits for the lock, and then sees that the file has lost its name.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    except FileNotFoundError:
        return True
    except OSError:  # in use, or not this user's, or the file system has no locks
        return False
    return True


def _most_bytes() -> int:
    """Returns how many bytes the programs of this machine may have: FORESTVM_PROGRAMS_MIB, or 4096 MiB."""
    text = os.environ.get("FORESTVM_PROGRAMS_MIB", "")
    if text and not re.fullmatch("[0-9]{1,12}", text):
        raise Usage(f"FORESTVM_PROGRAMS_MIB is {text!r}: expected a whole number", "FORESTVM_PROGRAMS_MIB")
    return int(text or 4096) << 20


def _put_in_place(name: str, path: Path) -> None:
    """Gives a written file its final name, unless there is a file of that name. Renames it where the file system has no
    hard links: a process that maps the file that is replaced then has a copy of its own, with the same bytes."""
    try:
        os.link(name, path)
    except FileExistsError:
        pass
    except OSError:
        os.replace(name, path)


def mapped_file(path: str | os.PathLike[str]) -> mmap.mmap:
    """Returns a file's memory, which processes share and cannot write to."""
    with open(path, "rb") as file:
        _share(file)  # until the memory is released, because it keeps a copy of the descriptor
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

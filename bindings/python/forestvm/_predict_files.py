"""Predictions of Parquet and Arrow files, batch by batch in bounded memory."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import Environment, Error, Refused, Usage
from ._forest import Forest
from .engines._program import OUTPUTS, Call, call_of, is_at, load_with

if TYPE_CHECKING:
    import pyarrow

_ENDINGS = {".parquet": "Parquet", ".arrow": "Arrow IPC", ".feather": "Arrow IPC"}
_ROWS = b"forestvm.rows"  # Key of _version_of in the metadata of predictions.
_BUFFER = 1 << 16  # Bytes of a Parquet column that are read at a time.
_BATCH_BYTES = 64 << 20  # Bytes of predictions that are held at a time.
_BATCH_ROWS_HELP = "rows read at a time (default: 65536), fewer if their predictions exceed 64 MiB"
_NO_PYARROW = "needs pyarrow, which reads and writes these files: pip install pyarrow"


class _Options(NamedTuple):
    forest: Forest
    program: str  # Forest.program_fingerprint
    call: Call
    name: str
    keep: list[str] | None  # Columns that stand beside the predictions; None: all.
    batch_rows: int

    def metadata(self) -> dict[bytes, bytes]:
        """Returns what a file of predictions says of its making, by which a later run knows it for its own."""
        keep = "*" if self.keep is None else ",".join(self.keep)
        output, missing, columns = self.call
        rest = (f", {missing!r} is missing" if missing is not None else "") + f", columns by {columns}"
        quantiles = self.forest._options.get("quantiles")
        if quantiles is not None:
            rest += f", quantiles {quantiles}"
        return {
            b"forestvm.program": self.program.encode(),
            b"forestvm.predictions": f"{output} as {self.name} beside {keep}{rest}".encode(),
        }


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns its exit status: 0, 2 for wrong usage, 1 for other errors."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        print(f"python -m forestvm predict: {_NO_PYARROW}", file=sys.stderr)
        return 1
    try:
        _predict(options)
    except Error as error:
        where = f"{error.where}: " if error.where and error.where not in str(error) else ""
        print(f"python -m forestvm predict: {where}{error}", file=sys.stderr)
        return 2 if isinstance(error, Usage) else 1
    except OSError as error:
        print(f"python -m forestvm predict: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "python -m forestvm predict: interrupted; the same command goes on with the files that are not done",
            file=sys.stderr,
        )
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m forestvm", description="Runs trained decision forests.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    predict = commands.add_parser(
        "predict",
        help="predict the rows of a Parquet or Arrow file, or of a folder of them",
        description="Predicts the rows of a Parquet (.parquet) or Arrow IPC (.arrow, .feather) file, batch by batch, "
        "and writes another with the predictions as further columns. Columns are matched to the model's features by "
        "name. A folder becomes a folder: files that an earlier run has finished are left as they are.",
    )
    predict.add_argument("model", help="a trainer's model file, or a program (.fvm)")
    predict.add_argument("rows", type=Path, help="a file or folder of rows")
    predict.add_argument("predictions", type=Path, help="the file or folder to write")
    predict.add_argument("--output", choices=OUTPUTS, default="value", help="what to predict (default: value)")
    predict.add_argument(
        "--quantiles", metavar="Q,...", help="numbers from 0 to 1, with --output quantile (default: 0.1,0.5,0.9)"
    )
    predict.add_argument(
        "--name", default="prediction", help="name of the column; NAME_0, NAME_1, ... if there are several"
    )
    predict.add_argument(
        "--keep", metavar="COLUMN,...", help="columns to keep beside the predictions (default: all; empty: none)"
    )
    predict.add_argument("--missing", type=float, help="a number that is missing, besides NaN and nulls")
    predict.add_argument(
        "--columns",
        choices=("name", "position"),
        default="name",
        help="how columns are matched to features: by name (the default), or in the model's order",
    )
    predict.add_argument("--threads", type=int, help="threads (default: the CPUs that the process may use)")
    predict.add_argument("--batch-rows", type=int, default=65536, help=_BATCH_ROWS_HELP)
    predict.add_argument("--quiet", action="store_true", help="show no progress")
    return parser


def _predict(options: argparse.Namespace) -> None:
    if options.batch_rows < 1:
        raise Usage(f"--batch-rows is {options.batch_rows}: expected a number from 1")
    forest = load_with(options.model, options.output, options.threads)
    if options.quantiles is not None:
        if options.output != "quantile":
            raise Usage("--quantiles is for --output quantile")
        forest = forest.of_quantiles(options.quantiles.split(","))
    keep = None if options.keep is None else [name for name in options.keep.split(",") if name]
    for name in keep or []:
        if (keep or []).count(name) > 1:
            raise Usage(f"--keep names {name!r} twice")
    call = call_of(options.output, options.missing, options.columns)
    how = _Options(forest, forest.program_fingerprint, call, options.name, keep, options.batch_rows)
    files = _files(options.rows, options.predictions)
    progress = _Progress(options.quiet, sum(_row_count(rows) for rows, _ in files))
    for rows, predictions in files:
        if _is_done(predictions, how, rows):
            progress.skip(_row_count(rows), f"{predictions}: done by an earlier run")
        else:
            _predict_file(rows, predictions, how, progress)
    progress.end()


def _files(rows: Path, predictions: Path) -> list[tuple[Path, Path]]:
    """Returns the files to read, each with the one to write."""
    if not rows.is_dir():
        _check_ending(rows)
        _check_ending(predictions)
        if not rows.exists():
            raise Environment(f"{rows}: no such file", str(rows))
        if predictions.exists() and rows.samefile(predictions):
            raise Usage("the predictions would replace the rows", str(rows))
        return [(rows, predictions)]
    found = sorted(
        path for path in rows.rglob("*") if path.suffix in _ENDINGS and not _is_hidden(path.relative_to(rows))
    )
    if not found:
        raise Refused(f"{rows}: has no file that ends in {', '.join(_ENDINGS)}", str(rows))
    if predictions.resolve().is_relative_to(rows.resolve()):
        raise Usage("the folder of predictions lies in the folder of rows", str(predictions))
    return [(path, predictions / path.relative_to(rows)) for path in found]


def _is_hidden(path: Path) -> bool:
    """Returns whether a file, or a folder that it lies in, is no data, such as `_delta_log` or `_temporary`. A folder
    `_NAME=VALUE` is a partition."""
    folders = (name for name in path.parent.parts if name.startswith(".") or (name.startswith("_") and "=" not in name))
    return path.name.startswith((".", "_")) or any(folders)


def _check_ending(path: Path) -> None:
    if path.suffix not in _ENDINGS:
        raise Usage(f"{path}: the file's name must end in {', '.join(_ENDINGS)}", str(path))


@contextlib.contextmanager
def _batches(path: Path, batch_rows: int) -> Iterator[tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]]:
    """Opens a file's schema and its rows, in batches of at most `batch_rows`."""
    import pyarrow

    batches: Iterator[pyarrow.RecordBatch]
    with contextlib.ExitStack() as opened:
        with _blamed(path, f"not a file of {_ENDINGS[path.suffix]}"):
            if path.suffix == ".parquet":
                import pyarrow.parquet

                # Without these options pyarrow reads the whole file into memory, or whole columns of a row group.
                parquet = pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)
                opened.enter_context(parquet)
                schema, batches = parquet.schema_arrow, parquet.iter_batches(batch_size=batch_rows)
            else:
                source = opened.enter_context(pyarrow.memory_map(str(path)))
                file = opened.enter_context(pyarrow.ipc.open_file(source))
                whole = (file.get_batch(i) for i in range(file.num_record_batches))
                schema, batches = file.schema, (
                    batch.slice(begin, batch_rows)
                    for batch in whole
                    for begin in range(0, batch.num_rows, batch_rows)
                )
        yield schema, _read(path, batches)


def _read(path: Path, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Returns the batches of a file, and names it in errors of reading them."""
    with _blamed(path, f"not a file of {_ENDINGS[path.suffix]}"):
        yield from batches


@contextlib.contextmanager
def _blamed(path: Path, what: str) -> Iterator[None]:
    """Turns what pyarrow says is wrong into an error of a file."""
    import pyarrow

    try:
        yield
    except pyarrow.ArrowInvalid as error:
        raise Refused(f"{path}: {what}: {error}", str(path)) from error


def _row_count(path: Path) -> int:
    with _batches(path, sys.maxsize) as (_, batches):
        if path.suffix == ".parquet":
            import pyarrow.parquet

            return int(pyarrow.parquet.read_metadata(path).num_rows)
        return sum(batch.num_rows for batch in batches)


def _is_done(path: Path, how: _Options, rows: Path) -> bool:
    """Returns whether a file has the predictions of the same program for the same file of rows, by its size and time of
    change. Refuses to replace a file that is not such predictions."""
    if not path.exists():
        return False
    with _batches(path, 1) as (schema, _):
        said = schema.metadata or {}
    if any(said.get(key) != value for key, value in how.metadata().items()):
        text = "this file was not written by this command with this program and these options: remove it first"
        raise Refused(f"{path}: {text}", str(path))
    return bool(said.get(_ROWS) == _version_of(rows))


def _version_of(rows: Path) -> bytes:
    """Returns a text that changes when another file of rows takes the name."""
    facts = rows.stat()
    return f"{facts.st_size} bytes of {facts.st_mtime_ns} ns".encode()


def _predict_file(rows: Path, predictions: Path, how: _Options, progress: _Progress) -> None:
    """Writes the predictions of a file: whole, or not at all."""
    import pyarrow

    from .engines import _arrow

    predictions.parent.mkdir(parents=True, exist_ok=True)
    version = _version_of(rows)
    added = _arrow.schema_of(how.forest, how.call.output, how.name)
    batch_rows = min(how.batch_rows, max(1, _BATCH_BYTES // _row_bytes(added)))
    with _batches(rows, batch_rows) as (schema, batches):
        absent = [name for name in how.keep or [] if name not in schema.names]
        if absent:
            raise Usage(f"--keep names columns that the rows do not have: {', '.join(absent)}", str(rows))
        kept = schema.names if how.keep is None else how.keep
        repeated = sorted({name for name in kept if schema.names.count(name) > 1})
        if repeated:
            raise Refused(f"{rows}: several columns are called {repeated[0]!r}: leave it out of --keep", str(rows))
        _arrow.check_free(kept, added.names, str(rows))
        metadata = {**(schema.metadata or {}), **how.metadata(), _ROWS: version}
        metadata.pop(b"pandas", None)  # it would not know the new columns
        fields = [schema.field(name) for name in kept]
        if rows.suffix == ".parquet" and predictions.suffix != ".parquet":
            fields = [_without_dictionary(field) for field in fields]
        written = pyarrow.schema([*fields, *added], metadata=metadata)
        with _unfinished(predictions) as path, _blamed(predictions, "cannot be written"):
            with _writer(path, predictions.suffix, written) as writer:
                for batch in batches:
                    whole = _arrow.with_predictions(how.forest, batch, how.call, how.name, kept)
                    arrays = [column.cast(field.type) for column, field in zip(whole.columns, written, strict=True)]
                    writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=written))
                    progress.advance(batch.num_rows)


def _row_bytes(predictions: pyarrow.Schema) -> int:
    """Returns the bytes that the predictions of a row take."""
    import pyarrow

    bits = 0
    for type_ in predictions.types:
        is_list = pyarrow.types.is_fixed_size_list(type_)
        bits += type_.list_size * type_.value_type.bit_width if is_list else type_.bit_width
    return max(1, bits // 8)


def _without_dictionary(field: pyarrow.Field) -> pyarrow.Field:
    """Returns a field of plain values: each row group of Parquet has a dictionary, an Arrow file only one."""
    import pyarrow

    return field.with_type(field.type.value_type) if pyarrow.types.is_dictionary(field.type) else field


@contextlib.contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """Gives the path of a hidden file, which takes the place of `path` at the end and is removed after an error.

    All runs use the same hidden file, so that the next run overwrites the one that a killed run has left. A lock, which
    ends with its process, keeps two runs from writing it at once.
    """
    hidden = path.parent / f".{path.name}.unfinished"
    with contextlib.ExitStack() as opened:
        while True:
            file = opened.enter_context(open(hidden, "ab"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Environment(f"{path}: another run is writing this file", str(path)) from None
            if is_at(hidden, file.fileno()):
                break
        try:
            yield hidden
            os.replace(hidden, path)
        except BaseException:
            hidden.unlink(missing_ok=True)
            raise


def _writer(path: Path, ending: str, schema: pyarrow.Schema) -> Any:
    import pyarrow

    if ending == ".parquet":
        import pyarrow.parquet

        return pyarrow.parquet.ParquetWriter(path, schema)
    # Dictionaries of an Arrow file may grow from batch to batch.
    return pyarrow.ipc.new_file(
        str(path), schema, options=pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    )


class _Progress:
    """A line on standard error about the rows that are done: several times a second on a terminal, else at the end."""

    def __init__(self, quiet: bool, total: int) -> None:
        self._quiet, self._total, self._done, self._skipped = quiet, total, 0, 0
        self._begun = self._shown = time.monotonic()

    def advance(self, rows: int) -> None:
        self._done += rows
        if sys.stderr.isatty() and time.monotonic() - self._shown > 0.2:
            self._shown = time.monotonic()
            self._show("\r")

    def skip(self, rows: int, why: str) -> None:
        self._done += rows
        self._skipped += rows
        if not self._quiet:
            print(why, file=sys.stderr)

    def end(self) -> None:
        self._show("\r" if sys.stderr.isatty() else "")
        if not self._quiet:
            print(file=sys.stderr)

    def _show(self, begin: str) -> None:
        if self._quiet:
            return
        seconds = max(time.monotonic() - self._begun, 1e-9)
        bar = "#" * (30 * self._done // max(self._total, 1))
        rate = (self._done - self._skipped) / seconds
        print(
            f"{begin}[{bar:30}] {self._done} of {self._total} rows, {rate:,.0f} a second",
            end="",
            file=sys.stderr,
            flush=True,
        )

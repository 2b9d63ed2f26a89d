"""Defines load, and what makes forests of programs in memory."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Union

from . import _arguments, _threadpools, _threads
from ._errors import ContractWarning, Refused, Usage, file_errors
from ._forest import Forest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray
    from typing_extensions import Buffer

Source = Union[str, "os.PathLike[str]", "Buffer"]


def load(
    source: Source,
    *,
    schedule: str | os.PathLike[str] | None = None,
    for_rows: int | Iterable[int] | None = None,
    for_threads: int = 1,
    contract: str | None = None,
    strict: bool = False,
    threads: int | None = None,
    target: str = "auto",
    device: str | None = None,
    rounds: tuple[int, int] | str | None = None,
    contributions: bool = False,
    keep_leaves: bool = False,
    interactions: bool = False,
    approx_contributions: bool = False,
    background: Any = None,
    samples: tuple[Any, Any] | None = None,
) -> Forest:
    """Loads a trainer's model file, or a program (.fvm), from a path or from memory.

    schedule: "auto" (the default), the name or text of a schedule, or a path (os.PathLike) of a file with one.
    for_rows: numbers of rows per call that the schedule "auto" is to suit, such as 1 or (1, 1000); None: all. The
              program is smaller; calls of other sizes run, too.
    for_threads: the number of threads that will predict: those of the schedule "auto" then share calls of few rows
              where these take long. The program runs with any number of threads.
    contract: the bits that predictions promise: "trainer" (the default), "reproducible" or "fast".
    strict:   refuses models for which the contract cannot be kept, instead of warning.
    threads:  threads of a call; None: as many CPUs as the process may use, FORESTVM_NUM_THREADS or OMP_NUM_THREADS
              at most.
    target:   the CPU instructions: "auto", or a name such as "avx2".
    device:   a GPU, such as "cuda" or "hip:1"; None: the host.
    rounds:   the boosting rounds to use, (begin, end), or "best" for those that early stopping chose; None: all.
    contributions: lets `Forest.contributions` say what each feature contributes; the program then takes about twice
              the memory.
    keep_leaves: lets `Forest.trees`, `Forest.staged`, `Forest.of_rounds`, `Forest.virt_ensembles` and
              `Forest.uncertainty` answer, and `early_stop=` of calls.
    interactions: lets `Forest.interactions` say what each two features contribute, too, which takes more memory.
    approx_contributions: lets `Forest.approx_contributions` answer; the program then takes more memory.
    background: rows with which contributions compare a row, an array (rows, features) without column names, compiled
              into the program: contributions are then interventional SHAP values, means over these rows.
    samples:  training rows and their targets, arrays (rows, features) and (rows,), without column names: lets
              `Forest.quantiles` and `Forest.of_quantiles` answer.

    Raises Environment if the file cannot be read or the machine lacks the device or the CPU instructions, Refused if
    the model, the program or the schedule cannot be accepted, and Usage for options that make no sense. Warns
    (ContractWarning) of models for which the contract cannot be kept.
    """
    if isinstance(schedule, os.PathLike):
        schedule = text_of(schedule)
    options = {"threads": threads, "target": target, "device": device}
    return open_model(
        source,
        options,
        schedule,
        contract,
        strict,
        _arguments.rounds_of(rounds),
        contributions,
        keep_leaves,
        interactions,
        approx_contributions,
        background=_arguments.background_rows(background, contributions, interactions),
        samples=_arguments.sample_rows(samples),
        for_rows=_arguments.rows_per_call(for_rows),
        for_threads=_arguments.count_of(for_threads, "for_threads"),
    )


def text_of(path: os.PathLike[str]) -> str:
    """Returns the text of a file. Raises Environment if it cannot be read, and Refused if it is not UTF-8."""
    name = os.fspath(path)
    try:
        with file_errors("read", name), open(name, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise Refused(f"{name}: byte {error.start} is not UTF-8", name) from error


def open_model(
    source: Source,
    options: dict[str, Any],
    schedule: str | None = None,
    contract: str | None = None,
    strict: bool = False,
    rounds: tuple[int, int] = (0, -1),
    contributions: bool = False,
    keep_leaves: bool = False,
    interactions: bool = False,
    approx_contributions: bool = False,
    borrow: bool = False,
    background: NDArray[Any] | None = None,
    samples: tuple[NDArray[Any] | None, NDArray[Any] | None] = (None, None),
    for_rows: Buffer = b"",
    for_threads: int = 1,
) -> Forest:
    """Loads a model or a program. `options` are those that a pickle keeps."""
    is_path = isinstance(source, (str, os.PathLike))
    if not is_path and not _arguments.has_buffer(source):
        raise Usage(
            f"expected a path or the bytes of a model, not {type(source).__name__}: from_xgboost, from_lightgbm, "
            "from_sklearn and from_catboost take a trainer's objects"
        )
    target = options["target"]
    texts = {"target": target, "device": options["device"], "schedule": schedule, "contract": contract}
    for option, text in texts.items():
        if not isinstance(text, str) and (text is not None or option == "target"):
            raise Usage(f"{option} is {text!r}, not a text", option)
    path_or_bytes: Any = os.fsencode(source) if is_path else source  # type: ignore[arg-type]
    threads = _threads.thread_count(options["threads"])
    _threadpools.register()
    forest: Forest
    forest, messages = Forest._load(
        path_or_bytes,
        is_path,
        schedule,
        contract,
        strict,
        threads,
        target,
        options["device"],
        *rounds,
        contributions,
        keep_leaves,
        interactions,
        approx_contributions,
        borrow,
        background,
        *samples,
        for_rows,
        for_threads,
    )
    forest._options = options
    forest._names = forest._feature_names
    forest._schema = forest._calls = None
    for message in messages:
        warnings.warn(message, ContractWarning, stacklevel=3)
    return forest


def restored(image: Buffer, options: dict[str, Any]) -> Forest:
    """Makes a forest of a pickle's content."""
    forest = open_model(image, options, borrow=True)
    return forest._with_calls() if options.keys() & {"rounds", "quantiles"} else forest

"""The exceptions of forestvm. Their common base is Error; each is also a subclass of the builtin that fits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = [
    "ContractWarning",
    "Environment",
    "Error",
    "FeatureMismatch",
    "Internal",
    "Refused",
    "UnsupportedInput",
    "Usage",
    "file_errors",
]


class Error(Exception):
    """Any failure of forestvm. `where` is the place in the input, if there is one: a file, a JSON path, a column."""

    def __init__(self, message: str = "", where: str = "") -> None:
        super().__init__(message)
        self.where = where


class Refused(Error):
    """The model, rows or schedule cannot be accepted."""


class Usage(Error, ValueError):
    """The call makes no sense."""


class Environment(Error, OSError):
    """A file, device or CPU feature is missing, or I/O failed."""

    # OSError would show both arguments.
    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


@contextmanager
def file_errors(action: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Raises Environment for an OSError of the statements inside, which read or write the file at `path`."""
    try:
        yield
    except OSError as error:
        name = os.fspath(path)
        raise Environment(f"{name}: cannot {action} the file: {error.strerror}", name) from error


class Internal(Error, RuntimeError):
    """A bug of forestvm: please report it with the message."""


class FeatureMismatch(Usage):
    """The rows have other columns than the model has features."""

    def __init__(
        self,
        message: str = "",
        where: str = "",
        missing: Sequence[str] = (),
        extra: Sequence[str] = (),
        expected: Sequence[str] = (),
    ) -> None:
        super().__init__(message, where)
        self.missing = tuple(missing)
        self.extra = tuple(extra)
        self.expected = tuple(expected)


class UnsupportedInput(Usage, TypeError):
    """The rows, or a column of them, have a type that forestvm does not read."""


class ContractWarning(UserWarning):
    """Predictions may differ from what the contract promises; strict=True refuses such models."""


for _class in (Error, Refused, Usage, Environment, Internal, FeatureMismatch, UnsupportedInput, ContractWarning):
    _class.__module__ = "forestvm"

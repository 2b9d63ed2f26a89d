"""Defines PredictionStream, which Forest.predict_stream returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._forest import Forest


class PredictionStream:
    """Predictions with Arrow's stream method: a column `name`, or `name_0`, `name_1`, ... if there are several numbers.

    `pyarrow.RecordBatchReader.from_stream`, `pyarrow.table`, `polars.DataFrame` and DuckDB read it. Each reading begins
    the rows anew, if they can be read again.
    """

    def __init__(
        self,
        forest: Forest,
        X: Any,
        output: str,
        name: str,
        missing: float | None,
        columns: str,
        extra: str,
        base_margin: Any = None,
    ) -> None:
        self._forest, self._rows, self._base_margin = forest, X, base_margin
        self._options = (output, name, missing, columns, extra)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if self._base_margin is None:
            return self._forest._stream(self._rows, *self._options)
        from . import _margins

        return _margins.forest_with(self._forest, self._base_margin)._stream(self._rows, *self._options)

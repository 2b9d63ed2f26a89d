"""Forest.explain: contributions of features as an object for plots."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import _device_rows, _names, _rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._forest import Forest


class Explanation:
    """Contributions of features, with the attributes of SHAP's Explanation. `explanation[i]` has some of the rows.

    values:        contributions, an array (rows, features), or (rows, features, outputs) if there are several outputs
    base_values:   expected raw scores, an array (rows,), or (rows, outputs)
    data:          the rows' values in the order of the model's features; None where they cannot be read again
    feature_names: a list of texts, or None if neither the model nor the rows have names
    output_names:  the labels of the outputs as a list of texts; None if there is one output, or there are no labels
    """

    __slots__ = ("base_values", "data", "feature_names", "output_names", "values")

    def __init__(
        self,
        values: NDArray[Any],
        base_values: NDArray[Any],
        data: NDArray[Any] | None,
        feature_names: list[str] | None,
        output_names: list[str] | None,
    ) -> None:
        self.values, self.base_values, self.data = values, base_values, data
        self.feature_names, self.output_names = feature_names, output_names

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Explanation:
        data = None if self.data is None else self.data[rows]
        return Explanation(self.values[rows], self.base_values[rows], data, self.feature_names, self.output_names)

    def __repr__(self) -> str:
        return f"<forestvm.Explanation: values of shape {self.shape}>"


Explanation.__module__ = "forestvm"


def explain(forest: Forest, X: Any, missing: float | None, columns: str, extra: str) -> Any:
    """Returns shap.Explanation if the package shap can be imported, otherwise Explanation."""
    parts = forest.contributions(X, missing=missing, columns=columns, extra=extra)
    values, base_values = parts[..., :-1], parts[..., -1]
    if forest.num_outputs > 1:  # SHAP's last dimension is the output
        values = numpy.moveaxis(values, 1, 2)
    names, column = _columns(X)
    if column is None:
        data = _matrix(X)
    else:
        order = _names.order_of(forest, names, columns, extra) or range(forest.num_features)
        data = _stacked([numpy.asarray(column(i)) for i in order], len(values))
    known = forest.feature_names
    if names and (not known or _names.are_made_up(known)):
        known = tuple(map(str, names))
    labels = list(forest.classes) if 1 < forest.num_outputs == len(forest.classes) else None
    attributes: dict[str, Any] = {
        "base_values": base_values,
        "data": data,
        "feature_names": list(known) or None,
        "output_names": labels,
    }
    try:
        kind = importlib.import_module("shap").Explanation
    except ImportError:
        kind = Explanation
    return kind(values, **attributes)


def _columns(X: Any) -> tuple[Sequence[Any], Callable[[int], Any] | None]:
    """Returns the names of the columns of a table that can be read again, and what gives a column by its number."""
    if isinstance(X, dict):
        values = list(X.values())
        return list(X), values.__getitem__
    if isinstance(X, numpy.ndarray) and X.dtype.names is not None:
        fields = X.dtype.names
        return fields, lambda i: X[fields[i]]
    if hasattr(X, "iloc"):  # pandas
        return list(X.columns), lambda i: X.iloc[:, i]
    if hasattr(X, "to_series") and hasattr(X, "columns"):  # polars
        return X.columns, X.to_series
    if hasattr(X, "column_names") and hasattr(X, "column"):  # pyarrow
        return X.column_names, X.column
    return (), None


def _matrix(X: Any) -> NDArray[Any] | None:
    """Returns rows without names as an array; None for rows of other forms, such as sparse or encoded ones."""
    if isinstance(X, (numpy.ndarray, list, tuple)):
        return numpy.asarray(X)
    if hasattr(X, "__dlpack__") and not _device_rows.is_on_gpu(X):
        return numpy.asarray(_rows.from_dlpack(X))
    return None


def _stacked(columns: list[NDArray[Any]], rows: int) -> NDArray[Any]:
    """Returns columns as one array: of the type that holds all their numbers, or of objects if some are no numbers."""
    types = [column.dtype for column in columns]
    numeric = types and all(dtype.kind in "biuf" for dtype in types)
    stacked: NDArray[Any] = numpy.empty((rows, len(columns)), numpy.result_type(*types) if numeric else object)
    for i, values in enumerate(columns):
        stacked[:, i] = values
    return stacked

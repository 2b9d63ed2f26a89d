"""The results of the methods of trainers' estimators, computed from a forest.

An adapter knows one kind of estimator: which rows it takes, what its methods do around the scores, and which calls are
left to the estimator itself. NotTaken carries the reason.
"""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._forest import Forest
from ._load import load
from .trainers import _lightgbm_booster, _lightgbm_text, _xgboost_booster, _xgboost_forest

Array = npt.NDArray[Any]
Method = Callable[..., Any]


class NotTaken(Exception):
    """Raised for a call that the estimator itself answers; the message is the reason."""


class Adapter:
    """Answers the methods of one estimator.

    Methods are called with the estimator, the rows, and those of the parameters in `parameters` that the caller gave.
    """

    package = ""
    #: Parameters that methods understand. Any other one must have its default value.
    parameters: frozenset[str] = frozenset()
    #: The largest difference from the estimator's numbers: in units in the last place, or absolute.
    ulps = 2
    absolute = 0.0

    def __init__(self, forest: Forest, estimator: Any) -> None:
        self.forest = forest
        self._source: object = None
        self._rounds = 0
        self.bind(estimator)

    def bind(self, estimator: Any) -> None:
        """Hands the adapter over to `estimator`, which has the same trees."""
        self._source = self.source_of(estimator)
        self._rounds = self.rounds_of(estimator)

    def source_of(self, estimator: Any) -> object:
        """Returns the object that holds the trees: another one means that the forest is out of date."""
        raise NotImplementedError

    def rounds_of(self, estimator: Any) -> int:
        """Returns the number of rounds of a Booster, which training may continue; 0 for other sources."""
        return 0

    def methods(self, estimator: Any) -> Mapping[str, Method]:
        """Returns the methods that the forest can answer."""
        raise NotImplementedError

    def is_current(self, estimator: Any) -> bool:
        return self.source_of(estimator) is self._source and self.rounds_of(estimator) == self._rounds

    def arguments(
        self, original: Method, estimator: Any, given: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Returns the rows and the other arguments of a call that differ from their defaults.

        Raises NotTaken for parameters that the methods do not understand.
        """
        signature = inspect.signature(original)
        try:
            (_, _), (_, rows), *others = signature.bind(estimator, *given, **named).arguments.items()
        except (TypeError, ValueError) as error:
            raise NotTaken(str(error)) from None
        out = {}
        for name, value in others:
            parameter = signature.parameters[name]
            if parameter.kind is parameter.VAR_KEYWORD:
                raise NotTaken(f"{', '.join(value)} is given")
            if value is parameter.default or (isinstance(value, (bool, int)) and value == parameter.default):
                continue
            if name not in self.parameters:
                raise NotTaken(f"{name} is given")
            out[name] = value
        return rows, out


def frame_package(rows: object) -> str | None:
    """Returns the package of a frame: "pandas", "polars" or "pyarrow"; None for other objects."""
    for package, name in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        module = sys.modules.get(package)
        if module is not None and isinstance(rows, getattr(module, name)):
            return package
    return None


def is_sparse(rows: object, formats: Iterable[str]) -> bool:
    scipy_sparse = sys.modules.get("scipy.sparse")
    if scipy_sparse is None or not scipy_sparse.issparse(rows):
        return False
    return rows.format in formats  # type: ignore[attr-defined]


def _column_names(rows: Any, package: str) -> list[str]:
    return [str(name) for name in (rows.column_names if package == "pyarrow" else rows.columns)]


def check_array(rows: Array, features: int) -> None:
    """Refuses arrays that trainers refuse or treat in ways of their own."""
    if not _is_plain(rows.dtype):
        raise NotTaken(f"the rows are an array of {rows.dtype}")
    if rows.ndim != 2 or rows.shape[1] != features or rows.shape[0] == 0:
        raise NotTaken(f"the rows have the shape {rows.shape}")


def _is_plain(kind: np.dtype[Any]) -> bool:
    return kind.kind in "fiub" and kind.itemsize <= 8 and kind.isnative


#: The names of Arrow's types of numbers, and those of polars.
_NUMBERS = frozenset(
    ["float", "double", "bool", "Float32", "Float64", "Boolean"]
    + [f"{sign}{bits}" for sign in ("int", "uint", "Int", "UInt") for bits in (8, 16, 32, 64)]
)


def check_frame(rows: Any, package: str, categories: bool) -> None:
    """Refuses frames with columns that trainers refuse, or convert in ways of their own. Takes plain numbers and, if
    `categories` is true, categories of pandas."""
    if package == "pandas":
        categorical = sys.modules["pandas"].CategoricalDtype
        kinds = [
            (name, kind)
            for name, kind in zip(rows.columns, rows.dtypes)
            if not (_is_plain(kind) if isinstance(kind, np.dtype) else categories and isinstance(kind, categorical))
        ]
    else:
        pairs = zip(rows.columns, rows.dtypes) if package == "polars" else zip(rows.column_names, rows.schema.types)
        kinds = [(name, kind) for name, kind in pairs if str(kind) not in _NUMBERS]
    if kinds:
        name, kind = kinds[0]
        raise NotTaken(f"the column {name!r} has values of type {kind}, not plain numbers")
    if rows.shape[0] == 0 or rows.shape[1] == 0:
        raise NotTaken("there are no rows" if rows.shape[0] == 0 else "there are no columns")


def categories_of(frame: Any) -> set[str]:
    """Returns the names of the columns of a frame of pandas that hold categories."""
    categorical = sys.modules["pandas"].CategoricalDtype
    return {str(name) for name, kind in zip(frame.columns, frame.dtypes) if isinstance(kind, categorical)}


def unknown_rows(rows: object) -> NotTaken:
    kind = type(rows)
    return NotTaken(f"the rows are an object of {kind.__module__}.{kind.__qualname__}")


class XgboostAdapter(Adapter):
    """Answers for XGBModel and its subclasses, with the rounds up to best_iteration."""

    package = "xgboost"
    parameters = frozenset({"output_margin"})

    def __init__(self, estimator: Any, options: dict[str, Any]) -> None:
        booster, rounds = _xgboost_booster(estimator)
        super().__init__(_xgboost_forest(booster, rounds, options), estimator)
        self._names = booster.feature_names
        types = booster.feature_types or []
        self._categories = {name for name, kind in zip(self._names or [], types) if kind == "c"}
        # XGBModel predicts in place, and there DART adds (leaf + base score - base score) * weight, rounded each time.
        self._is_dart = json.loads(booster.save_config())["learner"]["gradient_booster"]["name"] == "dart"

    def source_of(self, estimator: Any) -> object:
        return estimator.__dict__.get("_Booster")

    def rounds_of(self, estimator: Any) -> int:
        return int(estimator.__dict__["_Booster"].num_boosted_rounds())

    def methods(self, estimator: Any) -> Mapping[str, Method]:
        if not hasattr(type(estimator), "predict_proba"):
            return {"predict": self._scores, "apply": self._apply}
        return {"predict": self._predict, "predict_proba": self._predict_proba, "apply": self._apply}

    def _rows(self, estimator: Any, rows: Any) -> dict[str, Any]:
        """Checks rows, and returns the arguments of the forest's methods."""
        package = frame_package(rows)
        if type(rows) is np.ndarray or is_sparse(rows, ("csr",)):
            check_array(rows, self.forest.num_features)
            if type(rows).__name__ == "csr_array":
                raise NotTaken("the rows are a sparse array, of which XGBoost makes a DMatrix")
        elif package is None or type(rows).__module__.partition(".")[0] != package:  # XGBoost takes no subclasses
            raise unknown_rows(rows)
        elif _column_names(rows, package) != self._names:
            raise NotTaken("the columns' names are not the model's")
        else:
            check_frame(rows, package, categories=True)
            if package == "pandas" and categories_of(rows) != self._categories:
                raise NotTaken("the columns of categories are not the model's")
        missing = estimator.missing
        if missing is None or (isinstance(missing, float) and math.isnan(missing)):
            return {}
        return {"missing": missing}

    def _summed_rows(self, estimator: Any, rows: Any) -> dict[str, Any]:
        if self._is_dart:
            raise NotTaken("XGBModel rounds the sums of DART in another way than the Booster")
        return self._rows(estimator, rows)

    def _scores(self, estimator: Any, rows: Any, output_margin: bool = False) -> Array:
        arguments = self._summed_rows(estimator, rows)
        return self.forest.predict_raw(rows, **arguments) if output_margin else self.forest.predict(rows, **arguments)

    def _predict(self, estimator: Any, rows: Any, output_margin: bool = False) -> Array:
        scores = self._scores(estimator, rows, output_margin)
        if output_margin:
            return scores
        if scores.ndim > 1 and estimator.n_classes_ != 2:
            return np.asarray(np.argmax(scores, axis=1))
        if scores.ndim > 1 and scores.shape[1] != 1:  # several labels, each of which is true or false
            return (scores > 0.5).astype(np.float64)
        if estimator.objective == "multi:softmax":
            return scores.astype(np.int32)
        return (scores.reshape(len(scores)) > 0.5).astype(np.int64)

    def _predict_proba(self, estimator: Any, rows: Any) -> Array:
        if estimator.objective == "multi:softmax":  # values of this objective are labels
            return self.forest.predict_proba(rows, **self._summed_rows(estimator, rows))
        scores = self._scores(estimator, rows)
        if scores.ndim == 2 and scores.shape[1] >= 2:
            return scores
        return np.vstack((1.0 - scores, scores)).transpose()

    def _apply(self, estimator: Any, rows: Any) -> Array:
        arguments = self._rows(estimator, rows)
        if self._names and frame_package(rows) is None:
            raise NotTaken("the rows have no names, and the model has some")
        if _holds_infinities(rows):
            raise NotTaken("the rows hold infinities")
        leaves = self.forest.apply(rows, **arguments).astype(np.float32)
        return leaves[:, 0] if leaves.shape[1] == 1 else leaves


def _holds_infinities(rows: Any) -> bool:
    """Returns whether XGBoost refuses to make a DMatrix of the rows, which holds float32 numbers."""
    if frame_package(rows) == "pandas":
        if not all(isinstance(kind, np.dtype) and kind.kind in "fiub" for kind in rows.dtypes):
            raise NotTaken("the columns of the frame are not all plain numbers, which leaves need")
        rows = rows.to_numpy()
    elif is_sparse(rows, ("csr",)):
        rows = rows.data
    elif type(rows) is not np.ndarray:
        raise NotTaken("leaves are not computed for this kind of frame")
    with np.errstate(over="ignore"):
        return bool(np.isinf(rows.astype(np.float32)).any())


class LightgbmAdapter(Adapter):
    """Answers for LGBMModel and its subclasses, with the rounds up to best_iteration."""

    package = "lightgbm"
    ulps = 3
    parameters = frozenset({"raw_score", "pred_leaf"})

    def __init__(self, estimator: Any, options: dict[str, Any]) -> None:
        booster = _lightgbm_booster(estimator)
        super().__init__(load(_lightgbm_text(booster, 0, None).encode(), **options), estimator)
        self._names = booster.feature_name()
        self._has_categories = bool(booster.pandas_categorical)

    def source_of(self, estimator: Any) -> object:
        return estimator.__dict__.get("_Booster")

    def rounds_of(self, estimator: Any) -> int:
        return int(estimator.__dict__["_Booster"].current_iteration())

    def methods(self, estimator: Any) -> Mapping[str, Method]:
        if not hasattr(type(estimator), "predict_proba"):
            return {"predict": self._scores}
        found: dict[str, Method] = {"predict": self._predict, "predict_proba": self._predict_proba}
        if hasattr(type(estimator), "decision_function"):
            found["decision_function"] = self._decision_function
        return found

    def _rows(self, estimator: Any, rows: Any) -> Any:
        """Checks rows, and returns them with the numbers that LightGBM's Python package reads from them."""
        if callable(estimator.objective):
            raise NotTaken("the objective is a function, about which LightGBM warns")
        if any(name.startswith("pred") for name in estimator.__dict__.get("_other_params", ())):
            raise NotTaken("the estimator has parameters of prediction")
        package = frame_package(rows)
        if package is not None:
            return self._frame(rows, package)
        if type(rows) is np.ndarray or is_sparse(rows, ("csr",)):
            check_array(rows, self.forest.num_features)
        else:
            raise unknown_rows(rows)
        if type(rows).__name__ == "csr_array":
            raise NotTaken("the rows are a sparse array, which LightGBM converts with a warning")
        is_read = rows.dtype == np.float32 or rows.dtype == np.float64
        if not is_read and type(rows) is not np.ndarray:
            raise NotTaken(f"the rows are a sparse matrix of {rows.dtype}")
        check_names(estimator, rows)
        return rows if is_read else rows.astype(np.float32)

    def _frame(self, rows: Any, package: str) -> Any:
        names = ["_".join(name.split(" ")) for name in _column_names(rows, package)]
        if names != self._names:
            raise NotTaken("the columns' names are not the model's in their order: LightGBM matches by position")
        check_frame(rows, package, categories=True)
        if package != "pandas":
            if self._has_categories:
                raise NotTaken(f"the model has categories, and the rows are a frame of {package}")
            return rows
        own = {"_".join(name.split(" ")) for name in categories_of(rows)}
        if own != set(self.forest.categories or ()):
            raise NotTaken("the columns of categories are not the model's: LightGBM matches them by position")
        return rows

    def _scores(self, estimator: Any, rows: Any, raw_score: bool = False, pred_leaf: bool = False) -> Array:
        rows = self._rows(estimator, rows)
        if raw_score and pred_leaf:
            raise NotTaken("raw_score and pred_leaf are given")
        if pred_leaf:
            return self.forest.apply(rows)
        return self.forest.predict_raw(rows) if raw_score else self.forest.predict(rows)

    def _predict_proba(self, estimator: Any, rows: Any, raw_score: bool = False, pred_leaf: bool = False) -> Array:
        scores = self._scores(estimator, rows, raw_score, pred_leaf)
        if raw_score or pred_leaf or scores.ndim > 1:
            return scores
        return np.vstack((1.0 - scores, scores)).transpose()

    def _predict(self, estimator: Any, rows: Any, raw_score: bool = False, pred_leaf: bool = False) -> Array:
        scores = self._predict_proba(estimator, rows, raw_score, pred_leaf)
        if raw_score or pred_leaf:
            return scores
        labels: Array = estimator._le.inverse_transform(np.argmax(scores, axis=1))
        return labels

    def _decision_function(self, estimator: Any, rows: Any) -> Array:
        return self._scores(estimator, rows, raw_score=True)


def check_names(estimator: Any, rows: Any) -> None:
    """Checks names and number of columns as scikit-learn does, with its own warnings and errors."""
    from sklearn.utils.validation import validate_data  # type: ignore[import-untyped,unused-ignore]

    validate_data(estimator, rows, reset=False, skip_check_array=True)

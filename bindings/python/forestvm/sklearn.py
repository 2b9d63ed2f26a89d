"""Forests as estimators of scikit-learn: for pipelines, searches and whatever else expects estimators.

This module needs scikit-learn 1.6 or later.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import (  # type: ignore[import-untyped,unused-ignore]
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
)

from ._errors import Refused, Usage
from ._forest import Forest
from ._load import load
from .trainers import from_model

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ForestClassifier", "ForestRegressor"]

Array = npt.NDArray[Any]


class _ForestEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of both kinds of estimators: a forest, and its features."""

    model: object
    missing: float | None
    columns: str | None
    extra: str | None

    @property
    def forest(self) -> Forest:
        """The forest that predicts."""
        if self.__dict__.get("_model") is not self.model:
            self._forest, self._model = _forest_of(self.model), self.model
        forest: Forest = self._forest
        return forest

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return self.forest.num_features

    @property
    def feature_names_in_(self) -> Array:
        """The names of the features. A forest without names does not have this attribute."""
        if not self.forest.feature_names:
            raise AttributeError("the forest has no names of features")
        return np.array(self.forest.feature_names, dtype=object)

    def fit(self, X: object, y: object = None, **parameters: object) -> Self:
        """Raises Usage: a forest is trained by its trainer."""
        raise Usage(f"{type(self).__name__} cannot be fitted: train a model with its trainer and load it again")

    def apply(self, X: object) -> Array:
        """Returns the leaf of every tree: int32 of shape (rows, trees)."""
        return self.forest.apply(X, **self._arguments())

    def _arguments(self, base_margin: object = None) -> dict[str, Any]:
        arguments = {
            "missing": self.missing,
            "columns": self.columns,
            "extra": self.extra,
            "base_margin": base_margin,
        }
        return {name: value for name, value in arguments.items() if value is not None}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        """Returns an estimator with the same forest: there is nothing to fit again."""
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags


class ForestClassifier(ClassifierMixin, _ForestEstimator):  # type: ignore[misc]
    """A classifier of scikit-learn that a forest predicts for.

    Args:
        model: A :class:`forestvm.Forest`, a file or bytes that :func:`forestvm.load` takes, or a fitted model that
            ``from_xgboost``, ``from_lightgbm``, ``from_sklearn`` or ``from_catboost`` takes.
        classes: The labels of the classes. By default those of the fitted model, or those that the model file holds:
            whole numbers if all of them are, else texts. Models without labels have the numbers 0, 1, ...
        missing: A number that stands for a missing value, beside NaN.
        columns: How columns of frames are matched: see :meth:`forestvm.Forest.predict`.
        extra: What columns are that the model does not know: see :meth:`forestvm.Forest.predict`.

    Raises:
        Usage: The model gives no classes.
    """

    def __init__(
        self,
        model: object,
        *,
        classes: Sequence[Any] | Array | None = None,
        missing: float | None = None,
        columns: str | None = None,
        extra: str | None = None,
    ) -> None:
        self.model = model
        self.classes = classes
        self.missing = missing
        self.columns = columns
        self.extra = extra
        width = _class_count(self.forest)
        count = len(self.classes_)
        if count != width:
            raise Usage(f"classes: {count} labels are given, the model has {width} classes", "classes")

    @property
    def classes_(self) -> Array:
        """The labels of the classes, in the order of the probabilities' columns."""
        if self.classes is not None:
            return np.asarray(self.classes)
        known = getattr(self.model, "classes_", None)
        return np.asarray(known) if known is not None else _labels_of(self.forest)

    def predict(self, X: object, base_margin: object = None) -> Array:
        """Returns the label of every row: an array of shape (rows,).

        Args:
            X: The rows.
            base_margin: Margins of the rows, from which their sums start: see :meth:`forestvm.Forest.predict`.
        """
        return np.asarray(self.classes_.take(self.forest.predict_class(X, **self._arguments(base_margin))))

    def predict_proba(self, X: object, base_margin: object = None) -> Array:
        """Returns the probabilities of all classes: an array of shape (rows, classes) in the model's type."""
        return self.forest.predict_proba(X, **self._arguments(base_margin))

    def predict_log_proba(self, X: object, base_margin: object = None) -> Array:
        """Returns the logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X, base_margin)))

    def decision_function(self, X: object, base_margin: object = None) -> Array:
        """Returns the raw scores: shape (rows,) for a model of one score for each row, else (rows, scores)."""
        return self.forest.predict_raw(X, **self._arguments(base_margin))


class ForestRegressor(RegressorMixin, _ForestEstimator):  # type: ignore[misc]
    """A regressor of scikit-learn that a forest predicts for.

    Args:
        model: A :class:`forestvm.Forest`, a file or bytes that :func:`forestvm.load` takes, or a fitted model that
            ``from_xgboost``, ``from_lightgbm``, ``from_sklearn`` or ``from_catboost`` takes.
        missing: A number that stands for a missing value, beside NaN.
        columns: How columns of frames are matched: see :meth:`forestvm.Forest.predict`.
        extra: What columns are that the model does not know: see :meth:`forestvm.Forest.predict`.
    """

    def __init__(
        self, model: object, *, missing: float | None = None, columns: str | None = None, extra: str | None = None
    ) -> None:
        self.model = model
        self.missing = missing
        self.columns = columns
        self.extra = extra
        self.forest  # loads the model, so that a bad one is an error here

    def predict(self, X: object, base_margin: object = None) -> Array:
        """Returns the value of every row: shape (rows,) for a model of one output, else (rows, outputs).

        Args:
            X: The rows.
            base_margin: Margins of the rows, from which their sums start: see :meth:`forestvm.Forest.predict`.
        """
        return self.forest.predict(X, **self._arguments(base_margin))


def _forest_of(model: object) -> Forest:
    if isinstance(model, Forest):
        return model
    if isinstance(model, (str, os.PathLike, bytes, bytearray, memoryview)):
        return load(model)
    return from_model(model)


def _class_count(forest: Forest) -> int:
    try:
        return int(forest.predict_proba(np.empty((0, forest.num_features), np.float32)).shape[1])
    except Refused as error:
        raise Usage(f"the model is not a classifier: {error}") from None


def _labels_of(forest: Forest) -> Array:
    """Returns the labels that a model's file holds."""
    texts = list(forest.classes or ())
    if not texts:
        return np.arange(_class_count(forest))
    if all(text.removeprefix("-").isdecimal() and str(int(text)) == text for text in texts):
        return np.array([int(text) for text in texts])
    return np.array(texts)

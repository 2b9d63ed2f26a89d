"""The results of the methods of scikit-learn's own estimators, computed from a forest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._adapters import (
    Adapter,
    Array,
    Method,
    NotTaken,
    check_array,
    check_frame,
    check_names,
    frame_package,
    is_sparse,
    unknown_rows,
)
from .trainers import from_sklearn


_BLOCK = 1 << 20  # numbers that are checked at a time


class SklearnAdapter(Adapter):
    """The base of adapters of estimators that round rows to float32; HistAdapter alone compares in float64."""

    package = "sklearn"
    #: The attribute that holds the trees.
    source = "estimators_"

    def __init__(self, estimator: Any, options: dict[str, Any]) -> None:
        from sklearn.utils import get_tags  # type: ignore[import-untyped,unused-ignore]

        super().__init__(from_sklearn(estimator, **options), estimator)
        self._takes_nan = get_tags(estimator).input_tags.allow_nan

    def source_of(self, estimator: Any) -> object:
        return estimator.__dict__.get(self.source)

    def rows(self, estimator: Any, rows: Any, named_by: Any = None) -> Any:
        """Returns rows as an array or a sparse matrix. Rows that scikit-learn refuses are left to the estimator.

        Names of columns are compared with those of `named_by`, which is the estimator unless it is given.
        """
        read = rows
        sparse = is_sparse(rows, ("csr",))
        if frame_package(rows) == "pandas":
            read = _array_of(rows)
        elif type(rows) is not np.ndarray and not sparse:
            raise unknown_rows(rows)
        else:
            check_array(rows, estimator.n_features_in_)
        if sparse and (rows.indices.dtype != np.intc or rows.indptr.dtype != np.intc):
            raise NotTaken("the sparse matrix has 64-bit indices")
        if rows.shape[0] == 0:
            raise NotTaken("there are no rows")
        _check_finite(read.data if sparse else read, self._takes_nan and not sparse)
        check_names(estimator if named_by is None else named_by, rows)
        return read

    def methods(self, estimator: Any) -> Mapping[str, Method]:
        found: dict[str, Method] = {"predict": self._values}
        if hasattr(type(estimator), "predict_proba"):
            found = {"predict": self._labels, "predict_proba": self._predict_proba}
        return found

    def _values(self, estimator: Any, rows: Any) -> Array:
        return self.forest.predict(self.rows(estimator, rows))

    def _labels(self, estimator: Any, rows: Any) -> Array:
        return np.asarray(estimator.classes_.take(self.forest.predict_class(self.rows(estimator, rows)), axis=0))

    def _predict_proba(self, estimator: Any, rows: Any) -> Any:
        return self.forest.predict_proba(self.rows(estimator, rows))


def _array_of(frame: Any) -> Array:
    """Returns the numbers of a frame of pandas: without a copy if they have one type, otherwise as float32."""
    check_frame(frame, "pandas", categories=False)
    return np.asarray(frame.to_numpy() if len(set(frame.dtypes)) == 1 else frame.to_numpy(dtype=np.float32))


def _check_finite(numbers: Array, takes_nan: bool) -> None:
    """Refuses numbers that scikit-learn refuses once it has rounded them to float32."""
    step = max(1, _BLOCK // max(1, numbers[:1].size))
    for begin in range(0, len(numbers), step):
        with np.errstate(over="ignore", invalid="ignore"):
            block = np.asarray(numbers[begin : begin + step], dtype=np.float32)
            if np.isfinite(np.sum(block, dtype=np.float64)):
                continue
        if not takes_nan:
            raise NotTaken("the rows hold NaN, infinities, or numbers beyond float32")
        if np.isinf(block).any():
            raise NotTaken("the rows hold infinities, or numbers beyond float32")


class ForestAdapter(SklearnAdapter):
    """Random forests and RandomTreesEmbedding, also of several outputs."""

    def methods(self, estimator: Any) -> Mapping[str, Method]:
        if not hasattr(type(estimator), "predict"):
            return {"apply": self._apply}
        return {**super().methods(estimator), "apply": self._apply}

    def _apply(self, estimator: Any, rows: Any) -> Array:
        return self.forest.apply(self.rows(estimator, rows)).astype(np.int64)

    def _probabilities(self, estimator: Any, rows: Any) -> list[Array]:
        """Returns the probabilities of each output's classes."""
        values = self.forest.predict(self.rows(estimator, rows))
        ends = np.cumsum(estimator.n_classes_)
        return [np.ascontiguousarray(part) for part in np.split(values, ends[:-1], axis=1)]

    def _predict_proba(self, estimator: Any, rows: Any) -> Any:
        if estimator.n_outputs_ == 1:
            return super()._predict_proba(estimator, rows)
        return self._probabilities(estimator, rows)

    def _labels(self, estimator: Any, rows: Any) -> Array:
        if estimator.n_outputs_ == 1:
            return super()._labels(estimator, rows)
        parts = self._probabilities(estimator, rows)
        labels = np.empty((len(parts[0]), estimator.n_outputs_), dtype=estimator.classes_[0].dtype)
        for k, part in enumerate(parts):
            labels[:, k] = estimator.classes_[k].take(np.argmax(part, axis=1), axis=0)
        return labels


class TreeAdapter(ForestAdapter):
    """Single trees."""

    source = "tree_"

    def _apply(self, estimator: Any, rows: Any) -> Array:
        return super()._apply(estimator, rows)[:, 0]


class GradientBoostingAdapter(SklearnAdapter):
    """GradientBoostingClassifier and GradientBoostingRegressor."""

    def methods(self, estimator: Any) -> Mapping[str, Method]:
        found = {**super().methods(estimator), "apply": self._apply}
        if hasattr(type(estimator), "decision_function"):
            found["decision_function"] = self._decision_function
        return found

    def _decision_function(self, estimator: Any, rows: Any) -> Array:
        return self.forest.predict_raw(self.rows(estimator, rows))

    def _apply(self, estimator: Any, rows: Any) -> Array:
        # scikit-learn compares with the names of the first tree, which has none, and warns of frames.
        read = self.rows(estimator, rows, named_by=estimator.estimators_[0, 0])
        leaves = self.forest.apply(read).astype(np.float64)
        shape = estimator.estimators_.shape
        return leaves.reshape((len(leaves), *shape) if hasattr(type(estimator), "predict_proba") else (-1, shape[0]))


class HistAdapter(SklearnAdapter):
    """HistGradientBoosting, which compares in float64."""

    source = "_predictors"
    ulps = 3

    def rows(self, estimator: Any, rows: Any, named_by: Any = None) -> Any:
        package = frame_package(rows)
        if package == "pandas":
            check_frame(rows, package, categories=True)
        elif type(rows) is not np.ndarray:
            raise unknown_rows(rows)
        else:
            check_array(rows, estimator.n_features_in_)
        check_names(estimator if named_by is None else named_by, rows)
        if package == "pandas" and not hasattr(estimator, "feature_names_in_"):
            raise NotTaken("the rows are a frame, and the estimator was fitted without names")
        return rows

    def methods(self, estimator: Any) -> Mapping[str, Method]:
        if not hasattr(type(estimator), "predict_proba"):
            return super().methods(estimator)
        return {**super().methods(estimator), "decision_function": self._decision_function}

    def _decision_function(self, estimator: Any, rows: Any) -> Array:
        return self.forest.predict_raw(self.rows(estimator, rows))


class AdaBoostAdapter(SklearnAdapter):
    """AdaBoostClassifier, whose labels come from decisions."""

    ulps = 4

    def methods(self, estimator: Any) -> Mapping[str, Method]:
        return {
            "predict": self._labels,
            "predict_proba": self._predict_proba,
            "decision_function": self._decision_function,
        }

    def _decision_function(self, estimator: Any, rows: Any) -> Array:
        votes: Array = self.forest.predict_raw(self.rows(estimator, rows)) / estimator.estimator_weights_.sum()
        if estimator.n_classes_ != 2:
            return votes
        votes[:, 0] *= -1
        return np.asarray(votes.sum(axis=1))

    def _labels(self, estimator: Any, rows: Any) -> Array:
        decision = self._decision_function(estimator, rows)
        chosen = decision > 0 if decision.ndim == 1 else np.argmax(decision, axis=1)
        return np.asarray(estimator.classes_.take(chosen, axis=0))


class IsolationForestAdapter(SklearnAdapter):
    """IsolationForest: decisions, and 1 or -1."""

    absolute = 2.3e-16

    def methods(self, estimator: Any) -> Mapping[str, Method]:
        return {"predict": self._labels, "decision_function": self._values}

    def _labels(self, estimator: Any, rows: Any) -> Array:
        return np.where(self._values(estimator, rows) < 0, -1, 1)


_ADAPTERS: Mapping[str, type[SklearnAdapter]] = {
    "BaseDecisionTree": TreeAdapter,
    "BaseForest": ForestAdapter,
    "BaseGradientBoosting": GradientBoostingAdapter,
    "BaseHistGradientBoosting": HistAdapter,
    "AdaBoostClassifier": AdaBoostAdapter,
    "IsolationForest": IsolationForestAdapter,
}


def sklearn_adapter(estimator: Any, options: dict[str, Any]) -> Adapter:
    """Returns the adapter of a fitted estimator of scikit-learn. Raises Refused if the estimator is not supported."""
    names = [base.__name__ for base in type(estimator).__mro__]
    kind = next((_ADAPTERS[name] for name in names if name in _ADAPTERS), SklearnAdapter)
    return kind(estimator, options)

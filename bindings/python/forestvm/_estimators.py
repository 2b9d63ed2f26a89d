"""Writes a fitted scikit-learn estimator as the bytes of a .skops file.

The reader of .skops files then reads estimators in memory too, so both have the same numbers and the same refusals. A
file holds only the attributes that the reader asks for, and is written here: the package skops is not needed.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

_TREE = ("tree_", "classes_", "n_outputs_")
_FOREST = ("estimators_", "classes_", "n_outputs_")

# Attributes that the reader asks for, besides those of every estimator. Base classes follow the classes they serve.
_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "BaseDecisionTree": _TREE,
    "BaseForest": _FOREST,
    "IsolationForest": (
        "estimators_",
        "estimators_features_",
        "offset_",
        "max_samples_",
        "_max_samples",
        "_max_features",
        "_decision_path_lengths",
        "_average_path_length_per_tree",
    ),
    "BaseBagging": (*_FOREST, "estimators_features_", "n_estimators"),
    "AdaBoostClassifier": (*_FOREST, "estimator_weights_", "algorithm"),
    "BaseGradientBoosting": (*_FOREST, "loss", "init", "init_", "learning_rate"),
    "BaseHistGradientBoosting": (
        "classes_",
        "loss",
        "is_categorical_",
        "_baseline_prediction",
        "_predictors",
        "_preprocessor",
    ),
    "TreePredictor": ("nodes", "raw_left_cat_bitsets"),
    "ColumnTransformer": ("transformers_",),
    "OrdinalEncoder": ("categories_",),
    "DummyClassifier": ("class_prior_",),
    "DummyRegressor": ("constant_",),
    "Pipeline": ("steps",),
}
_OF_ALL = ("n_features_in_", "feature_names_in_")


def skops_bytes(estimator: object) -> bytes:
    """Returns the .skops file of a fitted estimator of scikit-learn, as the installed release predicts with it."""
    import sklearn  # type: ignore[import-untyped,unused-ignore]

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        schema = _Writer(archive, sklearn.__version__).node(estimator)
        schema["protocol"] = 2
        archive.writestr("schema.json", json.dumps(schema))
    return file.getvalue()


def _attributes_of(kind: type) -> tuple[str, ...]:
    """Returns the names of the attributes to read from an instance: those of the nearest class in the table."""
    for base in kind.__mro__:
        if base.__name__ in _ATTRIBUTES and base.__module__.startswith("sklearn."):
            return _OF_ALL + _ATTRIBUTES[base.__name__]
    return ()


class _Writer:
    """Makes nodes of schema.json, and entries of the archive for arrays."""

    def __init__(self, archive: zipfile.ZipFile, version: str) -> None:
        self._archive = archive
        self._version = version
        self._arrays = 0

    def node(self, value: Any) -> dict[str, Any]:
        """Returns the node of an object; one of an unknown class has no attributes."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return self._named(value, "JsonNode", content=json.dumps(value))
        if isinstance(value, (np.ndarray, np.generic)):
            return self._array(np.asarray(value))
        if isinstance(value, (list, tuple)):
            return self._named(value, "ListNode", content=[self.node(item) for item in value])
        if type(value).__name__ == "Tree" and type(value).__module__ == "sklearn.tree._tree":
            state = value.__getstate__()
            return self._named(
                value, "TreeNode", content=self._members({key: state[key] for key in ("nodes", "values")})
            )
        return self._object(value)

    @staticmethod
    def _named(value: object, loader: str, **rest: Any) -> dict[str, Any]:
        kind = type(value)
        return {"__class__": kind.__name__, "__module__": kind.__module__, "__loader__": loader, **rest}

    def _members(self, members: Mapping[str, Any]) -> dict[str, Any]:
        content = {name: self.node(value) for name, value in members.items()}
        return self._named({}, "DictNode", content=content)

    def _object(self, value: object) -> dict[str, Any]:
        # vars() instead of getattr(): properties may compute, and a class may answer to any name.
        state = vars(value) if hasattr(value, "__dict__") else {}
        members = {name: state[name] for name in _attributes_of(type(value)) if name in state}
        if type(value).__module__.startswith("sklearn."):
            members["_sklearn_version"] = self._version
        return self._named(value, "ObjectNode", content=self._members(members))

    def _array(self, array: npt.NDArray[Any]) -> dict[str, Any]:
        if array.dtype.hasobject:
            items = [self.node(item) for item in (array if array.ndim > 0 else [array.item()])]
            return self._named(array, "NdArrayNode", type="json", content=items)
        array = np.ascontiguousarray(array).reshape(array.shape)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        name = f"{self._arrays}.npy"
        self._arrays += 1
        with self._archive.open(name, "w", force_zip64=False) as entry:
            np.lib.format.write_array(entry, array, allow_pickle=False)
        return self._named(array, "NdArrayNode", type="numpy", file=name)

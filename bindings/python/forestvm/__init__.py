"""Runs trained decision forests: XGBoost, LightGBM, CatBoost, scikit-learn, ONNX and others.

    forest = forestvm.load("model.json")
    forest.predict(X)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._core import EncodedRows, __version__
from ._errors import (
    ContractWarning,
    Environment,
    Error,
    FeatureMismatch,
    Internal,
    Refused,
    UnsupportedInput,
    Usage,
)
from ._forest import Forest
from ._load import load

if TYPE_CHECKING:
    from ._accelerate import accelerate, log
    from ._explanation import Explanation
    from .trainers import from_catboost, from_lightgbm, from_sklearn, from_xgboost

__all__ = [
    "ContractWarning",
    "EncodedRows",
    "Environment",
    "Error",
    "Explanation",
    "FeatureMismatch",
    "Forest",
    "Internal",
    "Refused",
    "UnsupportedInput",
    "Usage",
    "__version__",
    "accelerate",
    "from_catboost",
    "from_lightgbm",
    "from_sklearn",
    "from_xgboost",
    "load",
    "log",
]

# Functions and classes whose modules are imported when they are first used. A module with a name here would hide the
# function or class once it is imported, so there is none.
_LATER = {
    "Explanation": "_explanation",
    "accelerate": "_accelerate",
    "log": "_accelerate",
    "from_catboost": "trainers",
    "from_lightgbm": "trainers",
    "from_sklearn": "trainers",
    "from_xgboost": "trainers",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'forestvm' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

"""Makes forests of models that XGBoost, LightGBM, scikit-learn or CatBoost hold in memory.

None of these packages is imported here: whoever holds a model has imported its package.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from ._errors import Refused, UnsupportedInput, Usage
from ._estimators import skops_bytes
from ._forest import Forest
from ._load import load

__all__ = ["from_catboost", "from_lightgbm", "from_sklearn", "from_xgboost"]


def from_xgboost(model: object, *, iteration_range: tuple[int, int] | None = None, **options: Any) -> Forest:
    """Compiles a model of XGBoost.

    Args:
        model: An ``xgboost.Booster``, or a fitted ``XGBModel`` (``XGBClassifier``, ``XGBRegressor``, ``XGBRanker`` and
            others).
        iteration_range: Boosting rounds ``(begin, end)`` to use, counted from 0, ``end`` not included; an ``end`` of 0
            stands for all rounds. By default those that the model's own ``predict`` uses: an ``XGBModel`` that
            stopped early uses the rounds up to ``best_iteration``, a ``Booster`` uses all.
        **options: Options of :func:`forestvm.load`.

    Returns:
        A forest with the numbers of the Booster; for ``multi:softmax`` these are numbers of classes. Values that an
        ``XGBModel`` takes for missing (``missing=``) must be given to ``predict`` again; a warning says so.

    Raises:
        UnsupportedInput: The object is not a model of XGBoost.
        Usage: The model is not fitted, or has fewer rounds.
        Refused: The model has a part that is not supported, for example ``booster="gblinear"``.
    """
    booster, best = _xgboost_booster(model)
    missing = getattr(model, "missing", math.nan)
    if isinstance(missing, (int, float)) and not math.isnan(missing):
        warnings.warn(
            f"the model takes {missing!r} for missing: give missing={missing!r} to predict as well",
            UserWarning,
            stacklevel=2,
        )
    if callable(getattr(model, "objective", None)):
        _warn_of_objective()
    return _xgboost_forest(booster, best if iteration_range is None else iteration_range, options)


def from_lightgbm(
    model: object, *, start_iteration: int = 0, num_iteration: int | None = None, **options: Any
) -> Forest:
    """Compiles a model of LightGBM.

    Args:
        model: A ``lightgbm.Booster``, or a fitted ``LGBMModel`` (``LGBMClassifier``, ``LGBMRegressor``,
            ``LGBMRanker``).
        start_iteration: The first boosting round to use.
        num_iteration: How many rounds to use; 0 or less stands for all. By default those that ``predict`` uses: the
            rounds up to ``best_iteration`` if the model stopped early and starts with the first round, else all.
        **options: Options of :func:`forestvm.load`.

    Returns:
        A forest with the numbers of ``Booster.predict``. Columns of a frame, also those of categories, are matched by
        name; LightGBM itself matches them by position.

    Raises:
        UnsupportedInput: The object is not a model of LightGBM.
        Usage: The model is not fitted, or has fewer rounds.
        Refused: The model has a part that is not supported.
    """
    text = _lightgbm_text(_lightgbm_booster(model), start_iteration, num_iteration)
    if text.find("\nobjective=", 0, text.find("\nTree=")) < 0:
        _warn_of_objective()
    return load(text.encode(), **options)


def from_sklearn(estimator: object, **options: Any) -> Forest:
    """Compiles a fitted estimator of scikit-learn.

    Args:
        estimator: A tree, a forest (``RandomForest``, ``ExtraTrees``, ``RandomTreesEmbedding``), ``GradientBoosting``,
            ``HistGradientBoosting``, ``Bagging`` of trees, ``AdaBoost`` or ``IsolationForest``, or a
            ``Pipeline`` of one whose other steps change nothing. docs/formats.md lists what is supported.
        **options: Options of :func:`forestvm.load`.

    Returns:
        A forest whose values are what ``predict_proba`` of a classifier, ``predict`` of a regressor and
        ``decision_function`` of an ``IsolationForest`` give. Several outputs stand side by side.

    Raises:
        UnsupportedInput: The estimator is not one of scikit-learn.
        Refused: The estimator is not fitted, or not supported.
    """
    if _trainer_of(estimator) != "sklearn":
        raise _not_of(estimator, "from_sklearn")
    try:
        return load(skops_bytes(estimator), **options)
    except Refused as error:  # removes the name of the file, which does not exist here
        message, where = (text.removeprefix("schema.json").removeprefix(": ") for text in (str(error), error.where))
        raise Refused(message, where) from None


def from_catboost(model: object, **options: Any) -> Forest:
    """Compiles a model of CatBoost, through a temporary file.

    Args:
        model: A fitted ``catboost.CatBoost``, ``CatBoostClassifier``, ``CatBoostRegressor`` or ``CatBoostRanker``.
        **options: Options of :func:`forestvm.load`.

    Raises:
        UnsupportedInput: The object is not a model of CatBoost.
        Usage: The model is not fitted.
        Refused: The model has a part that is not supported.
    """
    catboost = sys.modules.get("catboost")
    if catboost is None or not isinstance(model, catboost.CatBoost):
        raise _not_of(model, "from_catboost")
    if not model.is_fitted():
        raise Usage("the model is not fitted")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.cbm")
        model.save_model(path, format="cbm")
        return load(path, **options)


def from_model(model: object, **options: Any) -> Forest:
    """Compiles a model of any of the trainers, with the function for it.

    Raises:
        UnsupportedInput: The trainer of the model is not known.
    """
    trainer = _trainer_of(model)
    if trainer is None:
        raise _not_of(model, "from_model")
    return _FUNCTIONS[trainer](model, **options)


def _trainer_of(model: object) -> str | None:
    """Returns the package that a model's class, or a class it derives from, belongs to."""
    for base in type(model).__mro__:
        root = base.__module__.partition(".")[0]
        if root in _FUNCTIONS and base.__module__ != "sklearn.base":  # many packages derive classes from sklearn.base
            return root
    return None


_FUNCTIONS: Mapping[str, Callable[..., Forest]] = {
    "xgboost": from_xgboost,
    "lightgbm": from_lightgbm,
    "sklearn": from_sklearn,
    "catboost": from_catboost,
}


def _not_of(model: object, function: str) -> Exception:
    """Returns the error that a function gives for a model of another trainer."""
    known = _trainer_of(model)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    other = f": use {_FUNCTIONS[known].__name__}" if known is not None else ""
    return UnsupportedInput(f"{function} does not take an object of {kind}{other}")


def _warn_of_objective() -> None:
    warnings.warn(
        "the model was trained with an objective of your own, which it does not contain: values are raw scores",
        UserWarning,
        stacklevel=3,
    )


def _xgboost_booster(model: object) -> tuple[Any, tuple[int, int] | None]:
    """Returns the Booster of a model, and the rounds that the model's predict uses; None if it uses all."""
    xgboost = sys.modules.get("xgboost")
    if xgboost is None or not isinstance(model, (xgboost.Booster, xgboost.XGBModel)):
        raise _not_of(model, "from_xgboost")
    if isinstance(model, xgboost.Booster):
        return model, None
    try:
        booster = model.get_booster()
    except ValueError as error:  # scikit-learn's NotFittedError
        raise Usage(f"the model is not fitted: {error}") from None
    try:
        return booster, (0, model.best_iteration + 1)
    except AttributeError:
        return booster, None


def _xgboost_forest(booster: Any, rounds: tuple[int, int] | None, options: dict[str, Any]) -> Forest:
    if rounds is not None:
        count = booster.num_boosted_rounds()
        begin, end = rounds[0], rounds[1] or count
        if not 0 <= begin < end <= count:
            raise Usage(f"iteration_range={rounds} is not within the model's {count} rounds")
        rounds = (begin, end)
    return load(bytes(booster.save_raw(raw_format="ubj")), rounds=rounds, **options)


def _lightgbm_booster(model: object) -> Any:
    lightgbm = sys.modules.get("lightgbm")
    if lightgbm is None or not isinstance(model, (lightgbm.Booster, lightgbm.LGBMModel)):
        raise _not_of(model, "from_lightgbm")
    if isinstance(model, lightgbm.Booster):
        return model
    try:
        return model.booster_
    except ValueError as error:  # scikit-learn's NotFittedError
        raise Usage(f"the model is not fitted: {error}") from None


def _lightgbm_text(booster: Any, start_iteration: int, num_iteration: int | None) -> str:
    """Returns the text of the model with the rounds that Booster.predict uses when it is given these numbers."""
    start = max(start_iteration, 0)
    if num_iteration is None:  # model_to_string would take best_iteration for the number of rounds after any start
        num_iteration = booster.best_iteration if start == 0 else -1
    count = booster.current_iteration()
    if start > 0 and start >= count:
        raise Usage(f"start_iteration={start} is not within the model's {count} rounds")
    text: str = booster.model_to_string(num_iteration=num_iteration or -1, start_iteration=start)
    return text

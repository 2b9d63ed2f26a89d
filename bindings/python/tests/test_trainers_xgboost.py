"""from_xgboost gives the numbers of the Booster and of the classes of xgboost.sklearn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_models import (
    COUNTS,
    FEATURES,
    assert_bits,
    assert_ulps,
    awkward_rows,
    binary,
    classes,
    forms,
    resized,
    target,
    training_rows,
)

import forestvm

xgboost = pytest.importorskip("xgboost")

NAMES = [f"column {i}" for i in range(FEATURES)]
SMALL: dict[str, Any] = {"n_estimators": 7, "max_depth": 4, "n_jobs": 1}


def _regressor(**parameters: Any) -> Any:
    rows = training_rows()
    return xgboost.XGBRegressor(**SMALL, **parameters).fit(rows, np.abs(target(rows)))


def _classifier(labels: Any, kind: Any = None, **parameters: Any) -> Any:
    rows = training_rows()
    return (kind or xgboost.XGBClassifier)(**SMALL, **parameters).fit(rows, labels(rows))


def _ranker() -> Any:
    rows = training_rows()
    return xgboost.XGBRanker(**SMALL).fit(rows, classes(rows), qid=np.repeat(np.arange(40), 10))


def _two_targets(**parameters: Any) -> Any:
    rows = training_rows()
    return xgboost.XGBRegressor(**SMALL, **parameters).fit(rows, np.c_[target(rows), rows[:, 0]])


MODELS = {
    "squared error": _regressor,
    "poisson": lambda: _regressor(objective="count:poisson"),
    "dart": lambda: _regressor(booster="dart", rate_drop=0.5),
    "binary": lambda: _classifier(binary),
    "raw scores of two classes": lambda: _classifier(binary, objective="binary:logitraw"),
    "dart, binary": lambda: _classifier(binary, booster="dart", rate_drop=0.5),
    "softprob": lambda: _classifier(classes),
    "softmax": lambda: _classifier(classes, objective="multi:softmax"),
    "random forest": lambda: _classifier(binary, xgboost.XGBRFClassifier),
    "ranker": _ranker,
    "two targets": _two_targets,
    "vector leaves": lambda: _two_targets(multi_strategy="multi_output_tree"),
}


def thresholds(booster: Any) -> list[tuple[int, float]]:
    """Returns the thresholds of all splits."""
    trees = booster.trees_to_dataframe()
    splits = trees[trees.Feature != "Leaf"]
    names = booster.feature_names or [f"f{i}" for i in range(FEATURES)]
    return [(names.index(name), number) for name, number in zip(splits.Feature, splits.Split)]


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_the_boosters(name: str) -> None:
    model = MODELS[name]()
    forest = forestvm.from_xgboost(model)
    dart = model.booster == "dart"
    # Trees of vector leaves cannot be listed. A DMatrix takes no infinities.
    listed = [] if name == "vector leaves" else thresholds(model.get_booster())
    rows = awkward_rows(listed, infinite=not dart)
    for _, form in forms():
        for count in COUNTS:
            given = form(resized(rows, count))
            margins, values = of_matrix(model, given) if dart else in_place(model, given)
            assert_bits(forest.predict_raw(given), margins)
            assert_ulps(forest.predict(given), values, 2)
            if forest.objective == "binary:logitraw":  # the wrapper's "probabilities" are raw scores and 1 - raw scores
                with pytest.raises(forestvm.Refused, match="not probabilities"):
                    forest.predict_proba(given)
            elif hasattr(model, "predict_proba") and not dart:
                assert_ulps_of_pair(forest.predict_proba(given), model.predict_proba(given))


def in_place(model: Any, rows: Any) -> tuple[Any, Any]:
    """Returns margins and values as the classes of xgboost.sklearn compute them."""
    booster = model.get_booster()
    return booster.inplace_predict(rows, predict_type="margin"), booster.inplace_predict(rows)


def of_matrix(model: Any, rows: Any) -> tuple[Any, Any]:
    """Returns margins and values of a DMatrix: in-place prediction rounds the sums of DART in another way."""
    booster, matrix = model.get_booster(), xgboost.DMatrix(rows)
    return booster.predict(matrix, output_margin=True), booster.predict(matrix)


@pytest.mark.parametrize("name", ["squared error", "binary", "softprob", "softmax", "vector leaves"])
def test_no_rows_have_the_shapes_of_rows(name: str) -> None:
    forest, none = forestvm.from_xgboost(MODELS[name]()), np.empty((0, FEATURES), np.float32)
    one = training_rows()[:1]
    for method in (forest.predict, forest.predict_raw, forest.apply):
        assert method(none).shape == (0, *method(one).shape[1:])


def assert_ulps_of_pair(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Requires probabilities to be within 2 ulp. Of two classes, p and 1 - p share the ulp of the larger one."""
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    scale = theirs.max(axis=1, keepdims=True) if theirs.shape[1] == 2 else theirs
    assert (np.abs(ours - theirs) <= 2 * np.spacing(scale)).all()


@pytest.mark.parametrize("name", [name for name in MODELS if name != "vector leaves"])  # these have no leaf numbers
def test_leaves_are_the_boosters(name: str) -> None:
    model = MODELS[name]()
    rows = awkward_rows(thresholds(model.get_booster()), infinite=False)
    leaves = model.get_booster().predict(xgboost.DMatrix(rows), pred_leaf=True)
    np.testing.assert_array_equal(forestvm.from_xgboost(model).apply(rows), leaves.reshape(len(rows), -1))


def test_labels_are_the_classifiers() -> None:
    rows = awkward_rows([])
    for name in ("binary", "raw scores of two classes", "softprob", "softmax", "random forest"):
        model = MODELS[name]()
        np.testing.assert_array_equal(forestvm.from_xgboost(model).predict_class(rows), model.predict(rows))


def test_frames_are_matched_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(training_rows(), columns=NAMES)
    model = xgboost.XGBRegressor(**SMALL).fit(rows, target(rows.to_numpy()))
    forest = forestvm.from_xgboost(model)
    assert list(forest.feature_names) == NAMES
    assert_bits(forest.predict(rows[NAMES[::-1]]), model.predict(rows))
    with pytest.raises(forestvm.FeatureMismatch):
        forest.predict(rows[NAMES[1:]])


def test_categories_are_matched_by_value() -> None:
    pandas = pytest.importorskip("pandas")
    words = np.array(["red", "green", "blue"])
    rows = pandas.DataFrame(training_rows(), columns=NAMES)
    rows["colour"] = pandas.Categorical(words[np.arange(len(rows)) % 3])
    y = (rows.colour == "blue").to_numpy() + rows[NAMES[0]].to_numpy()
    model = xgboost.XGBRegressor(**SMALL, enable_categorical=True).fit(rows, y)
    forest = forestvm.from_xgboost(model)
    assert_bits(forest.predict(rows), model.predict(rows))
    other = rows.assign(colour=rows.colour.cat.set_categories(["blue", "red", "green"]))
    assert_bits(forest.predict(other), model.predict(rows))


def test_rounds_are_those_of_iteration_range() -> None:
    rows = training_rows()
    for name in ("squared error", "dart", "softprob", "vector leaves"):
        model = MODELS[name]()
        booster = model.get_booster()
        for begin, end in ((0, 1), (0, 3), (2, 5), (0, 0), (0, 7)):
            forest = forestvm.from_xgboost(booster, iteration_range=(begin, end))
            wanted = booster.predict(xgboost.DMatrix(rows), output_margin=True, iteration_range=(begin, end))
            assert_bits(forest.predict_raw(rows), wanted)
        for bad in ((0, 8), (3, 2), (-1, 2), (7, 0)):
            with pytest.raises(forestvm.Usage, match="7 rounds"):
                forestvm.from_xgboost(booster, iteration_range=bad)


def test_options_are_those_of_load() -> None:
    model = MODELS["binary"]()
    assert forestvm.from_xgboost(model, contract="reproducible").contract == "reproducible"
    with pytest.raises(forestvm.Usage):
        forestvm.from_xgboost(model, contract="nonsense")


def test_what_is_no_model_is_an_error() -> None:
    for nothing in (None, "model.json", object(), np.zeros(3)):
        with pytest.raises(forestvm.UnsupportedInput, match="from_xgboost does not take"):
            forestvm.from_xgboost(nothing)
    with pytest.raises(forestvm.Usage, match="not fitted"):
        forestvm.from_xgboost(xgboost.XGBClassifier())
    with pytest.raises(forestvm.UnsupportedInput, match="use from_xgboost"):
        forestvm.from_sklearn(MODELS["binary"]())


def test_linear_models_are_refused_by_name() -> None:
    rows = np.nan_to_num(training_rows())
    model = xgboost.XGBRegressor(booster="gblinear", n_estimators=2).fit(rows, target(rows))
    with pytest.raises(forestvm.Refused, match="gblinear"):
        forestvm.from_xgboost(model)

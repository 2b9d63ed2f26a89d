"""from_sklearn gives the numbers of scikit-learn's estimators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from small_models import COUNTS, assert_bits, awkward_rows, binary, classes, forms, resized, target, training_rows

import forestvm

pytest.importorskip("sklearn")
from sklearn import ensemble, pipeline, preprocessing, tree  # noqa: E402

WORDS = np.array(["no", "perhaps", "rather", "yes"])


def rows_without_missing() -> np.ndarray:
    return np.nan_to_num(training_rows(), nan=0.5)


def _fit(kind: type, labels: Any, rows: Any = None, **parameters: Any) -> Any:
    rows = training_rows() if rows is None else rows
    if "random_state" in kind().get_params():
        parameters["random_state"] = 0
    return kind(**parameters).fit(rows, labels(rows))


def _words(rows: np.ndarray) -> np.ndarray:
    return WORDS[classes(rows)]


def _two(rows: np.ndarray) -> np.ndarray:
    return np.c_[target(rows), rows[:, 0]]


def _two_labels(rows: np.ndarray) -> np.ndarray:
    return np.c_[classes(rows), binary(rows)]


def _boosted(kind: type, labels: Any, **parameters: Any) -> Any:
    return _fit(kind, labels, rows_without_missing(), n_estimators=6, **parameters)


MODELS = {
    "tree of words": lambda: _fit(tree.DecisionTreeClassifier, _words, max_depth=5),
    "tree": lambda: _fit(tree.DecisionTreeRegressor, target, max_depth=5),
    "extra tree": lambda: _fit(tree.ExtraTreeRegressor, target, max_depth=6),
    "tree of two targets": lambda: _fit(tree.DecisionTreeRegressor, _two, max_depth=5),
    "forest of words": lambda: _fit(ensemble.RandomForestClassifier, _words, n_estimators=6),
    "forest": lambda: _fit(ensemble.RandomForestRegressor, target, n_estimators=6),
    "forest of two targets": lambda: _fit(ensemble.RandomForestRegressor, _two, n_estimators=6),
    "extra trees": lambda: _fit(ensemble.ExtraTreesClassifier, binary, n_estimators=6),
    "boosting": lambda: _boosted(ensemble.GradientBoostingRegressor, target),
    "boosting of classes": lambda: _boosted(ensemble.GradientBoostingClassifier, classes),
    "boosting of two classes": lambda: _boosted(ensemble.GradientBoostingClassifier, binary),
    "exponential boosting": lambda: _boosted(ensemble.GradientBoostingClassifier, binary, loss="exponential"),
    "histograms": lambda: _fit(ensemble.HistGradientBoostingRegressor, target, max_iter=6),
    "poisson": lambda: _fit(
        ensemble.HistGradientBoostingRegressor, lambda x: np.abs(target(x)), max_iter=6, loss="poisson"
    ),
    "histograms of words": lambda: _fit(ensemble.HistGradientBoostingClassifier, _words, max_iter=6),
    "histograms of two classes": lambda: _fit(ensemble.HistGradientBoostingClassifier, binary, max_iter=6),
    "bagging": lambda: _fit(ensemble.BaggingRegressor, target, n_estimators=6, max_features=0.5),
    "bagging of words": lambda: _fit(ensemble.BaggingClassifier, _words, n_estimators=6, max_samples=0.1),
    "isolation": lambda: _fit(ensemble.IsolationForest, target, n_estimators=6),
    "isolation of features": lambda: _fit(ensemble.IsolationForest, target, n_estimators=6, max_features=3),
    "weights": lambda: _boosted(ensemble.AdaBoostClassifier, _words),
    "weights of two classes": lambda: _boosted(ensemble.AdaBoostClassifier, binary),
    "median": lambda: _boosted(ensemble.AdaBoostRegressor, target),
}


def _trees(model: Any) -> Iterator[Any]:
    if hasattr(model, "tree_"):
        yield model
    elif hasattr(model, "_predictors"):
        yield from ()
    else:
        yield from np.ravel(np.asarray(model.estimators_, dtype=object))


def _thresholds(model: Any) -> list[tuple[int, float]]:
    out = []
    for predictor in (p for stage in getattr(model, "_predictors", ()) for p in stage):
        splits = predictor.nodes[predictor.nodes["is_leaf"] == 0]
        out += [(int(f), float(t)) for f, t in zip(splits["feature_idx"], splits["num_threshold"])]
    for one in _trees(model):
        nodes = one.tree_
        splits = nodes.feature >= 0
        # Trees of bagged features number features in their own way. The threshold is tried in the column of that
        # number.
        out += [(int(f), float(t)) for f, t in zip(nodes.feature[splits], nodes.threshold[splits])]
    return out


def rows_for(model: Any) -> np.ndarray:
    """Returns rows that the estimator takes: few take infinities, some take missing values."""
    from sklearn.utils import get_tags

    compares_float64 = hasattr(model, "_predictors")
    takes_nan = get_tags(model).input_tags.allow_nan
    return awkward_rows(_thresholds(model), missing=takes_nan, infinite=compares_float64)


def _close(ours: np.ndarray, theirs: np.ndarray, ulps: int, absolute: float = 0) -> None:
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    scale = np.abs(theirs)
    if theirs.ndim == 2 and theirs.shape[1] == 2:
        scale = scale.max(axis=1, keepdims=True)
    assert (np.abs(ours - theirs) <= np.maximum(ulps * np.spacing(scale), absolute)).all()


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_the_estimators(name: str) -> None:
    model = MODELS[name]()
    forest = forestvm.from_sklearn(model)
    rows = rows_for(model)
    averaged = not any(word in name for word in ("boosting", "histograms", "poisson", "isolation", "weights"))
    for form_name, form in forms(sparse=False):
        for count in COUNTS:
            given = form(resized(rows, count))
            if "isolation" in name:
                _close(forest.predict(given), model.decision_function(given), 0, 2.3e-16)
                continue
            if hasattr(model, "predict_proba"):
                ours, theirs = forest.predict_proba(given), model.predict_proba(given)
                np.testing.assert_array_equal(model.classes_[forest.predict_class(given)], model.predict(given))
            else:
                ours, theirs = forest.predict(given), model.predict(given)
            if averaged:
                assert_bits(ours, theirs)
            else:
                _close(ours, theirs, 4 if "weights" in name else 3 if "histograms" in name else 2)


@pytest.mark.parametrize("name", [name for name in MODELS if "histograms" not in name and name != "poisson"])
def test_sparse_rows_are_the_estimators(name: str) -> None:
    from scipy.sparse import csr_matrix

    model = MODELS[name]()
    rows = csr_matrix(awkward_rows(_thresholds(model), missing=False, infinite=False).astype(np.float32))
    forest = forestvm.from_sklearn(model)
    if "isolation" in name:
        _close(forest.predict(rows), model.decision_function(rows), 0, 2.3e-16)
    elif hasattr(model, "predict_proba"):
        _close(forest.predict_proba(rows), model.predict_proba(rows), 4)
    else:
        _close(forest.predict(rows), model.predict(rows), 2)


@pytest.mark.parametrize("name", ["tree", "forest of words", "boosting of classes"])
def test_leaves_are_the_estimators(name: str) -> None:
    model = MODELS[name]()
    rows = rows_for(model)
    leaves = forestvm.from_sklearn(model).apply(rows)
    np.testing.assert_array_equal(leaves, model.apply(rows).reshape(len(rows), -1))


def test_embeddings_give_leaves() -> None:
    model = ensemble.RandomTreesEmbedding(n_estimators=4, random_state=0).fit(rows_without_missing())
    rows = rows_without_missing()
    np.testing.assert_array_equal(forestvm.from_sklearn(model).apply(rows), model.apply(rows))


def test_several_outputs_of_classes_stand_side_by_side() -> None:
    rows = training_rows()
    model = ensemble.RandomForestClassifier(n_estimators=4, random_state=0).fit(rows, _two_labels(rows))
    forest = forestvm.from_sklearn(model)
    assert_bits(forest.predict(rows), np.hstack(model.predict_proba(rows)))
    labels = np.concatenate(model.classes_)[forest.predict_class(rows)]
    np.testing.assert_array_equal(labels, model.predict(rows))


@pytest.mark.parametrize("kind", [str, object, np.int8, bool, np.float64])
def test_labels_of_all_types_are_written(kind: Any) -> None:
    rows = training_rows()
    labels = np.where(binary(rows) > 0, "1", "0").astype(kind if kind in (str, object) else int).astype(kind)
    model = ensemble.RandomForestClassifier(n_estimators=2, random_state=0).fit(rows, labels)
    forest = forestvm.from_sklearn(model)
    assert list(forest.classes) == [str(label) for label in model.classes_.tolist()]
    np.testing.assert_array_equal(model.classes_[forest.predict_class(rows)], model.predict(rows))


def test_categories_are_those_of_the_encoder() -> None:
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(training_rows(), columns=[f"c{i}" for i in range(6)])
    rows["colour"] = pandas.Categorical(np.array(["red", "green", "blue"])[np.arange(len(rows)) % 3])
    y = (rows.colour == "blue").to_numpy() * 2 + target(rows[[f"c{i}" for i in range(6)]].to_numpy())
    model = ensemble.HistGradientBoostingRegressor(max_iter=6, categorical_features=["colour"]).fit(rows, y)
    forest = forestvm.from_sklearn(model)
    assert_bits(forest.predict(rows), model.predict(rows))
    numbers = training_rows()
    numbers[:, 1] = np.abs(numbers[:, 1])
    model = ensemble.HistGradientBoostingRegressor(max_iter=6, categorical_features=[1]).fit(numbers, target(numbers))
    assert_bits(forestvm.from_sklearn(model).predict(numbers), model.predict(numbers))


def test_pipelines_that_change_nothing_are_read() -> None:
    model = MODELS["forest"]()
    rows = training_rows()
    forest = forestvm.from_sklearn(pipeline.Pipeline([("nothing", "passthrough"), ("forest", model)]))
    assert_bits(forest.predict(rows), model.predict(rows))
    scaled = pipeline.make_pipeline(preprocessing.StandardScaler(), model)
    with pytest.raises(forestvm.Refused, match="StandardScaler, changes the rows"):
        forestvm.from_sklearn(scaled)


def test_trees_in_the_other_byte_order_are_read() -> None:
    from forestvm._estimators import skops_bytes

    model = MODELS["histograms"]()
    rows = training_rows()
    expected = model.predict(rows)
    for predictor in (p for stage in model._predictors for p in stage):
        predictor.nodes = predictor.nodes.astype(predictor.nodes.dtype.newbyteorder(">"))
    assert_bits(forestvm.load(skops_bytes(model)).predict(rows), expected)


def test_what_is_not_supported_is_refused_by_name() -> None:
    from sklearn.linear_model import LogisticRegression

    rows, y = rows_without_missing(), binary(rows_without_missing())
    refused = {
        "not fitted": ensemble.RandomForestClassifier(),
        "LogisticRegression": LogisticRegression().fit(rows, y),
        "only ensembles of decision trees": ensemble.BaggingClassifier(LogisticRegression(), n_estimators=2).fit(
            rows, y
        ),
    }
    for text, model in refused.items():
        with pytest.raises(forestvm.Refused, match=text):
            forestvm.from_sklearn(model)
    with pytest.raises(forestvm.UnsupportedInput, match="from_sklearn does not take"):
        forestvm.from_sklearn(3)
    broken = ensemble.RandomForestRegressor(n_estimators=3).fit(rows, y)
    broken.estimators_[1].n_outputs_ = 1
    broken.estimators_[1].tree_ = tree.DecisionTreeRegressor().fit(rows, np.c_[y, y]).tree_
    with pytest.raises(forestvm.Refused, match="a tree of 2 outputs") as caught:
        forestvm.from_sklearn(broken)
    assert caught.value.where == "estimators_[1]"
    assert str(caught.value).startswith("estimators_[1]: ")


def test_a_class_derived_from_an_estimator_is_refused() -> None:
    class Own(ensemble.RandomForestClassifier):
        """A subclass, which could override how it predicts."""

    rows = training_rows()
    with pytest.raises(forestvm.Refused, match="Own is not a supported estimator"):
        forestvm.from_sklearn(Own(n_estimators=2).fit(rows, binary(rows)))

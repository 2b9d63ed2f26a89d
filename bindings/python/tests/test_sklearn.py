"""forestvm.sklearn: forests as estimators of scikit-learn."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import FEATURES, assert_bits, binary, classes, target, training_rows

import forestvm

pytest.importorskip("sklearn")
from sklearn.base import clone, is_classifier, is_regressor  # noqa: E402
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import MinMaxScaler  # noqa: E402
from sklearn.utils import get_tags  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

from forestvm.sklearn import ForestClassifier, ForestRegressor  # noqa: E402

WORDS = np.array(["no", "perhaps", "rather", "yes"])


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return training_rows()


@pytest.fixture(scope="module")
def trained(rows: np.ndarray) -> Any:
    return RandomForestClassifier(n_estimators=4, random_state=0).fit(rows, WORDS[classes(rows)])


@pytest.fixture(scope="module")
def regressor(rows: np.ndarray) -> Any:
    return RandomForestRegressor(n_estimators=4, random_state=0).fit(rows, target(rows))


def test_classifier_gives_labels_and_probabilities(trained: Any, rows: np.ndarray) -> None:
    ours = ForestClassifier(trained)
    assert_bits(ours.classes_, trained.classes_)
    assert_bits(ours.predict(rows), trained.predict(rows))
    assert_bits(ours.predict_proba(rows), trained.predict_proba(rows))
    assert_bits(ours.apply(rows), trained.apply(rows).astype(np.int32))
    assert ours.score(rows, trained.predict(rows)) == 1
    with np.errstate(divide="ignore"):
        assert_bits(ours.predict_log_proba(rows), np.log(ours.predict_proba(rows)))


def test_regressor_gives_values(regressor: Any, rows: np.ndarray) -> None:
    ours = ForestRegressor(regressor)
    assert_bits(ours.predict(rows), regressor.predict(rows))
    assert ours.score(rows, regressor.predict(rows)) == 1


def test_models_come_as_forests_files_bytes_and_estimators(regressor: Any, rows: np.ndarray, tmp_path: Path) -> None:
    forest = forestvm.from_sklearn(regressor)
    file = tmp_path / "model.fvm"
    forest.save(file)
    for model in (forest, file, str(file), file.read_bytes(), regressor):
        assert_bits(ForestRegressor(model).predict(rows), regressor.predict(rows))
    with pytest.raises(forestvm.UnsupportedInput):
        ForestRegressor(3)
    with pytest.raises(forestvm.Environment):
        ForestRegressor(tmp_path / "absent.fvm")


def test_labels_come_from_the_file_or_the_caller(rows: np.ndarray) -> None:
    whole = RandomForestClassifier(n_estimators=2, random_state=0).fit(rows, classes(rows) * 10 - 10)
    forest = forestvm.from_sklearn(whole)
    assert_bits(ForestClassifier(forest).classes_, np.array([-10, 0, 10, 20]))
    named = ForestClassifier(forest, classes=WORDS)
    assert_bits(named.predict(rows), WORDS[forest.predict_class(rows)])
    with pytest.raises(forestvm.Usage, match="2 labels are given, the model has 4 classes"):
        ForestClassifier(forest, classes=["a", "b"])
    texts = forestvm.from_sklearn(RandomForestClassifier(n_estimators=2).fit(rows, WORDS[classes(rows)]))
    assert_bits(ForestClassifier(texts).classes_, WORDS)


def test_models_without_classes_are_no_classifiers(regressor: Any) -> None:
    with pytest.raises(forestvm.Usage):
        ForestClassifier(regressor)


def test_scikit_learn_takes_them_for_fitted_estimators(trained: Any, regressor: Any) -> None:
    classifier, values = ForestClassifier(trained), ForestRegressor(regressor)
    check_is_fitted(classifier)
    check_is_fitted(values)
    assert is_classifier(classifier) and is_regressor(values)
    tags = get_tags(classifier)
    assert tags.input_tags.allow_nan and not tags.requires_fit
    assert classifier.n_features_in_ == FEATURES
    assert not hasattr(classifier, "feature_names_in_")


def test_names_of_features_are_the_forests(rows: np.ndarray) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=list("abcdef"))
    model = RandomForestRegressor(n_estimators=2).fit(frame, target(rows))
    ours = ForestRegressor(model)
    assert list(ours.feature_names_in_) == list("abcdef")
    assert_bits(ours.predict(frame[list("fedcba")]), model.predict(frame))
    with pytest.raises(forestvm.FeatureMismatch):
        ours.predict(frame.assign(more=1))
    assert_bits(ForestRegressor(model, extra="ignore").predict(frame.assign(more=1)), model.predict(frame))


def test_fit_is_refused(trained: Any, rows: np.ndarray) -> None:
    with pytest.raises(forestvm.Usage, match="cannot be fitted"):
        ForestClassifier(trained).fit(rows, binary(rows))


def test_copies_predict_the_same(trained: Any, rows: np.ndarray) -> None:
    ours = ForestClassifier(trained, missing=-1.0)
    expected = ours.predict_proba(rows)
    for other in (clone(ours), copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(other) is ForestClassifier
        assert other.get_params(deep=False)["missing"] == -1.0
        assert_bits(other.predict_proba(rows), expected)


def test_parameters_may_be_set(trained: Any, regressor: Any, rows: np.ndarray) -> None:
    ours = ForestRegressor(regressor)
    ours.set_params(missing=0.0)
    assert_bits(ours.predict(rows), regressor.predict(np.where(rows == 0, np.nan, rows)))
    other = RandomForestRegressor(n_estimators=2, random_state=1).fit(rows, target(rows))
    ours.set_params(model=other, missing=None)
    assert_bits(ours.predict(rows), other.predict(rows))


def test_pipelines_end_with_them(rows: np.ndarray) -> None:
    known = np.nan_to_num(rows)
    trained = make_pipeline(MinMaxScaler(), RandomForestClassifier(n_estimators=3, random_state=0))
    trained.fit(known, binary(known))
    ours = make_pipeline(trained[0], ForestClassifier(trained[-1]))
    assert_bits(ours.predict_proba(known), trained.predict_proba(known))
    assert_bits(clone(ours)[-1].predict(known), ours[-1].predict(known))


def test_lightgbm_labels_are_the_estimators(rows: np.ndarray) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(rows, WORDS[classes(rows)])
    ours = ForestClassifier(model)
    assert_bits(ours.predict(rows), model.predict(rows))
    assert_bits(ours.decision_function(rows), model.predict(rows, raw_score=True))
    assert_bits(ForestClassifier(forestvm.from_lightgbm(model)).classes_, np.arange(4))

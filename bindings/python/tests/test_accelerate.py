"""accelerate: the estimator's own interface, numbers and errors, computed by a forest where it takes the call."""

from __future__ import annotations

import copy
import io
import json
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from small_models import FEATURES, assert_bits, binary, classes, target, training_rows

import forestvm

cloudpickle, joblib = pytest.importorskip("cloudpickle"), pytest.importorskip("joblib")
lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
pytest.importorskip("sklearn")
from sklearn import ensemble, model_selection, pipeline, preprocessing, tree  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

WORDS = np.array(["no", "perhaps", "rather", "yes"])
XGB: dict[str, Any] = {"n_estimators": 5, "max_depth": 4, "n_jobs": 1}
LGBM: dict[str, Any] = {"n_estimators": 5, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
SKLEARN: dict[str, Any] = {"n_estimators": 4, "random_state": 0}


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.nan_to_num(training_rows(), nan=0.5)


def _two_labels(rows: np.ndarray) -> np.ndarray:
    return np.c_[WORDS[classes(rows)], WORDS[binary(rows)]]


def _words(rows: np.ndarray) -> np.ndarray:
    return WORDS[classes(rows)]


def _two(rows: np.ndarray) -> np.ndarray:
    return np.c_[target(rows), rows[:, 0]]


ESTIMATORS = {
    "XGBRegressor": (xgboost.XGBRegressor(**XGB), target),
    "XGBClassifier": (xgboost.XGBClassifier(**XGB), binary),
    "XGBClassifier of raw scores": (xgboost.XGBClassifier(**XGB, objective="binary:logitraw"), binary),
    "XGBClassifier of classes": (xgboost.XGBClassifier(**XGB), classes),
    "XGBClassifier of softmax": (xgboost.XGBClassifier(**XGB, objective="multi:softmax"), classes),
    "XGBClassifier of two labels": (xgboost.XGBClassifier(**XGB), lambda x: np.c_[binary(x), x[:, 0] > 0]),
    "XGBClassifier of one tree": (xgboost.XGBClassifier(n_estimators=1), binary),
    "XGBClassifier of zeros": (xgboost.XGBClassifier(**XGB, missing=0), binary),
    "XGBRegressor of two targets": (xgboost.XGBRegressor(**XGB), _two),
    "XGBRFRegressor": (xgboost.XGBRFRegressor(**XGB), target),
    "LGBMRegressor": (lightgbm.LGBMRegressor(**LGBM), target),
    "LGBMClassifier": (lightgbm.LGBMClassifier(**LGBM), binary),
    "LGBMClassifier of words": (lightgbm.LGBMClassifier(**LGBM), _words),
    "DecisionTreeClassifier": (tree.DecisionTreeClassifier(max_depth=4), _words),
    "DecisionTreeRegressor": (tree.DecisionTreeRegressor(max_depth=4), target),
    "DecisionTreeClassifier of two labels": (tree.DecisionTreeClassifier(max_depth=4), _two_labels),
    "RandomForestClassifier": (ensemble.RandomForestClassifier(**SKLEARN), _words),
    "RandomForestClassifier of two labels": (ensemble.RandomForestClassifier(**SKLEARN), _two_labels),
    "RandomForestRegressor of two targets": (ensemble.RandomForestRegressor(**SKLEARN), _two),
    "ExtraTreesRegressor": (ensemble.ExtraTreesRegressor(**SKLEARN), target),
    "RandomTreesEmbedding": (ensemble.RandomTreesEmbedding(**SKLEARN), target),
    "GradientBoostingClassifier": (ensemble.GradientBoostingClassifier(**SKLEARN), binary),
    "GradientBoostingClassifier of words": (ensemble.GradientBoostingClassifier(**SKLEARN), _words),
    "GradientBoostingRegressor": (ensemble.GradientBoostingRegressor(**SKLEARN), target),
    "HistGradientBoostingClassifier": (ensemble.HistGradientBoostingClassifier(max_iter=4), binary),
    "HistGradientBoostingClassifier of words": (ensemble.HistGradientBoostingClassifier(max_iter=4), _words),
    "HistGradientBoostingRegressor": (ensemble.HistGradientBoostingRegressor(max_iter=4), target),
    "BaggingClassifier": (ensemble.BaggingClassifier(**SKLEARN), _words),
    "BaggingRegressor": (ensemble.BaggingRegressor(**SKLEARN, max_features=0.5), target),
    "AdaBoostClassifier": (ensemble.AdaBoostClassifier(**SKLEARN), binary),
    "AdaBoostClassifier of words": (ensemble.AdaBoostClassifier(**SKLEARN), _words),
    "AdaBoostRegressor": (ensemble.AdaBoostRegressor(**SKLEARN), target),
    "IsolationForest": (ensemble.IsolationForest(**SKLEARN), target),
}
METHODS = ("predict", "predict_proba", "decision_function", "apply")


def fitted(name: str, rows: Any) -> Any:
    estimator, labels = ESTIMATORS[name]
    return clone(estimator).fit(rows, labels(np.asarray(rows)))


def same(ours: Any, theirs: Any, method: str) -> None:
    """Requires labels and leaves to be equal, and other numbers to be within the few ulps of the contract."""
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            same(a, b, method)
        return
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if theirs.dtype.kind != "f" or method == "apply":
        np.testing.assert_array_equal(ours, theirs)
        return
    scale = np.maximum(np.abs(theirs), 0.5) if method == "predict_proba" else np.abs(theirs)
    absolute = 2.3e-16 if method == "decision_function" else 0
    assert (np.abs(ours - theirs) <= np.maximum(4 * np.spacing(scale), absolute)).all()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_methods_give_what_the_estimators_give(name: str, rows: np.ndarray) -> None:
    pandas = pytest.importorskip("pandas")
    from scipy.sparse import csr_matrix

    model = fitted(name, rows)
    fast = forestvm.accelerate(model, verify=rows)
    assert isinstance(fast, type(model)) and type(fast) is not type(model)
    given = [rows, rows[:1], rows.astype(np.float32), np.asfortranarray(rows), rows.astype(int)]
    if "Hist" not in name:
        given.append(csr_matrix(rows))
    for method in METHODS:
        assert hasattr(fast, method) == hasattr(model, method)
        for some in given if hasattr(model, method) else ():
            same(getattr(fast, method)(some), getattr(model, method)(some), method)
    assert forestvm.log(fast) == []
    frame = pandas.DataFrame(rows, columns=[f"column {i}" for i in range(FEATURES)])
    model = fitted(name, frame)
    fast = forestvm.accelerate(model)
    for method in METHODS:
        if hasattr(model, method):
            with warnings.catch_warnings(record=True) as theirs:
                warnings.simplefilter("always")
                expected = getattr(model, method)(frame)
            with warnings.catch_warnings(record=True) as ours:
                warnings.simplefilter("always")
                same(getattr(fast, method)(frame), expected, method)
            assert {str(warning.message) for warning in ours} == {str(warning.message) for warning in theirs}
    assert forestvm.log(fast) == []


def test_attributes_are_the_estimators(rows: np.ndarray) -> None:
    for name in ("XGBClassifier", "LGBMClassifier of words", "RandomForestClassifier"):
        model = fitted(name, rows)
        fast = forestvm.accelerate(model)
        check_is_fitted(fast)
        assert fast.get_params() == model.get_params()
        assert repr(fast) == repr(model)
        assert type(fast).__name__ == type(model).__name__
        assert_bits(fast.feature_importances_, model.feature_importances_)
        assert_bits(fast.classes_, model.classes_)
        assert fast.score(rows, model.predict(rows)) == model.score(rows, model.predict(rows))
        assert "_forestvm" not in vars(model)


def test_modules_and_classes_are_left_alone(rows: np.ndarray) -> None:
    before = {
        kind: dict(vars(kind))
        for kind in (xgboost.XGBClassifier, lightgbm.LGBMClassifier, ensemble.RandomForestClassifier)
    }
    for name in ("XGBClassifier", "LGBMClassifier", "RandomForestClassifier"):
        model = fitted(name, rows)
        kind = type(model)
        forestvm.accelerate(model).predict(rows)
        assert type(model) is kind
    assert all(dict(vars(kind)) == members for kind, members in before.items())


UNTAKEN = {
    "base_margin is given": lambda m, x: m.predict(x, base_margin=np.ones(len(x))),
    "iteration_range is given": lambda m, x: m.predict_proba(x, iteration_range=(0, 2)),
    "validate_features is given": lambda m, x: m.predict(x, validate_features=False),
    "an object of builtins.list": lambda m, x: m.predict(x.tolist()),
    "the rows are an array of float128": lambda m, x: m.predict(x.astype(np.longdouble)),
    "the rows have the shape": lambda m, x: m.predict(x[:0]),
}


@pytest.mark.parametrize("reason", UNTAKEN)
def test_calls_that_are_not_taken_go_to_the_estimator(reason: str, rows: np.ndarray) -> None:
    model = fitted("XGBClassifier", rows)
    fast = forestvm.accelerate(model)

    def outcome(estimator: Any) -> Any:
        try:
            return UNTAKEN[reason](estimator, rows)
        except Exception as error:  # the estimator's own error is what is asked for
            return type(error)

    for _ in range(2):
        np.testing.assert_array_equal(outcome(fast), outcome(model))
    (entry,) = forestvm.log(fast)
    assert reason in entry.reason and entry.calls == 2


def test_lightgbm_parameters_go_where_they_belong(rows: np.ndarray) -> None:
    model = fitted("LGBMClassifier of words", rows)
    fast = forestvm.accelerate(model)
    for method in ("predict", "predict_proba"):
        for known in ({"raw_score": True}, {"pred_leaf": True}, {"raw_score": False, "num_iteration": None}):
            same(getattr(fast, method)(rows, **known), getattr(model, method)(rows, **known), method)
    assert_bits(fast.predict(rows, raw_score=True), model.predict(rows, raw_score=True))
    same(fast.predict_proba(X=rows), model.predict_proba(X=rows), "predict_proba")
    assert forestvm.log(fast) == []
    assert_bits(fast.predict(rows, pred_contrib=True), model.predict(rows, pred_contrib=True))
    assert_bits(fast.predict(rows, num_iteration=2), model.predict(rows, num_iteration=2))
    assert {entry.reason for entry in forestvm.log(fast)} == {"pred_contrib is given", "num_iteration is given"}


def test_xgboost_margins_are_computed(rows: np.ndarray) -> None:
    model = fitted("XGBClassifier of classes", rows)
    fast = forestvm.accelerate(model)
    assert_bits(fast.predict(rows, output_margin=True), model.predict(rows, output_margin=True))
    assert forestvm.log(fast) == []


@pytest.mark.parametrize(
    "name", ["RandomForestClassifier", "LGBMClassifier", "XGBClassifier", "HistGradientBoostingRegressor"]
)
def test_errors_and_warnings_are_the_estimators(name: str, rows: np.ndarray) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=list("abcdef"))
    model = fitted(name, frame)
    fast = forestvm.accelerate(model)
    infinite = np.where(rows > 1, np.inf, rows)
    for bad in (rows[:, :5], rows[0], rows[:0], frame[list("fedcba")], frame.drop(columns="a"), rows, infinite, None):
        outcomes = []
        for estimator in (model, fast):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    result = estimator.predict(bad)
                except Exception as error:  # estimators raise errors of any class
                    result = (type(error), str(error).splitlines()[0].partition("]")[2])
            outcomes.append((result, sorted({str(warning.message) for warning in caught})))
        (theirs, their_warnings), (ours, our_warnings) = outcomes
        assert type(ours) is type(theirs) and our_warnings == their_warnings
        np.testing.assert_array_equal(ours, theirs)


def test_numbers_beyond_float32_are_left_to_scikit_learn(rows: np.ndarray) -> None:
    fast = forestvm.accelerate(fitted("RandomForestClassifier", rows))
    large = np.where(rows > 1, 1e300, rows)
    with pytest.raises(ValueError, match="too large"):
        fast.predict(large)
    assert "beyond float32" in forestvm.log(fast)[0].reason
    # The last block of numbers is looked at as well.
    many = np.resize(rows, (200_001, FEATURES))
    many[-1, -1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fast.predict(many)


def test_frames_of_several_types_are_read_as_scikit_learn_reads_them(rows: np.ndarray) -> None:
    pandas = pytest.importorskip("pandas")
    large = 2**53 + np.arange(len(rows)) * (2**29 + 1)  # rounding them to float64 first gives other float32 numbers
    frame = pandas.DataFrame(
        {"x": rows[:, 0], "count": large, "single": rows[:, 1].astype(np.float32), "flag": rows[:, 2] > 0}
    )
    model = ensemble.ExtraTreesRegressor(n_estimators=10, random_state=0).fit(frame, np.arange(len(rows)) % 7)
    fast = forestvm.accelerate(model)
    for given in (
        frame,
        frame[["x"]].assign(count=1, single=2.0, flag=False),
        frame.astype(float),
        frame.astype(np.float32),
    ):
        assert_bits(fast.predict(given), model.predict(given))
    assert forestvm.log(fast) == []
    with_none = frame.assign(x=frame.x.astype("Float64"))
    assert_bits(fast.predict(with_none), model.predict(with_none))
    assert "not plain numbers" in forestvm.log(fast)[0].reason


def test_missing_values_go_where_the_estimator_takes_them(rows: np.ndarray) -> None:
    holes = np.where(rows == 0.5, np.nan, rows)
    forest = ensemble.RandomForestRegressor(**SKLEARN).fit(holes, target(rows))
    fast = forestvm.accelerate(forest, verify=holes)
    assert_bits(fast.predict(holes), forest.predict(holes))
    assert forestvm.log(fast) == []
    boosted = forestvm.accelerate(fitted("GradientBoostingRegressor", rows))
    with pytest.raises(ValueError, match="NaN"):
        boosted.predict(holes)


@pytest.mark.parametrize("name", ["XGBRegressor", "LGBMRegressor", "RandomForestRegressor of two targets"])
def test_fit_and_set_params_drop_the_program(name: str, rows: np.ndarray) -> None:
    model = fitted(name, rows)
    before = model.predict(rows)
    fast = forestvm.accelerate(model)
    assert_bits(fast.predict(rows), before)
    fast.fit(rows, -ESTIMATORS[name][1](rows))
    refitted = clone(model).fit(rows, -ESTIMATORS[name][1](rows)).predict(rows)
    assert_bits(fast.predict(rows), refitted)
    assert forestvm.log(fast) == [("predict", "fit was called: accelerate the estimator again", 1)]
    assert_bits(model.predict(rows), before)
    again = forestvm.accelerate(fast)
    assert_bits(again.predict(rows), refitted)
    assert forestvm.log(again) == []
    again.set_params(n_jobs=1)
    again.predict(rows)
    assert forestvm.log(again)[0].reason.startswith("set_params was called")


def test_a_warm_start_leaves_the_original_alone(rows: np.ndarray) -> None:
    model = ensemble.RandomForestRegressor(**SKLEARN, warm_start=True).fit(rows, target(rows))
    before = model.predict(rows)
    fast = forestvm.accelerate(model)
    fast.set_params(n_estimators=8).fit(rows, target(rows))
    assert len(fast.estimators_) == 8 and len(model.estimators_) == 4
    assert_bits(model.predict(rows), before)


def test_other_trees_are_noticed(rows: np.ndarray) -> None:
    model, other = fitted("XGBRegressor", rows), fitted("XGBRegressor", -rows)
    fast = forestvm.accelerate(model)
    fast._Booster = other.get_booster()
    assert_bits(fast.predict(rows), other.predict(rows))
    assert "other trees" in forestvm.log(fast)[0].reason
    fast = forestvm.accelerate(model)
    fast.load_model(other.get_booster().save_raw())
    assert_bits(fast.predict(rows), other.predict(rows))


def test_training_that_goes_on_is_noticed(rows: np.ndarray) -> None:
    model = fitted("XGBRegressor", rows)
    fast = forestvm.accelerate(model)
    model.get_booster().update(xgboost.DMatrix(rows, target(rows)), 5)
    assert_bits(fast.predict(rows), model.predict(rows))
    assert "other trees" in forestvm.log(fast)[0].reason
    assert_bits(copy.copy(fast).predict(rows), model.predict(rows))


def test_threads_may_share_an_estimator(rows: np.ndarray) -> None:
    for name in ("XGBClassifier", "LGBMClassifier of words", "RandomForestClassifier"):
        fast = forestvm.accelerate(fitted(name, rows))
        expected = fast.predict_proba(rows)

        def work(first: int, fast: Any = fast, expected: Any = expected) -> bool:
            at = [(first + i) % len(rows) for i in range(100)]
            return all((fast.predict_proba(rows[i : i + 1])[0] == expected[i]).all() for i in at)

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(8)))
        assert forestvm.log(fast) == []


def test_the_log_does_not_grow_for_ever(rows: np.ndarray) -> None:
    fast = forestvm.accelerate(fitted("XGBRegressor", rows))
    for columns in range(300):
        with pytest.raises(ValueError, match="shape"):
            fast.predict(np.zeros((1, 7 + columns), np.float32))
    entries = forestvm.log(fast)
    assert len(entries) == 101
    assert entries[-1] == ("predict", "other reasons", 200)


@pytest.mark.parametrize("name", ["XGBClassifier", "LGBMClassifier of words", "RandomForestClassifier"])
def test_clones_and_copies(name: str, rows: np.ndarray) -> None:
    model = fitted(name, rows)
    fast = forestvm.accelerate(model)
    fresh = clone(fast)
    assert isinstance(fresh, type(model)) and fresh.get_params() == model.get_params()
    with pytest.raises(forestvm.Usage, match="not accelerated"):
        forestvm.log(fresh)
    fresh.fit(rows, ESTIMATORS[name][1](rows))
    assert_bits(fresh.predict(rows), model.predict(rows))
    for other in (copy.copy(fast), copy.deepcopy(fast)):
        assert type(other) is type(fast)
        same(other.predict_proba(rows), model.predict_proba(rows), "predict_proba")
        assert forestvm.log(other) == []


@pytest.mark.parametrize("name", ["XGBClassifier", "LGBMClassifier of words", "RandomForestClassifier"])
def test_pickles_hold_the_estimator_alone(name: str, rows: np.ndarray) -> None:
    model = fitted(name, rows)
    fast = forestvm.accelerate(model)
    file = io.BytesIO()
    joblib.dump(fast, file)
    file.seek(0)
    for other in (pickle.loads(pickle.dumps(fast)), pickle.loads(cloudpickle.dumps(fast)), joblib.load(file)):
        assert type(other) is type(model)
        assert "_forestvm" not in vars(other)
        assert_bits(other.predict_proba(rows), model.predict_proba(rows))


def test_pickles_load_without_forestvm(rows: np.ndarray) -> None:
    pickled = pickle.dumps(forestvm.accelerate(fitted("RandomForestClassifier", rows)))
    code = "import pickle, sys; sys.modules['forestvm'] = None; print(type(pickle.load(sys.stdin.buffer)).__name__)"
    done = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True, check=True)
    assert done.stdout.split() == [b"RandomForestClassifier"]


def test_searches_and_calibration_take_them(rows: np.ndarray) -> None:
    fast = forestvm.accelerate(fitted("RandomForestClassifier", rows))
    search = model_selection.GridSearchCV(fast, {"max_depth": [2, 3]}, cv=2).fit(rows, binary(rows))
    assert isinstance(search.best_estimator_, ensemble.RandomForestClassifier)
    assert len(model_selection.cross_val_score(fast, rows, binary(rows), cv=2)) == 2


def test_the_last_step_of_a_pipeline_is_accelerated(rows: np.ndarray) -> None:
    model = pipeline.make_pipeline(preprocessing.MinMaxScaler(), lightgbm.LGBMClassifier(**LGBM))
    model.fit(rows, _words(rows))
    fast = forestvm.accelerate(model, verify=rows)
    assert type(fast) is pipeline.Pipeline
    assert_bits(fast.predict(rows), model.predict(rows))
    same(fast.predict_proba(rows), model.predict_proba(rows), "predict_proba")
    assert forestvm.log(fast) == []
    assert type(pickle.loads(pickle.dumps(fast))[-1]) is lightgbm.LGBMClassifier
    assert type(model[-1]) is lightgbm.LGBMClassifier
    before = model.predict_proba(rows)
    fast.fit(rows * 3, binary(rows))
    assert forestvm.log(fast) == []
    fast.predict(rows)
    assert forestvm.log(fast)[0].reason.startswith("fit was called")
    assert_bits(model.predict_proba(rows), before)


def test_methods_that_a_class_has_overridden_are_its_own(rows: np.ndarray) -> None:
    class Cautious(xgboost.XGBClassifier):
        """Overrides predict: rows with uncertain probabilities get no label."""

        def predict(self, X: Any, **parameters: Any) -> Any:
            return np.where(self.predict_proba(X).max(axis=1) > 0.9, super().predict(X), -1)

    model = Cautious(**XGB).fit(rows, binary(rows))
    fast = forestvm.accelerate(model)
    assert_bits(fast.predict(rows), model.predict(rows))
    assert (fast.predict(rows) == -1).any()
    assert forestvm.log(fast) == [("predict", "Cautious has a method of its own", 1)]


def test_verify_finds_a_difference(rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, method in (("XGBRegressor", "predict"), ("RandomForestClassifier", "predict_proba")):
        model = fitted(name, rows)
        own = getattr(type(model), method)

        def other(self: Any, X: Any, own: Any = own, **parameters: Any) -> Any:
            return (
                own(self, X, **parameters)
                + np.eye(1, len(X), 7).reshape(-1, *([1] * (method != "predict")))[: len(X)].astype(np.float32) * 1e-3
            )

        other.__module__ = own.__module__
        monkeypatch.setattr(type(model), method, other)
        with pytest.raises(forestvm.Refused, match=f"{method} of row 7 is .* differ|{method} gives float"):
            forestvm.accelerate(model, verify=rows)
        monkeypatch.undo()


def test_verify_wants_rows_that_are_taken(rows: np.ndarray) -> None:
    model = fitted("RandomForestClassifier", rows)
    with pytest.raises(forestvm.Usage, match="the estimator itself would answer"):
        forestvm.accelerate(model, verify=rows.tolist())


def test_what_cannot_be_accelerated_is_an_error(rows: np.ndarray) -> None:
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(forestvm.Refused, match="LogisticRegression"):
        forestvm.accelerate(LogisticRegression().fit(rows, binary(rows)))
    with pytest.raises(forestvm.UnsupportedInput, match="accelerate takes estimators"):
        forestvm.accelerate(3)
    with pytest.raises(forestvm.UnsupportedInput, match="not xgboost.core.Booster: load, from_xgboost"):
        forestvm.accelerate(fitted("XGBRegressor", rows).get_booster())
    for unfitted in (xgboost.XGBClassifier(), lightgbm.LGBMRegressor()):
        with pytest.raises(forestvm.Usage, match="not fitted"):
            forestvm.accelerate(unfitted)
    with pytest.raises(forestvm.Usage, match="not accelerated"):
        forestvm.log(fitted("XGBRegressor", rows))


def test_objectives_of_ones_own_are_left_to_lightgbm(rows: np.ndarray) -> None:
    def objective(y_true: np.ndarray, y_pred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return y_pred - y_true, np.ones_like(y_true)

    model = lightgbm.LGBMClassifier(**LGBM, objective=objective).fit(rows, binary(rows))
    fast = forestvm.accelerate(model)
    assert_bits(fast.predict_proba(rows), model.predict_proba(rows))
    assert "objective is a function" in forestvm.log(fast)[0].reason
    model = xgboost.XGBRegressor(**XGB, objective=objective).fit(rows, target(rows))
    fast = forestvm.accelerate(model)
    assert_bits(fast.predict(rows), model.predict(rows))
    assert forestvm.log(fast) == []


def test_predictions_of_dart_are_left_to_xgboost(rows: np.ndarray) -> None:
    model = xgboost.XGBClassifier(**XGB, booster="dart", rate_drop=0.5).fit(rows, binary(rows))
    fast = forestvm.accelerate(model)
    assert_bits(fast.predict_proba(rows), model.predict_proba(rows))
    config = json.loads(model.get_booster().save_config())
    if config["learner"]["gradient_booster"]["name"] == "dart":
        assert "DART" in forestvm.log(fast)[0].reason
    else:  # in some releases dropout is an option of gbtree, whose predictions need no exception
        assert not forestvm.log(fast)
    assert_bits(fast.apply(rows), model.apply(rows))


def test_early_stopping_is_the_estimators(rows: np.ndarray) -> None:
    noise = np.random.default_rng(0).normal(size=50)
    model = xgboost.XGBRegressor(n_estimators=30, early_stopping_rounds=3, n_jobs=1)
    model.fit(rows, target(rows), eval_set=[(rows[:50], noise)], verbose=False)
    assert_bits(forestvm.accelerate(model).predict(rows), model.predict(rows))
    model = lightgbm.LGBMRegressor(n_estimators=30, verbose=-1, n_jobs=1)
    stop = lightgbm.early_stopping(3, verbose=False)
    model.fit(rows, target(rows), eval_X=(rows[:50],), eval_y=(noise,), callbacks=[stop])
    assert_bits(forestvm.accelerate(model).predict(rows), model.predict(rows))


def test_lightgbm_columns_in_another_order_are_left_to_lightgbm(rows: np.ndarray) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=list("abcdef"))
    frame["colour"] = pandas.Categorical(WORDS[classes(rows)])
    model = lightgbm.LGBMRegressor(**LGBM).fit(frame, target(rows))
    fast = forestvm.accelerate(model, verify=frame)
    moved = frame[[*"fedcba", "colour"]]
    assert_bits(fast.predict(frame), model.predict(frame))
    assert_bits(fast.predict(moved), model.predict(moved))
    assert "matches by position" in forestvm.log(fast)[0].reason


@pytest.fixture(scope="module")
def frame(rows: np.ndarray) -> Any:
    """A frame with numbers, and columns of categories that are texts and whole numbers."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=list("abcdef"))
    frame["word"] = pandas.Categorical(WORDS[classes(rows)])
    frame["number"] = pandas.Categorical(np.arange(len(rows)) % 3 * 5)
    return frame


CATEGORICAL = {
    "XGBRegressor": xgboost.XGBRegressor(**XGB, enable_categorical=True),
    "LGBMRegressor": lightgbm.LGBMRegressor(**LGBM),
    "HistGradientBoostingRegressor": ensemble.HistGradientBoostingRegressor(
        max_iter=5, categorical_features="from_dtype"
    ),
}


@pytest.mark.parametrize("name", CATEGORICAL)
def test_categories_are_the_estimators(name: str, frame: Any, rows: np.ndarray) -> None:
    texts = frame.drop(columns="number")
    model = clone(CATEGORICAL[name]).fit(texts, target(rows))
    fast = forestvm.accelerate(model)
    recoded = texts.assign(word=texts.word.cat.set_categories(WORDS[::-1]))
    few = texts.assign(word=texts.word.cat.remove_unused_categories())[:3]
    missing = texts.assign(word=texts.word.where(np.arange(len(rows)) % 3 != 0))
    for given in (texts, texts[:1], recoded, few, missing):
        assert_bits(fast.predict(given), model.predict(given))
    assert forestvm.log(fast) == []


@pytest.mark.parametrize("name", CATEGORICAL)
def test_categories_that_are_no_texts_give_what_the_estimators_give(name: str, frame: Any, rows: np.ndarray) -> None:
    model = clone(CATEGORICAL[name]).fit(frame, target(rows))
    fast = forestvm.accelerate(model)
    assert_bits(fast.predict(frame), model.predict(frame))
    unseen = frame.assign(word=frame.word.cat.rename_categories({"no": "never"}))
    outcomes = []
    for estimator in (model, fast):
        try:
            outcomes.append(estimator.predict(unseen))
        except ValueError as error:  # as XGBoost does
            outcomes.append(type(error))
    np.testing.assert_array_equal(outcomes[1], outcomes[0])


@pytest.mark.parametrize("name", ["XGBClassifier", "LGBMClassifier"])
def test_frames_of_polars_and_arrow_are_taken(name: str, rows: np.ndarray) -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    model = fitted(name, pytest.importorskip("pandas").DataFrame(rows, columns=list("abcdef")))
    fast = forestvm.accelerate(model)
    frame = polars.DataFrame(rows, schema=list("abcdef"))
    for given in (frame, frame[:1], pyarrow.table({key: rows[:, i] for i, key in enumerate("abcdef")})):
        same(fast.predict_proba(given), model.predict_proba(given), "predict_proba")
    assert forestvm.log(fast) == []
    moved = frame.select(list("fedcba"))
    assert_bits(fast.predict_proba(moved), model.predict_proba(moved))
    assert len(forestvm.log(fast)) == 1

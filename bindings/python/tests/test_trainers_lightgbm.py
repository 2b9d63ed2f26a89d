"""from_lightgbm gives the numbers of the Booster and of the classes of lightgbm.sklearn."""

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

lightgbm = pytest.importorskip("lightgbm")

SMALL: dict[str, Any] = {"n_estimators": 7, "num_leaves": 12, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
BAGGED = {"boosting_type": "rf", "subsample": 0.7, "subsample_freq": 1}


def _fit(kind: str, labels: Any, **parameters: Any) -> Any:
    rows = training_rows()
    return getattr(lightgbm, kind)(**SMALL, **parameters).fit(rows, labels(rows))


def _ranker() -> Any:
    rows = training_rows()
    return lightgbm.LGBMRanker(**SMALL).fit(rows, classes(rows), group=[10] * 40)


MODELS = {
    "regression": lambda: _fit("LGBMRegressor", target),
    "poisson": lambda: _fit("LGBMRegressor", lambda rows: np.abs(target(rows)), objective="poisson"),
    "dart": lambda: _fit("LGBMRegressor", target, boosting_type="dart", drop_rate=0.5, skip_drop=0.0),
    "random forest": lambda: _fit("LGBMRegressor", target, **BAGGED),
    "binary": lambda: _fit("LGBMClassifier", binary),
    "multiclass": lambda: _fit("LGBMClassifier", classes),
    "one against all": lambda: _fit("LGBMClassifier", classes, objective="multiclassova"),
    "zero as missing": lambda: _fit("LGBMRegressor", target, zero_as_missing=True),
    "no missing": lambda: _fit("LGBMRegressor", target, use_missing=False),
    "ranker": _ranker,
}


def thresholds(booster: Any) -> list[tuple[int, float]]:
    """Returns the thresholds of all splits."""
    trees = booster.trees_to_dataframe()
    splits = trees[trees.split_feature.notna()]
    names = booster.feature_name()
    return [(names.index(name), float(t)) for name, t in zip(splits.split_feature, splits.threshold)]


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_the_boosters(name: str) -> None:
    model = MODELS[name]()
    booster = model.booster_
    forest = forestvm.from_lightgbm(model)
    rows = awkward_rows(thresholds(booster))
    for kind, form in forms():
        # LightGBM reads numbers of at most 1e-35 as 0, but not those of sparse rows, where -1e-35 may go another way.
        if kind == "csr":
            rows = np.where(np.abs(rows) <= np.float32(1e-35), 0, rows)
        for count in COUNTS:
            given = form(resized(rows, count))
            assert_bits(forest.predict_raw(given), booster.predict(given, raw_score=True))
            assert_ulps(forest.predict(given), booster.predict(given), 3)
            np.testing.assert_array_equal(forest.apply(given), booster.predict(given, pred_leaf=True))
            if hasattr(model, "predict_proba"):
                ours, theirs = forest.predict_proba(given), model.predict_proba(given)
                scale = theirs.max(axis=1, keepdims=True) if theirs.shape[1] == 2 else theirs
                assert (np.abs(ours - theirs) <= 3 * np.spacing(scale)).all()
                np.testing.assert_array_equal(forest.predict_class(given), model.predict(given))


def test_no_rows_have_the_shapes_of_rows() -> None:
    none = np.empty((0, FEATURES))
    assert forestvm.from_lightgbm(MODELS["regression"]()).predict(none).shape == (0,)
    assert forestvm.from_lightgbm(MODELS["multiclass"]()).predict(none).shape == (0, 4)


def test_rounds_are_those_that_predict_uses() -> None:
    rows = training_rows()
    for name in ("regression", "dart", "random forest", "multiclass"):
        booster = MODELS[name]().booster_
        for start, count in ((0, None), (0, 3), (2, None), (2, 3), (0, 100), (1, -1), (0, 0), (6, 1)):
            forest = forestvm.from_lightgbm(booster, start_iteration=start, num_iteration=count)
            wanted = booster.predict(rows, raw_score=True, start_iteration=start, num_iteration=count)
            assert_bits(forest.predict_raw(rows), wanted)
        with pytest.raises(forestvm.Usage, match="7 rounds"):
            forestvm.from_lightgbm(booster, start_iteration=7)


def test_names_with_spaces_match_the_frames_that_trained() -> None:
    pandas = pytest.importorskip("pandas")
    names = [f"column {i}" for i in range(FEATURES)]
    rows = pandas.DataFrame(training_rows(), columns=names)
    model = lightgbm.LGBMRegressor(**SMALL).fit(rows, target(rows.to_numpy()))
    forest = forestvm.from_lightgbm(model)
    assert_bits(forest.predict(rows), model.predict(rows))
    assert_bits(forest.predict(rows[names[::-1]]), model.predict(rows))


def test_what_is_no_model_is_an_error() -> None:
    with pytest.raises(forestvm.UnsupportedInput, match="from_lightgbm does not take"):
        forestvm.from_lightgbm([1, 2])
    with pytest.raises(forestvm.Usage, match="not fitted"):
        forestvm.from_lightgbm(lightgbm.LGBMClassifier())
    with pytest.raises(forestvm.UnsupportedInput, match="use from_lightgbm"):
        forestvm.from_xgboost(MODELS["binary"]())

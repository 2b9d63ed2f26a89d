"""Ways in which trainers' own interfaces mislead, one test for each."""

from __future__ import annotations

import importlib.util
import re
import warnings
from typing import Any

import numpy as np
import pytest
from small_models import assert_bits, binary, classes, target, training_rows

import forestvm


def test_xgboost_early_stopping_counts_for_estimators_and_not_for_boosters() -> None:
    xgboost = pytest.importorskip("xgboost")
    rows = training_rows()
    noise = np.random.default_rng(0).normal(size=50)
    model = xgboost.XGBRegressor(n_jobs=1, n_estimators=30, early_stopping_rounds=3)
    model.fit(rows, target(rows), eval_set=[(rows[:50], noise)], verbose=False)
    booster = model.get_booster()
    assert model.best_iteration + 1 < booster.num_boosted_rounds()
    assert_bits(forestvm.from_xgboost(model).predict(rows), model.predict(rows))
    assert_bits(forestvm.from_xgboost(booster).predict(rows), booster.predict(xgboost.DMatrix(rows)))
    everything = forestvm.from_xgboost(model, iteration_range=(0, 0)).predict(rows)
    assert_bits(everything, booster.predict(xgboost.DMatrix(rows)))
    assert (everything != model.predict(rows)).any()


def test_lightgbm_early_stopping_counts_for_boosters_too() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rows = training_rows()
    train = lightgbm.Dataset(rows, target(rows))
    noise = np.random.default_rng(0).normal(size=50)
    booster = lightgbm.train(
        {"verbose": -1, "min_data_in_leaf": 5},
        train,
        30,
        valid_sets=[lightgbm.Dataset(rows[:50], noise, reference=train)],
        callbacks=[lightgbm.early_stopping(3, verbose=False)],
        keep_training_booster=True,  # else LightGBM drops the rounds behind the best one
    )
    assert 0 < booster.best_iteration < booster.current_iteration()
    assert_bits(forestvm.from_lightgbm(booster).predict(rows), booster.predict(rows))
    everything = forestvm.from_lightgbm(booster, num_iteration=-1).predict(rows)
    assert_bits(everything, booster.predict(rows, num_iteration=-1))
    assert (everything != booster.predict(rows)).any()
    # best_iteration ends the rounds only if they begin with the first one.
    late = forestvm.from_lightgbm(booster, start_iteration=2).predict(rows)
    assert_bits(late, booster.predict(rows, start_iteration=2))
    estimator = lightgbm.LGBMRegressor(n_estimators=30, verbose=-1).fit(
        rows,
        target(rows),
        eval_X=(rows[:50],),
        eval_y=(noise,),
        callbacks=[lightgbm.early_stopping(3, verbose=False)],
    )
    assert_bits(forestvm.from_lightgbm(estimator).predict(rows), estimator.predict(rows))


def test_numbers_that_xgboost_takes_for_missing_are_said_aloud() -> None:
    xgboost = pytest.importorskip("xgboost")
    rows = training_rows()
    model = xgboost.XGBRegressor(n_jobs=1, n_estimators=5, missing=0).fit(rows, target(rows))
    with pytest.warns(UserWarning, match="give missing=0 to predict"):
        forest = forestvm.from_xgboost(model)
    assert_bits(forest.predict(rows, missing=0), model.predict(rows))
    for package in ("polars", "pyarrow"):
        if importlib.util.find_spec(package) is not None:
            frames = importlib.import_module(package)
            make = frames.DataFrame if package == "polars" else frames.table
            frame = make({f"c{i}": column for i, column in enumerate(rows.T)})
            assert_bits(forest.predict(frame, missing=0), model.predict(rows))
            assert_bits(forest.predict(frame[:1], missing=0), model.predict(rows[:1]))
    assert (forest.predict(rows) != model.predict(rows)).any()


def test_softmax_has_numbers_of_classes_and_probabilities_by_scipy() -> None:
    xgboost = pytest.importorskip("xgboost")
    rows = training_rows()
    model = xgboost.XGBClassifier(n_jobs=1, n_estimators=5, objective="multi:softmax").fit(rows, classes(rows))
    forest = forestvm.from_xgboost(model)
    assert_bits(forest.predict(rows), model.get_booster().predict(xgboost.DMatrix(rows)))
    assert_bits(forest.predict_proba(rows), model.predict_proba(rows))
    np.testing.assert_array_equal(forest.predict_class(rows), model.predict(rows))


def _squared_error(y_true: np.ndarray, y_pred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return y_pred - y_true, np.ones_like(y_true)


def test_xgboost_objectives_of_ones_own_give_raw_scores_and_a_warning() -> None:
    xgboost = pytest.importorskip("xgboost")
    rows = training_rows()
    model = xgboost.XGBRegressor(n_jobs=1, n_estimators=5, objective=_squared_error).fit(rows, target(rows))
    with pytest.warns(UserWarning, match="objective of your own"):
        forest = forestvm.from_xgboost(model)
    assert_bits(forest.predict(rows), model.predict(rows))
    assert_bits(forest.predict_raw(rows), model.predict(rows, output_margin=True))


def test_lightgbm_objectives_of_ones_own_give_raw_scores_and_a_warning() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rows = training_rows()
    model = lightgbm.LGBMRegressor(n_estimators=5, objective=_squared_error, verbose=-1).fit(rows, target(rows))
    for trained in (model, model.booster_):
        with pytest.warns(UserWarning, match="objective of your own"):
            forest = forestvm.from_lightgbm(trained)
        assert_bits(forest.predict(rows), model.predict(rows))


def test_ordinary_models_give_no_warning() -> None:
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    rows = training_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forestvm.from_xgboost(xgboost.XGBClassifier(n_jobs=1, n_estimators=2).fit(rows, binary(rows)))
        forestvm.from_lightgbm(lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(rows, binary(rows)))


def test_absent_values_of_sparse_rows_are_missing_for_xgboost_and_zero_for_the_others() -> None:
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    ensemble = pytest.importorskip("sklearn.ensemble")
    from scipy.sparse import csr_matrix

    dense = training_rows()
    dense[:, 3] = np.where(np.arange(len(dense)) % 2, 0, dense[:, 3])
    sparse = csr_matrix(dense)
    y = target(dense)
    model = xgboost.XGBRegressor(n_jobs=1, n_estimators=5).fit(dense, y)
    forest = forestvm.from_xgboost(model)
    assert_bits(forest.predict(sparse), model.predict(sparse))
    assert_bits(forest.predict(sparse), forest.predict(np.where(dense == 0, np.nan, dense)))
    assert (forest.predict(sparse) != forest.predict(dense)).any()

    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1).fit(dense, y)
    forest = forestvm.from_lightgbm(model)
    assert_bits(forest.predict(sparse), model.predict(sparse))
    assert_bits(forest.predict(sparse), forest.predict(dense))

    zeros = np.nan_to_num(dense)
    model = ensemble.RandomForestRegressor(n_estimators=5, random_state=0).fit(zeros, y)
    forest = forestvm.from_sklearn(model)
    assert_bits(forest.predict(csr_matrix(zeros)), model.predict(csr_matrix(zeros)))
    assert_bits(forest.predict(csr_matrix(zeros)), forest.predict(zeros))


def test_lightgbm_matches_category_columns_by_position_and_forests_by_name() -> None:
    pandas, lightgbm = pytest.importorskip("pandas"), pytest.importorskip("lightgbm")
    random = np.random.default_rng(3)
    rows = pandas.DataFrame(
        {
            "x": random.normal(size=300),
            "colour": pandas.Categorical(random.choice(["blue", "green", "red"], 300)),
            "size": pandas.Categorical(random.choice(["large", "small"], 300)),
        }
    )
    y = rows.x + 2 * (rows.colour == "red") - 3 * (rows["size"] == "small")
    model = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1, min_child_samples=5).fit(rows, y)
    forest = forestvm.from_lightgbm(model)
    expected = model.predict(rows)
    assert_bits(forest.predict(rows), expected)
    moved = rows[["size", "x", "colour"]]
    assert_bits(forest.predict(moved), expected)
    assert (model.predict(moved) != expected).any()
    # Other codes for the same texts, and a text that training has not seen, which is missing for LightGBM.
    recoded = rows.assign(colour=rows.colour.cat.set_categories(["red", "violet", "blue", "green"]))
    assert_bits(forest.predict(recoded), expected)
    unseen = recoded.assign(colour=recoded.colour.where(np.arange(300) % 7 != 0, "violet"))
    assert_bits(forest.predict(unseen), model.predict(unseen))


def test_xgboost_takes_categories_that_it_has_not_seen_for_others_and_forests_refuse_them() -> None:
    pandas, xgboost = pytest.importorskip("pandas"), pytest.importorskip("xgboost")
    random = np.random.default_rng(3)
    rows = pandas.DataFrame(
        {"x": random.normal(size=300), "colour": pandas.Categorical(random.choice(["blue", "green", "red"], 300))}
    )
    y = rows.x + 2 * (rows.colour == "red")
    model = xgboost.XGBRegressor(n_jobs=1, n_estimators=5, enable_categorical=True).fit(rows, y)
    forest, fast = forestvm.from_xgboost(model), forestvm.accelerate(model)

    def of(colour: str) -> Any:
        return rows[:9].assign(colour=pandas.Categorical([colour] * 9))

    assert_bits(forest.predict(of("red")), model.predict(of("red")))
    words = "is not one of the model's.*: its trainer refuses others, or takes them for one of these"
    for colour in ("pink", "violet"):
        with pytest.raises(forestvm.Refused, match=words):
            forest.predict(of(colour))
        with pytest.raises(forestvm.Refused, match=words):
            forest.predict_one({"x": 0.5, "colour": colour})
    # docs/python-trainers.md says what XGBoost does, and that accelerate leaves it to XGBoost.
    with pytest.raises(ValueError, match="category not in the training set"):
        model.predict(of("violet"))
    with pytest.raises(ValueError, match="category not in the training set"):
        fast.predict(of("violet"))
    if xgboost.__version__.startswith("3.2."):
        assert_bits(model.predict(of("pink")), model.predict(of("red")))
        assert_bits(fast.predict(of("pink")), model.predict(of("pink")))
    assert any("takes them for one of these" in entry.reason for entry in forestvm.log(fast))


def test_dart_drops_no_trees_in_prediction() -> None:
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    rows = training_rows()
    parameters = {"booster": "dart", "rate_drop": 0.7, "skip_drop": 0.0, "one_drop": 1}
    model = xgboost.XGBRegressor(n_jobs=1, n_estimators=12, **parameters).fit(rows, target(rows))
    # The classes of xgboost.sklearn predict in place, which rounds sums of DART in another way than a DMatrix.
    expected = model.get_booster().predict(xgboost.DMatrix(rows))
    assert_bits(forestvm.from_xgboost(model).predict(rows), expected)
    np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-5)
    model = lightgbm.LGBMRegressor(n_estimators=12, boosting_type="dart", drop_rate=0.7, skip_drop=0.0, verbose=-1)
    model.fit(rows, target(rows))
    assert_bits(forestvm.from_lightgbm(model).predict(rows), model.predict(rows))


def test_label_encoders_of_texts_number_classes_in_their_order() -> None:
    lightgbm, ensemble = pytest.importorskip("lightgbm"), pytest.importorskip("sklearn.ensemble")
    rows = training_rows()
    words = np.array(["z", "B", "a", "é"])[classes(rows)]
    for model, make in (
        (lightgbm.LGBMClassifier(n_estimators=3, verbose=-1), forestvm.from_lightgbm),
        (ensemble.RandomForestClassifier(n_estimators=3, random_state=0), forestvm.from_sklearn),
    ):
        model.fit(rows, words)
        np.testing.assert_array_equal(model.classes_[make(model).predict_class(rows)], model.predict(rows))


def test_catboost_models_come_through_a_file() -> None:
    catboost = pytest.importorskip("catboost")
    rows = training_rows()
    model = catboost.CatBoostClassifier(iterations=5, depth=3, verbose=False, allow_writing_files=False)
    with pytest.raises(forestvm.Usage, match="not fitted"):
        forestvm.from_catboost(model)
    model.fit(rows, binary(rows))
    forest = forestvm.from_catboost(model)
    assert_bits(forest.predict_raw(rows), model.predict(rows, prediction_type="RawFormulaVal"))
    np.testing.assert_allclose(forest.predict_proba(rows), model.predict_proba(rows), rtol=1e-14)
    with pytest.raises(forestvm.UnsupportedInput, match="from_catboost does not take"):
        forestvm.from_catboost(rows)


def test_lightgbm_rounds_integers_by_the_kind_of_rows_and_a_forest_does_not() -> None:
    lightgbm, pandas = pytest.importorskip("lightgbm"), pytest.importorskip("pandas")
    for first, threshold, by_array, by_frame in (
        (2**24, 2**24 + 0.5, [False, False, True], [False, True, True]),
        (2**53, 2.0**53, [False, False, False], [False, False, True]),
    ):
        sides = np.repeat([threshold - 1e3, threshold + 1e3], 50)[:, None]
        data = lightgbm.Dataset(sides, np.repeat([0.0, 1.0], 50))
        trained = lightgbm.train({"verbose": -1, "num_leaves": 2, "num_threads": 1}, data, 1)
        text = trained.model_to_string()
        booster = lightgbm.Booster(model_str=re.sub("\nthreshold=.*", f"\nthreshold={threshold!r}", text))
        rows = np.array([[first], [first + 1], [first + 2]])
        frame = pandas.DataFrame(rows, columns=["Column_0"])
        for given, right in ((rows, by_array), (rows.tolist(), by_array), (frame, by_frame)):
            assert (booster.predict(given) > booster.predict(sides[:1])).tolist() == right
        forest = forestvm.from_lightgbm(booster)
        for given in (rows, rows.tolist(), frame):
            if first == 2**53:
                with pytest.raises(forestvm.Refused, match="9007199254740993 is not a float64 number"):
                    forest.predict(given)
            else:
                assert (forest.predict(given) > forest.predict(sides[:1])).tolist() == [False, True, True]

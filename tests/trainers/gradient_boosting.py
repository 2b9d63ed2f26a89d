"""Models of XGBoost, LightGBM and CatBoost."""
import json

import numpy

from cases import COLUMNS, TEST_ROWS, TRAINING_ROWS, Case, counts_of, table, target_of, three_classes, two_classes, write_csv


def labels_of(objective, target):
    """Returns the labels that an objective takes."""
    if objective.startswith("multi"):
        return three_classes(target)
    if "binary" in objective or "cross" in objective or "logi" in objective:
        return two_classes(target).astype(float)
    if any(word in objective for word in ("poisson", "gamma", "tweedie")):
        return counts_of(target)
    return target


def xgboost_cases(folder, random):
    """Yields models of XGBoost."""
    import xgboost

    vectors = {"multi_strategy": "multi_output_tree", "tree_method": "hist"}
    kinds = [
        ("squared error", "json", {"objective": "reg:squarederror", "max_depth": 8}, {}),
        ("logistic", "ubj", {"objective": "binary:logistic"}, {}),
        ("softprob", "json", {"objective": "multi:softprob", "num_class": 3}, {}),
        ("dart", "ubj", {"objective": "binary:logistic", "booster": "dart", "rate_drop": 0.3}, {}),
        ("tweedie", "json", {"objective": "reg:tweedie"}, {}),
        ("parallel trees", "json", {"objective": "count:poisson", "num_parallel_tree": 3, "subsample": 0.6}, {}),
        ("categories", "ubj", {"objective": "reg:squarederror", "tree_method": "hist"}, {0: 5, 3: 60}),
        ("vector leaves", "ubj", {"objective": "multi:softprob", "num_class": 3, **vectors}, {}),
    ]
    for name, form, given, categories in kinds:
        params = {"max_depth": 5, "eta": 0.3, "nthread": 2, "verbosity": 0, "seed": 1, **given}
        kinds_of_columns = ["c" if column in categories else "q" for column in range(COLUMNS)]
        train, rows = table(random, TRAINING_ROWS, categories), table(random, TEST_ROWS, categories)
        labels = labels_of(params["objective"], target_of(random, train))
        matrix = xgboost.DMatrix(train, labels, feature_types=kinds_of_columns)
        trained = xgboost.train(params, matrix, 30)
        file = folder / f"xgboost {name}.{form}"
        trained.save_model(file)
        booster = xgboost.Booster(model_file=file)
        query = xgboost.DMatrix(rows, feature_types=kinds_of_columns)
        # XGBoost cannot predict leaf numbers of trees with vector leaves.
        leaves = None if name == "vector leaves" else booster.predict(query, pred_leaf=True)
        yield Case(f"XGBoost {xgboost.__version__}, {name}", file, rows, booster.predict(query, output_margin=True),
                   booster.predict(query), leaves)


def lightgbm_cases(folder, random):
    """Yields models of LightGBM, each as text and as its JSON dump."""
    import lightgbm

    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
    kinds = [
        ("regression", {"objective": "regression", "num_leaves": 63}, {}),
        ("binary, zero as missing", {"objective": "binary", "zero_as_missing": True}, {}),
        ("multi-class", {"objective": "multiclass", "num_class": 3}, {}),
        ("one against all", {"objective": "multiclassova", "num_class": 3}, {}),
        ("dart", {"objective": "cross_entropy", "boosting": "dart"}, {}),
        ("random forest", {"objective": "binary", **forest}, {}),
        ("tweedie", {"objective": "tweedie"}, {}),
        ("categories", {"objective": "regression", "min_data_per_group": 5, "cat_smooth": 1}, {0: 5, 3: 60}),
        ("linear leaves", {"objective": "regression", "linear_tree": True}, {}),
        ("linear leaves of three classes", {"objective": "multiclass", "num_class": 3, "linear_tree": True}, {}),
    ]
    for name, given, categories in kinds:
        params = {"num_leaves": 31, "num_threads": 2, "verbosity": -1, "seed": 1, **given}
        train, rows = table(random, TRAINING_ROWS, categories), table(random, TEST_ROWS, categories)
        labels = labels_of(params["objective"], target_of(random, train))
        trained = lightgbm.train(params, lightgbm.Dataset(train, labels, categorical_feature=list(categories)), 30)
        text = folder / f"lightgbm {name}.txt"
        trained.save_model(text)
        booster = lightgbm.Booster(model_file=text)
        dump = folder / f"lightgbm {name}.json"
        dump.write_text(json.dumps(booster.dump_model(num_iteration=-1)), encoding="utf-8")
        for form, file in (("text", text), ("dump", dump)):
            yield Case(
                f"LightGBM {lightgbm.__version__}, {name}, {form}",
                file,
                rows,
                booster.predict(rows, raw_score=True),
                booster.predict(rows),
                booster.predict(rows, pred_leaf=True),
            )


TEXTS = ["", "a", "b", " a", "größe", "the first, \"quoted\" text, which takes more than thirty-two bytes"]


def categorical_table(random, count, unseen):
    """Returns columns by name: six of numbers and two of texts, which have other texts beside them if `unseen`."""
    numbers = table(random, count, {})
    columns = {f"number {k}": numbers[:, k] for k in range(COLUMNS - 2)}
    texts = TEXTS + ["never seen"] * unseen
    columns["text"] = [texts[k] for k in random.integers(0, len(texts), count)]
    columns["shop"] = [str(k) for k in random.integers(0, 40 + 5 * unseen, count)]
    effect = numpy.array([len(text) % 5 + len(shop) for text, shop in zip(columns["text"], columns["shop"])])
    return columns, target_of(random, numbers) + effect


def catboost_cases(folder, random):
    """Yields models of CatBoost, each as .cbm and as JSON."""
    import catboost
    import pandas

    counters = {"max_ctr_complexity": 2, "one_hot_max_size": 3}
    means = ["BinarizedTargetMeanValue"]
    kinds = [
        ("RMSE", {"loss_function": "RMSE"}, False),
        ("Logloss, loss-guided", {"loss_function": "Logloss", "grow_policy": "Lossguide", "nan_mode": "Max"}, False),
        ("MultiClass, depth-wise", {"loss_function": "MultiClass", "grow_policy": "Depthwise"}, False),
        ("one-hot tests", {"loss_function": "Logloss", "one_hot_max_size": 60}, True),
        ("counters", {"loss_function": "Logloss", **counters}, True),
        ("counters of three classes", {"loss_function": "MultiClass", **counters}, True),
        ("counters of means", {"loss_function": "RMSE", "combinations_ctr": means, "simple_ctr": means, **counters}, True),
        ("counters, Poisson", {"loss_function": "Poisson", **counters}, True),
    ]
    for name, given, texts in kinds:
        train, target = categorical_table(random, TRAINING_ROWS, False)
        query, _ = categorical_table(random, TEST_ROWS, True)
        names = list(train) if texts else list(train)[:-2]
        classes = {"MultiClass": three_classes, "Logloss": two_classes, "Poisson": counts_of}
        labels = classes.get(given["loss_function"], lambda y: y)(target)
        model = catboost.CatBoost({"iterations": 30, "depth": 5, "thread_count": 2, "random_seed": 1, "verbose": False,
                                   "allow_writing_files": False, **given})
        rows = pandas.DataFrame(query)[names]
        model.fit(pandas.DataFrame(train)[names], labels, cat_features=[k for k in ("text", "shop") if k in names])
        csv = write_csv(folder / f"catboost {name}.csv", {key: query[key] for key in names})
        kind = {"MultiClass": "Probability", "Logloss": "Probability", "Poisson": "Exponent"}.get(given["loss_function"], "RawFormulaVal")
        raw, value = model.predict(rows, prediction_type="RawFormulaVal"), model.predict(rows, prediction_type=kind)
        oblivious = "grow_policy" not in given
        for form in ("cbm", "json"):
            file = folder / f"catboost {name}.{form}"
            pool = catboost.Pool(rows, cat_features=[k for k in ("text", "shop") if k in names]) if texts else None
            model.save_model(str(file), format=form, pool=pool)
            # A JSON numbers the leaves of other trees than oblivious ones in another order than the .cbm.
            leaves = model.calc_leaf_indexes(rows) if oblivious or form == "cbm" else None
            # The probability of the first of two classes is 1 minus the other's.
            bound = 2.3e-16 if given["loss_function"] == "Logloss" else 0
            yield Case(f"CatBoost {catboost.__version__}, {name}, {form}", file, csv, raw, value, leaves, bound=bound)

"""Models of scikit-learn, YDF, ONNX and Treelite."""
import numpy

from cases import COLUMNS, TEST_ROWS, TRAINING_ROWS, Case, counts_of, table, target_of, three_classes, two_classes, write_csv


def side_by_side(answer):
    """Returns predict_proba's arrays side by side, if there is one for each output."""
    return numpy.hstack(answer) if isinstance(answer, list) else answer


def sklearn_cases(folder, random):
    """Yields estimators of scikit-learn as .skops files, on rows of float64."""
    import skops.io
    import sklearn
    from sklearn import ensemble, tree

    def same(y):
        return y

    def two_targets(y):
        return numpy.column_stack([y, -2 * y])

    def codes(y):
        return numpy.column_stack([two_classes(y), three_classes(y)])

    stump = {"estimator": tree.DecisionTreeClassifier(max_depth=3)}
    hist = {"max_iter": 20, "random_state": 1}
    # estimator, target, bound of values, whether rows have missing values, categorical columns
    kinds = [
        (tree.DecisionTreeClassifier(max_depth=8), three_classes, 0, True, {}),
        (ensemble.RandomForestClassifier(20, random_state=1), three_classes, 0, True, {}),
        (ensemble.RandomForestClassifier(10, max_depth=5, random_state=1), codes, 0, False, {}),
        (ensemble.RandomForestRegressor(20, random_state=1), two_targets, 0, True, {}),
        (ensemble.ExtraTreesRegressor(20, max_depth=9, random_state=1), same, 0, False, {}),
        (ensemble.GradientBoostingClassifier(n_estimators=20, random_state=1), two_classes, 2.3e-16, False, {}),
        (ensemble.GradientBoostingClassifier(n_estimators=20, random_state=1), three_classes, 1e-15, False, {}),
        (ensemble.GradientBoostingRegressor(n_estimators=20, loss="huber", random_state=1), same, 0, False, {}),
        (ensemble.HistGradientBoostingClassifier(**hist), two_classes, 2.3e-16, True, {}),
        (ensemble.HistGradientBoostingClassifier(**hist), three_classes, 2.3e-16, True, {}),
        (ensemble.HistGradientBoostingRegressor(loss="poisson", **hist), counts_of, 0, True, {}),
        (ensemble.HistGradientBoostingRegressor(categorical_features=[0, 3], **hist), same, 0, True, {0: 5, 3: 60}),
        (ensemble.IsolationForest(n_estimators=20, random_state=1), same, 2.3e-16, False, {}),
        (ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=6), 10, max_features=0.7, random_state=1), same, 0, True, {}),
        (ensemble.AdaBoostClassifier(n_estimators=10, random_state=1, **stump), two_classes, 2.3e-16, False, {}),
        (ensemble.AdaBoostRegressor(n_estimators=10, random_state=1), same, 0, False, {}),
    ]
    for number, (estimator, labels, bound, missing, categories) in enumerate(kinds):
        train, rows = (table(random, count, categories, missing).astype(float) for count in (TRAINING_ROWS, TEST_ROWS))
        target = labels(target_of(random, train))
        kind = type(estimator).__name__
        if kind == "AdaBoostClassifier" and "algorithm" in estimator.get_params() and sklearn.__version__ < "1.6":
            estimator.set_params(algorithm="SAMME")
        estimator.fit(train, target)
        file = folder / f"sklearn {number}.skops"
        skops.io.dump(estimator, file)
        boosts = "Boosting" in kind and hasattr(estimator, "decision_function")
        if kind == "IsolationForest":
            value = estimator.decision_function(rows)
        elif hasattr(estimator, "predict_proba"):
            value = side_by_side(estimator.predict_proba(rows))
        else:
            value = estimator.predict(rows)
        leaves = estimator.apply(rows).reshape(len(rows), -1) if hasattr(estimator, "apply") else None
        # GradientBoostingClassifier starts from NumPy's logarithms of frequencies.
        start = 1e-15 if kind == "GradientBoostingClassifier" else 0
        yield Case(f"scikit-learn {sklearn.__version__}, {kind} of {labels.__name__}", file, rows,
                   estimator.decision_function(rows) if boosts else None, value, leaves, bound, start)


def ydf_cases(folder, random):
    """Yields model directories of YDF."""
    import ydf

    few = {"num_trees": 20, "num_threads": 2, "validation_ratio": 0.0}
    regression, classification = ydf.Task.REGRESSION, ydf.Task.CLASSIFICATION

    def boosted(task, **given):
        return ydf.GradientBoostedTreesLearner(label="y", task=task, **few, **given)

    def same(y):
        return y

    def names(y):
        return numpy.array(["none", "some", "many"])[three_classes(y)]

    def two_names(y):
        return numpy.array(["no", "yes"])[two_classes(y)]

    forest = {"num_trees": 20, "num_threads": 2, "compute_oob_performances": False}
    kinds = [
        ("regression", boosted(regression), same),
        ("two classes", boosted(classification), two_names),
        ("three classes", boosted(classification), names),
        ("Poisson", boosted(regression, loss="POISSON"), counts_of),
        ("oblique splits", boosted(regression, split_axis="SPARSE_OBLIQUE"), same),
        ("forest of regressions", ydf.RandomForestLearner(label="y", task=regression, max_depth=10, **forest), same),
        ("forest of votes", ydf.RandomForestLearner(label="y", task=classification, max_depth=10, **forest), names),
        ("forest of shares", ydf.RandomForestLearner(label="y", task=classification, max_depth=10, winner_take_all=False, **forest), names),
    ]
    for name, learner, labels in kinds:
        def columns(count):
            numbers = table(random, count, {})
            out = {f"number {k}": numbers[:, k] for k in range(COLUMNS - 1)}
            out["kind"] = numpy.array(["red", "green", "blue", "", "gold"])[random.integers(0, 5, count)]
            return out, target_of(random, numbers) + [len(kind) for kind in out["kind"]]

        train, target = columns(TRAINING_ROWS)
        rows, _ = columns(TEST_ROWS)
        targets = labels(target)
        model = learner.train({**train, "y": targets}, verbose=0)
        file = folder / f"ydf {name}"
        model.save(str(file))
        csv = write_csv(folder / f"ydf {name}.csv", {key: list(map(str, of)) if key == "kind" else of for key, of in rows.items()})
        rows["y"] = numpy.repeat(targets[0], TEST_ROWS)  # a column that YDF wants and does not use
        yield Case(f"YDF {ydf.__version__}, {name}", file, csv, None, model.predict(rows), model.predict_leaves(rows))


def onnx_cases(folder, random):
    """Yields graphs that skl2onnx writes, judged by ONNX Runtime, whose sums have float32's precision."""
    import onnxruntime
    import skl2onnx
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn import ensemble, impute, pipeline, preprocessing, tree

    def same(y):
        return y

    def behind_scaler(last):
        return pipeline.make_pipeline(preprocessing.StandardScaler(), last)

    kinds = [
        ("forest of three classes", ensemble.RandomForestClassifier(20, max_depth=8, random_state=1), three_classes),
        ("forest", ensemble.RandomForestRegressor(20, max_depth=8, random_state=1), same),
        ("boosting of two classes", ensemble.GradientBoostingClassifier(n_estimators=20), two_classes),
        ("boosting", ensemble.GradientBoostingRegressor(n_estimators=20), same),
        ("histogram boosting", ensemble.HistGradientBoostingRegressor(max_iter=20), same),
        ("histogram boosting of three classes", ensemble.HistGradientBoostingClassifier(max_iter=20), three_classes),
        ("extremely randomized trees", ensemble.ExtraTreesClassifier(20, max_depth=8, random_state=1), two_classes),
        ("forest behind a scaler", behind_scaler(ensemble.RandomForestRegressor(20, max_depth=8, random_state=1)), same),
        ("forest behind a range",
         pipeline.make_pipeline(preprocessing.MinMaxScaler(), ensemble.RandomForestRegressor(20, max_depth=8, random_state=1)), same),
        ("tree behind an imputer", pipeline.make_pipeline(impute.SimpleImputer(), tree.DecisionTreeRegressor(max_depth=8)), same),
    ]
    for name, estimator, labels in kinds:
        missing = "imputer" in name or "histogram" in name
        train, rows = (table(random, count, {}, missing) for count in (TRAINING_ROWS, TEST_ROWS))
        estimator.fit(train, labels(target_of(random, train)))
        options = {"zipmap": False} if hasattr(estimator, "predict_proba") else {}
        graph = skl2onnx.to_onnx(estimator, initial_types=[("X", FloatTensorType([None, COLUMNS]))], options=options,
                                 target_opset={"": 15, "ai.onnx.ml": 3})
        file = folder / f"onnx {name}.onnx"
        file.write_bytes(graph.SerializeToString())
        session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        value = session.run(None, {"X": rows})[-1]
        yield Case(f"ONNX, skl2onnx {skl2onnx.__version__} and ONNX Runtime {onnxruntime.__version__}, {name}", file, rows, None,
                   value, None, bound=1e-6)


def treelite_cases(folder, random):
    """Yields checkpoints of Treelite, judged by its own predictor."""
    import lightgbm
    import treelite
    import xgboost
    from sklearn import ensemble

    def same(y):
        return y

    def of_xgboost(objective, **given):
        def model(rows, target):
            params = {"objective": objective, "max_depth": 5, "nthread": 2, "verbosity": 0, **given}
            return treelite.frontend.from_xgboost(xgboost.train(params, xgboost.DMatrix(rows, target), 20))
        return model

    def of_lightgbm(**given):
        def model(rows, target):
            params = {"verbosity": -1, "num_threads": 2, **given}
            return treelite.frontend.from_lightgbm(lightgbm.train(params, lightgbm.Dataset(rows, target), 20))
        return model

    def of_sklearn(estimator):
        return lambda rows, target: treelite.sklearn.import_model(estimator.fit(rows, target))

    kinds = [
        ("XGBoost's logistic", of_xgboost("binary:logistic"), two_classes),
        ("XGBoost's softprob", of_xgboost("multi:softprob", num_class=3), three_classes),
        ("XGBoost's Poisson", of_xgboost("count:poisson"), counts_of),
        ("LightGBM's regression", of_lightgbm(objective="regression"), same),
        ("LightGBM's classes", of_lightgbm(objective="multiclass", num_class=3), three_classes),
        ("forest of classes", of_sklearn(ensemble.RandomForestClassifier(10, random_state=1)), three_classes),
        ("forest", of_sklearn(ensemble.RandomForestRegressor(10, random_state=1)), same),
        ("boosting", of_sklearn(ensemble.GradientBoostingClassifier(n_estimators=10)), two_classes),
        ("isolation forest", of_sklearn(ensemble.IsolationForest(n_estimators=10, random_state=1)), same),
    ]
    for name, trained, labels in kinds:
        train, rows = (table(random, count, {}, "GBM" in name or "XGB" in name) for count in (TRAINING_ROWS, TEST_ROWS))
        model = trained(train, labels(target_of(random, train)))
        file = folder / f"treelite {name}"
        model.serialize(str(file))
        gtil = treelite.gtil
        # Treelite's raw scores of forests are averages; forestvm's are sums.
        raw = None if "forest" in name else gtil.predict(model, rows, nthread=2, pred_margin=True)
        yield Case(f"Treelite {treelite.__version__}, {name}", file, rows, raw, gtil.predict(model, rows, nthread=2),
                   gtil.predict_leaf(model, rows, nthread=2))

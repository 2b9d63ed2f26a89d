"""Trains models of LightGBM and scikit-learn on numbers that float32 cannot tell apart, writes one as ONNX with double
thresholds, and compares forestvm's predictions of float64 rows with the trainers' own: float64_rows.py FORESTVM [ROW_COUNT]

Rows lie on thresholds, one float64 and one float32 number beside them, and between them. Raw scores must have the trainer's
bits, and every leaf number must be the same (see Case).
"""
import dataclasses
import pathlib
import sys
import tempfile
import time

import numpy

from cases import Case
from compare import differences, listed

TRAINING_ROWS = 20_000
CSV_ROWS = 5_000
SCHEDULES = ("auto", "default")


def training_data(random, missing=True):
    """Returns features and targets: Unix times, account numbers, prices, tiny numbers and normal ones."""
    count = TRAINING_ROWS
    times = 1.73e9 + random.uniform(0, 3e5, count).round(3)
    large = random.integers(10**15, 10**15 + 5_000, count).astype(float)
    numbers = random.integers(10**9, 10**9 + 3_000, count).astype(float)
    prices = random.lognormal(3, 1, count).round(2)
    tiny = numpy.where(random.random(count) < 0.3, 0, random.normal(size=count) * 3e-35)
    normal = random.normal(size=(count, 20))
    target = numpy.sin(times / 2e4) + large % 1_000 / 500 + numbers % 700 / 300 + numpy.log(prices)
    target += normal[:, 0] * normal[:, 1] + random.normal(size=count) * 0.1
    features = numpy.column_stack([times, large, numbers, prices, tiny, normal])
    if missing:
        features[random.random(features.shape) < 0.03] = numpy.nan
    return features, target


def of_each_feature(pairs, width):
    """Returns the finite thresholds of each feature, from pairs of a feature and a threshold; 0 for one without any."""
    found = [set() for _ in range(width)]
    for feature, threshold in pairs:
        if numpy.isfinite(threshold):
            found[feature].add(float(threshold))
    return [numpy.array(sorted(each) or [0.0]) for each in found]


def rows_beside(thresholds, count, random, specials=(numpy.nan, 0.0, numpy.inf, 1e-35)):
    """Draws rows on the thresholds, beside them and between them, and some special numbers."""
    single = numpy.float32
    rows = numpy.empty((count, len(thresholds)))
    for feature, values in enumerate(thresholds):
        here, other = random.choice(values, count), random.choice(values, count)
        kind = random.integers(0, 8, count)
        with numpy.errstate(over="ignore"):
            near = here.astype(single)
            drawn = numpy.select(
                [kind == k for k in range(6)],
                [
                    here,
                    numpy.nextafter(here, numpy.inf),
                    numpy.nextafter(here, -numpy.inf),
                    near.astype(float),
                    numpy.nextafter(near, single(numpy.inf)).astype(float),
                    numpy.nextafter(near, single(-numpy.inf)).astype(float),
                ],
                here + (other - here) * random.random(count),
            )
        dice = random.random(count)
        for k, special in enumerate(specials):
            drawn[(dice >= k / 100) & (dice < (k + 1) / 100)] = special
        rows[:, feature] = drawn
    return rows


def lightgbm_cases(folder, row_count, random):
    """Yields models of LightGBM."""
    import lightgbm

    def split_nodes(booster):
        for tree in booster.dump_model()["tree_info"]:
            nodes = [tree["tree_structure"]]
            while nodes:
                node = nodes.pop()
                if "split_feature" in node:
                    yield node["split_feature"], node["threshold"]
                    nodes += [node["left_child"], node["right_child"]]

    kinds = {
        "default": {},
        "zero_as_missing": {"zero_as_missing": True},
        "no missing values": {"use_missing": False},
        "127 leaves": {"num_leaves": 127},
    }
    for name, given in kinds.items():
        features, target = training_data(random)
        params = {"objective": "regression", "num_leaves": 63, "verbosity": -1, "num_threads": 2, **given}
        booster = lightgbm.train(params, lightgbm.Dataset(features, target, params=params), 300)
        file = folder / "model.txt"
        booster.save_model(file)
        rows = rows_beside(of_each_feature(split_nodes(booster), features.shape[1]), row_count, random)
        yield Case(f"LightGBM {lightgbm.__version__}, {name}", file, rows, booster.predict(rows, raw_score=True), None,
                   booster.predict(rows, pred_leaf=True))


def hist_trees(estimator):
    """Returns the nodes of a histogram gradient boosting with one output, an array for each tree."""
    return [stage[0].nodes for stage in estimator._predictors]


def sklearn_cases(folder, row_count, random):
    """Yields estimators of scikit-learn. All but histogram gradient boosting round rows to float32."""
    import skops.io
    import sklearn
    from sklearn import ensemble

    some = {"max_depth": 9, "random_state": 1}
    # Only these take rows with missing values (extremely randomized trees from release 1.6 on), and infinite ones.
    missing, infinite = ("HistGradientBoosting", "RandomForest"), ("HistGradientBoosting",)
    for estimator in (
        ensemble.HistGradientBoostingRegressor(max_iter=100, random_state=1),
        ensemble.HistGradientBoostingClassifier(max_iter=100, random_state=1),
        ensemble.RandomForestRegressor(50, **some),
        ensemble.ExtraTreesRegressor(50, **some),
        ensemble.GradientBoostingRegressor(n_estimators=100, max_depth=5, random_state=1),
    ):
        kind = type(estimator).__name__
        features, target = training_data(random, kind.startswith(missing))
        estimator.fit(features, target > numpy.median(target) if kind.endswith("Classifier") else target)
        if kind.startswith("Hist"):
            splits = [(node["feature_idx"], node["num_threshold"]) for nodes in hist_trees(estimator) for node in nodes
                      if not node["is_leaf"]]
        else:
            trees = [tree.tree_ for tree in numpy.ravel(estimator.estimators_)]
            splits = [pair for tree in trees for pair in zip(tree.feature, tree.threshold) if pair[0] >= 0]
        specials = [0.0, 1e-35] + [numpy.nan] * kind.startswith(missing) + [numpy.inf, -numpy.inf] * kind.startswith(infinite)
        rows = rows_beside(of_each_feature(splits, features.shape[1]), row_count, random, specials)
        file = folder / "model.skops"
        skops.io.dump(estimator, file)
        raw = estimator.decision_function(rows) if kind.endswith("Classifier") else None
        value = None if kind.endswith("Classifier") else estimator.predict(rows)
        leaves = estimator.apply(rows) if hasattr(estimator, "apply") else None
        yield Case(f"scikit-learn {sklearn.__version__}, {kind}", file, rows, raw, value, leaves)


def onnx_cases(folder, row_count, random):
    """Yields the trees of a histogram gradient boosting as an ONNX graph with double thresholds. ONNX Runtime is the judge,
    whose results are float32; a leaf's value is a whole number, so that no two sums of other leaves are near each other."""
    import onnx
    import onnxruntime
    from onnx import helper
    from sklearn import ensemble

    features, target = training_data(random)
    width = features.shape[1]
    trees = hist_trees(ensemble.HistGradientBoostingRegressor(max_iter=10, random_state=1).fit(features, target))
    nodes = [(t, n, node) for t, tree in enumerate(trees) for n, node in enumerate(tree)]
    leaves = [(t, n) for t, n, node in nodes if node["is_leaf"]]

    def column(name):
        return [0 if node["is_leaf"] else int(node[name]) for _, _, node in nodes]

    def tensor(name, numbers):
        return helper.make_tensor(name, onnx.TensorProto.DOUBLE, [len(numbers)], numbers)

    thresholds = [0.0 if node["is_leaf"] else float(node["num_threshold"]) for _, _, node in nodes]
    graph = helper.make_graph(
        [helper.make_node(
            "TreeEnsembleRegressor", ["X"], ["Y"], domain="ai.onnx.ml", n_targets=1,
            nodes_treeids=[t for t, _, _ in nodes], nodes_nodeids=[n for _, n, _ in nodes],
            nodes_featureids=column("feature_idx"), nodes_truenodeids=column("left"), nodes_falsenodeids=column("right"),
            nodes_missing_value_tracks_true=column("missing_go_to_left"),
            nodes_modes=["LEAF" if node["is_leaf"] else "BRANCH_LEQ" for _, _, node in nodes],
            nodes_values_as_tensor=tensor("thresholds", thresholds),
            target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves], target_ids=[0] * len(leaves),
            target_weights_as_tensor=tensor("leaves", [float(k * k) for k in range(len(leaves))]))],
        "trees", [helper.make_tensor_value_info("X", onnx.TensorProto.DOUBLE, [None, width])],
        [helper.make_tensor_value_info("Y", onnx.TensorProto.FLOAT, [None, 1])])
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    file = folder / "model.onnx"
    file.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    splits = [(node["feature_idx"], node["num_threshold"]) for _, _, node in nodes if not node["is_leaf"]]
    rows = rows_beside(of_each_feature(splits, width), row_count, random)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    yield Case(f"ONNX Runtime {onnxruntime.__version__}, double thresholds", file, rows, None,
               session.run(None, {"X": rows})[0], None)


def in_csv(case, path):
    """Returns the first rows of a case as CSV."""
    numpy.savetxt(path, case.rows[:CSV_ROWS], delimiter=",", fmt="%.17g")
    first = {name: None if answer is None else answer[:CSV_ROWS]
             for name, answer in (("raw", case.raw), ("value", case.value), ("leaves", case.leaves))}
    return dataclasses.replace(case, rows=path, **first)


def main():
    """Compares all cases; the exit code is 1 if a prediction differs."""
    forestvm, row_count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    begin, different = time.monotonic(), 0
    for cases in (lightgbm_cases, sklearn_cases, onnx_cases):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for case in cases(folder, row_count, numpy.random.default_rng(1)):
                csv = in_csv(case, folder / "rows.csv")
                for schedule in SCHEDULES:
                    counts = differences(forestvm, folder, case, "--schedule", schedule)
                    from_csv = differences(forestvm, folder, csv, "--schedule", schedule, "--header", "no")
                    different += sum(counts.values()) + sum(from_csv.values())
                    print(f"{case.name}, schedule {schedule}: of {row_count} rows differ: {listed(counts)}; "
                          f"of {CSV_ROWS} from CSV: {listed(from_csv)}", flush=True)
    print(f"{different} differences, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if different else 0)


main()

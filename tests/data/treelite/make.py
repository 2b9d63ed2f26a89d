#!/usr/bin/env python3
"""Makes the models of this folder: one small Treelite checkpoint per form, from random numbers.

    for r in 3.0.0 3.2.0 3.4.0; do python3 -m venv v$r && v$r/bin/pip install treelite==$r treelite_runtime==$r "numpy<2" scipy \\
        && v$r/bin/python make.py; done
    python3 -m venv v39 && v39/bin/pip install treelite==3.9.1 treelite_runtime==3.9.1 xgboost==1.7.6 lightgbm==3.3.5 \\
        scikit-learn==1.2.2 "numpy<2" scipy && v39/bin/python make.py
    python3 -m venv v40 && v40/bin/pip install treelite==4.0.0 "numpy<2" scipy && v40/bin/python make.py
    python3 -m venv v48 && v48/bin/pip install treelite==4.8.1 numpy scipy packaging && v48/bin/python make.py

A release of Treelite writes the checkpoints whose names begin with its number. Release 4.8.1, which must come last,
then reads every checkpoint and writes the rows and its own predictor's answers for them: expected_treelite.npy and
expected_leaf.npy. Deterministic. It takes files of 3.9 and 4 only, so those of 3.0 to 3.4, whose bytes mean the same, are
given to it as files of 3.9.
"""
import os
import struct
import tempfile

import numpy as np
import treelite

HERE = os.path.dirname(os.path.abspath(__file__))
JUDGE = "4.8.1"
FEATURES = 5
# Treelite 4 reads past the end of the base scores of these models of version 3 with several classes. The answers for the
# first two, whose base is 0, are those of the releases that wrote them. Those for the third, which 3.9 computes in
# float32, are the means of the trees' outputs.
NOT_JUDGED = ("3.2.0_softmax", "3.9.1_softprob", "3.9.1_forest")
CATEGORICAL = 4  # the column that categorical splits test

# Models that releases before 3.9 build. Release: what, float64, classes, categories, postprocessor, base score.
OLD_CASES = {
    "3.0.0": ("categories", False, 1, True, "sigmoid", 0.3),
    "3.2.0": ("softmax", False, 3, False, "softmax", 0),
    "3.4.0": ("categories", True, 1, True, "identity", -0.25),
}

# release, what, float64, classes, targets, vector leaves, averaged, categories, postprocessor, its parameter, base
# scores
CASES = [
    ("4.0.0", "sigmoid", False, 1, 1, False, False, False, "sigmoid", 0.7, [0.3123456789]),
    ("4.8.1", "sigmoid", False, 1, 1, False, False, False, "sigmoid", 0.7, [0.3123456789]),
    ("4.8.1", "sigmoid_far", False, 1, 1, False, False, False, "sigmoid", 1, [-91.7]),
    ("4.8.1", "sigmoid_wide", True, 1, 1, False, False, False, "sigmoid", 0.7, [0.3123456789]),
    ("4.8.1", "softmax", False, 3, 1, False, False, False, "softmax", 1, [0.1, -0.2, 0.3]),
    ("4.8.1", "softmax_wide", True, 3, 1, False, False, True, "softmax", 1, [0.1, -0.2, 0.3]),
    ("4.8.1", "ova", False, 3, 1, False, False, False, "multiclass_ova", 1.5, [0.1, -0.2, 0.3]),
    ("4.8.1", "forest", True, 3, 1, True, True, False, "identity_multiclass", 1, [0, 0, 0]),
    ("4.8.1", "targets", False, 1, 2, True, False, False, "identity", 1, [0.1, 0.2]),
    ("4.8.1", "isolation", True, 1, 1, False, True, False, "exponential_standard_ratio", 5.3, [0]),
    ("4.8.1", "exponential", False, 1, 1, False, False, True, "exponential", 1, [0.1]),
    ("4.8.1", "log1p", False, 1, 1, False, False, False, "logarithm_one_plus_exp", 1, [0.1]),
    ("4.8.1", "log1p_far", False, 1, 1, False, False, False, "logarithm_one_plus_exp", 1, [88.7]),
    ("4.8.1", "square", False, 1, 1, False, False, False, "signed_square", 1, [0.1]),
    ("4.8.1", "hinge", False, 1, 1, False, False, False, "hinge", 1, [0.1]),
]


def rows_of():
    rng = np.random.RandomState(3)
    rows = rng.normal(size=(48, FEATURES)).astype(np.float32)
    rows[:, CATEGORICAL] = rng.randint(-1, 9, size=48)
    odd = np.array([np.nan, 0, -0.0, 0.5, -0.5, 1.25, np.inf, -np.inf, 1e-45, 3e38, 3.7, -0.3, 2.0**24, 2.0**31], np.float32)
    cells = rng.rand(48, FEATURES) < 0.25
    rows[cells] = odd[rng.randint(0, len(odd), size=int(cells.sum()))]
    return rows


def random_tree(rng, number, width, categories, depth=0):
    """Returns a leaf, a list of numbers, or a split: its arguments for Treelite's builder and two subtrees."""
    if depth == 3 or (depth > 0 and rng.rand() < 0.2):
        return [number() for _ in range(width)]
    split = dict(default_left=bool(rng.randint(2)))
    if categories and rng.rand() < 0.5:
        split.update(feature_id=CATEGORICAL, category_list=sorted({int(c) for c in rng.randint(0, 9, size=3)}),
                     category_list_right_child=bool(rng.randint(2)))
    else:
        split.update(feature_id=int(rng.randint(FEATURES - 1)), threshold=number(), opname=["<", "<=", ">", ">="][rng.randint(4)])
    return split, random_tree(rng, number, width, categories, depth + 1), random_tree(rng, number, width, categories, depth + 1)


def size_of(tree):
    return 1 if isinstance(tree, list) else 1 + size_of(tree[1]) + size_of(tree[2])


def add_nodes(builder, tree, key):
    builder.start_node(key)
    if isinstance(tree, list):
        builder.leaf(tree if len(tree) > 1 else tree[0])
        builder.end_node()
        return
    split, left, right = tree
    children = dict(left_child_key=key + 1, right_child_key=key + 1 + size_of(left))
    (builder.categorical_test if "category_list" in split else builder.numerical_test)(**split, **children)
    builder.data_count(10)
    builder.end_node()
    add_nodes(builder, left, children["left_child_key"])
    add_nodes(builder, right, children["right_child_key"])


def build(number, what, wide, classes, targets, vectors, averaged, categories, postprocessor, parameter, base):
    from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

    trees = 6
    task = "kIsolationForest" if what == "isolation" else "kMultiClf" if classes > 1 else "kRegressor"
    width = classes * targets if vectors else 1
    builder = ModelBuilder(
        threshold_type="float64" if wide else "float32",
        leaf_output_type="float64" if wide else "float32",
        metadata=Metadata(FEATURES, task, averaged, targets, [classes] * targets,
                          (targets if targets > 1 else 1, classes if vectors else 1)),
        tree_annotation=TreeAnnotation(trees, [-1 if targets > 1 else 0] * trees,
                                       [-1 if vectors and classes > 1 else i % classes for i in range(trees)]),
        postprocessor=PostProcessorFunc(name=postprocessor, sigmoid_alpha=parameter, ratio_c=parameter),
        base_scores=[float(b) for b in base])
    rng = np.random.RandomState(number)
    draw = (lambda: float(rng.normal())) if wide else (lambda: float(np.float32(rng.normal())))
    for _ in range(trees):
        builder.start_tree()
        add_nodes(builder, random_tree(rng, draw, width, categories), 0)
        builder.end_tree()
    return builder.commit()


def add_old_nodes(nodes, tree, key, kind):
    """Does what add_nodes does, for the builder of releases before 3.9."""
    if isinstance(tree, list):
        nodes[key].set_leaf_node(tree[0], leaf_value_type=kind)
        return
    split, left, right = tree
    children = dict(left_child_key=key + 1, right_child_key=key + 1 + size_of(left))
    if "category_list" in split:
        nodes[key].set_categorical_test_node(split["feature_id"], split["category_list"], split["default_left"], **children)
    else:
        nodes[key].set_numerical_test_node(split["feature_id"], split["opname"], split["threshold"], split["default_left"],
                                           threshold_type=kind, **children)
    add_old_nodes(nodes, left, children["left_child_key"], kind)
    add_old_nodes(nodes, right, children["right_child_key"], kind)


def built_before_3_9(what, wide, classes, categories, postprocessor, base):
    kind = "float64" if wide else "float32"
    types = dict(threshold_type=kind, leaf_output_type=kind)
    builder = treelite.ModelBuilder(FEATURES, classes, pred_transform=postprocessor, global_bias=base, **types)
    rng = np.random.RandomState(17)
    draw = (lambda: float(rng.normal())) if wide else (lambda: float(np.float32(rng.normal())))
    for _ in range(6):
        tree = treelite.ModelBuilder.Tree(**types)
        add_old_nodes(tree, random_tree(rng, draw, 1, categories), 0, kind)
        tree[0].set_root()
        builder.append(tree)
    return builder.commit()


def made_by_3_9():
    """Yields the models of trainers whose checkpoints Treelite 3.9 writes."""
    import lightgbm
    import sklearn.ensemble
    import xgboost

    rng = np.random.RandomState(5)
    x = rng.normal(size=(300, FEATURES)).astype(np.float32)
    x[:, CATEGORICAL] = rng.randint(0, 9, size=300)
    y = (x[:, 0] > 0.3).astype(int) + (x[:, CATEGORICAL] % 3 == 1)
    small = dict(max_depth=3, nthread=1, seed=1, tree_method="exact")
    for what, parameters, label in (
            ("logistic", dict(objective="binary:logistic"), y > 0),
            ("softprob", dict(objective="multi:softprob", num_class=3, base_score=0), y)):
        yield what, treelite.Model.from_xgboost(xgboost.train(dict(small, **parameters), xgboost.DMatrix(x, label), 3))
    booster = lightgbm.train(dict(objective="regression", num_leaves=6, min_data_per_group=5, cat_smooth=1, verbose=-1, num_threads=1),
                             lightgbm.Dataset(x, y, categorical_feature=[CATEGORICAL]), 5)
    yield "categories", treelite.Model.from_lightgbm(booster)
    forest = sklearn.ensemble.RandomForestClassifier(n_estimators=4, max_depth=3, random_state=1).fit(x, y)
    yield "forest", treelite.sklearn.import_model(forest)


def write(release, what, model):
    folder = os.path.join(HERE, release + "_" + what)
    os.makedirs(folder, exist_ok=True)
    model.serialize(os.path.join(folder, "model.treelite"))
    if release.startswith("3.") and what in ("softprob", "softmax"):
        np.save(os.path.join(folder, "expected_treelite.npy"), treelite.gtil.predict(model, rows_of()))


def checkpoint_of(file):
    """Returns the model of a checkpoint. A version before 3.9 is read as 3.9."""
    with open(file, "rb") as opened:
        content = opened.read()
    if struct.unpack_from("<2i", content) < (3, 9):
        content = struct.pack("<3i", 3, 9, 0) + content[12:]
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy")
        with open(copy, "wb") as opened:
            opened.write(content)
        return treelite.Model.deserialize(copy)


def answer(folder):
    model = checkpoint_of(os.path.join(folder, "model.treelite"))
    rows = rows_of()
    wide = open(os.path.join(folder, "model.treelite"), "rb").read(13)[12] == 3
    given = rows.astype(np.float64) if wide else rows
    np.save(os.path.join(folder, "rows.npy"), rows)
    if not folder.endswith(NOT_JUDGED):
        np.save(os.path.join(folder, "expected_treelite.npy"), treelite.gtil.predict(model, given, nthread=1))
    elif folder.endswith("forest"):
        trees = treelite.gtil.predict_per_tree(model, given, nthread=1)
        np.save(os.path.join(folder, "expected_treelite.npy"), sum(trees[:, i] for i in range(trees.shape[1])) / trees.shape[1])
    np.save(os.path.join(folder, "expected_leaf.npy"), treelite.gtil.predict_leaf(model, given, nthread=1).astype(np.int32))


release = treelite.__version__
if release in OLD_CASES:
    write(release, OLD_CASES[release][0], built_before_3_9(*OLD_CASES[release]))
elif release.startswith("3."):
    for what, model in made_by_3_9():
        write(release, what, model)
for number, case in enumerate(CASES):
    if case[0] == release:
        write(release, case[1], build(number, *case[1:]))
if release == JUDGE:
    for name in sorted(os.listdir(HERE)):
        if os.path.isdir(os.path.join(HERE, name)):
            answer(os.path.join(HERE, name))

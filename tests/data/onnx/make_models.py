#!/usr/bin/env python3
"""Makes the ONNX files of this folder and ONNX Runtime's answers for them.

    python3 make_models.py        needs numpy, onnx and onnxruntime; made with onnx 1.23.2 and onnxruntime 1.32.0

Trees are random. Weights are multiples of 1/64, so that float32 sums are exact in any order, and rows lie on the
thresholds, one ulp beside them, and at NaN, infinities, zeros of both signs and large numbers. Per folder: model.onnx,
rows.npy, expected.npy (scores after the post transform) and, where the graph has labels, expected_label.npy.
"""
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
ML = "ai.onnx.ml"
FEATURES = 4
ROWS = 48
ORDERS = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
EQUALS = ["BRANCH_EQ", "BRANCH_NEQ"]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER"]
THRESHOLDS = [-2.5, -1, -0.0, 0.1, 1, 2, 3, 3.3, 4, 7, 1e-40, 3e38]


class Random:
    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def pick(self, items):
        return items[self.rng.randint(len(items))]

    def weight(self):
        return float(self.rng.randint(-200, 200)) / 64

    def share(self, percent):
        return self.rng.randint(100) < percent


def tree(random, modes, depth, missing, targets, sparse, shared, thresholds):
    """Returns a tree: nodes (feature, mode, value, yes, no, missing) and leaves [(target, weight), ...], the root
    first. If `shared`, it has chains of BRANCH_EQ with one true child."""
    nodes = []

    def leaf():
        ids = [t for t in range(targets) if not sparse or random.share(50)] or [random.rng.randint(targets)]
        nodes.append([(t, random.weight()) for t in ids])
        return len(nodes) - 1

    def grow(depth):
        if depth == 0 or random.share(15):
            return leaf()
        at = len(nodes)
        nodes.append(None)
        feature, mode, flag = random.rng.randint(FEATURES), random.pick(modes), int(random.share(missing))
        yes, no = grow(depth - 1), grow(depth - 1)
        if mode == "BRANCH_EQ" and shared:
            for _ in range(random.rng.randint(1, 5)):
                nodes.append((feature, mode, random.pick(thresholds), yes, no, flag))
                no = len(nodes) - 1
        nodes[at] = (feature, mode, random.pick(thresholds), yes, no, flag)
        return at

    grow(depth)
    return nodes


def forest(seed, trees=5, modes=ORDERS + EQUALS, depth=4, missing=40, targets=1, sparse=False, shared=False,
           thresholds=THRESHOLDS):
    random = Random(seed)
    return [tree(random, modes, depth, missing, targets, sparse, shared, thresholds) for _ in range(trees)]


def numbered(trees, prefix, double=False):
    """Returns the attributes of TreeEnsembleClassifier and TreeEnsembleRegressor."""
    a = {"nodes_" + k: [] for k in ["treeids", "nodeids", "featureids", "modes", "values", "truenodeids",
                                    "falsenodeids", "missing_value_tracks_true"]}
    w = {prefix + k: [] for k in ["treeids", "nodeids", "ids", "weights"]}
    for t, nodes in enumerate(trees):
        for i, node in enumerate(nodes):
            is_leaf = isinstance(node, list)
            values = (0, "LEAF", 0.0, 0, 0, 0) if is_leaf else node
            row = (t, i, values[0], values[1], float(values[2]), values[3], values[4], values[5])
            for key, value in zip(a, row):
                a[key].append(value)
            for target, weight in node if is_leaf else []:
                for key, value in zip(w, (t, i, target, weight)):
                    w[key].append(value)
    if double:
        a["nodes_values_as_tensor"] = doubles(a.pop("nodes_values"))
        w[prefix + "weights_as_tensor"] = doubles(w.pop(prefix + "weights"))
    return {**a, **w}


def doubles(values):
    return helper.make_tensor("doubles", TensorProto.DOUBLE, [len(values)], values)


def listed(trees, members, kind=np.float32):
    """Returns the attributes of TreeEnsemble. Each leaf has one weight. `members` are the sets of BRANCH_MEMBER."""
    nodes, leaves, roots, sets = [], [], [], []
    for tree_nodes in trees:
        index = {}
        splits, first_leaf = len(nodes), len(leaves)
        for i, node in enumerate(tree_nodes):
            if isinstance(node, list):
                index[i] = (1, first_leaf)
                first_leaf += 1
            else:
                index[i] = (0, splits)
                splits += 1
        if index[0][0]:
            index[0] = (1, index[0][1])
            nodes.append((0, 0, 0.0, index[0], index[0], 0))
            roots.append(len(nodes) - 1)
        else:
            roots.append(index[0][1])
        for node in tree_nodes:
            if isinstance(node, list):
                leaves.append(node[0])
            else:
                mode = MODES.index(node[1])
                nodes.append((node[0], mode, node[2], index[node[3]], index[node[4]], node[5]))
                if mode == 6:
                    sets += list(members[len(sets) % len(members)]) + [np.nan]
    elem = TensorProto.FLOAT if kind == np.float32 else TensorProto.DOUBLE
    a = {
        "tree_roots": roots,
        "nodes_featureids": [n[0] for n in nodes],
        "nodes_modes": helper.make_tensor("modes", TensorProto.UINT8, [len(nodes)], [n[1] for n in nodes]),
        "nodes_splits": helper.make_tensor("splits", elem, [len(nodes)], [n[2] for n in nodes]),
        "nodes_truenodeids": [n[3][1] for n in nodes],
        "nodes_trueleafs": [n[3][0] for n in nodes],
        "nodes_falsenodeids": [n[4][1] for n in nodes],
        "nodes_falseleafs": [n[4][0] for n in nodes],
        "nodes_missing_value_tracks_true": [n[5] for n in nodes],
        "leaf_targetids": [l[0] for l in leaves],
        "leaf_weights": helper.make_tensor("weights", elem, [len(leaves)], [l[1] for l in leaves]),
    }
    if sets:
        a["membership_values"] = helper.make_tensor("members", elem, [len(sets)], sets)
    return a


def rows(seed, kind, thresholds=THRESHOLDS):
    rng = np.random.RandomState(seed)
    exact = np.array(thresholds, dtype=np.float32).astype(kind)
    with np.errstate(over="ignore", under="ignore"):
        pool = np.concatenate([exact, np.nextafter(exact, kind(-np.inf)), np.nextafter(exact, kind(np.inf)),
                               np.array([0.0, -0.0, -0.5, 2.5, 5, 100, np.inf, -np.inf, np.nan, np.nan], dtype=kind)])
    return pool[rng.randint(len(pool), size=(ROWS, FEATURES))]


def value(name, elem, shape):
    return helper.make_tensor_value_info(name, elem, shape)


def save(name, nodes, scores, labels=None, inputs=None, elem=TensorProto.FLOAT, opset=3, x=None, initializers=(),
         label_type=TensorProto.INT64, score_value=None, widths=None):
    """Writes the model, the rows and ONNX Runtime's answers. `widths`: columns of each input."""
    widths = widths or {"X": FEATURES}
    outputs = [score_value or value(scores, TensorProto.FLOAT, None)]
    if labels:
        outputs.insert(0, value(labels, label_type, None))
    graph = helper.make_graph(nodes, name, [value(k, elem, [None, w]) for k, w in widths.items()], outputs,
                              list(initializers))
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 15),
                                                                   helper.make_opsetid(ML, opset)])
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds, begin = {}, 0
    for key, width in widths.items():
        feeds[key] = np.ascontiguousarray(x[:, begin : begin + width])
        begin += width
    answers = session.run(None, feeds)
    if labels:
        label = np.asarray(answers[0])
        if label.dtype.kind not in "iu":
            names = sorted(set(LABELS))
            label = np.array([names.index(t) for t in label])
        np.save(os.path.join(folder, "expected_label.npy"), label.reshape(ROWS).astype(np.int64))
    out = answers[-1]
    if isinstance(out, list):
        out = np.array([list(row.values()) for row in out])
    stored = x if x.dtype.kind == "f" else x.astype(np.float32)
    np.save(os.path.join(folder, "rows.npy"), stored)
    np.save(os.path.join(folder, "expected.npy"), np.ascontiguousarray(out, dtype=np.float32).reshape(ROWS, -1))
    print(name, os.path.getsize(os.path.join(folder, "model.onnx")), "bytes")


LABELS = ["ant", "bee", "cow"]
FLOATS = rows(1, np.float32)
DOUBLES = rows(2, np.float64)


def regressor(trees, x="X", y="Y", double=False, **more):
    targets = more.pop("n_targets", 1)
    return helper.make_node("TreeEnsembleRegressor", [x], [y], domain=ML, name="trees", n_targets=targets,
                            **numbered(trees, "target_", double), **more)


def classifier(trees, labels, x="X", double=False, **more):
    key = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_int64s"
    return helper.make_node("TreeEnsembleClassifier", [x], ["L", "P"], domain=ML, name="trees", **{key: labels},
                            **numbered(trees, "class_", double), **more)


def version5(trees, members=(), x="X", kind=np.float32, **more):
    return helper.make_node("TreeEnsemble", [x], ["Y"], domain=ML, name="trees", **listed(trees, members, kind), **more)


def of_one_sign(trees):
    return [[[(t, abs(w) / 16) for t, w in n] if isinstance(n, list) else n for n in nodes] for nodes in trees]


def node(kind, inputs, outputs, domain="", **attributes):
    return helper.make_node(kind, inputs, outputs, domain=domain, name=kind + "_" + outputs[0], **attributes)


def constant(name, kind, values, shape=None):
    return helper.make_tensor(name, kind, [len(values)] if shape is None else shape, values)


def make_all():
    f, d, i64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64
    # Tests of nodes.
    save("modes", [regressor(forest(1), base_values=[0.25])], "Y", x=FLOATS)
    save("infinite_thresholds", [regressor(forest(2, thresholds=[np.inf, -np.inf, np.nan, 1.0]))], "Y", x=FLOATS)
    save("equal_chains", [regressor(forest(3, modes=["BRANCH_EQ", "BRANCH_EQ", "BRANCH_LEQ"], shared=True))], "Y",
         x=FLOATS)
    save("v5_modes", [version5(forest(4), n_targets=1)], "Y", opset=5, x=FLOATS)
    save("v5_members", [version5(forest(5, modes=["BRANCH_MEMBER", "BRANCH_LT"]), [[1, 2, 7], [3], [4, 1]],
                                 n_targets=1)], "Y", opset=5, x=FLOATS)
    # Numbers of the trees.
    save("targets", [regressor(forest(6, targets=3), n_targets=3, base_values=[0.5, 0, -2])], "Y", x=FLOATS)
    save("v5_targets", [version5(forest(7, targets=3, sparse=True), n_targets=3)], "Y", opset=5, x=FLOATS)
    for name in ["AVERAGE", "MIN", "MAX"]:
        save(name.lower(), [regressor(forest(8, trees=4, depth=3), aggregate_function=name, base_values=[0.5])], "Y",
             x=FLOATS)
    save("max_targets", [regressor(forest(9, trees=3, depth=3, targets=2, sparse=True), aggregate_function="MAX",
                                   n_targets=2)], "Y", x=FLOATS)
    save("v5_min", [version5(forest(10, trees=3, depth=3), n_targets=1, aggregate_function=2)], "Y", opset=5, x=FLOATS)
    save("softmax_targets", [regressor(forest(11, targets=3), n_targets=3, post_transform="SOFTMAX")], "Y", x=FLOATS)
    save("v5_softmax_zero", [version5(forest(12, targets=2, sparse=True), n_targets=2, post_transform=3)], "Y",
         opset=5, x=FLOATS)
    # Types of rows.
    save("double", [regressor(forest(13), double=True, base_values_as_tensor=doubles([0.125]))], "Y", elem=d, x=DOUBLES)
    save("double_rows", [regressor(forest(14))], "Y", elem=d, x=DOUBLES)
    save("v5_double", [version5(forest(15), n_targets=1, kind=np.float64), node("Cast", ["Y"], ["Z"], to=f)], "Z",
         elem=d, opset=5, x=DOUBLES)
    # Classes.
    binary = forest(17)
    for post in ["NONE", "LOGISTIC", "SOFTMAX"]:
        save("binary_" + post.lower(), [classifier(binary, [0, 1], post_transform=post, base_values=[-0.5])], "P", "L",
             x=FLOATS)
    save("binary_shares", [classifier(of_one_sign(binary), [7, 5], post_transform="NONE")], "P", "L", opset=1,
         x=FLOATS)
    three = forest(18, targets=3)
    for post in ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]:
        save("classes_" + post.lower(), [classifier(three, LABELS, post_transform=post, base_values=[0, 0.5, 0.25])],
             "P", "L", label_type=TensorProto.STRING, x=FLOATS)
    opposite = [[[(0, -n[0][1]), (1, n[0][1])] if isinstance(n, list) else n for n in nodes] for nodes in binary]
    save("binary_both", [classifier(opposite, [0, 1], post_transform="LOGISTIC")], "P", "L", opset=2, x=FLOATS)
    save("int64_rows", [classifier(three, [0, 1, 2], base_values=[0, 0.5, 0.25])], "P", "L", elem=i64,
         x=np.random.RandomState(3).randint(-4, 9, size=(ROWS, FEATURES)))
    # Other nodes.
    one = constant("one", f, [1.0], [])
    save("after", [classifier(three, [0, 1, 2], post_transform="SOFTMAX"), node("Identity", ["P"], ["A"]),
                   node("Mul", ["A", "one"], ["B"]), node("Flatten", ["B"], ["C"], axis=1),
                   node("Reshape", ["C", "shape"], ["D"]), node("Cast", ["L"], ["M"], to=TensorProto.INT32)],
         "D", "M", label_type=TensorProto.INT32, initializers=[one, constant("shape", i64, [-1, 3])], x=FLOATS)
    maps = helper.make_value_info("Z", helper.make_sequence_type_proto(
        helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(f, []))))
    save("zipmap", [classifier(three, LABELS, post_transform="LOGISTIC"),
                    node("ZipMap", ["P"], ["Z"], ML, classlabels_strings=LABELS)], "Z", "L",
         label_type=TensorProto.STRING, score_value=maps, x=FLOATS)
    save("squeeze", [regressor(forest(19)), node("Squeeze", ["Y", "axes"], ["Z"])], "Z",
         initializers=[constant("axes", i64, [1])], x=FLOATS)
    save("argmax", [version5(forest(20, targets=3, trees=9, sparse=True), n_targets=3),
                    node("ArgMax", ["Y"], ["L"], axis=1, keepdims=0)], "Y", "L", opset=5, x=FLOATS)
    save("sigmoid", [version5(forest(27), n_targets=1), node("Sigmoid", ["Y"], ["Z"])], "Z", opset=5, x=FLOATS)
    save("softmax", [version5(forest(28, targets=3, sparse=True), n_targets=3), node("Softmax", ["Y"], ["Z"])], "Z",
         opset=5, x=FLOATS)
    save("concat", [node("Concat", ["a", "b"], ["X"], axis=1), regressor(forest(21))], "Y",
         widths={"b": 1, "a": 3}, x=FLOATS)
    save("columns", [node("Concat", ["height", "width", "depth", "age"], ["X"], axis=-1), regressor(forest(22))], "Y",
         widths={"age": 1, "depth": 1, "height": 1, "width": 1}, x=FLOATS)
    few = forest(23, thresholds=[-0.25, 0.1, 1.0, 0.3])
    near = rows(4, np.float32, [v / s + o for v in [-0.25, 0.1, 1.0, 0.3] for s, o in [(3, 0.1), (-0.7, 100), (1e-3, 0)]])
    scale = dict(offset=[0.1, 100.0, 0.0, -1.0], scale=[3.0, -0.7, 1e-3, 1.0])
    save("scaler", [node("Scaler", ["X"], ["S"], ML, **scale), regressor(few, "S")], "Y", x=near)
    save("scalers", [node("Scaler", ["X"], ["S"], ML, offset=[3.0], scale=[1e-30]),
                     node("Scaler", ["S"], ["T"], ML, offset=[0.0], scale=[-1e30]), regressor(few, "T")], "Y",
         x=FLOATS)
    save("imputer", [node("Imputer", ["X"], ["I"], ML, replaced_value_float=np.nan,
                          imputed_value_floats=[1.0, 2.0, -5.0, 0.1]),
                     node("Scaler", ["I"], ["S"], ML, **scale), regressor(few, "S")], "Y", x=near)
    # As skl2onnx writes MinMaxScaler, with and without clip.
    factors, terms = constant("factors", f, [3.0, -0.7, 1e-3, 1.0], [4]), constant("terms", f, [0.1, 100.0, 0.0, -1.0], [1, 4])
    limits = [constant("least", f, [0.0], []), constant("most", f, [1.0], [])]
    before = rows(6, np.float32, [(v - t) / s for v in [-0.25, 0.1, 1.0, 0.3]
                                  for s, t in [(3, 0.1), (-0.7, 100), (1e-3, 0), (1, -1)]])
    scaled = [node("Mul", ["X", "factors"], ["M"]), node("Add", ["terms", "M"], ["A"])]
    save("min_max", [*scaled, regressor(few, "A")], "Y", x=before, initializers=[factors, terms])
    save("min_max_clip", [*scaled, node("Clip", ["A", "least", "most"], ["C"]), regressor(few, "C")], "Y", x=before,
         initializers=[factors, terms, *limits])
    save("standard", [node("Sub", ["X", "terms"], ["D"]), node("Div", ["D", "factors"], ["S"]), regressor(few, "S")], "Y",
         x=rows(7, np.float32, [v * s + t for v in [-0.25, 0.1, 1.0, 0.3] for s, t in [(3, 0.1), (-0.7, 100), (1e-3, 0)]]),
         initializers=[factors, terms])
    save("chain_behind_scaler", [node("Scaler", ["X"], ["S"], ML, offset=[1.0], scale=[-2.0]),
                                 regressor(forest(24, modes=["BRANCH_EQ", "BRANCH_GT"], shared=True,
                                                  thresholds=[0.0, 2.0, -2.0, -4.0, -12.0]), "S")], "Y", x=FLOATS)
    save("cast_to_float", [node("Cast", ["X"], ["F"], to=f), regressor(forest(25), "F")], "Y", elem=d, x=DOUBLES)
    save("cast_to_double", [node("Cast", ["X"], ["D"], to=d), regressor(forest(26, thresholds=[0.1, 0.3, 1.0, 3.3]), "D",
                                                                       double=True)], "Y", x=FLOATS)
    # Doubles in front of the trees. ONNX Runtime computes Scaler in double, and gives floats.
    wide = rows(8, np.float64, [v / s + o for v in [-0.25, 0.1, 1.0, 0.3] for s, o in [(3, 0.1), (-0.7, 100), (1e-3, 0)]])
    save("scaler_of_doubles", [node("Scaler", ["X"], ["S"], ML, **scale), regressor(few, "S")], "Y", elem=d, x=wide)
    wide_factors, wide_terms = constant("factors", d, [3.1, -0.7, 1e-3, 1.0]), constant("terms", d, [0.1, 100.0, 0.3, -1.0])
    wide_limits = [constant("least", d, [0.0], []), constant("most", d, [1.0], [])]
    save("standard_of_doubles", [node("Sub", ["X", "terms"], ["D"]), node("Div", ["D", "factors"], ["S"]),
                                 regressor(few, "S", double=True)], "Y", elem=d, initializers=[wide_factors, wide_terms],
         x=rows(9, np.float64, [v * s + t for v in [-0.25, 0.1, 1.0, 0.3] for s, t in [(3.1, 0.1), (-0.7, 100), (1e-3, 0.3)]]))
    save("min_max_of_doubles", [node("Mul", ["X", "factors"], ["M"]), node("Add", ["M", "terms"], ["A"]),
                                node("Clip", ["A", "least", "most"], ["C"]), regressor(few, "C", double=True)], "Y", elem=d,
         initializers=[wide_factors, wide_terms, *wide_limits],
         x=rows(10, np.float64, [(v - t) / s for v in [-0.25, 0.1, 1.0, 0.3] for s, t in [(3.1, 0.1), (-0.7, 100), (1, -1)]]))
    save("cast_behind_doubles", [node("Sub", ["X", "terms"], ["D"]), node("Cast", ["D"], ["F"], to=f), regressor(few, "F")],
         "Y", elem=d, initializers=[wide_terms],
         x=rows(11, np.float64, [v + t for v in [-0.25, 0.1, 1.0, 0.3] for t in [0.1, 100, 0.3, -1.0]]))
    save("scaler_of_integers", [node("Scaler", ["X"], ["S"], ML, offset=[0.5], scale=[-0.25]), regressor(few, "S")], "Y",
         elem=i64, x=np.random.RandomState(4).randint(-9, 9, size=(ROWS, FEATURES)))
    # What cannot be folded into thresholds.
    save("imputer_of_a_number", [node("Scaler", ["X"], ["S"], ML, offset=[0.1], scale=[-3.0]),
                                 node("Imputer", ["S"], ["I"], ML, replaced_value_float=-3.0,
                                      imputed_value_floats=[1.0, 0.2, -5.0, 0.1]),
                                 node("Scaler", ["I"], ["T"], ML, **scale), regressor(few, "T")], "Y",
         x=np.concatenate([rows(12, np.float32, [v / -3 + 0.1 for v in [-3.0, -0.25, 1.0, 0.3]])[: ROWS // 2],
                           np.random.RandomState(5).choice(np.float32([1.1, 0.1, 0.5]), size=(ROWS // 2, FEATURES))]))
    save("imputer_of_infinity", [node("Imputer", ["X"], ["I"], ML, replaced_value_float=np.inf, imputed_value_floats=[0.2]),
                                 regressor(forest(29), "I")], "Y", x=FLOATS)
    save("scale_of_zero", [node("Scaler", ["X"], ["S"], ML, offset=[0.1, 100.0, 0.0, -1.0], scale=[0.0, 1.0, -0.0, 2.0]),
                           regressor(forest(30, thresholds=[0.0, 0.1, 1.0, -0.5]), "S")], "Y", x=FLOATS)
    for norm in ["L1", "L2", "MAX"]:
        save("normalizer_" + norm.lower(),
             [node("Imputer", ["X"], ["I"], ML, replaced_value_float=np.nan, imputed_value_floats=[2.0, 0.0, 1.0, -1.0]),
              node("Normalizer", ["I"], ["N"], ML, norm=norm),
              regressor(forest(31, thresholds=[0.25, 0.5, -0.5, 0.1, 1.0, 0.0, -0.25, float(np.sqrt(np.float32(0.5)))]), "N")],
             "Y", x=np.concatenate([FLOATS[:12], np.random.RandomState(6).choice(
                 np.float32([0, 1, -1, 2, 4, -3, np.nan]), size=(ROWS - 12, FEATURES))]))
    save("normalizer_of_integers", [node("Normalizer", ["X"], ["N"], ML, norm="L2"),
                                    regressor(forest(32, thresholds=[0.5, -0.5, 0.25, 0.0, 1.0]), "N")], "Y", elem=i64,
         x=np.random.RandomState(7).randint(-3, 4, size=(ROWS, FEATURES)))
    # Scores that the transform makes equal, or puts in another order: labels are those of the scores.
    far = [[(0, "BRANCH_LEQ", 1.0, 1, 2, 0), [(0, 40.0), (1, 80.0), (2, 1.0)], [(0, 1.0), (1, 40.0), (2, 80.0)]]]
    save("tied_logistic", [classifier(far, [0, 1, 2], post_transform="LOGISTIC")], "P", "L", x=FLOATS)
    near = [[(0, "BRANCH_LEQ", 1.0, 1, 2, 0), [(0, 0.0), (1, -1.0), (2, -2.0)], [(0, -1.0), (1, -2.0), (2, 0.0)]]]
    save("tied_softmax_zero", [classifier(near, [0, 1, 2], post_transform="SOFTMAX_ZERO")], "P", "L", x=FLOATS)


if __name__ == "__main__":
    np.seterr(all="ignore")
    make_all()

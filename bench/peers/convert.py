"""XGBoost JSON -> LightGBM text, ONNX TreeEnsembleRegressor, YDF: the same trees for peers that cannot read XGBoost."""

import json, math
import numpy as np

F32 = np.float32


def load(b):
    js = json.loads(bytes(b.save_raw("json")).decode())
    L = js["learner"]
    gb = L["gradient_booster"]
    m = gb["model"]
    K = max(1, int(L["learner_model_param"]["num_class"]))
    bs = L["learner_model_param"]["base_score"]
    bs = [float(x) for x in bs.strip("[]").split(",")]
    obj = L["objective"]["name"]
    if obj in ("binary:logistic",):
        bs = [math.log(x / (1 - x)) for x in bs]
    if len(bs) < K:
        bs = bs * K
    return js, m["trees"], m["tree_info"], K, bs, int(L["learner_model_param"]["num_feature"])


def identity_xgb(js, bs, K):
    """Returns the same trees with another objective, for which the plain prediction is the margin."""
    js = json.loads(json.dumps(js))
    L = js["learner"]
    if K == 1:
        L["objective"] = dict(name="reg:squarederror", reg_loss_param=dict(scale_pos_weight="1"))
        L["learner_model_param"]["base_score"] = "[%.9E]" % bs[0]
    else:
        L["objective"] = dict(name="multi:softprob", softmax_multiclass_param=dict(num_class=str(K)))
    return json.dumps(js).encode()


def to_lightgbm(trees, info, K, bs, nf):
    o = [
        "tree",
        "version=v4",
        f"num_class={K}",
        f"num_tree_per_iteration={K}",
        "label_index=0",
        f"max_feature_idx={nf-1}",
        "objective=regression" if K == 1 else f"objective=multiclass num_class:{K}",
        "feature_names=" + " ".join(f"f{i}" for i in range(nf)),
        "feature_infos=" + " ".join(["[-1e300:1e300]"] * nf),
    ]
    body = []
    for i, t in enumerate(trees):
        l, r, th = t["left_children"], t["right_children"], t["split_conditions"]
        inner, leaf = {}, {}
        for k, c in enumerate(l):
            (leaf if c == -1 else inner).__setitem__(k, len(leaf) if c == -1 else len(inner))
        add = bs[info[i]] if i < K else 0.0
        ref = lambda c: inner[c] if c in inner else -(leaf[c] + 1)
        ii, lv = list(inner), list(leaf)
        s = [f"Tree={i}", f"num_leaves={len(leaf)}", "num_cat=0"]
        if ii:
            s += [
                "split_feature=" + " ".join(str(t["split_indices"][k]) for k in ii),
                "split_gain=" + " ".join("1" for _ in ii),
                "threshold=" + " ".join(repr(float(np.nextafter(F32(th[k]), F32(-np.inf)))) for k in ii),
                "decision_type=" + " ".join(str(8 | (2 if t["default_left"][k] else 0)) for k in ii),
                "left_child=" + " ".join(str(ref(l[k])) for k in ii),
                "right_child=" + " ".join(str(ref(r[k])) for k in ii),
            ]
        else:
            s += ["split_feature=", "split_gain=", "threshold=", "decision_type=", "left_child=", "right_child="]
        s += [
            "leaf_value=" + " ".join(repr(float(F32(th[k])) + add) for k in lv),
            "leaf_weight=" + " ".join("1" for _ in lv),
            "leaf_count=" + " ".join("1" for _ in lv),
        ]
        if ii:
            s += [
                "internal_value=" + " ".join("0" for _ in ii),
                "internal_weight=" + " ".join("0" for _ in ii),
                "internal_count=" + " ".join("2" for _ in ii),
            ]
        s += ["is_linear=0", "shrinkage=1", "", ""]
        body.append("\n".join(s))
    o.append("tree_sizes=" + " ".join(str(len(b) + 1) for b in body))
    o.append("")
    return (
        "\n".join(o)
        + "\n"
        + "\n".join(body)
        + "\nend of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n\npandas_categorical:null\n"
    )


def to_onnx(trees, info, K, bs, nf):
    import onnx
    from onnx import helper, TensorProto

    A = {k: [] for k in "tid nid feat val mode t f miss ttid tnid tid2 w".split()}
    for i, t in enumerate(trees):
        for k, c in enumerate(t["left_children"]):
            A["tid"].append(i)
            A["nid"].append(k)
            if c == -1:
                A["feat"].append(0)
                A["val"].append(0.0)
                A["mode"].append("LEAF")
                A["t"].append(0)
                A["f"].append(0)
                A["miss"].append(0)
                A["ttid"].append(i)
                A["tnid"].append(k)
                A["tid2"].append(info[i])
                A["w"].append(float(F32(t["split_conditions"][k])))
            else:
                A["feat"].append(t["split_indices"][k])
                A["val"].append(float(F32(t["split_conditions"][k])))
                A["mode"].append("BRANCH_LT")
                A["t"].append(c)
                A["f"].append(t["right_children"][k])
                A["miss"].append(int(t["default_left"][k]))
    n = helper.make_node(
        "TreeEnsembleRegressor",
        ["X"],
        ["Y"],
        domain="ai.onnx.ml",
        n_targets=K,
        aggregate_function="SUM",
        post_transform="NONE",
        base_values=[float(x) for x in bs[:K]],
        nodes_treeids=A["tid"],
        nodes_nodeids=A["nid"],
        nodes_featureids=A["feat"],
        nodes_values=A["val"],
        nodes_modes=A["mode"],
        nodes_truenodeids=A["t"],
        nodes_falsenodeids=A["f"],
        nodes_missing_value_tracks_true=A["miss"],
        target_treeids=A["ttid"],
        target_nodeids=A["tnid"],
        target_ids=A["tid2"],
        target_weights=A["w"],
    )
    g = helper.make_graph(
        [n],
        "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, nf])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None, K])],
    )
    return helper.make_model(
        g, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=9
    )


def to_ydf(trees, bs, nf):
    import ydf, sys

    sys.setrecursionlimit(10000)
    r = np.random.default_rng(0)
    d = {f"f{i}": r.standard_normal(60).astype(F32) for i in range(nf)}
    d["y"] = r.standard_normal(60).astype(F32)
    m = ydf.GradientBoostedTreesLearner(
        label="y",
        task=ydf.Task.REGRESSION,
        num_trees=1,
        validation_ratio=0.0,
        max_depth=2,
        min_examples=1,
        features=[ydf.Column(f"f{i}", ydf.Semantic.NUMERICAL) for i in range(nf)],
    ).train(d, verbose=0)
    names = m.input_feature_names()
    col = {n: i for i, n in enumerate([c.name for c in m.data_spec().columns])}
    base = float(m.initial_predictions()[0])

    def build(t, k, add):
        c = t["left_children"][k]
        if c == -1:
            return ydf.tree.Leaf(
                value=ydf.tree.RegressionValue(num_examples=1.0, value=float(F32(t["split_conditions"][k])) + add)
            )
        return ydf.tree.NonLeaf(
            condition=ydf.tree.NumericalHigherThanCondition(
                missing=not t["default_left"][k],
                score=1.0,
                attribute=col[f"f{t['split_indices'][k]}"],
                threshold=float(F32(t["split_conditions"][k])),
            ),
            pos_child=build(t, t["right_children"][k], add),
            neg_child=build(t, c, add),
        )

    m.set_tree(0, ydf.tree.Tree(root=build(trees[0], 0, bs[0] - base)))
    for t in trees[1:]:
        m.add_tree(ydf.tree.Tree(root=build(t, 0, 0.0)))
    return m

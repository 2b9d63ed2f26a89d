"""CatBoost's oblivious trees: a twin of a prepared model, and the same trees as LightGBM text for everyone else."""

import json, os, tempfile
import numpy as np


def twin(folder, info):
    """Returns the path of CatBoost's model for a prepared one: trained on the rows' raw scores, with the same number of
    trees and about the same depth. Raises ValueError if that would take too long."""
    path, K, trees, leaves = f"{folder}/catboost.cbm", info["K"], info["n_trees"], info["leaves"]
    if os.path.exists(path):
        return path
    if info["nf"] > 1000 or trees > 1000 or leaves > 200000:
        raise ValueError("at most 1,000 trees and features, 200,000 leaves")
    import catboost

    X, y = np.load(f"{folder}/rows.npy"), np.load(f"{folder}/rows.raw.npy")
    settings = dict(
        iterations=trees // K,
        depth=6 if leaves / trees <= 70 and K == 1 else 8,
        thread_count=2,
        verbose=False,
        allow_writing_files=False,
        random_seed=1,
    )
    model = (
        catboost.CatBoostRegressor(**settings)
        if K == 1
        else catboost.CatBoostClassifier(loss_function="MultiClass", **settings)
    )
    model.fit(X, y if K == 1 else y.argmax(1))
    model.save_model(path)
    return path


def document(model):
    with tempfile.TemporaryDirectory() as folder:
        model.save_model(f"{folder}/model.json", format="json")
        with open(f"{folder}/model.json") as file:
            return json.load(file)


def tree_text(number, splits, values):
    """Returns an oblivious tree as LightGBM text. `splits` has (feature, border, missing to the right) for each level
    from the root on. Nodes of a level are consecutive, and leaves are in order from left to right."""
    inner = len(values) - 1
    levels = [level for level in range(len(splits)) for _ in range(1 << level)]
    children = [child if child < inner else inner - child - 1 for child in range(1, 2 * inner + 1)]
    text = lambda numbers: " ".join(map(str, numbers))
    lines = [
        f"Tree={number}",
        f"num_leaves={len(values)}",
        "num_cat=0",
        "split_feature=" + text(splits[level][0] for level in levels),
        "split_gain=" + text(1 for _ in levels),
        "threshold=" + text(repr(splits[level][1]) for level in levels),
        "decision_type=" + text(8 | (0 if splits[level][2] else 2) for level in levels),
        "left_child=" + text(children[0::2]),
        "right_child=" + text(children[1::2]),
        "leaf_value=" + text(repr(float(value)) for value in values),
        "leaf_weight=" + text(1 for _ in values),
        "leaf_count=" + text(1 for _ in values),
        "internal_value=" + text(0 for _ in levels),
        "internal_weight=" + text(0 for _ in levels),
        "internal_count=" + text(2 for _ in levels),
        "is_linear=0",
        "shrinkage=1",
        "",
        "",
    ]
    return "\n".join(lines)


def to_lightgbm(js):
    """Returns CatBoost's JSON model as LightGBM text that predicts the same bits, because both compare and sum in
    float64. The bias, which CatBoost adds last, becomes a last round of single leaves. A tree of K outputs becomes K
    trees."""
    features = js["features_info"]["float_features"]
    scale, bias = js["scale_and_bias"]
    if scale != 1 or len(js["features_info"]) != 1:
        raise ValueError("a scale, or features that are not numbers")
    K, nf = len(bias), 1 + max(feature["flat_feature_index"] for feature in features)
    body = []
    for tree in js["oblivious_trees"]:
        splits = []
        for split in reversed(tree["splits"]):  # the last split makes the highest bit
            feature = features[split["float_feature_index"]]
            splits.append(
                (feature["flat_feature_index"], split["border"], feature["nan_value_treatment"] == "AsTrue")
            )
        for k in range(K):
            body.append(tree_text(len(body), splits, tree["leaf_values"][k::K]))
    for k in range(K):
        body.append(tree_text(len(body), [], [bias[k]]))
    head = [
        "tree",
        "version=v4",
        f"num_class={K}",
        f"num_tree_per_iteration={K}",
        "label_index=0",
        f"max_feature_idx={nf - 1}",
        "objective=regression" if K == 1 else f"objective=multiclass num_class:{K}",
        "feature_names=" + " ".join(f"f{i}" for i in range(nf)),
        "feature_infos=" + " ".join(["[-1e300:1e300]"] * nf),
        "tree_sizes=" + " ".join(str(len(one) + 1) for one in body),
        "",
        "",
    ]
    tail = "\nend of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n\npandas_categorical:null\n"
    return "\n".join(head) + "\n".join(body) + tail


def write_twin(folder, info, out):
    """Makes a model folder for the twin of the model in `folder`: its trees, the same rows, CatBoost's answers."""
    import catboost

    path = twin(folder, info)
    model = catboost.CatBoost().load_model(path)
    X = np.load(f"{folder}/rows.npy")
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/model.txt", "w") as file:
        file.write(to_lightgbm(document(model)))
    np.save(f"{out}/rows.npy", X)
    np.save(f"{out}/expected_raw.npy", model.predict(X, prediction_type="RawFormulaVal"))
    model.save_model(f"{out}/catboost.cbm")

"""Draws forests of many shapes, from which `bench/walks/train` learns what walks cost.

A forest is written in XGBoost's binary format or, for models that compare in float64, as LightGBM's text. Its shape is
that of trained forests: a share of the training rows goes to each side of a split, and nodes that few rows reach become
leaves. Trees grow level by level to a depth, or leaf by leaf to a number of leaves. Equal seeds draw equal forests.
"""

import heapq
import struct
from random import Random

import numpy as np

CLASSES = (3, 5, 7, 10, 26)


def shape(random):
    """Draws the parameters of a forest."""
    features = int(np.exp(random.uniform(np.log(3), np.log(2500))))
    depths = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12]
    depth = int(random.choice(depths, p=[0.03, 0.07, 0.1, 0.12, 0.2, 0.12, 0.14, 0.08, 0.08, 0.06]))
    leafwise = random.random() < 0.35
    leaves = int(random.choice([7, 15, 31, 63, 127, 255, 400]))
    trees = int(np.exp(random.uniform(np.log(2), np.log(1500))))
    size = leaves if leafwise else 2**depth
    trees = max(1, min(trees, 200_000 // size))
    outputs = int(random.choice(CLASSES)) if random.random() < 0.2 else 1
    if outputs > 1:
        trees = max(outputs, trees // outputs * outputs)
    return {
        "features": features,
        "used": max(1, int(features * random.choice([1.0, 1.0, 0.6, 0.2]))),
        "skew": random.uniform(0, 1.5),  # how unequally often features are tested
        "pool": int(random.choice([2, 8, 32, 64, 128, 255, 1000, 100_000])),  # the most thresholds of a feature
        "depth": depth if not leafwise else 40,
        "leaves": leaves if leafwise else 1 << 30,
        "rows": int(np.exp(random.uniform(np.log(300), np.log(3e6)))),  # training rows
        "least": float(random.choice([1, 2, 20])),  # the fewest rows of a leaf
        "balance": random.uniform(0.5, 4),  # 1: shares of a split's sides are uniform; more: closer to halves
        "trees": trees,
        "outputs": outputs,
        "format": "lightgbm" if random.random() < 0.3 else "xgboost",
    }


def grown_tree(random, forest, weights, pools):
    """Grows a tree. Returns a list of nodes (feature, threshold, cover, left, right), leaves with feature -1."""
    nodes = [[-1, 0.0, float(forest["rows"]), -1, -1]]
    open_nodes, leaves = [(-nodes[0][2], 0, 0)], 1
    while open_nodes and leaves < forest["leaves"]:
        _, at, depth = heapq.heappop(open_nodes)
        cover = nodes[at][2]
        if depth == forest["depth"] or cover < 2 * forest["least"]:
            continue
        share = random.betavariate(forest["balance"], forest["balance"])
        left = round(cover * share)
        if min(left, cover - left) < forest["least"]:
            continue
        feature = weights[random.randrange(len(weights))]
        nodes[at][:2] = [feature, pools[feature][random.randrange(len(pools[feature]))]]
        nodes[at][3:] = [len(nodes), len(nodes) + 1]
        for side in (left, cover - left):
            # Trainers split the leaf with the largest gain, which grows with its rows.
            heapq.heappush(open_nodes, (-side * random.random(), len(nodes), depth + 1))
            nodes.append([-1, 0.0, float(side), -1, -1])
        leaves += 1
    return nodes


def drawn(seed):
    """Returns the shape of a forest and its trees."""
    numbers, random = np.random.default_rng(seed), Random(seed)
    forest = shape(numbers)
    used = numbers.permutation(forest["features"])[: forest["used"]]
    chances = (1 + np.arange(len(used))) ** -forest["skew"]
    weights = numbers.choice(used, size=20_000, p=chances / chances.sum()).tolist()
    pools = {
        int(feature): numbers.standard_normal(min(forest["pool"], 1000)).astype(np.float32).tolist()
        for feature in used
    }
    return forest, [grown_tree(random, forest, weights, pools) for _ in range(forest["trees"])]


def ubj_text(text):
    return b"L" + struct.pack(">q", len(text)) + text.encode()


def ubj(value):
    """Writes a value as UBJSON with what XGBoost's reader takes: lengths of 64 bits, numeric arrays with a type."""
    if isinstance(value, str):
        return b"S" + ubj_text(value)
    if isinstance(value, dict):
        return b"{" + b"".join(ubj_text(key) + ubj(item) for key, item in value.items()) + b"}"
    if isinstance(value, list):
        return b"[" + b"".join(ubj(item) for item in value) + b"]"
    if isinstance(value, np.ndarray):
        marks = {"f4": (b"d", ">f4"), "i4": (b"l", ">i4"), "i8": (b"L", ">i8"), "u1": (b"U", ">u1")}
        mark, kind = marks[value.dtype.str[1:]]
        return b"[$" + mark + b"#L" + struct.pack(">q", len(value)) + value.astype(kind).tobytes()
    return b"l" + struct.pack(">i", value)


def xgboost_tree(number, nodes, random, features):
    table = list(zip(*nodes))
    feature = np.array(table[0])
    leaf = feature < 0
    parents = np.full(len(nodes), 2147483647, dtype=np.int64)
    for at, node in enumerate(nodes):
        for child in node[3:] if node[0] >= 0 else ():
            parents[child] = at
    count, integers = len(nodes), lambda values: np.asarray(values, dtype=np.int32)
    empty, empty64 = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
    return {
        "base_weights": np.zeros(count, dtype=np.float32),
        "categories": empty,
        "categories_nodes": empty,
        "categories_segments": empty64,
        "categories_sizes": empty64,
        "default_left": np.asarray(random.random(count) < 0.5, dtype=np.uint8),
        "id": number,
        "left_children": integers(table[3]),
        "loss_changes": np.zeros(count, dtype=np.float32),
        "parents": integers(parents),
        "right_children": integers(table[4]),
        "split_conditions": np.where(leaf, random.standard_normal(count) * 0.1, table[1]).astype(np.float32),
        "split_indices": integers(np.where(leaf, 0, feature)),
        "split_type": np.zeros(count, dtype=np.uint8),
        "sum_hessian": np.asarray(table[2], dtype=np.float32),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(features),
            "num_nodes": str(count),
            "size_leaf_vector": "1",
        },
    }


def write_xgboost(path, seed, forest, trees):
    random, outputs = np.random.default_rng(seed + 1), forest["outputs"]
    groups = [i % outputs for i in range(len(trees))]
    model = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
        "iteration_indptr": list(range(0, len(trees) + 1, outputs)),
        "tree_info": groups,
        "trees": [xgboost_tree(i, nodes, random, forest["features"]) for i, nodes in enumerate(trees)],
    }
    objective = (
        {"name": "multi:softprob", "softmax_multiclass_param": {"num_class": str(outputs)}}
        if outputs > 1
        else {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}
    )
    learner = {
        "attributes": {},
        "feature_names": [],
        "feature_types": [],
        "gradient_booster": {"model": model, "name": "gbtree"},
        "learner_model_param": {
            "base_score": "0E0",
            "boost_from_average": "1",
            "num_class": str(outputs if outputs > 1 else 0),
            "num_feature": str(forest["features"]),
            "num_target": "1",
        },
        "objective": objective,
    }
    with open(path, "wb") as file:
        file.write(ubj({"learner": learner, "version": [3, 2, 0]}))


def lightgbm_tree(number, nodes, random):
    """Writes a tree as LightGBM does: splits and leaves are numbered each by themselves, leaves as ~number."""
    splits = [at for at, node in enumerate(nodes) if node[0] >= 0]
    leaves = [at for at, node in enumerate(nodes) if node[0] < 0]
    index = {at: i for i, at in enumerate(splits)} | {at: ~i for i, at in enumerate(leaves)}

    def row(name, values):
        return name + "=" + " ".join(map(str, values))

    lines = [f"Tree={number}", f"num_leaves={len(leaves)}", "num_cat=0"]
    lines += [
        row("split_feature", [nodes[at][0] for at in splits]),
        row("split_gain", [1] * len(splits)),
        row("threshold", [repr(float(nodes[at][1])) for at in splits]),
        row("decision_type", [2] * len(splits)),
        row("left_child", [index[nodes[at][3]] for at in splits]),
        row("right_child", [index[nodes[at][4]] for at in splits]),
        row("leaf_value", [repr(float(value)) for value in random.standard_normal(len(leaves)) * 0.1]),
        row("leaf_weight", [nodes[at][2] for at in leaves]),
        row("leaf_count", [int(nodes[at][2]) for at in leaves]),
        row("internal_value", [0] * len(splits)),
        row("internal_weight", [nodes[at][2] for at in splits]),
        row("internal_count", [int(nodes[at][2]) for at in splits]),
    ]
    return "\n".join(lines + ["is_linear=0", "shrinkage=1", "", ""])


def write_lightgbm(path, seed, forest, trees):
    random, features, outputs = np.random.default_rng(seed + 1), forest["features"], forest["outputs"]
    texts = [lightgbm_tree(i, nodes, random) + "\n" for i, nodes in enumerate(trees)]
    head = [
        "tree",
        "version=v4",
        f"num_class={outputs}",
        f"num_tree_per_iteration={outputs}",
        "label_index=0",
        f"max_feature_idx={features - 1}",
        f"objective=multiclass num_class:{outputs}" if outputs > 1 else "objective=regression",
        "feature_names=" + " ".join(f"f{i}" for i in range(features)),
        "feature_infos=" + " ".join(["[-10:10]"] * features),
        "tree_sizes=" + " ".join(str(len(text)) for text in texts),
    ]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(head) + "\n\n" + "".join(texts) + "end of trees\n\nfeature_importances:\n\n")
        file.write("parameters:\nend of parameters\n")


def write(folder, seed):
    """Writes the forest of a seed. Returns the file's path."""
    forest, trees = drawn(seed)
    if forest["format"] == "lightgbm":
        path = f"{folder}/forest-{seed}.txt"
        write_lightgbm(path, seed, forest, trees)
    else:
        path = f"{folder}/forest-{seed}.ubj"
        write_xgboost(path, seed, forest, trees)
    return path

"""Random forests as XGBoost JSON, and rows for them: forests of the sizes of nvForest's own benchmarks, and forests of
several classes. Needs no library and gives the same numbers everywhere."""

import array, json, os, random

ROWS = 16384
# The number of complete levels. Below, a node splits with probability KEEPS_SPLITTING, because nodes of trained trees
# run out of rows.
COMPLETE_TO = 8
KEEPS_SPLITTING = 0.6


def tree(draw, number, depth, features, complete_to=COMPLETE_TO, keeps_splitting=KEEPS_SPLITTING):
    left, right, parents, conditions, indices, default = [], [], [], [], [], []

    def node(parent, level):
        at = len(left)
        splits = level < depth and (level < complete_to or draw.random() < keeps_splitting)
        for column, value in ((left, -1), (right, -1), (parents, parent), (indices, 0), (default, 0)):
            column.append(value)
        conditions.append(draw.uniform(-0.1, 0.1))
        if splits:
            indices[at], conditions[at] = draw.randrange(features), draw.random()
            left[at], right[at] = node(at, level + 1), node(at, level + 1)
        return at

    node(2147483647, 0)
    count, zeros = len(left), [0] * len(left)
    return dict(
        base_weights=zeros,
        categories=[],
        categories_nodes=[],
        categories_segments=[],
        categories_sizes=[],
        default_left=default,
        id=number,
        left_children=left,
        loss_changes=zeros,
        parents=parents,
        right_children=right,
        split_conditions=conditions,
        split_indices=indices,
        split_type=zeros,
        sum_hessian=zeros,
        tree_param=dict(
            num_deleted="0", num_feature=str(features), num_nodes=str(count), size_leaf_vector="1"
        ),
    )


def model(features, depth, trees, classes=1, **shape):
    """Returns a random model. `trees` is the number of trees of all classes together, `shape` the last arguments of
    tree()."""
    draw = random.Random(f"{features} {depth} {trees} {classes}")
    forest = [tree(draw, i, depth, features, **shape) for i in range(trees)]
    rounds = trees // classes
    gbtree = dict(
        gbtree_model_param=dict(num_parallel_tree="1", num_trees=str(trees)),
        iteration_indptr=[i * classes for i in range(rounds + 1)],
        tree_info=[i % classes for i in range(trees)],
        trees=forest,
    )
    objective = (
        dict(name="reg:squarederror", reg_loss_param=dict(scale_pos_weight="1"))
        if classes == 1
        else dict(name="multi:softprob", softmax_multiclass_param=dict(num_class=str(classes)))
    )
    return dict(
        learner=dict(
            attributes={},
            feature_names=[],
            feature_types=[],
            gradient_booster=dict(model=gbtree, name="gbtree"),
            learner_model_param=dict(
                base_score="[0E0]" if classes == 1 else "[5E-1]",
                boost_from_average="1",
                num_class="0" if classes == 1 else str(classes),
                num_feature=str(features),
                num_target="1",
            ),
            objective=objective,
        ),
        version=[3, 0, 0],
    )


def write_npy(path, values, columns):
    """Writes float32 in C order, in NumPy's format 1.0."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values) // columns}, {columns}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        array.array("f", values).tofile(file)


def write(folder, features, depth, trees, classes=1, rows=ROWS, **shape):
    """Writes model.json and rows.npy; existing files are kept."""
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(f"{folder}/rows.npy"):
        draw = random.Random(features)
        write_npy(f"{folder}/rows.npy", array.array("f", (draw.random() for _ in range(rows * features))), features)
    if not os.path.exists(f"{folder}/model.json"):
        with open(f"{folder}/model.json.part", "w") as file:
            json.dump(model(features, depth, trees, classes, **shape), file)
        os.rename(f"{folder}/model.json.part", f"{folder}/model.json")

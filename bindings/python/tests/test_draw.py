"""Trees decoded from a program are the model's, and drawings of them are well-formed, whatever the names are."""

from __future__ import annotations

import json
import math
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import DATA
from small_models import assert_bits

import forestvm
from forestvm import _draw

SVG = "{http://www.w3.org/2000/svg}"
TINY = 1.0000000180025095e-35  # LightGBM's zero
LIGHTGBM = DATA / "lightgbm"
BREAST_CANCER = DATA / "breast_cancer" / "model.json"
HOSTILE = '<script>alert("x")</script>&amp;\\N\n\x07]]>\'">'


def leaf_of(forest: forestvm.Forest, tree: _draw.Tree, row: Any) -> _draw.Leaf:
    """Walks a decoded tree as its nodes say. Categories are whole numbers; LightGBM takes the whole part of others."""
    kind = np.dtype(forest._row_dtype).type
    at = tree.root
    while at >= 0:
        node = tree.nodes[at]
        x = float(kind(row[node.feature]))
        if math.isnan(x) or (node.feature in forest._zero_missing and abs(x) <= TINY):
            at = node.missing
        elif node.categories is None:
            at = node.yes if x < node.threshold else node.no
        else:
            category = np.trunc(x) if forest.trainer == "lightgbm" else np.floor(x)
            at = node.yes if category in node.categories else node.no
    return tree.leaves[~at]


def trees_of(forest: forestvm.Forest) -> list[_draw.Tree]:
    return [_draw.tree_of(forest, number) for number in range(forest.num_trees)]


def assert_leaves(forest: forestvm.Forest, rows: Any) -> None:
    numbers = [[leaf_of(forest, tree, row).number for tree in trees_of(forest)] for row in rows]
    np.testing.assert_array_equal(forest.apply(rows), numbers)


def assert_sums(forest: forestvm.Forest, rows: Any) -> None:
    """Requires that the leaves, added in the order of the trees, are the raw scores. The model has no base scores."""
    raw = forest.predict_raw(rows)
    sums = np.zeros((len(rows), forest.num_outputs), raw.dtype)
    for tree in trees_of(forest):
        for row, scores in zip(rows, sums):
            scores[tree.output] += raw.dtype.type(leaf_of(forest, tree, row).values[0])
    assert_bits(raw, sums.reshape(raw.shape))


@pytest.mark.parametrize(
    "schedule",
    [
        "auto",
        "default",
        "layout(tree, sparse8)",
        "layout(tree, sparse12)",
        "layout(tree, sparse16)",
        "layout(tree, reorg)",
        "tileTree(tree, 4, uniform)",
        "tileTree(tree, 8, uniform)\nlayout(tree, sparse)",
        "tileTree(tree, 3, uniform)\nlayout(tree, reorg)",
        "encode(u8)\nlayout(tree, tables)",
        "encode(u8)\nlayout(tree, treeTables)",
        "encode(u8)\nlayout(tree, sparse4)",
        "encode(u8)\nlayout(tree, array4)",
    ],
)
def test_all_layouts_give_the_same_trees(schedule: str, rows: np.ndarray[Any, Any]) -> None:
    forest = forestvm.load(BREAST_CANCER, schedule=schedule, threads=1)
    rows = rows[:12].copy()
    rows[::3, 7] = np.nan
    assert_leaves(forest, rows)
    assert forest.plot(0)._repr_svg_() == forestvm.load(BREAST_CANCER).plot(0)._repr_svg_()


@pytest.mark.parametrize(
    "folder",
    [
        "lightgbm/4.7.0_categories",
        "lightgbm/4.7.0_classes",
        "lightgbm/4.7.0_nan",
        "lightgbm/4.7.0_none",
        "lightgbm/4.7.0_one_leaf",
        "lightgbm/4.7.0_zero",
        "xgboost_versions/3.2.0_categories_classes",
        "xgboost_versions/3.2.0_vectors",
    ],
)
def test_walking_a_decoded_tree_gives_the_leaf_of_apply(folder: str) -> None:
    path = next((DATA / folder).glob("model.*"))
    forest = forestvm.load(path, threads=1)
    assert_leaves(forest, np.load(path.parent / "rows.npy"))


def rows_with_categories() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    random = np.random.default_rng(5)
    rows = random.normal(size=(300, 4)).astype(np.float32)
    rows[:, 3] = random.integers(0, 12, size=300)
    rows[random.random(rows.shape) < 0.15] = np.nan
    category = np.nan_to_num(rows[:, 3], nan=20)
    target = np.nan_to_num(rows[:, 0]) * np.sin(category) + (category % 3 == 1)
    return rows, target


def frame_of(rows: np.ndarray[Any, Any]) -> Any:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=["a", "b", "c", "kind"])
    names = frame["kind"].map(lambda code: None if math.isnan(code) else f"k{int(code):02}")
    frame["kind"] = pandas.Categorical(names, categories=[f"k{code:02}" for code in range(12)])
    return frame


def test_xgboost_leaves_and_sums() -> None:
    xgboost = pytest.importorskip("xgboost")
    rows, target = rows_with_categories()
    model = xgboost.XGBRegressor(
        n_estimators=6, max_depth=5, base_score=0.0, max_cat_to_onehot=2, n_jobs=1, enable_categorical=True
    )
    model.fit(frame_of(rows), target)
    forest = forestvm.from_xgboost(model)
    assert_leaves(forest, rows)
    assert_sums(forest, rows)
    assert re.search(r"kind in \{k\d\d, k\d\d", forest.to_dot(0))


def test_lightgbm_leaves_and_sums() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rows, target = rows_with_categories()
    options = {
        "min_data_in_leaf": 5,
        "min_data_per_group": 5,
        "cat_smooth": 1,
        "max_cat_to_onehot": 2,
        "num_threads": 1,
    }
    data = lightgbm.Dataset(frame_of(rows), np.digitize(target, [0, 1]))
    booster = lightgbm.train({"objective": "multiclass", "num_class": 3, "verbose": -1, **options}, data, 4)
    forest = forestvm.from_lightgbm(booster)
    assert_leaves(forest, rows)
    assert_sums(forest, rows)
    assert "kind in {k" in "".join(map(forest.to_dot, range(forest.num_trees)))


def test_vectors_add_to_all_outputs() -> None:
    folder = DATA / "xgboost_versions" / "3.2.0_vectors"
    forest = forestvm.load(next(folder.glob("model.*")))
    rows = np.load(folder / "rows.npy")[:20]
    trees = trees_of(forest)
    assert {tree.output for tree in trees} == {None}
    sums = np.array([sum(np.array(leaf_of(forest, tree, row).values) for tree in trees) for row in rows])
    raw = forest.predict_raw(rows).astype(np.float64)
    np.testing.assert_allclose(raw - raw[0], sums - sums[0], atol=1e-5)


def test_linear_leaves_have_their_functions() -> None:
    folder = LIGHTGBM / "4.7.0_linear"
    forest = forestvm.load(folder / "model.txt")
    rows = np.load(folder / "rows.npy")
    rows = rows[~np.isinf(rows).any(axis=1)]
    trees = trees_of(forest)

    def output(tree: _draw.Tree, row: Any) -> float:
        leaf = leaf_of(forest, tree, row)
        assert leaf.function is not None
        result = leaf.function[0] + sum(factor * float(row[feature]) for feature, factor in leaf.function[1])
        return leaf.values[0] if math.isnan(result) else result

    np.testing.assert_allclose(
        forest.predict_raw(rows), [sum(output(tree, row) for tree in trees) for row in rows], rtol=1e-12
    )
    # The leaves of the first tree are constants, so they say nothing about missing values.
    assert all("missing" not in line for line in forest.to_dot(0).splitlines() if "leaf 0" in line)
    assert re.search(r"\d \* \S.*, or \S+ if one is missing", forest.to_dot(1))
    assert " linear<" in forest.plot(1)._repr_svg_()


@pytest.mark.parametrize(("path", "sign"), [(BREAST_CANCER, "<"), (LIGHTGBM / "4.7.0_nan" / "model.txt", "<=")])
def test_thresholds_read_back(path: Path, sign: str) -> None:
    forest = forestvm.load(path)
    kind = np.dtype(forest._row_dtype).type
    for number, tree in enumerate(trees_of(forest)):
        tests = re.findall(r'^  node\d+ \[label=".* (<=?) (\S+)"\]$', forest.to_dot(number), re.MULTILINE)
        assert [found for found, _ in tests] == [sign] * len(tree.nodes)
        numbers = [kind(text) for _, text in tests]
        above = numbers if sign == "<" else [np.nextafter(x, kind(math.inf)) for x in numbers]
        assert [float(x) for x in above] == [node.threshold for node in tree.nodes]


def test_graphviz_text_says_where_missing_values_go_and_what_leaves_add() -> None:
    forest = forestvm.load(BREAST_CANCER)
    tree, text = _draw.tree_of(forest, 3), forest.to_dot(3)
    assert text.startswith("digraph tree3 {\n")
    assert text.count(" -> ") == 2 * len(tree.nodes)
    assert text.count("missing") == len(tree.nodes)
    for index, leaf in enumerate(tree.leaves):
        value = re.search(rf'leaf{index} \[style=rounded, label="leaf {leaf.number}: (\S+)"\]', text)
        assert value is not None and np.float32(value[1]) == leaf.values[0]
    zero = forestvm.load(LIGHTGBM / "4.7.0_zero" / "model.txt")
    assert ", missing or 0" in zero.to_dot(0)


def test_names_of_categories_and_derived_columns() -> None:
    assert "x/y in {grün}" in forestvm.load(LIGHTGBM / "4.7.0_pandas" / "model.txt").to_dot(0)
    assert [_draw._category(name) for name in ("a b", "a, b", "", "}")] == ["a b", "'a, b'", "''", "'}'"]
    folder = DATA / "catboost" / "1.2.10_counters"
    forest = forestvm.load(next(folder.glob("model.*")))
    assert "(lookup " in "".join(map(forest.to_dot, range(forest.num_trees)))


def elements_of(text: str) -> list[ElementTree.Element]:
    """Returns the elements of a drawing, and requires that it names nothing outside itself and runs nothing."""
    elements = list(ElementTree.fromstring(text).iter())
    assert {element.tag.removeprefix(SVG) for element in elements} <= {"svg", "g", "path", "rect", "text", "title"}
    for element in elements:
        for name, value in element.attrib.items():
            assert "href" not in name and not name.startswith("on") and "url" not in value and ":" not in value
    assert text.count("http") == 1  # the name of the format
    return elements


def hostile_forest() -> forestvm.Forest:
    model = json.loads(BREAST_CANCER.read_text())
    names = model["learner"]["feature_names"]
    model["learner"]["feature_names"] = [f"{HOSTILE}{i}" for i in range(len(names))]
    return forestvm.load(json.dumps(model).encode())


def test_hostile_names_are_escaped() -> None:
    forest = hostile_forest()
    shown = HOSTILE.replace("\x07", "\ufffd") + "7 < 0.05142"
    elements = elements_of(forest.plot(0)._repr_svg_())
    assert shown in [element.text for element in elements if element.tag == SVG + "title"]
    cut = f"{shown[:16]}…{shown[-15:]}"
    assert cut in [element.text for element in elements if element.tag == SVG + "text"]
    ElementTree.fromstring(forest._repr_html_())
    text = forest.to_dot(0)
    labels = re.findall(r'^  node\d+ \[label="((?:[^"\\\n]|\\.)*)"\]$', text, re.MULTILINE)
    assert len(labels) == len(_draw.tree_of(forest, 0).nodes)
    unescaped = re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], labels[0])
    assert unescaped.replace("&amp;", "&") == shown


@pytest.mark.parametrize("max_depth", [None, 0, 1, 2])
@pytest.mark.parametrize("path", [BREAST_CANCER, LIGHTGBM / "4.7.0_pandas" / "model.txt"])
def test_boxes_and_texts_of_branches_do_not_overlap(path: Path, max_depth: int | None) -> None:
    forest = forestvm.load(path)
    for number in range(0, forest.num_trees, 20):
        elements = elements_of(forest.plot(number, max_depth)._repr_svg_())
        width, height = (float(elements[0].attrib[name]) for name in ("width", "height"))
        levels: dict[float, list[tuple[float, float]]] = {}
        for rect in (element for element in elements if element.tag == SVG + "rect"):
            x, y, wide, high = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
            assert 0 <= x and x + wide <= width + 1 and 0 <= y and y + high <= height
            levels.setdefault(y, []).append((x, x + wide))
        for level in levels.values():
            assert all(before[1] < after[0] for before, after in zip(sorted(level), sorted(level)[1:]))
        tree = _draw.tree_of(forest, number)
        boxes = (sum(map(len, levels.values())) + 1) // 2  # each but the root has a branch
        assert boxes == len(tree.nodes) + len(tree.leaves) if max_depth is None else boxes <= 2 ** (max_depth + 1) - 1


def test_a_level_too_deep_is_one_box() -> None:
    forest = forestvm.load(BREAST_CANCER)
    count = len(_draw.tree_of(forest, 0).leaves)
    texts = [element.text for element in elements_of(forest.plot(0, 0)._repr_svg_()) if element.tag == SVG + "text"]
    assert texts == [f"… {count} leaves"]


def test_a_drawing_is_shown_saved_and_printed(tmp_path: Path) -> None:
    drawing = forestvm.load(BREAST_CANCER).plot(0)
    drawing.save(tmp_path / "tree.svg")
    with pytest.raises(forestvm.Environment, match="cannot write the file: No such file"):
        drawing.save(tmp_path / "absent" / "tree.svg")
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8") == drawing._repr_svg_()
    assert drawing._repr_svg_() in drawing._repr_html_()
    assert repr(drawing) == "<forestvm.Drawing: tree 0, 10 tests, 11 leaves>"


def test_the_card_tells_what_the_forest_is() -> None:
    forest = forestvm.load(BREAST_CANCER)
    cells = [element.text for element in ElementTree.fromstring(forest._repr_html_()).iter("td")]
    size = f"{len(forest.to_bytes()):,} bytes"
    assert cells[1:] == ["binary:logistic", "200", "30", "1", "trainer", size]
    assert forest.plot(0, 2)._repr_svg_() in forest._repr_html_()


@pytest.mark.parametrize("draw", [forestvm.Forest.to_dot, forestvm.Forest.plot])
def test_wrong_numbers_are_errors(draw: Callable[[forestvm.Forest, Any], object]) -> None:
    forest = forestvm.load(BREAST_CANCER)
    for number in (-1, 200, 2**32, 10**30):
        with pytest.raises(
            forestvm.Usage, match=f"there is no tree {number}: the model has 200, numbered from 0"
        ) as caught:
            draw(forest, number)
        assert caught.value.where == "tree"
    for wrong in ("0", 0.0, None):
        with pytest.raises(TypeError):
            draw(forest, wrong)
    assert draw(forest, np.int64(3)) is not None
    for wrong in (-1, "1", 1.0, True):
        with pytest.raises(forestvm.Usage, match=f"max_depth is {wrong!r}"):
            forest.plot(0, max_depth=wrong)


def test_a_pickle_draws_the_same_trees() -> None:
    forest = hostile_forest()
    again = pickle.loads(pickle.dumps(forest))
    assert [again.to_dot(number) for number in range(5)] == [forest.to_dot(number) for number in range(5)]


def test_drawing_is_imported_when_it_is_used() -> None:
    code = "import sys, forestvm; assert 'forestvm._draw' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

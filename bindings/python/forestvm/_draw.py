"""Draws trees as Graphviz text and SVG. Only Forest.to_dot, Forest.plot and Forest._repr_html_ import this module."""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ._arguments import whole
from ._errors import Usage, file_errors

if TYPE_CHECKING:
    from ._forest import Forest


class Node(NamedTuple):
    """A test. A child is the index of a test, or the complement (~) of the index of a leaf."""

    feature: int
    threshold: float | None  # The least number that goes right; None if the test is for categories.
    categories: tuple[int, ...] | None  # Categories that go right.
    missing_left: bool
    left: int
    right: int

    @property
    def yes(self) -> int:
        """The child of rows that pass the test as it is written: x < threshold, or x in the set of categories."""
        return self.left if self.categories is None else self.right

    @property
    def no(self) -> int:
        return self.right if self.categories is None else self.left

    @property
    def missing(self) -> int:
        return self.left if self.missing_left else self.right


class Leaf(NamedTuple):
    number: int  # The trainer's number of the leaf, as Forest.apply gives it.
    values: tuple[float, ...]
    function: tuple[float, list[tuple[int, float]]] | None  # The constant, and coefficients of features.


class Tree(NamedTuple):
    output: int | None  # The output to which the leaves add; None if they have a number for each output.
    root: int
    nodes: list[Node]
    leaves: list[Leaf]


def tree_of(forest: Forest, number: int) -> Tree:
    """Decodes a tree. Raises Usage if the model has no tree with this number."""
    output, root, nodes, leaves = forest._tree(number)
    return Tree(output, root, [Node(*node) for node in nodes], [Leaf(*leaf) for leaf in leaves])


# Characters that XML 1.0 cannot hold, not even escaped.
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Words:
    """The texts of a tree. Numbers are the shortest texts that read back as the same number of the model's type."""

    def __init__(self, forest: Forest, tree: Tree) -> None:
        self._forest, self._tree = forest, tree
        self._row_type = np.dtype(forest._row_dtype).type
        self._score_type = forest._new_result(0, "raw", None, None).dtype.type
        self._zero_missing = set(forest._zero_missing)
        self._names = {feature: names for feature, names, _ in forest._category_tables}
        self._at_most = self._prefers_at_most()

    def feature(self, feature: int) -> str:
        forest = self._forest
        if feature < forest.num_features:
            return _clean(forest.feature_names[feature]) if forest.feature_names else f"f{feature}"
        text = forest._derived_columns[feature - forest.num_features]
        return "(" + re.sub(r"\bf(\d+)\b", lambda match: self.feature(int(match[1])), text) + ")"

    def test(self, node: Node) -> str:
        name = self.feature(node.feature)
        if node.categories is not None:
            names = self._names.get(node.feature, ())
            texts = [_category(names[code]) if code < len(names) else str(code) for code in node.categories]
            return f"{name} in {{{', '.join(texts)}}}"
        return f"{name} {self._comparison(node, self._at_most)}"

    def way(self, node: Node, yes: bool) -> str:
        """Returns the text of a branch: whether rows that pass the test take it, and whether missing values do."""
        text = "yes" if yes else "no"
        if node.missing != (node.yes if yes else node.no):
            return text
        return text + (", missing or 0" if node.feature in self._zero_missing else ", missing")

    def leaf(self, leaf: Leaf) -> str:
        values = ", ".join(str(self._score_type(value)) for value in leaf.values)
        if leaf.function is None:
            return values
        constant, terms = leaf.function
        text = " + ".join([repr(constant)] + [f"{factor!r} * {self.feature(feature)}" for feature, factor in terms])
        return f"{text}, or {values} if one is missing" if terms else text

    def short_leaf(self, leaf: Leaf) -> str:
        if leaf.function is None:
            return ", ".join(f"{value:.4g}" for value in leaf.values)
        constant, terms = leaf.function
        return f"{constant:.4g}" + (f" + {len(terms)} linear" if terms else "")

    def output(self) -> str:
        """Returns the output to which the tree adds; "" if the model has one output or the leaves are vectors."""
        output, classes = self._tree.output, self._forest.classes
        if output is None or self._forest.num_outputs == 1:
            return ""
        return f"class {_clean(classes[output])}" if len(classes) == self._forest.num_outputs else f"output {output}"

    def _comparison(self, node: Node, at_most: bool) -> str:
        threshold = self._row_type(node.threshold)
        if at_most and threshold > -math.inf:
            return "<= " + str(np.nextafter(threshold, self._row_type(-math.inf)))
        return "< " + str(threshold)

    def _prefers_at_most(self) -> bool:
        """Returns whether to write `x <= t`, with the number before each threshold, which means the same as `x < t`.

        The form with much shorter numbers is taken to be the trainer's. If neither is much shorter, the form is `<=`
        for models that compare in float64.
        """
        tests = [node for node in self._tree.nodes if node.categories is None]
        longer = sum(len(self._comparison(node, True)) - 1 - len(self._comparison(node, False)) for node in tests)
        if abs(longer) > _MUCH * len(tests):
            return longer < 0
        return self._row_type is np.float64


_MUCH = 2  # Letters per test. The texts of random neighbouring numbers differ by less.


def _clean(text: str) -> str:
    return _NO_TEXT.sub("\ufffd", text)


def _category(name: str) -> str:
    """Returns a category's name, in quotes if a reader of a list of names could mistake it."""
    return _clean(name if name and name == name.strip() and not re.search("[,{}'\"\\n]", name) else repr(name))


def to_dot(forest: Forest, number: int) -> str:
    tree = tree_of(forest, number)
    words = Words(forest, tree)

    def position(child: int) -> str:
        return f"leaf{~child}" if child < 0 else f"node{child}"

    output = words.output()
    lines = [f"digraph tree{int(number)} {{"]
    lines += [f"  label={_quoted(output)}"] if output else []
    lines += ["  node [shape=box]"]
    for index, node in enumerate(tree.nodes):
        lines.append(f"  node{index} [label={_quoted(words.test(node))}]")
        for yes, child in ((True, node.yes), (False, node.no)):
            lines.append(f"  node{index} -> {position(child)} [label={_quoted(words.way(node, yes))}]")
    for index, leaf in enumerate(tree.leaves):
        lines.append(f"  leaf{index} [style=rounded, label={_quoted(f'leaf {leaf.number}: {words.leaf(leaf)}')}]")
    return "\n".join(lines) + "\n}\n"


def _quoted(text: str) -> str:
    """Returns a label of Graphviz, which knows escapes and HTML's entities in labels."""
    for before, after in (("&", "&amp;"), ("\\", "\\\\"), ('"', '\\"'), ("\r", "\\r"), ("\n", "\\n")):
        text = text.replace(before, after)
    return f'"{text}"'


class Drawing:
    """A tree as SVG. Notebooks show it; `save` writes it to a file."""

    def __init__(self, svg: str, text: str) -> None:
        self._svg, self._text = svg, text

    def _repr_svg_(self) -> str:
        return self._svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self._svg}</div>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the SVG to a file. Raises Environment if it cannot be written."""
        with file_errors("write", path), open(path, "w", encoding="utf-8") as file:
            file.write(self._svg)

    def __repr__(self) -> str:
        return self._text


Drawing.__module__ = "forestvm"


class Box:
    """A node of a drawing and the branch to it. In pixels: `x` is the middle of the box, `width` the width of the box,
    `way_width` the width of the branch's text, `room` the width that box and text need, `span` the width of the
    subtree."""

    def __init__(self, kind: str, text: str, title: str, depth: int, way: str) -> None:
        self.text = (
            text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS // 2]}…{text[-_MOST_LETTERS // 2 + 1 :]}"
        )
        self.kind, self.title, self.depth, self.way = kind, title, depth, way
        self.children: list[Box] = []
        self.width = max(_width(self.text) + 16, 40)
        self.way_width = _width(way) + 4
        self.room = max(self.width, self.way_width / _WAY_POSITION) + _GAP
        self.x = self.span = 0.0


def _width(text: str) -> float:
    return _LETTER * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


_MOST_LETTERS, _LETTER = 32, 6.7  # The width of a letter of the font is less than this.
_HEIGHT, _LEVEL, _GAP = 24, 76, 10
_WAY_POSITION = 0.8  # The position of a branch's text, between the parent, 0, and the child, 1.
# Each box and branch has a background of its own, so that texts are readable on pages of any colour.
_FILL = {"test": ("#dbe9f6", "#2f5d8a"), "leaf": ("#e2f0d9", "#4d7a34"), "more": ("#eeeeee", "#808080")}
_INK = "#1a1a1a"


def _boxes(words: Words, tree: Tree, max_depth: int | None) -> list[Box]:
    """Returns the boxes of a tree, parents before their children."""
    boxes: list[Box] = []
    todo: list[tuple[int, int, str, Box | None]] = [(tree.root, 0, "", None)]
    while todo:
        at, depth, way, parent = todo.pop()
        if at < 0:
            leaf = tree.leaves[~at]
            box = Box("leaf", words.short_leaf(leaf), f"leaf {leaf.number}: {words.leaf(leaf)}", depth, way)
        elif max_depth is not None and depth >= max_depth:
            count = sum(1 for child in _below(tree, at) if child < 0)
            box = Box("more", f"… {count} leaves", words.test(tree.nodes[at]), depth, way)
        else:
            node = tree.nodes[at]
            text = words.test(node)
            box = Box("test", text, text, depth, way)
            todo.append((node.no, depth + 1, words.way(node, False), box))
            todo.append((node.yes, depth + 1, words.way(node, True), box))
        if parent is not None:
            parent.children.append(box)
        boxes.append(box)
    return boxes


def _below(tree: Tree, root: int) -> Iterator[int]:
    todo = [root]
    while todo:
        at = todo.pop()
        yield at
        if at >= 0:
            todo += [tree.nodes[at].left, tree.nodes[at].right]


def _arrange(boxes: list[Box]) -> None:
    """Gives each box a stripe as wide as its subtree, and puts the box in the middle of its children."""
    for box in reversed(boxes):
        box.span = max(box.room, sum(child.span for child in box.children))
    lefts = {id(boxes[0]): 0.0}
    for box in boxes:
        left = lefts[id(box)] + (box.span - sum(child.span for child in box.children)) / 2
        for child in box.children:
            lefts[id(child)] = left
            left += child.span
    for box in reversed(boxes):
        own = lefts[id(box)] + box.span / 2
        box.x = sum(child.x for child in box.children) / len(box.children) if box.children else own
        box.x = min(max(box.x, lefts[id(box)] + box.room / 2), lefts[id(box)] + box.span - box.room / 2)


def _label(
    x: float, y: float, width: float, height: float, fill: str, stroke: str, text: str, title: str, radius: int
) -> str:
    hint = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<g>{hint}<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height}" '
        f'rx="{radius}" fill="{fill}" stroke="{stroke}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" fill="{_INK}">{escape(text)}</text></g>'
    )


def _svg(boxes: list[Box], name: str) -> str:
    _arrange(boxes)

    def middle(box: Box) -> float:
        return box.depth * _LEVEL + _HEIGHT / 2 + 1

    width, height = boxes[0].span, max(map(middle, boxes)) + _HEIGHT / 2 + 1
    lines, labels = [], []
    for box in boxes:
        fill, stroke = _FILL[box.kind]
        radius = 3 if box.kind == "test" else 11
        labels.append(_label(box.x, middle(box), box.width, _HEIGHT, fill, stroke, box.text, box.title, radius))
        for child in box.children:
            top, bottom = middle(box) + _HEIGHT / 2, middle(child) - _HEIGHT / 2
            lines.append(f'<path d="M{box.x:.1f} {top:.1f}L{child.x:.1f} {bottom:.1f}"/>')
            x, y = box.x + (child.x - box.x) * _WAY_POSITION, top + (bottom - top) * _WAY_POSITION
            labels.append(_label(x, y, child.way_width, 16, "#f7f7f7", "none", child.way, "", 3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(name)}">'
        f'<g stroke="#808080" fill="none">{"".join(lines)}</g>'
        '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11" text-anchor="middle">'
        f'{"".join(labels)}</g></svg>'
    )


def plot(forest: Forest, number: int, max_depth: int | None) -> Drawing:
    levels = 0 if max_depth is None else whole(max_depth)
    if levels is None or levels < 0:
        raise Usage(f"max_depth is {max_depth!r}: expected a number from 0, or None", "max_depth")
    tree = tree_of(forest, number)
    words = Words(forest, tree)
    output = words.output()
    name = f"tree {int(number)}" + (f", {output}" if output else "")
    text = f"<forestvm.Drawing: {name}, {len(tree.nodes)} tests, {len(tree.leaves)} leaves>"
    return Drawing(_svg(_boxes(words, tree, max_depth), name), text)


_CARD_LEVELS = 2


def card(forest: Forest) -> str:
    """Returns HTML that describes a forest, with the top of its first tree."""
    facts = [
        ("trainer", f"{forest.trainer} {forest.trainer_version}".strip()),
        ("objective", forest.objective),
        ("trees", str(forest.num_trees)),
        ("features", str(forest.num_features)),
        ("outputs", str(forest.num_outputs)),
        ("contract", forest.contract),
        ("size", f"{memoryview(forest).nbytes:,} bytes"),
    ]
    rows = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{escape(_clean(value))}</td></tr>'
        for name, value in facts
        if value
    )
    drawing = plot(forest, 0, _CARD_LEVELS)._repr_svg_() if forest.num_trees > 0 else ""
    return (
        '<div style="border:1px solid #808080;border-radius:6px;padding:8px;overflow-x:auto">'
        f"<strong>forestvm.Forest</strong><table>{rows}</table>{drawing}</div>"
    )

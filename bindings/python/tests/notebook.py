"""Runs Jupyter notebooks without Jupyter: cells in order, in one namespace, with what they print and show.

    python notebook.py NOTEBOOK.ipynb     runs a notebook and writes its outputs into it
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

VARIES = "varies"  # the tag of cells whose output differs from run to run


def run_cell(source: str, names: dict[str, Any], where: str) -> list[dict[str, Any]]:
    """Runs a cell. Returns its outputs as a notebook holds them: the printed text, then the last expression's value."""
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        for name, kind in (("_repr_html_", "text/html"), ("_repr_svg_", "image/svg+xml")):
            show = getattr(value, name, None)
            if show is not None and show() is not None:
                data[kind] = _lines(show())
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def run(path: Path) -> dict[str, Any]:
    """Runs a notebook, and returns it with its outputs."""
    book: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in book["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        cell["execution_count"] = count
        cell["outputs"] = run_cell("".join(cell["source"]), names, f"{path.name}, cell {count}")
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = count
    return book


def main() -> None:
    path = Path(sys.argv[1])
    path.write_text(json.dumps(run(path), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

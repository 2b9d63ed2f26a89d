"""The Python blocks of the documents do what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

TREE = Path(__file__).resolve().parents[3]
MODEL = TREE / "tests" / "data" / "breast_cancer"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n<!-- output -->\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "packages"),
    [("docs/python-trainers.md", ("xgboost", "sklearn")), ("docs/python.md", ("pandas",)), ("README.md", ())],
)
def test_blocks_run_and_print_what_the_page_says(
    page: str, packages: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in packages:
        pytest.importorskip(package)
    for name in ("model.json", "rows.npy"):
        (tmp_path / name).symlink_to(MODEL / name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    text = (TREE / page).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == text.count("```python\n") > 0
    for block in blocks:
        if text[: block.start()].splitlines()[-1].startswith("<!-- not run: "):
            continue
        line = text[: block.start()].count("\n") + 2
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + block[1], page, "exec"), names)
        assert printed.getvalue() == (block[2] or ""), f"line {line}"

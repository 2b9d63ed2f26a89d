"""The Python blocks of docs/python-trainers.md do what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python-trainers.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n<!-- output -->\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def test_blocks_run_and_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("xgboost", "sklearn"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    text = PAGE.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == text.count("```python\n") > 0
    for block in blocks:
        line = text[: block.start()].count("\n") + 2
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + block[1], str(PAGE), "exec"), names)
        assert printed.getvalue() == (block[2] or ""), f"line {line}"

"""The notebook in examples/ runs, and shows what it showed when it was written."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from notebook import VARIES, run

TREE = Path(__file__).resolve().parents[3]
NOTEBOOK = TREE / "examples" / "python_tour.ipynb"


def _c_library(folder: Path) -> Path | None:
    """Returns a folder with include/ and lib/ of the C library, or None if the release preset has not been built."""
    library = TREE / "build" / "release" / "lib" / "libforestvm_runtime.so"  # other trees may have fewer layouts
    if not library.exists():
        return None
    (folder / "include").symlink_to(TREE / "include")
    (folder / "lib").symlink_to(library.parent)
    return folder


def _shown(cell: dict[str, Any]) -> list[Any]:
    """Returns a cell's outputs without the parts that differ from run to run."""
    if VARIES in cell["metadata"].get("tags", []):
        return []
    return [output.get("text") or output["data"] for output in cell["outputs"]]


def test_cells_show_what_they_showed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("xgboost", "sklearn"):
        pytest.importorskip(package)
    prefix = os.environ.get("FORESTVM_PREFIX") or _c_library(tmp_path)
    if prefix is None or shutil.which("cc") is None:
        pytest.skip("the C library (forestvm_runtime) is not built, or there is no C compiler")
    monkeypatch.setenv("FORESTVM_PREFIX", str(prefix))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    kept = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    for before, after in zip(kept["cells"], run(NOTEBOOK)["cells"], strict=True):
        if before["cell_type"] == "code":
            assert before["outputs"], "".join(before["source"])
            assert _shown(after) == _shown(before)

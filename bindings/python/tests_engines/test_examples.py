"""The programs in examples/engines run as written."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "engines"
ENGINES = {"spark": "pyspark", "dask": "distributed"}  # packages with other names than their examples


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("with_*.py")), ids=lambda path: path.stem)
def test_an_example_gives_the_bits_of_one_process(path: Path) -> None:
    name = path.stem.removeprefix("with_")
    if importlib.util.find_spec(ENGINES.get(name, name)) is None:
        pytest.skip(f"no package {ENGINES.get(name, name)}")
    done = subprocess.run([sys.executable, str(path), "--rows", "3000"], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the predictions are equal, bit for bit" in done.stdout

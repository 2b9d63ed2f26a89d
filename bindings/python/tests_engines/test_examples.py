"""The programs in examples/engines run as written."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "engines"
PATHS = sorted(EXAMPLES.glob("with_*.py"))
PACKAGES = {"spark": "pyspark", "dask": "distributed"}  # packages with other names than their examples


def package_of(path: Path) -> str:
    name = path.stem.removeprefix("with_")
    return PACKAGES.get(name, name)


def run(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(path), "--rows", "3000"], capture_output=True, text=True, timeout=400)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[Path, Future[subprocess.CompletedProcess[str]]]]:
    """Runs the examples of the selected tests, two at a time: engines mostly wait while they start and stop."""
    selected = [item.callspec.params["path"] for item in request.session.items if item.module is request.module]
    with ThreadPoolExecutor(2) as pool:
        yield {path: pool.submit(run, path) for path in selected if importlib.util.find_spec(package_of(path))}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_an_example_gives_the_bits_of_one_process(
    path: Path, runs: dict[Path, Future[subprocess.CompletedProcess[str]]]
) -> None:
    if path not in runs:
        pytest.skip(f"no package {package_of(path)}")
    done = runs[path].result()
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the predictions are equal, bit for bit" in done.stdout

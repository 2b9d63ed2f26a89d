"""The shared parts of the examples: a folder of Parquet files, the predictions of one process, and their comparison."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

import forestvm

MODEL = Path(__file__).resolve().parents[2] / "tests" / "data" / "breast_cancer" / "model.json"
FILE_ROWS = 250_000


def arguments(description: str | None, rows: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=int, default=rows, help=f"rows to predict (default: {rows})")
    parser.add_argument("--model", type=Path, default=MODEL, help="a model file (default: the one in tests/data)")
    # The engines' workers start this interpreter, on this machine alone.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return parser.parse_args()


def write_rows(folder: Path, forest: forestvm.Forest, rows: int) -> Path:
    """Writes Parquet files: an id, and a column of normal numbers for each feature, a tenth of which are missing."""
    random = np.random.default_rng(1)
    target = folder / "rows"
    target.mkdir()
    for number, begin in enumerate(range(0, rows, FILE_ROWS)):
        count = min(FILE_ROWS, rows - begin)
        columns: dict[str, Any] = {"id": np.arange(begin, begin + count)}
        for name in forest.feature_names:
            values = random.normal(scale=10, size=count).astype(np.float32)
            columns[name] = pa.array(values, mask=random.random(count) < 0.1)
        pa.parquet.write_table(pa.table(columns), target / f"part-{number}.parquet")
    return target


def predict_in_one_process(forest: forestvm.Forest, folder: Path) -> np.ndarray:
    """Returns the predictions of all files in the order of ids."""
    parts = []
    for number in range(len(list(folder.iterdir()))):
        table = pa.parquet.read_table(folder / f"part-{number}.parquet")
        parts.append(forest.predict(table, extra="ignore"))
    return np.concatenate(parts)


def compare(
    description: str | None, engine: Callable[[forestvm.Forest, Path, Path], None], rows: int = 1_000_000
) -> None:
    """Runs an engine on a new folder of rows, and one process. `engine` writes Parquet files with the columns id and
    prediction, or one such file, to the path that it is given. Prints what each took; the predictions must be equal."""
    options = arguments(description, rows)
    forest = forestvm.load(options.model)
    with tempfile.TemporaryDirectory() as name:
        folder = write_rows(Path(name), forest, options.rows)
        begin = time.perf_counter()
        wanted = predict_in_one_process(forest, folder)
        report("one process", options.rows, time.perf_counter() - begin)
        begin = time.perf_counter()
        engine(forest, folder, Path(name) / "predictions")
        report("the engine", options.rows, time.perf_counter() - begin)
        table = (
            pa.dataset.dataset(Path(name) / "predictions", format="parquet")
            .to_table(["id", "prediction"])
            .sort_by("id")
        )
        assert np.array_equal(table["id"].to_numpy(), np.arange(options.rows))
        assert table["prediction"].to_numpy().tobytes() == wanted.tobytes()
        print("the predictions are equal, bit for bit")


def report(who: str, rows: int, seconds: float) -> None:
    print(f"{who}: {seconds:.2f} s, {rows / seconds:,.0f} rows a second", flush=True)

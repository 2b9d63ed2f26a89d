"""Predicts Parquet files with polars, as a stream that never holds all rows."""

from __future__ import annotations

from pathlib import Path

import polars
from rows import compare

import forestvm
from forestvm.engines import polars as engine


def predict(forest: forestvm.Forest, rows: Path, predictions: Path) -> None:
    polars.scan_parquet(rows / "*.parquet").select("id", engine.expr(forest)).sink_parquet(predictions)


if __name__ == "__main__":
    compare(__doc__, predict)

"""Predicts Parquet files with DuckDB: a function in SQL."""

from __future__ import annotations

from pathlib import Path

import duckdb
from rows import compare

import forestvm
from forestvm.engines import duckdb as engine


def predict(forest: forestvm.Forest, rows: Path, predictions: Path) -> None:
    connection = duckdb.connect()
    engine.register(connection, "score", forest)
    connection.sql(
        f"COPY (SELECT id, score(t) AS prediction FROM '{rows}/*.parquet' t) TO '{predictions}' (FORMAT parquet)"
    )


if __name__ == "__main__":
    compare(__doc__, predict)

"""Predicts Parquet files with Dask, in two worker processes on this machine."""

from __future__ import annotations

from pathlib import Path

import dask.dataframe
from distributed import Client, LocalCluster
from rows import compare

import forestvm
from forestvm.engines import dask as engine


def predict(forest: forestvm.Forest, rows: Path, predictions: Path) -> None:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        frame = dask.dataframe.read_parquet(rows)
        engine.predict(frame, forest, keep=["id"]).to_parquet(predictions, write_index=False)


if __name__ == "__main__":
    compare(__doc__, predict)

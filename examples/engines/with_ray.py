"""Predicts Parquet files with Ray Data, in one or two actors on this machine."""

from __future__ import annotations

from pathlib import Path

import ray
from rows import compare

import forestvm
from forestvm.engines import ray as engine


def predict(forest: forestvm.Forest, rows: Path, predictions: Path) -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    dataset = engine.predict(ray.data.read_parquet(str(rows)), forest)
    dataset.select_columns(["id", "prediction"]).write_parquet(str(predictions))
    ray.shutdown()


if __name__ == "__main__":
    compare(__doc__, predict)

"""Saves a model of MLflow's pyfunc flavour, loads it again, and predicts Parquet files."""

from __future__ import annotations

from pathlib import Path

import mlflow
import pyarrow as pa
import pyarrow.parquet
from rows import compare

import forestvm
from forestvm.engines import mlflow as engine


def predict(forest: forestvm.Forest, rows: Path, predictions: Path) -> None:
    engine.save(forest, predictions.parent / "model")
    model = mlflow.pyfunc.load_model(str(predictions.parent / "model"))
    predictions.mkdir()
    for path in rows.iterdir():
        table = pa.parquet.read_table(path)
        answers = pa.table({"id": table["id"], "prediction": model.predict(table.to_pandas())})
        pa.parquet.write_table(answers, predictions / path.name)


if __name__ == "__main__":
    compare(__doc__, predict)

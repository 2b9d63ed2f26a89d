"""Serves a model with KServe's server on loopback, and asks it for predictions of Parquet files, in binary tensors."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import tritonclient.http
from rows import compare
from tritonclient.utils import triton_to_np_dtype

import forestvm

SERVER = """
import sys, kserve
from forestvm.engines.kserve import Model
kserve.ModelServer(http_port=18090, enable_grpc=False, workers=1).start([Model(sys.argv[1], "forest")])
"""
BATCH = 20_000


def predict(forest: forestvm.Forest, rows: Path, predictions: Path) -> None:
    program = predictions.parent / "forest.fvm"
    forest.save(program)
    with open(predictions.parent / "server.log", "wb") as log:
        server = subprocess.Popen([sys.executable, "-c", SERVER, str(program)], stdout=log, stderr=log)
    try:
        wait(server, predictions.parent / "server.log")
        client = tritonclient.http.InferenceServerClient("127.0.0.1:18090")
        predictions.mkdir()
        for path in rows.iterdir():
            table = pa.parquet.read_table(path)
            answers = [ask(client, forest, batch) for batch in table.to_batches(BATCH)]
            answered = pa.table({"id": table["id"], "prediction": np.concatenate(answers)})
            pa.parquet.write_table(answered, predictions / path.name)
    finally:
        server.terminate()
        server.wait()


def wait(server: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until the server is ready."""
    for _ in range(600):
        try:
            with urllib.request.urlopen("http://127.0.0.1:18090/v2/health/ready"):
                return
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.2)
    raise SystemExit(log.read_text())


def ask(client: tritonclient.http.InferenceServerClient, forest: forestvm.Forest, rows: pa.RecordBatch) -> np.ndarray:
    columns = [rows[name].fill_null(float("nan")).to_numpy(zero_copy_only=False) for name in forest.feature_names]
    datatype = client.get_model_metadata("forest")["inputs"][0]["datatype"]
    matrix = np.column_stack(columns).astype(triton_to_np_dtype(datatype))
    tensor = tritonclient.http.InferInput("rows", list(matrix.shape), datatype)
    tensor.set_data_from_numpy(matrix)
    return client.infer("forest", [tensor]).as_numpy("prediction")


if __name__ == "__main__":
    compare(__doc__, predict)

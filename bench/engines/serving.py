#!/usr/bin/env python3
"""Measures KServe's server under load: forestvm's model beside XGBoost's and LightGBM's own predictors.

    serving.py [--seconds 3] [--requests 20000]

One server on loopback with two worker processes serves four models, each with one thread: XGBoost's model with XGBoost
and with forestvm, LightGBM's with LightGBM and with forestvm. 1, 8 and 64 clients, each with one connection and one
request at a time, send binary tensors of 1 and of 256 rows: float32 for XGBoost's model, float64 for LightGBM's. A
cell ends after the given seconds or requests; the models take turns. Prints a table: requests a second, and the median
and the 99th percentile of the milliseconds of a request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import tritonclient.http
from models import made_up_rows, train
from tritonclient.utils import np_to_triton_dtype

import forestvm

PORT = 18095
MODELS = {
    "xgboost": "xgboost.json",
    "forestvm-xgboost": "xgboost.json",
    "lightgbm": "lightgbm.txt",
    "forestvm-lightgbm": "lightgbm.txt",
}
CLIENTS = (1, 8, 64)
ROWS = (1, 256)


class Samples:
    """The seconds of each request of a cell."""

    def __init__(self, seconds: float, requests: int) -> None:
        self.times: list[float] = []
        self._deadline, self._most = time.perf_counter() + seconds, requests

    def done(self) -> bool:
        return time.perf_counter() >= self._deadline or len(self.times) >= self._most


def rows_for(model: str, count: int) -> np.ndarray:
    """Returns rows of the type that the model's metadata name."""
    return made_up_rows(count, 2).astype(np.float64 if "lightgbm" in model else np.float32)


def request_of(model: str, rows: np.ndarray) -> bytes:
    """Returns the bytes of a request with a binary tensor that asks for a binary tensor as answer."""
    tensor = tritonclient.http.InferInput("rows", list(rows.shape), np_to_triton_dtype(rows.dtype))
    tensor.set_data_from_numpy(rows)
    output = tritonclient.http.InferRequestedOutput("prediction", binary_data=True)
    make = tritonclient.http.InferenceServerClient.generate_request_body
    body, json_size = make([tensor], outputs=[output])
    head = (
        f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n"
        f"Content-Type: application/octet-stream\r\nInference-Header-Content-Length: {json_size}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[dict[str, str], bytes]:
    """Sends a request. Returns the fields and the content of the answer."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    if " 200 " not in head[0]:
        raise SystemExit(f"the server answers {head[0]}")
    fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    return fields, await reader.readexactly(int(fields["content-length"]))


async def client(request: bytes, samples: Samples) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    while not samples.done():
        begin = time.perf_counter()
        await ask(reader, writer, request)
        samples.times.append(time.perf_counter() - begin)
    writer.close()


async def answer_of(request: bytes) -> np.ndarray:
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    fields, content = await ask(reader, writer, request)
    writer.close()
    size = fields.get("inference-header-content-length")
    parse = tritonclient.http.InferenceServerClient.parse_response_body
    return parse(content, header_length=int(size) if size else None).as_numpy("prediction")


async def measure(request: bytes, clients: int, seconds: float, requests: int) -> tuple[float, float, float]:
    samples = Samples(seconds, requests)
    begin = time.perf_counter()
    await asyncio.gather(*(client(request, samples) for _ in range(clients)))
    rate = len(samples.times) / (time.perf_counter() - begin)
    median, high = np.percentile(samples.times, [50, 99]) * 1000
    return rate, median, high


def check(folder: Path) -> None:
    """Compares forestvm's answers with those of one process, and the trainers' with forestvm's."""
    for name, file in MODELS.items():
        rows = rows_for(name, ROWS[-1])
        wanted = forestvm.load(folder / file).predict(rows)
        got = asyncio.run(answer_of(request_of(name, rows)))
        equal = got.tobytes() == wanted.tobytes() if "forestvm" in name else np.allclose(got, wanted)
        if not equal:
            raise SystemExit(f"{name}: other predictions than in one process")


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Starts the server and waits until it is ready."""
    with open(folder / "log", "wb") as log:
        command = [sys.executable, str(Path(__file__).with_name("server.py")), str(PORT), str(folder)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/v2/health/ready") as answer:
                if json.load(answer):
                    return process
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.2)
    process.kill()
    raise SystemExit((folder / "log").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3, help="most seconds of a cell (default: 3)")
    parser.add_argument("--requests", type=int, default=20_000, help="most requests of a cell (default: 20000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder)
        server = start(folder)
        try:
            check(folder)
            print("| rows | clients | model | requests/s | p50 ms | p99 ms |\n|---|---|---|---|---|---|")
            for count in ROWS:
                for clients in CLIENTS:
                    for model in MODELS:
                        request = request_of(model, rows_for(model, count))
                        asyncio.run(measure(request, clients, 0.3, options.requests))
                        rate, median, high = asyncio.run(measure(request, clients, options.seconds, options.requests))
                        print(
                            f"| {count} | {clients} | {model} | {rate:,.0f} | {median:.2f} | {high:.2f} |", flush=True
                        )
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()

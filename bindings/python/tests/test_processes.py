"""Processes that predict after the process that started them has: each starts threads of its own."""

from __future__ import annotations

import http.client
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA

import forestvm

Array = np.ndarray[Any, Any]
THREADS = 3  # threads of a call, the calling one included
REPEATS = 40  # repeats the rows, so that all threads get some


def _running() -> int:
    return len(os.listdir("/proc/self/task"))


def _child(forest: forestvm.Forest | bytes, rows: Array, answers: Any) -> None:
    before = _running()
    if isinstance(forest, bytes):
        forest = pickle.loads(forest)
    bits = forest.predict_raw(rows).tobytes()
    answers.put((bits, _running() - before))


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_processes_after_a_parallel_call(breast_cancer: Path, rows: Array, method: str) -> None:
    forest = forestvm.load(breast_cancer, threads=THREADS)
    many = np.tile(rows, (REPEATS, 1))
    wanted = forest.predict_raw(many).tobytes()
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    given = forest if method == "fork" else pickle.dumps(forest)
    children = [context.Process(target=_child, args=(given, many, answers)) for _ in range(3)]
    for child in children:
        child.start()
    for _ in children:
        assert answers.get(timeout=100) == (wanted, THREADS - 1)
    for child in children:
        child.join(100)
        assert child.exitcode == 0


APPLICATION = f"""
import os, pathlib, time
import numpy, forestvm
from test_processes import _running
rows = numpy.tile(numpy.load({str(DATA / "breast_cancer" / "rows.npy")!r}), ({REPEATS}, 1))
forest = forestvm.load({str(DATA / "breast_cancer" / "model.json")!r}, threads={THREADS})
forest.predict_raw(rows)
answered = pathlib.Path("answered")
answered.mkdir()

def application(environ, start_response):
    before = _running()
    bits = forest.predict_raw(rows).tobytes()
    started = _running() - before
    (answered / str(os.getpid())).touch()
    while len(list(answered.iterdir())) < 2:  # the other request must go to the other worker
        time.sleep(0.01)
    start_response("200 OK", [("Content-Length", str(len(bits))), ("X-Started", str(started))])
    return [bits]
"""


def _get(port: int) -> tuple[bytes, str | None]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    connection.request("GET", "/")
    response = connection.getresponse()
    return response.read(), response.getheader("X-Started")


def test_gunicorn_with_preload(breast_cancer: Path, rows: Array, tmp_path: Path) -> None:
    """gunicorn --preload: workers are forks of a process that has already predicted while it imported the service."""
    pytest.importorskip("gunicorn")
    (tmp_path / "service.py").write_text(APPLICATION)
    wanted = forestvm.load(breast_cancer).predict_raw(np.tile(rows, (REPEATS, 1))).tobytes()
    command = [sys.executable, "-B", "-m", "gunicorn", "--preload", "--workers", "2", "--timeout", "100"]
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [*command, "--bind", "127.0.0.1:0", "service:application"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        try:
            log = ""
            while (listening := re.search(r"Listening at: http://127.0.0.1:(\d+)", log)) is None:
                line = server.stderr.readline()
                assert line, log
                log += line
            with ThreadPoolExecutor(2) as pool:
                answers = list(pool.map(_get, [int(listening[1])] * 2))
        finally:
            server.terminate()
    assert answers == [(wanted, str(THREADS - 1))] * 2

"""Predicts Parquet files with Spark: a master and two workers, which this program starts on loopback and stops."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from rows import compare

import forestvm
from forestvm.engines import spark as engine

MASTER = "spark://127.0.0.1:17078"


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Runs a master and two workers of one core each, and gives the master's address. Their logs are in `folder`."""
    home = Path(pyspark.__file__).parent
    environment = dict(os.environ, SPARK_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1")
    commands = [["master.Master", "--host", "127.0.0.1", "--port", "17078", "--webui-port", "0"]]
    for number in range(2):
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        commands.append(["worker.Worker", *options, "--work-dir", str(folder / f"worker{number}"), MASTER])
    with contextlib.ExitStack() as running:
        processes = []
        for number, (name, *options) in enumerate(commands):
            log = running.enter_context(open(folder / f"{number}.log", "wb"))
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *options]
            process = running.enter_context(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            running.callback(process.kill)
            processes.append(process)
        deadline = time.monotonic() + 120
        while (folder / "0.log").read_text().count("Registering worker") < 2:
            if time.monotonic() > deadline or any(process.poll() is not None for process in processes):
                raise SystemExit("".join(path.read_text() for path in sorted(folder.glob("*.log"))))
            time.sleep(0.2)
        yield MASTER


def predict(forest: forestvm.Forest, rows: Path, predictions: Path) -> None:
    with tempfile.TemporaryDirectory() as name, cluster(Path(name)) as master:
        builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
        session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        frame = engine.predict(session.read.parquet(str(rows)), forest)
        frame.select("id", "prediction").write.parquet(str(predictions))
        session.stop()


if __name__ == "__main__":
    compare(__doc__, predict, rows=10_000_000)

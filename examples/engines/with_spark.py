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
def cluster(folder: Path) -> Iterator[None]:
    """Runs a master and two workers of one core each. Their logs are in `folder`."""
    home = Path(pyspark.__file__).parent
    environment = dict(os.environ, SPARK_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1")
    commands = [["master.Master", "--host", "127.0.0.1", "--port", "17078", "--webui-port", "0"]]
    for number in range(2):
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        commands.append(["worker.Worker", *options, "--work-dir", str(folder / f"worker{number}"), MASTER])
    with contextlib.ExitStack() as running:
        for number, (name, *options) in enumerate(commands):
            log = running.enter_context(open(folder / f"{number}.log", "wb"))
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *options]
            process = running.enter_context(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            running.callback(process.kill)
        while (folder / "0.log").read_text().count("Registering worker") < 2:
            if any(process_ended(folder / f"{number}.log") for number in range(3)):
                raise SystemExit((folder / "0.log").read_text())
            time.sleep(0.2)
        yield


def process_ended(log: Path) -> bool:
    return "Exception" in log.read_text()


def predict(forest: forestvm.Forest, rows: Path, predictions: Path) -> None:
    with tempfile.TemporaryDirectory() as name, cluster(Path(name)):
        builder = SparkSession.builder.master(MASTER).config("spark.ui.enabled", "false")
        session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        frame = engine.predict(session.read.parquet(str(rows)), forest)
        frame.select("id", "prediction").write.parquet(str(predictions))
        session.stop()


if __name__ == "__main__":
    compare(__doc__, predict)

#!/usr/bin/env python3
"""Measures Spark, Dask and Ray with 1 and 2 workers of one core beside one process with 1 and 2 threads.

    scaling.py [--rows 1000000] [--rounds 3]

All variants read the same Parquet files of 28 float32 columns and add up the predictions. `identity` adds a constant
column instead of predictions, and so measures what the engine and the reading take. `xgboost` and `lightgbm` are the
trainers' own predictors for the engine: xgboost.spark, xgboost.dask and lightgbm.dask. Each variant runs once on a few
rows first; then the variants take turns, and the least time of the rounds counts. Prints a table of seconds, and
estimates for more nodes by the formula in docs/engines.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from models import FEATURES, NAMES, made_up_rows, train

import forestvm

FILES = 8
ENGINES = ("process", "spark", "dask", "ray")
VARIANTS = ("identity", "forestvm-xgboost", "xgboost", "forestvm-lightgbm", "lightgbm")

# A variant takes a folder of Parquet files and returns the sum of the predictions.
Variants = dict[str, Callable[[Path], float]]


def write_rows(folder: Path, count: int) -> None:
    """Writes the folder `rows` with all rows, and the folder `few` with one file of 1000 rows."""
    for name, files, rows in (("rows", FILES, count // FILES), ("few", 1, 1000)):
        (folder / name).mkdir()
        for number in range(files):
            matrix = made_up_rows(rows, 10 + number)
            table = pa.table({column: matrix[:, i] for i, column in enumerate(NAMES)})
            pa.parquet.write_table(table, folder / name / f"part-{number}.parquet", compression="none")


def trained(folder: Path, threads: int) -> tuple[dict[str, forestvm.Forest], Any, Any]:
    import lightgbm
    import xgboost

    forests = {
        "forestvm-xgboost": forestvm.load(folder / "xgboost.json", threads=threads),
        "forestvm-lightgbm": forestvm.load(folder / "lightgbm.txt", threads=threads),
    }
    booster = xgboost.Booster({"nthread": threads}, model_file=folder / "xgboost.json")
    return forests, booster, lightgbm.Booster(model_file=folder / "lightgbm.txt")


@contextmanager
def process(threads: int, folder: Path) -> Iterator[Variants]:
    pa.set_cpu_count(threads)
    forests, booster, lightgbm = trained(folder, threads)

    def read(rows: Path, predict: Callable[[pa.Table], Any]) -> float:
        return float(sum(predict(pa.parquet.read_table(path)).sum(dtype=np.float64) for path in rows.iterdir()))

    def matrix(table: pa.Table) -> np.ndarray:
        return np.column_stack([column.to_numpy() for column in table.columns])

    yield {
        "identity": lambda rows: read(rows, lambda table: np.ones(len(table))),
        "xgboost": lambda rows: read(
            rows, lambda table: booster.inplace_predict(matrix(table), validate_features=False)
        ),
        "lightgbm": lambda rows: read(rows, lambda table: lightgbm.predict(matrix(table), num_threads=threads)),
    } | {name: lambda rows, forest=forest: read(rows, forest.predict) for name, forest in forests.items()}


def add_ones(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.append_column("prediction", pa.array(np.ones(batch.num_rows, np.float32)))


@contextmanager
def spark(workers: int, folder: Path) -> Iterator[Variants]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    import xgboost
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f
    from pyspark.sql.types import FloatType, StructField, StructType
    from xgboost.spark import SparkXGBClassifier, SparkXGBClassifierModel

    from forestvm.engines import spark as engine

    builder = SparkSession.builder.master(f"local[{workers}]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.memory", "4g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    forests, _, _ = trained(folder, 1)
    classifier = xgboost.XGBClassifier()
    classifier.load_model(folder / "xgboost.json")
    # This is what SparkXGBClassifier.fit does with the model that it has trained.
    own = SparkXGBClassifier(features_col=NAMES)._copyValues(SparkXGBClassifierModel(classifier))

    def total(frame: Any, column: Any) -> float:
        return float(frame.agg(f.sum(column.cast("double"))).first()[0])

    def identity(rows: Path) -> float:
        frame = session.read.parquet(str(rows))
        schema = StructType([*frame.schema.fields, StructField("prediction", FloatType())])
        return total(frame.mapInArrow(add_ones, schema), f.col("prediction"))

    def ours(rows: Path, forest: forestvm.Forest) -> float:
        return total(engine.predict(session.read.parquet(str(rows)), forest), f.col("prediction"))

    def theirs(rows: Path) -> float:
        frame = own.transform(session.read.parquet(str(rows)))
        return total(frame, vector_to_array("probability")[1])

    yield {"identity": identity, "xgboost": theirs} | {
        name: lambda rows, forest=forest: ours(rows, forest) for name, forest in forests.items()
    }
    session.stop()


def ones(part: Any) -> Any:
    import pandas

    return pandas.Series(np.ones(len(part), np.float32), index=part.index, name="prediction")


@contextmanager
def dask(workers: int, folder: Path) -> Iterator[Variants]:
    import lightgbm
    import xgboost.dask
    from dask.dataframe import read_parquet
    from distributed import Client, LocalCluster
    from lightgbm.dask import DaskLGBMClassifier

    from forestvm.engines import dask as engine

    forests, booster, lightgbm_booster = trained(folder, 1)
    fitted = lightgbm.LGBMClassifier(n_estimators=1, verbose=-1, n_jobs=1).fit(
        made_up_rows(100, 1), np.arange(100) % 2, feature_name=NAMES
    )
    fitted._Booster = lightgbm_booster
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as c:
        own = DaskLGBMClassifier(client=c, n_jobs=1)
        own.__dict__.update({name: value for name, value in fitted.__dict__.items() if name != "client"})

        def theirs(rows: Path) -> float:
            return float(xgboost.dask.inplace_predict(c, booster, read_parquet(rows)).astype("f8").sum().compute())

        def ours(rows: Path, forest: forestvm.Forest) -> float:
            return float(engine.predict(read_parquet(rows), forest).astype("f8").sum().compute())

        yield {
            "identity": lambda rows: float(read_parquet(rows).map_partitions(ones).astype("f8").sum().compute()),
            "xgboost": theirs,
            "lightgbm": lambda rows: float(own.predict_proba(read_parquet(rows))[:, 1].sum().compute()),
        } | {name: lambda rows, forest=forest: ours(rows, forest) for name, forest in forests.items()}


class Ones:
    """An actor that adds a constant column."""

    def __call__(self, rows: pa.Table) -> pa.Table:
        return rows.append_column("prediction", pa.array(np.ones(len(rows), np.float32)))


@contextmanager
def ray(workers: int, folder: Path) -> Iterator[Variants]:
    import ray as package

    from forestvm.engines import ray as engine

    # Ray counts one CPU more, for the tasks that read and add up: actors that hold all CPUs would stop them.
    package.init(num_cpus=workers + 1, include_dashboard=False, log_to_driver=False)
    package.data.DataContext.get_current().enable_progress_bars = False
    forests, _, _ = trained(folder, 1)

    def read(rows: Path) -> Any:
        return package.data.read_parquet(str(rows))

    def identity(rows: Path) -> float:
        options = {"batch_format": "pyarrow", "zero_copy_batch": True, "num_cpus": 0.5}
        return float(read(rows).map_batches(Ones, concurrency=workers, **options).sum("prediction"))

    yield {"identity": identity} | {
        name: lambda rows, forest=forest: float(
            engine.predict(read(rows), forest, concurrency=workers).sum("prediction")
        )
        for name, forest in forests.items()
    }
    package.shutdown()


def measure(engine: str, workers: int, folder: Path, rounds: int) -> dict[str, float]:
    """Returns the least seconds of each variant."""
    with {"process": process, "spark": spark, "dask": dask, "ray": ray}[engine](workers, folder) as variants:
        least = dict.fromkeys(variants, math.inf)
        for run in variants.values():
            run(folder / "few")
        sums: dict[str, float] = {}
        for _ in range(rounds):
            for name, run in variants.items():
                begin = time.perf_counter()
                sums[name] = run(folder / "rows")
                least[name] = min(least[name], time.perf_counter() - begin)
        for name in sums:
            wanted = sums.get(f"forestvm-{name}", sums[name])
            assert math.isclose(sums[name], wanted, rel_tol=1e-4), (name, sums)
    return least


def nodes_table(rows: int, seconds: dict[tuple[str, int], dict[str, float]], program: int) -> None:
    """Prints an estimate of the seconds for a thousand million rows, by the formula of docs/engines.md."""
    print("\n| nodes of 16 cores | program sent, s | Spark reading and passing rows, s | trees, s | all, s |")
    print("|---|---|---|---|---|")
    least = seconds["spark", 2]
    engine = least["identity"] * 2 / rows
    trees = (seconds["process", 1]["forestvm-xgboost"] - seconds["process", 1]["identity"]) / rows
    for nodes in (1, 10, 100, 1000):
        cores = 16 * nodes
        send = nodes * program / 1.25e9
        # Tasks of a million rows: the last round of tasks may leave cores idle.
        share = math.ceil(1000 / cores) * 1e6
        parts = [send, share * engine, share * trees]
        print(f"| {nodes} | " + " | ".join(f"{part:,.3g}" for part in [*parts, sum(parts)]) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows to predict (default: 1000000)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each variant, the least counts (default: 3)")
    parser.add_argument("--engines", default=",".join(ENGINES), help="some of " + ", ".join(ENGINES))
    parser.add_argument("--run", nargs=3, metavar=("ENGINE", "WORKERS", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        engine, workers, folder = options.run
        print("\n" + json.dumps(measure(engine, int(workers), Path(folder), options.rounds)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder)
        write_rows(folder, options.rows)
        print(f"{options.rows:,} rows, {FEATURES} features. Seconds.\n")
        print("| engine | workers | " + " | ".join(VARIANTS) + " |\n|" + "---|" * (len(VARIANTS) + 2))
        seconds = {}
        for engine in options.engines.split(","):
            for workers in (1, 2):
                command = [sys.executable, "-B", "-W", "ignore", __file__, "--rounds", str(options.rounds)]
                command += ["--run", engine, str(workers), str(folder)]
                done = subprocess.run(command, capture_output=True, text=True, timeout=600)
                if done.returncode != 0:
                    raise SystemExit(done.stderr[-4000:])
                least = json.loads(done.stdout.splitlines()[-1])
                seconds[engine, workers] = least
                cells = [f"{least[variant]:.2f}" if variant in least else "" for variant in VARIANTS]
                print(f"| {engine} | {workers} | " + " | ".join(cells) + " |", flush=True)
        if {("spark", 2), ("process", 1)} <= set(seconds):
            program = len(memoryview(forestvm.load(folder / "xgboost.json")))
            nodes_table(options.rows, seconds, program)


if __name__ == "__main__":
    main()

"""Spark: in this process, a master with two workers, and Spark Connect."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Case, Codes, Files, assert_same, case, check_one_copy, columns_named, processes, write_files

import forestvm

pytest.importorskip("pyspark")

from forestvm.engines._program import Call, program_of  # noqa: E402
from forestvm.engines import spark as engine  # noqa: E402  (imports Spark, which may be absent)

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def session(master: str) -> Any:
    from pyspark.sql import SparkSession

    options = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
    }
    made = SparkSession.builder.master(master).config(map=options).getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    made = session("local[2]")
    yield made
    made.stop()


def check(predictions: Any, wanted: Any) -> None:
    """Compares the columns p of a frame in the order of ids."""
    got = predictions.orderBy("id").toPandas()
    assert got.id.tolist() == list(range(len(wanted)))
    assert_same(columns_named(got, "p", wanted), wanted)


def test_frames(local: Any, model: Case) -> None:
    rows = local.createDataFrame(model.rows)
    # Some partitions have one row, and some have none.
    pieces = rows.repartition(3).union(rows.where("id < 0")).where("id >= 3").union(rows.where("id < 3").repartition(7))
    for output, wanted in (("value", model.values), ("leaf", model.leaves)):
        check(engine.predict(pieces, model.forest, output=output, name="p"), wanted)


def test_missing_numbers_and_columns_by_position(local: Any, codes: Codes) -> None:
    rows = local.createDataFrame(codes.rows)
    got = engine.predict(rows, codes.forest, name="p", **codes.options).toPandas()
    assert_same(got["p"].to_numpy(), codes.values)
    score = engine.udf(local, codes.forest, **codes.options)
    got = rows.select(score(*[rows[name] for name in rows.columns]).alias("p")).toPandas()
    assert_same(got["p"].to_numpy(), codes.values)


def test_batches_of_one_row(local: Any, model: Case) -> None:
    local.conf.set(BATCH_ROWS, "1")
    try:
        check(engine.predict(local.createDataFrame(model.rows.slice(0, 40)), model.forest, name="p"), model.values[:40])
    finally:
        local.conf.unset(BATCH_ROWS)


def predict_files(spark: Any, files: Files, predictions: Path) -> None:
    predicted = engine.predict(spark.read.parquet(str(files.folder)), files.forest, name="p")
    predicted.select(*files.columns).write.parquet(str(predictions))
    files.check(predictions)


def test_a_million_rows_in_files(local: Any, files: Files, tmp_path: Path) -> None:
    predict_files(local, files, tmp_path / "predictions")


def test_workers_of_a_machine_have_one_copy_of_the_program(local: Any) -> None:
    model = case("float32")
    engine.predict(local.createDataFrame(model.rows).repartition(8), model.forest).count()
    check_one_copy(model.forest, 2)


def test_tasks_do_not_hold_the_program(local: Any) -> None:
    import cloudpickle

    model = case("float32")
    assert len(model.forest.to_bytes()) > 20_000
    program = program_of(model.forest, "value", 1)
    engine._send(local, program, model.forest)
    assert len(cloudpickle.dumps(partial(engine._predict_batches, program, Call("value"), "p"))) < 10_000
    assert len(cloudpickle.dumps(engine._column_function(program, Call("value")))) < 10_000


def check_functions(spark: Any, model: Case) -> None:
    from pyspark.sql.functions import col, struct

    rows = spark.createDataFrame(model.rows)
    score = engine.udf(spark, model.forest)
    spark.udf.register("score", score)
    rows.createOrReplaceTempView("rows")
    for answers in (
        rows.select("id", score(*[col(f"`{name}`") for name in model.features]).alias("answer")),
        rows.select("id", score(struct("*")).alias("answer")),
        spark.sql("SELECT id, score(struct(*)) AS answer FROM rows"),
    ):
        assert_same(answers.orderBy("id").toPandas().answer.to_numpy(), model.values)


def test_functions_of_columns_and_in_sql(local: Any, model: Case) -> None:
    check_functions(local, model)


def test_outputs_of_many_numbers_are_arrays(local: Any, listed: Case) -> None:
    from pyspark.sql.functions import struct

    rows = local.createDataFrame(listed.rows).repartition(3)
    predicted = engine.predict(rows, listed.forest, output=listed.output, name="p")
    score = engine.udf(local, listed.forest, output=listed.output)
    for answers in (predicted, rows.select("id", score(struct("*")).alias("p"))):
        assert_same(answers.orderBy("id").toPandas().p.to_numpy(), listed.values)
    with pytest.raises(forestvm.Refused, match="load the model with contributions=True"):
        engine.predict(rows, case("classes").forest, output="contributions")


def test_functions_of_mlflow(local: Any, model: Case, tmp_path: Path) -> None:
    """MLflow makes a function of Spark from the folder that forestvm.engines.mlflow writes."""
    mlflow = pytest.importorskip("mlflow")
    from pyspark.sql.functions import struct

    from forestvm.engines import mlflow as flavour

    flavour.save(model.forest, tmp_path / "model")
    number = {"float32": "float", "float64": "double"}[str(model.values.dtype)]
    kind = number if model.values.ndim == 1 else f"array<{number}>"
    score = mlflow.pyfunc.spark_udf(local, str(tmp_path / "model"), result_type=kind, env_manager="local")
    rows = local.createDataFrame(model.rows).repartition(3)
    answers = rows.select("id", score(struct(*model.features)).alias("answer"))
    assert_same(answers.orderBy("id").toPandas().answer.to_numpy(), model.values)


def test_errors_reach_the_driver(local: Any) -> None:
    model = case("classes")
    with pytest.raises(Exception, match="columns are missing: 'age'"):
        engine.predict(local.createDataFrame(model.rows.drop_columns(["age"])), model.forest).count()


def check_killed_executor(spark: Any, name: str) -> None:
    """Kills an executor when some tasks are done and others are not. Spark starts another one, which runs its tasks."""

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:  # local: executors get it, and lack this module
        for batch in batches:
            time.sleep(0.2)
            yield batch

    model = case(name)
    rows = spark.createDataFrame(model.rows).repartition(40)
    predicted = engine.predict(rows.mapInArrow(slowly, rows.schema), model.forest, name="p")
    running = threading.Thread(target=check_kept, args=(predicted, model.values))
    running.start()
    status = spark.sparkContext.statusTracker()
    while not any(is_midway(status.getStageInfo(stage)) for stage in status.getActiveStageIds()):
        assert running.is_alive()
        time.sleep(0.02)
    os.kill(processes("CoarseGrainedExecutorBackend")[0], signal.SIGKILL)
    running.join()
    assert kept.pop() == "equal"


def is_midway(stage: Any) -> bool:
    return stage is not None and stage.numTasks == 40 and stage.numCompletedTasks >= 4


kept: list[str] = []


def check_kept(predictions: Any, wanted: Any) -> None:
    check(predictions, wanted)
    kept.append("equal")


def run(script: str) -> None:
    """Runs Python's statements in another process, because a process has one driver."""
    head = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom test_spark import *\n"
    done = subprocess.run([sys.executable, "-c", head + script], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0 and done.stdout.strip().endswith("equal"), done.stdout[-500:] + done.stderr[-4000:]


def test_a_master_with_two_workers(tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "engines"))
    from with_spark import cluster

    with cluster(tmp_path) as url:
        run(f"""
spark, folder = session({url!r}), Path({str(tmp_path)!r})
for name in ("float32", "classes", "categories"):
    (folder / name).mkdir()
    files = write_files(name, folder / name)
    predict_files(spark, files, folder / f"{{name}}_predictions")
    check_one_copy(files.forest, 2)
    check_killed_executor(spark, name)
print("equal")
""")


def test_spark_connect() -> None:
    run("""
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
for name in ("float32", "classes", "categories"):
    model = case(name)
    check(engine.predict(spark.createDataFrame(model.rows), model.forest, name="p"), model.values)
    check_functions(spark, model)
spark.stop()
print("equal")
""")

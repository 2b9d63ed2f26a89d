"""Spark: in this process, and a master with two workers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Case, assert_same, case, columns_named

pytest.importorskip("pyspark")

from forestvm.engines import spark as engine  # noqa: E402  (imports Spark, which may be absent)


def session(master: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    made = (
        builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    made = session("local[2]")
    yield made
    made.stop()


def check(spark: Any, model: Case) -> None:
    rows = spark.createDataFrame(model.rows)
    # Partitions of one row and without rows.
    pieces = rows.repartition(3).union(rows.where("id < 0")).where("id >= 3").union(rows.where("id < 3").repartition(7))
    for output, wanted in (("value", model.values), ("leaf", model.leaves)):
        got = engine.predict(pieces, model.forest, output=output, name="p").orderBy("id").toPandas()
        assert got.id.tolist() == list(range(len(wanted)))
        assert_same(columns_named(got, "p", wanted), wanted)


def test_frames(local: Any, model: Case) -> None:
    check(local, model)


def test_functions_of_columns_and_in_sql(local: Any, model: Case) -> None:
    from pyspark.sql.functions import col, struct

    rows = local.createDataFrame(model.rows)
    score = engine.udf(local, model.forest)
    local.udf.register("score", score)
    rows.createOrReplaceTempView("rows")
    for answers in (
        rows.select("id", score(*[col(f"`{name}`") for name in model.features]).alias("answer")),
        rows.select("id", score(struct("*")).alias("answer")),
        local.sql("SELECT id, score(struct(*)) AS answer FROM rows"),
    ):
        assert_same(answers.orderBy("id").toPandas().answer.to_numpy(), model.values)


def test_errors_reach_the_driver(local: Any) -> None:
    model = case("classes")
    with pytest.raises(Exception, match="columns are missing: 'age'"):
        engine.predict(local.createDataFrame(model.rows.drop_columns(["age"])), model.forest).count()


CLUSTER = """
import sys
sys.path.insert(0, {tests!r})
from test_spark import case, check, session
spark = session({url!r})
for name in ("float32", "classes", "categories"):
    check(spark, case(name))
spark.stop()
print("equal")
"""


def test_a_master_with_two_workers(tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "engines"))
    from with_spark import cluster

    with cluster(tmp_path) as url:
        script = CLUSTER.format(tests=str(Path(__file__).parent), url=url)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.stdout.strip().endswith("equal"), done.stderr[-4000:]

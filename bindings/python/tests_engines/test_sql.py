"""DuckDB and polars."""

from __future__ import annotations

import pytest
from conftest import DATA, Case, assert_same, case

import forestvm


def test_duckdb_calls_with_a_struct_and_with_columns(model: Case) -> None:
    duckdb = pytest.importorskip("duckdb")
    from forestvm.engines import duckdb as engine

    connection = duckdb.connect()
    rows = model.rows  # noqa: F841  (DuckDB finds it by its name)
    engine.register(connection, "score", model.forest)
    engine.register(connection, "leaves", model.forest, output="leaf")
    columns = ", ".join(f'"{name}"' for name in model.features)
    for call, wanted in (("score(t)", model.values), (f"score({columns})", model.values), ("leaves(t)", model.leaves)):
        got = connection.sql(f"SELECT {call} AS answer FROM rows t ORDER BY id").fetchnumpy()["answer"]
        assert_same(got, wanted)
    none = connection.sql("SELECT score(t) AS answer FROM rows t WHERE id < 0").fetchnumpy()["answer"]
    assert len(none) == 0
    one = connection.sql("SELECT score(t) AS answer FROM rows t WHERE id = 7").fetchnumpy()["answer"]
    assert_same(one, model.values[7:8])


def test_duckdb_says_what_is_wrong_with_columns() -> None:
    duckdb = pytest.importorskip("duckdb")
    from forestvm.engines import duckdb as engine

    connection = duckdb.connect()
    engine.register(connection, "score", case("classes").forest)
    with pytest.raises(duckdb.Error, match="2 columns for 6 features"):
        connection.sql("SELECT score(1.5, 2.5)").fetchall()
    with pytest.raises(duckdb.Error, match="columns are missing: 'age'"):
        connection.sql("SELECT score({'other': 1.5})").fetchall()
    with pytest.raises(forestvm.Usage, match="output is 'odds'"):
        engine.register(connection, "odds", case("classes").forest, output="odds")


@pytest.mark.parametrize("streaming", [False, True])
def test_polars_expressions(model: Case, streaming: bool) -> None:
    polars = pytest.importorskip("polars")
    from forestvm.engines import polars as engine

    frame = polars.from_arrow(model.rows)
    query = frame.lazy().with_columns(
        engine.expr(model.forest), engine.expr(model.forest, model.features, output="leaf", name="leaf")
    )
    got = query.collect(engine="streaming" if streaming else "in-memory").sort("id")
    assert_same(got["prediction"].to_numpy(), model.values)
    assert_same(got["leaf"].to_numpy(), model.leaves)
    assert query.filter(polars.col("id") < 0).collect().shape[0] == 0


def test_polars_says_what_is_wrong() -> None:
    polars = pytest.importorskip("polars")
    from forestvm.engines import polars as engine

    classes = case("classes").forest
    with pytest.raises(forestvm.Usage, match="2 columns for 6 features"):
        engine.expr(classes, ["a", "b"])
    with pytest.raises(forestvm.Usage, match="the model has no names"):
        engine.expr(forestvm.load(DATA / "xgboost_versions" / "3.0.5_logistic" / "model.json"))
    with pytest.raises(polars.exceptions.ColumnNotFoundError):
        polars.DataFrame({"a": [1.0]}).select(engine.expr(classes))

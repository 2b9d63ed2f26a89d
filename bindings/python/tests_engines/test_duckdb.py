"""DuckDB."""

from __future__ import annotations

import pytest
from conftest import MODELS, Case, Codes, assert_same, case

import forestvm

duckdb = pytest.importorskip("duckdb")

from forestvm.engines import duckdb as engine  # noqa: E402  (imports DuckDB, which may be absent)


def test_duckdb_calls_with_a_struct_and_with_columns(model: Case) -> None:
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


def test_missing_numbers_and_columns_by_position(codes: Codes) -> None:
    connection = duckdb.connect()
    rows = codes.rows
    engine.register(connection, "score", codes.forest, **codes.options)
    for call in ("score(t)", f"score({', '.join(rows.column_names)})"):
        got = connection.sql(f"SELECT {call} AS answer FROM rows t").fetchnumpy()["answer"]
        assert_same(got, codes.values)
    engine.register(connection, "by_name", codes.forest)
    with pytest.raises(duckdb.Error, match="may be names or codes of categories"):
        connection.sql(f"SELECT by_name({', '.join(rows.column_names)}) FROM rows").fetchall()
    with pytest.raises(forestvm.Usage, match="columns: expected"):
        engine.register(connection, "other", codes.forest, columns="order")


def test_outputs_of_many_numbers_are_an_array(listed: Case) -> None:
    connection = duckdb.connect()
    rows = listed.rows  # noqa: F841  (DuckDB finds it by its name)
    engine.register(connection, "explain", listed.forest, output=listed.output)
    got = connection.sql("SELECT explain(t) AS answer FROM rows t ORDER BY id").fetchnumpy()["answer"]
    assert_same(got, listed.values)


def test_leaves_of_one_tree_are_an_array() -> None:
    connection = duckdb.connect()
    rows = case("float32").rows  # DuckDB finds it by its name
    forest = forestvm.load(MODELS["float32"], rounds=(0, 1))
    engine.register(connection, "leaf", forest, output="leaf")
    got = connection.sql("SELECT leaf(t) AS answer FROM rows t ORDER BY id").fetchnumpy()["answer"]
    assert_same(got, forest.apply(rows, extra="ignore"))


def test_duckdb_says_what_is_wrong_with_columns() -> None:
    connection = duckdb.connect()
    engine.register(connection, "score", case("classes").forest)
    with pytest.raises(duckdb.Error, match="2 columns for 6 features"):
        connection.sql("SELECT score(1.5, 2.5)").fetchall()
    with pytest.raises(duckdb.Error, match="its type is decimal .*: cast it to float64, which SQL calls DOUBLE"):
        connection.sql("SELECT score(1.5, 2, 3, 4, 5, 6)").fetchall()
    with pytest.raises(duckdb.Error, match="columns are missing: 'age'"):
        connection.sql("SELECT score({'other': 1.5})").fetchall()
    with pytest.raises(forestvm.Usage, match="output is 'odds'"):
        engine.register(connection, "odds", case("classes").forest, output="odds")
    with pytest.raises(forestvm.Refused, match="load the model with contributions=True"):
        engine.register(connection, "explain", case("classes").forest, output="contributions")


def test_a_null_struct_is_refused() -> None:
    connection = duckdb.connect()
    engine.register(connection, "score", case("classes").forest)
    with pytest.raises(duckdb.Error, match="row 0 is null as a whole"):
        connection.sql("SELECT score(NULL::STRUCT(age DOUBLE, income DOUBLE))").fetchall()

"""Predictions inside engines: forestvm.engines.spark, dask, ray, duckdb, polars, mlflow and kserve.

Each module imports its engine, which must be installed; importing forestvm.engines alone imports none.
"""

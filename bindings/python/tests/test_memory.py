"""Memory of large calls: a process that predicts grows by the result and the 64 MiB in which rows are converted, or by
little more than the result where rows are read where they lie."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROWS, COLUMNS = 1_000_000, 100
ALLOWED = 64 << 20
IN_PLACE = 16 << 20  # a 25th of the float32 rows: codes and other scratch memory of a pass

# Makes a frame, predicts a few rows so that everything is imported and started, and prints by how many bytes the
# process's peak grows in the call with all rows, without the bytes of the result. Writing 5 to clear_refs sets the peak
# to the memory in use.
CODE = f"""
import sys
import numpy as np
import forestvm

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

def numpy_float64():
    return np.random.default_rng(1).random(({ROWS}, {COLUMNS}))

def numpy_float32():
    return np.random.default_rng(1).random(({ROWS}, {COLUMNS}), dtype="float32")

def fortran_float32():
    return np.random.default_rng(1).random(({COLUMNS}, {ROWS}), dtype="float32").T

def fortran_float64():
    return np.random.default_rng(1).random(({COLUMNS}, {ROWS})).T

def strided_float32():
    return np.random.default_rng(1).random(({ROWS}, {COLUMNS} + 7), dtype="float32")[:, 3:-4]

def every_second_row():
    return np.random.default_rng(1).random((2 * {ROWS}, {COLUMNS}), dtype="float32")[::2]

def pandas_float32():
    import pandas
    return pandas.DataFrame(numpy_float32(), columns=names, copy=False)

def arrow_float32():
    import pyarrow
    rows = fortran_float32()
    return pyarrow.table({{name: pyarrow.array(rows[:, i]) for i, name in enumerate(names)}})

def polars_float32():
    import polars
    rows = fortran_float32()
    return polars.DataFrame({{name: rows[:, i] for i, name in enumerate(names)}})

def pandas_mixed():
    import pandas
    rows = numpy_float64()
    types = ("float64", "float32", "int16", "bool")
    return pandas.DataFrame({{name: (rows[:, i] * 3).astype(types[i % 4]) for i, name in enumerate(names)}})

def pandas_nullable():
    import pandas
    rows = fortran_float32()
    return pandas.DataFrame({{name: pandas.array(rows[:, i], dtype="Float32") for i, name in enumerate(names)}})

def pandas_arrow():
    import pandas
    return arrow_float32().to_pandas(types_mapper=pandas.ArrowDtype)

def pandas_blocks():
    import pandas
    rows = fortran_float32()
    frame = pandas.DataFrame({{name: rows[:, i] for i, name in enumerate(names)}}, copy=False)
    assert len(frame._mgr.blocks) > 1
    return frame

def arrow():
    import pyarrow
    rows = numpy_float64()
    return pyarrow.table({{name: pyarrow.array(rows[:, i]) for i, name in enumerate(names)}})

def arrow_chunks():
    import pyarrow
    part = arrow()[:{ROWS // 4}]
    return pyarrow.concat_tables([part] * 4)

def polars():
    import polars
    rows = numpy_float64()
    return polars.DataFrame({{name: rows[:, i] for i, name in enumerate(names)}})

def polars_chunks():
    import polars as package
    part = polars()[:{ROWS // 4}]
    return package.concat([part] * 4, rechunk=False)

def sparse(form):
    from scipy.sparse import csr_matrix
    columns = np.tile(np.arange(0, {COLUMNS}, 10, dtype="int32"), {ROWS})
    offsets = np.arange(0, len(columns) + 1, 10)
    values = np.random.default_rng(1).random(len(columns))
    return csr_matrix((values, columns, offsets), shape=({ROWS}, {COLUMNS})).asformat(form)

def streamed(frame):
    import pyarrow
    result = np.empty(len(frame), np.float32)
    done = 0
    for batch in pyarrow.RecordBatchReader.from_stream(forest.predict_stream(frame)):
        result[done : done + len(batch)] = batch.column(0).to_numpy()
        done += len(batch)
    assert done == len(frame)
    return result

forest = forestvm.load(sys.argv[1], threads=2)
names = forest.feature_names
maker, *form = sys.argv[2].split()
frame = globals()[maker](*form)
ways = dict(
    predict=forest.predict,
    first=forest.predict,
    copy=lambda frame: forest.predict(frame.astype("float32")),  # what a call must not do
    leaves=lambda frame: forest.predict(frame, output="leaf", dtype="int64"),
    stream=streamed,
)
if sys.argv[3] == "first":  # a call that is the first of its form
    ways["first"](numpy_float64()[:1000])
else:
    ways[sys.argv[3]](frame[:1000])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = status("VmRSS")
result = ways[sys.argv[3]](frame)
assert len(result) == {ROWS}
print(status("VmHWM") - before - result.nbytes)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    xgboost = pytest.importorskip("xgboost")
    import numpy as np

    rows = np.random.default_rng(2).random((2000, COLUMNS), dtype="float32")
    matrix = xgboost.DMatrix(rows, rows @ rows[0], feature_names=[f"c{i}" for i in range(COLUMNS)])
    path = tmp_path_factory.mktemp("memory") / "model.json"
    xgboost.train({"max_depth": 4, "nthread": 1}, matrix, 10).save_model(path)
    return path


def growth(model: Path, form: str, way: str = "predict") -> int:
    done = subprocess.run([sys.executable, "-c", CODE, model, form, way], check=True, capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.parametrize(
    ("form", "way", "package"),
    [
        ("numpy_float64", "predict", "numpy"),
        ("pandas_mixed", "predict", "pandas"),
        ("pandas_nullable", "first", "pandas"),
        ("pandas_arrow", "first", "pyarrow"),
        ("pandas_blocks", "first", "pandas"),
        ("arrow", "predict", "pyarrow"),
        ("arrow_chunks", "leaves", "pyarrow"),
        ("arrow_chunks", "stream", "pyarrow"),
        ("polars", "predict", "polars"),
        ("polars_chunks", "leaves", "polars"),
        ("polars_chunks", "stream", "polars"),
        ("sparse csc", "first", "scipy"),
        ("sparse coo", "first", "scipy"),
        ("sparse lil", "first", "scipy"),
    ],
)
def test_a_million_rows_grow_by_the_result_and_a_block(model: Path, form: str, way: str, package: str) -> None:
    pytest.importorskip(package)
    if way == "stream":
        pytest.importorskip("pyarrow")
    assert growth(model, form, way) <= ALLOWED


def test_a_copy_of_all_rows_would_be_seen(model: Path) -> None:
    assert growth(model, "numpy_float64", "copy") > ALLOWED


@pytest.mark.parametrize(
    ("form", "package"),
    [
        ("numpy_float32", "numpy"),
        ("fortran_float32", "numpy"),
        ("fortran_float64", "numpy"),
        ("strided_float32", "numpy"),
        ("every_second_row", "numpy"),
        ("pandas_float32", "pandas"),
        ("arrow_float32", "pyarrow"),
        ("arrow", "pyarrow"),
        ("arrow_chunks", "pyarrow"),
        ("polars_float32", "polars"),
    ],
)
def test_rows_that_are_read_where_they_lie_are_not_copied(model: Path, form: str, package: str) -> None:
    pytest.importorskip(package)
    assert growth(model, form) <= IN_PLACE

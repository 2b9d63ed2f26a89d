"""Models and rows that every engine must answer as one process does."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import forestvm
from forestvm.engines import _program
from forestvm.engines._program import load_with, program_of

pa = pytest.importorskip("pyarrow")
datasets = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")

DATA = Path(__file__).resolve().parents[3] / "tests" / "data"
MODELS = {
    "float32": DATA / "breast_cancer" / "model.json",
    "classes": DATA / "lightgbm" / "4.7.0_classes" / "model.txt",
    "categories": DATA / "lightgbm" / "4.7.0_pandas" / "model.txt",
}
UNCERTAIN = DATA / "uncertainty" / "classes.json"  # a model of CatBoost, whose features have no names
ROWS = 3000
FILE_ROWS = (0, 1, 1, 200_000, 300_000, 250_000, 250_000)  # a million rows and two


class Case(NamedTuple):
    """A model, rows with an id and with columns in another order than the features, and the predictions of one process
    in the order of ids."""

    forest: forestvm.Forest
    rows: pa.Table
    values: np.ndarray
    leaves: np.ndarray
    output: str = "value"

    @property
    def features(self) -> list[str]:
        """The names of the columns in the model's order."""
        return [name for name in self.rows.column_names if name != "id"][::-1]


def table_of(forest: forestvm.Forest, count: int) -> pa.Table:
    """Makes rows: a tenth of the values are missing, and some texts are no categories of the model."""
    random = np.random.default_rng(3)
    columns = {}
    for column in forest.feature_names:
        missing = random.random(count) < 0.1
        categories = forest.categories.get(column)
        if categories is not None:
            numbers = pa.array(random.integers(0, len(categories) + 1, count), pa.int32(), mask=missing)
            columns[column] = pa.DictionaryArray.from_arrays(numbers, pa.array([*categories, "unseen"]))
        else:
            columns[column] = pa.array(random.normal(scale=20, size=count), pa.float64(), mask=missing)
    return pa.table(columns)


def path_of(name: str) -> Path:
    """Returns the path of a model. The one that knows its uncertainty is a copy with names of its features, and the one
    that knows targets is a program."""
    if name in MODELS:
        return MODELS[name]
    if name == "targets":
        path = _program.folder() / "targets.fvm"
        if not path.exists():
            random = np.random.default_rng(5)
            samples = random.normal(scale=20, size=(400, 30)), random.normal(size=400)
            forestvm.load(forest_text(20, 5, "average_output\n"), samples=samples).save(path)
        return path
    path = _program.folder() / "uncertain.json"
    if not path.exists():
        model = json.loads(UNCERTAIN.read_text())
        for number, feature in enumerate(model["features_info"]["float_features"]):
            feature["feature_id"] = f"feature {number}"
        path.write_text(json.dumps(model))
    return path


def case(name: str) -> Case:
    forest = forestvm.load(path_of(name), threads=1)
    rows = table_of(forest, ROWS)
    texts = {column: rows[column].cast(pa.string()) for column in forest.categories}
    rows = pa.table({column: texts.get(column, rows[column]) for column in rows.column_names})
    values, leaves = forest.predict(rows), forest.apply(rows)
    assert len(np.unique(values)) > 20
    reversed_rows = rows.select(rows.column_names[::-1]).append_column("id", pa.array(np.arange(ROWS)))
    return Case(forest, reversed_rows, values, leaves)


class Codes(NamedTuple):
    """Rows that are right with `options` alone: a number stands for missing values, columns have other names than the
    features, in their order, and categories are codes, which could be taken for their names."""

    forest: forestvm.Forest
    rows: pa.Table
    values: np.ndarray
    options: dict[str, Any]


@pytest.fixture(scope="session")
def codes() -> Codes:
    forest = forestvm.load(MODELS["categories"], threads=1)
    random = np.random.default_rng(4)
    numbers = random.normal(scale=20, size=(300, forest.num_features))
    for feature, name in enumerate(forest.feature_names):
        if name in forest.categories:
            numbers[:, feature] = random.integers(0, len(forest.categories[name]), len(numbers))
    missing = random.random(numbers.shape) < 0.2
    values = forest.predict(np.where(missing, np.nan, numbers))
    columns = np.where(missing, -99.0, numbers).T
    rows = pa.table({f"c{i}": column for i, column in enumerate(columns)})
    assert forest._ambiguous_features
    with pytest.raises(forestvm.UnsupportedInput, match="names or codes"):
        forest.predict(rows.rename_columns(list(forest.feature_names)))
    assert (forest.predict(rows, columns="position") != values).any()
    return Codes(forest, rows, values, {"missing": -99, "columns": "position"})


def forest_text(trees: int, depth: int, head: str = "") -> bytes:
    """Returns a model of LightGBM with one complete tree of random numbers, many times. `head` is put into its head."""
    random = np.random.default_rng(1)
    tests, features = 2**depth - 1, 30

    def line(key: str, numbers: np.ndarray) -> str:
        return f"{key}=" + " ".join(map(str, numbers.tolist()))

    def children(first: int) -> np.ndarray:
        numbers = 2 * np.arange(tests) + first
        return np.where(numbers < tests, numbers, ~(numbers - tests))

    tree = "\n".join(
        [
            f"num_leaves={tests + 1}\nnum_cat=0",
            line("split_feature", random.integers(0, features, tests)),
            line("threshold", random.integers(-30, 30, tests)),
            line("decision_type", np.full(tests, 2)),
            line("left_child", children(1)),
            line("right_child", children(2)),
            line("leaf_value", random.integers(-99, 99, tests + 1)),
            "is_linear=0\nshrinkage=1\n\n\n",
        ]
    )
    names = " ".join(f"f{i}" for i in range(features))
    head = f"tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nobjective=regression\n{head}"
    head += f"max_feature_idx={features - 1}\nfeature_names={names}\n"
    head += f"feature_infos={' '.join(['[-99:99]'] * features)}\n"
    return (head + "\n" + "".join(f"Tree={i}\n{tree}" for i in range(trees)) + "end of trees\n").encode()


def large_forest() -> forestvm.Forest:
    """Makes a forest whose program has about 26 MB."""
    return forestvm.load(forest_text(40, 14), threads=1)


@pytest.fixture(scope="session")
def large() -> forestvm.Forest:
    return large_forest()


LISTED = [
    *((name, "contributions") for name in MODELS),
    *(("classes", output) for output in ("approx-contributions", "interactions", "trees", "staged")),
    *(("uncertain", output) for output in ("virt-ensembles", "uncertainty")),
    ("targets", "quantile"),
]


@pytest.fixture(scope="session", params=LISTED, ids=" of ".join)
def listed(request: pytest.FixtureRequest) -> Case:
    """A case of an output that has several numbers a row in a list. Trees and stages come from a program of which some
    rounds are chosen, and so are quantiles."""
    name, output = request.param
    model = case(name)
    forest = load_with(path_of(name), output, 1)
    if output in ("trees", "staged"):
        forest = forest.of_rounds(1, 4)
        width = 3 * forest.num_outputs
    elif output == "quantile":
        forest = forest.of_quantiles((0.25, 0.5, 0.75, 1))
        width = 4
    elif name == "uncertain":
        width = 10 * forest.num_outputs if output == "virt-ensembles" else 2
    else:
        width = forest.num_outputs * (forest.num_features + 1) ** (2 if output == "interactions" else 1)
    values = forest.predict(model.rows, output=output, extra="ignore")
    assert values.shape == (ROWS, width)
    return model._replace(forest=forest, values=values, output=output)


class Files(NamedTuple):
    """A model, a folder of Parquet files with an id, and the predictions of one process in the order of ids."""

    forest: forestvm.Forest
    folder: Path
    values: np.ndarray

    def check(self, predictions: Path) -> None:
        """Compares Parquet files with the columns id and p, or p_0, p_1, ..."""
        table = datasets.dataset(predictions, format="parquet").to_table().sort_by("id")
        assert np.array_equal(table["id"].to_numpy(), np.arange(len(self.values)))
        assert_same(columns_named(table.to_pandas(), "p", self.values), self.values)

    @property
    def columns(self) -> list[str]:
        width = self.values.shape[1:]
        return ["id", *(f"p_{i}" for i in range(width[0]))] if width else ["id", "p"]


@pytest.fixture(scope="session", params=list(MODELS))
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Files:
    return write_files(request.param, tmp_path_factory.mktemp("rows"))


def write_files(name: str, folder: Path) -> Files:
    forest = forestvm.load(MODELS[name], threads=2)
    rows = table_of(forest, sum(FILE_ROWS))
    rows = rows.append_column("id", pa.array(np.arange(rows.num_rows)))
    begin = 0
    for number, count in enumerate(FILE_ROWS):
        parquet.write_table(rows.slice(begin, count), folder / f"{number}.parquet", compression="none")
        begin += count
    return Files(forest, folder, forest.predict(rows, extra="ignore"))


@pytest.fixture(scope="session", params=list(MODELS))
def model(request: pytest.FixtureRequest) -> Case:
    return case(request.param)


@pytest.fixture(scope="session", autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sets a new folder for the machine's programs, for this process and those that it starts. Some of these run in
    other folders, for which the paths of PYTHONPATH are made absolute."""
    folder = tmp_path_factory.mktemp("programs")
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths if path)
    os.environ["FORESTVM_PROGRAMS"] = str(folder)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return folder


def assert_same(got: object, wanted: np.ndarray) -> None:
    """Compares types, shapes and bits. Arrays of objects hold a list for each row."""
    array = np.stack(list(got)) if getattr(got, "dtype", None) == object else np.asarray(got)
    assert array.dtype == wanted.dtype and array.shape == wanted.shape
    assert array.tobytes() == wanted.tobytes()


def columns_named(frame: object, name: str, wanted: np.ndarray) -> object:
    """Returns the columns of predictions of a frame of pandas."""
    if wanted.ndim == 1:
        return frame[name].to_numpy()
    return frame[[f"{name}_{i}" for i in range(wanted.shape[1])]].to_numpy()


def processes(text: str) -> list[int]:
    """Returns the processes of this machine whose command has a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:  # the process has ended
            pass
    return found


def mappings(file: Path) -> dict[int, dict[str, int]]:
    """Returns the bytes of a file in the memory of each process that maps it: Rss, Pss, ..."""
    found: dict[int, dict[str, int]] = {}
    name = str(file.resolve())
    for path in Path("/proc").glob("[0-9]*/maps"):
        inside = False
        try:
            lines = path.with_name("smaps").read_text().splitlines() if name in path.read_text() else []
        except OSError:  # the process has ended
            continue
        for line in lines:
            key, _, value = line.partition(":")
            if " " in key:  # the first line of a mapping
                inside = line.endswith(name)
            elif inside and value.endswith("kB"):
                sizes = found.setdefault(int(path.parent.name), {})
                sizes[key] = sizes.get(key, 0) + int(value.split()[0]) * 1024
    return found


def check_one_copy(forest: forestvm.Forest, workers: int, file: Path | None = None) -> None:
    """Checks that workers have one copy of the program: their shares of its memory (Pss) add up to the file at most.

    file: the program's file; None: the one in the folder of programs.
    """
    file = file or program_of(forest, "value", 1).file_of(forest)
    page = os.sysconf("SC_PAGE_SIZE")
    size = -(-len(memoryview(forest)) // page) * page
    deadline = time.monotonic() + 10
    while True:
        found = mappings(file)
        # The kernel rounds each share to whole kB.
        at_most_one = sum(sizes["Pss"] for sizes in found.values()) <= size + 1024 * len(found)
        # Processes are looked at one after another, and a worker that drops a mapping meanwhile changes the shares. A
        # worker may also still be reading the program.
        if (at_most_one and len(found) >= workers) or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert at_most_one and len(found) >= workers, found
    # The process of the tests may have mapped the file more than once: for itself, and for the plugin of polars.
    assert all(sizes["Rss"] > 0 and sizes["Rss"] % size == 0 for sizes in found.values()), found

"""What the checks of freshly trained models share: a case, tables of rows and their files, and targets."""
import pathlib
from dataclasses import dataclass

import numpy

TRAINING_ROWS = 2_000
TEST_ROWS = 3_000
COLUMNS = 8


@dataclass
class Case:
    """A model as its trainer saved it, rows, and the trainer's answers.

    Rows are an array, or the path of a CSV file. Answers of None are not compared. Raw scores must have the trainer's bits
    or be within `raw_bound`, leaf numbers must be the same, and values must be within two units in the last place or within
    `bound` of the trainer's. Bounds are relative to numbers above 1.
    """

    name: str
    file: pathlib.Path
    rows: numpy.ndarray | pathlib.Path
    raw: numpy.ndarray | None
    value: numpy.ndarray | None
    leaves: numpy.ndarray | None
    bound: float = 0
    raw_bound: float = 0


def table(random, count, categories, missing=True):
    """Returns float32 rows, with missing values unless told otherwise; the columns in `categories` hold codes."""
    rows = random.normal(size=(count, COLUMNS)).astype(numpy.float32)
    for column, codes in categories.items():
        rows[:, column] = random.integers(0, codes, count)
    if missing:
        rows[random.random(rows.shape) < 0.05] = numpy.nan
    return rows


def target_of(random, rows):
    """Returns a target that depends on the rows."""
    known = numpy.nan_to_num(rows)
    return known @ numpy.linspace(-1, 1, COLUMNS) + known[:, 0] * 7 % 3 + random.normal(size=len(rows)) * 0.1


def three_classes(target):
    """Returns the classes 0, 1 and 2 of a target."""
    return numpy.digitize(target, numpy.quantile(target, [0.3, 0.6]))


def two_classes(target):
    """Returns the classes 0 and 1 of a target."""
    return (target > numpy.median(target)).astype(int)


def counts_of(target):
    """Returns positive whole numbers that grow with a target."""
    return numpy.floor(numpy.exp(target / 6)) + 1


def write_csv(path, columns):
    """Writes columns, by name, as CSV: texts in quotes, and numbers as texts that read back to the same float32."""
    def cell(value):
        if isinstance(value, str):
            return '"' + value.replace('"', '""') + '"'
        return "nan" if numpy.isnan(value) else f"{value:.9g}"

    lines = [",".join(columns)] + [",".join(map(cell, row)) for row in zip(*columns.values())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

#!/usr/bin/env python3
"""Prints tables of estimated kernel times of an H200: estimates.py BUILD ZOO -> nvForest's time over that of schedule
`gpu`, and what binds `gpu`, for each model of the folder ZOO and each number of rows.

Needs no GPU: bench_gpu_estimates, which makes the estimates, says how. w: the cell is bound by waiting for latencies,
l: by loads, m: by memory. A second letter says what takes most of these latencies or loads: c: running the code of a
block besides its walks, r: copies of rows, n: visits of nodes, s: sums, or leaves that are kept and added in order.
After the table, cells below 1 are counted by these bounds. --instructions: prints ratios of issued instructions instead
of times. --measured FILE: compares estimates for the kernels that were timed with a table of times of CANDIDATES and
nvForest instead (bench/results/h200.md). Its column "gpu" is left out, because the schedule was another one then.
"""

import argparse
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from cases import source_of
from schedules import CANDIDATES

ROWS = [1, 16, 64, 512, 4096, 16384, 65536, 1 << 20]
SHORT = {"latencies": "w", "loads": "l", "memory": "m"}
PARTS = {"code": "c", "copies": "r", "walks": "n", "sums": "s", "-": ""}


def estimates(build, model, contract, schedule, rows, timed=False):
    """Returns (us, what binds, nvForest's us, nvForest's instructions over the schedule's) for each number of rows; None
    where the schedule is refused. What binds is given in the letters of a table's cell."""
    command = [f"{build}/bench/gpu/bench_gpu_estimates", *["--timed"] * timed, model, contract, schedule]
    command += map(str, rows)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return [
        (float(ours), SHORT[bound] + PARTS[part], float(theirs), float(issued))
        for _, ours, bound, theirs, _, _, issued, part in lines
    ]


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def print_zoo(build, zoo, contract, instructions):
    print(f"| model | {' | '.join(f'{rows:,}' for rows in ROWS)} |")
    print("|---" * (len(ROWS) + 1) + "|")
    ratios, below = [], Counter()
    for folder in sorted(Path(zoo).iterdir()):
        source = source_of(folder)
        cells = source and estimates(build, source, contract, "gpu", ROWS)
        if not cells:
            continue
        of_model = [issued if instructions else theirs / ours for ours, _, theirs, issued in cells]
        ratios.append(of_model)
        bounds = ["" if instructions else bound for _, bound, _, _ in cells]
        below.update(bound for ratio, bound in zip(of_model, bounds) if ratio < 1)
        texts = (f"{ratio:.2f} {bound}".strip() for ratio, bound in zip(of_model, bounds))
        print(f"| {folder.name} | {' | '.join(texts)} |", flush=True)
    if not ratios:
        sys.exit(f"estimates.py: {zoo}: no folder in it has a model")
    columns = zip(*ratios)
    print(f"| geometric mean | {' | '.join(f'{mean(column):.2f}' for column in columns)} |")
    every = [ratio for of_model in ratios for ratio in of_model]
    print(f"\n{contract}: {mean(every):.2f} in the geometric mean, below 1 in {below.total()} of {len(every)} cells")
    if below and not instructions:
        print("cells below 1: " + ", ".join(f"{count} {bound}" for bound, count in below.most_common()))


def measured(file):
    """Yields (model, rows, column, us) of the table whose first columns are model, rows, nvForest."""
    columns = []
    for line in Path(file).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("| " if not columns else " |")]
        if line.startswith("| model | rows | nvForest"):
            columns = [cell.strip() for cell in line.strip("| ").split("|")]
        elif columns and line.startswith("| ---"):
            continue
        elif columns and line.startswith("|"):
            for column, cell in list(zip(columns, cells))[2:-1]:
                if cell != "-":
                    yield cells[0], int(cells[1].replace(",", "")), column, float(cell.replace(",", ""))
        else:
            columns = []


def print_measured(build, zoo, file):
    cells = [cell for cell in measured(file) if cell[2] != "gpu"]
    rows = sorted({cell[1] for cell in cells})
    found = {}
    for model in sorted({cell[0] for cell in cells}):
        for column in dict.fromkeys(cell[2] for cell in cells):
            schedule = CANDIDATES.get(column, "gpu")
            estimated = estimates(build, source_of(f"{zoo}/{model}"), "fast", schedule, rows, timed=True)
            for count, (ours, _, theirs, _) in zip(rows, estimated or []):
                found[model, count, column] = theirs if column == "nvForest" else ours
    print("| times of | cells | estimate / time, geometric mean | least | most | off by, geometric mean |")
    print("|---|---:|---:|---:|---:|---:|")
    for column in dict.fromkeys(cell[2] for cell in cells):
        ratios = [found[cell[:3]] / cell[3] for cell in cells if cell[2] == column]
        off = mean([max(ratio, 1 / ratio) for ratio in ratios])
        print(f"| {column} | {len(ratios)} | {mean(ratios):.2f} | {min(ratios):.2f} | {max(ratios):.2f} | "
              f"{100 * (off - 1):.0f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("zoo", metavar="ZOO")
    parser.add_argument("--contract", default="fast", choices=["fast", "trainer", "reproducible"])
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--measured", metavar="FILE")
    options = parser.parse_args()
    if not os.path.exists(f"{options.build}/bench/gpu/bench_gpu_estimates"):
        parser.error("bench_gpu_estimates is not built: cmake --build BUILD --target bench_gpu_estimates")
    if options.measured:
        print_measured(options.build, options.zoo, options.measured)
    else:
        print_zoo(options.build, options.zoo, options.contract, options.instructions)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compares the accounting of GPU calls with what machine.py counts: check_account.py BUILD -> a table.

BUILD: a build folder with forestvm, bench_gpu_record and kernels for sm_90. For each cell of CELLS, a random forest is
compiled with a schedule, and a call is recorded on the emulator. machine.py then runs the kernel's machine code; it
counts the instructions that a warp issues, and the lanes that do what the walk's instructions say. `forestvm inspect
--backend cuda` says the same without running anything. The script fails if a count differs by more than --most. Lanes
are not known of codes that kernels do not interpret.

The constants of kernels/account/instruction_costs.def came from calls of other forests.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import machine
import machine_code
import synthetic
from schedules import rows_schedule

# features, depth, trees, classes; all levels but the first ones are thinned out if a fifth number says how many are not
FORESTS = {
    "f13-d8-t100": (13, 8, 100, 1),
    "f28-d6-t64": (28, 6, 64, 1),
    "f90-d7-t200": (90, 7, 200, 1),
    "f54-d9-t70-c7": (54, 9, 70, 7, 6),
    "f16-d12-t40": (16, 12, 40, 1, 6),
    "f400-d5-t90": (400, 5, 90, 1),
    "f6-d4-t600": (6, 4, 600, 1),
}
TILE = "tile(batch, b0, b1, 32)\ntile(tree, t0, t1, 4)\nreorder(b0, b1, t0, t1)\ngpuDimension(b0, grid.x)\n"
TILE += "gpuDimension(b1, block.x)\nlayout(t0, {})\ninterleave(t1)\ncache(b0)\nunrollWalk(t1)"
SCHEDULES = {
    "tile of 4 trees": TILE.format("array"),
    "tile of 4 trees, codes": "encode(u8)\n" + TILE.format("array4"),
    "one row, sparse16": rows_schedule(rows=32, layout="sparse16"),
    "4 rows": rows_schedule(rows=64, per_thread=4, layout="array"),
    "rows in global memory": rows_schedule(rows=32, cache_rows=False),
    "2 trees, sparse8": rows_schedule(rows=32, trees=2),
}
CELLS = [  # forest, schedule, contract, rows
    ("f13-d8-t100", "gpu", "fast", 1),
    ("f13-d8-t100", "gpu", "trainer", 12),
    ("f13-d8-t100", "gpu", "reproducible", 12),
    ("f28-d6-t64", "gpu", "fast", 20),
    ("f28-d6-t64", "gpu", "trainer", 1),
    ("f90-d7-t200", "gpu", "fast", 3),
    ("f90-d7-t200", "gpu", "reproducible", 2),
    ("f54-d9-t70-c7", "gpu", "fast", 8),
    ("f54-d9-t70-c7", "gpu", "trainer", 8),
    ("f16-d12-t40", "gpu", "fast", 30),
    ("f16-d12-t40", "gpu", "trainer", 5),
    ("f400-d5-t90", "gpu", "fast", 6),
    ("f6-d4-t600", "gpu", "fast", 1),
    ("f6-d4-t600", "gpu", "reproducible", 2),
    ("f28-d6-t64", "rapids-fil", "fast", 16),
    ("f28-d6-t64", "tahoe-shared-data", "fast", 4),
    ("f28-d6-t64", "tile of 4 trees", "trainer", 64),
    ("f28-d6-t64", "tile of 4 trees, codes", "trainer", 32),
    ("f28-d6-t64", "one row, sparse16", "trainer", 32),
    ("f28-d6-t64", "4 rows", "trainer", 64),
    ("f28-d6-t64", "rows in global memory", "trainer", 32),
    ("f28-d6-t64", "2 trees, sparse8", "trainer", 32),
]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise machine.Fault(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


def kernel_of(build, layout, found={}):
    """Returns the kernel that walks a layout."""
    if layout not in found:
        objects = Path(build, "kernels/gpu").glob("megakernel_*_cuda.o")
        file = next(path for path in objects if path.name.lower() == f"megakernel_{layout}_cuda.o")
        found[layout] = next(of for of in machine_code.kernels([file], ["sm_90"]) if "_phase_" in of.name)
    return found[layout]


def counted(build, folder, forest, schedule, contract, rows):
    """Returns the instructions of a warp by machine.py, and those by the accounting."""
    forestvm, model, program, calls = f"{build}/cli/forestvm", folder / forest, folder / "gpu.fvm", folder / "calls"
    features, depth, trees, classes, *complete = FORESTS[forest]
    synthetic.write(model, features, depth, trees, classes, rows=64, **dict(zip(["complete_to"], complete)))
    loops = schedule
    if schedule in SCHEDULES:
        loops = folder / "loops.txt"
        loops.write_text(SCHEDULES[schedule])
    how = ["--schedule", loops, "--contract", contract]
    run(forestvm, "compile", model / "model.json", "-o", program, *how)
    shutil.rmtree(calls, ignore_errors=True)
    run(f"{build}/bench/gpu/bench_gpu_record", program, model / "rows.npy", calls, "--rows", rows)
    layout = {json.loads(file.read_text())["layout"] for file in calls.glob("*.json")} - {""}
    count = machine.Count(calls, kernel_of(build, *layout))
    account = json.loads(run(forestvm, "inspect", program, "--backend", "cuda", "--rows", rows, "--json"))
    return count, account["phases"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("--most", type=float, default=0.15, metavar="X")
    options = parser.parse_args()
    if not machine_code.tools_are_there():
        print(machine_code.NO_TOOLS)
        return 0
    wrong = 0
    print(f"{'forest':14} {'schedule':22} {'contract':12} {'rows':>4} {'instructions':>12} {'accounted':>9} {'':>7} "
          f"{'lanes':>5} {'accounted':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for cell in CELLS:
            count, phases = counted(options.build, Path(folder), *cell)
            accounted = sum(phase["instructions_per_warp"] for phase in phases)
            walking = max(phases, key=lambda phase: phase.get("node_visits_per_row", 0))
            off = accounted / count.instructions - 1
            wrong += abs(off) > options.most
            forest, schedule, contract, rows = cell
            print(f"{forest:14} {schedule:22} {contract:12} {rows:4} {count.instructions:12.0f} {accounted:9.0f} "
                  f"{100 * off:+6.1f}% {count.walking_lanes or '-':>5.4} {walking['lanes_per_warp']:9.1f}", flush=True)
    print(f"{wrong} of {len(CELLS)} cells differ by more than {100 * options.most:g} %")
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main())

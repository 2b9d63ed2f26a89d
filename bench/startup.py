#!/usr/bin/env python3
"""Measures what starting costs: `forestvm --version`, opening a small program, and the memory that opening and closing
programs leaves behind.

    bench/startup.py BUILD_FOLDER MODEL
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import time

from library import OUTPUTS, Forest, Library, compiled

OPENED = 1000


def milliseconds(turns, run):
    """Returns the smallest and the median time of a function."""
    times = []
    for _ in range(turns):
        begin = time.perf_counter()
        run()
        times.append((time.perf_counter() - begin) * 1e3)
    times.sort()
    return f"{times[0]:.2f} ms, median {times[len(times) // 2]:.2f} ms"


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_and_close(library, path, threads):
    library.call("fvm_program_close", library.open(path, threads))


def run_once(library, path, threads, rows=4096):
    """Opens a program, predicts rows of zeros, and closes it."""
    forest = Forest(library, path, threads)
    features, outputs = forest.shape()
    values, out = (ctypes.c_float * (rows * features))(), (ctypes.c_float * (rows * outputs))()
    library.call("fvm_predict_f32", forest.context, values, rows, features, OUTPUTS["value"], out, rows * outputs)
    forest.close()


def growth(library, path, threads):
    """Returns the bytes by which the process grows for each program that is opened, run and closed."""
    for _ in range(OPENED):  # fills the caches of the allocator and of the threads
        run_once(library, path, threads)
    before = resident_bytes()
    for _ in range(OPENED):
        run_once(library, path, threads)
    return (resident_bytes() - before) / OPENED


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, model = sys.argv[1:]
    forestvm = f"{build}/cli/forestvm"
    with tempfile.TemporaryDirectory() as folder:
        path = compiled(forestvm, model, folder, "")
        version = [forestvm, "--version"]
        took = milliseconds(100, lambda: subprocess.run(version, stdout=subprocess.DEVNULL, check=True))
        print(f"forestvm --version: {took}")
        library = Library(f"{build}/lib/libforestvm_runtime.so")
        size = os.path.getsize(path)
        for threads in (1, 2):
            took = milliseconds(200, lambda: open_and_close(library, path, threads))
            print(f"opening and closing a program of {size} bytes, {threads} threads: {took}")
            print(f"growth per program opened, run with 4,096 rows and closed, {threads} threads: "
                  f"{growth(library, path, threads):.0f} bytes")


if __name__ == "__main__":
    main()

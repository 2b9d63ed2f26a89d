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

OPENED = 1000


class Options(ctypes.Structure):
    """fvm_open_options of forestvm.h."""

    _fields_ = [("size", ctypes.c_size_t), ("target", ctypes.c_char_p), ("threads", ctypes.c_uint32),
                ("verification", ctypes.c_int32)]


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


class Library:
    def __init__(self, path):
        self.functions = ctypes.CDLL(path)
        self.functions.fvm_program_open.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
        self.functions.fvm_context_create.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.functions.fvm_context_destroy.argtypes = [ctypes.c_void_p]
        self.functions.fvm_program_close.argtypes = [ctypes.c_void_p]
        self.functions.fvm_predict_f32.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                                   ctypes.c_size_t, ctypes.c_int32, ctypes.c_void_p,
                                                   ctypes.c_size_t]
        self.functions.fvm_program_shape.argtypes = [ctypes.c_void_p] + [ctypes.c_void_p] * 3

    def call(self, name, *arguments):
        if getattr(self.functions, name)(*arguments) != 0:
            sys.exit(f"{name} failed")

    def open_and_close(self, path, threads, rows=0):
        """Opens a program, predicts `rows` rows of zeros, and closes it."""
        program, context = ctypes.c_void_p(), ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), None, threads, 0)
        self.call("fvm_program_open", path.encode(), ctypes.byref(options), ctypes.byref(program))
        if rows != 0:
            shape = [ctypes.c_uint32() for _ in range(3)]
            self.call("fvm_program_shape", program, *map(ctypes.byref, shape))
            features, outputs = shape[0].value, shape[1].value
            values, out = (ctypes.c_float * (rows * features))(), (ctypes.c_float * (rows * outputs))()
            self.call("fvm_context_create", program, ctypes.byref(context))
            self.call("fvm_predict_f32", context, values, rows, features, 1, out, rows * outputs)
            self.call("fvm_context_destroy", context)
        self.call("fvm_program_close", program)

    def growth(self, path, threads):
        """Returns the bytes by which the process grows for each program that is opened, run and closed."""
        for _ in range(OPENED):  # fills the caches of the allocator and of the threads
            self.open_and_close(path, threads, 4096)
        before = resident_bytes()
        for _ in range(OPENED):
            self.open_and_close(path, threads, 4096)
        return (resident_bytes() - before) / OPENED


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, model = sys.argv[1:]
    forestvm = f"{build}/cli/forestvm"
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.fvm"
        subprocess.run([forestvm, "compile", model, "-o", path], check=True)
        version = [forestvm, "--version"]
        took = milliseconds(100, lambda: subprocess.run(version, stdout=subprocess.DEVNULL, check=True))
        print(f"forestvm --version: {took}")
        library = Library(f"{build}/lib/libforestvm_runtime.so")
        size = os.path.getsize(path)
        for threads in (1, 2):
            took = milliseconds(200, lambda: library.open_and_close(path, threads))
            print(f"opening and closing a program of {size} bytes, {threads} threads: {took}")
            print(f"growth per program opened, run with 4,096 rows and closed, {threads} threads: "
                  f"{library.growth(path, threads):.0f} bytes")


if __name__ == "__main__":
    main()

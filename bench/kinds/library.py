"""forestvm's C library for one thread, through ctypes; include/forestvm/forestvm.h documents it."""
import ctypes
import pathlib
import re
import subprocess
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT / "bench" / "gpu"))

import api  # noqa: E402

ROW = re.compile(r'^FVM_OUTPUT\((\d+), \w+, "([\w-]+)"', re.MULTILINE)
OUTPUTS = {name: int(number) for number, name in ROW.findall((ROOT / "include/forestvm/core/outputs.def").read_text())}


class OpenOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("target", ctypes.c_char_p),
        ("threads", ctypes.c_uint32),
        ("verification", ctypes.c_int32),
    ]


class CallOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("base_margin", ctypes.c_void_p),
        ("base_margin_rows", ctypes.c_size_t),
        ("base_margin_outputs", ctypes.c_size_t),
        ("base_margin_type", ctypes.c_int32),
        ("early_stop_every", ctypes.c_uint32),
        ("early_stop_margin", ctypes.c_double),
        ("rounds_begin", ctypes.c_uint32),
        ("rounds_end", ctypes.c_uint32),
        ("stage_every", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


def compiled(forestvm, model, folder, capabilities):
    """Compiles a model with capabilities, "" for none. Returns the program file, in the folder."""
    program = pathlib.Path(folder) / f"{capabilities or 'plain'}.fvm"
    command = [forestvm, "compile", str(model), "-o", str(program)]
    subprocess.run(command + (["--with", capabilities] if capabilities else []), check=True)
    return program


class Forest:
    """A program, which predicts with one thread."""

    def __init__(self, library, program):
        self.library = ctypes.CDLL(library)
        self.library.fvm_last_error.restype = ctypes.c_char_p
        options = OpenOptions(ctypes.sizeof(OpenOptions), b"auto", 1, 0)
        self.program, self.context = ctypes.c_void_p(), ctypes.c_void_p()
        path = str(program).encode()
        self.check(self.library.fvm_program_open(path, ctypes.byref(options), ctypes.byref(self.program)))
        self.check(self.library.fvm_context_create(self.program, ctypes.byref(self.context)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.library.fvm_last_error().decode())

    def width(self, output, every=0):
        """Returns the numbers of a row."""
        options, width = call_options(every), ctypes.c_uint32()
        kind = OUTPUTS[output]
        self.check(self.library.fvm_call_width(self.program, kind, ctypes.byref(options), ctypes.byref(width)))
        return width.value

    def call(self, rows, output, every=0):
        """Returns a function that predicts float32 rows, and returns its one array of float32, (rows, numbers)."""
        options, out = call_options(every), numpy.empty((len(rows), self.width(output, every)), numpy.float32)
        given = api.Rows(kind=api.DENSE, row_count=len(rows), column_count=rows.shape[1], data=rows.ctypes.data)
        given.size = ctypes.sizeof(api.Rows)

        def predict():
            self.check(
                self.library.fvm_predict_with(
                    self.context,
                    ctypes.byref(given),
                    OUTPUTS[output],
                    api.FLOAT32,
                    ctypes.byref(options),
                    out.ctypes.data_as(ctypes.c_void_p),
                    ctypes.c_size_t(out.size),
                )
            )
            return out

        return predict


def call_options(every):
    return CallOptions(size=ctypes.sizeof(CallOptions), early_stop_margin=10.0, stage_every=every)

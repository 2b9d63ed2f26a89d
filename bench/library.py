"""forestvm's C library for rows of the host, through ctypes; include/forestvm/forestvm.h documents it."""
import ctypes
import pathlib
import re
import subprocess
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
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
        ("ensembles", ctypes.c_uint32),
        ("features", ctypes.c_void_p),
        ("feature_count", ctypes.c_size_t),
        ("quantiles", ctypes.c_void_p),
        ("quantile_count", ctypes.c_size_t),
    ]


POINTER, SIZE, NUMBER = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32
CALLS = {  # functions that return a status, and the types of their arguments
    "fvm_program_open": [ctypes.c_char_p, POINTER, POINTER],
    "fvm_program_close": [POINTER],
    "fvm_program_shape": [POINTER, POINTER, POINTER, POINTER],
    "fvm_call_width": [POINTER, NUMBER, POINTER, POINTER],
    "fvm_context_create": [POINTER, POINTER],
    "fvm_context_destroy": [POINTER],
    "fvm_predict_f32": [POINTER, POINTER, SIZE, SIZE, NUMBER, POINTER, SIZE],
    "fvm_predict_with": [POINTER, POINTER, NUMBER, NUMBER, POINTER, POINTER, SIZE],
}
TEXTS = {"fvm_last_error": [], "fvm_version": [], "fvm_program_description": [POINTER]}


def compiled(forestvm, model, folder, capabilities):
    """Compiles a model with capabilities, "" for none. Returns the program file, in the folder."""
    program = pathlib.Path(folder) / f"{capabilities or 'plain'}.fvm"
    command = [forestvm, "compile", str(model), "-o", str(program)]
    subprocess.run(command + (["--with", capabilities] if capabilities else []), check=True)
    return program


class Library:
    """libforestvm_runtime.so."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(str(path))
        for names, result in ((CALLS, NUMBER), (TEXTS, ctypes.c_char_p)):
            for name, types in names.items():
                function = getattr(self.functions, name)
                function.argtypes, function.restype = types, result

    def call(self, name, *arguments):
        """Calls a function. Raises RuntimeError with the library's message if it fails."""
        if getattr(self.functions, name)(*arguments) != 0:
            raise RuntimeError(self.functions.fvm_last_error().decode())

    def open(self, path, threads=1, target="auto"):
        """Opens a program file. Returns its handle, which fvm_program_close closes."""
        program, options = ctypes.c_void_p(), OpenOptions(ctypes.sizeof(OpenOptions), target.encode(), threads, 0)
        self.call("fvm_program_open", str(path).encode(), ctypes.byref(options), ctypes.byref(program))
        return program


class Forest:
    """A program and a context for it."""

    def __init__(self, library, path, threads=1, target="auto"):
        self.library, self.context = library, ctypes.c_void_p()
        self.program = library.open(path, threads, target)
        library.call("fvm_context_create", self.program, ctypes.byref(self.context))

    def close(self):
        self.library.call("fvm_context_destroy", self.context)
        self.library.call("fvm_program_close", self.program)

    def version(self):
        """Returns the library's version, and how it runs the program."""
        functions = self.library.functions
        return f"{functions.fvm_version().decode()}: {functions.fvm_program_description(self.program).decode()}"

    def shape(self):
        """Returns the number of features and the number of outputs."""
        features, outputs = ctypes.c_uint32(), ctypes.c_uint32()
        self.library.call("fvm_program_shape", self.program, ctypes.byref(features), ctypes.byref(outputs), None)
        return features.value, outputs.value

    def width(self, output, every=0):
        """Returns the numbers of a row."""
        options, width = call_options(every), ctypes.c_uint32()
        kind = OUTPUTS[output]
        self.library.call("fvm_call_width", self.program, kind, ctypes.byref(options), ctypes.byref(width))
        return width.value

    def call(self, rows, output, every=0, stop=None, rounds=None):
        """Returns a function that predicts float32 rows, and returns its one array of float32, (rows, numbers).

        `stop` are the margin and the rounds between two checks of an early stop, `rounds` the first and the end of those
        that are taken.
        """
        options, out = call_options(every, stop, rounds), numpy.empty((len(rows), self.width(output, every)), numpy.float32)
        given = api.Rows(kind=api.DENSE, row_count=len(rows), column_count=rows.shape[1], data=rows.ctypes.data)
        given.size = ctypes.sizeof(api.Rows)

        def predict():
            self.library.call(
                "fvm_predict_with",
                self.context,
                ctypes.byref(given),
                OUTPUTS[output],
                api.FLOAT32,
                ctypes.byref(options),
                out.ctypes.data,
                out.size,
            )
            return out

        return predict


def call_options(every, stop=None, rounds=None):
    margin, checked = stop or (10.0, 0)
    begin, end = rounds or (0, 0)
    return CallOptions(
        size=ctypes.sizeof(CallOptions),
        early_stop_every=checked,
        early_stop_margin=margin,
        rounds_begin=begin,
        rounds_end=end,
        stage_every=every,
    )

"""forestvm's C ABI for rows on a GPU, through ctypes. The names of its functions are only in NAMES;
include/forestvm/forestvm.h documents them."""

import ctypes

NAMES = dict(
    open="fvm_program_open_gpu",
    close="fvm_program_close",
    shape="fvm_program_shape",
    create="fvm_context_create",
    destroy="fvm_context_destroy",
    predict="fvm_predict",
    describe="fvm_program_description",
    error="fvm_last_error",
)
RAW = 0  # fvm_output
FLOAT32, FLOAT64 = 0, 1  # fvm_type
DENSE, DEVICE = 0, 3  # fvm_rows_kind
CUDA = 0  # fvm_gpu_vendor
REFUSED = 1  # fvm_status


class GpuOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("vendor", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("verification", ctypes.c_int32),
    ]


class Rows(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_int32),
        ("type", ctypes.c_int32),
        ("row_count", ctypes.c_size_t),
        ("column_count", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("row_stride", ctypes.c_ssize_t),
        ("column_stride", ctypes.c_ssize_t),
        ("offsets", ctypes.c_void_p),
        ("columns", ctypes.c_void_p),
        ("value_count", ctypes.c_size_t),
        ("absent", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
        ("byte_count", ctypes.c_size_t),
        ("encoder", ctypes.c_uint64),
        ("hashed", ctypes.c_int32),
        ("extra", ctypes.c_int32),
        ("schema", ctypes.c_void_p),
    ]


def device():
    """Returns None, or why there is no CUDA device, as the end of a sentence."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA device: libcuda.so.1 is absent"
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return "no CUDA device: the driver finds none"
    return None


class CallError(RuntimeError):
    """Raised if a function of the library fails. `status` is the fvm_status that it returned."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Library:
    """The runtime library. `needs` lists libraries that it or a GPU's library needs and that the loader would not find.
    Each library stands behind the libraries that it needs itself."""

    def __init__(self, path, needs=()):
        self.needs = [ctypes.CDLL(need) for need in needs]
        library = ctypes.CDLL(path)
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        arguments = dict(
            open=[ctypes.c_char_p, pointer, pointer],
            close=[pointer],
            shape=[pointer, pointer, pointer, pointer],
            create=[pointer, pointer],
            destroy=[pointer],
            predict=[pointer, pointer, ctypes.c_int32, ctypes.c_int32, pointer, size],
            describe=[pointer],
            error=[],
        )
        for role, types in arguments.items():
            function = getattr(library, NAMES[role], None)
            if function is None:
                raise RuntimeError(
                    f"{path} has no {NAMES[role]}: it was built without CUDA, or bench/gpu/api.py is old"
                )
            function.argtypes = types
            function.restype = ctypes.c_char_p if role in ("describe", "error") else ctypes.c_int32
            setattr(self, role, function)

    def need(self, status):
        if status:
            raise CallError(status, self.error().decode())


class Program:
    """A program on the GPU, and a context for it."""

    def __init__(self, library, path):
        self.library, self.handle, self.context = library, ctypes.c_void_p(), ctypes.c_void_p()
        options = GpuOptions(ctypes.sizeof(GpuOptions), CUDA, 0, 0)
        library.need(library.open(path.encode(), ctypes.byref(options), ctypes.byref(self.handle)))
        library.need(library.create(self.handle, ctypes.byref(self.context)))
        features, outputs = ctypes.c_uint32(), ctypes.c_uint32()
        library.need(library.shape(self.handle, ctypes.byref(features), ctypes.byref(outputs), None))
        self.features, self.outputs = features.value, outputs.value

    def predict(self, rows, count, out, stream=0, type=FLOAT32):
        """Predicts rows on the GPU. `rows` and `out` are addresses on the GPU; `type` is the type of the raw scores."""
        self.predict_rows(Rows(kind=DEVICE, row_count=count, data=rows, stream=stream), out, type)

    def predict_host(self, rows, count, out, type=FLOAT32):
        """Predicts rows in the host's memory, copies included."""
        self.predict_rows(Rows(kind=DENSE, row_count=count, data=rows), out, type)

    def predict_rows(self, rows, out, type):
        rows.size, rows.column_count = ctypes.sizeof(Rows), self.features
        capacity = rows.row_count * self.outputs
        self.library.need(self.library.predict(self.context, ctypes.byref(rows), RAW, type, out, capacity))

    def close(self):
        self.library.destroy(self.context)
        self.library.close(self.handle)

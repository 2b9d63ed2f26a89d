"""CUDA's driver through ctypes: memory, streams and captured graphs of one device, without any package of Python. The
emulated driver of a rehearsal (emulated_driver.cpp) has the same functions."""

import ctypes

NON_BLOCKING = 1  # CUstream_flags
GLOBAL_CAPTURE = 0  # CUstreamCaptureMode
DEFAULT_STREAM = None
PROCESSORS, MAJOR, MINOR = 16, 75, 76  # CUdevice_attribute

NAMES = dict(
    init="cuInit",
    device="cuDeviceGet",
    name="cuDeviceGetName",
    bytes="cuDeviceTotalMem_v2",
    attribute="cuDeviceGetAttribute",
    version="cuDriverGetVersion",
    retain="cuDevicePrimaryCtxRetain",
    choose="cuCtxSetCurrent",
    allocate="cuMemAlloc_v2",
    free="cuMemFree_v2",
    upload="cuMemcpyHtoD_v2",
    download="cuMemcpyDtoH_v2",
    fill="cuMemsetD8_v2",
    create_stream="cuStreamCreate",
    wait="cuStreamSynchronize",
    destroy_stream="cuStreamDestroy_v2",
    begin_capture="cuStreamBeginCapture_v2",
    end_capture="cuStreamEndCapture",
    instantiate="cuGraphInstantiateWithFlags",
    launch="cuGraphLaunch",
    destroy_graph="cuGraphDestroy",
    destroy_instantiated="cuGraphExecDestroy",
    text="cuGetErrorString",
)
ADDRESS, HANDLE, SIZE, BYTE = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_ubyte
# The types of arguments that are passed by value; all other arguments are pointers.
VALUES = dict(
    init=[ctypes.c_uint],
    device=[HANDLE, ctypes.c_int],
    name=[HANDLE, ctypes.c_int, ctypes.c_int],
    bytes=[HANDLE, ctypes.c_int],
    attribute=[HANDLE, ctypes.c_int, ctypes.c_int],
    retain=[HANDLE, ctypes.c_int],
    allocate=[HANDLE, SIZE],
    free=[ADDRESS],
    upload=[ADDRESS, HANDLE, SIZE],
    download=[HANDLE, ADDRESS, SIZE],
    fill=[ADDRESS, BYTE, SIZE],
    create_stream=[HANDLE, ctypes.c_uint],
    begin_capture=[HANDLE, ctypes.c_int],
    end_capture=[HANDLE, HANDLE],
    instantiate=[HANDLE, HANDLE, ctypes.c_ulonglong],
    launch=[HANDLE, HANDLE],
    text=[ctypes.c_int, HANDLE],
)


class Driver:
    """The driver with device 0, whose primary context becomes the calling thread's."""

    def __init__(self, path="libcuda.so.1"):
        library = ctypes.CDLL(path)
        for role, name in NAMES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = VALUES.get(role, [HANDLE]), ctypes.c_int
            setattr(self, "_" + role, function)
        self.call("init", 0)
        device, context = ctypes.c_int(), HANDLE()
        self.call("device", ctypes.byref(device), 0)
        self.call("retain", ctypes.byref(context), device)
        self.call("choose", context)
        self.number = device

    def call(self, role, *arguments):
        status = getattr(self, "_" + role)(*arguments)
        if status == 0:
            return
        text = ctypes.c_char_p()
        self._text(status, ctypes.byref(text))
        raise RuntimeError(f"{NAMES[role]}: {(text.value or b'unknown error').decode()} ({status})")

    def describe(self):
        name, total, version = ctypes.create_string_buffer(256), SIZE(), ctypes.c_int()
        self.call("name", name, len(name), self.number)
        self.call("bytes", ctypes.byref(total), self.number)
        self.call("version", ctypes.byref(version))
        major, minor, processors = (self.attribute(which) for which in (MAJOR, MINOR, PROCESSORS))
        return dict(
            device=name.value.decode(),
            architecture=f"sm_{major}{minor}",
            processors=processors,
            memory_mib=total.value >> 20,
            cuda_of_driver=f"{version.value // 1000}.{version.value % 1000 // 10}",
        )

    def attribute(self, which):
        value = ctypes.c_int()
        self.call("attribute", ctypes.byref(value), which, self.number)
        return value.value


class Memory:
    """Bytes on the device. Fills and copies are over when a method returns, because other streams do not wait for
    them."""

    def __init__(self, driver, size):
        self.driver, self.size, self.address = driver, size, ADDRESS()
        driver.call("allocate", ctypes.byref(self.address), max(size, 1))

    def fill(self, byte):
        self.driver.call("fill", self.address, byte, self.size)
        self.driver.call("wait", DEFAULT_STREAM)

    def write(self, data):
        self.driver.call("upload", self.address, data, len(data))
        self.driver.call("wait", DEFAULT_STREAM)

    def read(self, size):
        data = ctypes.create_string_buffer(size)
        self.driver.call("download", data, self.address, size)
        return data.raw

    def free(self):
        self.driver.call("free", self.address)


class Stream:
    """A stream that does not wait for the default stream."""

    def __init__(self, driver):
        self.driver, self.handle = driver, HANDLE()
        driver.call("create_stream", ctypes.byref(self.handle), NON_BLOCKING)

    def wait(self):
        self.driver.call("wait", self.handle)

    def captured(self, work):
        """Returns a graph of what work() gives to the stream. If work() fails, the capture is ended nevertheless."""
        self.driver.call("begin_capture", self.handle, GLOBAL_CAPTURE)
        graph = HANDLE()
        try:
            work()
        except Exception:
            self.driver._end_capture(self.handle, ctypes.byref(graph))
            raise
        self.driver.call("end_capture", self.handle, ctypes.byref(graph))
        return Graph(self.driver, graph)

    def close(self):
        self.driver.call("destroy_stream", self.handle)


class Graph:
    def __init__(self, driver, graph):
        self.driver, self.graph, self.ready = driver, graph, HANDLE()
        driver.call("instantiate", ctypes.byref(self.ready), graph, 0)

    def launch(self, stream):
        self.driver.call("launch", self.ready, stream.handle)

    def close(self):
        self.driver.call("destroy_instantiated", self.ready)
        self.driver.call("destroy_graph", self.graph)

"""Rows in a GPU's memory. The GPU is the emulator, as a library beside the other tests: its memory is the host's."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, TREE

import forestvm

Array = np.ndarray[Any, Any]
LIBRARIES = Path(os.environ.get("FORESTVM_EMULATED") or TREE / "build/release/tests/kernels/emulated")
CUDA, ROCM = 2, 10


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


def new_capsule(struct: Any, name: bytes) -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.addressof(struct), name, None)


class ByDlpack:
    """An array with DLPack's methods, which names a GPU's memory."""

    def __init__(
        self, array: Array, device: tuple[int, int] = (CUDA, 0), versioned: bool = True, flags: int = 0, major: int = 1
    ) -> None:
        self.array, self.device, self.versioned, self.flags, self.major = array, device, versioned, flags, major
        self.streams: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: int, **options: Any) -> Any:
        if options and not self.versioned:
            raise TypeError("max_version")
        self.streams.append(stream)
        array, dims = self.array, self.array.ndim
        self.shape = (ctypes.c_int64 * dims)(*array.shape)
        self.strides = (ctypes.c_int64 * dims)(*(stride // array.itemsize for stride in array.strides))
        tensor = DLTensor(
            array.ctypes.data - 8,
            self.device,
            dims,
            {"i": 0, "u": 1, "f": 2}[array.dtype.kind],
            8 * array.itemsize,
            1,
            self.shape,
            None if array.flags.c_contiguous else self.strides,
            8,
        )
        self.made = (
            ManagedVersioned((self.major, 0), None, None, self.flags, tensor)
            if self.versioned
            else Managed(tensor, None, None)
        )
        self.name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return new_capsule(self.made, self.name)


class ByInterface:
    """An array with __cuda_array_interface__ alone."""

    def __init__(self, array: Array, version: int = 3, **changes: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "version": version,
            "strides": None if array.flags.c_contiguous else array.strides,
            **changes,
        }


def by_dlpack_1(array: Array) -> ByDlpack:
    return ByDlpack(array, versioned=False)


MAKERS = [ByDlpack, by_dlpack_1, ByInterface]


@pytest.fixture(scope="module", autouse=True)
def _emulator() -> Any:
    if not any(LIBRARIES.glob("libforestvm_cuda.so")):
        pytest.skip(f"no rows in a GPU's memory: the emulator's library is not in {LIBRARIES}; FORESTVM_EMULATED names it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORESTVM_PLUGINS", str(LIBRARIES))
        yield


@pytest.fixture(scope="module")
def forest(breast_cancer: Path) -> forestvm.Forest:
    return forestvm.load(breast_cancer, device="cuda")


def strided(rows: Array) -> Array:
    wide = np.full((2 * len(rows), rows.shape[1] + 3), 7, rows.dtype)
    wide[::2, 1:-2] = rows
    return wide[::2, 1:-2]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("count", [0, 1, 65])
def test_predictions_are_the_hosts(breast_cancer: Path, rows: Array, make: Any, count: int) -> None:
    host = forestvm.load(breast_cancer, threads=1)
    forest = forestvm.load(breast_cancer, device="cuda:0")
    for form in (np.array, strided):
        X = make(form(rows[:count]))
        for output in ("raw", "value", "class", "leaf"):
            wanted = host.predict(rows[:count], output=output)
            for dtype in (None, "float64") if output in ("raw", "value") else (None,):
                out = make(np.full_like(wanted, 77, dtype=dtype))
                assert forest.predict(X, output=output, out=out, dtype=dtype) is out
                assert np.array_equal(out.array, wanted), (output, dtype)


def test_several_outputs_and_probabilities() -> None:
    path = next((DATA / "xgboost_versions" / "3.1.3_softprob").glob("model.*"))
    rows = np.load(path.parent / "rows.npy")[:40].astype(np.float32)
    host, forest = forestvm.load(path, threads=1), forestvm.load(path, device="cuda")
    for output in ("raw", "value", "proba"):
        wanted = host.predict(rows, output=output)
        assert wanted.shape == (len(rows), forest.num_outputs)
        out = ByDlpack(np.empty_like(wanted))
        forest.predict(ByDlpack(rows), output=output, out=out)
        assert np.array_equal(out.array, wanted), output
        with pytest.raises(forestvm.Usage, match=r"the shape \(\d+, \d\) in C order"):
            forest.predict(ByDlpack(rows), output=output, out=ByDlpack(np.empty_like(wanted, order="F")))


def test_streams(forest: forestvm.Forest, rows: Array) -> None:
    """DLPack is asked for work on the call's stream; __cuda_array_interface__ names it."""
    out = np.empty(len(rows), np.float32)
    X, result = ByDlpack(rows), ByDlpack(out)
    forest.predict(X, out=result)
    assert (X.streams, result.streams) == ([1], [1])
    for default in (None, 1):
        out[:] = 77
        forest.predict(ByInterface(rows, stream=default), out=ByInterface(out, stream=default))
        assert np.array_equal(out, forest.predict(rows))
    with pytest.raises(forestvm.Usage, match="the stream 0 is not allowed"):
        forest.predict(ByInterface(rows, stream=0), out=ByInterface(out))
    with pytest.raises(forestvm.Usage, match="another stream"):
        forest.predict(ByInterface(rows, stream=1), out=ByInterface(out, stream=2))


def test_a_stream_of_the_callers_is_handed_on(forest: forestvm.Forest, rows: Array, monkeypatch: Any) -> None:
    """The emulator has no streams that Python can make."""
    calls = []
    monkeypatch.setattr(forestvm.Forest, "_predict_device", lambda self, *args: calls.append(args), raising=False)
    out = np.empty(len(rows), np.float32)
    X = ByDlpack(rows)
    forest.predict(X, out=ByInterface(out, stream=0x700))
    forest.predict(ByInterface(rows, stream=2), out=ByDlpack(out))
    assert [call[4] for call in calls] == [0x700, 2]
    assert X.streams == [0x700]


def test_both_descriptions(forest: forestvm.Forest, rows: Array) -> None:
    """DLPack makes the stream wait; version 3 of the interface names the owner's stream, older versions do not."""
    wanted = forest.predict(rows)
    for version, asked in ((2, [1]), (3, [])):
        X = ByDlpack(rows)
        X.__cuda_array_interface__ = ByInterface(rows, version).__cuda_array_interface__  # type: ignore[attr-defined]
        out = np.empty_like(wanted)
        forest.predict(X, out=ByInterface(out))
        assert np.array_equal(out, wanted)
        assert X.streams == asked


@pytest.mark.parametrize("make", MAKERS)
def test_rows_that_are_not_read(forest: forestvm.Forest, rows: Array, make: Any) -> None:
    out = ByInterface(np.empty(len(rows), np.float32))
    for array, reason in (
        (rows.astype("f8"), "as float32, not float64"),
        (rows.astype("i4"), "as float32, not int32"),
        (np.asfortranarray(rows), "row by row"),
        (rows[::-1], "row by row"),
        (np.broadcast_to(rows[:1], rows.shape), "row by row"),
        (rows[0], "1 dimensions, not 2"),
    ):
        with pytest.raises(forestvm.UnsupportedInput, match=reason):
            forest.predict(make(array), out=out)
    with pytest.raises(forestvm.FeatureMismatch, match="29 columns"):
        forest.predict(make(rows[:, 1:]), out=out)
    with pytest.raises(forestvm.UnsupportedInput, match="missing"):
        forest.predict(make(rows), out=out, missing=0)
    with pytest.raises(forestvm.Refused, match="by the host"):
        forest.predict_proba(make(rows), out=make(np.empty((len(rows), 2), np.float32)))
    with pytest.raises(forestvm.UnsupportedInput, match="a GPU's memory"):
        forest.predict_one(make(rows[0]))
    with pytest.raises(forestvm.UnsupportedInput, match="a GPU's memory"):
        forest.encode(make(rows))
    with pytest.raises(forestvm.UnsupportedInput, match="mask"):
        forest.predict(ByInterface(rows, mask=ByInterface(rows)), out=out)
    with pytest.raises(forestvm.UnsupportedInput, match="DLPack's type|complex"):
        forest.predict(ByInterface(rows.astype("c8")), out=out)


@pytest.mark.parametrize("make", MAKERS)
def test_results_that_are_not_written(forest: forestvm.Forest, rows: Array, make: Any) -> None:
    X, count = make(rows), len(rows)
    with pytest.raises(forestvm.Usage, match=rf"pass an array of float32 of the shape \({count},\)"):
        forest.predict(X)
    with pytest.raises(forestvm.Usage, match="are written there"):
        forest.predict(X, out=np.empty(count, np.float32))
    for array, reason in (
        (np.empty(count - 1, "f"), "the shape"),
        (np.empty(2 * count, "f")[::2], "C order"),
        (np.empty((count, 1), "f"), "the shape"),
        (np.empty(count, "i4"), "numbers of int32, not float32 or float64"),
    ):
        with pytest.raises(forestvm.Usage, match=reason):
            forest.predict(X, out=make(array))
    with pytest.raises(forestvm.Usage, match="numbers of float32, not float64"):
        forest.predict(X, out=make(np.empty(count, "f")), dtype="float64")
    with pytest.raises(forestvm.Refused, match="labels are int64"):
        forest.predict_class(X, out=make(np.empty(count, "i4")))
    with pytest.raises(forestvm.Usage, match="cannot be written"):
        forest.predict(X, out=ByInterface(np.empty(count, "f"), data=(1, True)))
    with pytest.raises(forestvm.Usage, match="cannot be written"):
        forest.predict(X, out=ByDlpack(np.empty(count, "f"), flags=1))
    with pytest.raises(forestvm.Usage, match="out"):
        forest.predict(rows, out=make(np.empty(count, "f")))  # rows of the host give results there


def test_other_devices(forest: forestvm.Forest, breast_cancer: Path, rows: Array) -> None:
    out = np.empty(len(rows), np.float32)
    host = forestvm.load(breast_cancer, threads=1)
    for make in MAKERS:
        with pytest.raises(forestvm.UnsupportedInput, match="the forest runs on the host: load it with device="):
            host.predict(make(rows), out=make(out))
    with pytest.raises(forestvm.UnsupportedInput, match="of hip, and the forest runs on one of cuda"):
        forest.predict(ByDlpack(rows, (ROCM, 0)), out=ByDlpack(out))
    with pytest.raises(forestvm.UnsupportedInput, match="kind 8 of DLPack"):
        forest.predict(ByDlpack(rows, (8, 0)), out=ByDlpack(out))
    with pytest.raises(forestvm.Usage, match="the rows are on device 1, the program is on device 0"):
        forest.predict(ByDlpack(rows, (CUDA, 1)), out=ByDlpack(out, (CUDA, 1)))
    with pytest.raises(forestvm.Usage, match="another GPU's memory"):
        forest.predict(ByDlpack(rows), out=ByDlpack(out, (CUDA, 1)))
    with pytest.raises(forestvm.Usage, match="DLPack 2 is not read"):
        forest.predict(ByDlpack(rows, major=2), out=ByDlpack(out))


def test_models_whose_rows_the_host_changes() -> None:
    """LightGBM's zeros may be missing values, which the host sees to."""
    path = next((DATA / "lightgbm").glob("4.7.0_zero*/model.txt"))
    rows = np.load(path.parent / "rows.npy")[:40].astype(np.float32)
    forest = forestvm.load(path, device="cuda")
    with pytest.raises(forestvm.Refused, match="pass rows of the host"):
        forest.predict_raw(ByDlpack(rows), out=ByDlpack(np.empty(len(rows), np.float64)))

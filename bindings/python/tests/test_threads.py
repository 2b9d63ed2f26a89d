"""Threads of Python, and threads of calls."""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forestvm
from forestvm import _core, _threads

Array = np.ndarray[Any, Any]
CALLS = int(os.environ.get("FORESTVM_CALLS", "100000"))


def test_eight_threads_of_one_row_calls(breast_cancer: Path, rows: Array) -> None:
    """Each call gets the answer for its own row."""
    forest = forestvm.load(breast_cancer)
    wanted = forest.predict(rows)
    start = threading.Barrier(8)

    def work(first: int) -> int:
        start.wait()
        right = 0
        for i in range(CALLS):
            at = (first + i) % len(rows)
            right += bool(forest.predict(rows[at : at + 1])[0] == wanted[at])
        return right

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [CALLS] * 8


def test_threads_of_large_and_small_calls_of_all_kinds(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer, threads=2)
    many = np.tile(rows, (20, 1))
    calls = [
        lambda: forest.predict(many),
        lambda: forest.predict_raw(np.asfortranarray(many, dtype=float)),
        lambda: forest.apply(rows),
        lambda: forest.predict_proba(many.tolist()[:100]),
        lambda: forest.predict(forest.encode(rows)),
        lambda: np.array([forest.predict_one(row) for row in rows[:50]]),
    ]
    wanted = [call().tobytes() for call in calls]
    with ThreadPoolExecutor(8) as pool:
        futures = [(i % len(calls), pool.submit(calls[i % len(calls)])) for i in range(120)]
        for which, future in futures:
            assert future.result().tobytes() == wanted[which]


def test_forests_come_and_go_in_many_threads(breast_cancer: Path, rows: Array) -> None:
    """Loading, pickling, encoding, refusing and dropping share nothing that two threads must not touch at once."""
    wanted = forestvm.load(breast_cancer).predict(rows).tobytes()
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        for threads in (1, 2, 3):
            forest = pickle.loads(pickle.dumps(forestvm.load(breast_cancer, threads=threads), protocol=4 + number % 2))
            assert forest.predict(forest.encode(rows)).tobytes() == wanted
            assert forest.predict(rows.tolist(), dtype=np.float32, columns="position").tobytes() == wanted
            with pytest.raises(forestvm.FeatureMismatch):
                forest.predict(rows[:, 1:].tolist())
            with pytest.raises(forestvm.Refused):
                forestvm.load(b"{}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a global lock")
def test_the_extension_leaves_the_global_lock_off() -> None:
    """Python turns the lock on, with a warning, for extensions that do not say that they need none."""
    code = "import sys, forestvm; assert not sys._is_gil_enabled()"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=100)


def counted_during(call: Callable[[], object]) -> int:
    """Returns how far another thread counts during a call. Python does not switch threads of its own accord, so that
    the other thread runs only where the call releases the global lock."""
    done, begun = threading.Event(), threading.Event()
    number = [0]

    def count() -> None:
        while not done.is_set():
            number[0] += 1
            begun.set()
            time.sleep(0)  # gives the lock back

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    thread.start()
    try:
        begun.wait()
        sys.setswitchinterval(1000)
        before = number[0]
        call()
        return number[0] - before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        thread.join()


def test_other_threads_run_during_a_long_call(breast_cancer: Path, rows: Array) -> None:
    forest = forestvm.load(breast_cancer, threads=1)
    many = np.tile(rows, (2000, 1))
    assert counted_during(lambda: forest.predict(many)) > 10


@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="this Python has no global lock")
def test_a_call_that_holds_the_global_lock_would_be_seen() -> None:
    assert counted_during(lambda: ctypes.PyDLL(None).usleep(200_000)) <= 1
    assert counted_during(lambda: ctypes.CDLL(None).usleep(200_000)) > 10


def test_the_environment_caps_threads(monkeypatch: pytest.MonkeyPatch, breast_cancer: Path) -> None:
    monkeypatch.setattr(_threads, "available_cpus", lambda: 8)
    cases: list[tuple[str | None, str | None, int]] = [
        (None, None, 8),
        ("3", None, 3),
        ("3", "2", 3),
        (None, "2", 2),
        (None, "5,4,3", 5),
        (None, "many", 8),
        ("", "4", 4),
        ("100", None, 8),
    ]
    for own, openmp, wanted in cases:
        for name, value in (("FORESTVM_NUM_THREADS", own), ("OMP_NUM_THREADS", openmp)):
            monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
        assert _threads.thread_count(None) == wanted
        assert _threads.thread_count(6) == 6
    for text in ("two", "\N{SUPERSCRIPT TWO}", "0", "-1"):
        monkeypatch.setenv("FORESTVM_NUM_THREADS", text)
        with pytest.raises(forestvm.Usage, match="FORESTVM_NUM_THREADS"):
            forestvm.load(breast_cancer)


def test_the_quota_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proc, root = tmp_path / "cgroup", tmp_path / "fs"
    (root / "a" / "b").mkdir(parents=True)
    (root / "cpu" / "c").mkdir(parents=True)
    proc.write_text("0::/a/b\n")
    assert _threads._cgroup_quota(proc, root) is None
    (root / "a" / "b" / "cpu.max").write_text("max 100000\n")
    assert _threads._cgroup_quota(proc, root) is None
    (root / "a" / "cpu.max").write_text("150000 100000\n")
    assert _threads._cgroup_quota(proc, root) == 1.5
    (root / "a" / "b" / "cpu.max").write_text("50000 100000\n")
    assert _threads._cgroup_quota(proc, root) == 0.5
    proc.write_text("4:memory:/x\n3:cpu,cpuacct:/c\n")
    (root / "cpu" / "c" / "cpu.cfs_quota_us").write_text("-1\n")
    (root / "cpu" / "c" / "cpu.cfs_period_us").write_text("100000\n")
    assert _threads._cgroup_quota(proc, root) is None
    (root / "cpu" / "c" / "cpu.cfs_quota_us").write_text("250000\n")
    assert _threads._cgroup_quota(proc, root) == 2.5
    monkeypatch.setattr(_threads, "_cgroup_quota", lambda: 0.5)
    assert _threads.available_cpus() == 1
    monkeypatch.setattr(_threads, "_cgroup_quota", lambda: None)
    assert _threads.available_cpus() == len(os.sched_getaffinity(0))


def forestvms_info() -> list[Any]:
    import threadpoolctl

    return [library for library in threadpoolctl.threadpool_info() if library["user_api"] == "forestvm"]


def test_threadpoolctl_limits_calls_of_the_thread(breast_cancer: Path, rows: Array) -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    forest = forestvm.load(breast_cancer, threads=4)
    many = np.tile(rows, (400, 1))
    wanted = forest.predict(many)
    info = forestvms_info()
    assert [library["version"] for library in info] == [_core.__version__]
    assert info[0]["num_threads"] == _threads.thread_count(None)

    for limits in (1, {"forestvm": 1}):
        with threadpoolctl.threadpool_limits(limits), ThreadPoolExecutor(1) as pool:
            assert forestvms_info()[0]["num_threads"] == _core.thread_limit() == 1
            assert pool.submit(_core.thread_limit).result() == 0
            assert np.array_equal(forest.predict(many), wanted)
        assert _core.thread_limit() == 0
    with threadpoolctl.threadpool_limits(3):
        with threadpoolctl.threadpool_limits(2, user_api="blas"):
            assert _core.thread_limit() == 3
        assert np.array_equal(forest.predict(many), wanted)
    assert _core.thread_limit() == 0


def test_threadpoolctl_is_not_imported_for_forests(breast_cancer: Path) -> None:
    """threadpoolctl learns of forestvm when a forest is loaded, if the program has imported threadpoolctl."""
    pytest.importorskip("threadpoolctl")
    code = f"""
import sys, forestvm
forestvm.load({str(breast_cancer)!r})
assert "threadpoolctl" not in sys.modules
import threadpoolctl
apis = lambda: [library["user_api"] for library in threadpoolctl.threadpool_info()]
assert "forestvm" not in apis()
for _ in range(2):
    forestvm.load({str(breast_cancer)!r})
    assert apis().count("forestvm") == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)

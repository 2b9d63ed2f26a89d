"""The number of threads that a process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

from ._errors import Usage

_MAX_THREADS = 4096


def available_cpus() -> int:
    """Returns the number of CPUs that the scheduler's affinity and the cgroup's quota allow."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota()
    return cpus if quota is None else max(1, min(cpus, math.ceil(quota)))


def _cgroup_quota(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Returns the least quota of the process's cgroup and those above it, in CPUs."""
    quotas = []
    for line in _text(proc).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        folder = root if not controllers else root / "cpu"
        parts = [part for part in path.split("/") if part and part != ".."]
        for depth in range(len(parts) + 1):
            at = folder.joinpath(*parts[:depth])
            quotas.append(
                _quota(_text(at / "cpu.max") or f"{_text(at / 'cpu.cfs_quota_us')} {_text(at / 'cpu.cfs_period_us')}")
            )
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(text: str) -> float | None:
    words = text.split()
    if len(words) != 2 or not all(word.isdecimal() for word in words) or int(words[1]) == 0:
        return None  # "max", -1, or no such file: no limit
    return int(words[0]) / int(words[1])


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _cap() -> int:
    """Returns the number in FORESTVM_NUM_THREADS, otherwise the one in OMP_NUM_THREADS, otherwise the most threads."""
    text = os.environ.get("FORESTVM_NUM_THREADS", "").strip()
    if text:
        if not text.isdecimal() or int(text) == 0:
            raise Usage(f"FORESTVM_NUM_THREADS is {text!r}, not a number of threads", "FORESTVM_NUM_THREADS")
        return min(int(text), _MAX_THREADS)
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # a list: one number for each level
    return min(int(first), _MAX_THREADS) if first.isdecimal() and int(first) > 0 else _MAX_THREADS


def thread_count(threads: int | None) -> int:
    """Returns the number of threads that the option `threads` asks for."""
    if threads is None:
        return min(available_cpus(), _cap())
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise Usage(f"threads is {threads!r}: expected a number from 1, or None", "threads")
    number = threads.__index__()
    if not 1 <= number <= _MAX_THREADS:
        raise Usage(f"threads is {number}: expected a number from 1 to {_MAX_THREADS}, or None", "threads")
    return number

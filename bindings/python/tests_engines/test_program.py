"""The file of a program that the processes of a machine share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import check_one_copy

import forestvm

# Opens a program when a line comes, prints the file that it has mapped, and keeps it until another line comes.
OPEN = """
import sys
from forestvm.engines import _program
program, source = _program.Program(sys.argv[1], 1), sys.argv[2]
print("begun", flush=True)
sys.stdin.readline()
forest = program.open(lambda: _program.mapped_file(source))
print(next(line.split(maxsplit=4)[4].strip() for line in open("/proc/self/maps") if sys.argv[1] in line), flush=True)
sys.stdin.readline()
"""


def test_processes_that_start_together_map_one_file(
    large: forestvm.Forest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, source = tmp_path / "programs", tmp_path / "source.fvm"
    large.save(source)
    monkeypatch.setenv("FORESTVM_PROGRAMS", str(folder))
    command = [sys.executable, "-c", OPEN, large.fingerprint, str(source)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(4)]
    try:
        for process in processes:
            assert process.stdout.readline() == "begun\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        path = folder / f"{large.fingerprint}.fvm"
        mapped = [process.stdout.readline().strip() for process in processes]
        wanted = f"{path.stat().st_ino} {path}"
        assert [" ".join(line.split()) for line in mapped] == [wanted] * 4
        check_one_copy(large, 4)
    finally:
        for process in processes:
            process.communicate("\n", timeout=60)
    assert list(folder.iterdir()) == [path]

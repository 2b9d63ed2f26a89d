"""The file of a program that the processes of a machine share."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from conftest import MODELS, check_one_copy

import forestvm
from forestvm.engines import _arrow, _program

# Opens a program when a line comes, prints the file that it has mapped, and keeps it until another line comes.
OPEN = """
import sys
from forestvm.engines import _program
program, source = _program.Program(sys.argv[1], 1, None), sys.argv[2]
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
    path = folder / _program.program_of(large, "value", 1).file_name
    command = [sys.executable, "-c", OPEN, path.stem, str(source)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(4)]
    try:
        for process in processes:
            assert process.stdout.readline() == "begun\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        mapped = [process.stdout.readline().strip() for process in processes]
        wanted = f"{path.stat().st_ino} {path}"
        assert [" ".join(line.split()) for line in mapped] == [wanted] * 4
        check_one_copy(large, 4)
    finally:
        for process in processes:
            process.communicate("\n", timeout=60)
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_system_without_links_has_programs(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setenv("FORESTVM_PROGRAMS", str(tmp_path))
    forest = forestvm.load(MODELS["float32"])
    program = _program.program_of(forest, "value", 1)
    path = program.file_of(forest)
    assert path.name == hashlib.sha256(forest).hexdigest()[:32] + ".fvm"  # as docs/python.md says
    assert list(tmp_path.iterdir()) == [path] and bytes(program.mapped(path)) == bytes(forest)
    # Another process has put the file in place meanwhile.
    hold, answers = _program.hold, [False]
    monkeypatch.setattr(_program, "hold", lambda path: answers.pop() if answers else hold(path))
    inode = path.stat().st_ino
    assert program.file_of(forest) == path and list(tmp_path.iterdir()) == [path]
    assert (path.stat().st_ino == inode) == links and bytes(program.mapped(path)) == bytes(forest)


@pytest.fixture
def three_mib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder of programs that may have 3 MiB. This process holds the last program alone."""
    monkeypatch.setenv("FORESTVM_PROGRAMS", str(tmp_path / "programs"))
    monkeypatch.setenv("FORESTVM_PROGRAMS_MIB", "3")
    monkeypatch.setattr(_program, "_MOST_HELD", 1)
    monkeypatch.setattr(_program, "_held", {})
    return _program.folder()


def add(letter: str, seconds: int = 0) -> Path:
    """Adds a program of 1 MiB, which was used some seconds ago."""
    path = _program.file_with(letter * 32, lambda: bytes(1 << 20))
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def names(folder: Path) -> str:
    return "".join(sorted(path.name[0] for path in folder.iterdir()))


def test_programs_that_were_not_used_for_the_longest_time_are_removed(three_mib: Path) -> None:
    first, second = add("a", 300), add("b", 200)
    add("c", 100)
    assert names(three_mib) == "abc"
    assert _program.file_with("a" * 32, lambda: pytest.fail("there is a file")) == first
    add("d")
    assert names(three_mib) == "acd"
    assert add("b", 0) == second and names(three_mib) == "abd"
    add("e")
    assert names(three_mib) == "bde"


def test_programs_in_use_are_not_removed(three_mib: Path) -> None:
    mapped = _program.mapped_file(add("a", 500))
    code = "import sys; from forestvm.engines._program import hold; from pathlib import Path\n"
    code += "hold(Path(sys.argv[1])), print(flush=True), sys.stdin.readline()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code, str(add("b", 400))], **pipes) as process:
        assert process.stdout.readline() == "\n"
        os.utime(three_mib / f"{'b' * 32}.fvm", (time.time() - 400,) * 2)
        for letter in "cdef":
            add(letter)
        assert names(three_mib) == "abf"  # the last one is in use, too
        process.communicate("\n", timeout=60)
    add("0")
    assert names(three_mib) == "0af"
    mapped.close()
    for letter in "12":
        add(letter)
    assert names(three_mib) == "012"


def test_a_program_that_is_larger_than_all_may_be_is_kept_while_it_is_used(
    three_mib: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("a", 100)
    monkeypatch.setenv("FORESTVM_PROGRAMS_MIB", "0")
    assert add("b").exists() and names(three_mib) == "b"
    assert add("c").exists() and names(three_mib) == "c"
    monkeypatch.setenv("FORESTVM_PROGRAMS_MIB", "4G")
    with pytest.raises(forestvm.Usage, match="FORESTVM_PROGRAMS_MIB is '4G': expected a whole number"):
        add("d")


def test_other_files_than_programs_are_not_removed(three_mib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESTVM_PROGRAMS_MIB", "0")
    kept = [three_mib / name for name in ("model.fvm", "notes.txt", f"{'a' * 32}.txt", f"{'a' * 32}.abc_1234")]
    killed = three_mib / f"{'b' * 32}.abc_1234"
    for path in [*kept, killed]:
        path.write_bytes(bytes(100))
        os.utime(path, (time.time() - 7200,) * 2)
    os.utime(kept[-1])  # a process may be writing it
    program = add("c")
    assert sorted(three_mib.iterdir()) == sorted([*kept, program])


def test_programs_of_one_model_have_files_of_their_own() -> None:
    options: list[dict[str, Any]] = [{}, {"contract": "fast"}, {"contract": "reproducible"}, {"contributions": True}]
    forests = [forestvm.load(MODELS["float32"], **each) for each in options]
    assert len({forest.fingerprint for forest in forests}) == 1
    assert len({forest.program_fingerprint for forest in forests}) == len(forests)
    for forest in forests:
        program = _program.program_of(forest, "value", 1)
        opened = program.open(lambda image=memoryview(forest): image)
        assert bytes(opened) == bytes(forest) and opened.contract == forest.contract


def test_rounds_of_a_program_are_kept() -> None:
    whole = forestvm.load(MODELS["float32"], keep_leaves=True)
    rows = np.random.default_rng(1).normal(scale=20, size=(50, 30))
    values = set()
    for forest in (whole, whole.of_rounds(0, 10), whole.of_rounds(10, 20)):
        program = _program.program_of(forest, "value", 1)
        assert program.digest == whole.program_fingerprint
        assert program.open(lambda: memoryview(whole)).predict(rows).tobytes() == forest.predict(rows).tobytes()
        values.add(forest.predict(rows).tobytes())
    assert len(values) == 3


def test_a_file_with_another_program_is_refused(tmp_path: Path) -> None:
    program = _program.program_of(forestvm.load(MODELS["float32"]), "value", 1)
    forestvm.load(MODELS["float32"], contract="fast").save(tmp_path / program.file_name)
    with pytest.raises(forestvm.Refused, match="does not hold the program after which it is named"):
        program.mapped(tmp_path / program.file_name)


def test_a_forest_on_a_gpu_is_refused_because_tasks_run_on_the_host() -> None:
    forest = forestvm.load(MODELS["float32"])
    forest._options = {**forest._options, "device": "cuda:1"}
    with pytest.raises(forestvm.Usage, match="runs on the GPU 'cuda:1', and tasks run on the host"):
        _program.program_of(forest, "value", 1)


def test_a_column_that_is_there_already_is_refused() -> None:
    forest = forestvm.load(MODELS["float32"])
    rows = pyarrow.record_batch([[0.5]] * 30, names=list(forest.feature_names))
    with pytest.raises(forestvm.Usage, match="the rows have a column 'mean radius' already: choose another name"):
        _arrow.with_predictions(forest, rows, _program.Call("value"), "mean radius")
    alone = _arrow.with_predictions(forest, rows, _program.Call("value"), "mean radius", [])
    assert alone.schema.names == ["mean radius"]


def test_a_row_that_is_null_as_a_whole_is_refused() -> None:
    forest = forestvm.load(MODELS["float32"])
    row = dict.fromkeys(forest.feature_names, 0.5)
    rows = pyarrow.array([None, row, dict.fromkeys(row), None, row])
    assert len(_arrow.one_column(forest, [rows[1:3]], _program.Call("value"))) == 2
    with pytest.raises(forestvm.Refused, match="row 2 is null as a whole"):
        _arrow.one_column(forest, [rows[1:]], _program.Call("value"))

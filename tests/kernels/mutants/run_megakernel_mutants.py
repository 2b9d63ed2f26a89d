#!/usr/bin/env python3
"""Makes the mistakes of megakernel.txt in the megakernel, one at a time, and lets the tests on the emulator find them.

usage: run_megakernel_mutants.py BUILD [--check] [--only TEXT] [--sample N] [--jobs N]

BUILD is a build tree of Ninja whose test programs are built. For each mistake the kernel of the emulator is compiled from
headers that contain it, and linked into the test programs in place of the right one. A mistake is found if a test fails,
crashes or takes far longer than with the right kernel. Exit code 0 means that each entry is as it says: found, or not
found by any test. --check compiles nothing: it tests that each entry's lines occur once in their file, which is how the
list notices that the kernel has changed. --only takes the entries whose name contains TEXT, --sample N of them, drawn by
the day's date.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
HEADERS = pathlib.Path("kernels/device")
KERNEL = "kernels/emulator/kernel.cpp"

# The test programs that run the megakernel, and their tests that compare its answers with the host's: quick tests first.
JUDGES = [
    ("test_kernels", "Barriers.*:Passes.*:CodedPasses.*:CutPhases.*:GpuPredictor.*:Copies.*:Reductions.*"),
    ("test_conformance_mapped", "MappedPrograms.EveryNamedOne:ScheduleGpu.*:*MappedPairs*"),
    ("test_conformance_mapped", "MappedPrograms.EveryPointOfTheTemplate"),
]
MOST_SECONDS = 120  # of the processor; a test program that takes more, where the right kernel takes a few, counts as hanging


class Entry:
    """A mistake: a file, the lines that it replaces, the lines that stand there instead, and why it survives, if so."""

    def __init__(self, name):
        self.name, self.file, self.before, self.after, self.verdict = name, None, [], [], None

    @property
    def survives(self):
        return self.verdict != "found"


def read_entries(path):
    entries = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or (line.startswith("#") and (not entries or entries[-1].verdict)):
            continue
        if line.startswith("["):
            entries.append(Entry(line.strip("[]")))
            continue
        entry = entries[-1]
        if line.startswith("file: "):
            entry.file = HEADERS / line.removeprefix("file: ")
        elif line.startswith("-"):
            entry.before.append(line[1:].strip())
        elif line.startswith("+"):
            entry.after.append(line[1:])
        elif line == "found" or line.startswith("survives: "):
            entry.verdict = line
        else:
            sys.exit(f"{path}:{number}: not a line of an entry: {line}")
    names = [entry.name for entry in entries]
    for entry in entries:
        if names.count(entry.name) != 1 or not (entry.file and entry.before and entry.verdict):
            sys.exit(f"{path}: the entry [{entry.name}] is repeated or incomplete")
    return entries


def mutated(entry):
    """Returns the text of the entry's file with its mistake; None if the lines do not occur exactly once."""
    lines = (SOURCE / entry.file).read_text().splitlines()
    stripped = [line.strip() for line in lines]
    count = len(entry.before)
    places = [i for i in range(len(lines)) if stripped[i : i + count] == entry.before]
    if len(places) != 1:
        return None
    return "\n".join(lines[: places[0]] + entry.after + lines[places[0] + count :]) + "\n"


def compile_command(build):
    """Returns the build's command that compiles the kernel, without its compiler launcher, input and output."""
    for unit in json.loads((build / "compile_commands.json").read_text()):
        if unit["file"].endswith(KERNEL):
            words = shlex.split(unit["command"])
            while pathlib.Path(words[0]).name in ("ccache", "sccache"):
                words.pop(0)
            at = words.index("-o")
            return words[:at], unit["directory"]
    sys.exit(f"{build}: no command compiles {KERNEL}")


def link_command(build, target):
    """Returns the words of the build's command that links a test program."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "commands", target], check=True, capture_output=True, text=True)
    for line in reversed(listed.stdout.splitlines()):
        for command in line.split("&&"):
            words = shlex.split(command)
            if "-o" in words and pathlib.Path(words[words.index("-o") + 1]).name == target:
                return words
    sys.exit(f"{build}: no command links {target}")


class Bench:
    """Compiles the kernel with a mistake, and runs the test programs with it."""

    def __init__(self, build):
        self.build = build
        self.compile, self.directory = compile_command(build)
        self.links = {target: link_command(build, target) for target, _ in JUDGES}

    def outcome(self, text, file):
        """Returns the first test program and test that fail with the text in place of the file; None if none does."""
        with tempfile.TemporaryDirectory(prefix="megakernel-") as folder:
            folder = pathlib.Path(folder)
            header = folder / file
            header.parent.mkdir(parents=True)
            header.write_text(text)
            kernel = folder / "kernel.o"
            made = subprocess.run(
                self.compile + ["-O0", "-w", "-iquote", folder, "-c", SOURCE / KERNEL, "-o", kernel],
                cwd=self.directory, capture_output=True, text=True)
            if made.returncode != 0:
                sys.exit(f"the kernel with the mistake does not compile:\n{made.stderr}")
            for target, tests in JUDGES:
                program = folder / target
                if not program.exists():
                    self.link(target, kernel, program)
                failed = self.run(program, tests)
                if failed:
                    return f"{target}: {failed}"
        return None

    def link(self, target, kernel, program):
        words = list(self.links[target])
        at = words.index("-o")
        words[at : at + 2] = [str(kernel), "-o", str(program)]
        subprocess.run(words, cwd=self.build, check=True, capture_output=True)

    def run(self, program, tests):
        """Returns the name of the first test that fails, or what ended the program; None if all pass."""
        done = subprocess.run(
            ["sh", "-c", f'ulimit -t {MOST_SECONDS}; exec "$@"', "sh", program, f"--gtest_filter={tests}",
             "--gtest_fail_fast", "--gtest_brief=1"],
            cwd=self.build, env={**os.environ, "FORESTVM_NIGHTLY": "1"}, capture_output=True, text=True, errors="replace")
        if done.returncode == 0:
            return None
        if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
            return "takes too long"
        failed = [line for line in done.stdout.splitlines() if line.startswith("[  FAILED  ]")]
        return failed[0].split("]")[1].split(",")[0].split("(")[0].strip() if failed else f"ends with {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()

    entries = [entry for entry in read_entries(HERE / "megakernel.txt") if arguments.only in entry.name]
    stale = [entry for entry in entries if mutated(entry) is None]
    for entry in stale:
        print(f"{entry.file}: the lines of [{entry.name}] do not occur exactly once")
    if stale or arguments.check:
        print(f"{len(entries) - len(stale)} of {len(entries)} entries fit the kernel")
        return 1 if stale else 0

    if arguments.sample is not None and arguments.sample < len(entries):
        entries = random.Random(datetime.date.today().isoformat()).sample(entries, arguments.sample)
    bench = Bench(arguments.build.resolve())
    right = entries[0].file
    failed = bench.outcome((SOURCE / right).read_text(), right)
    if failed:
        print(f"the right kernel fails: {failed}")
        return 1
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = pool.map(lambda entry: bench.outcome(mutated(entry), entry.file), entries)
        for entry, failed in zip(entries, outcomes):
            as_expected = (failed is None) == entry.survives
            wrong += not as_expected
            said = "" if as_expected else "   WRONG, the list says: " + entry.verdict
            print(f"{entry.name}: {'found by ' + failed if failed else 'not found'}{said}", flush=True)
    found = sum(not entry.survives for entry in entries)
    print(f"{len(entries)} mistakes, of which {found} should be found: {wrong} were not as the list says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Makes the mistakes of a list in the sources, one at a time, and lets tests find them.

usage: run_mutants.py BUILD LIST [--check] [--only TEXT] [--sample N] [--jobs N]

BUILD is a build tree of Ninja whose test programs are built. For each mistake one file of the sources is compiled, from
headers that contain the mistake or with it in the file itself, and linked into the test programs in place of the right
one. A mistake is found if a test fails, crashes or takes far longer than without it. Exit code 0 means that each entry is
as it says: found, or not found by any test. --check compiles nothing: it tests that each entry's lines occur once in
their file, which is how the list notices that the sources have changed. --only takes the entries whose name contains
TEXT, --sample N of them, drawn by the day's date.

LIST begins with lines that hold for all of its entries, and may have comments:

  folder: the folder below which the files of entries lie; without it that of the project
  options: options that are added to the compiler's
  judge: a test program and a filter of its tests, which run all of their cases; quick ones come first
  daily judge: the same, but tests run the cases that they run by day, because all would take too long

An entry is

  [what is wrong]
  file: the file with the mistake
  compile: the file that is compiled, in the tree or in the build tree; it holds for the following entries as well
  -the lines that the mistake replaces, which occur once in the file, whatever their indentation
  +the lines that stand there instead, or none
  found

or, in place of the last line, "survives: why no test can find it".
"""
import argparse
import concurrent.futures
import datetime
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import tempfile

import build_commands

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MOST_SECONDS = 120  # of the processor; a test program that takes more, where the right one takes a few, counts as hanging


class Entry:
    """A mistake: a file, the lines that it replaces, the lines that stand there instead, and why it survives, if so."""

    def __init__(self, name, unit):
        self.name, self.file, self.unit, self.before, self.after, self.verdict = name, None, unit, [], [], None

    @property
    def survives(self):
        return self.verdict != "found"


class Mutants:
    """A list of mistakes, and what holds for all of them."""

    def __init__(self, path):
        self.path, self.folder, self.options, self.judges, self.entries = path, pathlib.Path(), [], [], []
        unit = None
        for number, line in enumerate(path.read_text().splitlines(), 1):
            ended = not self.entries or self.entries[-1].verdict
            key, _, value = line.partition(": ")
            if not line.strip() or (line.startswith("#") and ended):
                continue
            if line.startswith("["):
                self.entries.append(Entry(line.strip("[]"), unit))
            elif key == "compile":
                unit = value
                if self.entries:
                    self.entries[-1].unit = unit
            elif not self.entries and key == "folder":
                self.folder = pathlib.Path(value)
            elif not self.entries and key == "options":
                self.options = value.split()
            elif not self.entries and key in ("judge", "daily judge"):
                self.judges.append((*value.split(maxsplit=1), "1" if key == "judge" else ""))
            elif not self.entries or not self.take(line, key, value):
                sys.exit(f"{path}:{number}: not a line of a list: {line}")
        names = [entry.name for entry in self.entries]
        for entry in self.entries:
            if names.count(entry.name) != 1 or not (entry.file and entry.unit and entry.before and entry.verdict):
                sys.exit(f"{path}: the entry [{entry.name}] is repeated or incomplete")

    def take(self, line, key, value):
        """Takes a line of the last entry. Returns whether it is one."""
        entry = self.entries[-1]
        if key == "file":
            entry.file = self.folder / value
        elif line.startswith("-"):
            entry.before.append(line[1:].strip())
        elif line.startswith("+"):
            entry.after.append(line[1:])
        elif line == "found" or key == "survives":
            entry.verdict = line
        else:
            return False
        return True


def mutated(entry):
    """Returns the text of the entry's file with its mistake; None if the lines do not occur exactly once."""
    lines = (SOURCE / entry.file).read_text().splitlines()
    stripped = [line.strip() for line in lines]
    count = len(entry.before)
    places = [i for i in range(len(lines)) if stripped[i : i + count] == entry.before]
    if len(places) != 1:
        return None
    return "\n".join(lines[: places[0]] + entry.after + lines[places[0] + count :]) + "\n"


def compile_command(build, unit):
    """Returns the build's command that compiles a file, without its compiler launcher, input and output, its directory,
    and the sources that it compiles: the file, or its batch."""
    for known, sources in build_commands.commands(build):
        if SOURCE / unit in sources or build / unit in sources:
            words = shlex.split(known["command"])
            while pathlib.Path(words[0]).name in ("ccache", "sccache"):
                words.pop(0)
            at = words.index("-o")
            return words[:at], known["directory"], sources
    sys.exit(f"{build}: no command compiles {unit}")


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
    """Compiles files with a mistake, and runs the test programs with it."""

    def __init__(self, build, mutants):
        self.build, self.mutants = build, mutants
        self.links = {target: link_command(build, target) for target, _, _ in mutants.judges}

    def outcome(self, text, file, unit):
        """Returns the first test program and test that fail with the text in place of the file; None if none does."""
        compile, directory, sources = compile_command(self.build, unit)
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            folder = pathlib.Path(folder)
            changed = folder / file
            changed.parent.mkdir(parents=True)
            changed.write_text(text)
            batch = folder / "batch.cpp"
            batch.write_text("".join(f'#include "{changed if source == SOURCE / file else source}"\n' for source in sources))
            result = folder / "mutant.o"
            made = subprocess.run(
                [compile[0], "-iquote", folder, "-I", folder / "include", *compile[1:], *self.mutants.options, "-c", batch,
                 "-o", result],
                cwd=directory, capture_output=True, text=True)
            if made.returncode != 0:
                sys.exit(f"{file} with the mistake does not compile:\n{made.stderr}")
            for target, tests, nightly in self.mutants.judges:
                program = folder / target
                if not program.exists():
                    self.link(target, result, program)
                failed = self.run(program, tests, nightly)
                if failed:
                    return f"{target}: {failed}"
        return None

    def link(self, target, result, program):
        words = list(self.links[target])
        at = words.index("-o")
        words[at : at + 2] = [str(result), "-o", str(program)]
        subprocess.run(words, cwd=self.build, check=True, capture_output=True)

    def run(self, program, tests, nightly):
        """Returns the name of the first test that fails, or what ended the program and which tests it ran; None if all
        pass."""
        done = subprocess.run(
            ["sh", "-c", f'ulimit -t {MOST_SECONDS}; exec "$@"', "sh", program, f"--gtest_filter={tests}",
             "--gtest_fail_fast", "--gtest_brief=1"],
            cwd=self.build, env={**os.environ, "FORESTVM_NIGHTLY": nightly}, capture_output=True, text=True, errors="replace")
        if done.returncode == 0:
            return None
        if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
            return f"{tests} takes too long"
        failed = [line for line in done.stdout.splitlines() if line.startswith("[  FAILED  ]")]
        return failed[0].split("]")[1].split(",")[0].split("(")[0].strip() if failed else f"ends with {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("list", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()

    mutants = Mutants(arguments.list)
    entries = [entry for entry in mutants.entries if arguments.only in entry.name]
    stale = [entry for entry in entries if mutated(entry) is None]
    for entry in stale:
        print(f"{entry.file}: the lines of [{entry.name}] do not occur exactly once")
    if stale or arguments.check:
        print(f"{len(entries) - len(stale)} of {len(entries)} entries fit the sources")
        return 1 if stale else 0

    if arguments.sample is not None and arguments.sample < len(entries):
        entries = random.Random(datetime.date.today().isoformat()).sample(entries, arguments.sample)
    bench = Bench(arguments.build.resolve(), mutants)
    right = entries[0]
    failed = bench.outcome((SOURCE / right.file).read_text(), right.file, right.unit)
    if failed:
        print(f"the right {right.file} fails: {failed}")
        return 1
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = pool.map(lambda entry: bench.outcome(mutated(entry), entry.file, entry.unit), entries)
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

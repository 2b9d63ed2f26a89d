"""Runs forestvm: searches schedules, times schedules beside each other, accounts for GPUs. Times are microseconds per
row, and each is the smallest sample of at least two turns."""

import hashlib
import json
import os
import platform
import re
import subprocess

ROUNDS = 3  # the most turns
STEADY = 1.1  # a third turn follows if a schedule's smallest samples of the two turns differ by more
COLUMNS = {"point": 3, "refused": 3, "named": 2, "algorithm": 5}  # least numbers of columns of gpu_costs' lines


class Failed(Exception):
    """A measurement that cannot be made; the text says why."""


def processor():
    """Returns the processor's name and number of cores."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        name = ""
    return f"{name or platform.machine()}, {os.cpu_count()} cores"


class Forestvm:
    """The programs of a build tree. Files that they write go to the folder `scratch`."""

    def __init__(self, build, scratch, seconds):
        self.program, self.costs_program = f"{build}/cli/forestvm", f"{build}/bench/reproduce/bench_gpu_costs"
        self.scratch, self.seconds = scratch, seconds
        for path, target in ((self.program, "forestvm"), (self.costs_program, "bench_gpu_costs")):
            if not os.access(path, os.X_OK):
                raise Failed(f"{path} is absent: cmake --build {build} --target {target}")
        self.refusals = {}  # {(model, schedule, contract): reason, or None where it is legal}

    def identity(self):
        """Returns a number that other builds do not have."""
        with open(self.program, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:16]

    def output(self, *words):
        """Runs a command and returns what it prints."""
        done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise Failed((done.stderr.strip().splitlines() or [f"{words[0]} ended with {done.returncode}"])[-1])
        return done.stdout

    def style(self, model):
        """Returns the style sheet of forestvm's own pages."""
        page = f"{self.scratch}/style.html"
        options = ("--batch", "1", "--budget", "0.2s", "--report", page)
        self.output(self.program, "tune", model, "-o", f"{self.scratch}/style.fvm", *options)
        with open(page, encoding="utf-8") as file:
            return re.search("<style>(.*?)</style>", file.read(), re.DOTALL).group(1)

    def target(self, model):
        """Returns on what the programs for the host run."""
        words = ("bench", model, "--batch", 1, "--seconds", 0.01, "--json")
        return json.loads(self.output(self.program, *words))[0]["runs_on"]

    def devices(self):
        """Returns what forestvm says of the GPUs there are."""
        return self.output(self.program, "devices").strip()

    def search(self, model, rows, batch, strategy, budget, threads=1):
        """Returns the report of forestvm tune."""
        report = f"{self.scratch}/tuned.json"
        words = [self.program, "tune", model, *([rows] if rows else []), "-o", f"{self.scratch}/tuned.fvm"]
        words += ["--batch", batch, "--threads", threads, "--strategy", strategy]
        self.output(*words, "--budget", f"{budget:g}s", "--report", report)
        with open(report, encoding="utf-8") as file:
            return json.load(file)

    def refusal(self, model, schedule, contract="trainer"):
        """Returns why a schedule cannot be compiled for a model; None if it can."""
        key = (model, schedule, contract)
        if key not in self.refusals:
            words = ("compile", model, "-o", f"{self.scratch}/legal.fvm", "--schedule", schedule)
            try:
                self.output(self.program, *words, "--contract", contract)
                self.refusals[key] = None
            except Failed as failed:
                self.refusals[key] = str(failed)
        return self.refusals[key]

    def times(self, model, rows, batch, schedules, threads=1, contract="trainer"):
        """Times schedules, {label: schedule}, in turns in one process. Returns {label: us}, without refused
        ones."""
        legal = {label: text for label, text in schedules.items() if not self.refusal(model, text, contract)}
        return self.times_of_legal(model, rows, batch, legal, threads, contract) if legal else {}

    def times_of_legal(self, model, rows, batch, schedules, threads=1, contract="trainer", backend=""):
        """Does the same for schedules that are not refused, on a GPU if `backend` names one."""
        words = [self.program, "bench", model, *([rows] if rows else []), "--batch", batch]
        words += ["--backend", backend] if backend else ["--threads", threads]
        words += ["--contract", contract, "--seconds", self.seconds, "--json"]
        for text in schedules.values():
            words += ["--schedule", text]
        turns = []
        while len(turns) < 2 or (len(turns) < ROUNDS and not steady(turns)):
            turns.append([line["us_per_row_min"] for line in json.loads(self.output(*words))])
        return dict(zip(schedules, map(min, zip(*turns))))

    def costs(self, model, batches, devices, every):
        """Returns the accounting of the GPU template: points, named schedules and algorithm 1's choices."""
        cases = [(batch, device) for batch in batches for device in devices]
        words = [self.costs_program, model, ",".join(map(str, batches)), ",".join(devices), every]
        return costs_of(self.output(*words), cases)

    def gpu_space(self, model):
        """Returns the points of the GPU template that can be compiled: {number: (name, schedule)}."""
        lines = self.output(self.program, "tune", model, "--list-space", "gpu", "--contract", "fast").splitlines()
        columns = [line.split("\t") for line in lines if not line.startswith("#")]
        return {number: (name, text) for number, verdict, name, text in columns if verdict == "legal"}


def backend_of(devices):
    """Returns the backend of the first GPU in what `forestvm devices` says; "" if there is none."""
    found = re.search(r"^(CUDA|HIP) device \d", devices, re.MULTILINE)
    return found.group(1).lower() if found else ""


def steady(turns):
    return all(max(samples) <= STEADY * min(samples) for samples in zip(*turns))


def costs_of(text, cases):
    """Reads what gpu_costs prints. A cost is None where there is none."""
    found = dict(cases=cases, points={}, first={}, refused=0, named={}, algorithm=[])

    def numbers(columns):
        return [None if column == "-" else float(column) for column in columns]

    for line in text.splitlines():
        kind, *columns = line.split("\t")
        if len(columns) + 1 < COLUMNS.get(kind, 0) or kind not in COLUMNS:
            raise Failed(f"gpu_costs printed the line {line!r}")
        if kind == "point":
            found["points"][columns[0]] = numbers(columns[2:])
            if columns[1] != "-":
                found["first"][columns[0]] = list(map(int, columns[1].split(",")))
        elif kind == "refused":
            found["refused"] += 1
        elif kind == "named":
            found["named"][columns[0]] = numbers(columns[1:])
        else:
            rows, device, number, tried = columns
            found["algorithm"].append(dict(case=cases.index((int(rows), device)), point=number, tried=int(tried)))
    return found

"""Runs steps, each of which measures something and has a name. A step's result is a file in a folder, so that a later
run goes on where an earlier one ended. Shows progress and the time left."""

import json
import os
import sys
import time
from dataclasses import dataclass
from typing import Any, Callable

from measuring import Failed


@dataclass(frozen=True)
class Step:
    name: str  # "kind/model/rows": the file's name, with dashes in place of slashes
    seconds: float  # roughly what it takes; only the ratios of steps matter
    measure: Callable[[dict], Any]  # results of earlier steps by name -> a result that JSON can hold


STOPPED = "the run was stopped"


def clock(seconds):
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class Store:
    """The folder of results. The conditions under which they were measured are among its files."""

    def __init__(self, folder, conditions):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        path = f"{folder}/conditions.json"
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                earlier = json.load(file)
            for name, value in conditions.items():
                if name != "date" and earlier.get(name) != value:
                    raise Failed(
                        f"{folder} has results of another run: {name} was {earlier.get(name)!r} and is {value!r}. "
                        "Name another folder with --out, or delete that one"
                    )
            conditions = earlier
        else:
            self.write("conditions", conditions)
        self.conditions = conditions

    def path(self, name):
        return f"{self.folder}/{name.replace('/', '-')}.json"

    def read(self, name):
        """Returns a result, or None. Raises Failed if its file is damaged."""
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise Failed(f"{self.path(name)}: {error}. Delete it to measure that step again") from None

    def write(self, name, result):
        """Writes a result; a run that is stopped meanwhile leaves no half of it."""
        with open(f"{self.path(name)}.part", "w", encoding="utf-8") as file:
            json.dump(result, file)
        os.replace(f"{self.path(name)}.part", self.path(name))


class Progress:
    """Prints a line for each step. The time left is guessed from what the steps before took."""

    def __init__(self, steps):
        self.count, self.done = len(steps), 0
        self.guessed_left = sum(step.seconds for step in steps)
        self.guessed, self.taken = 0.0, 0.0

    def begins(self, step):
        known = self.guessed > 0  # the first step shows how fast this machine is
        left = f", about {clock(self.taken / self.guessed * self.guessed_left)} left" if known else ""
        print(f"[{self.done + 1}/{self.count}] {step.name}{left}", file=sys.stderr, flush=True)

    def ends(self, step, seconds):
        self.done += 1
        self.guessed_left -= step.seconds
        self.guessed += step.seconds
        self.taken += seconds


def run(steps, store, limit):
    """Runs the steps that have no result yet, until `limit` seconds are over. Returns the results by the steps' names,
    and what was not measured: {name: reason}. Ctrl-C ends the run; what has been measured stays."""
    results = {step.name: store.read(step.name) for step in steps}
    open_steps = [step for step in steps if results[step.name] is None]
    if len(open_steps) < len(steps):
        print(
            f"{len(steps) - len(open_steps)} of {len(steps)} steps have results in {store.folder}", file=sys.stderr
        )
    progress, missing, begin = Progress(open_steps), {}, time.monotonic()
    for step in open_steps:
        if time.monotonic() - begin > limit:
            missing[step.name] = "the time was over"
            continue
        progress.begins(step)
        started = time.monotonic()
        try:
            store.write(step.name, step.measure(results))
            results[step.name] = store.read(step.name)
        except Failed as failed:
            missing[step.name] = str(failed)
            print(f"{step.name}: {failed}", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print("stopped; the same command goes on from here", file=sys.stderr)
            missing.update({left.name: STOPPED for left in open_steps if results[left.name] is None})
            break
        progress.ends(step, time.monotonic() - started)
    return {name: result for name, result in results.items() if result is not None}, missing

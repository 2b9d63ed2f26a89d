#!/usr/bin/env python3
"""Compares forestvm with every other engine that explains forests:

peers.py [options] FORESTVM LIBRARY ZOO [MODEL ...]

FORESTVM is the forestvm program, LIBRARY libforestvm_runtime.so, ZOO a folder of models as docs/testing.md describes.
Each engine runs in its own process and in an environment that `bench/peers/install v-daal v-explain v-fasttreeshap`
makes in $PEERS_HOME; engines whose environment is absent are named on standard error, and at the end. All compute exact
contributions, interactions or approximate contributions of the same rows with one thread, in turns; an engine gets as
many of the rows as it explains in about half a second, Woodelf always all. Prints Markdown tables: the smallest
processor times per row in microseconds, in brackets how many times as long as forestvm an engine takes, and geometric
means, in which engines take no part whose answers are wrong; and the largest differences from forestvm's answers,
relative to the largest sum of a row's contributions. Lists versions, and what engines refuse. Needs numpy, and lightgbm
to train a model unless some are named.
"""
import argparse
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy

from models import XGBOOST, background_of, models_of, trained_lightgbm

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(BENCH), str(BENCH / "peers")]

from engines import HOME, Worker  # noqa: E402
from library import Forest, Library  # noqa: E402

ENVIRONMENTS = {  # those of bench/peers/install
    "xgboost_newest": "v-explain",
    "xgboost": "v-daal",
    "lightgbm": "v-explain",
    "catboost": "v-explain",
    "onedal": "v-daal",
    "fasttreeshap": "v-fasttreeshap",
    "shap": "v-explain",
    "shapiq": "v-explain",
    "woodelf": "v-explain",
}
SECONDS = 0.5  # a peer gets as many rows as it explains in about this time
LONGEST = 600  # seconds that an answer may take
LONG, LONG_TURNS = 10, 1  # calls of more seconds are timed so many times at most
ARRAY_BYTES = 512_000_000  # the most that forestvm's answers take
COMPARED = 256  # rows whose answers are compared
WRONG = 1e-3  # engines whose answers differ by more take no part in the means
DEFAULT = ("airline", "higgs", "abalone", "covtype", "epsilon", "airline-ohe", "cat_oblivious_logloss")


class Peer:
    """An engine with one model."""

    def __init__(self, name, worker, given):
        self.name, self.worker = name, worker
        said = worker.ask("load", LONGEST, **given)
        self.trouble = said.get("skipped") or said.get("error")
        self.version, self.whole = said.get("version"), said.get("whole")
        self.least, self.turns = float("inf"), 0

    def ask(self, command, **arguments):
        said = {} if self.trouble else self.worker.ask(command, LONGEST, **arguments)
        self.trouble = self.trouble or said.get("skipped") or said.get("error")
        return said

    def choose(self, rows, kind):
        """Chooses how many rows are timed."""
        if self.whole:
            self.count = rows
            return
        self.count = min(rows, 1 if kind == "interactions" else 4)
        taken = self.ask("time", count=self.count).get("seconds", 1)
        self.count = min(rows, max(self.count, int(SECONDS / taken * self.count)))

    def time(self):
        if self.turns >= LONG_TURNS and self.least * self.count > LONG * 1e6:
            return
        said = self.ask("time", count=self.count)
        self.turns += 1
        if not self.trouble:
            self.least = min(self.least, said["seconds"] / self.count * 1e6)

    def answers(self, folder):
        file = folder / f"{self.name}.npy"
        self.ask("answers", count=min(self.count, COMPARED), file=str(file))
        return None if self.trouble else numpy.load(file)


def started(name):
    """Starts an engine's process."""
    python = sys.executable if name == "forestvm" else f"{HOME}/{ENVIRONMENTS[name]}/bin/python"
    return Worker(name, 1, python, f"{BENCH}/kinds/explainers.py")


def plain(model, folder):
    """Returns the model's file, not compressed."""
    if model.suffix != ".gz":
        return model
    file = folder / model.stem
    file.write_bytes(gzip.decompress(model.read_bytes()))
    return file


def compiled(asked, model, background, folder):
    program = folder / "program.fvm"
    command = [asked.forestvm, "compile", str(model), "-o", str(program), "--with", asked.kind]
    subprocess.run(command + (["--background", background] if background else []), check=True)
    return str(program)


def difference(ours, theirs, kind):
    """Returns the largest difference, relative to the largest sum of a row's contributions."""
    parts = ours.sum(axis=-1) if kind == "interactions" else ours
    return numpy.abs(ours[: len(theirs)] - theirs).max() / numpy.abs(parts).sum(axis=-1).max()


def measure(asked, workers, model, rows, folder):
    """Returns the peers by name, with their times, and differences or troubles."""
    for old in folder.iterdir():
        old.unlink()
    background = None
    if asked.background:
        background = str(folder / "background.npy")
        numpy.save(background, background_of(rows, asked.background))
    file = plain(model, folder)
    program = compiled(asked, file, background, folder)
    forest = Forest(Library(asked.library), program)
    outputs = forest.shape()[1]
    rows = rows[: max(1, ARRAY_BYTES // (4 * forest.width(asked.kind)))]
    forest.close()
    numpy.save(folder / "rows.npy", rows)
    given = {"model": str(file), "kind": asked.kind, "background": background, "outputs": outputs}
    given |= {"rows": str(folder / "rows.npy"), "program": program, "library": asked.library, "target": asked.target}
    peers = {name: Peer(name, worker, given) for name, worker in workers.items()}
    for peer in peers.values():
        peer.choose(len(rows), asked.kind)
    for _ in range(asked.turns):
        for peer in peers.values():
            peer.time()
    ours = peers["forestvm"].answers(folder)
    for peer in peers.values():
        theirs = peer.answers(folder)
        if theirs is not None and theirs.shape != (len(theirs), *ours.shape[1:]):
            peer.trouble = f"answers of shape {theirs.shape}"
        elif theirs is not None:
            peer.difference = difference(ours, theirs, asked.kind)
    return peers


def table(titles, lines):
    print("| model |", " | ".join(titles), "|\n|" + "---|" * (len(titles) + 1))
    for name, cells in lines.items():
        print(f"| {name} |", " | ".join(cells), "|")
    print()


def report(found, names):
    """Prints the tables of {model: {engine: Peer}}."""
    times, differences, ratios = {}, {}, {name: [] for name in names}
    for model, peers in found.items():
        mine = peers["forestvm"].least
        times[model], differences[model] = [f"{mine:.3g}"], []
        for name in names[1:]:
            peer = peers[name]
            if peer.trouble:
                times[model].append("")
                differences[model].append("")
                continue
            ratio = peer.least / mine
            times[model].append(f"{peer.least:.4g} ({ratio:.3g})")
            if peer.difference > WRONG:
                times[model][-1] += ", wrong"
            else:
                ratios[name].append(ratio)
            differences[model].append(f"{peer.difference:.1e}")
    means = {name: numpy.exp(numpy.mean(numpy.log(some))) for name, some in ratios.items() if some}
    times["geometric mean of the ratios"] = ["", *(f"{means[name]:.3g}" if name in means else "" for name in names[1:])]
    table(names, times)
    table(names[1:], differences)
    for name in names:
        versions = {peers[name].version for peers in found.values()} - {None}
        print(f"- {name}: {', '.join(versions) or 'took no model'}")
        troubles = {}
        for model, peers in found.items():
            if peers[name].trouble:
                troubles.setdefault(peers[name].trouble, []).append(model)
        for trouble, models in troubles.items():
            print(f"  - {trouble}: {', '.join(models)}")


def main(asked):
    absent = [name for name in ENVIRONMENTS if not os.path.exists(f"{HOME}/{ENVIRONMENTS[name]}/installed")]
    for name in absent:
        print(f"ABSENT: {name} ({HOME}/{ENVIRONMENTS[name]}); bench/peers/install makes it", file=sys.stderr)
    names = ["forestvm"]
    for name in asked.engines.split(",") if asked.engines else ENVIRONMENTS:
        if name not in ENVIRONMENTS:
            sys.exit(f"--engines {name}: expected some of {', '.join(ENVIRONMENTS)}")
        if name not in absent:
            names.append(name)
    workers, found = {name: started(name) for name in names}, {}
    with tempfile.TemporaryDirectory() as models, tempfile.TemporaryDirectory() as folder:
        chosen = list(models_of(asked.zoo, tuple(asked.models) or DEFAULT, ("model.cbm", "model.txt", *XGBOOST)))
        if not asked.models:
            chosen.append(trained_lightgbm(pathlib.Path(models)))
        for name, model, rows in chosen:
            for engine, worker in workers.items():
                if worker.process.poll() is not None:  # the last model was too much for it
                    workers[engine] = started(engine)
            rows = numpy.resize(rows, (asked.rows, rows.shape[1]))
            found[name] = measure(asked, workers, model, rows, pathlib.Path(folder))
            print(name, {peer.name: float(f"{peer.least:.4g}") for peer in found[name].values()}, file=sys.stderr)
    for worker in workers.values():
        worker.stop()
    report(found, names)
    for name in absent:
        print(f"- {name}: absent")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--interactions", dest="kind", action="store_const", const="interactions", default="contributions")
    kinds.add_argument("--approximate", dest="kind", action="store_const", const="approx-contributions")
    parser.add_argument("--background", type=int, metavar="ROWS", help="contributions against a background of these rows")
    parser.add_argument("--rows", type=int, default=4096, help="rows a call (default %(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="the least of so many times counts (default %(default)s)")
    parser.add_argument("--target", default="auto", help="forestvm's CPU target")
    parser.add_argument("--engines", help=f"separated by commas; default: {','.join(ENVIRONMENTS)}")
    for name in ("forestvm", "library", "zoo"):
        parser.add_argument(name)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    main(parser.parse_args())

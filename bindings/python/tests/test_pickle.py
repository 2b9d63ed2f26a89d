"""Pickles and copies of forests and of encoded rows."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forestvm


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol(breast_cancer: Path, rows: np.ndarray[Any, Any], protocol: int) -> None:
    forest = forestvm.load(breast_cancer, threads=1)
    again = pickle.loads(pickle.dumps(forest, protocol))
    assert type(again) is forestvm.Forest
    assert np.array_equal(again.predict(rows), forest.predict(rows))
    assert again.feature_names == forest.feature_names
    assert again.to_bytes() == forest.to_bytes()
    encoded = pickle.loads(pickle.dumps(forest.encode(rows), protocol))
    assert np.array_equal(again.predict(encoded), forest.predict(rows))


def test_the_image_may_stay_out_of_the_pickle(breast_cancer: Path, rows: np.ndarray[Any, Any]) -> None:
    forest = forestvm.load(breast_cancer)
    buffers: list[pickle.PickleBuffer] = []
    small = pickle.dumps(forest, 5, buffer_callback=buffers.append)
    assert len(small) < 1000
    assert len(buffers) == 1
    assert np.shares_memory(np.frombuffer(buffers[0].raw(), np.uint8), np.frombuffer(memoryview(forest), np.uint8))
    again = pickle.loads(small, buffers=[bytes(buffers[0].raw())])
    assert np.array_equal(again.predict(rows), forest.predict(rows))


def test_a_damaged_pickle_is_refused(breast_cancer: Path) -> None:
    buffers: list[pickle.PickleBuffer] = []
    small = pickle.dumps(forestvm.load(breast_cancer), 5, buffer_callback=buffers.append)
    image = bytearray(buffers[0].raw())
    image[len(image) * 3 // 4] ^= 0x40
    with pytest.raises(forestvm.Refused):
        pickle.loads(small, buffers=[image])


def test_threads_are_obeyed_after_unpickling(breast_cancer: Path, tmp_path: Path) -> None:
    for threads, wanted in ((1, ""), (2, ", 2 threads"), (None, ", 3 threads")):
        forest = forestvm.load(breast_cancer, threads=threads)
        file = tmp_path / "forest.pickle"
        file.write_bytes(pickle.dumps(forest))
        program = (
            "import pickle, sys, forestvm._threads as threads\n"
            "threads.available_cpus = lambda: 3\n"
            "print(pickle.load(open(sys.argv[1], 'rb')).description)"
        )
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        done = subprocess.run(
            [sys.executable, "-c", program, str(file)], env=environment, capture_output=True, text=True, check=True
        )
        assert wanted in done.stdout
        assert (", 1 thread" in done.stdout or "threads" not in done.stdout) == (threads == 1)


def test_copies_are_the_forest_itself(breast_cancer: Path) -> None:
    forest = forestvm.load(breast_cancer)
    assert copy.copy(forest) is forest
    assert copy.deepcopy([forest])[0] is forest


@pytest.mark.parametrize("package", ["joblib", "cloudpickle"])
def test_other_picklers(breast_cancer: Path, rows: np.ndarray[Any, Any], tmp_path: Path, package: str) -> None:
    pickler = pytest.importorskip(package)
    forest = forestvm.load(breast_cancer)
    if package == "joblib":
        pickler.dump(forest, tmp_path / "forest.joblib")
        again = pickler.load(tmp_path / "forest.joblib")
    else:
        again = pickler.loads(pickler.dumps(forest))
    assert np.array_equal(again.predict(rows), forest.predict(rows))

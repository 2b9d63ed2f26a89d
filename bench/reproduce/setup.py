"""What a run measures: models, numbers of rows, GPUs, and how long it searches. There is a full run and a quick one,
which tries everything on small models and proves nothing."""

import os
import sys
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.dirname(HERE), f"{os.path.dirname(HERE)}/gpu"]

import synthetic  # noqa: E402
import zoo  # noqa: E402

from measuring import Failed, Forestvm  # noqa: E402

# The models of SilvanForge's evaluation that the zoo has; its eighth, year, is absent. letters has 26,000 trees.
PAPER_MODELS = ("covtype", "abalone", "airline", "airline-ohe", "epsilon", "higgs", "letters")
TOO_LARGE_TO_SEARCH = ("letters",)  # each of its schedules takes a second to compile
DRAWN_ROWS = 2048


@dataclass(frozen=True)
class Forest:
    name: str
    model: str
    rows: str  # "": forestvm draws rows between the model's thresholds


@dataclass(frozen=True)
class Setup:
    """A run. Rows are numbers of rows per call; a random forest is (trees, features, depth)."""

    forestvm: Forestvm
    folder: str  # of the random forests
    forests: tuple  # real ones, or random ones in their place
    random: tuple
    batches: tuple  # calls among which schedules are exchanged
    models_batch: int  # calls for which schedules are exchanged among models
    space_batches: tuple  # calls for which the space is searched
    space_seconds: float
    search_seconds: float
    tree_batches: tuple  # calls whose trees run in parallel
    tree_threads: int
    random_batches: tuple
    gpu_batches: tuple
    gpu_devices: tuple
    gpu_every: int  # every n-th point of the GPU template is accounted for
    gpu: str = ""  # the backend of the GPU that is measured; "": none
    gpu_points: int = 400  # the points of the template that are measured on a GPU, beside algorithm 1's

    def searchable(self):
        """Returns the forests whose schedules compile so fast that many can be tried."""
        return [forest for forest in self.forests if forest.name not in TOO_LARGE_TO_SEARCH]

    def drawn(self, trees, features, depth):
        """Returns a random forest, which is made if it is absent. As in the paper, its leaves begin at depth 2."""
        name = f"t{trees}-f{features}-d{depth}"
        folder = f"{self.folder}/{name}"
        synthetic.write(folder, features, depth, trees, rows=DRAWN_ROWS, complete_to=2, keeps_splitting=0.9)
        return Forest(name, f"{folder}/model.json", f"{folder}/rows.npy")


def zoo_forests(folder):
    """Returns the paper's models that a zoo has."""
    found = []
    for name in PAPER_MODELS:
        if os.path.isdir(f"{folder}/{name}"):
            try:
                found.append(Forest(name, zoo.model_of(f"{folder}/{name}"), f"{folder}/{name}/rows.npy"))
            except ValueError as error:
                raise Failed(str(error)) from None
    return tuple(found)


def full(forestvm, folder, zoo_folder):
    random = tuple(
        (trees, features, 6 + i % 3)
        for i, (trees, features) in enumerate((t, f) for t in (100, 300, 1000) for f in (8, 64, 256, 1024))
    )
    return Setup(
        forestvm=forestvm,
        folder=folder,
        forests=zoo_forests(zoo_folder),
        random=random,
        batches=(1, 8, 64, 512, 4096),
        models_batch=4096,
        space_batches=(1, 512),
        space_seconds=45,
        search_seconds=90,
        tree_batches=(1, 8, 16, 32, 64, 128, 256),
        tree_threads=os.cpu_count() or 1,
        random_batches=(512, 4096),
        gpu_batches=(512, 4096, 16384),
        gpu_devices=("rtx4090", "t4", "mi250x"),
        gpu_every=1,
    )


def quick(forestvm, folder):
    data = f"{zoo.ROOT}/tests/data"
    forests = tuple(
        Forest(name, f"{data}/{name}/model.json", f"{data}/{name}/rows.npy")
        for name in ("diabetes", "breast_cancer")
    )
    return Setup(
        forestvm=forestvm,
        folder=folder,
        forests=forests,
        random=((20, 8, 6), (20, 32, 6)),
        batches=(1, 64),
        models_batch=64,
        space_batches=(64,),
        space_seconds=1,
        search_seconds=1,
        tree_batches=(1, 32),
        tree_threads=2,
        random_batches=(64,),
        gpu_batches=(512,),
        gpu_devices=("rtx4090", "t4", "mi250x"),
        gpu_every=50,
        gpu_points=10,
    )

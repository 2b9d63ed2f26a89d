"""The models, batches and schedules of each case. Nothing here needs a GPU."""

import os

from schedules import ABLATIONS, CANDIDATES

GPU_ONLY = {"gpu": "gpu"}
BATCHES = [1, 16, 128, 512, 4096, 16384, 1 << 20]

TITLES = dict(
    b0="ceilings of the GPU",
    b1="the GPU's answers are the emulator's, bit for bit",
    b2="what the interpreter costs, against a kernel without one",
    b3="nvForest beside forestvm, on the same rows on the GPU",
    b4="what each choice of a schedule brings",
    b5="searching a schedule: algorithm 1's 39 points, and all 5184",
    b6="total time with copies over the bus",
)

TRAINED = ["higgs", "airline", "year", "bosch", "epsilon"]  # models of the zoo; absent ones are left out
# name: features, depth, trees, classes
CLASSES = {"7-class": (54, 8, 700, 7), "26-class": (16, 6, 2600, 26)}
GRID = {
    f"f{features}-d{depth}-t{trees}": (features, depth, trees, 1)
    for features in (8, 32, 128, 512)
    for depth in (2, 4, 8, 16)
    for trees in (16, 128, 1024)
}
NOT_DRAWN = {name for name, (_, depth, trees, _) in GRID.items() if depth == 16 and trees == 1024}  # 1.5 million nodes
SYNTHETIC = {**CLASSES, **{name: size for name, size in GRID.items() if name not in NOT_DRAWN}}


def plan(case, quick=False):
    """Returns models by name, batches, and programs (label: schedule) to compile for each model."""
    few = dict(batches=[1, 4096], models=["higgs"]) if quick else {}
    plans = dict(
        b2=dict(models=["higgs", "f32-d8-t128"], batches=[1, 4096, 100_000, 1 << 20], programs=GPU_ONLY),
        b3=dict(models=[*TRAINED, *SYNTHETIC], batches=BATCHES, programs=CANDIDATES),
        b4=dict(models=["higgs", "airline", "f32-d8-t1024"], batches=[4096, 1 << 20], programs=ABLATIONS),
        b5=dict(models=["higgs", "airline"], batches=[1, 512, 4096, 16384], programs={}),
        b6=dict(models=["higgs", "epsilon"], batches=[4096, 1 << 20], programs=GPU_ONLY),
    )
    return dict(plans[case], **few)


def source_of(folder):
    """Returns the model's file in a folder of the zoo, or None."""
    names = ["model.json", "model.ubj", "model.ubj.gz", "model.txt"]
    return next((f"{folder}/{name}" for name in names if os.path.exists(f"{folder}/{name}")), None)


# B1 runs each of these schedules with each of the models in tests/data, and these outputs.
CHECKED_SCHEDULES = ["gpu", "paper-fig-1c", "tahoe-direct", "tahoe-shared-data", "tahoe-shared-forest"]
CHECKED_SCHEDULES += ["tahoe-shared-partial-forest", "rapids-fil"]
CHECKED_MODELS = ["breast_cancer", "diabetes", "digits"]
CHECKED_OUTPUTS = ["raw", "value", "leaf"]
CHECKED_KINDS = ["trees", "staged", "contributions"]  # a kernel of their own writes them: with `gpu` alone


def checks(data):
    """Returns B1's (model file, rows file, schedule, output): named schedules and variants of rows_schedule."""
    schedules = [*CHECKED_SCHEDULES, *(text for text in ABLATIONS.values() if "tile(batch, b0, b, 256)" in text)]
    return [
        (
            f"{data}/{model}/{os.path.basename(source_of(f'{data}/{model}'))}",
            f"{data}/{model}/rows.csv",
            schedule,
            output,
        )
        for model in CHECKED_MODELS
        for schedule in schedules
        for output in [*CHECKED_OUTPUTS, *(CHECKED_KINDS if schedule == "gpu" else [])]
    ]

"""Trains LightGBM models on numbers that float32 cannot tell apart, and compares forestvm's predictions of float64 rows
with LightGBM's own: float64_rows.py FORESTVM [ROW_COUNT]

Rows lie on thresholds, one float64 and one float32 number beside them, and between them. Every raw score must have
LightGBM's bits, and every leaf number must be the same.
"""
import pathlib
import subprocess
import sys
import tempfile

import lightgbm
import numpy

TRAINING_ROWS = 20_000
CSV_ROWS = 5_000
CASES = {
    "default": {},
    "zero_as_missing": {"zero_as_missing": True},
    "no missing values": {"use_missing": False},
    "127 leaves": {"num_leaves": 127},
}
SCHEDULES = ("auto", "default")


def training_data(random):
    """Returns features and targets: Unix times, account numbers, prices, tiny numbers and normal ones."""
    count = TRAINING_ROWS
    times = 1.73e9 + random.uniform(0, 3e5, count).round(3)
    large = random.integers(10**15, 10**15 + 5_000, count).astype(float)
    numbers = random.integers(10**9, 10**9 + 3_000, count).astype(float)
    prices = random.lognormal(3, 1, count).round(2)
    tiny = numpy.where(random.random(count) < 0.3, 0, random.normal(size=count) * 3e-35)
    normal = random.normal(size=(count, 20))
    target = numpy.sin(times / 2e4) + large % 1_000 / 500 + numbers % 700 / 300 + numpy.log(prices)
    target += normal[:, 0] * normal[:, 1] + random.normal(size=count) * 0.1
    features = numpy.column_stack([times, large, numbers, prices, tiny, normal])
    features[random.random(features.shape) < 0.03] = numpy.nan
    return features, target


def thresholds_of(booster, width):
    """Returns the finite thresholds of each feature; 0 for a feature that no split tests."""
    found = [set() for _ in range(width)]
    for tree in booster.dump_model()["tree_info"]:
        nodes = [tree["tree_structure"]]
        while nodes:
            node = nodes.pop()
            if "split_feature" in node:
                found[node["split_feature"]].add(float(node["threshold"]))
                nodes += [node["left_child"], node["right_child"]]
    return [numpy.array(sorted(t for t in each if numpy.isfinite(t)) or [0.0]) for each in found]


def rows_beside(thresholds, count, random):
    """Draws rows on the thresholds, beside them and between them, and some NaN, zeros and infinities."""
    single = numpy.float32
    rows = numpy.empty((count, len(thresholds)))
    for feature, values in enumerate(thresholds):
        here, other = random.choice(values, count), random.choice(values, count)
        kind = random.integers(0, 8, count)
        with numpy.errstate(over="ignore"):
            near = here.astype(single)
            drawn = numpy.select(
                [kind == k for k in range(6)],
                [
                    here,
                    numpy.nextafter(here, numpy.inf),
                    numpy.nextafter(here, -numpy.inf),
                    near.astype(float),
                    numpy.nextafter(near, single(numpy.inf)).astype(float),
                    numpy.nextafter(near, single(-numpy.inf)).astype(float),
                ],
                here + (other - here) * random.random(count),
            )
        dice = random.random(count)
        for low, special in ((0.0, numpy.nan), (0.01, 0.0), (0.02, numpy.inf), (0.03, 1e-35)):
            drawn[(dice >= low) & (dice < low + 0.01)] = special
        rows[:, feature] = drawn
    return rows


def predicted(forestvm, folder, model, rows, *options):
    """Returns what forestvm predicts."""
    out = folder / "out.npy"
    subprocess.run([forestvm, "run", model, rows, "-o", out, *options], check=True)
    return numpy.load(out)


def compare(forestvm, folder, name, parameters, row_count):
    """Trains a model and compares all predictions. Returns the number of differences."""
    random = numpy.random.default_rng(1)
    features, target = training_data(random)
    parameters = {"objective": "regression", "num_leaves": 63, "verbosity": -1, "num_threads": 2, **parameters}
    booster = lightgbm.train(parameters, lightgbm.Dataset(features, target, params=parameters), 300)
    model, array, csv = folder / "model.txt", folder / "rows.npy", folder / "rows.csv"
    booster.save_model(model)
    rows = rows_beside(thresholds_of(booster, features.shape[1]), row_count, random)
    numpy.save(array, rows)
    numpy.savetxt(csv, rows[:CSV_ROWS], delimiter=",", fmt="%.17g")
    raw = booster.predict(rows, raw_score=True)
    leaves = booster.predict(rows, pred_leaf=True)
    different = 0
    for schedule in SCHEDULES:
        options = ("--schedule", schedule, "--output")
        ours = predicted(forestvm, folder, model, array, *options, "raw").ravel()
        from_csv = predicted(forestvm, folder, model, csv, *options, "raw", "--header", "no").ravel()
        our_leaves = predicted(forestvm, folder, model, array, *options, "leaf")
        counts = [
            (ours.view(numpy.int64) != raw.view(numpy.int64)).sum(),
            (from_csv.view(numpy.int64) != raw[:CSV_ROWS].view(numpy.int64)).sum(),
            (our_leaves != leaves).sum(),
        ]
        different += sum(counts)
        print(
            f"LightGBM {lightgbm.__version__}, {name}, schedule {schedule}: of {row_count} rows {counts[0]} raw scores "
            f"differ, {counts[1]} from CSV, {counts[2]} leaf numbers",
            flush=True,
        )
    return different


def main():
    """Compares all cases; the exit code is 1 if a prediction differs."""
    forestvm, row_count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        different = sum(compare(forestvm, pathlib.Path(folder), name, parameters, row_count)
                        for name, parameters in CASES.items())
    sys.exit(1 if different else 0)


main()

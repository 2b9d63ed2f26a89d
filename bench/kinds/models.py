"""Models of the zoo (docs/testing.md), and XGBoost's Booster of one."""
import gzip
import pathlib

import numpy
import xgboost

XGBOOST = ("model.json", "model.ubj", "model.ubj.gz")


def models_of(zoo, names, files):
    """Returns (name, model file, rows) of the models in the zoo that have one of the files: those with the given names,
    all of the benchmarks if there are none."""
    folders = [folder for part in ("bench", "formats") for folder in sorted((pathlib.Path(zoo) / part).iterdir())]
    for folder in folders:
        if folder.name not in names if names else folder.parent.name != "bench":
            continue
        for file in files:
            if (folder / file).exists():
                rows = numpy.load(folder / "rows.npy").astype(numpy.float32)
                rows[numpy.isinf(rows)] = numpy.nan  # XGBoost refuses infinities
                yield folder.name, folder / file, rows
                break


def booster_of(model):
    """Returns the Booster in a file of XGBoost. It predicts with one thread, and rows need no names."""
    data = model.read_bytes()
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(bytearray(gzip.decompress(data) if model.suffix == ".gz" else data))
    booster.feature_names = None
    return booster

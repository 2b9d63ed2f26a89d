"""Models of XGBoost and LightGBM that both benchmarks train on made-up rows, always the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FEATURES = 28
TREES = 100
NAMES = [f"f{i}" for i in range(FEATURES)]


def made_up_rows(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, FEATURES)).astype(np.float32)


def train(folder: Path) -> None:
    """Writes xgboost.json and lightgbm.txt: 100 trees for two classes, of depth 6 and of 63 leaves."""
    import lightgbm
    import xgboost

    rows = made_up_rows(20_000, 1)
    labels = (rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2]) + rows[:, 3] > 0.3).astype(np.float32)
    matrix = xgboost.DMatrix(rows, labels, feature_names=NAMES)
    options = {"objective": "binary:logistic", "max_depth": 6, "nthread": 1}
    xgboost.train(options, matrix, TREES).save_model(folder / "xgboost.json")
    data = lightgbm.Dataset(rows, labels, feature_name=NAMES)
    options = {"objective": "binary", "num_leaves": 63, "num_threads": 1, "verbose": -1}
    lightgbm.train(options, data, TREES).save_model(folder / "lightgbm.txt")

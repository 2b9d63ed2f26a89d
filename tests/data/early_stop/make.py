#!/usr/bin/env python3
"""Makes the models of this folder: small LightGBM models, and raw scores of predictions that stop early.

    python3 make.py        needs numpy and lightgbm; made with lightgbm 4.7.0

Each model has model.txt, rows.npy (40 x 4 float32) and raw_<every>_<margin>.npy: the result of
Booster.predict(raw_score=True) with pred_early_stop, which compares with the margin <margin> after every <every>
rounds. Deterministic: fixed seeds, one thread.
"""
import os

import lightgbm
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS, ROUNDS = 40, 20
MODELS = {"binary": dict(objective="binary"), "classes": dict(objective="multiclass", num_class=3),
          "ova": dict(objective="multiclassova", num_class=3), "ranks": dict(objective="lambdarank")}
STOPS = [(1, "0.5"), (3, "1"), (7, "0"), (10, "10")]


def main():
    rng = np.random.RandomState(5)
    x = rng.normal(size=(300, 4)).astype(np.float32)
    y = x[:, 0] + 0.5 * x[:, 1] * (x[:, 2] > 0)
    for name, params in MODELS.items():
        folder = os.path.join(HERE, name)
        os.makedirs(folder, exist_ok=True)
        labels = np.digitize(y, [-0.5, 0.5]) if name != "binary" else y > 0
        group = [50] * 6 if name == "ranks" else None
        params = dict(params, num_leaves=5, learning_rate=0.3, num_threads=1, seed=1, deterministic=True,
                      force_row_wise=True, verbose=-1)
        booster = lightgbm.train(params, lightgbm.Dataset(x, labels, group=group), ROUNDS)
        booster.save_model(os.path.join(folder, "model.txt"))
        booster = lightgbm.Booster(model_file=os.path.join(folder, "model.txt"))
        np.save(os.path.join(folder, "rows.npy"), x[:ROWS])
        for every, margin in STOPS:
            raw = booster.predict(x[:ROWS], raw_score=True, num_threads=1, pred_early_stop=True,
                                  pred_early_stop_freq=every, pred_early_stop_margin=float(margin))
            assert (raw != booster.predict(x[:ROWS], raw_score=True)).any() or margin == "10"
            np.save(os.path.join(folder, f"raw_{every}_{margin}.npy"), raw)


if __name__ == "__main__":
    main()

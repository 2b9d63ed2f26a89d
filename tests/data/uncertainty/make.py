#!/usr/bin/env python3
"""Makes models of CatBoost with their own virtual ensembles and uncertainty: make.py

Writes rows.npy, and for each model NAME.json (shrunk.cbm for one), NAME.members.npy and NAME.uncertainty.npy: what
virtual_ensembles_predict gives for rows.npy with 4 ensembles; and NAME.members_17.npy, NAME.uncertainty_17.npy for the
first 17 rounds with 3 ensembles. Made with numpy 2.4.6 and catboost 1.2.10.
"""
import pathlib

import catboost
import numpy

HERE = pathlib.Path(__file__).parent
generator = numpy.random.default_rng(23)
rows = generator.normal(size=(200, 4)).astype(numpy.float32)
rows[generator.random(rows.shape) < 0.05] = numpy.nan
filled = numpy.nan_to_num(rows)
target = filled[:, 0] * filled[:, 1] + filled[:, 2] + 0.1 * generator.normal(size=200)
classes = numpy.digitize(target, [-0.5, 0.5])
MODELS = {
    "plain": ("RMSE", target, {}),
    "sampled": ("RMSE", target, {"posterior_sampling": True}),
    "shrunk": ("Quantile", target, {"model_shrink_rate": 0.3, "model_shrink_mode": "Decreasing"}),
    "gaussian": ("RMSEWithUncertainty", target, {"posterior_sampling": True}),
    "binary": ("Logloss", (target > 0).astype(int), {"posterior_sampling": True}),
    "classes": ("MultiClass", classes, {}),
    "one_vs_all": ("MultiClassOneVsAll", classes, {"model_shrink_rate": 0.1}),
}
numpy.save(HERE / "rows.npy", rows[:40])
for name, (loss, goal, more) in MODELS.items():
    model = catboost.CatBoost(
        {
            "loss_function": loss,
            "iterations": 23,
            "depth": 2,
            "learning_rate": 0.3,
            "verbose": 0,
            "random_seed": 1,
            "thread_count": 1,
            "allow_writing_files": False,
            **more,
        }
    ).fit(rows, goal)
    form = "cbm" if name == "shrunk" else "json"
    model.save_model(str(HERE / f"{name}.{form}"), format=form)
    for end, count, suffix in ((0, 4, ""), (17, 3, "_17")):
        for kind, part in (("VirtEnsembles", "members"), ("TotalUncertainty", "uncertainty")):
            answers = model.virtual_ensembles_predict(
                rows[:40], prediction_type=kind, virtual_ensembles_count=count, ntree_end=end, thread_count=1
            )
            numpy.save(HERE / f"{name}.{part}{suffix}.npy", numpy.ascontiguousarray(answers))

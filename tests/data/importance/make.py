#!/usr/bin/env python3
"""Makes the trainers' own importances of the features of models in this repository: make.py

Writes NAME.csv for each model that MODELS lists, with a line for each feature: the number of its splits, the sum of their
gains, and the sum of their covers where the trainer has it. XGBoost's numbers are those of get_score (weight, total_gain,
total_cover), LightGBM's those of feature_importance (split, gain), YDF's those of variable_importances (NUM_NODES,
SUM_SCORE). Treelite and scikit-learn have no such function: the sums are taken over the nodes that they show.

Made with xgboost-cpu 3.2.0, lightgbm 4.7.0, ydf 0.16.1, treelite 4.8.1, scikit-learn 1.9.0 and skops 0.16.0.
"""
import csv
import json
import pathlib

import lightgbm
import skops.io
import treelite
import xgboost
import ydf

HERE = pathlib.Path(__file__).parent


def numbered(count):
    return [f"f{number}" for number in range(count)]


def of_xgboost(path):
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(path)
    kinds = [booster.get_score(importance_type=kind) for kind in ("weight", "total_gain", "total_cover")]
    for name in booster.feature_names or numbered(booster.num_features()):
        splits, gain, cover = (float(kind.get(name, 0)) for kind in kinds)
        yield name, int(splits), gain, cover


def of_lightgbm(path):
    booster = lightgbm.Booster(model_file=str(path))
    kinds = booster.feature_importance("split"), booster.feature_importance("gain")
    for name, splits, gain in zip(booster.feature_name(), *kinds):
        yield name, int(splits), float(gain), ""


def of_ydf(path):
    model = ydf.load_model(str(path))
    kinds = model.variable_importances()
    splits, gain = ({name: number for number, name in kinds[kind]} for kind in ("NUM_NODES", "SUM_SCORE"))
    for name in model.input_feature_names():
        yield name, int(splits.get(name, 0)), gain.get(name, 0.0), ""


def of_treelite(path):
    model = treelite.Model.deserialize(str(path))
    sums = [[name, 0, 0.0, 0.0] for name in numbered(model.num_feature)]
    for tree in json.loads(model.dump_as_json())["trees"]:
        for node in tree["nodes"]:
            if "split_feature_id" in node:
                of_feature = sums[node["split_feature_id"]]
                of_feature[1] += 1
                of_feature[2] += node["gain"]
                of_feature[3] += node.get("sum_hess", node.get("data_count"))
    return sums


def of_sklearn(path):
    estimator = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    sums = [[name, 0, 0.0, 0.0] for name in numbered(estimator.n_features_in_)]
    for predictors in estimator._predictors:
        for predictor in predictors:
            for node in predictor.nodes:
                if not node["is_leaf"]:
                    of_feature = sums[node["feature_idx"]]
                    of_feature[1] += 1
                    of_feature[2] += float(node["gain"])
                    of_feature[3] += float(node["count"])
    return sums


# The function, the folder in tests/data, and the model of each file.
MODELS = (
    (of_xgboost, "diabetes", "model.json"),
    (of_xgboost, "digits", "model.ubj"),
    (of_xgboost, "margins/dart", "model.json"),
    (of_xgboost, "xgboost_versions/3.2.0_categories", "model.json"),
    (of_lightgbm, "lightgbm/4.7.0_categories", "model.txt"),
    (of_lightgbm, "lightgbm/4.7.0_classes", "model.txt"),
    (of_lightgbm, "lightgbm/4.7.0_forest", "model.txt"),
    (of_ydf, "ydf/0.16.1_classes", "model"),
    (of_treelite, "treelite/3.9.1_logistic", "model.treelite"),
    (of_treelite, "treelite/3.9.1_categories", "model.treelite"),
    (of_sklearn, "skops/1.9_hist_four", "model.skops"),
)

for sums_of, folder, model in MODELS:
    with open(HERE / (folder.replace("/", "_") + ".csv"), "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["feature", "splits", "gain", "cover"])
        table.writerows(sums_of(HERE.parent / folder / model))

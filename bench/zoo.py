"""What the scripts that measure the zoo's models share: where the models are."""

import glob
import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.environ.get("ZOO", f"{ROOT}/../shared/zoo/bench")


def model_of(folder):
    """Returns the model file in a model's folder. Raises ValueError if there is not just one."""
    models = glob.glob(f"{folder}/model.*")
    if len(models) != 1:
        raise ValueError(f"{folder}: expected one file called model.*, found {len(models)}")
    return models[0]

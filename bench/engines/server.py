"""The server of serving.py: the trainers' models with their own predictors and with forestvm, one thread each."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import Any

import kserve
import numpy as np

from forestvm.engines.kserve import Model, allow_slow_start


class Trainers(kserve.Model):
    """Predicts with a trainer's own package."""

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(name)
        self._path = path
        self.load()

    def load(self) -> bool:
        if self.name == "xgboost":
            import xgboost

            self._booster = xgboost.Booster({"nthread": 1}, model_file=self._path)
        else:
            import lightgbm

            self._booster = lightgbm.Booster(model_file=self._path)
        self.ready = True
        return True

    def _predict(self, rows: np.ndarray) -> np.ndarray:
        if self.name == "xgboost":
            return self._booster.inplace_predict(rows, validate_features=False)
        return self._booster.predict(rows, num_threads=1)

    async def predict(self, payload: Any, headers: Any = None, response_headers: Any = None) -> Any:
        predictions = self._predict(payload.inputs[0].as_numpy())
        datatype = {"float32": "FP32", "float64": "FP64"}[str(predictions.dtype)]
        answer = kserve.InferOutput("prediction", list(predictions.shape), datatype)
        answer.set_data_from_numpy(predictions, binary_data=payload.use_binary_outputs)
        return kserve.InferResponse(payload.id or uuid.uuid4().hex, self.name, [answer])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_booster"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.load()


if __name__ == "__main__":
    allow_slow_start(120)  # importing packages takes long on a busy machine
    port, folder = int(sys.argv[1]), Path(sys.argv[2])
    models: list[kserve.Model] = [Trainers("xgboost", folder / "xgboost.json")]
    models.append(Trainers("lightgbm", folder / "lightgbm.txt"))
    models.append(Model(folder / "xgboost.json", "forestvm-xgboost", threads=1))
    models.append(Model(folder / "lightgbm.txt", "forestvm-lightgbm", threads=1))
    kserve.ModelServer(http_port=port, enable_grpc=False, workers=2).start(models)

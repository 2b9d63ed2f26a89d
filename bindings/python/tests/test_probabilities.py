"""Probabilities of the classifiers of all formats: they add up to 1, and the label is the likeliest class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, ZOO

import forestvm

CLASSIFIERS = [
    DATA / "breast_cancer" / "model.json",
    *(
        ZOO / "formats" / name / "model.pmml"
        for name in ("pmml_xgb_binary", "pmml_lgb_binary", "pmml_rf_clf", "pmml_dt_clf")
    ),
]


@pytest.mark.parametrize("path", CLASSIFIERS, ids=lambda path: path.parent.name)
def test_probabilities_add_up_to_one(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"no model {path}: FORESTVM_ZOO names the zoo's folder")
    forest = forestvm.load(path)
    rows = np.random.default_rng(0).normal(scale=20, size=(200, forest.num_features))
    probabilities = forest.predict_proba(rows)
    assert probabilities.shape[1] == (len(forest.classes) or 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(forest.predict_class(rows), probabilities.argmax(axis=1))

"""Predictions with an early stop, against LightGBM's pred_early_stop, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_models import binary, classes, forms, target, training_rows

import forestvm

lightgbm = pytest.importorskip("lightgbm")
pyarrow = pytest.importorskip("pyarrow")

ROWS = training_rows(3, 400)
SETTINGS: list[dict[str, float]] = [
    {"margin": 1.5, "every": 3},
    {"margin": 0, "every": 7},
    {"every": 5, "margin": 4.0},
    {},
]


def trained(kind: str) -> Any:
    labels = {"binary": binary, "classes": classes}[kind](ROWS)
    return lightgbm.LGBMClassifier(n_estimators=40, num_leaves=7, verbose=-1).fit(ROWS, labels)


def stopped(model: Any, settings: dict[str, float], **options: Any) -> Any:
    return model.booster_.predict(
        ROWS,
        pred_early_stop=True,
        pred_early_stop_margin=settings.get("margin", 10),
        pred_early_stop_freq=settings.get("every", 10),
        **options,
    )


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_stops_as_lightgbm_does(kind: str) -> None:
    model = trained(kind)
    forest = forestvm.from_lightgbm(model, keep_leaves=True)
    for settings in SETTINGS:
        raw = stopped(model, settings, raw_score=True)
        assert np.array_equal(forest.predict_raw(ROWS, early_stop=settings), raw)
        assert np.array_equal(forest.predict(ROWS, output="raw", early_stop=settings), raw)
        np.testing.assert_allclose(forest.predict(ROWS, early_stop=settings), stopped(model, settings), rtol=1e-14)
        labels = raw.argmax(axis=1) if kind == "classes" else (raw > 0).astype(int)
        assert np.array_equal(forest.predict_class(ROWS, early_stop=settings), labels)
        assert np.array_equal(forest.predict_proba(ROWS, early_stop=settings).argmax(axis=1), labels)
    assert not np.array_equal(forest.predict_raw(ROWS, early_stop=SETTINGS[0]), forest.predict_raw(ROWS))
    assert np.array_equal(forest.predict_raw(ROWS, early_stop=None), forest.predict_raw(ROWS))
    some = forest.of_rounds(10, 40)
    expected = stopped(model, SETTINGS[0], raw_score=True, start_iteration=10, num_iteration=30)
    assert np.array_equal(some.predict_raw(ROWS, early_stop=SETTINGS[0]), expected)


def test_rows_of_every_form_and_streams() -> None:
    forest = forestvm.from_lightgbm(trained("binary"), keep_leaves=True)
    settings, names = SETTINGS[0], [f"Column_{i}" for i in range(6)]
    expected = forest.predict(ROWS, early_stop=settings)
    for name, form in [("lists", lambda rows: rows.tolist()), *forms(names)]:
        assert np.array_equal(forest.predict(form(ROWS), early_stop=settings), expected), name
    table = pyarrow.table({name: ROWS[:, i] for i, name in enumerate(names)})
    stream = forest.predict_stream(table, early_stop=settings)
    assert np.array_equal(pyarrow.table(stream)["prediction"].to_numpy(), expected)
    margins = np.linspace(-1, 1, len(ROWS))
    both = forest.predict_raw(ROWS, base_margin=margins, early_stop=settings)
    alone = forest.predict_raw(ROWS, base_margin=margins)
    decided = both != alone
    assert 0 < decided.sum() < len(ROWS) and (np.abs(both[decided]) > settings["margin"] / 2).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"margin": -1},
        {"margin": float("nan")},
        {"margin": "x"},
        {"every": 0},
        {"every": 1.5},
        {"every": True},
        {"rounds": 3},
        10,
    ],
)
def test_settings_that_are_refused(wrong: Any) -> None:
    forest = forestvm.from_lightgbm(trained("binary"), keep_leaves=True)
    with pytest.raises(forestvm.Usage, match="expected {'margin': M, 'every': N}") as raised:
        forest.predict(ROWS, early_stop=wrong)
    assert raised.value.where == "early_stop"


def test_what_takes_no_early_stop() -> None:
    model = trained("binary")
    with pytest.raises(forestvm.Refused, match="Python's keep_leaves=True"):
        forestvm.from_lightgbm(model).predict(ROWS, early_stop={})
    forest = forestvm.from_lightgbm(model, keep_leaves=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'early_stop'"):
        forest.apply(ROWS, early_stop={})  # type: ignore[call-arg]
    with pytest.raises(forestvm.Usage, match="leaf numbers are of all trees"):
        forest.predict(ROWS, output="leaf", early_stop={})
    regression = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(ROWS, target(ROWS))
    with pytest.raises(forestvm.Refused, match="is for LightGBM's models of classes and ranks"):
        forestvm.from_lightgbm(regression, keep_leaves=True).predict(ROWS, early_stop={})

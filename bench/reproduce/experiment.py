"""What experiments share: their form, sentences, and statistics of ratios."""

import os
import sys
from dataclasses import dataclass
from typing import Callable

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from zoo import geometric_mean  # noqa: E402

__all__ = ["Experiment", "geometric_mean", "median", "ratio", "share", "verdict", "without_none"]


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    steps: Callable  # setup -> steps, some of which other experiments have too
    section: Callable  # setup, results by the steps' names -> page.Section


def verdict(agrees, sentence):
    return f"{'Agrees' if agrees else 'Does not agree'}: {sentence}"


def ratio(value):
    return "-" if value is None else f"{value:.2f}x" if value < 9.995 else f"{value:.1f}x"


def share(part, all_of):
    return f"{100 * part / max(1, all_of):.1f}%"


def median(values):
    ascending = sorted(values)
    return ascending[len(ascending) // 2]


def without_none(values):
    return [value for value in values if value is not None]

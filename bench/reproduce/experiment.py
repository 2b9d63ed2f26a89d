"""What experiments share: their form, sentences, and statistics of ratios."""

from dataclasses import dataclass
from typing import Callable

CLOSE = 1.1  # schedules that take at most this multiple of the best time are close to the best


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


def without_none(values):
    return [value for value in values if value is not None]

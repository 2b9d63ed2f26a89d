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


def few_are_close(close, medians):
    """Returns the verdict on the distribution of times in each case: the share of the schedules that are close to the
    best, and the median time as a multiple of the best."""
    held = sum(part <= 0.1 and middle >= 2 for part, middle in zip(close, medians))
    return verdict(
        held >= 0.75 * len(close),
        f"in {held} of {len(close)} cases at most a tenth of the schedules are within {CLOSE}x of the best, and "
        f"the median takes at least 2x. The shares range from {100 * min(close):.1f}% to {100 * max(close):.1f}%, "
        f"the medians from {ratio(min(medians))} to {ratio(max(medians))}.",
    )


def ratio(value):
    return "-" if value is None else f"{value:.2f}x" if value < 9.995 else f"{value:.1f}x"


def share(part, all_of):
    return f"{100 * part / max(1, all_of):.1f}%"


def without_none(values):
    return [value for value in values if value is not None]

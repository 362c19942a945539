"""Checks of options that are numbers, or noise."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from wavefilt.errors import OptionError, Words, options
from wavefilt.vocabulary import SIGMAS, Moment, Noise, check, is_number

NOISE = {
    "window": '("window", start, stop)',
    "before": '("before", pick, length)',
    "running": '("running", length)',
    "intervals": '("intervals", change points or "find")',
}
"""What ``sigma`` may be beside words and numbers."""


def checked_noise(sigma: Noise) -> Noise:
    """The option ``sigma``, with a window instead of what comes before a pick, and numbers as they are compared.

    Raises ValueError for what it cannot be.
    """
    if isinstance(sigma, str):
        check("sigma", sigma, SIGMAS, "a number")
        return sigma
    if not isinstance(sigma, tuple):
        if is_number(sigma) and 0 <= sigma < math.inf:
            return sigma
        words = f" must be {', '.join(SIGMAS)}, a finite number of at least 0, or "
        forms = Words(f"one of {', '.join(NOISE.values())}, in samples", "left out for --noise-window and its like")
        raise OptionError(options(sigma=sigma), words, forms)
    parts: tuple[Moment, ...] = sigma
    kind, *numbers = parts or ("",)
    if kind == "intervals" and len(numbers) == 1:
        return kind, _change_points(numbers[0])
    whole = all(is_number(n) and n % 1 == 0 for n in numbers)
    if kind not in NOISE or len(numbers) != NOISE[kind].count(",") or kind == "intervals" or not whole:
        raise OptionError(f"sigma={sigma!r} must be {NOISE.get(kind) or ' or '.join(NOISE.values())}, in samples")
    if kind == "running":
        if numbers[0] < 4:
            raise ValueError(f"the window of running noise, of {numbers[0]} samples, must have 4 or more")
        return kind, int(numbers[0])
    first, last = map(int, numbers)
    start, stop = (first, last) if kind == "window" else (first - last, first)
    if not 0 <= start <= stop - 4:
        raise ValueError(f"the noise window from sample {start} to {stop} must have 4 samples or more")
    return "window", start, stop


def _change_points(points: Moment) -> tuple[int, ...] | str:
    """Samples in order, or "find". Raises ValueError for what are none."""
    if points is None or (isinstance(points, str) and points == "find"):
        return "find"
    if np.ndim(points) == 1 and all(is_number(p) and p % 1 == 0 and p > 0 for p in points):
        found = tuple(int(p) for p in points)
        if found and all(a < b for a, b in pairwise(found)):
            return found
    raise ValueError(f'change points {points!r} must be samples above 0 in order, one or more, or "find"')


def check_whole(name: str, value: object, least: int) -> None:
    """Raise ValueError unless the argument of this name is a whole number, and large enough."""
    if not is_number(value) or value % 1 != 0 or value < least:
        raise OptionError(options(**{name: value}), f" must be a whole number of at least {least}")

"""The check of the option ``sigma``."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from wavefilt.errors import OptionError
from wavefilt.vocabulary import SIGMAS, Moment, Noise, check, is_number

NOISE = {
    "window": '("window", start, stop)',
    "before": '("before", pick, length)',
    "running": '("running", length)',
    "intervals": '("intervals", change points or "find")',
}
"""Forms of ``sigma`` that are tuples."""


def checked_noise(sigma: Noise) -> Noise:
    """Return ``sigma`` with "before" replaced by "window", and numbers as integers.

    Raises OptionError for other values.
    """
    if isinstance(sigma, str):
        check("sigma", sigma, SIGMAS, "a number")
        return sigma
    if not isinstance(sigma, tuple):
        if is_number(sigma) and 0 <= sigma < math.inf:
            return sigma
        forms = f"{', '.join(SIGMAS)}, a finite number of at least 0, or one of {', '.join(NOISE.values())}, in samples"
        raise OptionError(f"`sigma` must be {forms}, not {sigma!r}")
    parts: tuple[Moment, ...] = sigma
    kind, *numbers = parts or ("",)
    if kind == "intervals" and len(numbers) == 1:
        return kind, _change_points(numbers[0])
    whole = all(is_number(n) and n % 1 == 0 for n in numbers)
    if kind not in NOISE or len(numbers) != NOISE[kind].count(",") or kind == "intervals" or not whole:
        raise OptionError(
            f"`sigma` must be {NOISE.get(kind) or ' or '.join(NOISE.values())}, in samples, not {sigma!r}"
        )
    if kind == "running":
        if numbers[0] < 4:
            raise OptionError(f"the window of running noise must have at least 4 samples, not {numbers[0]}")
        return kind, int(numbers[0])
    first, last = map(int, numbers)
    start, stop = (first, last) if kind == "window" else (first - last, first)
    if not 0 <= start <= stop - 4:
        raise OptionError(f"the noise window from sample {start} to {stop} must have at least 4 samples")
    return "window", start, stop


def _change_points(points: Moment) -> tuple[int, ...] | str:
    """Return change points as integers, or "find". Raises OptionError for anything else."""
    if points is None or (isinstance(points, str) and points == "find"):
        return "find"
    if np.ndim(points) == 1 and all(is_number(p) and p % 1 == 0 and p > 0 for p in points):
        samples = tuple(int(p) for p in points)
        if samples and all(a < b for a, b in pairwise(samples)):
            return samples
    raise OptionError(f'change points must be one or more samples above 0 in order, or "find", not {points!r}')

"""Shrinking the details of a level as they come, by a fixed threshold or by sliding-window thresholds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.statistics.reference import ReferenceStatistics, quantile
from wavefilt.thresholding import rules
from wavefilt.thresholding.shrinkage import Elementwise, apply

UPDATES = 16
"""Updates of the thresholds while the details of a window pass; more until the first is full."""


class FixedThreshold:
    """One threshold for all details."""

    def __init__(self, function: Elementwise, threshold: float) -> None:
        self._function, self.threshold = function, threshold

    def shrink(self, details: Array) -> Array:
        return apply(self._function, details, self.threshold)


class SlidingThresholds:
    """Thresholds of each channel from the last ``size`` coefficients of the level.

    ``sigma`` is the noise, or None for that of these coefficients; ``samples`` is the n of the rule. The first
    coefficient updates the thresholds, then every one after a sixteenth of the number known: results do not depend on
    how they are pushed. ``centred`` coefficients are taken relative to the median of the last ones.
    """

    thresholds: Floats
    """(channels, 1), those of the last run."""
    centre: Array
    """The same of the median; 0 where coefficients are not centred."""

    def __init__(
        self, rule: rules.Thresholds, samples: int, size: int, sigma: float | None, centred: bool = False
    ) -> None:
        self._rule, self._samples, self._size, self._sigma, self._centred = rule, samples, size, sigma, centred
        self._left = 0
        self._recent: Array | None = None
        self.thresholds = self.centre = np.zeros((0, 1))

    def runs(self, new: Array) -> Iterator[Array]:
        """Coefficients (channels, new ones) in runs; `thresholds` and `centre` are those of the run that came last."""
        while new.shape[1]:
            update = self._left == 0
            if update:
                self._update(self._remember(new[:, :1]))
            part, new = new[:, : self._left], new[:, self._left :]
            self._remember(part[:, int(update) :])
            self._left -= part.shape[1]
            yield part

    def _remember(self, new: Array) -> Array:
        known = new if self._recent is None else np.concatenate([self._recent, new], axis=1)
        self._recent = known[:, -self._size :]
        return self._recent

    def _update(self, recent: Array) -> None:
        middle = quantile(recent) if self._centred else np.zeros(len(recent))
        self.centre = middle[:, None].astype(recent.dtype)
        statistics = ReferenceStatistics([recent - self.centre if self._centred else recent])
        sigma = rules.noise(statistics, "level" if self._sigma is None else self._sigma)
        self.thresholds = self._rule(statistics, sigma, self._samples)[0][:, None]
        self._left = max(recent.shape[1] // UPDATES, 1)


class SlidingWindow(SlidingThresholds):
    """Shrinks details by a threshold function and `SlidingThresholds`."""

    def __init__(
        self, function: Elementwise, rule: rules.Thresholds, samples: int, size: int, sigma: float | None
    ) -> None:
        super().__init__(rule, samples, size, sigma)
        self._function = function

    def shrink(self, details: Array) -> Array:
        """Details (channels, new ones) shrunk."""
        done = [apply(self._function, part, self.thresholds) for part in self.runs(details)]
        return np.concatenate([details[:, :0], *done], axis=1)

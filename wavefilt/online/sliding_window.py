"""Shrinking the details of a level as they come, by a fixed threshold or by sliding-window thresholds."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array
from wavefilt.statistics.batch import ReferenceStatistics
from wavefilt.thresholding import rules
from wavefilt.thresholding.shrinkage import apply
from wavefilt.vocabulary import Shrink

UPDATES = 16
"""Updates of the thresholds while the details of a window pass; more until the first is full."""


class FixedThreshold:
    """One threshold for all details."""

    def __init__(self, function: Shrink, threshold: float) -> None:
        self._function, self.threshold = function, threshold

    def shrink(self, details: Array) -> Array:
        return apply(self._function, details, self.threshold)


class SlidingWindow:
    """Thresholds of each channel from the last ``size`` details of the level.

    ``sigma`` is the noise, or None for that of these details; ``samples`` is the n of the rule. The first detail
    updates the thresholds, then every one after a sixteenth of the number known: results do not depend on how
    details are pushed.
    """

    def __init__(self, function: Shrink, rule: rules.Rule, samples: int, size: int, sigma: float | None) -> None:
        self._function, self._rule, self._samples = function, rule, samples
        self._size, self._sigma = size, sigma
        self._left = 0
        self._recent: Array | None = None
        self._thresholds = np.zeros((0, 1))

    def shrink(self, details: Array) -> Array:
        """Details (channels, new ones) shrunk."""
        done = [details[:, :0]]
        while details.shape[1]:
            update = self._left == 0
            if update:
                self._update(self._remember(details[:, :1]))
            part, details = details[:, : self._left], details[:, self._left :]
            self._remember(part[:, int(update) :])
            self._left -= part.shape[1]
            done.append(apply(self._function, part, self._thresholds))
        return np.concatenate(done, axis=1)

    def _remember(self, details: Array) -> Array:
        known = details if self._recent is None else np.concatenate([self._recent, details], axis=1)
        self._recent = known[:, -self._size :]
        return self._recent

    def _update(self, recent: Array) -> None:
        statistics = ReferenceStatistics([recent])
        sigma = rules.noise(statistics, "level" if self._sigma is None else self._sigma)
        self._thresholds = self._rule(statistics, sigma, self._samples)[0][:, None]
        self._left = max(recent.shape[1] // UPDATES, 1)

"""Shrinking the details of a level as they come, by thresholds that are given or those of its latest details."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.statistics.batch import ReferenceStatistics
from wavefilt.thresholding import rules
from wavefilt.thresholding.shrinkage import apply
from wavefilt.vocabulary import Shrink

RENEWALS = 16
"""Thresholds are renewed so many times while the details of a window pass; more often until the first is full."""


class Fixed:
    """One threshold for all details."""

    def __init__(self, function: Shrink, threshold: float) -> None:
        self._function, self.threshold = function, threshold

    def shrink(self, details: NDArray[Any]) -> NDArray[Any]:
        return apply(self._function, details, self.threshold)


class Running:
    """Thresholds of each channel by the last ``size`` details of the level.

    ``sigma`` is the noise, or None for that of these details. The first detail renews the thresholds, and then every
    one that comes after a sixteenth of the number known: what is found does not depend on how details are pushed.
    """

    def __init__(self, function: Shrink, rule: rules.Rule, samples: int, size: int, sigma: float | None) -> None:
        self._function, self._rule, self._samples = function, rule, samples
        self._size, self._sigma = size, sigma
        self._left = 0
        self._recent: NDArray[Any] | None = None
        self._thresholds = np.zeros((0, 1))

    def shrink(self, details: NDArray[Any]) -> NDArray[Any]:
        """Details (channels, new ones) shrunk."""
        done = [details[:, :0]]
        while details.shape[1]:
            renewed = self._left == 0
            if renewed:
                self._renew(self._remember(details[:, :1]))
            part, details = details[:, : self._left], details[:, self._left :]
            self._remember(part[:, int(renewed) :])
            self._left -= part.shape[1]
            done.append(apply(self._function, part, self._thresholds))
        return np.concatenate(done, axis=1)

    def _remember(self, details: NDArray[Any]) -> NDArray[Any]:
        known = details if self._recent is None else np.concatenate([self._recent, details], axis=1)
        self._recent = known[:, -self._size :]
        return self._recent

    def _renew(self, recent: NDArray[Any]) -> None:
        statistics = ReferenceStatistics([recent])
        sigma = rules.noise(statistics, "level" if self._sigma is None else self._sigma)
        self._thresholds = self._rule(statistics, sigma, self._samples)[0][:, None]
        self._left = max(recent.shape[1] // RENEWALS, 1)

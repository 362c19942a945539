"""The largest magnitude of an array, found on its own or part by part as a launch goes over the array."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array

from . import entries, memory, team
from .native import Work
from .selection import sign_off

AT_ONCE = 1 << 17
"""Samples whose peak is found before a launch reads them again, from the second-level cache."""
GRAIN = 1 << 17  # samples below which a share is not worth waking a thread


class Peak:
    """Of samples that lie aligned and in C order, and are kept by the caller."""

    def __init__(self, x: Array) -> None:
        self._bits, self._samples, self._dtype, self.found = np.dtype(f"i{x.itemsize}"), x.size, x.dtype, 0
        self.infinite = self.bits_of(np.inf)
        self._find = entries.PEAK.of(x.dtype, memory.address(x), sign_off(x.dtype))

    def bits_of(self, magnitude: float) -> int:
        """As `found` has it."""
        return int(np.array(magnitude, self._dtype).view(self._bits))

    @property
    def value(self) -> float:
        """NaN if there is a NaN, else infinite if there is an infinity; 0 for no samples."""
        return float(np.array(self.found, self._bits).view(self._dtype))

    def find(self) -> None:
        self.found = team.parallel(self._find, self._samples, GRAIN)

    def along(self, work: Work, jobs: int, grain: int) -> team.Job:
        """What ``work`` does, and before each range the peak of what it goes over, from the first of the jobs on."""
        return team.Job(work, jobs, grain, self._find, self._samples, AT_ONCE)

    @property
    def finite(self) -> bool:
        return self.found < self.infinite

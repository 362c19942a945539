"""From how many samples in all the numba backend is the faster one; imports neither numba nor its backend.

Measured by ``python -m wavefilt.benchmarks.crossover`` on 2 cores of a Xeon at 2.5 GHz (Cascade Lake), numba 0.68:
import and load from the disk cache take 1.0 s, which pays once the transform saves as much.
"""

from __future__ import annotations

import sys

LOADED = 128
"""Samples from which kernels in memory win, whatever the filter."""

FIRST = {4: 30_000_000, 16: 23_000_000, 40: 10_000_000}
"""Samples from which they win in a process that has yet to load them, by the number of taps."""


def faster(samples: int, taps: int) -> bool:
    """Whether numba takes less time than PyWavelets for this many samples, in this process as it is."""
    if "wavefilt.backends.numba_cpu" in sys.modules:
        return samples >= LOADED
    return samples >= FIRST[min(FIRST, key=lambda measured: abs(measured - taps))]

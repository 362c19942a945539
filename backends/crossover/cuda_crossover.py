"""From what size the GPU denoises an array in host memory faster than the CPU; imports no numba.

The constants were measured on an H200 beside 16 cores, in float32.
"""

from __future__ import annotations

from math import prod

from wavefilt.transforms import Analysis

LOADED = 1 << 10
"""Samples in all from which it wins with the kernels in memory: the smallest measured."""

FIRST = 12_580_000_000
"""Samples in all from which it wins in a process that has yet to start the GPU and load its kernels."""

loaded: set[tuple[str, int]] = set()
"""Dtypes and numbers of taps whose kernels this process has used; the backend adds to them."""


def faster(shape: tuple[int, ...], analysis: Analysis, dtype: str) -> bool:
    """Whether the GPU takes less time for a batch (batch, *shape), in this process as it is; of the DWT alone."""
    least = LOADED if (dtype, analysis.taps) in loaded else FIRST
    return analysis.transform.name == "dwt" and prod(shape) >= least


def note(transform: str, dtype: str, taps: int) -> None:
    """Remember that this process has used the kernels of a transform."""
    if transform == "dwt":
        loaded.add((dtype, taps))

"""Spectra of windows of traces: their mean, and along a trace."""

from __future__ import annotations

import math

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.plot.spectra import power_of_two

MOST_TIMES = 400
"""Most columns of a spectrogram."""
FLOOR = 1e-12
"""What is drawn of no amplitude, relative to the largest."""


def averaging(samples: int) -> tuple[Array, int]:
    """First samples of windows that overlap by half, and their length, for a mean spectrum."""
    length = power_of_two(samples / 4, 8, 1024)
    return np.unique(np.linspace(0, max(0, samples - length), math.ceil(2 * samples / length)).astype(np.intp)), length


def along(samples: int) -> tuple[Array, int]:
    """First samples of evenly spaced windows, centred from the first sample on, and their length."""
    length = power_of_two(samples / 10, 8, 512)
    return np.arange(0, samples, math.ceil(samples / MOST_TIMES)) - length // 2, length


def transformed(rows: Array, starts: Array, length: int, peak: float) -> Array:
    """Fourier transforms of windows (traces, samples) relative to ``peak``, (traces, windows, frequencies).

    Windows have their mean removed, are 0 in gaps and beyond the ends, tapered, and padded to twice their length.
    """
    wide = np.pad(rows.astype(np.float64) / peak, ((0, 0), (length, 2 * length)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(wide, length, axis=1)[:, starts + length]
    there = np.isfinite(windows)
    counts = np.maximum(there.sum(axis=-1, keepdims=True), 1)
    windows = np.where(there, windows, 0)
    windows = np.where(there, windows - windows.sum(axis=-1, keepdims=True) / counts, 0)
    return np.asarray(np.fft.rfft(windows * np.hanning(length + 2)[1:-1], 2 * length) / length)


def decibels(amplitudes: Array, largest: float) -> Floats:
    """Relative to the largest, and not below `FLOOR`; that everywhere where nothing varies."""
    if largest <= FLOOR:
        return np.full(amplitudes.shape, 20 * math.log10(FLOOR))
    return np.asarray(20 * np.log10(np.maximum(amplitudes / largest, FLOOR)))

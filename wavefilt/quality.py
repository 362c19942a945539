"""Measures of the quality of denoising, with and without a clean reference.

Samples are real or complex and lie along the last axis; |z|² of a complex sample is the sum of both squares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from wavefilt.arrays import Array, Floats, refuse_kinds


def snr(clean: ArrayLike, x: ArrayLike) -> Floats:
    """Return 10 log₁₀(Σ |s|²/Σ |x - s|²) in dB for each trace; infinite where x equals the clean signal s.

    The gain of denoising is ``snr(clean, after) - snr(clean, before)``.
    """
    s, y = _both(clean, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(10 * np.log10(_energy(s) / _energy(y - s)))


def rmse(clean: ArrayLike, x: ArrayLike) -> Floats:
    """Return the root of the mean of |x - s|² for each trace, in the units of the samples."""
    s, y = _both(clean, x)
    return np.asarray(np.sqrt(np.mean(np.abs(y - s) ** 2, axis=-1)))


def arrival_shift(before: ArrayLike, after: ArrayLike, start: int, stop: int) -> Floats:
    """Return the delay in samples that denoising caused between samples ``start`` and ``stop``, for each trace.

    It is the lag of the largest cross-correlation, to a fraction of a sample: the vertex of the parabola through the
    largest value and its neighbours. NaN where either trace is constant there.

    Raises TypeError for complex samples, and ValueError if the window is outside the samples or has fewer than 3.
    """
    x, y = _both(before, after)
    if np.iscomplexobj(y):
        raise TypeError("arrival_shift needs real samples: take the real part or the modulus of complex ones")
    if not 0 <= start <= stop - 3 or stop > x.shape[-1]:
        raise ValueError(f"the window from sample {start} to {stop} must have at least 3 of the {x.shape[-1]} samples")
    x, y = (a[..., start:stop] - a[..., start:stop].mean(axis=-1, keepdims=True) for a in (x, y))
    n = stop - start
    spectrum = np.conj(np.fft.rfft(x, 2 * n)) * np.fft.rfft(y, 2 * n)
    lags = np.roll(np.fft.irfft(spectrum, 2 * n), n - 1, axis=-1)[..., : 2 * n - 1]  # lag 0 at n - 1
    best = np.clip(np.argmax(lags, axis=-1), 1, 2 * n - 3)[..., None]
    low, top, high = (np.take_along_axis(lags, best + i, -1)[..., 0] for i in (-1, 0, 1))
    bend = low - 2 * top + high
    offset = np.divide(0.5 * (low - high), bend, out=np.full_like(bend, np.nan), where=bend != 0)
    return np.asarray(best[..., 0] - (n - 1) + offset)


def _energy(x: Array) -> Floats:
    """Return Σ |x|² of each trace."""
    return np.asarray(np.sum(np.abs(x) ** 2, axis=-1))


def _both(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """Return both arrays in float64, or in complex128 if either is complex.

    Raises TypeError for a table or a path, and ValueError unless they have one shape, or the first has the shape of
    the second's last axes.
    """
    refuse_kinds(a)
    refuse_kinds(b)
    dtype = np.complex128 if np.iscomplexobj(a) or np.iscomplexobj(b) else np.float64
    x, y = np.asarray(a, dtype), np.asarray(b, dtype)
    if not x.ndim or x.shape != y.shape[y.ndim - x.ndim :]:
        raise ValueError(f"arrays of shapes {x.shape} and {y.shape} are not the same traces")
    return np.broadcast_to(x, y.shape), y

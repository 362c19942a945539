"""How well a denoise did: with the clean signal known, and without it. Samples lie along the last axis.

They are real or complex; of complex ones both parts count, |z|² being the sum of their squares.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def snr(clean: ArrayLike, x: ArrayLike) -> NDArray[np.float64]:
    """10 log₁₀(Σ |s|²/Σ |x - s|²) in dB for each trace; infinite where x is the clean signal s itself.

    The gain of a denoise is ``snr(clean, after) - snr(clean, before)``.
    """
    s, y = _both(clean, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(10 * np.log10(_energy(s) / _energy(y - s)))


def rmse(clean: ArrayLike, x: ArrayLike) -> NDArray[np.float64]:
    """Root of the mean of |x - s|² for each trace, in the samples' units."""
    s, y = _both(clean, x)
    return np.asarray(np.sqrt(np.mean(np.abs(y - s) ** 2, axis=-1)))


def leakage(denoised: ArrayLike, removed: ArrayLike) -> NDArray[np.float64]:
    """Correlation of what was removed with what was left, from -1 to 1, for each trace; 0 where either is constant.

    Noise alone that was removed has none. Signal that leaked correlates with its own rest: above 2/√n for n samples
    it deserves a look (``wavefilt.denoise(..., return_noise=True)`` gives both arguments). Of complex samples it is
    the real part of their correlation.
    """
    y, r = (a - a.mean(axis=-1, keepdims=True) for a in _both(denoised, removed))
    norm = np.sqrt(_energy(y) * _energy(r))
    return np.asarray(np.divide(np.sum((y * r.conj()).real, axis=-1), norm, out=np.zeros_like(norm), where=norm > 0))


def arrival_shift(before: ArrayLike, after: ArrayLike, start: int, stop: int) -> NDArray[np.float64]:
    """By how many samples an arrival between samples ``start`` and ``stop`` comes later after than before, per trace.

    The lag, to a fraction of a sample, at which the two correlate best: the vertex of the parabola through the
    largest value of their cross-correlation and its neighbours. NaN where either is constant there.

    Raises TypeError for complex samples, and ValueError if the window does not lie in the samples or has less than 3.
    """
    x, y = _both(before, after)
    if np.iscomplexobj(y):
        raise TypeError("the shift of an arrival is that of real samples, not complex ones: take a part or the modulus")
    if not 0 <= start <= stop - 3 or stop > x.shape[-1]:
        raise ValueError(f"the window from sample {start} to {stop} must have 3 samples or more of {x.shape[-1]}")
    x, y = (a[..., start:stop] - a[..., start:stop].mean(axis=-1, keepdims=True) for a in (x, y))
    n = stop - start
    spectrum = np.conj(np.fft.rfft(x, 2 * n)) * np.fft.rfft(y, 2 * n)
    lags = np.roll(np.fft.irfft(spectrum, 2 * n), n - 1, axis=-1)[..., : 2 * n - 1]  # lag 0 at n - 1
    best = np.clip(np.argmax(lags, axis=-1), 1, 2 * n - 3)[..., None]
    low, top, high = (np.take_along_axis(lags, best + i, -1)[..., 0] for i in (-1, 0, 1))
    bend = low - 2 * top + high
    offset = np.divide(0.5 * (low - high), bend, out=np.full_like(bend, np.nan), where=bend != 0)
    return np.asarray(best[..., 0] - (n - 1) + offset)


def _energy(x: NDArray[Any]) -> NDArray[np.float64]:
    """Σ |x|² of each trace."""
    return np.asarray(np.sum(np.abs(x) ** 2, axis=-1))


def _both(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both in float64, or in complex128 if either is complex.

    Raises ValueError unless they have one shape, or the first one that fits the second.
    """
    dtype = np.complex128 if np.iscomplexobj(a) or np.iscomplexobj(b) else np.float64
    x, y = np.asarray(a, dtype), np.asarray(b, dtype)
    if not x.ndim or x.shape != y.shape[y.ndim - x.ndim :]:
        raise ValueError(f"arrays of shapes {x.shape} and {y.shape} are not the same traces")
    return np.broadcast_to(x, y.shape), y

"""Measures of the quality of denoising, with and without a clean reference.

Samples are real or complex and lie along the last axis; |z|² of a complex sample is the sum of both squares.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, stdtr

from wavefilt.arrays import Array, Floats, refuse_kinds
from wavefilt.decomposition import wavedec
from wavefilt.thresholding.rules import AUTO_LEVEL, MAD_TO_SIGMA
from wavefilt.wavelets.filters import WaveletLike, as_wavelet, max_level

FALSE_ALARMS = 0.01
"""Traces with a smaller p-value are flagged."""
FEWEST, WEAK = 32, 0.01
"""Smallest number of details of a level that is tested, and smallest share of the strongest level's mean square."""
LAGS = 32
"""Number of lags in the autocorrelation of details."""
MEDIAN_COST = 2.72
"""Variance of the median of |d| for normal d over that of the root mean square."""


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


def leakage(denoised: ArrayLike, residual: ArrayLike) -> Floats:
    """Return the correlation of the residual with the denoised trace, from -1 to 1; 0 where either is constant.

    (``wavefilt.denoise(..., return_residual=True)`` returns both arguments.) Soft thresholding subtracts the same
    amount from each coefficient that it keeps. The result is therefore above 0 without any leakage, also in noise
    alone; use it to compare results with each other, and `leakage_test` to find out whether signal leaked. For complex
    samples it is the real part of the correlation.
    """
    y, r = (a - a.mean(axis=-1, keepdims=True) for a in _both(denoised, residual))
    norm = np.sqrt(_energy(y) * _energy(r))
    return np.asarray(np.divide(np.sum((y * r.conj()).real, axis=-1), norm, out=np.zeros_like(norm), where=norm > 0))


class Leakage(NamedTuple):
    """The result of `leakage_test` for each trace."""

    share: Floats
    """Share of the residual's energy, 0 to 1, above that of Gaussian noise with equal medians of |d| in each level."""
    p_value: Floats
    """Probability that stationary Gaussian noise alone gives at least this much evidence of leakage; 1 for none."""

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Whether the p-value is below 1 %."""
        return self.p_value < FALSE_ALARMS


def leakage_test(
    denoised: ArrayLike, residual: ArrayLike, wavelet: WaveletLike = "db8", level: int | None = None
) -> Leakage:
    """Test for each trace whether the residual contains signal: details that are too large for noise.

    The null hypothesis is that the residual is stationary Gaussian noise of any spectrum. Shrinkage never enlarges a
    detail, so noise has this distribution or smaller values, with any rule and threshold; a residual with signal has
    too many large details. At most 1 % of traces of noise are flagged, that is, have a p-value below 1 %. See
    docs/quality.md for the simulations and the smallest leakage that is found.

    The details of each level are divided by their noise level, the median of |d| over 0.6745. Their tail probabilities
    are those of Student's t with n/2.72 degrees of freedom, because the median is an estimate from n details. If
    details are correlated, n/(1 + 2 Σ ρ²) count as independent, with the sample autocorrelation ρ. The statistic b of
    Berk and Jones (1979) is the smallest binomial probability, over k, that k of them lie below the k-th tail
    probability; the p-value, 4 b^0.55, is an upper bound fitted to simulations.

    Use the ``wavelet`` and ``level`` of the denoising; by default ``level`` is that of `wavefilt.denoise`. Levels with
    fewer than 32 details away from ends and gaps (NaN, masked samples), or with almost no residual, are left out; the
    p-value of a trace without other levels is 1. Noise with bursts or heavy tails is not Gaussian and is flagged too,
    and a signal that fills a level evenly counts as its noise. Real and imaginary parts are tested together.

    Raises ValueError if the arrays are not the same traces, and as `wavefilt.wavedec` for ``wavelet`` and ``level``.
    """
    y, r = _both(*(a.filled(np.nan) if isinstance(a, np.ma.MaskedArray) else a for a in (denoised, residual)))
    shape, samples = r.shape[:-1], r.shape[-1]
    missing = (np.isnan(y) | np.isnan(r)).reshape(-1, samples)
    filters = as_wavelet(wavelet)
    if level is None:
        level = min(AUTO_LEVEL, max_level(samples, filters))
    rows = np.where(missing, 0, r.reshape(-1, samples))
    details = [
        _tested(d, missing, j, filters.dec_len) for j, d in enumerate(wavedec(rows, filters, level=level)[:0:-1], 1)
    ]
    power = [np.sum(d**2, axis=-1, where=used) / np.maximum(used.sum(axis=-1), 1) for d, used in details]
    least = WEAK * np.max(power, axis=0, initial=0)
    tails = [np.ones((len(rows), 1))]
    count, independent, energy, noise = np.zeros((4, len(rows)))
    for (d, used), mean in zip(details, power, strict=True):
        n = used.sum(axis=-1)
        sigma = MAD_TO_SIGMA * _median(np.abs(d), used)
        known = (n >= FEWEST) & (mean > least) & (sigma > 0)
        effective = _independent(d, used)
        ratio = np.divide(np.abs(d), sigma[:, None], out=np.zeros_like(d), where=(used.T & known).T)
        tails.append(np.where(ratio > 0, 2 * stdtr(effective[:, None] / MEDIAN_COST, -ratio), 1))
        for total, value in ((count, n), (independent, effective), (energy, n * mean), (noise, n * sigma**2)):
            total += known * value
    share = np.maximum(0, 1 - np.divide(noise, energy, out=np.ones_like(noise), where=energy > 0))
    p_value = np.minimum(1, 4 * _berk_jones(np.concatenate(tails, axis=-1), count, independent) ** 0.55)
    return Leakage(share.reshape(shape), p_value.reshape(shape))


def _tested(d: Array, missing: Array, level: int, taps: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the details of a level (both parts of complex ones), and whether they lie away from gaps and ends.

    A detail lies away from them if the central half of its support does; the support of d[k] ends before sample
    2^level (k + 1).
    """
    support = ((1 << level) - 1) * (taps - 1) + 1
    stop = (np.arange(d.shape[-1]) + 1 << level) - support // 4
    start = stop - support // 2
    gaps = np.pad(np.cumsum(missing, axis=-1), ((0, 0), (1, 0)))
    inside = (start >= 0) & (stop <= missing.shape[-1])
    start, stop = (np.clip(at, 0, missing.shape[-1]) for at in (start, stop))
    used = inside & (gaps[:, stop] == gaps[:, start])
    return (np.hstack([d.real, d.imag]), np.hstack([used, used])) if np.iscomplexobj(d) else (d, used)


def _median(x: Floats, used: NDArray[np.bool_]) -> Floats:
    """Return the median of the used values in each row; 0 where there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without used values
        return np.asarray(np.nan_to_num(np.nanmedian(np.where(used, x, np.nan), axis=-1)))


def _independent(d: Floats, used: NDArray[np.bool_]) -> Floats:
    """Return n/(1 + 2 Σ ρ²) for the n used details, over the first lags, each ρ² minus the 1/n of white noise."""
    n = np.maximum(used.sum(axis=-1), 1)
    lags = min(LAGS, d.shape[-1] // 4) + 1
    sums, pairs = (
        np.fft.irfft(np.abs(np.fft.rfft(x, 2 * d.shape[-1])) ** 2, 2 * d.shape[-1])[:, :lags]
        for x in (np.where(used, d, 0), used.astype(float))
    )
    means = sums / np.maximum(pairs, 1)
    rho = np.divide(means, means[:, :1], out=np.zeros_like(means), where=means[:, :1] > 0)
    return np.asarray(n / np.maximum(1, 1 + 2 * np.sum(rho[:, 1:] ** 2 - 1 / n[:, None], axis=-1)))


def _berk_jones(tails: Floats, count: Floats, independent: Floats) -> Floats:
    """Return the smallest probability of k ``independent`` tails below the k-th of ``count``, for k up to an eighth."""
    most = max(int(count.max(initial=0)) // 8, 1)
    ordered = np.sort(tails, axis=-1)[:, :most]
    k = np.arange(1, ordered.shape[-1] + 1)
    share = np.divide(independent, count, out=np.ones_like(count), where=count > 0)[:, None]
    rank = np.maximum(k * share, 1)
    values = betainc(rank, np.maximum(independent[:, None] - rank + 1, 1), ordered)
    return np.asarray(np.min(values, axis=-1, where=k <= np.maximum(count[:, None] // 8, 1), initial=1))


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

"""Deterministic test signals."""

from __future__ import annotations

import numpy as np

import wavefilt


def noisy_chirp(rng, traces=1, samples=2048, sd=0.3, dtype="f8"):
    """Clean chirps (traces, samples) and the same with white noise."""
    t = np.linspace(0, 1, samples)
    clean = np.sin(30 * (1 + np.arange(traces)[:, None]) ** 0.3 * t**2) * np.exp(-t)
    return clean.astype(dtype), (clean + sd * rng.standard_normal(clean.shape)).astype(dtype)


def partly_dead(rng, samples=700, dtype="f8", traces=24, dead=15):
    """Noisy traces, of which some, here and there, have equal samples: 0, or another number. And which those are."""
    x = noisy_chirp(rng, traces, samples, dtype=dtype)[1]
    which = np.isin(np.arange(traces), rng.permutation(traces)[:dead])
    x[which] = np.where(np.arange(dead) % 3, 0, np.arange(dead) - 3.7)[:, None]
    return x, which


def section(rng, shape=(60, 90), dtype="f8"):
    """Return dipping events, and the same with white noise, on the last two axes."""
    down, across = np.indices(shape[-2:])
    clean = np.sin((down + 0.4 * across) / 5) * (down > across / 3) + np.cos(across / 9)
    clean = np.broadcast_to(clean, shape)
    return clean.astype(dtype), (clean + 0.3 * rng.standard_normal(shape)).astype(dtype)


def gather(rng, shape=(96, 200), sd=0.5):
    """Return two events with dips on two axes, and the same with white noise."""
    rows, columns = np.indices(shape)
    clean = sum(np.exp(-(((columns - at - dip * rows) / 4) ** 2)) for at, dip in ((40, 0.6), (150, -0.5)))
    clean = np.diff(clean, axis=1, prepend=0) * 4
    return clean, clean + sd * rng.standard_normal(shape)


def coloured(rng, shape, amplitude):
    """Return Gaussian noise of variance 1 with this amplitude spectrum, a function of cycles per sample."""
    frequency = np.maximum(np.fft.rfftfreq(shape[-1]), 1 / shape[-1])
    x = np.fft.irfft(np.fft.rfft(rng.standard_normal(shape)) * amplitude(frequency), shape[-1])
    return x / x.std(axis=-1, keepdims=True)


def ricker(samples, at, frequency=0.08):
    """Return a Ricker wavelet with its peak at sample ``at``; the frequency is in cycles per sample."""
    square = (np.pi * frequency * (np.arange(samples) - at)) ** 2
    return (1 - 2 * square) * np.exp(-square)


def share(x, y):
    """Return the energy of the residual over that of the traces, both about the mean of each trace; NaN are gaps."""
    energies = [
        np.nansum((rows - np.nanmean(rows, axis=-1, keepdims=True)) ** 2)
        for rows in (x.astype("f8") - y, x.astype("f8"))
    ]
    return energies[0] / energies[1]


def gain_db(clean, noisy, denoised):
    """Return the improvement of the signal-to-noise ratio of a whole array."""
    return 10 * np.log10(np.sum(np.abs(noisy - clean) ** 2) / np.sum(np.abs(denoised - clean) ** 2))


def shrunk_details(d, **options):
    """Return the detail coefficients ``d`` as `wavefilt.denoise` shrinks them, by one level of the Haar transform."""
    x = wavefilt.idwt(None, d, "haar", "periodization")
    y = wavefilt.denoise(x, "haar", level=1, mode="periodization", **options)
    return wavefilt.dwt(y, "haar", "periodization")[1]

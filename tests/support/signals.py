"""Deterministic test signals."""

from __future__ import annotations

import numpy as np


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

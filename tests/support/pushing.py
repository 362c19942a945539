"""Samples pushed through an online denoiser part by part."""

from __future__ import annotations

import numpy as np


def streamed(denoiser, x, sizes):
    """What comes back of pushes of these sizes, each checked against the latency, and of the rest."""
    out, taken = [], 0
    for size in [*sizes, x.shape[-1]]:
        part = x[..., taken : taken + size]
        before = max(taken - denoiser.latency, 0)
        taken += part.shape[-1]
        out.append(denoiser.push(part))
        assert out[-1].shape[-1] == max(taken - denoiser.latency, 0) - before
    return np.concatenate([*out, denoiser.flush()], axis=-1)

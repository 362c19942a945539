"""Signals continued beyond their ends, by any boundary mode."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array

from .boundary import EXTENSIONS


def extended(x: Array, mode: str, before: int, after: int) -> Array:
    """Rows (..., samples) with so many samples of their extension before and after them."""
    n, extension = x.shape[-1], EXTENSIONS[mode]

    def outside(first: int, stop: int) -> Array:
        terms = [extension(i, n) for i in range(first, stop)]
        j, a, k, b, l, c = np.array(terms, dtype=np.int64).reshape(-1, 6).T  # noqa: E741
        values = (np.where(factor != 0, factor * x[..., place], 0) for place, factor in ((j, a), (k, b), (l, c)))
        return sum(values, start=np.zeros(len(j))).astype(x.dtype)

    return np.concatenate([outside(-before, 0), x, outside(n, n + after)], axis=-1)

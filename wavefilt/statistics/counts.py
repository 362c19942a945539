"""Counts of details in host memory: whole numbers, the same in any order, for rules that need no more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavefilt.arrays import Array, Counts, Floats

AT_ONCE = 1 << 16
"""Details whose magnitudes are made at a time."""


def exceeding(rows: Array, thresholds: Floats) -> Counts:
    """How many |d| of each row (rows, coefficients) are at least its threshold (rows,)."""
    return sum(
        (np.count_nonzero(np.abs(part) >= thresholds[:, None], axis=1) for part in _parts(rows)),
        np.zeros(len(rows), np.int64),
    )


def histogram(rows: Array, widths: Floats, bins: int) -> Counts:
    """|d| of each row counted by bins of its width (rows,), the last for all beyond; shape (rows, bins).

    All are in the first bin where the width is 0.
    """
    counts = np.zeros((len(rows), bins), np.int64)
    scale = np.divide(1, widths, out=np.zeros_like(widths), where=widths > 0)[:, None]
    for part in _parts(rows):
        place = np.fmin(np.abs(part) * scale, bins - 1).astype(np.int64)
        for row, own in zip(counts, place, strict=True):
            row += np.bincount(own, minlength=bins)
    return counts


def _parts(rows: Array) -> Sequence[Array]:
    share = max(AT_ONCE // max(len(rows), 1), 1)
    return [rows[:, a : a + share] for a in range(0, rows.shape[1], share)]

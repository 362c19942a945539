"""What was there and what was removed in every cell: a trace, a short stretch of time and a level of the MODWT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from wavefilt.arrays import Floats, Mask

WAVELET, DEEPEST = "sym8", 9
"""Of the transform that measures, whatever wavelet denoised: it parts octaves well and shifts energy little."""
BLOCK = 1 << 19
"""Samples that are transformed at once."""


@dataclass(frozen=True)
class Cells:
    """Means over the samples of each cell that lie in no gap, arrays (traces, cells, levels + 1), finest level first.

    The last level is the approximation. ``power`` and ``removed`` are mean squares of the coefficients of the noisy
    samples and of what was removed, as power spectral density: white noise of variance 1 has 1 in every level.
    ``share`` is the share of a coefficient that was removed, 0 to 1. ``weight`` (traces, cells) counts the samples.
    """

    power: Floats
    removed: Floats
    share: Floats
    weight: Floats

    def of(self, rows: slice) -> Cells:
        """Those of some traces."""
        return Cells(*(vars(self)[field.name][rows] for field in fields(self)))

    @property
    def widths(self) -> Floats:
        """`widths` of the levels."""
        return widths(self.power.shape[-1])

    @property
    def spacing(self) -> Floats:
        """Samples for each independent coefficient of a level."""
        return 1 / self.widths

    def mean(self, of: Floats) -> Floats:
        """Over the time of each trace, shape (traces, levels + 1)."""
        total = np.maximum(self.weight.sum(axis=1), 1)[:, None]
        return np.asarray(np.sum(of * self.weight[..., None], axis=1) / total)


def widths(count: int) -> Floats:
    """Share of each of so many levels in the frequencies, that is in the energy of white noise."""
    return np.asarray(0.5 ** np.array([*range(1, count), count - 1]))


def measure(noisy: Floats, removed: Floats, length: int) -> Cells:
    """The cells, of so many samples, of traces in rows with NaN in gaps; the last of a trace may be longer."""
    samples = noisy.shape[-1]
    step = max(1, BLOCK // samples)
    parts = [_measured(noisy[i : i + step], removed[i : i + step], length) for i in range(0, len(noisy), step)]
    return Cells(*(np.concatenate([vars(part)[f.name] for part in parts]) for f in fields(Cells)))


def _measured(noisy: Floats, removed: Floats, length: int) -> Cells:
    live = np.isfinite(noisy) & np.isfinite(removed)
    edges = np.arange(max(1, noisy.shape[-1] // length)) * length
    weight = np.add.reduceat(live, edges, axis=-1, dtype=float)

    def mean(values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(np.where(live, values, 0), edges, axis=-1) / np.maximum(weight, 1))

    columns = []
    for (scale, x), (_, r) in zip(_bands(noisy, live), _bands(removed, live), strict=True):
        square = x * x
        share = np.clip(x * r / np.maximum(square, np.finfo(float).tiny), 0, 1)
        columns.append([scale * mean(square), scale * mean(r * r), mean(share)])
    power, out, shares = (np.stack(column, axis=-1) for column in zip(*columns, strict=True))
    return Cells(power, out, shares, weight)


def _bands(rows: Floats, live: Mask) -> Iterator[tuple[float, Floats]]:
    """Coefficients of every level at their samples, finest first, then the approximation, each with its 2^level.

    Gaps and the mean are 0.
    """
    from wavefilt.decomposition import modwt

    samples = rows.shape[-1]
    count = np.maximum(live.sum(axis=-1, keepdims=True), 1)
    mean = np.sum(rows, axis=-1, keepdims=True, where=live) / count
    depth = max(0, min(DEEPEST, samples.bit_length() - 5))  # of the coarsest level a trace has at least 16
    centred = np.where(live, rows - mean, 0)
    found = modwt(np.concatenate([centred, centred[:, ::-1]], axis=-1), WAVELET, depth)  # periodic: symmetric ends
    for level, band in zip([*range(1, depth + 1), depth], [*found[:0:-1], found[0]], strict=True):
        yield float(1 << level), band[..., :samples]

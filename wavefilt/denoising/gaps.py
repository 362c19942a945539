"""Gaps: NaN or masked samples, and dead traces, all of whose samples are equal.

A trace is denoised in the segments between its gaps. Those of a panel are filled for the transform, as segments of it
are in general not rectangular, and coefficients that are mostly of such samples are left out of the statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Array, Mask, constant
from wavefilt.errors import NonFiniteSample

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Segments:
    """A batch of runs without gaps, all of one shape: run i is in trace ``rows[i]`` from sample ``starts[i]`` on.

    The shape is (samples,), or (rows, columns) of panels, which are whole. ``live`` tells which of their samples are
    there, None if all are.
    """

    rows: Index
    starts: Index
    shape: tuple[int, ...]
    live: Mask | None = None

    @property
    def samples(self) -> int:
        """Of one run."""
        return prod(self.shape)

    @property
    def places(self) -> tuple[Index, ...]:
        """Index of the batch in the traces or panels."""
        if len(self.shape) > 1:
            return (self.rows,)
        return self.rows[:, None], self.starts[:, None] + np.arange(self.samples)

    def of(self, x: Array) -> Array:
        """The batch, shape (runs, *shape), C-contiguous; the array itself where it is all of it."""
        return x if (len(self.rows), *self.shape) == x.shape else np.ascontiguousarray(x[self.places])


def whole(x: Array) -> list[Segments]:
    """The one segment of traces or panels (batch, *shape) without gaps; none of an empty batch."""
    rows = len(x)
    return [Segments(np.arange(rows), np.zeros(rows, np.intp), x.shape[1:])] if x.size else []


def segments(traces: Array) -> list[Segments]:
    """The segments between NaN samples of traces (traces, samples), runs of one length in one batch.

    Raises NonFiniteSample, naming the first, if there is an infinite value.
    """
    infinite = np.argwhere(np.isinf(traces))
    if infinite.size:
        hint = f", {len(infinite)} in all; replace them, or set them to NaN to have them treated as gaps"
        trace, sample = infinite[0].tolist()
        raise NonFiniteSample(trace, sample, hint)
    edges = np.diff(np.pad(~np.isnan(traces), ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    lengths = np.nonzero(edges == -1)[1] - starts
    alike = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    return [Segments(rows[runs], starts[runs], (int(lengths[runs[0]]),)) for runs in alike]


def live_samples(panels: Array, finite: bool) -> Mask | None:
    """Which samples of panels (panels, rows, columns) are neither missing nor of a dead row; None if all are.

    Raises ValueError, naming the first, if one is infinite.
    """
    if finite:
        dead = constant(panels)
        return np.repeat(~dead[..., None], panels.shape[2], axis=2) if dead.any() else None
    infinite = np.argwhere(np.isinf(panels))
    if len(infinite):
        panel, row, column = infinite[0].tolist()
        raise ValueError(
            f"infinite value at row {row}, column {column} of section {panel} (counted from 0), {len(infinite)} in "
            "all; replace them, or set them to NaN to have them treated as gaps"
        )
    live = ~np.isnan(panels)
    live[constant(panels, gaps=True)] = False
    return live


def filled(panels: Array, live: Mask) -> tuple[Array, list[Segments]]:
    """Panels (panels, rows, columns) with their gaps filled, those without any in one batch, others each in its own.

    A gap inside a row is interpolated linearly along it, or across the rows where that is nearer. Rows of which nothing
    is there are interpolated between their neighbours, or repeat the only one. A panel without live samples is in no
    batch.
    """
    panels, shape = panels.copy(), panels.shape[1:]
    alive, complete = np.asarray(live.any(axis=(1, 2))), np.asarray(live.all(axis=(1, 2)))
    found = []
    if complete.any():
        own = np.flatnonzero(complete)
        found.append(Segments(own, np.zeros_like(own), shape))
    for i in np.flatnonzero(alive & ~complete):
        _fill(panels[i], live[i])
        found.append(Segments(np.array([i]), np.zeros(1, np.intp), shape, live[i]))
    return panels, found


def _fill(panel: Array, live: Mask) -> None:
    """Fill the gaps of a panel that has live samples."""
    there = np.asarray(live.any(axis=1))
    rows, known = panel[there], live[there]
    if not known.all():
        along, length = _interpolated(rows, known)
        across, height = _interpolated(rows.T, known.T)
        panel[there] = np.where(length <= height.T, along, across.T)
    across, _ = _interpolated(panel.T, there)
    panel[~there] = across.T[~there]


def _interpolated(x: Array, live: Mask) -> tuple[Array, Array]:
    """``x`` (rows, samples) with samples that are not live, of every row or all rows alike, interpolated along it.

    Linearly between the nearest live ones, whose distance is returned too: infinite where there are none.
    """
    n = live.shape[-1]
    place = np.arange(n)
    before = np.maximum.accumulate(np.where(live, place, -1), axis=-1)
    after = np.minimum.accumulate(np.where(live, place, n)[..., ::-1], axis=-1)[..., ::-1]
    first, last = before < 0, after == n  # without a live sample before, or after
    distance = np.where(first & last, np.inf, np.where(first | last, 2 * n, after - before))
    low, high = np.where(first, after % n, before), np.where(last, before, after)
    share = ((place - low) / np.maximum(high - low, 1)).astype(x.real.dtype)
    rows = np.arange(len(x))[:, None]
    start = x[rows, low]
    return start + share * (x[rows, high] - start), distance

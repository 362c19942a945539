"""Parts of traces: chunks with halos for data larger than memory, and segments between gaps for arrays in memory.

`cut` divides traces into `Chunk` objects. `segments` divides traces at their gaps (NaN) and runs of equal samples into
`Segments`. In sections, gaps, runs and dead traces are filled for the transform (`filled`), because the rest of a
section is not rectangular in general; coefficients that lie mostly on such samples are then left out of the statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Array, Mask, constant, equal_runs
from wavefilt.errors import NonFiniteSample

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Part:
    """Samples [start, stop) of a trace, which are computed from [first, last): these samples and a halo around them."""

    first: int
    start: int
    stop: int
    last: int


@dataclass(frozen=True)
class Chunk:
    """Some traces, whole, or one or two parts of one trace, joined to one shorter trace.

    ``samples`` is the length of a whole trace, ``place`` the number of the first trace among all traces that were cut.
    Parts begin and end at multiples of 2^level, or at the end of the trace, so that every coefficient of the joined
    trace is a coefficient of the whole one.
    """

    rows: slice
    samples: int
    parts: tuple[Part, ...]
    place: int = 0

    @property
    def numbers(self) -> range:
        """Numbers of the traces."""
        return range(self.rows.start, self.rows.stop)

    @property
    def length(self) -> int:
        """Samples of the joined trace."""
        return sum(part.last - part.first for part in self.parts)

    def owned(self, spacing: int) -> list[slice]:
        """Return the coefficients, 2^spacing samples apart, that belong to this chunk: each one to a single chunk."""
        ends = self.samples
        return [slice(a >> spacing, None if p.stop == ends else b >> spacing) for a, b, p in self._placed()]

    def kept(self) -> list[tuple[slice, slice]]:
        """Return the samples of the joined trace that are results, and their place in the whole trace."""
        return [(slice(a, b), slice(p.start, p.stop)) for a, b, p in self._placed()]

    def _placed(self) -> Iterator[tuple[int, int, Part]]:
        """Yield each part with the start and end of its own samples in the joined trace."""
        offset = 0
        for part in self.parts:
            yield offset + part.start - part.first, offset + part.stop - part.first, part
            offset += part.last - part.first


def cut(rows: int, samples: int, halo: int | None, level: int, most: int, dead: Mask | None = None) -> list[Chunk]:
    """Divide traces, except the ``dead`` ones, into chunks of at most ``most`` samples.

    Chunks hold whole traces if one fits, or if ``halo`` (`Transform.halo`) is None. Otherwise each trace is divided
    into one chunk with both ends, since a boundary mode may join them, and equal chunks between the ends. A chunk has
    up to five halos of samples even if that is above ``most``: smaller chunks would consist mostly of halo.
    """
    pieces: list[tuple[Part, ...]] = [(Part(0, 0, samples, samples),)]
    together = max(most // samples, 1)
    if samples > most and halo is not None:
        core = max((most - 4 * halo) >> level << level, halo)
        between = max(samples - 2 * halo, 0) // core  # each end keeps a halo at least
        left = (samples - between * core) // 2 >> level << level
        right = left + between * core
        if between:
            ends = (Part(0, 0, left, left + halo), Part(right - halo, right, samples, samples))
            pieces = [ends, *((Part(a - halo, a, a + core, a + core + halo),) for a in range(left, right, core))]
    chunks, place = list[Chunk](), 0
    live = np.ones(rows, bool) if dead is None else ~dead
    edges = np.flatnonzero(np.diff(live, prepend=False, append=False)).tolist()
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        for row in range(first, last, together):
            own = slice(row, min(row + together, last))
            chunks += [Chunk(own, samples, parts, place) for parts in pieces]
            place += own.stop - own.start
    return chunks


@dataclass(frozen=True)
class Segments:
    """Segments without gaps that all have one shape: segment i begins at sample ``starts[i]`` of trace ``rows[i]``.

    The shape is (samples,), or (rows, columns) for sections, which are whole. ``live`` marks the samples of a section
    that are neither in gaps nor in dead traces; None if all are.
    """

    rows: Index
    starts: Index
    shape: tuple[int, ...]
    live: Mask | None = None

    @property
    def samples(self) -> int:
        """Samples of one segment."""
        return prod(self.shape)

    @property
    def places(self) -> tuple[Index, ...]:
        """Index of the segments in the traces or sections."""
        if len(self.shape) > 1:
            return (self.rows,)
        return self.rows[:, None], self.starts[:, None] + np.arange(self.samples)

    def of(self, x: Array) -> Array:
        """Return the samples, shape (segments, *shape), C-contiguous; ``x`` itself if the segments are all of it."""
        return x if (len(self.rows), *self.shape) == x.shape else np.ascontiguousarray(x[self.places])


def whole(x: Array) -> list[Segments]:
    """Return traces or sections (batch, *shape) without gaps as segments; an empty list for an empty batch."""
    rows = len(x)
    return [Segments(np.arange(rows), np.zeros(rows, np.intp), x.shape[1:])] if x.size else []


def segments(traces: Array) -> list[Segments]:
    """Divide traces (traces, samples) at NaN samples and runs of equal samples; segments of one length are together.

    Raises NonFiniteSample, with the place of the first, if there is an infinite value.
    """
    infinite = np.argwhere(np.isinf(traces))
    if infinite.size:
        hint = f", {len(infinite)} in all; replace them, or set them to NaN to have them treated as gaps"
        trace, sample = infinite[0].tolist()
        raise NonFiniteSample(trace, sample, hint)
    edges = np.diff(np.pad(_known(traces), ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    lengths = np.nonzero(edges == -1)[1] - starts
    alike = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    return [Segments(rows[own], starts[own], (int(lengths[own[0]]),)) for own in alike]


def _known(x: Array) -> Mask:
    """Return which samples are neither NaN nor in a run of equal samples."""
    known, runs = ~np.isnan(x), equal_runs(x)
    return known if runs is None else known & ~runs


def live_samples(sections: Array, finite: bool) -> Mask | None:
    """Return which samples of sections (sections, rows, columns) are neither missing, nor muted, nor in a dead row.

    None if all are live. Raises ValueError, with the place of the first, if there is an infinite value.
    """
    if finite:
        dead = constant(sections)
        return np.repeat(~dead[..., None], sections.shape[2], axis=2) if dead.any() else None
    infinite = np.argwhere(np.isinf(sections))
    if len(infinite):
        section, row, column = infinite[0].tolist()
        raise ValueError(
            f"infinite value at row {row}, column {column} of section {section} (counted from 0), {len(infinite)} in "
            "all; replace them, or set them to NaN to have them treated as gaps"
        )
    live = _known(sections)
    live[constant(sections, gaps=True)] = False
    return live


def filled(sections: Array, live: Mask) -> tuple[Array, list[Segments]]:
    """Fill the gaps of sections; those without gaps are together, each of the others is alone.

    A gap inside a row is interpolated linearly along the row, or across the rows if that distance is shorter. Rows
    without live samples are interpolated between their neighbours, or repeat the nearest one. A section without live
    samples is left out.
    """
    sections, shape = sections.copy(), sections.shape[1:]
    alive, complete = np.asarray(live.any(axis=(1, 2))), np.asarray(live.all(axis=(1, 2)))
    found = []
    if complete.any():
        own = np.flatnonzero(complete)
        found.append(Segments(own, np.zeros_like(own), shape))
    for i in np.flatnonzero(alive & ~complete):
        _fill(sections[i], live[i])
        found.append(Segments(np.array([i]), np.zeros(1, np.intp), shape, live[i]))
    return sections, found


def _fill(section: Array, live: Mask) -> None:
    """Fill the gaps of a section that has live samples, in place."""
    there = np.asarray(live.any(axis=1))
    rows, known = section[there], live[there]
    if not known.all():
        along, length = _interpolated(rows, known)
        across, height = _interpolated(rows.T, known.T)
        section[there] = np.where(length <= height.T, along, across.T)
    across, _ = _interpolated(section.T, there)
    section[~there] = across.T[~there]


def _interpolated(x: Array, live: Mask) -> tuple[Array, Array]:
    """Interpolate the samples of ``x`` (rows, samples) that are not live, linearly along each row.

    ``live`` has one row for all rows, or one for each. Also returns the distance between the nearest live samples,
    infinite where there are none.
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

"""Rows cut into chunks whose wavelet coefficients are, where they count, those of the whole rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Mask


@dataclass(frozen=True)
class Part:
    """Samples [start, stop) of a row, denoised from [first, last): those and the halo around them."""

    first: int
    start: int
    stop: int
    last: int


@dataclass(frozen=True)
class Chunk:
    """Some rows, whole, or one or two parts of one row, joined to one shorter row.

    ``samples`` is the length of a whole row, ``place`` the number of the first row among those cut. Parts begin and end
    at multiples of 2^level, or at the row's end, so that every coefficient of the shorter row has its place among those
    of the whole one.
    """

    rows: slice
    samples: int
    parts: tuple[Part, ...]
    place: int = 0

    @property
    def count(self) -> int:
        """How many rows."""
        return int(self.rows.stop - self.rows.start)

    @property
    def length(self) -> int:
        """Samples of the joined row."""
        return sum(part.last - part.first for part in self.parts)

    def owned(self, spacing: int) -> list[slice]:
        """Which coefficients, 2^spacing samples apart, belong to this chunk: over all chunks all of a row's, once."""
        ends = self.samples
        return [slice(a >> spacing, None if p.stop == ends else b >> spacing) for a, b, p in self._placed()]

    def placed(self, spacing: int, margin: int = 0) -> list[tuple[slice, int]]:
        """Which such coefficients are of each part, and the place of the first among those of a whole row.

        ``margin`` of them lie before the first that is counted; they are of the first part.
        """
        found, offset = [], 0
        for part in self.parts:
            stop = offset + part.last - part.first
            begin = (offset >> spacing) + margin if offset else 0
            own = slice(begin, None if stop == self.length else (stop >> spacing) + margin)
            found.append((own, (part.first >> spacing) - (0 if offset else margin)))
            offset = stop
        return found

    def kept(self) -> list[tuple[slice, slice]]:
        """Which samples of the joined row are results, and their place in the whole row."""
        return [(slice(a, b), slice(p.start, p.stop)) for a, b, p in self._placed()]

    def _placed(self) -> Iterator[tuple[int, int, Part]]:
        """The parts with the beginning and end of their own samples in the joined row."""
        offset = 0
        for part in self.parts:
            yield offset + part.start - part.first, offset + part.stop - part.first, part
            offset += part.last - part.first


def cut(rows: int, samples: int, halo: int | None, level: int, most: int, dead: Mask | None = None) -> list[Chunk]:
    """Chunks of ``most`` samples or fewer that together are ``rows`` rows of ``samples``, but those that are ``dead``.

    Whole rows where one fits, or where there is no `Transform.halo`. Else, of each row, first both its ends in one,
    since a boundary mode may join them; then what lies between them, cut evenly, where coefficients near a cut belong
    to a neighbour. A chunk has up to five halos of samples even if that is above ``most``: less would be hardly more
    than halo.
    """
    pieces: list[tuple[Part, ...]] = [(Part(0, 0, samples, samples),)]
    together = max(most // samples, 1)
    if samples > most and halo is not None:
        core = max((most - 4 * halo) >> level << level, halo)
        between = max(samples - 2 * halo, 0) // core  # each of the ends keeps a halo at least
        left = (samples - between * core) // 2 >> level << level
        right = left + between * core
        if between:
            ends = (Part(0, 0, left, left + halo), Part(right - halo, right, samples, samples))
            pieces = [ends, *((Part(a - halo, a, a + core, a + core + halo),) for a in range(left, right, core))]
    chunks, place = list[Chunk](), 0
    for run in [range(rows)] if dead is None else runs(~dead):
        for row in run[::together]:
            own = slice(row, min(row + together, run.stop))
            chunks += [Chunk(own, samples, parts, place) for parts in pieces]
            place += own.stop - own.start
    return chunks


def runs(live: Mask) -> list[range]:
    """The runs of neighbouring rows that are live."""
    edges = np.flatnonzero(np.diff(live, prepend=False, append=False))
    return [range(first, last) for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]

"""Rows of a file for `wavefilt.engine`: read ahead, checked in the first pass, written behind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from wavefilt import engine
from wavefilt.arrays import Array
from wavefilt.chunks import Chunk
from wavefilt.engine import check_size
from wavefilt.errors import NonFiniteSample
from wavefilt.io.sources import Source
from wavefilt.options import Options
from wavefilt.outofcore.memory_budget import Chunks, Plan
from wavefilt.outofcore.prefetch import Ahead, Behind, Energy, Piece, copied, pieces
from wavefilt.statistics.mergeable import State, Tally
from wavefilt.statistics.radix_select import Interval
from wavefilt.statistics.summation import RowTally, around_median
from wavefilt.trend import of_rows

WINDOWS, WINDOW = 256, 8192
"""How many stretches of how many samples suggest where the medians are."""
SHARE = 64
"""Parts of the samples of which those stretches are one at most."""


class FileRows(engine.Rows):
    """Rows in a file, and the file that takes the result."""

    def __init__(self, source: Source, plan: Chunks, method: Options, ahead: Ahead, behind: Behind, energy: Energy):
        super().__init__(np.empty((0, 0), ahead.dtype), np.empty((0, 0)), plan.backend)
        self.shape = source.shape
        self._source, self._plan, self._method = source, plan, method
        self._ahead, self._behind, self._energy = ahead, behind, energy
        self._seen: set[tuple[int, int]] = set()
        self._taken = self.x

    def run(self, group: Sequence[Chunk], job: engine.Job, begin: engine.Begin[engine.Result]) -> list[engine.Result]:
        self._ahead.expect([_pieces(chunk) for chunk in group])
        return super().run(group, job, begin)

    def take(self, chunk: Chunk) -> Array:
        if self._taken.shape[1] != chunk.length:
            self.backend.release()  # what fitted chunks of another length
        self._taken = self._ahead.take(_pieces(chunk))
        place = chunk.rows.start, chunk.parts[0].start
        if place not in self._seen:
            self._seen.add(place)
            check(self._taken, _pieces(chunk), self.backend.peak(self._taken), self._plan, self._method)
        return self._taken

    def taken(self, chunk: Chunk) -> Array:
        return self._taken

    def put(self, chunk: Chunk, y: Array) -> None:
        for own, place in chunk.kept():
            self._energy.add(self._taken[:, own], y[:, own])
            self._behind.put(chunk.rows, place.start, y[:, own])

    def read(self, row: int, first: int, last: int) -> Array:
        return self._ahead.read(row, first, last)

    def leave(self, row: int, written: bool) -> None:
        own = pieces(range(row, row + 1), self.shape[1], self._ahead.size)
        for (_, first, _), x in copied(own, self._ahead, self._behind):
            infinite = np.flatnonzero(np.isinf(x[0]))
            if infinite.size:
                raise NonFiniteSample(row, first + infinite[0], "; replace it")
            if not written:
                self._energy.add(x, x)

    def tally(self, state: State) -> Tally:
        return RowTally(state, self.backend.summation)

    @property
    def bins(self) -> int:
        return self._plan.bins

    @property
    def whole(self) -> int:
        return self.backend.summation.whole

    def guesses(self, job: engine.Job, group: Sequence[Chunk], levels: Sequence[int]) -> Mapping[int, Interval]:
        sample = self._sample(job, group)
        return {level: around_median(sample[level - 1], self.bins) for level in levels}

    def _sample(self, job: engine.Job, group: Sequence[Chunk]) -> list[Array]:
        """Some details of every level of a group, from stretches that lie evenly over its samples."""
        # each row's first samples are in one chunk
        rows = np.concatenate([np.arange(c.rows.start, c.rows.stop) for c in group if c.parts[0].start == 0])
        samples, taps = self.shape[1], job.analysis.taps
        length = min(max(WINDOW, 8 * (job.halo or 0)), samples)
        number = min(max(len(rows) * samples // (SHARE * length), 8), WINDOWS)
        found = []
        for at in (np.arange(number) + 0.5) / number * len(rows):
            first = int(at % 1 * (samples - length))
            x = self.read(int(rows[int(at)]), first, first + length)[None]
            x = x if job.options.trend is None else of_rows(x, job.options.trend).removed(x)
            details = job.options.counted(
                self.backend.decompose(x, job.analysis).coefficients, job.analysis, x.shape[1:]
            )
            found.append([d[0, taps:-taps] if d.shape[1] > 4 * taps else d[0] for d in details])  # without the ends
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def _pieces(chunk: Chunk) -> list[Piece]:
    return [(chunk.rows, part.first, part.last) for part in chunk.parts]


def check(x: Array, pieces: Sequence[Piece], peak: float, plan: Plan, method: Options) -> None:
    """Raise ValueError for samples of these pieces, side by side, that are not finite or overflow in the transform."""
    if math.isfinite(peak):
        return check_size(x, peak, plan.level, method)
    row, column = np.argwhere(~np.isfinite(x))[0].tolist()
    value, trace = x[row, column], pieces[0][0].start + row
    for _, first, last in pieces:
        if column < last - first:
            break
        column -= last - first
    if np.isinf(value):
        raise NonFiniteSample(trace, first + column, "; replace it")
    hint = (
        ": the segments between gaps are denoised in memory, which takes "
        f"max_memory={plan.whole_memory!r} here; raise it, or fill the gaps"
    )
    raise NonFiniteSample(trace, first + column, hint, "NaN")

"""Rows of a file for `wavefilt.chunking.passes`: read ahead, checked in the first pass, written behind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.interface import Pyramid
from wavefilt.chunking import passes
from wavefilt.chunking.chunks import Chunk, halo
from wavefilt.io.sources import Source
from wavefilt.method import Method
from wavefilt.outofcore.memory_budget import Plan
from wavefilt.outofcore.prefetch import Ahead, Behind, Energy, Piece
from wavefilt.statistics.chunked import ChunkedStatistics
from wavefilt.statistics.interface import Statistics
from wavefilt.statistics.reproducible import OrderedStatistics

WINDOWS, WINDOW = 256, 8192
"""How many stretches of how many samples suggest where the medians are."""
SHARE = 64
"""Parts of the samples of which those stretches are one at most."""


class StreamedRows(passes.Rows):
    """Rows in a file, and the file that takes the result."""

    def __init__(self, source: Source, plan: Plan, ahead: Ahead, behind: Behind, energy: Energy,
                 check: Callable[[float], None]) -> None:  # fmt: skip
        """``check`` raises ValueError for samples too large for the transform."""
        super().__init__(np.empty((0, 0), ahead.dtype), None, plan.backend)
        self.shape = source.shape
        self._source, self._plan, self._ahead, self._behind, self._energy = source, plan, ahead, behind, energy
        self._check = check
        self._seen: set[tuple[int, int]] = set()
        self._taken: NDArray[Any] = np.empty((0, 0), ahead.dtype)

    def expect(self, chunks: Sequence[Chunk]) -> None:
        self._ahead.expect([self._pieces(chunk) for chunk in chunks])

    def take(self, chunk: Chunk) -> NDArray[Any]:
        if self._taken.shape[1] != chunk.length:
            self._plan.release()  # what fitted chunks of another length
        self._taken = self._ahead.take(self._pieces(chunk))
        place = chunk.rows.start, chunk.parts[0].start
        if place not in self._seen:
            self._seen.add(place)
            peak = self.backend.peak(self._taken)
            if not math.isfinite(peak):
                refuse(self._taken, self._pieces(chunk), self._plan.whole_spelled)
            self._check(peak)
        return self._taken

    @staticmethod
    def _pieces(chunk: Chunk) -> list[Piece]:
        return [(chunk.rows, part.first, part.last) for part in chunk.parts]

    def put(self, chunk: Chunk, y: NDArray[Any]) -> None:
        for own, place in chunk.kept():
            self._energy.add(self._taken[:, own], y[:, own])
            self._behind.put(chunk.rows, place.start, y[:, own])

    def leave(self, row: int) -> None:
        size, samples = self._ahead.size, self.shape[1]
        parts: list[list[Piece]] = [[(slice(row, row + 1), a, min(a + size, samples))] for a in range(0, samples, size)]
        self._ahead.expect(parts)
        for part in parts:
            x = self._ahead.take(part)
            self._check_finite(x, row, part[0][1])
            self._behind.put(*part[0][:2], x)
            self._behind.finish()  # before the buffer is read into again

    def _check_finite(self, x: NDArray[Any], row: int, first: int) -> None:
        infinite = np.flatnonzero(np.isinf(x[0]))
        if infinite.size:
            raise ValueError(
                f"infinite value at trace {row}, sample {first + infinite[0]} (counted from 0); replace it"
            )

    def statistics(self, group: list[Chunk], method: Method, level: int, visit: passes.Visit) -> Statistics:
        """As of whole rows: every part of the details is told where in them it lies."""
        base = passes.Rows.statistics(self, group, method, level, visit)
        assert isinstance(base, ChunkedStatistics)
        counts, first = self.counts(group, method, level), group[0].rows.start
        lengths = counts // (group[-1].rows.stop - first)

        def show(look: Callable[[int, int, NDArray[Any]], None]) -> None:
            def place(chunk: Chunk, pyramid: Pyramid) -> None:
                finest_first = self.coefficients(pyramid)[:0:-1]
                for i, details in enumerate(finest_first):
                    start = (chunk.rows.start - first) * int(lengths[i])
                    for own, part in zip(chunk.owned(i + 1), chunk.parts, strict=True):
                        look(i, start + (part.start >> i + 1), details[:, own].reshape(-1))

            visit(place)

        plan = self._plan
        return OrderedStatistics(
            counts, self.dtype, base.visit, self.tally, self.to_host, base.pooled, show=show, adding=plan.adding,
            gathered=plan.gathered, sample=lambda: self._sample(group, method, level), bins=plan.bins,
        )  # fmt: skip

    def _sample(self, group: list[Chunk], method: Method, level: int) -> list[NDArray[Any]]:
        """Some details of every level of a group, from stretches that lie evenly over its samples."""
        rows, samples = range(group[0].rows.start, group[-1].rows.stop), self.shape[1]
        length = min(max(WINDOW, 8 * halo(method.bank.dec_len, level)), samples)
        number = min(max(len(rows) * samples // (SHARE * length), 8), WINDOWS)
        taps, found = method.bank.dec_len, []
        self._ahead.expect([])
        for at in (np.arange(number) + 0.5) / number * len(rows):
            x = np.empty((1, length), self._ahead.dtype)
            row, first = int(at), int(at % 1 * (samples - length))
            self._ahead.call(partial(self._source.read, slice(row, row + 1), first, x))
            details = self.backend.decompose(x, method.bank, method.mode, level).coefficients[:0:-1]
            found.append([d[0, taps:-taps] if d.shape[1] > 4 * taps else d[0] for d in details])  # without the ends
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def refuse(x: NDArray[Any], pieces: Sequence[Piece], whole: str) -> None:
    """Raise ValueError that names a sample of these pieces side by side that is not finite.

    ``whole`` is the memory in which gaps could be cut out.
    """
    row, column = np.argwhere(~np.isfinite(x))[0].tolist()
    value, trace = x[row, column], pieces[0][0].start + row
    for _, first, last in pieces:
        if column < last - first:
            break
        column -= last - first
    where = f"trace {trace}, sample {first + column} (counted from 0)"
    if np.isinf(value):
        raise ValueError(f"infinite value at {where}; replace it")
    raise ValueError(
        f"NaN at {where}: the pieces between gaps are denoised in memory, which takes max_memory={whole!r} here; "
        "raise it, or fill the gaps"
    )

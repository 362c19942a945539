"""Reading ahead and writing behind: while a part of a file is computed, the next is read and the last written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array
from wavefilt.io.sources import Source, Target
from wavefilt.statistics.mergeable import Summation

Piece = tuple[slice, int, int]
"""Rows, and their samples first to last."""
BLOCK = 1 << 16
"""Samples whose energy is summed at a time."""
TINIEST = 1e-300
"""A sample whose reciprocal is finite."""


class Ahead:
    """Parts of a source, each of one piece or more side by side, read into two buffers in turn."""

    def __init__(
        self, source: Source, executor: ThreadPoolExecutor, buffers: Sequence[Array], passed: Callable[[int], None]
    ) -> None:
        """Two buffers hold the largest part each; ``passed`` is called with the number of samples of every part."""
        self.dtype, self.size = buffers[0].dtype, buffers[0].size
        self._source, self._executor, self._passed = source, executor, passed
        self._buffers = list(buffers)
        self._expected: list[Sequence[Piece]] = []
        self._next: tuple[Sequence[Piece], Future[Array]] | None = None

    def expect(self, parts: Sequence[Sequence[Piece]]) -> None:
        """Announce that these will be taken next, in this order."""
        self._expected = list(reversed(parts))

    def take(self, part: Sequence[Piece]) -> Array:
        """The samples (rows, samples), C-contiguous; they stay until the next part is taken."""
        if self._next is None or self._next[0] != part:
            if self._next is not None:
                self._next[1].result()  # read for nothing
            self._begin(part)
        assert self._next is not None
        taken = self._next[1].result()
        self._next = None
        if self._expected and self._expected[-1] == part:
            self._expected.pop()
        if self._expected:
            self._begin(self._expected[-1])
        self._passed(taken.size)
        return taken

    def read(self, row: int, first: int, last: int) -> Array:
        """Samples of a row, between the parts: none is expected any more."""
        x: Array = np.empty((1, last - first), self.dtype)
        self.expect([])
        self._executor.submit(self._source.read, slice(row, row + 1), first, x).result()
        return x.ravel()

    def _begin(self, part: Sequence[Piece]) -> None:
        self._buffers.reverse()
        self._next = part, self._executor.submit(self._read, part, self._buffers[0])

    def _read(self, part: Sequence[Piece], buffer: Array) -> Array:
        rows, length = part[0][0], sum(last - first for _, first, last in part)
        out = buffer[: (rows.stop - rows.start) * length].reshape(-1, length)
        at = 0
        for own, first, last in part:
            self._source.read(own, first, out[:, at : at + last - first])
            at += last - first
        return out


class Behind:
    """Results on their way into the target, one part at a time."""

    def __init__(self, target: Target, executor: ThreadPoolExecutor) -> None:
        self._target, self._executor = target, executor
        self._last: Future[None] | None = None

    def put(self, rows: slice, first: int, values: Array) -> None:
        """Write values that nobody changes any more; raises what went wrong with those before."""
        self.finish()
        self._last = self._executor.submit(self._target.write, rows, first, values)

    def finish(self) -> None:
        """Wait until all is written."""
        last, self._last = self._last, None
        if last is not None:
            last.result()


def pieces(rows: range, samples: int, size: int) -> list[Piece]:
    """Rows in pieces of at most ``size`` samples: some whole rows each, or parts of one."""
    if samples <= size:
        together = size // samples
        return [(slice(a, min(a + together, rows.stop)), 0, samples) for a in rows[::together]]
    return [(slice(row, row + 1), a, min(a + size, samples)) for row in rows for a in range(0, samples, size)]


def copied(parts: Sequence[Piece], ahead: Ahead, behind: Behind) -> Iterator[tuple[Piece, Array]]:
    """Parts with their samples, which are written as they came."""
    ahead.expect([[part] for part in parts])
    for part in parts:
        x = ahead.take([part])
        yield part, x
        behind.put(part[0], part[1], x)
        behind.finish()  # before the buffer is read into again


class Energy:
    """Σ |x - y|² over Σ |x|², of samples that pass by; gaps are left out."""

    def __init__(self, summation: Summation) -> None:
        self._scale, self._of = 0.0, summation.energies
        self._sums = np.zeros(2)

    @property
    def removed(self) -> float:
        return float(self._sums[0] / self._sums[1]) if self._sums[1] > 0 else 0.0

    def add(self, x: Array, y: Array) -> None:
        """Samples and denoised ones, of one shape."""
        if not self._scale:
            peak = float(np.nanmax(np.abs(x[:1, :BLOCK]), initial=0))
            self._scale = 1 / peak if np.isfinite(peak) and peak > TINIEST else 1.0  # squares of any samples then fit
        blocks = [(row, a) for row in range(len(x)) for a in range(0, x.shape[1], BLOCK)]
        sums = np.zeros((len(blocks), 2))

        def work(begin: int, end: int) -> None:
            for i in range(begin, end):
                row, a = blocks[i]
                before, after = x[row, a : a + BLOCK], y[row, a : a + BLOCK]
                sums[i] = self._of(before, after, self._scale)
                if np.isnan(sums[i, 1]):
                    known = ~np.isnan(before)
                    sums[i] = self._of(before[known], after[known], self._scale)

        threads.parallel(work, len(blocks), max(BLOCK // x.shape[1], 1))
        self._sums += sums.sum(axis=0)

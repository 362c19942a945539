"""Denoising rows chunk by chunk, with the result of denoising them whole.

Chunks go to the backend several times: once for every look at the details that the statistics take, and once to be
reconstructed. Coefficients are not kept in between, unless there is one chunk only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.interface import Backend, Pyramid
from wavefilt.chunking.chunks import Chunk, cut
from wavefilt.method import Method
from wavefilt.statistics.chunked import ChunkedStatistics, Details, HostTally, Tally, not_finite
from wavefilt.statistics.interface import Measured, Statistics
from wavefilt.thresholding.block_shrinkage import Blocks
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.wavelets.filters import detail_lengths

Visit = Callable[[Callable[[Chunk, Pyramid], None]], None]


class Rows:
    """Rows (traces, samples) in host memory, and the array ``out`` of that shape and dtype that takes the result.

    Both are only ever sliced. A backend with memory of its own brings a class like this for its arrays.
    """

    tally: type[Tally] = HostTally
    cheap = False
    """Whether a further look at chunks costs little, their details being kept."""
    elsewhere = False
    """Whether `show` has even a single chunk looked at by another thread."""

    def __init__(self, x: Any, out: Any, backend: Backend) -> None:
        self.x, self.out, self.backend = x, out, backend
        self.shape: tuple[int, int] = tuple(x.shape)
        self.itemsize: int = x.dtype.itemsize
        self.dtype: np.dtype[Any] = np.empty(0, x.dtype).real.dtype

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.itemsize

    def expect(self, chunks: Sequence[Chunk]) -> None:
        """Told that these chunks will be taken, in this order."""

    def decompose(self, chunk: Chunk, method: Method, level: int) -> Pyramid:
        """The coefficients of a chunk."""
        return self.backend.decompose(self.take(chunk), method.bank, method.mode, level)

    def show(
        self, group: Sequence[Chunk], decompose: Callable[[Chunk], Pyramid], look: Callable[[Chunk, Pyramid], None]
    ) -> None:
        """Have every chunk of a group looked at, in any order; a look may be another thread's."""
        self.expect(group)
        for chunk in group:
            look(chunk, decompose(chunk))  # not named: its memory is free for the next

    def take(self, chunk: Chunk) -> Any:
        """The samples of a chunk, C-contiguous, shape (rows, chunk.length)."""
        parts = [self.x[chunk.rows, part.first : part.last] for part in chunk.parts]
        return np.concatenate(parts, axis=1) if len(parts) > 1 else np.ascontiguousarray(parts[0])

    def put(self, chunk: Chunk, y: Any) -> None:
        """Write what is to be kept of a denoised chunk."""
        for own, place in chunk.kept():
            self.out[chunk.rows, place] = y[:, own]

    def leave(self, row: int) -> None:
        """Write a row as it came."""
        self.out[row] = self.x[row]

    def coefficients(self, pyramid: Pyramid) -> tuple[Any, ...]:
        """(cA_n, cD_n, ..., cD_1) where `tally` takes them."""
        return pyramid.coefficients

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage) -> Any:
        """As the backend does, into memory from which `put` takes it."""
        return self.backend.reconstruct(pyramid, shrinkage)

    def to_host(self, details: Any) -> NDArray[Any]:
        """Details in host memory."""
        return np.asarray(details)

    def statistics(self, group: list[Chunk], method: Method, level: int, visit: Visit) -> Statistics:
        """Of the details of a group of chunks, which ``visit`` shows as often as it is called."""

        def visit_details(look: Callable[[Details], None]) -> None:
            def owned(chunk: Chunk, pyramid: Pyramid) -> None:
                finest_first = self.coefficients(pyramid)[:0:-1]
                look([[details[:, part] for part in chunk.owned(i)] for i, details in enumerate(finest_first, 1)])

            visit(owned)

        counts, pooled = self.counts(group, method, level), lambda details: self.pooled(details, method)
        return ChunkedStatistics(counts, self.dtype, visit_details, self.tally, self.to_host, pooled, cheap=self.cheap)

    def counts(self, group: list[Chunk], method: Method, level: int) -> NDArray[np.int64]:
        """Details of a group of chunks at each level."""
        lengths = detail_lengths(self.shape[1], method.bank.dec_len, method.mode, level)
        return np.array(lengths, np.int64) * np.int64(group[-1].rows.stop - group[0].rows.start)

    def pooled(self, details: NDArray[Any], like: Method) -> Statistics:
        """Statistics of details (1, coefficients) in host memory."""
        pyramid = Pyramid((details[:, :0], details), like.bank, like.mode, 2 * details.size)
        return self.backend.statistics([pyramid], "record")


def denoise(rows: Rows, method: Method, level: int, limit: int, report: bool = False) -> Measured | None:
    """Denoise rows as `wavefilt.denoise` does, and tell what was measured; None if a sample is not finite.

    Parameters
    ----------
    rows : Rows
        Samples, a backend, and where the result goes. That is partly written where the answer is None.
    method, level : Method, int
        How to denoise, and to which level, at least 1.
    limit : int
        Bytes of samples in a chunk, or a few times the filter's reach if that is more (`wavefilt.chunking.chunks.cut`).
        The backend takes some four times as much for its work, medians of float64 another 16 MiB a level.
    report : bool
        Whether to measure the power of the details, and the noise even if the thresholds do not depend on it.

    Every coefficient is computed from the samples, and in the manner, of the whole row, and medians are exact. So
    noise, thresholds and samples are those of the whole rows bit for bit where the backend computes a coefficient
    the same way wherever it lies; thresholds that depend on mean squares are to rounding.

    Raises
    ------
    MemoryError
        If rule "sure", for which all details of a level are sorted, finds no host memory for them.
    """
    if method.fixed_thresholds and not report:
        method = replace(method, sigma=0.0)  # nobody asks for the noise, which is a look or more at all details
    count, samples = rows.shape
    function = method.function(samples)
    chunks = cut(count, samples, method.bank.dec_len, level, limit // rows.itemsize)
    pooled = method.scope == "record"
    groups = [chunks] if pooled else [list(group) for _, group in groupby(chunks, lambda chunk: chunk.rows.start)]
    sigma, thresholds, power = np.empty((3, level, count))
    for group in groups:
        own = slice(group[0].rows.start, group[-1].rows.stop)
        visit, statistics = _seen(rows, group, method, level)
        found = method.thresholds(statistics, samples * (count if pooled else 1))
        sigma[:, own], thresholds[:, own] = found
        if report:
            power[:, own] = statistics.mean_square()
        if isinstance(function, Blocks) and len(group) > 1:
            raise ValueError(
                f"rule={method.rule!r} shrinks neighbouring details together: it needs whole traces in memory"
            )
        if not np.isfinite(found).all() or not _finish(rows, visit, Shrinkage(function, thresholds, sigma)):
            return None
        for row in np.flatnonzero(~thresholds[:, own].any(axis=0)):
            rows.leave(own.start + int(row))
    return Measured(sigma, thresholds, power if report else None)


def _seen(rows: Rows, group: list[Chunk], method: Method, level: int) -> tuple[Visit, Statistics]:
    """A function that shows the chunks of a group, decomposed, one after the other, and the statistics of all."""

    def decompose(chunk: Chunk) -> Pyramid:
        return rows.decompose(chunk, method, level)

    if len(group) == 1 and not rows.elsewhere:
        pyramid = decompose(group[0])
        return lambda look: look(group[0], pyramid), rows.backend.statistics([pyramid], method.scope)

    def visit(look: Callable[[Chunk, Pyramid], None]) -> None:
        rows.show(group, decompose, look)

    return visit, rows.statistics(group, method, level, visit)


def _finish(rows: Rows, visit: Visit, shrinkage: Shrinkage) -> bool:
    """Write the chunks denoised; whether all samples were finite, as every one has a share in an approximation.

    The shrinkage is of all rows.
    """
    tally = rows.tally(rows.dtype, [not_finite(rows.dtype)], 0)

    def write(chunk: Chunk, pyramid: Pyramid) -> None:
        tally.count(0, rows.coefficients(pyramid)[0])
        rows.put(chunk, rows.reconstruct(pyramid, shrinkage.of_rows(chunk.rows)))

    visit(write)
    return not tally.counts()[0].any()

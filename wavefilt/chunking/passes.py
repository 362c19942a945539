"""Denoising rows chunk by chunk, with the result of denoising them whole.

Chunks go to the backend several times: once for every pass over the details that the statistics take, and once to be
reconstructed. Coefficients are not kept in between, unless there is one chunk only. A `Rows` says where the chunks
come from, where they go, and who makes a pass over them; what a pass counts is the same for all of them
(`wavefilt.statistics.mergeable`), and for the blocks of a Dask array, which do the same `Job` in tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from wavefilt.arrays import Array, Counts, DType
from wavefilt.chunking.chunks import Chunk, cut
from wavefilt.method import Method
from wavefilt.statistics.interface import Measured, Statistics
from wavefilt.statistics.mergeable import Details, HostTally, PassStatistics, Run, State, Tally, Worker
from wavefilt.statistics.radix_select import Search
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid
from wavefilt.wavelets.filters import detail_lengths

if TYPE_CHECKING:
    from wavefilt.backends.interface import Backend
    from wavefilt.transforms import Pyramid

BINS = {4: 1 << 16, 8: 1 << 21}
"""Of a table for magnitudes of so many bytes: two passes find a float32, three a float64."""

Visit = Callable[[Chunk, "Pyramid"], None]
"""What is done with a chunk and its coefficients."""
Result = TypeVar("Result")
Begin = Callable[[], tuple[Visit, Callable[[], Result]]]
"""Begins one thread's share of a pass: what it does with every chunk, and what gives the result of all of them."""


@dataclass(frozen=True)
class Job:
    """What is done with every chunk of rows of so many samples: a method, to a level of at least 1."""

    method: Method
    level: int
    samples: int

    @cached_property
    def lengths(self) -> Counts:
        """Details of a whole row at each level, finest first."""
        bank, mode = self.method.bank, self.method.mode
        return np.array(detail_lengths(self.samples, bank.dec_len, mode, self.level), np.int64)

    def decompose(self, backend: Backend, x: Array) -> Pyramid:
        """The coefficients of a chunk's samples."""
        return backend.decompose(x, self.method.analysis(self.level))

    def details(self, chunk: Chunk, finest_first: Sequence[Array], row: int = 0) -> Details:
        """Those details that are the chunk's own, and their places in a group whose first row is ``row``."""
        found = []
        for i, (details, length) in enumerate(zip(finest_first, self.lengths.tolist(), strict=True), 1):
            starts = [(chunk.rows.start - row) * length + (part.start >> i) for part in chunk.parts]
            found.append([(start, details[:, own]) for start, own in zip(starts, chunk.owned(i), strict=True)])
        return found


class Rows:
    """Rows (traces, samples) in host memory, and the array ``out`` of that shape and dtype that takes the result.

    Both are only ever sliced. Rows elsewhere, and a backend with memory of its own, have a class derived from this.
    """

    summing = True
    """Whether the first pass sums squares even if nobody has asked: a further pass costs more."""
    elsewhere = False
    """Whether `run` has even a single chunk denoised by another thread."""

    def __init__(self, x: Array, out: Array, backend: Backend) -> None:
        self.x, self.out, self.backend = x, out, backend
        self.shape: tuple[int, int] = (x.shape[0], x.shape[1])
        self.itemsize: int = x.dtype.itemsize
        self.dtype: DType = np.empty(0, x.dtype).real.dtype

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.itemsize

    def run(self, group: Sequence[Chunk], job: Job, begin: Begin[Result]) -> list[Result]:
        """Make a pass over the chunks of a group, in any order; the results of the threads that do, in theirs."""
        visit, result = begin()
        for chunk in group:
            visit(chunk, self.decompose(chunk, job))  # not named: its memory is free for the next
        return [result()]

    def decompose(self, chunk: Chunk, job: Job) -> Pyramid:
        """The coefficients of a chunk."""
        return job.decompose(self.backend, self.take(chunk))

    def take(self, chunk: Chunk) -> Array:
        """The samples of a chunk, C-contiguous, shape (rows, chunk.length)."""
        parts = [self.x[chunk.rows, part.first : part.last] for part in chunk.parts]
        return np.concatenate(parts, axis=1) if len(parts) > 1 else np.ascontiguousarray(parts[0])

    def put(self, chunk: Chunk, y: Array) -> None:
        """Write what is to be kept of a denoised chunk."""
        for own, place in chunk.kept():
            self.out[chunk.rows, place] = y[:, own]

    def leave(self, row: int) -> None:
        """Write a row as it came."""
        self.out[row] = self.x[row]

    def coefficients(self, pyramid: Pyramid) -> tuple[Array, ...]:
        """(cA_n, cD_n, ..., cD_1) where `tally` and `finite` take them."""
        return pyramid.coefficients

    def finite(self, coefficients: Array) -> bool:
        """Whether all of these are finite."""
        return bool(np.isfinite(np.abs(coefficients)).all())

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage) -> Array:
        """As the backend does, into memory from which `put` takes it."""
        return self.backend.reconstruct(pyramid, shrinkage)  # type: ignore[no-any-return]

    def to_host(self, details: Array) -> Array:
        """Details in host memory."""
        return np.asarray(details)

    def tally(self, state: State) -> Tally:
        """What counts details where they are."""
        return HostTally(state, self.backend.summation.tabulate)

    def statistics(self, job: Job, group: Sequence[Chunk], run: Run) -> PassStatistics:
        """Of the details of a group of chunks, by passes that ``run`` makes."""
        return PassStatistics(self.state(job, group, BINS[self.dtype.itemsize]), run, self.tally, self.to_host)

    def state(self, job: Job, group: Sequence[Chunk], bins: int) -> State:
        """Before the first pass over a group of chunks."""
        counts = job.lengths * np.int64(group[-1].rows.stop - group[0].rows.start)
        return State(counts, 1, self.dtype, Search({}, bins, self.dtype.itemsize), self.summing)


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
    ValueError
        For a rule of blocks, where a trace does not fit in one chunk.
    MemoryError
        If a rule sorts all details of a level, and they do not fit in host memory.
    """
    if method.fixed_thresholds and not report:
        method = replace(method, sigma=0.0)  # nobody asks for the noise, which is a pass or more over all details
    count, samples = rows.shape
    job, function = Job(method, level, samples), method.function(samples)
    chunks = cut(count, samples, method.bank.dec_len, level, limit // rows.itemsize)
    pooled = method.scope == "record"
    groups = [chunks] if pooled else [list(group) for _, group in groupby(chunks, lambda chunk: chunk.rows.start)]
    sigma, thresholds, power = np.empty((3, level, count))
    for group in groups:
        own = slice(group[0].rows.start, group[-1].rows.stop)
        run, statistics = _measured(rows, job, group)
        found = method.thresholds(statistics, samples * (count if pooled else 1))
        sigma[:, own], thresholds[:, own] = found
        if report:
            power[:, own] = statistics.mean_square()
        if method.spec.blocks and len(group) > 1:
            raise ValueError(
                f"rule={method.rule!r} shrinks neighbouring details together: it needs whole traces in memory"
            )
        shrinkage = Shrinkage(function, thresholds, sigma)
        if not np.isfinite(found).all() or not all(run(partial(_writing, rows, shrinkage))):
            return None
        for row in np.flatnonzero(~thresholds[:, own].any(axis=0)):
            rows.leave(own.start + int(row))
    return Measured(sigma, thresholds, power if report else None)


def _measured(rows: Rows, job: Job, group: Sequence[Chunk]) -> tuple[Callable[[Begin[bool]], list[bool]], Statistics]:
    """What makes another pass over a group of chunks, and the statistics of their details."""
    if len(group) == 1 and not rows.elsewhere:
        (chunk,) = group
        pyramid = rows.decompose(chunk, job)

        def again(begin: Begin[bool]) -> list[bool]:
            visit, result = begin()
            visit(chunk, pyramid)
            return [result()]

        return again, rows.backend.statistics([pyramid], job.method.scope)

    def count(begin: Callable[[], Worker[Result]]) -> list[Result]:
        return rows.run(group, job, partial(_counting, rows, job, group[0].rows.start, begin))

    return partial(rows.run, group, job), rows.statistics(job, group, count)


def _counting(
    rows: Rows, job: Job, first: int, begin: Callable[[], Worker[Result]]
) -> tuple[Visit, Callable[[], Result]]:
    """Adding the details of chunks of a group, whose first row is given, to a worker."""
    worker = begin()

    def add(chunk: Chunk, pyramid: Pyramid) -> None:
        worker.add(job.details(chunk, rows.coefficients(pyramid)[:0:-1], first))

    return add, worker.result


def _writing(rows: Rows, shrinkage: Shrinkage) -> tuple[Visit, Callable[[], bool]]:
    """Writing chunks denoised; whether all samples were finite, as every one has a share in an approximation.

    The shrinkage is of all rows.
    """
    finite = []

    def write(chunk: Chunk, pyramid: Pyramid) -> None:
        finite.append(rows.finite(rows.coefficients(pyramid)[0]))
        rows.put(chunk, rows.reconstruct(pyramid, shrinkage.of_rows(chunk.rows)))

    return write, lambda: all(finite)

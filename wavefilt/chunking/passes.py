"""Denoising rows chunk by chunk, with the result of denoising them whole.

Chunks go to the backend several times: once for every pass over the details that the statistics take, and once to be
reconstructed. Coefficients are not kept in between, unless there is one chunk only. A `Rows` says where the chunks
come from, where they go, and who makes a pass over them; what a pass counts is the same for all of them
(`wavefilt.statistics.mergeable`), and for the blocks of a Dask array, which do the same `Job` in tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from wavefilt.arrays import Array, Counts, DType, Floats
from wavefilt.chunking.chunks import Chunk, cut
from wavefilt.chunking.noise_curves import NoiseCurves, half_windows, pooled, scales
from wavefilt.chunking.trend import Trend, fit_read, of_rows
from wavefilt.options import Options
from wavefilt.statistics import mergeable
from wavefilt.statistics.changing_noise import BlockTally, Curve, curve_of
from wavefilt.statistics.interface import Measured, Statistics
from wavefilt.statistics.mergeable import Details, HostTally, PassStatistics, State, Tally
from wavefilt.statistics.radix_select import Interval
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.vocabulary import Detrend

if TYPE_CHECKING:
    from wavefilt.backends.interface import Backend

BINS = {4: 1 << 16, 8: 1 << 21}
"""Of a table for magnitudes of so many bytes: two passes find a float32, three a float64."""

READ = 1 << 18
"""Samples of a row that are read at a time to see whether they are all equal."""

Visit = Callable[[Chunk, Pyramid], None]
"""What is done with a chunk and its coefficients."""
Result = TypeVar("Result")
Change = Callable[[Trend, Array, int, Array], None]
"""`Trend.remove` or `Trend.add`."""
Begin = Callable[[], tuple[Visit, Callable[[], Result]]]
"""Begins one thread's share of a pass: what it does with every chunk, and what gives the result of all of them."""


@dataclass(frozen=True)
class Job:
    """What is done with every chunk of rows of so many samples: a method, to a level of at least 1."""

    method: Options
    level: int
    samples: int

    @cached_property
    def analysis(self) -> Analysis:
        return self.method.analysis(self.level)

    @cached_property
    def lengths(self) -> Counts:
        """Details of a whole row in each band, finest first."""
        return np.array(self.method.sizes(self.analysis, (self.samples,)), np.int64)

    @property
    def halo(self) -> int | None:
        """`Transform.halo`, in samples."""
        return self.method.halo(self.level)

    def details(self, chunk: Chunk, coefficients: tuple[Array, ...], first: int = 0) -> Details:
        """Those details that are the chunk's own, and their places in a group whose first row has place ``first``."""
        bands, found = self.method.bands(self.level), []
        counted = self.method.counted(coefficients, self.analysis, (chunk.length,))
        for band, details, length in zip(bands, counted, self.lengths.tolist(), strict=True):
            spacing = self.method.transform.spacing(band.level)
            starts = [(chunk.place - first) * length + (part.start >> spacing) for part in chunk.parts]
            owned = chunk.owned(spacing)
            found.append([(start, details[:, own]) for start, own in zip(starts, owned, strict=True)])
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
        self.trends = dict[int, Trend]()
        self.noise = dict[int, tuple[Curve, ...]]()
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
        x = self.take(chunk)
        if job.method.trend is not None:
            self._fit(chunk, x, job.method.trend)
            x = self._with_trends(chunk, x, np.empty_like(x), Trend.remove)
        pyramid = self.backend.decompose(x, job.analysis)
        if self.noise:
            self._curves(chunk, job).change(np.divide, pyramid, chunk)
        return pyramid

    def find_noise(self, group: Sequence[Chunk], job: Job) -> Floats:
        """Make a pass that finds how the noise of the rows of a group changes; the mean noise (bands, groups).

        `decompose` divides by its curves from then on.
        """
        self.noise = {}
        half, scale = half_windows(job.method, job.analysis, (job.samples,)), scales(job.method, job.level)
        tallies = dict[int, list[BlockTally]]()

        def visit(chunk: Chunk, pyramid: Pyramid) -> None:
            details = job.details(chunk, self.coefficients(pyramid), chunk.place)
            for i, row in enumerate(range(chunk.rows.start, chunk.rows.stop)):
                if row not in tallies:
                    tallies[row] = list(map(BlockTally, job.lengths.tolist(), half))
                for tally, parts in zip(tallies[row], details, strict=True):
                    for start, part in parts:
                        tally.add(start, self.to_host(part[i]))

        self.run(group, job, lambda: (visit, lambda: None))
        found = NoiseCurves(
            [
                (slice(i, i + 1), tuple(curve_of(t.medians, h, s) for t, h, s in zip(own, half, scale, strict=True)))
                for i, own in enumerate(tallies.values())
            ],
            job.lengths,
        )
        sigma = found.sigma
        if job.method.scope == "record":
            sigma = pooled([sigma], len(sigma), job.method)
        self.noise = dict(zip(tallies, (curves for _, curves in found.over(sigma).lots), strict=True))
        return sigma

    def _curves(self, chunk: Chunk, job: Job) -> NoiseCurves:
        """Those of the rows of a chunk."""
        own = range(chunk.rows.start, chunk.rows.stop)
        return NoiseCurves([(slice(i, i + 1), self.noise[row]) for i, row in enumerate(own)], job.lengths)

    def rebuilt(self, chunk: Chunk, pyramid: Pyramid, shrinkage: Shrinkage, job: Job) -> Array:
        """A chunk's coefficients shrunk and reconstructed."""
        if not self.noise:
            return self.reconstruct(pyramid, shrinkage)
        pyramid = self.backend.shrunk(pyramid, shrinkage)
        self._curves(chunk, job).change(np.multiply, pyramid, chunk)
        return self.backend.reconstruct(pyramid)  # type: ignore[no-any-return]

    def _fit(self, chunk: Chunk, x: Array, kind: Detrend) -> None:
        """Know the trends of the rows of a chunk ``x``, which are read if it has not all their samples."""
        own = range(chunk.rows.start, chunk.rows.stop)
        if own.start not in self.trends and chunk.parts[0].stop == chunk.samples:
            self.trends |= zip(own, of_rows(x, kind).each, strict=True)
        elif own.start not in self.trends:
            self.trends[own.start] = fit_read(partial(self.read, own.start), chunk.samples, kind)

    def _with_trends(self, chunk: Chunk, x: Array, out: Array, change: Change) -> Array:
        """``out``, which takes a chunk ``x`` without, or again with, the trends of its rows."""
        for i, row in enumerate(range(chunk.rows.start, chunk.rows.stop)):
            begin = 0
            for part in chunk.parts:
                own = slice(begin, begin + part.last - part.first)
                change(self.trends[row], x[i : i + 1, own], part.first, out[i : i + 1, own])
                begin = own.stop
        return out

    def finished(self, chunk: Chunk, y: Array, method: Options) -> Array:
        """A reconstructed chunk with what was removed before the transform, and what is to be put back."""
        if method.trend is not None:
            self._with_trends(chunk, y, y, Trend.add)
        return method.blended(self.taken(chunk), y) if method.blend else y

    def taken(self, chunk: Chunk) -> Array:
        """The samples of the chunk that was taken last."""
        return self.take(chunk)

    def take(self, chunk: Chunk) -> Array:
        """The samples of a chunk, C-contiguous, shape (rows, chunk.length)."""
        parts = [self.x[chunk.rows, part.first : part.last] for part in chunk.parts]
        return np.concatenate(parts, axis=1) if len(parts) > 1 else np.ascontiguousarray(parts[0])

    def put(self, chunk: Chunk, y: Array) -> None:
        """Write what is to be kept of a denoised chunk."""
        for own, place in chunk.kept():
            self.out[chunk.rows, place] = y[:, own]

    def leave(self, row: int, written: bool) -> None:
        """Write a row as it came; whether it has been ``written`` denoised before."""
        self.out[row] = self.x[row]

    def read(self, row: int, first: int, last: int) -> Array:
        """Samples of a row, in host memory."""
        return np.asarray(self.x[row, first:last])

    def constant(self, row: int) -> bool:
        """`constant` of a row."""
        return constant(partial(self.read, row), self.shape[1])

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

    @property
    def bins(self) -> int:
        """Of a table of counts."""
        return BINS[self.dtype.itemsize]

    @property
    def whole(self) -> int:
        """Details of a level up to which it is measured in memory in the first pass; then ``guesses`` is asked."""
        return 0

    def guesses(self, job: Job, group: Sequence[Chunk], levels: Sequence[int]) -> Mapping[int, Interval] | None:
        """Where the medians of these levels probably lie; None if nothing is known."""
        return None

    def statistics(self, job: Job, group: Sequence[Chunk]) -> PassStatistics:
        """Of the details of a group of chunks, by passes over them."""
        first, last = group[0].place, group[-1].place + group[-1].count

        def run(begin: mergeable.Begin[Result]) -> list[Result]:
            def begin_chunks() -> tuple[Visit, Callable[[], Result]]:
                add, result = begin()
                return lambda chunk, p: add(job.details(chunk, self.coefficients(p), first)), result

            return self.run(group, job, begin_chunks)

        counts = job.lengths * np.int64(last - first)
        state = State(counts, 1, self.dtype, self.bins, self.summing)
        return PassStatistics(state, run, self.tally, self.to_host, self.whole, partial(self.guesses, job, group))


def constant(read: Callable[[int, int], Array], samples: int) -> bool:
    """Whether all samples of a row are equal, and finite: `wavefilt.arrays.constant` of a row that is read in parts.

    ``read`` gives the samples from one to another; few are asked for where they are not equal.
    """
    value = read(0, 1)
    starts = [samples - 1, samples // 2]
    parts = [*((i, i + 1) for i in starts), *((i, min(i + READ, samples)) for i in range(0, samples, READ))]
    return bool(np.isfinite(value).all()) and all(bool((read(*part) == value).all()) for part in parts)


def denoise(rows: Rows, method: Options, level: int, limit: int, report: bool = False) -> Measured | None:
    """Denoise rows as `wavefilt.denoise` does, and return what was measured; None if a sample is not finite.

    Parameters
    ----------
    rows : Rows
        Samples, a backend, and where the result goes. That is partly written where the answer is None.
    method, level : Options, int
        How to denoise, and to which level, at least 1.
    limit : int
        Bytes of samples in a chunk, or a few times the filter's reach if that is more (`wavefilt.chunking.chunks.cut`).
        The backend takes some four times as much for its work, medians of float64 another 16 MiB a level.
    report : bool
        Whether to measure the power of the details, and the noise even if the thresholds do not depend on it.

    Every coefficient is computed from the samples, and in the manner, of the whole row, and medians are exact. So
    noise, thresholds and samples are those of the whole rows bit for bit where the backend computes a coefficient
    the same way wherever it lies; thresholds that depend on mean squares are to rounding. Dead rows (`constant`) of a
    record are in no chunk: they are written as they came.

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
    as_one = method.scope == "record"
    dead = np.array([as_one and rows.constant(row) for row in range(count)], bool)
    chunks = cut(count, samples, job.halo, level, limit // rows.itemsize, dead)
    groups = [list(group) for _, group in groupby(chunks, lambda chunk: as_one or chunk.rows.start)]
    sigma, thresholds, power = np.zeros((3, len(method.bands(level)), count))
    for group in groups:
        own = np.flatnonzero(~dead) if as_one else np.arange(group[0].rows.start, group[-1].rows.stop)
        noise = rows.find_noise(group, job) if method.changing else None
        # coefficients of one chunk are kept, and where it has several traces they are groups of their own
        kept = rows.decompose(group[0], job) if len(group) == 1 and not rows.elsewhere else None
        if kept is None:
            statistics: Statistics = rows.statistics(job, group)
        else:
            counted = kept.with_approximation if method.shrinks_approximation else kept
            statistics = rows.backend.statistics([counted], method.scope)
        found = method.thresholds(statistics, samples * (len(own) if as_one else 1), noise)
        sigma[:, own], thresholds[:, own] = found
        if report:
            power[:, own] = statistics.mean_square()
        if method.rule.blocks and len(group[0].parts) > 1:
            raise ValueError(
                f"`rule`={method.rule.option!r} shrinks neighbouring details together: it needs whole traces in memory"
            )
        if not np.isfinite(found).all():
            return None
        write = partial(_write, rows, job, Shrinkage(function, thresholds, sigma))
        if not (_all_written(rows, job, group, write) if kept is None else write(group[0], kept)):
            return None
        for row in own.tolist():
            if not as_one and rows.constant(row):
                sigma[:, row] = thresholds[:, row] = power[:, row] = 0
            if not thresholds[:, row].any():
                rows.leave(row, written=True)
    for row in np.flatnonzero(dead).tolist():
        rows.leave(row, written=False)
    return Measured(sigma, thresholds, power if report else None)


def _write(rows: Rows, job: Job, shrinkage: Shrinkage, chunk: Chunk, pyramid: Pyramid) -> bool:
    """Write a chunk denoised; whether all its samples were finite, as every one has a share in an approximation."""
    finite = rows.finite(rows.coefficients(pyramid)[0])
    y = rows.rebuilt(chunk, pyramid, shrinkage.of_rows(chunk.rows), job)
    rows.put(chunk, rows.finished(chunk, y, job.method))
    return finite


def _all_written(rows: Rows, job: Job, group: Sequence[Chunk], write: Callable[[Chunk, Pyramid], bool]) -> bool:
    """Make the last pass, which writes."""

    def begin() -> tuple[Visit, Callable[[], bool]]:
        finite: list[bool] = []
        return lambda chunk, pyramid: finite.append(write(chunk, pyramid)), lambda: all(finite)

    return all(rows.run(group, job, begin))

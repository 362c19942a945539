"""Denoising files of any size within a memory limit: `denoise_file`; results are bit-identical to `denoise`.

If traces (with scope "record" all of them) fit in the limit, batches of whole traces are denoised as in memory. A
longer trace is denoised chunk by chunk, in up to three passes for the statistics of most rules and one to write. One
thread reads ahead, another writes behind.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, cycle, groupby
from pathlib import Path
from typing import Unpack

import numpy as np

from wavefilt import arrays, engine, memory, threads
from wavefilt.api import run_with_noise
from wavefilt.arrays import Array, Floats, Mask
from wavefilt.backends.interface import Backend
from wavefilt.chunks import Chunk, cut
from wavefilt.engine import Job, measure
from wavefilt.errors import SQUARES_OVERFLOW, NonFiniteSample
from wavefilt.io.base import Layout
from wavefilt.io.files import check_kept, open_source, split
from wavefilt.io.sources import Source, Target
from wavefilt.memory import Plan, in_bytes
from wavefilt.options import PRESETS, Keywords, NoiseForm, Options, check_names, checked, completed
from wavefilt.recording import noise_of_source
from wavefilt.statistics.mergeable import Details, Interval, PassStatistics, State, around_median
from wavefilt.statistics.reference import Statistics
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid
from wavefilt.trend import of_rows
from wavefilt.vocabulary import Preset
from wavefilt.wavelets.filters import WaveletLike

Progress = Callable[[int, int], None]
"""Called with the bytes of samples processed so far and their total, which grows if another pass is needed."""

REPORTED = 1 << 17
"""Largest number of traces whose noise and thresholds enter a report; of more, evenly spaced ones are used."""
Piece = tuple[slice, int, int]
"""Rows, with their first and last sample."""
BLOCK = 1 << 16
"""Samples whose energies are summed at a time."""
TINIEST = 1e-300
"""A magnitude whose reciprocal is finite."""
READ = 1 << 18
"""Samples of a row per read when looking for dead rows."""
WINDOWS, WINDOW = 256, 8192
"""Number and length in samples of the windows that suggest where the medians are."""
SHARE = 64
"""Those windows are at most one part in `SHARE` of the samples."""


@dataclass
class Report:
    """Summary of a run of `denoise_file`.

    ``sigma`` and ``thresholds`` are medians over the ``noisy_traces``, whose noise or thresholds are not all 0, finest
    level first; empty if not measured. Their ``_range`` is from the 10th to the 90th percentile.
    ``residual_energy`` is the energy of the residual over that of the samples, both about the mean of each trace;
    ``passes`` is the number of times that the samples were read.
    """

    shape: tuple[int, int]
    format: str
    options: Options
    backend: str
    level: int
    noisy_traces: int
    sigma: list[float]
    thresholds: list[float]
    sigma_range: list[list[float]]
    thresholds_range: list[list[float]]
    residual_energy: float
    passes: float
    seconds: float


def denoise_file(
    source: str | os.PathLike[str] | Source,
    target: str | os.PathLike[str],
    wavelet: WaveletLike | None = None,
    *,
    preset: Preset | None = None,
    max_memory: str | int = "1GiB",
    overwrite: bool = False,
    backend: str | Backend = "auto",
    progress: Progress | None = None,
    format: str | None = None,
    dtype: str | None = None,
    endian: str | None = None,
    ns: int | None = None,
    component: str | None = None,
    axis: int | None = None,
    **options: Unpack[Keywords],
) -> Report:
    """Denoise a file of any size into another file, within a memory limit.

    Parameters
    ----------
    source : path, or `wavefilt.io.sources.Source`
        An npy, SEG-Y, SU, HDF5 or Zarr file (``path::dataset`` for the last two), or raw binary with its layout:
        ``dtype``, ``endian`` and ``ns`` as in `wavefilt.read`.
    target : path
        The result in the same format, shape and order. It appears when it is complete, and not after an error.
    wavelet, preset, options
        As in `wavefilt.Recording.denoise`, with its defaults, including a noise window that the headers declare;
        ``sigma`` is in samples. The results are bit-identical with the same backend.
    max_memory : str or int
        Limit for samples, coefficients and buffers, such as ``"500MB"`` or ``"1GiB"``, in addition to the memory of
        Python and its libraries.
    overwrite : bool
        Whether an existing ``target`` is replaced.
    backend : str or Backend
        As in `wavefilt.denoise`. With "cuda", whole traces must fit; "auto" uses the CPU for longer ones.
    progress : callable, optional
        Called with the number of bytes processed and their total.
    format, component, axis
        As in `wavefilt.read`.

    Raises
    ------
    FormatError
        For a file in another format, or a damaged file.
    ValueError
        As `wavefilt.denoise`; for a limit that is too small, with the minimum; for options or gaps that need whole
        traces (or the whole record) that do not fit; for chunks of the file that are too large for the limit.
    OSError
        If a file cannot be read or written, the disk is full, or the source is truncated or modified during the run.
    """
    if {"axes", "two_dimensional"} & {**PRESETS.get(preset or "", {}), **options}.keys():
        raise ValueError("sections are denoised in memory: wavefilt.read(path).denoise(two_dimensional=True)")
    check_names(options, "preset")
    given, limit = {**options, "wavelet": wavelet}, in_bytes(max_memory)
    checked(completed(given, preset))  # invalid options are found before the file is opened

    with ExitStack() as opened:
        if not isinstance(source, Source):
            file, _ = split(source)
            if os.path.exists(target) and os.path.exists(file) and os.path.samefile(file, target):
                raise ValueError(f"{os.fspath(target)} is the input; choose another output")
            layout = Layout(dtype=dtype, endian=endian, ns=ns, component=component, axis=axis)
            source = opened.enter_context(closing(open_source(source, layout, format)))
        chosen, sigmas, _ = noise_of_source(source, given, preset, samples=True)
        return stream(source, Path(target), chosen, sigmas, limit, backend, overwrite, progress)


def stream(
    source: Source,
    target: Path,
    options: Options,
    sigmas: Sequence[NoiseForm],
    limit: int,
    backend: str | Backend,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Denoise an open source as `denoise_file` does, each trace with its own option ``sigma``."""
    start = time.perf_counter()
    # all forms of noise other than "level" need the same memory
    options = options.with_noise(next((sigma for sigma in sigmas if sigma != "level"), "level"))
    check_kept(source.format, source.name, target)
    dtype = arrays.compute_dtype(source.dtype)
    plan = memory.plan(source.shape, dtype, options, limit, backend, source.neighbours, source.overhead)
    with source.create(target, overwrite=overwrite) as out:
        with ThreadPoolExecutor(1, "wavefilt-read") as reading, ThreadPoolExecutor(1, "wavefilt-write") as writing:
            work = FileRows(source, out, reading, writing, options, plan, progress)
            if plan.together:
                work.denoise_whole_traces(sigmas)
            else:
                work.denoise_chunks()
            work.flush()
        source.check_unchanged()
    (sigma, sigma_range), (thresholds, thresholds_range) = map(engine.spread, work.measured())
    return Report(
        shape=source.shape,
        format=source.format,
        options=options,
        backend=plan.backend.name,
        level=plan.level,
        noisy_traces=work.noisy,
        sigma=sigma,
        thresholds=thresholds,
        sigma_range=sigma_range,
        thresholds_range=thresholds_range,
        residual_energy=work.energy.share,
        passes=work.samples_read / math.prod(source.shape),
        seconds=time.perf_counter() - start,
    )


class FileRows(engine.Rows):
    """Rows in a file, which are read ahead, and the file for the result, which is written behind."""

    def __init__(
        self,
        source: Source,
        target: Target,
        reading: ThreadPoolExecutor,
        writing: ThreadPoolExecutor,
        options: Options,
        plan: Plan,
        progress: Progress | None,
    ) -> None:
        super().__init__(np.empty((0, 0), arrays.compute_dtype(source.dtype)), plan.backend)
        self.source, self.options, self.plan, self.shape = source, options, plan, source.shape
        self._buffers = cycle([np.empty(plan.buffer, self.x.dtype) for _ in range(2)])
        self._expected: Iterator[Array] = iter(())
        self._target, self._reading, self._writing = target, reading, writing
        self._last: Future[None] | None = None
        self.energy, self._progress = Energy(), progress
        self.noisy = self.samples_read = 0
        self._measured: list[tuple[Floats, Floats]] = []  # noise and thresholds (levels, traces) of batches of traces
        self._seen: set[tuple[int, int]] = set()

    def ahead(self, parts: Iterable[Sequence[Piece]]) -> Iterator[Array]:
        """Yield the samples (rows, samples) of each part, C-contiguous, while a thread reads the next part.

        A part is one piece, or more side by side. Its samples are valid until another part is read.
        """
        waiting = (self._reading.submit(self._read, part, next(self._buffers)) for part in parts)
        following = next(waiting, None)
        while following is not None:
            x = following.result()
            following = next(waiting, None)
            self._count(x.size)
            yield x

    def _read(self, part: Sequence[Piece], buffer: Array) -> Array:
        rows, length = part[0][0], sum(last - first for _, first, last in part)
        out = buffer[: (rows.stop - rows.start) * length].reshape(-1, length)
        at = 0
        for own, first, last in part:
            self.source.read(own, first, out[:, at : at + last - first])
            at += last - first
        return out

    def _count(self, samples: int) -> None:
        """Count samples that were read, and report progress."""
        self.samples_read += samples
        if self._progress is not None:
            total, size = math.prod(self.shape), self.source.dtype.itemsize
            passes = max(self.plan.passes, math.ceil(self.samples_read / total))
            self._progress(self.samples_read * size, total * passes * size)

    def store(self, rows: slice, first: int, values: Array) -> None:
        """Write values, which must not change any more, in the background; raises the error of an earlier write."""
        self.flush()
        self._last = self._writing.submit(self._target.write, rows, first, values)

    def flush(self) -> None:
        """Wait until everything is written."""
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def denoise_whole_traces(self, sigmas: Sequence[NoiseForm]) -> None:
        """Denoise batches of whole traces, each trace with its own option ``sigma``."""
        rows, samples = self.shape
        each, step = self.plan.together, -(-rows // REPORTED)
        batches = [slice(a, min(a + each, rows)) for a in range(0, rows, each)]
        for batch, x in zip(batches, self.ahead([(batch, 0, samples)] for batch in batches), strict=True):
            try:
                outcome = run_with_noise(x, self.options, sigmas[batch], self.plan.backend)
            except NonFiniteSample as error:
                hint = "; replace it, or set it to NaN to have it treated as a gap"
                raise NonFiniteSample(error.trace + batch.start, error.sample, hint) from error
            self.energy.add(x, outcome.samples)
            self.store(batch, 0, outcome.samples)
            noisy = np.zeros(len(x), bool)
            for e in outcome.estimates:
                np.logical_or.at(noisy, e.segments.rows, _noisy(e.sigma, e.thresholds))
                self._measured.append((e.sigma[:, ::step], e.thresholds[:, ::step]))
            self.noisy += int(np.count_nonzero(noisy))

    def denoise_chunks(self) -> None:
        """Denoise traces, or a record, that do not fit in memory; the result is that of whole traces.

        Every coefficient is computed from the same samples and in the same way as for the whole trace, and medians and
        sums of squares are exact. Noise, thresholds and samples are therefore bit-identical if the backend computes a
        coefficient in the same way at every position. Dead traces, and traces too short for one level, are in no chunk
        and are written unchanged.
        """
        level, options, (count, samples) = self.plan.level, self.options, self.shape
        if options.rule.values:
            options = replace(options, sigma=0.0)  # the noise, one pass or more over all details, is not used
        job, record = Job(options, level, samples), options.scope == "record"
        dead = np.array([level == 0 or self.constant(row) for row in range(count)], bool)
        pieces = cut(count, samples, options.halo(level), level, self.plan.chunk // self.x.itemsize, dead)
        sigma, thresholds = np.zeros((2, len(options.bands(level)), count))
        for _, group in groupby(pieces, lambda chunk: record or chunk.rows.start):
            own = list(group)
            numbers = np.unique(np.concatenate([chunk.numbers for chunk in own]))
            kept = self.decompose(own[0], job) if len(own) == 1 else None
            if kept is None:
                statistics: Statistics = self.statistics(job, own)
            else:
                statistics = self.backend.statistics([options.counted(kept)], options.scope)
            measured = measure(options, statistics, samples * (len(numbers) if record else 1))
            if measured is None:
                raise ValueError(SQUARES_OVERFLOW)
            sigma[:, numbers], thresholds[:, numbers] = measured.sigma, measured.thresholds
            write = partial(self.write, shrinkage=Shrinkage(options.function(samples), thresholds, sigma), job=job)
            if kept is None:
                self.run(own, job, write)
            else:
                write(own[0], kept)
        for row in np.flatnonzero(dead).tolist():
            self.leave(row)
        details = len(options.transform.bands(level))  # without the approximation
        self.noisy = int(np.count_nonzero(_noisy(sigma[:details], thresholds[:details])))
        self._measured.append((sigma[: 0 if options.rule.values else details], thresholds[:details]))

    def check(self, x: Array, pieces: Sequence[Piece], peak: float) -> None:
        """Raise ValueError if samples of these pieces, side by side, are not finite or overflow in the transform."""
        if math.isfinite(peak) or np.isfinite(x).all():
            return engine.check_size(x, peak, self.plan.level, self.options)
        row, column = np.argwhere(~np.isfinite(x))[0].tolist()
        trace = pieces[0][0].start + row
        sample = int(np.concatenate([np.arange(first, last) for _, first, last in pieces])[column])
        if np.isinf(x[row, column]):
            raise NonFiniteSample(trace, sample, "; replace it")
        hint = (
            ": the segments between gaps are denoised in memory; raise the limit to "
            f"`max_memory={self.plan.whole_memory!r}`, or fill the gaps"
        )
        raise NonFiniteSample(trace, sample, hint, "NaN")

    def measured(self) -> tuple[list[Floats], list[Floats]]:
        """Return noise and thresholds (levels, traces) of the traces with noise, or if none has noise, of all."""
        found, noisy = self._measured, [_noisy(*batch) for batch in self._measured]
        if any(map(np.any, noisy)):
            found = [(s[:, live], t[:, live]) for (s, t), live in zip(found, noisy, strict=True)]
        return [sigma for sigma, _ in found], [thresholds for _, thresholds in found]

    def run(self, group: Sequence[Chunk], job: Job, visit: Callable[[Chunk, Pyramid], object]) -> None:
        """Make a pass over the chunks of a group: call a function with each chunk and its coefficients."""
        self._expected = self.ahead(map(_pieces, group))
        for chunk in group:
            visit(chunk, self.decompose(chunk, job))  # not named: its memory is free for the next

    def take(self, chunk: Chunk) -> Array:
        if self.x.shape[1] != chunk.length:
            self.backend.release()  # memory for chunks of another length
        self.x = next(chain(self._expected, self.ahead([_pieces(chunk)])))
        place = chunk.rows.start, chunk.parts[0].start
        if place not in self._seen:
            self._seen.add(place)
            self.check(self.x, _pieces(chunk), self.backend.peak(self.x))
        return self.x

    def put(self, chunk: Chunk, y: Array) -> None:
        for own, place in chunk.kept():
            self.energy.add(self.x[:, own], y[:, own], chunk.rows.start)
            self.store(chunk.rows, place.start, y[:, own])

    def read(self, row: int, first: int, last: int) -> Array:
        x: Array = np.empty((1, last - first), self.x.dtype)
        self._reading.submit(self.source.read, slice(row, row + 1), first, x).result()  # one thread reads at a time
        return x.ravel()

    def constant(self, row: int) -> bool:
        """Return whether all samples of a row are equal and finite; few are read if they are not."""
        value, samples = self.read(row, 0, 1), self.shape[1]
        starts = [samples - 1, samples // 2]
        parts = [*((i, i + 1) for i in starts), *((i, min(i + READ, samples)) for i in range(0, samples, READ))]
        return bool(np.isfinite(value).all()) and all(bool((self.read(row, *part) == value).all()) for part in parts)

    def leave(self, row: int) -> None:
        """Write a row unchanged."""
        samples, size = self.shape[1], self.plan.buffer
        parts = [(slice(row, row + 1), a, min(a + size, samples)) for a in range(0, samples, size)]
        for part, x in zip(parts, self.ahead([part] for part in parts), strict=True):
            first = part[1]
            infinite = np.flatnonzero(np.isinf(x[0]))
            if infinite.size:
                raise NonFiniteSample(row, first + infinite[0], "; replace it")
            self.energy.add(x, x, row)
            self.store(part[0], first, x)
            self.flush()  # before the buffer is read into again

    def statistics(self, job: Job, group: Sequence[Chunk]) -> PassStatistics:
        """Return the statistics of the detail coefficients of a group, which make passes over its chunks."""
        first, last = group[0].place, group[-1].place + len(group[-1].numbers)

        def run(add: Callable[[Details], None]) -> None:
            self.run(group, job, lambda chunk, p: add(job.details(chunk, p, first)))

        counts = job.lengths * np.int64(last - first)
        state = State(counts, 1, self.x.real.dtype, self.plan.bins, True)
        return PassStatistics(state, run, self.backend.summation, partial(self.guesses, job, group))

    def guesses(self, job: Job, group: Sequence[Chunk], levels: Sequence[int]) -> Mapping[int, Interval]:
        """Return where the medians of these levels probably lie, from evenly spaced windows of the rows of a group."""
        # each row's first samples are in one chunk
        rows = np.concatenate([np.arange(c.rows.start, c.rows.stop) for c in group if c.parts[0].start == 0])
        samples, taps = self.shape[1], job.analysis.taps
        length = min(max(WINDOW, 8 * (job.options.halo(job.level) or 0)), samples)
        number = min(max(len(rows) * samples // (SHARE * length), 8), WINDOWS)
        found = []
        for at in (np.arange(number) + 0.5) / number * len(rows):
            first = int(at % 1 * (samples - length))
            x = self.read(int(rows[int(at)]), first, first + length)[None]
            x = x if job.options.trend is None else of_rows(x, job.options.trend).removed(x)
            details = job.options.counted(self.backend.decompose(x, job.analysis)).details
            found.append([d[0, taps:-taps] if d.shape[1] > 4 * taps else d[0] for d in details])  # without the ends
        return {level: around_median(np.concatenate([d[level - 1] for d in found]), self.plan.bins) for level in levels}


def _noisy(sigma: Floats, thresholds: Floats) -> Mask:
    """Return which traces have noise; where it was not measured, which have a threshold above 0."""
    return np.asarray((sigma if sigma.any() else thresholds).any(axis=0))


def _pieces(chunk: Chunk) -> list[Piece]:
    return [(chunk.rows, part.first, part.last) for part in chunk.parts]


class Energy:
    """The energy of the residual as a share of that of the samples, both about the mean of each trace, outside gaps."""

    def __init__(self) -> None:
        self._scale, self._sums = 0.0, np.zeros(2)
        self._parts: dict[int, Array] = {}

    @property
    def share(self) -> float:
        residual, samples = self._sums + sum(map(_about_means, self._parts.values()), np.zeros(2))
        return max(float(residual / samples), 0.0) if samples > 0 else 0.0

    def add(self, x: Array, y: Array, first: int | None = None) -> None:
        """Add samples and denoised samples of one shape: whole traces, or parts of the traces from ``first``."""
        if not self._scale:
            peak = float(np.nanmax(np.abs(x[:1, :BLOCK]), initial=0))
            self._scale = 1 / peak if np.isfinite(peak) and peak > TINIEST else 1.0  # squares of any samples then fit
        (rows, samples), together = x.shape, max(BLOCK // x.shape[1], 1)
        blocks = [(slice(row, row + together), a) for row in range(0, rows, together) for a in range(0, samples, BLOCK)]
        wide = np.result_type(x, np.float64)
        totals = np.zeros((rows, -(-samples // BLOCK), 5), wide)

        def work(begin: int, end: int) -> None:
            for own, a in blocks[begin:end]:
                before = x[own, a : a + BLOCK].astype(wide) * self._scale
                change = before - y[own, a : a + BLOCK].astype(wide) * self._scale
                gaps = np.isnan(change)
                if gaps.any():
                    before[gaps] = change[gaps] = 0
                squares = [np.einsum("ij,ij->i", v, v.conj()) for v in (change, before)]
                sums = [change.sum(axis=1), before.sum(axis=1), before.shape[1] - np.count_nonzero(gaps, axis=1)]
                totals[own, a // BLOCK] = np.stack([*squares, *sums], axis=1)

        threads.parallel(work, len(blocks))
        if first is None:
            self._sums += _about_means(totals.sum(axis=1)).sum(axis=0)
        else:
            for row, total in enumerate(totals.sum(axis=1), first):
                self._parts[row] = self._parts.get(row, 0) + total


def _about_means(totals: Array) -> Floats:
    """Return the energies of residual and samples about their means (..., 2), by their squares, sums and number."""
    squares, sums, count = totals[..., :2], totals[..., 2:4], totals[..., 4:]
    return np.asarray(squares.real - np.abs(sums) ** 2 / np.maximum(count.real, 1))

"""Denoising files of any size within a memory limit: `denoise_file`, with the samples of `denoise` bit for bit.

If traces (with scope "record" all of them) fit in the limit, batches of whole traces are denoised as in memory. A
longer trace is denoised chunk by chunk (`wavefilt.engine`), in one or two passes for the statistics and one to write;
with a device it is resident there. One thread reads ahead, another writes behind.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NoReturn, Unpack

import numpy as np

from wavefilt import arrays, engine, memory, threads
from wavefilt.api import run
from wavefilt.arrays import Array, DType, Floats, Mask
from wavefilt.backends.interface import Backend
from wavefilt.chunks import Chunk, runs
from wavefilt.errors import SQUARES_OVERFLOW, NonFiniteSample
from wavefilt.io.base import Layout
from wavefilt.io.files import open_source, split
from wavefilt.io.sources import Source, Target
from wavefilt.memory import Chunks, DeviceResident, Plan, WholeTraces, in_bytes, spelled
from wavefilt.options import Keywords, Options
from wavefilt.statistics.mergeable import Interval, RowTally, State, Summation, Tally, around_median
from wavefilt.trend import of_rows
from wavefilt.wavelets.filters import WaveletLike

Progress = Callable[[int, int], None]
"""Called with the bytes of samples processed so far and their total, which grows if another pass is needed."""

REPORTED = 1 << 17
"""Largest number of traces whose noise and thresholds enter a report; of more, evenly spaced ones are used."""
Piece = tuple[slice, int, int]
"""Rows, with their first and last sample."""
BLOCK = 1 << 16
"""Samples per sum of energies."""
TINIEST = 1e-300
"""A magnitude whose reciprocal is finite."""
WINDOWS, WINDOW = 256, 8192
"""Number and length in samples of the windows that suggest where the medians are."""
SHARE = 64
"""Those windows are at most one part in `SHARE` of the samples."""
Found = list[tuple[Floats, Floats]]
"""Noise and thresholds (levels, traces) of batches of traces."""


@dataclass
class Report:
    """Summary of a run of `denoise_file`.

    ``sigma`` and ``thresholds`` are medians over the ``noisy_traces``, whose noise or thresholds are not all 0, finest
    level first; empty if not measured. Their ``_range`` is from the 10th to the 90th percentile.
    ``residual_energy`` is Σ (x - y)² / Σ x² outside gaps; ``passes`` the number of times that the samples were read.
    """

    shape: tuple[int, int]
    format: str
    method: Options
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
    wavelet, options
        As in `wavefilt.denoise` (level, mode, rule, shrink, sigma, scope, keep, transform, spins, detrend, blend).
        The samples are bit-identical to its result with the same backend.
    max_memory : str or int
        Limit for samples, coefficients and buffers, such as ``"500MB"`` or ``"1GiB"``, in addition to the memory of
        Python and its libraries.
    overwrite : bool
        Whether an existing ``target`` is replaced.
    backend : str or Backend
        As in `wavefilt.denoise`. With "cuda", traces that do not fit are transferred in blocks to device memory,
        which must hold them and is not part of ``max_memory``; "auto" uses the CPU for them.
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
    if {"axes", "two_dimensional"} & options.keys():
        raise ValueError("sections are denoised in memory: wavefilt.read(path).denoise(two_dimensional=True)")
    method, limit = Options.of(wavelet, options), in_bytes(max_memory)
    if not isinstance(source, (str, os.PathLike)):
        return stream(source, Path(target), method, limit, backend, overwrite, progress)
    file, _ = split(source)
    if os.path.exists(target) and os.path.exists(file) and os.path.samefile(file, target):
        raise ValueError(f"{os.fspath(target)} is the input; choose another output")
    layout = Layout(dtype=dtype, endian=endian, ns=ns, component=component, axis=axis)
    with closing(open_source(source, layout, format)) as opened:
        return stream(opened, Path(target), method, limit, backend, overwrite, progress)


def stream(
    source: Source,
    target: Path,
    method: Options,
    limit: int,
    backend: str | Backend,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Denoise an open source as `denoise_file` does."""
    start = time.perf_counter()
    dtype = arrays.compute_dtype(source.dtype)
    plan = memory.plan(source.shape, dtype, method, limit, backend, source.neighbours, source.overhead)
    work = _Work(source, method, plan, progress)
    with source.create(target, overwrite=overwrite) as out:
        with ThreadPoolExecutor(1, "wavefilt-read") as reading, ThreadPoolExecutor(1, "wavefilt-write") as writing:
            ahead = Ahead(source, reading, [_buffer(plan, dtype) for _ in range(2)], work.read)
            behind = Behind(out, writing)
            work.run(plan, ahead, behind)
            behind.finish()
        source.check_unchanged()
    seconds = time.perf_counter() - start
    (sigma, sigma_range), (thresholds, thresholds_range) = map(engine.spread, work.found())
    passes, removed = work.taken / math.prod(source.shape), work.energy.removed
    what = source.shape, source.format, method, plan.backend.name, plan.level
    found = work.noisy, sigma, thresholds, sigma_range, thresholds_range
    return Report(*what, *found, removed, passes, seconds)


def _buffer(plan: Plan, dtype: DType) -> Array:
    """Return memory for the largest part."""
    if isinstance(plan, DeviceResident):
        return plan.device.host_buffer(plan.buffer, dtype)
    return np.empty(plan.buffer, dtype)


@dataclass
class _Work:
    """The state of one run: progress, energies, noise and thresholds."""

    source: Source
    method: Options
    plan: Plan
    progress: Progress | None
    energy: Energy = field(init=False)
    done: int = 0
    taken: int = 0
    noisy: int = 0
    _found: Found = field(default_factory=list)

    def __post_init__(self) -> None:
        self.energy = Energy(self.plan.backend.summation)

    def read(self, samples: int) -> None:
        """Count samples that were read."""
        self.taken += samples
        self.passed(samples)

    def passed(self, samples: int) -> None:
        """Report progress by this number of samples."""
        self.done += samples * self.source.dtype.itemsize
        if self.progress is not None:
            size = math.prod(self.source.shape) * self.source.dtype.itemsize
            self.progress(self.done, size * max(self.plan.passes, math.ceil(self.done / size)))

    def run(self, plan: Plan, ahead: Ahead, behind: Behind) -> None:
        """Denoise all of the file as planned."""
        if isinstance(plan, WholeTraces):
            self._whole_traces(plan, ahead, behind)
        elif isinstance(plan, Chunks):
            self._chunks(plan, ahead, behind)
        elif isinstance(plan, DeviceResident):
            shape = self.source.shape
            self._found += _denoise_resident(shape, plan, self.method, ahead, behind, self.energy, self.passed)

    def _whole_traces(self, plan: WholeTraces, ahead: Ahead, behind: Behind) -> None:
        """Denoise batches of whole traces."""
        rows, samples = self.source.shape
        each, step = plan.together, -(-rows // REPORTED)
        batches = [slice(a, min(a + each, rows)) for a in range(0, rows, each)]
        ahead.expect([[(batch, 0, samples)] for batch in batches])
        for batch in batches:
            x = ahead.take([(batch, 0, samples)])
            try:
                outcome = run(x, self.method, plan.backend)
            except NonFiniteSample as error:
                hint = "; replace it, or set it to NaN to have it treated as a gap"
                raise NonFiniteSample(error.trace + batch.start, error.sample, hint) from error
            self.energy.add(x, outcome.samples)
            behind.put(batch, 0, outcome.samples)
            noisy = np.zeros(len(x), bool)
            for e in outcome.estimates:
                np.logical_or.at(noisy, e.segments.rows, _noisy(e.sigma, e.thresholds))
                self._found.append((e.sigma[:, ::step], e.thresholds[:, ::step]))
            self.noisy += int(np.count_nonzero(noisy))

    def _chunks(self, plan: Chunks, ahead: Ahead, behind: Behind) -> None:
        """Denoise traces, or a record, that do not fit."""
        rows = FileRows(self.source, plan, self.method, ahead, behind, self.energy)
        if plan.level == 0:
            for row in range(self.source.shape[0]):
                rows.leave(row, written=False)
            return
        measured = engine.denoise_chunks(rows, self.method, plan.level, plan.chunk)
        if measured is None:
            raise ValueError(SQUARES_OVERFLOW)
        details = len(self.method.transform.bands(plan.level))  # without the approximation
        self._found.append((measured.sigma[:details], measured.thresholds[:details]))

    def found(self) -> tuple[list[Floats], list[Floats]]:
        """Return noise and thresholds of each level, of all traces with noise that have this level."""
        noisy = [_noisy(*found) for found in self._found]
        if not isinstance(self.plan, WholeTraces):
            self.noisy = sum(int(np.count_nonzero(live)) for live in noisy)
        if any(map(np.any, noisy)):
            self._found = [(s[:, live], t[:, live]) for (s, t), live in zip(self._found, noisy, strict=True)]
        if self.method.rule.values and not isinstance(self.plan, WholeTraces):
            self._found = [(sigma[:0], thresholds) for sigma, thresholds in self._found]
        sigmas, thresholds = ([found[i] for found in self._found] for i in range(2))
        return _by_level(sigmas), _by_level(thresholds)


def _noisy(sigma: Floats, thresholds: Floats) -> Mask:
    """Return which traces have noise; where it was not measured, which have a threshold above 0."""
    return np.asarray((sigma if sigma.any() else thresholds).any(axis=0))


def _by_level(found: list[Floats]) -> list[Floats]:
    depth = max(map(len, found), default=0)
    return [np.concatenate([levels[i] for levels in found if len(levels) > i]) for i in range(depth)]


class FileRows(engine.Rows):
    """Rows in a file, and the file for the result."""

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
            self.backend.release()  # memory for chunks of another length
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
        """Return some details of every level of a group, from evenly spaced windows."""
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
    """Raise ValueError if samples of these pieces, side by side, are not finite or overflow in the transform."""
    if math.isfinite(peak) or np.isfinite(x).all():
        return engine.check_size(x, peak, plan.level, method)
    row, column = np.argwhere(~np.isfinite(x))[0].tolist()
    value, trace = x[row, column], pieces[0][0].start + row
    for _, first, last in pieces:
        if column < last - first:
            break
        column -= last - first
    if np.isinf(value):
        raise NonFiniteSample(trace, first + column, "; replace it")
    hint = (
        ": the segments between gaps are denoised in memory; raise the limit to "
        f"`max_memory={plan.whole_memory!r}`, or fill the gaps"
    )
    raise NonFiniteSample(trace, first + column, hint, "NaN")


def _denoise_resident(
    shape: tuple[int, int],
    plan: DeviceResident,
    method: Options,
    ahead: Ahead,
    behind: Behind,
    energy: Energy,
    fetched: Callable[[int], None],
) -> Found:
    """Denoise traces, or a record, in device memory; return noise and thresholds.

    Dead traces of a record are copied. ``fetched`` is called with the number of samples that came back. Raises
    ValueError for a sample that is not finite, and if the device has too little memory.
    """
    rows, samples = shape
    pooled = method.scope == "record"
    dead = np.array([pooled and engine.constant_row(partial(ahead.read, row), samples) for row in range(rows)], bool)
    groups = [runs(~dead)] if pooled else [[range(row, row + 1)] for row in range(rows)]
    batches = [[piece for run in group for piece in pieces(run, samples, plan.buffer)] for group in groups if group]
    each = int(np.count_nonzero(~dead)) if pooled else 1
    ahead.expect([[piece] for batch in batches for piece in batch])
    device = plan.device
    x, *ys = (device.host_buffer(plan.buffer, ahead.dtype) for _ in range(3))
    found: Found = []
    try:
        resident = device.resident((each, samples), ahead.dtype) if each else None
        for batch in batches:
            for place, piece in _placed(batch):
                device.send(ahead.take([piece]), resident, place)
            done = device.denoise(resident, method, plan.level, True)
            if done is None:
                _explain(batch, plan, method, ahead)
            y, measured = done
            assert measured is not None
            for place, piece in _placed(batch):
                size = (piece[0].stop - piece[0].start, piece[2] - piece[1])
                before, after = (buffer[: size[0] * size[1]].reshape(size) for buffer in (x, ys[0]))
                device.fetch(resident, place, before)
                device.fetch(y, place, after)
                energy.add(before, after)
                behind.put(piece[0], piece[1], after)
                ys.reverse()  # the values of the other are written by now
                fetched(before.size)
            found.append((measured.sigma, measured.thresholds))
    except MemoryError as error:
        raise ValueError(
            f"{spelled(each * samples * ahead.dtype.itemsize)} of samples and their coefficients do not fit in the "
            f"memory of `backend={device.name!r}`: choose another backend ({error})"
        ) from error
    for _, same in copied(
        [piece for rows in runs(dead) for piece in pieces(rows, samples, plan.buffer)], ahead, behind
    ):
        energy.add(same, same)
        fetched(same.size)
    if dead.all():
        found.append((np.zeros((plan.level, rows)), np.zeros((plan.level, rows))))
    return found


def _placed(batch: list[Piece]) -> Iterator[tuple[int, Piece]]:
    """Yield pieces with the place of their first sample on the device, side by side."""
    place = 0
    for piece in batch:
        yield place, piece
        place += (piece[0].stop - piece[0].start) * (piece[2] - piece[1])


def _explain(batch: list[Piece], plan: DeviceResident, method: Options, ahead: Ahead) -> NoReturn:
    """Raise ValueError for samples that are not finite, in runs of equal samples, or that overflowed on the device."""
    for piece in batch:
        x = ahead.take([piece])
        if arrays.equal_runs(x) is not None:
            raise ValueError(
                f"trace {piece[0].start} has runs of equal samples, which are left out in memory only: raise the limit "
                f"to `max_memory={plan.whole_memory!r}`, or choose another backend"
            )
        check(x, [piece], float(np.max(np.abs(x))), plan, method)
    raise ValueError(SQUARES_OVERFLOW)


class Ahead:
    """Read parts of a source ahead, each of one piece or more side by side, into two buffers in turn."""

    def __init__(
        self, source: Source, executor: ThreadPoolExecutor, buffers: Sequence[Array], passed: Callable[[int], None]
    ) -> None:
        """``buffers`` are two, each for the largest part; ``passed`` is called with the samples of every part."""
        self.dtype, self.size = buffers[0].dtype, buffers[0].size
        self._source, self._executor, self._passed = source, executor, passed
        self._buffers = list(buffers)
        self._expected: list[Sequence[Piece]] = []
        self._next: tuple[Sequence[Piece], Future[Array]] | None = None

    def expect(self, parts: Sequence[Sequence[Piece]]) -> None:
        """Announce the parts that will be taken next, in order."""
        self._expected = list(reversed(parts))

    def take(self, part: Sequence[Piece]) -> Array:
        """Return the samples (rows, samples), C-contiguous, valid until the next part is taken."""
        if self._next is None or self._next[0] != part:
            if self._next is not None:
                self._next[1].result()  # not used
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
        """Return samples of a row, apart from the announced parts, which are forgotten."""
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
    """Write results to the target in the background, one part at a time."""

    def __init__(self, target: Target, executor: ThreadPoolExecutor) -> None:
        self._target, self._executor = target, executor
        self._last: Future[None] | None = None

    def put(self, rows: slice, first: int, values: Array) -> None:
        """Write values, which must not change any more; raises the error of an earlier write."""
        self.finish()
        self._last = self._executor.submit(self._target.write, rows, first, values)

    def finish(self) -> None:
        """Wait until everything is written."""
        last, self._last = self._last, None
        if last is not None:
            last.result()


def pieces(rows: range, samples: int, size: int) -> list[Piece]:
    """Divide rows into pieces of at most ``size`` samples: some whole rows each, or parts of one."""
    if samples <= size:
        together = size // samples
        return [(slice(a, min(a + together, rows.stop)), 0, samples) for a in rows[::together]]
    return [(slice(row, row + 1), a, min(a + size, samples)) for row in rows for a in range(0, samples, size)]


def copied(parts: Sequence[Piece], ahead: Ahead, behind: Behind) -> Iterator[tuple[Piece, Array]]:
    """Yield parts with their samples, and write them unchanged."""
    ahead.expect([[part] for part in parts])
    for part in parts:
        x = ahead.take([part])
        yield part, x
        behind.put(part[0], part[1], x)
        behind.finish()  # before the buffer is read into again


class Energy:
    """The energy of the residual as a share of that of the samples, Σ |x - y|² / Σ |x|², outside gaps."""

    def __init__(self, summation: Summation) -> None:
        self._scale, self._of = 0.0, summation.energies
        self._sums = np.zeros(2)

    @property
    def removed(self) -> float:
        return float(self._sums[0] / self._sums[1]) if self._sums[1] > 0 else 0.0

    def add(self, x: Array, y: Array) -> None:
        """Add samples and denoised samples of one shape."""
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

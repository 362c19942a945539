"""The steps of denoising: decompose, estimate the noise, choose thresholds, shrink and reconstruct.

Traces that share thresholds are a group: one trace, or with scope "record" all of them. `denoise` takes groups of
segments between gaps in memory. For Dask, and for files larger than memory, chunks of `Rows` are denoised, and their
coefficients are computed again in every pass. The counts of a pass are exact (`wavefilt.statistics.mergeable`), so
chunks give the result of whole traces.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from wavefilt import chunks, noise_curves
from wavefilt.arrays import Array, Counts, Floats, Mask, constant
from wavefilt.chunks import Chunk, Segments
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.noise_curves import Curve
from wavefilt.options import Options
from wavefilt.statistics.mergeable import Details
from wavefilt.statistics.reference import Measured, ReferenceStatistics, Statistics
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.trend import Trend, fit_read, of_rows
from wavefilt.vocabulary import Detrend
from wavefilt.wavelets.boundary import ROUND, extended

if TYPE_CHECKING:
    from wavefilt.backends.interface import Backend
    from wavefilt.statics import Statics

Parts = Sequence[tuple[Segments, int]]
"""Segments of one or more lengths, each with its number of levels."""
BLOCK = 16 << 20
"""Smallest block of samples in bytes; larger blocks are hardly faster."""
BLOCKS = 16
"""Largest number of blocks; with 16, the memory for all steps is about that of the result."""
SHAPES = 16
"""Number of segments of different lengths above which `Backend.for_many_shapes` denoises them."""
OFFSET = 0.5
"""Standard deviations of a trace above which its mean is large."""
LIVE_SHARE = 0.75
"""A coefficient is counted if at least this share of the energy of its filter lies on live samples."""
TRIMMED, FEWEST = 2, 8
"""Periods of a level, 2^(j+1) samples, cut from each end of a noise window, and half periods that must remain.

The filters of a level reach some periods beyond the window, into the signal that follows it.
"""


@dataclass(frozen=True)
class Job:
    """The options for rows of one length, with the number of levels, at least 1."""

    options: Options
    level: int
    samples: int

    @cached_property
    def analysis(self) -> Analysis:
        """The transform."""
        return self.options.analysis(self.level)

    @cached_property
    def lengths(self) -> Counts:
        """Detail coefficients of a whole row in each band, finest first."""
        return np.array(self.options.sizes(self.analysis, (self.samples,)), np.int64)

    def details(self, chunk: Chunk, pyramid: Pyramid, first: int = 0) -> Details:
        """Return the detail coefficients that belong to the chunk, and their places in a group.

        ``first`` is the place of the first row of the group.
        """
        bands, found = self.options.bands(self.level), []
        counted = self.options.counted(pyramid).details
        for band, details, length in zip(bands, counted, self.lengths.tolist(), strict=True):
            spacing = self.options.transform.spacing(band.level)
            starts = [(chunk.place - first) * length + (part.start >> spacing) for part in chunk.parts]
            owned = chunk.owned(spacing)
            found.append([(start, details[:, own]) for start, own in zip(starts, owned, strict=True)])
        return found


def measure(
    options: Options, statistics: Statistics, samples: int, noise: Floats | None = None, report: bool = False
) -> Measured | None:
    """Return noise and thresholds (bands, groups) of groups with ``samples`` samples each, finest band first.

    ``noise`` is the noise if it is known; in bands where it is NaN, it is estimated from their own coefficients. With
    ``report`` the mean squares are measured too. Return None if samples or the squares of coefficients are not finite.
    """
    estimated: Mask = np.zeros(1, bool)  # groups whose noise is not known in any band
    if noise is not None and np.isnan(noise).any():
        estimated = np.asarray(np.isnan(noise).all(axis=0))
        own = options.transform.noise(statistics, "level", options.bands_of(len(noise)))
        noise = np.where(np.isnan(noise), own, noise)
    sigma, thresholds = options.thresholds(statistics, samples, noise)
    if estimated.any():  # these groups have the thresholds of a run without a noise window
        _, usual = options.with_noise("level").thresholds(statistics, samples, noise)
        thresholds = np.where(estimated, usual, thresholds)
    if not (np.isfinite(sigma).all() and np.isfinite(thresholds).all()):
        return None
    return Measured(sigma, thresholds, statistics.mean_square() if report else None)


class Rows(ABC):
    """Rows (traces, samples) that are denoised chunk by chunk.

    ``x`` holds the samples of the last chunk taken, ``trends`` the trends of the rows of each chunk, by its first row.
    """

    def __init__(self, x: Array, backend: Backend) -> None:
        self.x, self.backend, self.trends = x, backend, dict[int, Trend]()

    @abstractmethod
    def take(self, chunk: Chunk) -> Array:
        """Return the samples of a chunk, C-contiguous, shape (rows, chunk.length)."""

    @abstractmethod
    def put(self, chunk: Chunk, y: Array) -> None:
        """Write the samples of a denoised chunk that belong to it."""

    @abstractmethod
    def read(self, row: int, first: int, last: int) -> Array:
        """Return samples of a row."""

    def decompose(self, chunk: Chunk, job: Job) -> Pyramid:
        """Return the coefficients of a chunk."""
        x = self.take(chunk)
        if job.options.trend is not None:
            self._fit(chunk, x, job.options.trend)
            x = self._with_trends(chunk, x, np.empty_like(x), np.subtract)
        return self.backend.decompose(x, job.analysis)

    def write(self, chunk: Chunk, pyramid: Pyramid, shrinkage: Shrinkage, job: Job) -> bool:
        """Write a chunk, denoised with the shrinkage of all rows; return whether its approximation was finite.

        Rows whose thresholds are all 0 stay unchanged bit for bit.
        """
        options, finite = job.options, bool(np.isfinite(np.abs(pyramid.coefficients[0])).all())
        own = shrinkage.of_rows(chunk.rows)
        y = self.backend.reconstruct(pyramid, own)
        if options.trend is not None:
            self._with_trends(chunk, y, y, np.add)
        y = options.blended(self.x, y)
        unchanged = ~own.thresholds.any(axis=0)
        y[unchanged] = self.x[unchanged]
        self.put(chunk, y)
        return finite

    def _fit(self, chunk: Chunk, x: Array, kind: Detrend) -> None:
        """Fit the trends of the rows of a chunk ``x``; a row is read if the chunk does not hold all of it."""
        row, whole = chunk.rows.start, chunk.parts[0].stop == chunk.samples
        if row not in self.trends:
            self.trends[row] = of_rows(x, kind) if whole else fit_read(partial(self.read, row), chunk.samples, kind)

    def _with_trends(self, chunk: Chunk, x: Array, out: Array, operation: np.ufunc) -> Array:
        """Subtract the trends of the rows from a chunk ``x``, or add them again; the result is in ``out``."""
        begin = 0
        for part in chunk.parts:
            own = slice(begin, begin + part.last - part.first)
            self.trends[chunk.rows.start].change(operation, x[:, own], part.first, out[:, own])
            begin = own.stop
        return out


@dataclass(frozen=True)
class Estimate:
    """Noise, thresholds and mean squares (None unless asked for) of segments: (bands, segments), finest band first.

    ``analysis`` is the transform of the bands. ``approximation`` (2, segments) holds the noise and the threshold of the
    approximation, for a rule that shrinks it.
    """

    segments: Segments
    sigma: Floats
    thresholds: Floats
    power: Floats | None
    analysis: Analysis
    approximation: Floats | None = None

    @classmethod
    def of(cls, measured: Measured, part: Segments, samples: Array | None, options: Options, level: int) -> Estimate:
        """Return the numbers of a group for some of its segments, which have ``level`` levels.

        All are 0 for segments whose ``samples``, if given, are all equal: their details are rounding errors.
        """
        details, dead = len(options.transform.bands(level)), None
        if samples is not None and samples.ndim == 2:
            dead = constant(samples)
            dead = dead if dead.any() else None

        def columns(numbers: Floats) -> Floats:
            own = options.cut(numbers, level)
            if own.shape[1] != len(part.rows):
                own = np.broadcast_to(own, (len(own), len(part.rows)))
            return own if dead is None else np.where(dead, 0.0, own)

        sigma, thresholds = columns(measured.sigma), columns(measured.thresholds)
        power = None if measured.power is None else columns(measured.power)[:details]
        approximation = np.stack([sigma[-1], thresholds[-1]]) if options.shrinks_approximation else None
        return cls(part, sigma[:details], thresholds[:details], power, options.analysis(level), approximation)

    @property
    def unchanged(self) -> Mask:
        """The segments whose thresholds are all 0, shape (segments,)."""
        return np.asarray(~self._all_thresholds.any(axis=0))

    @property
    def counts(self) -> Counts:
        """Number of coefficients of one segment in each band."""
        return np.array(self.analysis.transform.sizes(self.analysis, self.segments.shape), np.int64)

    def shrinkage(self, options: Options, samples: int) -> Shrinkage:
        """Return how to shrink the coefficients of segments with this many samples."""
        return Shrinkage(options.function(samples), self._all_thresholds, self.sigma, options.scope == "record")

    @property
    def _all_thresholds(self) -> Floats:
        """The thresholds, with that of the approximation as the last if it is shrunk."""
        own = self.thresholds
        return own if self.approximation is None else np.concatenate([own, self.approximation[1:]])


@dataclass(eq=False)
class Outcome:
    """Denoised samples with the options, the backend that ran, the number of levels and the estimates.

    ``found`` holds the estimates or, for rows without gaps or dead rows, noise and thresholds. The estimates are then
    made on first access, because this takes longer than denoising a small array.
    """

    samples: Array
    options: Options
    backend: str
    level: int
    found: list[Estimate] | Measured
    statics: Statics | None = None

    @cached_property
    def estimates(self) -> list[Estimate]:
        """Noise and thresholds of segments of the samples; empty if nothing was transformed."""
        found = self.found
        if isinstance(found, list):
            return found
        rows = self.samples.reshape(-1, self.samples.shape[-1])
        return [Estimate.of(found, chunks.whole(rows)[0], None, self.options, self.level)]

    def __repr__(self) -> str:
        size = f"{' x '.join(map(str, self.samples.shape))} {self.samples.dtype}"
        return f"<Outcome {size}, {self.options.summary(self.level)}, backend {self.backend}>"


def denoise(
    x: Array, options: Options, backend: Backend, level: int, report: bool = False, out: Array | None = None
) -> tuple[Array, list[Estimate] | Measured]:
    """Denoise traces (traces, samples) or sections (sections, rows, columns) in memory, between their gaps.

    Return the samples and the estimates, or noise and thresholds as for `Outcome`. ``report`` also measures the power
    of the details, which takes another pass for rules that do not need it; without it a backend that denoises whole
    batches on a device returns no estimates. ``out`` is memory for the result, with the shape and dtype of ``x`` and no
    overlap with it; the result may still be elsewhere.
    """
    if options.ndim == 1 and options.scope == "record" and x.size:
        dead = constant(x, gaps=True)
        if dead.any():
            return _without_dead(x, dead, options, backend, level, report)
    if level and x.size and options.plain:
        whole = backend.denoise(x, options.unblended, level, report, out)
        if whole is not None:
            y, measured = whole
            y = options.blended(x, y)
            if measured is None or not backend.device:
                return y, measured or []
            return y, [Estimate.of(measured, chunks.whole(x)[0], x, options, level)]
    blocks = min(len(x), x.nbytes // BLOCK, BLOCKS)
    if blocks < 2 or options.scope == "record" or backend.device:
        return _by_steps(x, options, backend, level, report, out)
    y, found = backend.result(x.shape, x.dtype) if out is None else out, []
    for first, last in pairwise(np.linspace(0, len(x), blocks + 1).astype(np.intp).tolist()):
        own, rows = y[first:last], x[first:last]
        try:
            done, estimates = _by_steps(rows, options, backend, level, report, own)
        except ValueError:  # the error names a trace by its number in the block
            _by_steps(x, options, backend, level, report, None)
            raise
        if done is not own:
            own[:] = done
        found += [replace(e, segments=replace(e.segments, rows=e.segments.rows + first)) for e in estimates]
    return y, found


def _without_dead(
    x: Array, dead: Mask, options: Options, backend: Backend, level: int, report: bool
) -> tuple[Array, list[Estimate]]:
    """Denoise the live traces of a record alone; dead ones, which are unchanged, say nothing about the noise."""
    parts = chunks.whole(x) if math.isfinite(backend.peak(x)) else chunks.segments(x)  # which names infinite samples
    done, found = denoise(x[~dead], options, backend, level, report)
    assert isinstance(found, list)  # a whole call of a backend in host memory is for single traces
    y, rows = x.copy(), np.flatnonzero(~dead)
    y[~dead] = done
    estimates = [replace(own, segments=replace(own.segments, rows=rows[own.segments.rows])) for own in found]
    for part in parts if found or dead.all() else []:
        own, depth = dead[part.rows], min(level, options.deepest(*part.shape))
        if depth > 0 and own.any():
            nothing = np.zeros((len(options.bands(depth)), 1))
            measured = Measured(nothing, nothing, nothing if report else None)
            segments = replace(part, rows=part.rows[own], starts=part.starts[own])
            estimates.append(Estimate.of(measured, segments, None, options, depth))
    return y, estimates


def _by_steps(
    x: Array, options: Options, backend: Backend, level: int, report: bool, out: Array | None
) -> tuple[Array, list[Estimate]]:
    """Denoise segment by segment, one step after the other."""
    given, begun, means = x, list[Pyramid](), None
    centred = options.transform.without_offsets and x.dtype.kind == "f"
    if level and x.size and options.trend is None and not centred:
        peak, pyramid = backend.peak_and_pyramid(x, options.analysis(level))
        begun += [pyramid] if pyramid else []
    else:
        peak = backend.peak(x)
    finite = not x.size or math.isfinite(peak)
    live = chunks.live_samples(x, finite) if options.ndim == 2 and x.size else None
    found = chunks.whole(x) if finite or live is not None else chunks.segments(x)
    check_size(x, peak, level, options)
    if centred and x.size:
        means = offsets(x, live)
        x = x - means
    if live is not None:
        x, found = chunks.filled(x, live)
        begun.clear()
    parts = [(part, min(level, options.deepest(*part.shape))) for part in found]
    parts = [(part, depth) for part, depth in parts if depth > 0]
    backend = backend.for_many_shapes if len(parts) > SHAPES else backend
    groups = [[part] for part in parts] if options.scope == "trace" else [parts]
    noise = window_noise(x, parts, options, level, backend) if options.noise.window and parts else None
    y: Array | None = None
    estimates = []
    for group in filter(None, groups):
        for rows, estimate in _denoise_group(x, group, options, backend, noise, begun, out, report):
            y = _placed(rows, estimate, x, y)
            estimates.append(estimate)
    done = x.copy() if y is None else options.blended(x, y)
    if means is not None:
        done += means
        for estimate in estimates:  # bit for bit
            rows = estimate.segments.rows[estimate.unchanged]
            done[rows] = given[rows]
    return done if live is None else np.where(live, done, given), estimates


def offsets(sections: Array, live: Mask | None) -> Array:
    """Return the mean of each trace (sections, traces, 1), or 0 in sections where most of them are small.

    Means up to `OFFSET` standard deviations of their trace may be noise, which the transform is to remove.
    """
    known = np.ones(sections.shape, bool) if live is None else live
    count = np.maximum(known.sum(axis=2, keepdims=True), 1)
    mean = np.sum(sections, axis=2, where=known, keepdims=True, dtype=float) / count
    square = np.sum((sections - mean) ** 2, axis=2, where=known, keepdims=True) / count
    large = mean**2 > OFFSET**2 * square
    most = 2 * large.sum(axis=1, keepdims=True) > known.any(axis=2, keepdims=True).sum(axis=1, keepdims=True)
    return np.where(most, mean, 0).astype(sections.dtype)


def _placed(rows: Array, estimate: Estimate, x: Array, y: Array | None) -> Array:
    """Return the output with these denoised rows, which are the whole output or segments of it.

    Traces whose thresholds are all 0 stay unchanged bit for bit.
    """
    part, unchanged = estimate.segments, estimate.unchanged
    if unchanged.any():
        rows[unchanged] = part.of(x)[unchanged]
    if rows.shape == x.shape:
        return rows
    y = x.copy() if y is None else y
    y[part.places] = rows
    return y


def check_size(x: Array, peak: float, level: int, options: Options) -> None:
    """Raise ValueError if the coefficients of samples of this size could overflow."""
    if math.isnan(peak):
        peak = float(np.nanmax(np.abs(x), initial=0))
    if peak > np.finfo(x.dtype).max / options.transform.growth(options.filters, level):
        raise ValueError(f"samples of {peak:.3g} overflow {x.dtype} in the transform; scale them down first")


def _denoise_group(
    x: Array,
    parts: Parts,
    options: Options,
    backend: Backend,
    window_noise: Floats | None,
    begun: list[Pyramid],
    out: Array | None,
    report: bool,
) -> list[tuple[Array, Estimate]]:
    """Denoise segments in memory, each with its number of levels, that share thresholds (one shape, or a record).

    Return the denoised rows and the estimate of each part. With cycle spinning, rows are the mean over shifts, and the
    estimates belong to the run without a shift. ``window_noise`` (bands, traces or 1) is the noise of a noise window.
    ``begun`` holds the coefficients if they are known already, and is emptied. Segments with the shape of ``out`` may
    be written to it.
    """
    given, deepest = [part.of(x) for part, _ in parts], max(depth for _, depth in parts)
    trends = [] if options.trend is None else [of_rows(rows, options.trend) for rows in given]
    rows = [trend.removed(own) for trend, own in zip(trends, given, strict=True)] if trends else [*given]
    all_shifts, done = options.shifts(deepest), list[tuple[Array, Estimate]]()
    for turn, whole_shift in enumerate(all_shifts):
        shifts = [tuple(along % (1 << depth) for along in whole_shift) for _, depth in parts]
        pyramids = [
            begun.pop() if begun else backend.decompose(_shifted(own, shift, options.mode), options.analysis(depth))
            for own, shift, (_, depth) in zip(rows, shifts, parts, strict=True)
        ]
        samples, noise, curves = 0, None, list[list[Curve]]()
        for pyramid, (part, _) in zip(pyramids, parts, strict=True):
            live = pyramid.samples if part.live is None else int(np.count_nonzero(part.live))
            samples += live * (len(part.rows) if options.scope == "record" else 1)
        if options.noise.changing:
            starts = [(part.starts - shift).tolist() for (part, _), (shift,) in zip(parts, shifts, strict=True)]
            noise, curves = noise_curves.divide(pyramids, starts, options)
        elif window_noise is not None:
            noise = options.cut(window_noise[:, parts[0][0].rows if window_noise.shape[1] > 1 else [0]], deepest)
        measured = measure(options, _statistics(pyramids, rows, parts, options, backend), samples, noise, report)
        if measured is None:
            raise ValueError(SQUARES_OVERFLOW)
        if turn == len(all_shifts) - 1:
            rows.clear()  # copies, where a trend was removed
        for i, (pyramid, (part, depth)) in enumerate(zip(pyramids, parts, strict=True)):
            estimate = Estimate.of(measured, part, given[i], options, depth)
            shrinkage = estimate.shrinkage(options, pyramid.samples)
            if curves:
                pyramid = backend.shrunk(pyramid, shrinkage)
                noise_curves.change(curves[i], np.multiply, pyramid)
                y = backend.reconstruct(pyramid)
            else:
                fits = not turn and out is not None and out.shape == given[i].shape
                y = backend.reconstruct(pyramid, shrinkage, out if fits else None)
            y = _back(y, shifts[i], options.mode)
            if turn:
                mean = done[i][0]
                mean += (y - mean) / (turn + 1)
            else:
                done.append((y, estimate))
        del pyramids, pyramid, y  # before the next shift
        report = False  # nothing is reported about further shifts
    for (y, _), trend in zip(done, trends, strict=False):
        trend.restore(y)
    return done


def _statistics(
    pyramids: Sequence[Pyramid], rows: Sequence[Array], parts: Parts, options: Options, backend: Backend
) -> Statistics:
    """Return the statistics of the group; for a section with gaps, only of its live rows, side by side.

    Interpolated rows have less noise than others, and add something other than noise to neighbouring coefficients.
    """
    measured, gappy = list(pyramids), list[Mask | None]([None] * len(pyramids))
    mode = "symmetric" if "reflect" in options.mode else options.mode  # which cannot extend a single row
    for i, (part, _) in enumerate(parts):
        if part.live is not None:
            there = part.live.any(axis=1)
            analysis = options.transform.analysis(options.filters, mode, pyramids[i].level)
            measured[i] = backend.decompose(np.ascontiguousarray(rows[i][:, there]), analysis)
            gappy[i] = None if part.live[there].all() else part.live[there]
    deepest = max(pyramid.level for pyramid in measured)  # the approximation of fewer levels is not a common band
    measured = [options.counted(pyramid) if pyramid.level == deepest else pyramid for pyramid in measured]
    if not any(live is not None for live in gappy):
        return backend.statistics(measured, options.scope)
    found: list[list[Array]] = []
    for pyramid, live in zip(measured, gappy, strict=True):
        details = pyramid.details
        if live is not None:
            shares = options.transform.live_shares(live, pyramid.analysis)
            details = tuple(d[s >= min(LIVE_SHARE, s.max())] for d, s in zip(details, shares, strict=True))
        found.append([np.ravel(d) for d in details])
    return ReferenceStatistics([np.concatenate(bands)[None] for bands in zip(*found, strict=True)])


def _shifted(x: Array, shifts: tuple[int, ...], mode: str) -> Array:
    """Shift rows or sections to begin earlier: into their extension, or circularly in periodic modes.

    ``shifts`` has the samples for each axis except the first.
    """
    for axis, shift in enumerate(shifts, 1):
        if shift and mode in ROUND:
            x = np.roll(x, shift, axis=axis)
        elif shift:
            x = extended(x, mode, shift, 0, axis)
    return np.ascontiguousarray(x)


def _back(x: Array, shifts: tuple[int, ...], mode: str) -> Array:
    """Undo `_shifted`."""
    for axis, shift in enumerate(shifts, 1):
        if shift and mode in ROUND:
            x = np.roll(x, -shift, axis=axis)
        elif shift:
            x = x[(slice(None),) * axis + (slice(shift, None),)]
    return x


def window_noise(traces: Array, parts: Parts, options: Options, level: int, backend: Backend) -> Floats:
    """Return the noise (bands, traces), or (bands, 1) of a record, from the details of the noise window.

    Levels too coarse for the window have the noise of its coarsest level, scaled for white noise; with a rule for
    coloured noise they are NaN, which stands for the estimate from all coefficients of the level. All levels of traces
    with a gap or a run of equal samples in the window are NaN too; a record has the noise of its other traces.
    """
    if options.ndim == 2:
        return _window_noise_of_sections(traces, parts, options, level, backend)
    window = options.noise.window_in(traces.shape[1])
    length = window.stop - window.start
    if options.rule.local:
        return _window_energy(traces, parts, options, level, backend)
    depth = min(level, options.transform.usual_level((length,), options.filters))
    if depth == 0:
        filters = f"{options.filters.name} ({options.filters.dec_len} taps)"
        raise ValueError(f"the noise window has {length} samples, too few for {filters}; give a longer one")
    inside = traces[:, window]
    rows = np.where(np.isfinite(inside), inside, 0)
    covered, record = np.zeros(len(rows), bool), options.scope == "record"
    for part, _ in parts:
        covered[part.rows[(part.starts <= window.start) & (part.starts + part.samples >= window.stop)]] = True
    covered &= ~constant(rows)
    rows = rows[covered] if record and covered.any() else rows
    statistics = backend.statistics([backend.decompose(rows, options.analysis(depth))], options.scope)
    found = options.transform.noise(statistics, "level", options.bands(depth))
    found = np.where(covered.any() if record else covered, found, np.nan)
    return options.transform.noise_from_fewer(found, level, options)


def _window_noise_of_sections(x: Array, parts: Parts, options: Options, level: int, backend: Backend) -> Floats:
    """Return the noise (bands, sections), or (bands, 1) of a record, from the noise window of the live traces."""
    window, found = options.noise.window_in(x.shape[2]), np.zeros((len(options.bands(level)), len(x)))
    for part, _ in parts:
        sections, live = part.of(x)[..., window], x.shape[1]
        if part.live is not None:
            sections = sections[:, part.live[:, window].all(axis=1)]
            live = int(np.count_nonzero(part.live.any(axis=1)))
        shape = sections.shape[1:]
        if 2 * shape[0] < live and options.transform.usual_level((live, shape[1]), options.filters):
            found[:, part.rows] = np.nan  # most traces have gaps or mutes there
            continue
        depth = min(level, options.transform.usual_level(shape, options.filters)) if min(shape) else 0
        if depth == 0:
            few = f"the noise window has {shape[0]} traces of {shape[1]} samples, too few for {options.filters.name}"
            raise ValueError(f"{few}; give a longer one")
        pyramid = backend.decompose(np.ascontiguousarray(sections), options.analysis(depth))
        own = np.sqrt(backend.statistics([pyramid], "trace").mean_square() / options.transform.parts)
        found[:, part.rows] = options.transform.noise_from_fewer(own, level, options)
    if options.scope == "record":
        rows = np.concatenate([part.rows for part, _ in parts])
        found = np.sqrt(_mean_of_known(np.square(found[:, rows])))
    return found


def _mean_of_known(values: Floats) -> Floats:
    """Return the mean along the rows (bands, 1) of values that are not NaN; NaN without any."""
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0).sum(axis=1, keepdims=True), known.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0))


def _window_energy(traces: Array, parts: Parts, options: Options, level: int, backend: Backend) -> Floats:
    """Return the noise as `window_noise` does, from the mean square of the traces' own coefficients in the window.

    The window is trimmed by `TRIMMED` periods at each end, but by at most a quarter; the rest must have `FEWEST` half
    periods.
    """
    window, bands = options.noise.window_in(traces.shape[1]), len(options.bands(level))
    length = window.stop - window.start
    squares, real = np.full((bands, len(traces)), np.nan), options.transform.parts
    for part, depth in parts:
        starts = window.start - part.starts
        around = (starts >= 0) & (starts + length <= part.samples) & ~constant(traces[part.rows, window])
        for start in np.unique(starts[around]):
            own = around & (starts == start)
            rows = part.of(traces)[own]
            if options.trend is not None:
                rows = of_rows(rows, options.trend).removed(rows)
            pyramid = backend.decompose(np.ascontiguousarray(rows), options.analysis(depth))
            grids = options.transform.grids(pyramid.analysis, pyramid.shape)
            for i, (band, grid) in enumerate(zip(pyramid.coefficients[::-1], grids, strict=True)):
                period = 1 << min(i + 1, depth + 1)
                trim = min(TRIMMED * 2 * period, length // 4)
                first, last = start + trim, start + length - trim
                if last - first >= FEWEST * period and (i < depth or depth == level):
                    times = grid.first + grid.step * np.arange(grid.count)
                    inside = slice(*np.searchsorted(times, (first, last)))  # a mask would change the order of sums
                    squares[i, part.rows[own]] = np.square(np.abs(band[:, inside]), dtype=float).mean(axis=1) / real
    if options.scope == "record":
        squares = _mean_of_known(squares)
    return np.asarray(np.sqrt(squares))


def spread(found: Sequence[Floats]) -> tuple[list[float], list[list[float]]]:
    """Return, for each level of numbers (levels, traces), their median, and their 10th and 90th percentiles."""
    levels = [np.concatenate(rows) for rows in zip_longest(*found, fillvalue=np.empty(0))]
    ranges = [np.percentile(level, (10, 90)).tolist() for level in levels if level.size]
    return [float(np.median(level)) for level in levels if level.size], ranges

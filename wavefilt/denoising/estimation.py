"""The steps of denoising for batches that share a length, or that share thresholds as a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wavefilt.arrays import Array, Counts, Floats, Mask, constant
from wavefilt.backends.interface import Backend
from wavefilt.chunking.noise_curves import NoiseCurves, of_pyramid, pooled
from wavefilt.chunking.trend import of_rows
from wavefilt.denoising.gaps import Segments
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.options import Options
from wavefilt.statistics.batch import ReferenceStatistics
from wavefilt.statistics.interface import Measured, Statistics
from wavefilt.thresholding.shrinkage import Function, Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets import modwt_boundary
from wavefilt.wavelets.extension import extended

LIVE_SHARE = 0.75
"""Of a coefficient's filters' energy, what has to be on live samples for it to be counted."""

TRIMMED, FEWEST = 2, 8
"""Periods of a level, 2^(j+1) samples, by which a window of noise is trimmed at each end; halves of them to be left.

The filters of a level reach beyond the window by some periods, into the signal that follows it.
"""


@dataclass(frozen=True)
class Estimate:
    """Noise, thresholds and mean squares (None unless asked for) of the bands of a batch, (bands, runs), finest first.

    ``analysis`` is the transform that gave the bands. ``approximation`` (2, runs) are noise and threshold of the
    approximation, by a rule that shrinks it.
    """

    segments: Segments
    sigma: Floats
    thresholds: Floats
    power: Floats | None
    analysis: Analysis
    approximation: Floats | None = None

    @property
    def unchanged(self) -> Mask:
        """The runs whose thresholds are all 0, shape (runs,)."""
        return np.asarray(~self._all_thresholds.any(axis=0))

    def shrinkage(self, function: Function, pooled: bool) -> Shrinkage:
        """What shrinks its coefficients."""
        return Shrinkage(function, self._all_thresholds, self.sigma, pooled)

    @property
    def _all_thresholds(self) -> Floats:
        """That of the approximation, if it has one, is the last."""
        own = self.thresholds
        return own if self.approximation is None else np.concatenate([own, self.approximation[1:]])

    @property
    def counts(self) -> Counts:
        """Number of coefficients of one run in each band."""
        return np.array(self.analysis.transform.sizes(self.analysis, self.segments.shape), np.int64)


def denoised(
    x: Array,
    group: Sequence[tuple[Segments, int]],
    method: Options,
    backend: Backend,
    noise: Floats | None = None,
    report: bool = False,
    begun: list[Pyramid] | None = None,
    out: Array | None = None,
) -> list[tuple[Array, Estimate]]:
    """Batches with their levels, one alone or all of a record: their rows denoised, and an estimate for each.

    Decompose, measure, choose thresholds, shrink and reconstruct; with `Options.spins` the mean of that over shifts of
    the samples, and the estimates of the unshifted ones. ``noise`` (levels, traces or 1) is what a window told.
    ``begun`` has the pyramid of the only batch if that is decomposed already, and gives it away. ``out`` is memory that
    the rows of a batch of its shape may be in.
    """
    done: list[tuple[Array, Estimate]] = []
    batches = [part.of(x) for part, _ in group]
    given, trends = [*batches], None
    if method.trend is not None:
        trends = [of_rows(own, method.trend) for own in batches]
        batches = [trend.removed(own) for own, trend in zip(batches, trends, strict=True)]
    shapes, shifts = [own.shape for own in batches], method.axis_shifts(max(depth for _, depth in group))
    for turn, shift in enumerate(shifts):
        own_shifts = [tuple(along % (1 << depth) for along in shift) for _, depth in group]
        pyramids = [
            begun.pop() if begun else backend.decompose(_shifted(own, at, method.mode), method.analysis(depth))
            for own, at, (_, depth) in zip(batches, own_shifts, group, strict=True)
        ]
        curves = _steady(pyramids, group, own_shifts, method) if method.changing else None
        statistics = _statistics(pyramids, batches, [part.live for part, _ in group], method, backend)
        samples = 0  # of a group, that are not filled
        for pyramid, (part, _) in zip(pyramids, group, strict=True):
            own = pyramid.samples if part.live is None else np.count_nonzero(part.live)
            samples += int(own) * (len(part.rows) if method.scope == "record" else 1)
        known = None if curves is None else curves[0]
        if noise is not None:
            own_noise = noise[:, group[0][0].rows if noise.shape[1] > 1 else [0]]
            known = _completed(method.cut(own_noise, max(depth for _, depth in group)), statistics, method)
        pooled = _thresholds(statistics, method, samples, known)
        power = statistics.mean_square() if report and not turn else None
        del statistics  # and the coefficients that it has copied
        if turn == len(shifts) - 1:
            batches.clear()  # copies, where a trend was removed
        for i, (pyramid, (part, depth)) in enumerate(zip(pyramids, group, strict=True)):
            estimate = estimate_of(Measured(*pooled, power), part, given[i], method, depth)
            shrinkage = estimate.shrinkage(method.function(pyramid.samples), method.scope == "record")
            if curves is None:
                into = None if turn or out is None or out.shape != shapes[i] else out
                rows = backend.reconstruct(pyramid, shrinkage, into)
            else:
                pyramid = backend.shrunk(pyramid, shrinkage)
                curves[1][i].change(np.multiply, pyramid)
                rows = backend.reconstruct(pyramid)
            rows = _back(rows, own_shifts[i], method.mode)
            if turn:
                done[i][0][:] += (rows - done[i][0]) / (turn + 1)
            else:
                done.append((rows, estimate))
    for (rows, _), trend in zip(done, trends or [], strict=False):
        trend.restore(rows)
    return done


def _steady(
    pyramids: Sequence[Pyramid],
    group: Sequence[tuple[Segments, int]],
    shifts: Sequence[tuple[int, ...]],
    method: Options,
) -> tuple[Floats, list[NoiseCurves]]:
    """Divide the coefficients of a group in place by the curves of their noise, which are relative to its mean.

    Those, and the mean noise (bands, groups): of a record over its traces that have any.
    """
    found = [
        of_pyramid(pyramid, method, (part.starts - shift).tolist())
        for pyramid, (part, _), (shift,) in zip(pyramids, group, shifts, strict=True)
    ]
    if method.scope == "trace":
        sigma = found[0].sigma
    else:
        deepest = max(found, key=lambda curves: len(curves.counts))
        sigma = pooled([curves.sigma for curves in found], len(deepest.counts), method)
    relative = [curves.over(method.cut(sigma, depth)) for curves, (_, depth) in zip(found, group, strict=True)]
    for curves, pyramid in zip(relative, pyramids, strict=True):
        curves.change(np.divide, pyramid)
    return sigma, relative


def _statistics(
    pyramids: Sequence[Pyramid],
    batches: Sequence[Array],
    masks: Sequence[Mask | None],
    method: Options,
    backend: Backend,
) -> Statistics:
    """Of the coefficients of a group; of a panel with gaps, those of its live rows side by side.

    Interpolated rows have less noise than others, and what they add to neighbouring coefficients is not noise.
    """
    measured, gappy = list(pyramids), list[Mask | None]([None] * len(pyramids))
    mode = "symmetric" if "reflect" in method.mode else method.mode  # which cannot extend a single row
    for i, live in enumerate(masks):
        if live is not None:
            there = live.any(axis=1)
            analysis = method.transform.analysis(method.filters, mode, pyramids[i].level)
            measured[i] = backend.decompose(np.ascontiguousarray(batches[i][:, there]), analysis)
            gappy[i] = None if live[there].all() else live[there]
    if method.shrinks_approximation:  # a shallower one's approximation is no band of the others
        deepest = max(pyramid.level for pyramid in measured)
        measured = [p.with_approximation if p.level == deepest else p for p in measured]
    if not any(live is not None for live in gappy):
        return backend.statistics(measured, method.scope)
    found: list[list[Array]] = []
    for pyramid, live in zip(measured, gappy, strict=True):
        details = pyramid.details
        if live is not None:
            shares = method.transform.live_shares(live, pyramid.analysis)
            details = tuple(d[s >= min(LIVE_SHARE, s.max())] for d, s in zip(details, shares, strict=True))
        found.append([np.ravel(d) for d in details])
    return ReferenceStatistics([np.concatenate(bands)[None] for bands in zip(*found, strict=True)])


def _shifted(x: Array, shifts: tuple[int, ...], mode: str) -> Array:
    """Rows or panels that begin so many samples earlier: in their extension, or circularly where the mode is periodic.

    ``shifts`` has one for each axis but the first.
    """
    for axis, shift in enumerate(shifts, 1):
        if shift and mode in modwt_boundary.ROUND:
            x = np.roll(x, shift, axis=axis)
        elif shift:
            x = np.moveaxis(extended(np.moveaxis(x, axis, -1), mode, shift, 0), -1, axis)
    return np.ascontiguousarray(x)


def _back(x: Array, shifts: tuple[int, ...], mode: str) -> Array:
    """The opposite of `_shifted`."""
    for axis, shift in enumerate(shifts, 1):
        if shift and mode in modwt_boundary.ROUND:
            x = np.roll(x, -shift, axis=axis)
        elif shift:
            x = x[(slice(None),) * axis + (slice(shift, None),)]
    return x


def window_noise(
    traces: Array, batches: Sequence[tuple[Segments, int]], method: Options, level: int, backend: Backend
) -> Floats:
    """Noise (bands, traces), or (bands, 1) of a record, by the details of the samples that are noise alone.

    Levels too coarse for them have what white noise of their coarsest level would be there; with a rule for coloured
    noise they are NaN, for that of the level itself to be taken.
    """
    window = method.window_in(traces.shape[1])
    start, stop = window.start, window.stop
    rows = np.ascontiguousarray(traces[:, start:stop])
    if not np.isfinite(rows).all():
        raise ValueError(f"the noise window from sample {start} to {stop} has gaps or infinite samples")
    if method.rule.local:
        return _window_energy(traces, batches, method, level, backend)
    depth = min(level, method.transform.usual_level((stop - start,), method.filters))
    if depth == 0:
        raise ValueError(
            f"the noise window has {stop - start} samples, too few for {method.filters.name} "
            f"({method.filters.dec_len} taps); name a longer one"
        )
    pyramid = backend.decompose(rows, method.analysis(depth))
    statistics = backend.statistics([pyramid], method.scope)
    found = method.transform.noise(statistics, "level", method.bands(depth))
    return np.concatenate([found, found[-1:] * method.noise_gains(level - depth + 1, "global")[1:]])


def _window_energy(
    traces: Array, batches: Sequence[tuple[Segments, int]], method: Options, level: int, backend: Backend
) -> Floats:
    """Noise as `window_noise`, from the mean square of the coefficients in the window of the traces' own transforms.

    At either end the window is trimmed by `TRIMMED` periods, but by a quarter of it at most; what is left must have
    `FEWEST` halves of one.
    """
    window = method.window_in(traces.shape[1])
    squares, parts = np.full((len(method.bands(level)), len(traces)), np.nan), method.transform.parts
    for part, depth in batches:
        starts = window.start - part.starts
        around = (starts >= 0) & (starts + window.stop - window.start <= part.samples)
        for start in np.unique(starts[around]):
            own = around & (starts == start)
            rows = part.of(traces)[own]
            if method.trend is not None:
                rows = of_rows(rows, method.trend).removed(rows)
            pyramid = backend.decompose(np.ascontiguousarray(rows), method.analysis(depth))
            grids = method.transform.grids(pyramid.analysis, pyramid.shape)
            for i, (band, grid) in enumerate(zip(pyramid.coefficients[::-1], grids, strict=True)):
                period = 1 << min(i + 1, depth + 1)
                trim = min(TRIMMED * 2 * period, (window.stop - window.start) // 4)
                first, last = start + trim, start + window.stop - window.start - trim
                if last - first >= FEWEST * period and (i < depth or depth == level):
                    times = grid.first + grid.step * np.arange(grid.count)
                    inside = band[:, (times >= first) & (times < last)]
                    squares[i, part.rows[own]] = np.square(np.abs(inside), dtype=np.float64).mean(axis=1) / parts
    if method.scope == "record":
        known = ~np.isnan(squares)
        total, count = np.where(known, squares, 0).sum(axis=1, keepdims=True), known.sum(axis=1, keepdims=True)
        squares = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return np.asarray(np.sqrt(squares))


def _completed(noise: Floats, statistics: Statistics, method: Options) -> Floats:
    """The noise (bands, groups), by that of the band itself where it is NaN."""
    unknown = np.isnan(noise)
    if not unknown.any():
        return noise
    return np.where(unknown, method.transform.noise(statistics, "level", method.bands_of(len(noise))), noise)


def _thresholds(statistics: Statistics, method: Options, samples: int, known: Floats | None) -> tuple[Floats, Floats]:
    sigma, thresholds = method.thresholds(statistics, samples, known)
    if not np.isfinite(thresholds).all():
        raise ValueError(SQUARES_OVERFLOW)
    return sigma, thresholds


def estimate_of(measured: Measured, part: Segments, samples: Array, method: Options, level: int) -> Estimate:
    """The group's numbers for one of its batches: the bands of its levels, and a column for each of its runs.

    All 0 for a trace whose ``samples`` are all equal: what its details hold is rounding.
    """
    details, dead = len(method.transform.bands(level)), constant(samples) if samples.ndim == 2 else None

    if dead is not None and not dead.any():
        dead = None

    def columns(numbers: Floats) -> Floats:
        own = method.cut(numbers, level)
        if own.shape[1] != len(part.rows):
            own = np.broadcast_to(own, (len(own), len(part.rows)))
        return own if dead is None else np.where(dead, 0.0, own)

    sigma, thresholds = columns(measured.sigma), columns(measured.thresholds)
    power = None if measured.power is None else columns(measured.power)[:details]
    approximation = np.stack([sigma[-1], thresholds[-1]]) if method.shrinks_approximation else None
    return Estimate(part, sigma[:details], thresholds[:details], power, method.analysis(level), approximation)


def joined(blocks: Sequence[tuple[int, Sequence[Estimate]]]) -> list[Estimate]:
    """The estimates of all rows by those of blocks of them, each with the number of its first row."""
    alike, alone = dict[tuple[int, ...], list[Estimate]](), list[Estimate]()
    for first, estimates in blocks:
        for own in estimates:
            own = replace(own, segments=replace(own.segments, rows=own.segments.rows + first))
            (alike.setdefault(own.segments.shape, []) if own.segments.live is None else alone).append(own)
    return [*(_side_by_side(alike[shape]) for shape in sorted(alike)), *alone]


def _side_by_side(found: Sequence[Estimate]) -> Estimate:
    """One estimate of runs of one shape."""

    def columns(numbers: Iterable[Floats | None]) -> Floats | None:
        known = [own for own in numbers if own is not None]
        return np.hstack(known) if known else None

    parts = [own.segments for own in found]
    rows, starts = np.concatenate([part.rows for part in parts]), np.concatenate([part.starts for part in parts])
    return replace(
        found[0],
        segments=replace(parts[0], rows=rows, starts=starts),
        sigma=np.hstack([own.sigma for own in found]),
        thresholds=np.hstack([own.thresholds for own in found]),
        power=columns(own.power for own in found),
        approximation=columns(own.approximation for own in found),
    )


def widened(own: Estimate | None, part: Segments, live: Mask, analysis: Analysis, report: bool) -> Estimate:
    """The estimate of a batch of which ``own`` has the live runs alone, None if there are none: 0 for the others."""

    def columns(numbers: Floats | None) -> Floats:
        found = np.zeros((len(analysis.transform.bands(analysis.level)), len(live)))
        if numbers is not None:
            found[:, live] = numbers
        return found

    sigma, thresholds, power = (None, None, None) if own is None else (own.sigma, own.thresholds, own.power)
    approximation = None
    if own is not None and own.approximation is not None:
        approximation = np.zeros((2, len(live)))
        approximation[:, live] = own.approximation
    power = columns(power) if report else None
    return Estimate(part, columns(sigma), columns(thresholds), power, analysis, approximation)


def spread(levels: Sequence[Floats]) -> tuple[list[float], list[list[float]]]:
    """Of the numbers of each level the medians, and the 10th and 90th percentiles."""
    ranges = [np.percentile(level, (10, 90)).tolist() for level in levels]
    return [float(np.median(level)) for level in levels], ranges

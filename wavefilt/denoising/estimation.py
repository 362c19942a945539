"""The steps of denoising for batches that share a length, or that share thresholds as a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pywt

from wavefilt.arrays import Array, Counts, Floats, Mask, constant
from wavefilt.backends.interface import Backend
from wavefilt.denoising.gaps import Segments
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.method import Method
from wavefilt.statistics.batch import ReferenceStatistics
from wavefilt.statistics.interface import Measured, Statistics
from wavefilt.thresholding import rules
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets import modwt_boundary
from wavefilt.wavelets.extension import extended
from wavefilt.wavelets.filters import max_level

LIVE_SHARE = 0.75
"""Of a coefficient's filters' energy, what has to be on live samples for it to be counted."""


@dataclass(frozen=True)
class Estimate:
    """Noise, thresholds and mean squares (None unless asked for) of the bands of a batch, (bands, runs), finest first.

    ``analysis`` is the transform that gave the bands.
    """

    segments: Segments
    sigma: Floats
    thresholds: Floats
    power: Floats | None
    analysis: Analysis

    @property
    def counts(self) -> Counts:
        """Number of coefficients of one run in each band."""
        return np.array(self.analysis.transform.sizes(self.analysis, self.segments.shape), np.int64)


def denoised(
    x: Array,
    group: Sequence[tuple[Segments, int]],
    method: Method,
    backend: Backend,
    noise: Floats | None = None,
    report: bool = False,
) -> list[tuple[Array, Estimate]]:
    """Batches with their levels, one alone or all of a record: their rows denoised, and an estimate for each.

    Decompose, measure, choose thresholds, shrink and reconstruct; with `Method.spins` the mean of that over shifts of
    the samples, and the estimates of the unshifted ones. ``noise`` (levels, traces or 1) is what a window told.
    """
    done: list[tuple[Array, Estimate]] = []
    batches = [part.of(x) for part, _ in group]
    for turn, shift in enumerate(method.shifts(max(depth for _, depth in group))):
        own_shifts = [shift % (1 << depth) for _, depth in group]
        pyramids = [
            backend.decompose(_shifted(own, at, method.mode), method.analysis(depth))
            for own, at, (_, depth) in zip(batches, own_shifts, group, strict=True)
        ]
        statistics = _statistics(pyramids, batches, [part.live for part, _ in group], method, backend)
        samples = 0  # of a group, that are not filled
        for pyramid, (part, _) in zip(pyramids, group, strict=True):
            own = pyramid.samples if part.live is None else np.count_nonzero(part.live)
            samples += int(own) * (len(part.rows) if method.scope == "record" else 1)
        known = None
        if noise is not None:
            known = noise[: len(statistics.counts), group[0][0].rows if noise.shape[1] > 1 else [0]]
        pooled = _thresholds(statistics, method, samples, known)
        power = statistics.mean_square() if report and not turn else None
        for i, (pyramid, (part, depth)) in enumerate(zip(pyramids, group, strict=True)):
            estimate = estimate_of(Measured(*pooled, power), part, batches[i], method, depth)
            shrinkage = Shrinkage(method.function(pyramid.samples), estimate.thresholds, estimate.sigma)
            rows = _back(backend.reconstruct(pyramid, shrinkage), own_shifts[i], method.mode)
            if turn:
                done[i][0][:] += (rows - done[i][0]) / (turn + 1)
            else:
                done.append((rows, estimate))
    return done


def _statistics(
    pyramids: Sequence[Pyramid],
    batches: Sequence[Array],
    masks: Sequence[Mask | None],
    method: Method,
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
            analysis = method.kind.analysis(method.bank, mode, pyramids[i].level)
            measured[i] = backend.decompose(np.ascontiguousarray(batches[i][:, there]), analysis)
            gappy[i] = None if live[there].all() else live[there]
    if not any(live is not None for live in gappy):
        return backend.statistics(measured, method.scope)
    found: list[list[Array]] = []
    for pyramid, live in zip(measured, gappy, strict=True):
        details = pyramid.details
        if live is not None:
            shares = _live_shares(live, pyramid.analysis)
            details = tuple(d[s >= min(LIVE_SHARE, s.max())] for d, s in zip(details, shares, strict=True))
        found.append([np.ravel(d) for d in details])
    return ReferenceStatistics([np.concatenate(bands)[None] for bands in zip(*found, strict=True)])


def _live_shares(live: Mask, analysis: Analysis) -> tuple[Array, ...]:
    """Of each coefficient, finest band first, which part of its filters' energy is on live samples of a panel.

    The transform of the mask by the squared filters.
    """
    wavelets, modes = [], []
    for wavelet, mode in zip(analysis.wavelets, analysis.modes, strict=True):
        squares = [np.square(taps) / np.sum(np.square(taps)) for taps in wavelet.filter_bank]
        wavelets.append(pywt.Wavelet("", filter_bank=squares))
        modes.append(mode if mode in modwt_boundary.ROUND else "symmetric")
    own = replace(analysis, wavelets=tuple(wavelets), modes=tuple(modes))
    transform = own.transform
    return transform.counted(transform.analyse(live[None].astype(np.float32), own), own, live.shape)


def _shifted(rows: Array, shift: int, mode: str) -> Array:
    """Rows that begin so many samples earlier: in their extension, or circularly where the mode is periodic."""
    if not shift or mode in modwt_boundary.ROUND:
        return np.roll(rows, shift, axis=1) if shift else rows
    return np.ascontiguousarray(extended(rows, mode, shift, 0))


def _back(rows: Array, shift: int, mode: str) -> Array:
    """The opposite of `_shifted`."""
    if not shift:
        return rows
    return np.roll(rows, -shift, axis=1) if mode in modwt_boundary.ROUND else rows[:, shift:]


def window_noise(traces: Array, method: Method, level: int, backend: Backend) -> Floats:
    """Noise (levels, traces), or (levels, 1) of a record, by the details of the samples that are noise alone.

    Levels too coarse for them have what white noise of their coarsest level would be there.
    """
    window = method.window_in(traces.shape[1])
    start, stop = window.start, window.stop
    rows = np.ascontiguousarray(traces[:, start:stop])
    if not np.isfinite(rows).all():
        raise ValueError(f"the noise window from sample {start} to {stop} has gaps or infinite samples")
    depth = min(level, max_level(stop - start, method.bank))
    if depth == 0:
        raise ValueError(
            f"the noise window has {stop - start} samples, too few for {method.bank.name} "
            f"({method.bank.dec_len} taps); name a longer one"
        )
    pyramid = backend.decompose(rows, method.analysis(depth))
    found = rules.noise(backend.statistics([pyramid], method.scope), "level")
    return np.concatenate([found, found[-1:] * method.noise_gains(level - depth + 1, "global")[1:]])


def _thresholds(statistics: Statistics, method: Method, samples: int, known: Floats | None) -> tuple[Floats, Floats]:
    sigma, thresholds = method.thresholds(statistics, samples, known)
    if not np.isfinite(thresholds).all():
        raise ValueError(SQUARES_OVERFLOW)
    return sigma, thresholds


def estimate_of(measured: Measured, part: Segments, samples: Array, method: Method, level: int) -> Estimate:
    """The group's numbers for one of its batches: the bands of its levels, and a column for each of its runs.

    All 0 for a trace whose ``samples`` are all equal: what its details hold is rounding.
    """
    bands, dead = len(method.kind.bands(level)), constant(samples) if samples.ndim == 2 else None

    def columns(numbers: Floats) -> Floats:
        own = numbers[:bands]
        if own.shape[1] != len(part.rows):
            own = np.broadcast_to(own, (bands, len(part.rows)))
        return own if dead is None or not dead.any() else np.where(dead, 0.0, own)

    power = None if measured.power is None else columns(measured.power)
    return Estimate(part, columns(measured.sigma), columns(measured.thresholds), power, method.analysis(level))


def widened(own: Estimate | None, part: Segments, live: Mask, analysis: Analysis, report: bool) -> Estimate:
    """The estimate of a batch of which ``own`` has the live runs alone, None if there are none: 0 for the others."""

    def columns(numbers: Floats | None) -> Floats:
        found = np.zeros((len(analysis.transform.bands(analysis.level)), len(live)))
        if numbers is not None:
            found[:, live] = numbers
        return found

    sigma, thresholds, power = (None, None, None) if own is None else (own.sigma, own.thresholds, own.power)
    return Estimate(part, columns(sigma), columns(thresholds), columns(power) if report else None, analysis)

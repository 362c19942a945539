"""The steps of denoising for batches of traces that share a length, or that share thresholds as a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt import backends
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.method import Method
from wavefilt.thresholding import rules
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.wavelets import boundary, modwt_boundary
from wavefilt.wavelets.filters import max_level

from . import gaps


@dataclass(frozen=True)
class Estimate:
    """What was found and used for one batch of traces of one length; arrays (levels, traces), finest level first.

    ``sigma`` and ``thresholds`` are in the data's units; ``power`` is the mean square of the details before
    shrinking (None unless a report was asked for) and ``counts`` their number per trace and level.
    """

    piece: gaps.Piece
    sigma: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    power: NDArray[np.float64] | None
    counts: NDArray[np.int64]


def denoised(
    traces: NDArray[Any],
    group: Sequence[tuple[gaps.Piece, int]],
    method: Method,
    backend: backends.Backend,
    noise: NDArray[np.float64] | None = None,
    report: bool = False,
) -> list[tuple[NDArray[Any], Estimate]]:
    """Batches with their levels, one alone or all of a record: their rows denoised, and an estimate for each.

    Decompose, measure, choose thresholds, shrink and reconstruct; with `Method.spins` the mean of that over shifts of
    the samples, and the estimates of the unshifted ones. ``noise`` (levels, traces or 1) is what a window told.
    """
    done: list[tuple[NDArray[Any], Estimate]] = []
    for shift in range(method.spins):
        pyramids = [
            backend.decompose(_shifted(piece.of(traces), shift, method.mode), method.bank, method.mode, depth,
                              method.transform)
            for piece, depth in group
        ]  # fmt: skip
        statistics = backend.statistics(pyramids, method.scope)
        sizes = [pyramid.samples * (len(piece.rows) if method.scope == "record" else 1)
                 for pyramid, (piece, _) in zip(pyramids, group, strict=True)]  # fmt: skip
        known = None
        if noise is not None:
            known = noise[: len(statistics.counts), group[0][0].rows if noise.shape[1] > 1 else [0]]
        pooled = _thresholds(statistics, method, sum(sizes), known)
        power = statistics.mean_square() if report and not shift else None
        for i, (pyramid, (piece, depth)) in enumerate(zip(pyramids, group, strict=True)):
            estimate = _estimate(piece, depth, statistics.counts, *pooled, power)
            shrinkage = Shrinkage(method.function(pyramid.samples), estimate.thresholds, estimate.sigma)
            rows = _back(backend.reconstruct(pyramid, shrinkage), shift, method.mode)
            if shift:
                done[i][0][:] += (rows - done[i][0]) / (shift + 1)
            else:
                done.append((rows, estimate))
    return done


def _shifted(rows: NDArray[Any], shift: int, mode: str) -> NDArray[Any]:
    """Rows that begin so many samples earlier: in their extension, or going round where the mode does."""
    if not shift or mode in modwt_boundary.ROUND:
        return np.roll(rows, shift, axis=1) if shift else rows
    n, code = rows.shape[1], boundary.code(mode)
    before = [boundary.extension(code, i, n) for i in range(-shift, 0)]
    columns = [a * rows[:, j] + b * rows[:, k] + c * rows[:, m] for j, a, k, b, m, c in before]
    return np.ascontiguousarray(np.concatenate([np.stack(columns, axis=1), rows], axis=1), rows.dtype)


def _back(rows: NDArray[Any], shift: int, mode: str) -> NDArray[Any]:
    """The opposite of `_shifted`."""
    return np.roll(rows, -shift, axis=1) if mode in modwt_boundary.ROUND and shift else rows[:, shift:]


def window_noise(traces: NDArray[Any], method: Method, level: int, backend: backends.Backend) -> NDArray[np.float64]:
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
    pyramid = backend.decompose(rows, method.bank, method.mode, depth, method.transform)
    found = rules.noise(backend.statistics([pyramid], method.scope), "level")
    return np.concatenate([found, found[-1:] * method.fading(level - depth + 1, "global")[1:]])


def _thresholds(
    statistics: backends.Statistics, method: Method, samples: int, known: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    sigma, thresholds = method.thresholds(statistics, samples, known)
    if not np.isfinite(thresholds).all():
        raise ValueError(SQUARES_OVERFLOW)
    return sigma, thresholds


def _estimate(
    piece: gaps.Piece,
    level: int,
    counts: NDArray[np.int64],
    sigma: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    power: NDArray[np.float64] | None,
) -> Estimate:
    """The group's numbers for one of its batches: its levels, and a column for each of its traces."""

    def columns(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        own = numbers[:level]
        return own if own.shape[1] == len(piece.rows) else np.broadcast_to(own, (level, len(piece.rows)))

    powers = None if power is None else columns(power)
    return Estimate(piece, columns(sigma), columns(thresholds), powers, counts[:level])

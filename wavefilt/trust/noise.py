"""The spectrum of the noise in traces that hold signals, by level of `cells`."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array, Floats, Mask
from wavefilt.trust.cells import Cells

SILENT = -80.0
"""Logarithm of the power of traces that are dead, where the largest sample of all is 1."""
PERIODS = 6
"""Coefficients in the stretch of time over which a level's mean square is taken."""
QUIET, GATHER_QUIET = 0.35, 0.15
"""Quantiles of these mean squares over a trace, and over all traces of a gather, to begin with."""
INSIDE, TURNS = 0.9, 6
"""Quantile of χ² up to which a stretch counts as noise alone, and how often that is decided anew."""
LEAST = 0.45, 4.5, 6.0
"""Share of a trace's stretches that must be noise alone for a level to be believed, and how many of them: usually, and
where it is twice as strong as the finer levels let expect."""
GATHER_TRACES, GATHER_LEAST = 6, (0.25, 9)
"""Traces of a gather, and the same of its stretches."""
SLOPE = (-1.0, 1.8)
"""Limits to the octaves of power an octave with which a spectrum goes on towards low frequencies."""
ALIKE = 0.6, 1.4
"""Octaves by which the second and the third level over the finest deviate from trace to trace, at most, where traces
have a common noise."""
STEEP, TWICE, SHORT, LOW = 3.0, 8.0, 3, 0.2
"""Octaves of power by which a steep noise rises in each of two octaves at least, and in both together, by shorter
stretches, of so many coefficients, and the quantile of theirs to begin with."""
WAVENUMBERS, TOGETHER, LENGTH, INCOHERENT = 8, 32, 128, 0.3
"""Traces from which on wavenumbers are told apart, and traces and samples of a window; the quantile over both."""


def noise_levels(cells: Cells, length: int, noisy: Floats, quiet: slice | None = None) -> Floats:
    """Power spectral density of the noise in each level, shape (traces, levels + 1).

    From the finest level to the coarsest, each by the stretches of time that hold no signal: those whose mean squares
    agree with χ² around their own mean. A level that has too few of them continues the finer levels' slope, but is
    never stronger than what is there. Where the quietest stretches rise as steeply as only noise does, they are taken.
    In gathers whose traces have a common noise the stretches of all traces help, after division by the finest level,
    and noise is no stronger than most wavenumbers are: signals lie on few. ``quiet`` are cells that hold noise alone.
    """
    traces, count = len(cells.power), cells.power.shape[-1]
    found = np.zeros((traces, count))
    there = np.log2(cells.mean(cells.power) + 1e-300)
    limits = np.full((traces, count), np.nan)
    common = quiet is None and traces >= GATHER_TRACES and _common(cells, length)
    if common:
        for part in np.array_split(np.arange(traces), max(1, traces // TOGETHER)):
            limits[part] = _incoherent(noisy[part], count)
    for level in range(count):
        own = _expected(found[:, max(0, level - 3) : level], there[:, level])
        if level < count - 1 or not level:
            own = _level(cells, level, length, found, own, quiet, common)
        gain = found[:, 0] - np.median(found[:, 0])
        found[:, level] = np.fmin(own, limits[:, level] + gain)
    if quiet is None:
        least = _least(cells, length, there)
        found = np.where(_steep(least), np.maximum(least, found), found)
    return np.where(found < SILENT, 0, 2.0**found)


def _common(cells: Cells, length: int) -> bool:
    """Whether the noise of the traces may be a common one but for its strength, by the slopes of the finest levels."""
    found = []
    for level in range(min(1 + len(ALIKE), cells.power.shape[-1])):
        means, freedom = _stretches(cells, level, length)
        if means.size:
            found.append(np.log2(_quiet(means, freedom, QUIET)[0] + 1e-300))
    slopes = np.array([own - found[0] for own in found[1:]])[:, found[0] > SILENT] if found else np.empty((0, 0))
    if not slopes.size:
        return True
    spread = 1.48 * np.median(np.abs(slopes - np.median(slopes, axis=1, keepdims=True)), axis=1)
    return bool((spread <= ALIKE[: len(spread)]).all())


def _least(cells: Cells, length: int, there: Floats) -> Floats:
    """Logarithms of the noise by the quietest short stretches; of levels that have too few, of all that is there."""
    least = there.copy()
    for level in range(there.shape[1] - 1):
        means, freedom = _stretches(cells, level, length, SHORT)
        if means.size:
            least[:, level] = np.minimum(least[:, level], np.log2(_quiet(means, freedom, LOW)[0] + 1e-300))
    return least


def _steep(least: Floats) -> Mask:
    """The levels of a steep noise, microseisms above all: from where it begins to rise on, if it does not fall again.

    Signals that fill a trace, which quiet stretches hold as well, rise less over two octaves.
    """
    steep = np.zeros(least.shape, bool)
    rises = np.diff(least, axis=1)
    twice = (np.minimum(rises[:, 1:], rises[:, :-1]) > STEEP) & (rises[:, 1:] + rises[:, :-1] > TWICE)
    lowest = np.minimum.accumulate(least[:, ::-1], axis=1)[:, ::-1]  # of a level and the coarser ones
    steep[:, 1:-1] = twice & (lowest[:, 2:] > least[:, 1:-1])
    return np.logical_or.accumulate(steep, axis=1)


def _expected(finer: Floats, there: Floats) -> Floats:
    """The next level of each trace by the line through finer ones; logarithms."""
    if not finer.shape[1]:
        return there
    steps = max(finer.shape[1] - 1, 1)
    slope = np.clip((finer[:, -1] - finer[:, 0]) / steps, *SLOPE)
    return np.asarray(np.minimum(finer.mean(axis=1) + slope * (finer.shape[1] + 1) / 2, there))


def _level(
    cells: Cells, level: int, length: int, found: Floats, expected: Floats, quiet: slice | None, common: bool
) -> Floats:
    """Logarithms of the noise in a level by its quiet stretches, of all traces if ``common``, or as expected."""
    if quiet is not None:
        power, weight = cells.power[:, quiet, level], cells.weight[:, quiet]
        enough = weight.sum(axis=1) >= PERIODS * cells.spacing[level]
        mean = np.sum(power * weight, axis=1) / np.maximum(weight.sum(axis=1), 1)
        return np.where(enough, np.log2(mean + 1e-300), expected)
    means, freedom = _stretches(cells, level, length)
    if not means.size:
        return expected
    level_of, share = _quiet(means, freedom, QUIET)
    own, number = np.log2(level_of + 1e-300), share * means.shape[1]
    usual, more = LEAST[1:]
    believed = (share >= LEAST[0]) & (number >= np.where(own - expected > 1, more, usual)) | (level == 0)
    single = np.where(believed, own, np.minimum(own, expected))
    if not common:
        return single
    gain = found[:, 0] if level else np.zeros(len(means))
    pooled, part = _quiet((means / 2 ** gain[:, None]).reshape(1, -1), freedom, GATHER_QUIET)
    if part[0] < GATHER_LEAST[0] or part[0] * means.size < GATHER_LEAST[1]:
        return single
    together = np.log2(pooled[0] + 1e-300) + gain
    return np.asarray(np.where(believed, np.minimum(own, together), together))


def _stretches(cells: Cells, level: int, length: int, periods: int = PERIODS) -> tuple[Floats, float]:
    """Means over stretches, shape (traces, stretches), NaN where most is in gaps, and their degrees of freedom."""
    power, weight, spacing = cells.power[:, :, level], cells.weight, cells.spacing[level]
    group = int(np.ceil(periods * spacing / length))
    count = power.shape[1] // group
    shape = len(power), count, group
    own = weight[:, : count * group].reshape(shape)
    sums, total = np.sum(power[:, : count * group].reshape(shape) * own, axis=2), own.sum(axis=2)
    most = float(total.max(initial=0))
    means = np.divide(sums, total, out=np.full(total.shape, np.nan), where=total > most / 2)
    return means, max(most / spacing, 1.0)


def _quiet(means: Floats, freedom: float, quantile: float) -> tuple[Floats, Floats]:
    """The mean of those that are noise alone, of each row, and their share."""
    from scipy.special import gammainc, gammaincinv  # of χ², distribution and quantiles

    limit = 2 * gammaincinv(freedom / 2, INSIDE)
    part = gammainc(freedom / 2 + 1, limit / 2) / INSIDE  # of the mean, what values below the limit have
    known = np.isfinite(means)
    values = np.where(known, means, np.inf)
    count = np.maximum(known.sum(axis=1), 1)
    start = np.sort(values, axis=1)[np.arange(len(means)), (quantile * (count - 1)).astype(int)]
    level = np.where(np.isfinite(start), start, 0) * freedom / (2 * gammaincinv(freedom / 2, quantile))
    inside: Array = known
    for _ in range(TURNS):
        inside = values <= (level * limit / freedom)[:, None]
        mean = np.sum(values, axis=1, where=inside) / np.maximum(inside.sum(axis=1), 1)
        level = np.where(inside.any(axis=1), mean / part, level)
    return level, inside.sum(axis=1) / count


def _incoherent(noisy: Floats, count: int) -> Floats:
    """Logarithms of the power in each level that most wavenumbers and times have, NaN where they are too few."""
    traces, samples = noisy.shape
    length = min(LENGTH, 1 << max(samples.bit_length() - 2, 0))
    found = np.full(count, np.nan)
    if traces < WAVENUMBERS or length < 2:
        return found
    window = np.sqrt(2) * np.sin(np.pi * (np.arange(length) + 0.5) / length)
    live = np.isfinite(noisy)
    mean = np.sum(noisy, axis=1, where=live) / np.maximum(live.sum(axis=1), 1)
    rows = np.where(live, noisy - mean[:, None], 0)
    parts = np.stack([rows[:, at : at + length] for at in range(0, samples - length + 1, length // 2)]) * window
    power = np.abs(np.fft.fft(np.fft.rfft(parts, axis=-1), axis=1)) ** 2 / (traces * length)
    usual = np.quantile(power, INCOHERENT, axis=(0, 1)) / -np.log(1 - INCOHERENT)  # squares are exponential
    frequency = np.arange(length // 2 + 1) / length
    for level in range(count - 1):
        own = (frequency > 0.25 / 2**level) & (frequency <= 0.5 / 2**level) & (frequency < 0.5)
        if own.any():
            found[level] = np.log2(usual[own].mean() + 1e-300)
    return found

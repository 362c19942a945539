"""Compare the residual with that of simulated noise: growth of the error, and signal in the residual."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from wavefilt.arrays import Array, Floats, Mask
from wavefilt.noise import (
    OCTAVES,
    RAISED,
    NoiseModel,
    cell_means,
    depth_for,
    estimates,
    in_blocks,
    octave_bands,
    widths,
    without_flat_parts,
)
from wavefilt.options import NoiseForm

from .coherence import coherence

Verdict = Literal["harmful", "undecided", "harmless", "untested"]
Denoise = Callable[[Floats, Array], Floats]
"""Denoises rows of samples, NaN in gaps; the second argument has the numbers of the traces that they imitate."""
CELL, CELLS = 32, 4096
"""Samples of a cell, and most cells of a trace: they are longer in longer ones. A window has two."""
SIMULATED, TRACES, REPEATS = 1 << 16, 64, 32
"""Samples of simulated noise, its traces at most, and how often at most it is simulated."""
SHORTEST = 128
"""Samples of a trace that can be tested."""
RATE, HARM_RATE = 0.01, 0.4
"""False discovery rates: of windows and octaves with signal, and of windows whose error grew as well."""
WORST, HARM = 1.3, 0.02
"""Growth of the error in a window, in units of the noise, that counts as harm; and the sum of that growth over all such
windows, divided by the number of windows, that makes a result harmful."""
DOUBT = 0.15, 0.3
"""Relative uncertainty of the noise power, within which the sign of the growth of the error is in doubt: usually, and
for noise that is not declared with signal in the residual."""
WEAKER, MOST, FEWEST, UNSTEADY, CHANGES = (0.05, 0.35), 3.0, 20, 0.7, 128
"""In `_unsteadiness`: quantiles of the windows, the largest power over the noise that counts, the fewest windows of a
trace, the largest result; and the samples over which the power of simulated noise changes."""
TAIL = 0.1
"""Share of the largest simulated values that is continued by an exponential law."""


@dataclass(frozen=True)
class Cells:
    """Means over the samples of each cell outside gaps, arrays (traces, cells, octaves), finest octave first.

    ``power`` and ``residual`` are mean squares of the coefficients, ``share`` is the part of a coefficient that was
    removed, 0 to 1. ``weight`` (traces, cells) counts the samples.
    """

    power: Floats
    residual: Floats
    share: Floats
    weight: Floats

    @classmethod
    def of(cls, noisy: Floats, residual: Floats, length: int) -> Cells:
        """Measure traces, NaN in gaps; the last cell of a trace may be longer."""
        parts = []
        for x, r in zip(in_blocks(noisy), in_blocks(residual), strict=True):
            live, columns = np.isfinite(x) & np.isfinite(r), []
            for a, b in zip(octave_bands(x, live), octave_bands(r, live), strict=True):
                share = np.clip(a * b / np.maximum(a * a, np.finfo(float).tiny), 0, 1)
                columns.append([cell_means(values, live, length)[0] for values in (a * a, b * b, share)])
            weight = cell_means(live, live, length)[1]
            parts.append((*(np.stack(column, axis=-1) for column in zip(*columns, strict=True)), weight))
        return cls(*(np.concatenate(values) for values in zip(*parts, strict=True)))

    def rows(self, rows: slice) -> Cells:
        """Return some of the traces."""
        return Cells(self.power[rows], self.residual[rows], self.share[rows], self.weight[rows])

    def mean(self, values: Floats) -> Floats:
        """Return the mean over time of each trace, shape (traces, octaves)."""
        total = np.maximum(self.weight.sum(axis=1), 1)[:, None]
        return np.asarray(np.sum(values * self.weight[..., None], axis=1) / total)


@dataclass(frozen=True)
class Leakage:
    """The effect of denoising on the error under a noise model, by windows; arrays (traces, windows), NaN in gaps.

    Window k has the samples from ``k * cell`` to ``(k + 2) * cell``, so windows overlap by half.

    Attributes
    ----------
    model : NoiseModel
        The noise in units of ``unit``, the largest sample by magnitude.
    cell : int
        Samples.
    change : ndarray
        Growth of the energy of the error in units of the mean noise energy of a window; below 0 where the error became
        smaller. An estimate, see ``docs/trust.md``.
    p_value : ndarray
        Probability that noise alone leaves a residual of that energy.
    significant, suspect : ndarray of bool
        Windows with more residual than noise explains, at a false discovery rate of 1 % and 40 %.
    total : float
        Growth of the energy of the error in the whole record over the noise energy.
    expected : float
        The part of ``total`` that depends on the noise: the reduction of the error if there is no signal.
    noise, power, residual : ndarray
        Power (traces, octaves) of the noise, the noisy samples and the residual in squares of ``unit``; white noise of
        variance 1 has 1 in every octave.
    octaves : ndarray of bool
        Octaves in which the residual of some trace is larger than noise explains.
    lateral : tuple of ndarray
        Correlations of the residual with that of the next trace, and the same for simulated noise.
    simulated : bool
        Whether noise was denoised by the same function; otherwise all of it counts as residual.
    """

    model: NoiseModel
    cell: int
    unit: float
    change: Floats
    p_value: Floats
    significant: Mask
    suspect: Mask
    total: float
    expected: float
    noise: Floats
    power: Floats
    residual: Floats
    octaves: Mask
    lateral: tuple[Floats, Floats]
    simulated: bool

    @property
    def tested(self) -> int:
        """The number of windows that could be tested."""
        return int(np.isfinite(self.p_value).sum())

    @property
    def gain_db(self) -> float:
        """Estimated ratio in dB of the energy of the error before and after, at most 30 dB; NaN without noise."""
        if not self.noise.any():
            return float("nan")
        raised = (
            RAISED if self.model.kind in ("found", "flat") else 1.0
        )  # makes the verdict careful, but would bias the gain
        growth = raised * (self.total + self.expected) - self.expected
        return float(-10 * np.log10(max(1 + growth, 1e-3)))

    @property
    def harmed(self) -> Mask:
        """The windows whose error grew so much that they count as harm."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.suspect & (self.change > WORST))

    @property
    def harm(self) -> float:
        """The growth of the error in all harmed windows, divided by the number of windows."""
        return float(self.change[self.harmed].sum() / max(self.tested, 1))

    @property
    def harmful(self) -> bool | None:
        """Whether the error grew in the whole record, or too much in some windows; None where that is in doubt."""
        if self.total > 0 or self.harm > HARM:
            return True
        doubt = DOUBT[int(self.significant.any() and self.model.kind != "declared")]
        return None if self.total > -doubt * self.expected else False


def find(
    noisy: Floats,
    denoised: Floats,
    denoise: Denoise | None,
    sigma: NoiseForm | Sequence[NoiseForm] = "level",
    seed: int = 0,
) -> tuple[Leakage, ...]:
    """Measure the effect of denoising on traces (traces, samples), NaN in gaps, under each model of their noise.

    ``sigma`` is the option of `wavefilt.denoise`, or one for each trace, with windows in samples.
    """
    unit = float(np.nanmax(np.abs(noisy), initial=0)) or 1.0  # squares of samples of any size stay finite
    x, y = (np.asarray(rows, np.float64) / unit for rows in (noisy, denoised))
    given = [sigma] * len(x) if isinstance(sigma, str | tuple | float | int) else sigma
    models = estimates(x, [each if isinstance(each, str | tuple) else each / unit for each in given])
    samples = x.shape[1]
    cell = max(CELL, 1 << max(0, (samples - 1) // CELLS).bit_length())
    residual = x - y
    x = np.where(np.isfinite(residual), without_flat_parts(x), np.nan)
    cells, lateral = Cells.of(x, residual, cell), coherence(residual)

    def residual_of(rows: Floats, traces: Array) -> Floats:
        return rows if denoise is None else rows - denoise(unit * rows, traces) / unit

    return tuple(
        _find(x, cells, cell, lateral, residual_of, model, unit, denoise is not None, seed) for model in models
    )


def verdict(leakages: Sequence[Leakage]) -> Verdict:
    """Return the verdict on a result: all noise models have to agree."""
    if not any(found.tested for found in leakages):
        return "untested"
    harmful = {found.harmful for found in leakages}
    if len(harmful) > 1 or harmful == {None}:
        return "undecided"
    return "harmful" if harmful == {True} else "harmless"


def _find(
    noisy: Floats,
    cells: Cells,
    cell: int,
    lateral: Floats,
    residual_of: Denoise,
    model: NoiseModel,
    unit: float,
    simulated: bool,
    seed: int,
) -> Leakage:
    """Measure the effect of denoising under one noise model."""
    noise = octaves_of(model)
    share = widths(noise.shape[1])
    ratio, change, octaves = _statistics(cells, noise)
    if noisy.shape[1] < SHORTEST:
        ratio, change, octaves = (np.full_like(values, np.nan) for values in (ratio, change, octaves))
    null = list[tuple[Floats, ...]]()
    if np.isfinite(ratio).any():
        live = np.flatnonzero(model.variance > 0)
        first = max(0, (len(live) - TRACES) // 2)
        rows = live[first : first + TRACES]
        unsteadiness = _unsteadiness(cells, noise, cell)
        pairs = [(x, residual_of(x, rows)) for x in _simulations(noisy[rows], model, rows, seed, unsteadiness)]
        both = Cells.of(np.concatenate([x for x, _ in pairs]), np.concatenate([r for _, r in pairs]), cell)
        for i, (x, r) in enumerate(pairs):
            part = both.rows(slice(i * len(rows), (i + 1) * len(rows)))
            null.append((*_statistics(part, octaves_of(model.of_others(x, rows))), coherence(r)))
    expected = [np.concatenate(values, axis=None) for values in zip(*null, strict=True)] or [np.empty(0)] * 4
    p_value = p_values(ratio, expected[0])
    energy = max(float(np.sum(cells.weight.sum(axis=1) * (noise @ share))), 1e-300)
    removed = float(np.sum(cells.weight * (cells.residual @ share))) / energy
    total = float(np.sum(cells.weight * _change(cells, noise))) / energy
    return Leakage(
        model,
        cell,
        unit,
        change,
        p_value,
        rejected(p_value, RATE),
        rejected(p_value, HARM_RATE),
        total,
        removed - total,
        noise,
        cells.mean(cells.power),
        cells.mean(cells.residual),
        np.asarray(rejected(p_values(octaves, expected[2]), RATE).any(axis=0)),
        (lateral if null else np.empty((0, 0)), expected[3]),
        simulated,
    )


def octaves_of(model: NoiseModel) -> Floats:
    """Return the power of the noise in each octave, (traces, octaves)."""
    return model.sigma(OCTAVES, depth_for(model.samples)).T ** 2


def _change(cells: Cells, noise: Floats) -> Floats:
    """Return the growth of the mean square error in each cell.

    With the noise n and the residual r it is the mean of r² - 2 n r. The expected value of n r is the variance of the
    noise times the derivative of r, for which the share that was removed is taken (Stein 1981).
    """
    growth = cells.residual - 2 * noise[:, None] * cells.share
    return np.asarray(np.sum(growth * widths(noise.shape[1]), axis=2))


def _pairs(values: Floats, weight: Floats) -> Floats:
    """Return means over windows of two neighbouring cells, or the only cell."""
    sums = values * weight
    if sums.shape[1] == 1:
        return values
    both = weight[:, 1:] + weight[:, :-1]
    return np.asarray((sums[:, 1:] + sums[:, :-1]) / np.maximum(both, 1))


def _statistics(cells: Cells, noise: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the statistics that are compared with simulated noise; NaN in gaps and for traces without noise.

    By window: the residual over the noise, octaves weighted by their widths, and the growth of the error over the noise
    of the trace. By trace and octave: the residual over the noise.
    """
    share = widths(noise.shape[1])
    most = np.max(noise, axis=1, keepdims=True, initial=0)
    known = cells.weight.any(axis=1, keepdims=True) & (most > 0)
    floor = np.where(known, np.maximum(noise, 1e-9 * most), np.nan)
    whitened = np.sum(cells.residual / floor[:, None] * share, axis=2)
    weight = cells.weight
    full = _pairs(weight, np.ones_like(weight)) >= weight.max(initial=1) / 2
    ratio, change = (_pairs(values, weight) for values in (whitened, _change(cells, noise)))
    grown = change / np.where(known, noise @ share[:, None], np.nan)
    return np.where(full, ratio, np.nan), np.where(full, grown, np.nan), cells.mean(cells.residual) / floor


def _unsteadiness(cells: Cells, noise: Floats, length: int) -> float:
    """Return the standard deviation of the logarithm of the noise power between windows, beyond that of steady noise.

    It is estimated from the weaker windows, because signals are in the stronger ones; the median over the traces.
    """
    from scipy.special import ndtri

    power = np.minimum(cells.power, MOST * noise[:, None])
    power = _statistics(replace(cells, residual=power), noise)[0]
    enough = power[np.isfinite(power).sum(axis=1) >= FEWEST]
    if not enough.size:
        return 0.0
    low, high = np.nanquantile(np.log(np.maximum(enough, 1e-300)), WEAKER, axis=1)
    spread = float(np.median(high - low)) / float(np.diff(ndtri(WEAKER))[0])
    return float(np.sqrt(np.clip(spread**2 - 1 / length, 0, UNSTEADY**2)))  # 1/length: χ² over the window's samples


def _simulations(noisy: Floats, model: NoiseModel, rows: Array, seed: int, unsteadiness: float) -> Iterator[Floats]:
    """Yield Gaussian noise like that of the rows, with their gaps; its strength varies with time."""
    rng, samples = np.random.default_rng(seed), noisy.shape[1]
    gaps = np.isnan(noisy)
    for _ in range(int(np.clip(SIMULATED // noisy.size, 1, REPEATS))):
        x = model.draw(rng, rows)
        if unsteadiness:
            at, part = np.divmod(np.arange(samples) / CHANGES, 1)
            knots = rng.standard_normal((len(rows), int(at[-1]) + 2))
            between = knots[:, at.astype(int)] * (1 - part) + knots[:, at.astype(int) + 1] * part
            x *= np.exp(unsteadiness / 2 * between / np.hypot(part, 1 - part))
        yield np.where(gaps, np.nan, x)


# ---- significance


def p_values(values: Floats, null: Floats) -> Floats:
    """Return the probability of values at least as large among those simulated with noise alone; NaN for NaN.

    It is the rank among the simulated values, and beyond the largest `TAIL` an exponential law with their mean excess.
    Without simulated values it is 1.
    """
    simulated = np.sort(null[np.isfinite(null)], axis=None)
    if not simulated.size:
        return np.where(np.isfinite(values), 1.0, np.nan)
    above = simulated.size - np.searchsorted(simulated, values, side="left")
    found = (above + 1) / (simulated.size + 1)
    first = int((1 - TAIL) * simulated.size)
    limit, tail = simulated[first], simulated[first:]
    excess = float(np.mean(tail - limit))
    if excess > 0:
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = TAIL * np.exp(-(values - limit) / excess)
        found = np.where(values > limit, np.maximum(beyond, 1e-300), found)
    return np.where(np.isfinite(values), np.minimum(found, 1), np.nan)


def rejected(p: Floats, rate: float) -> Mask:
    """Return the hypotheses that Benjamini and Hochberg (1995) reject at this false discovery rate."""
    flat = p[np.isfinite(p)]
    ordered = np.sort(flat)
    passed = np.flatnonzero(ordered <= rate * np.arange(1, flat.size + 1) / max(flat.size, 1))
    limit = ordered[passed[-1]] if passed.size else -1.0
    with np.errstate(invalid="ignore"):
        return np.asarray(p <= limit)

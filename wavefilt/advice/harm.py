"""The effect of denoising under a noise model: growth of the error by windows, and signal in the residual.

With noise n and residual r, the squared error grows by r² - 2 n r. The expected value of n r is the variance of the
noise times the derivative of r (Stein 1981), for which the share of a coefficient that was removed is taken. The
residual is also compared with that of simulated noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from wavefilt.arrays import Floats, Mask
from wavefilt.noise import NoiseModel, cell_sums, estimates, in_blocks, octave_bands, widths, without_flat_parts
from wavefilt.options import NoiseForm

Verdict = Literal["harmful", "undecided", "harmless", "untested"]
Denoise = Callable[[Floats], ArrayLike]
"""Denoises rows of samples, NaN in gaps."""
CELL, CELLS = 32, 4096
"""Samples of a cell, and most cells of a trace: they are longer in longer ones. A window has two."""
SHORTEST = 128
"""Samples of a trace that can be tested."""
RATE, HARM_RATE = 0.01, 0.4
"""False discovery rates: of windows with signal, and of windows whose error grew as well."""
WORST, HARM = 1.3, 0.02
"""Growth of the error in a window, in units of the noise, that counts as harm; and the sum of that growth over all such
windows, divided by the number of windows, that makes a result harmful."""
MOST = 30.0
"""Highest gain in dB that is reported."""
DOUBT = 0.15, 0.3
"""Relative uncertainty of the noise power, within which the sign of the growth of the error is in doubt: usually, and
for noise that is not declared with signal in the residual."""
UNLIKE = 3.0, 0.1
"""Differences of the gain in dB, and of the growth of the error over the noise, that leave a verdict open."""
SIMULATED, TRACES, REPEATS = 1 << 16, 64, 32
"""Samples of simulated noise, its traces at most, and how often at most it is simulated."""
TAIL = 0.1
"""Share of the largest simulated values that is continued by an exponential law."""


@dataclass(frozen=True)
class Effect:
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
    total : float
        Growth of the energy of the error in the whole record over the noise energy.
    expected : float
        The part of ``total`` that depends on the noise: the reduction of the error if there is no signal.
    noise : ndarray
        Power (traces, octaves) of the noise in squares of ``unit``; white noise of variance 1 has 1 in every octave.
    """

    model: NoiseModel
    cell: int
    unit: float
    change: Floats
    p_value: Floats
    total: float
    expected: float
    noise: Floats

    @cached_property
    def significant(self) -> Mask:
        """The windows with more residual than noise explains, at a false discovery rate of 1 %."""
        return rejected(self.p_value, RATE)

    @cached_property
    def harmed(self) -> Mask:
        """The windows whose error grew so much that they count as harm."""
        with np.errstate(invalid="ignore"):
            return np.asarray(rejected(self.p_value, HARM_RATE) & (self.change > WORST))

    @property
    def tested(self) -> int:
        """The number of windows that could be tested."""
        return int(np.isfinite(self.p_value).sum())

    @property
    def gain_db(self) -> float:
        """Estimated ratio in dB of the energy of the error before and after, at most `MOST`; NaN without noise."""
        return self.gain(0.0)

    def gain(self, more: float) -> float:
        """Return `gain_db` if the power of the noise is higher than in the model by this share."""
        if not self.noise.any():
            return float("nan")
        # the factor makes the verdict careful, but would bias the gain
        left = 1 + self.model.raised * (self.total + self.expected) - (1 + more) * self.expected
        return float(10 * np.log10(1 / max(left, 10 ** (-MOST / 10))))

    @property
    def harmful(self) -> bool | None:
        """Whether the error grew in the whole record, or too much in some windows; None where that is in doubt."""
        harm = self.change[self.harmed].sum() / max(self.tested, 1)
        if self.total > 0 or harm > HARM:
            return True
        doubt = DOUBT[int(self.significant.any() and self.model.kind != "declared")]
        return None if self.total > -doubt * self.expected else False


def find(
    noisy: Floats,
    denoised: Floats,
    denoise: Denoise | None,
    sigma: NoiseForm = "level",
) -> tuple[Effect, ...]:
    """Measure the effect of denoising on traces (traces, samples), NaN in gaps, under each model of their noise.

    ``sigma`` is the option of `wavefilt.denoise`, with windows in samples. Without ``denoise``, the residual is
    compared with all of the simulated noise.
    """
    unit = float(np.nanmax(np.abs(noisy), initial=0)) or 1.0  # squares of samples of any size stay finite
    x, y = (np.asarray(rows, np.float64) / unit for rows in (noisy, denoised))
    models = estimates(x, sigma if isinstance(sigma, str | tuple) else sigma / unit)
    cell = max(CELL, 1 << max(0, (x.shape[1] - 1) // CELLS).bit_length())
    residual, given = x - y, x
    x = np.where(np.isfinite(residual), without_flat_parts(x), np.nan)
    cells, flat = Cells.of(x, residual, cell), np.isnan(x) & np.isfinite(given)

    def residual_of(rows: Floats) -> Floats:
        if denoise is None:
            return rows
        y = np.asarray(denoise(unit * rows), np.float64)
        if y.shape != rows.shape:
            raise ValueError(f"`denoise` must return an array of the shape it gets, {rows.shape}, not {y.shape}")
        return rows - y / unit

    effects = []
    for model in models:
        noise = model.octaves
        ratio, change = cells.statistics(noise)
        if x.shape[1] < SHORTEST:
            ratio, change = (np.full_like(values, np.nan) for values in (ratio, change))
        tested = np.isfinite(ratio).any()
        null = _ratios_of_noise(x, flat, model, residual_of, cell) if tested else np.empty(0)
        share = widths(noise.shape[1])
        energy = max(float(np.sum(cells.weight.sum(axis=1) * (noise @ share))), 1e-300)
        known = noise.any(axis=1)  # traces without noise, such as those muted in the window, are left out
        removed = float(np.sum(cells.residual[known] @ share)) / energy
        total = float(np.sum(cells.growth(noise)[known])) / energy
        effects.append(Effect(model, cell, unit, change, p_values(ratio, null), total, removed - total, noise))
    return tuple(effects)


def verdict(effects: Sequence[Effect]) -> Verdict:
    """Return the verdict on a result: all noise models have to agree.

    A result is not harmless either if the gains by a window found and by the highest octaves are `UNLIKE`: the window
    may contain a weaker part of a sustained signal.
    """
    if not any(effect.tested for effect in effects):
        return "untested"
    harmful = {effect.harmful for effect in effects}
    two = [effect for effect in effects if effect.model.kind in ("found", "extrapolated")]
    unlike = len(two) == 2 and all(
        abs(one - other) > most
        for one, other, most in zip(*((each.gain_db, each.total) for each in two), UNLIKE, strict=True)
    )
    if len(harmful) > 1 or harmful == {None} or (unlike and harmful == {False}):
        return "undecided"
    return "harmful" if harmful == {True} else "harmless"


# ---- statistics of windows


@dataclass(frozen=True)
class Cells:
    """Sums over the samples of each cell outside gaps, arrays (traces, cells, octaves), finest octave first.

    ``residual`` are the squared coefficients of the residual, ``share`` is the part of a coefficient that was removed,
    0 to 1. ``weight`` (traces, cells) counts the samples.
    """

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
                columns.append([cell_sums(values, live, length) for values in (b * b, share)])
            sums = (np.stack(column, axis=-1) for column in zip(*columns, strict=True))
            parts.append((*sums, cell_sums(live, live, length)))
        return cls(*(np.concatenate(values) for values in zip(*parts, strict=True)))

    def growth(self, noise: Floats) -> Floats:
        """Return the growth of the squared error in each cell, for noise (traces, octaves)."""
        return np.asarray((self.residual - 2 * noise[:, None] * self.share) @ widths(noise.shape[1]))

    def statistics(self, noise: Floats) -> tuple[Floats, Floats]:
        """Return, by window, the residual over the noise and the growth of the error over the noise of the trace.

        In the first one, octaves are weighted by their widths. NaN in gaps and for traces without noise.
        """
        share, most = widths(noise.shape[1]), np.max(noise, axis=1, keepdims=True, initial=0)
        known = self.weight.any(axis=1, keepdims=True) & (most > 0)
        floor = np.where(known, np.maximum(noise, 1e-9 * most), np.nan)
        growth = self.growth(noise) / np.where(known, noise @ share[:, None], np.nan)
        weight = _pairs(self.weight)
        full = weight >= self.weight.max(initial=1)
        ratio, change = (
            np.where(full, _pairs(values) / np.maximum(weight, 1), np.nan)
            for values in ((self.residual / floor[:, None]) @ share, growth)
        )
        return ratio, change


def _pairs(values: Floats) -> Floats:
    """Return the sums over windows of two neighbouring cells."""
    return np.asarray(values[:, 1:] + values[:, :-1])


# ---- simulated noise


def _ratios_of_noise(
    noisy: Floats, flat: Mask, model: NoiseModel, residual_of: Callable[[Floats], Floats], cell: int
) -> Floats:
    """Return the first one of `Cells.statistics` for Gaussian noise like that of live traces, with their gaps.

    ``flat`` gaps are runs of equal samples, in the noise as well. Its power is estimated again, as that of the record
    was.
    """
    live = np.flatnonzero(model.variance > 0)
    first = max(0, (len(live) - TRACES) // 2)
    rows = live[first : first + TRACES]
    rng, gaps = np.random.default_rng(0), np.isnan(noisy[rows])
    draws, residuals, noise = [], [], []
    for _ in range(int(np.clip(SIMULATED // gaps.size, 1, REPEATS))):
        draws.append(np.where(gaps, np.nan, model.draw(rng, rows)))
        residuals.append(residual_of(np.where(flat[rows], 0, draws[-1])))
        noise.append(NoiseModel.of(model.kind, draws[-1], model.sigma).octaves)
    return Cells.of(np.concatenate(draws), np.concatenate(residuals), cell).statistics(np.concatenate(noise))[0]


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

"""Is there signal in what was removed: how much the error grew, and how likely noise alone is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from wavefilt.arrays import Floats, Mask
from wavefilt.trust.cells import Cells, measure
from wavefilt.trust.coherence import coherence
from wavefilt.trust.noise import noise_levels
from wavefilt.trust.significance import p_values, rejected

Denoise = Callable[[Floats], Floats]
"""Denoises rows of samples, NaN in gaps, as those of the report were."""
CELL, CELLS = 32, 4096
"""Samples of a cell, and most cells of a trace: they are longer in longer ones. A window has two."""
SIMULATED, TRACES, REPEATS = 1 << 16, 64, 32
"""Samples of noise that are denoised, traces of a gather that they imitate, and how often at most."""
SHORTEST = 128
"""Samples of a trace that can be tested."""
RATE, HARM_RATE = 0.01, 0.4
"""False discovery rates: of windows and levels with signal, and of windows whose error grew as well."""


WEAKER, MOST, FEWEST, UNSTEADY, CHANGES = (0.05, 0.35), 3.0, 20, 0.7, 128
"""Of `_unsteadiness` the quantiles of windows, the most power over the noise's in a level that counts, the windows of a
trace that it needs and its largest value, and the samples in which the power of simulated noise changes."""


@dataclass(frozen=True)
class Leakage:
    """What a denoise did to the error, by windows of two neighbouring cells, arrays (traces, windows); NaN in gaps.

    Window k is of the samples from ``k cell`` to ``(k + 2) cell``, so that windows overlap by half.
    """

    cell: int
    """Samples."""
    change: Floats
    """Growth of the error's energy in units of the noise's in a window of the trace, on average: below 0 where the
    denoise helped. An estimate, see `docs/trust.md`."""
    p_value: Floats
    """Probability that the removal of noise alone removes that much."""
    significant: Mask
    """Where noise alone does not explain what was removed, at a false discovery rate of `RATE`."""
    suspect: Mask
    """The same at the rate `HARM_RATE`, for windows whose error grew as well."""
    total: float
    """Growth of the error's energy in the whole record over the noise's energy."""
    unit: float
    """The largest sample by magnitude."""
    noise: Floats
    """Power spectral density of the noise by level, (traces, levels + 1), in squares of ``unit``; 0 of dead traces."""
    power: Floats
    removed: Floats
    """The same of the noisy samples and of what was removed."""
    levels: Mask
    """Levels in which noise alone does not explain what was removed from some trace, (levels + 1,)."""
    lateral: tuple[Floats, Floats]
    """`coherence` of what was removed, and of what was removed from simulated noise."""
    simulated: bool
    """Whether noise went through the same denoise; else all of it was removed, as no denoise was given."""


def find(noisy: Floats, removed: Floats, denoise: Denoise | None, quiet: slice | None = None, seed: int = 0) -> Leakage:
    """Measure leakage in rows of samples, NaN in gaps; ``quiet`` are samples that hold noise alone."""
    samples = noisy.shape[1]
    unit = float(np.nanmax(np.abs(noisy), initial=0)) or 1.0  # squares of samples of any size stay finite
    noisy, removed = noisy / unit, removed / unit
    cell = max(CELL, 1 << max(0, (samples - 1) // CELLS).bit_length())
    known = None
    if quiet is not None:
        first = -(-quiet.start // cell)
        known = slice(first, max(first + 1, quiet.stop // cell))
    cells = measure(noisy, removed, cell)
    noise = noise_levels(cells, cell, noisy, known)
    found, null = _statistics(cells, noise), list[tuple[Floats, ...]]()
    if samples < SHORTEST:
        found = (np.full_like(found[0], np.nan), np.full_like(found[1], np.nan), np.full_like(found[2], np.nan))
    every = list[tuple[Floats, Floats]]()
    if np.isfinite(found[0]).any():
        every = [*_simulations(noisy, noise, denoise, unit, seed, _unsteadiness(cells, noise, cell))]
    both = cells
    if every:
        both = measure(np.concatenate([x for x, _ in every]), np.concatenate([r for _, r in every]), cell)
    for i, (x, r) in enumerate(every):
        own = both.of(slice(i * len(x), (i + 1) * len(x)))
        null.append((*_statistics(own, noise_levels(own, cell, x, known)), coherence(r)))
    simulated = [np.concatenate(values, axis=None) for values in zip(*null, strict=True)] or [np.empty(0)] * 4
    ratio, levels = (p_values(found[i], simulated[i]) for i in (0, 2))
    energy = cells.weight.sum(axis=1) * (noise @ cells.widths)
    return Leakage(
        cell,
        found[1],
        ratio,
        rejected(ratio, RATE),
        rejected(ratio, HARM_RATE),
        float(np.sum(_change(cells, noise) * cells.weight) / (energy.sum() or 1.0)),
        unit,
        noise,
        cells.mean(cells.power),
        cells.mean(cells.removed),
        np.asarray(rejected(levels, RATE).any(axis=0)),
        (coherence(removed) if null else np.empty((0, 0)), simulated[3]),
        denoise is not None,
    )


def _change(cells: Cells, noise: Floats) -> Floats:
    """Growth of the error's mean square in each cell.

    With the noise n and what was removed r it is the mean of r² - 2 n r; and n r is on average the noise's variance
    times the derivative of r, which is taken to be the share that was removed (Stein 1981).
    """
    return np.asarray(np.sum((cells.removed - 2 * noise[:, None] * cells.share) * cells.widths, axis=2))


def _pairs(values: Floats, weight: Floats) -> Floats:
    """Means over each window of two neighbouring cells, or over the only one."""
    sums = values * weight
    if sums.shape[1] == 1:
        return values
    both = weight[:, 1:] + weight[:, :-1]
    return np.asarray((sums[:, 1:] + sums[:, :-1]) / np.maximum(both, 1))


def _statistics(cells: Cells, noise: Floats) -> tuple[Floats, Floats, Floats]:
    """What is compared with simulated noise; NaN in gaps and of traces without noise.

    By window, what was removed over the noise, levels counted by their widths, and the growth of the error over the
    noise of the trace; by trace and level, what was removed over the noise.
    """
    most = np.max(noise, axis=1, keepdims=True, initial=0)
    known = cells.weight.any(axis=1, keepdims=True) & (most > 0)
    floor = np.where(known, np.maximum(noise, 1e-9 * most), np.nan)
    whitened = np.sum(cells.removed / floor[:, None] * cells.widths, axis=2)
    weight = cells.weight
    full = _pairs(weight, np.ones_like(weight)) >= weight.max(initial=1) / 2
    ratio, change = (_pairs(values, weight) for values in (whitened, _change(cells, noise)))
    grown = change / np.where(known, noise @ cells.widths[:, None], np.nan)
    return np.where(full, ratio, np.nan), np.where(full, grown, np.nan), cells.mean(cells.removed) / floor


def _unsteadiness(cells: Cells, noise: Floats, length: int) -> float:
    """Standard deviation of the logarithm of the noise's power from window to window, beyond that of steady noise.

    By the weaker windows, as signals are in the stronger ones; the median over the traces.
    """
    from scipy.special import ndtri

    power = np.minimum(cells.power, MOST * noise[:, None])
    power = _statistics(replace(cells, removed=power), noise)[0]
    enough = power[np.isfinite(power).sum(axis=1) >= FEWEST]
    if not enough.size:
        return 0.0
    low, high = np.nanquantile(np.log(np.maximum(enough, 1e-300)), WEAKER, axis=1)
    spread = float(np.median(high - low)) / float(np.diff(ndtri(WEAKER))[0])
    return float(np.sqrt(np.clip(spread**2 - 1 / length, 0, UNSTEADY**2)))  # of χ² 2 over the window's samples


def _simulations(
    noisy: Floats, noise: Floats, denoise: Denoise | None, unit: float, seed: int, unsteadiness: float
) -> Iterator[tuple[Floats, Floats]]:
    """Gaussian noise of these spectra with the same gaps, and what the denoise removes of it; of dead traces none.

    All traces, or neighbours from the middle. ``unit`` is 1 in the units of the denoise. The noise's strength varies.
    """
    live = np.flatnonzero(noise.max(axis=1, initial=0) > 0)
    if not live.size:
        return
    first = max(0, (len(live) - TRACES) // 2)
    rows = live[first : first + TRACES]
    rng = np.random.default_rng(seed)
    samples = noisy.shape[1]
    spectrum = _amplitudes(noise[rows], samples)
    gaps = np.isnan(noisy[rows])
    for _ in range(int(np.clip(SIMULATED // (len(rows) * samples), 1, REPEATS))):
        white = np.fft.rfft(rng.standard_normal((len(rows), samples)))
        x = np.fft.irfft(white * spectrum, samples)
        if unsteadiness:
            x *= np.exp(unsteadiness / 2 * _wandering(rng, len(rows), samples))
        x = np.where(gaps, np.nan, x)
        yield x, x if denoise is None else x - denoise(unit * x) / unit


def _wandering(rng: np.random.Generator, traces: int, samples: int) -> Floats:
    """Standard normal values that change slowly: between those at every `CHANGES` samples."""
    at, part = np.divmod(np.arange(samples) / CHANGES, 1)
    knots = rng.standard_normal((traces, int(at[-1]) + 2))
    between = knots[:, at.astype(int)] * (1 - part) + knots[:, at.astype(int) + 1] * part
    return np.asarray(between / np.hypot(part, 1 - part))


def _amplitudes(noise: Floats, samples: int) -> Floats:
    """Square roots of the power spectral density at the frequencies of so many samples, by interpolated logarithms."""
    count = noise.shape[1]
    centres = np.array([0.75 * 0.5**level for level in range(1, count)] + [0.25 * 0.5 ** (count - 1)])
    place = np.log2(np.maximum(np.fft.rfftfreq(samples), 0.5 / samples))
    logs = np.log2(np.maximum(noise, 1e-300))
    return np.array([2 ** (0.5 * np.interp(place, np.log2(centres)[::-1], own[::-1])) for own in logs])

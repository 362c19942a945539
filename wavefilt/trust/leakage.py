"""Is there signal in what was removed: how much the error grew, and how likely noise alone is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
SIMULATED, TRACES, REPEATS = 1 << 17, 64, 64
"""Samples of noise that are denoised, traces of a gather that they imitate, and how often at most."""
SHORTEST = 128
"""Samples of a trace that can be tested."""
RATE = 0.01
"""False discovery rate of windows and of levels."""


@dataclass(frozen=True)
class Leakage:
    """What a denoise did to the error, by windows of two neighbouring cells, arrays (traces, windows); NaN in gaps.

    Window k is of the samples from ``k cell`` to ``(k + 2) cell``, so that windows overlap by half.
    """

    cell: int
    """Samples."""
    change: Floats
    """Growth of the error's energy in units of the noise's mean energy in a window of the record: below 0 where the
    denoise helped, at least -1 on average. An estimate, see `docs/trust.md`."""
    p_value: Floats
    """Probability that the removal of noise alone removes that much."""
    significant: Mask
    """Where noise alone does not explain what was removed, at a false discovery rate of `RATE`."""
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
    """Levels in which noise alone does not explain what was removed, (levels + 1,)."""
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
    ratio, excess = _ratios(cells, noise)
    if samples < SHORTEST:
        ratio[:] = np.nan
    null, null_levels, lateral = [], [], [np.empty((0, 0))]
    for x, r in _simulations(noisy, noise, denoise, unit, seed) if np.isfinite(ratio).any() else ():
        own = measure(x, r, cell)
        values, shares = _ratios(own, noise_levels(own, cell, x, known))
        null.append(values)
        null_levels.append(shares)
        lateral.append(coherence(r))
    every = np.concatenate(null, axis=None) if null else np.empty(0)
    p = p_values(ratio, every)
    by_level = [p_values(excess[j : j + 1], np.array([own[j] for own in null_levels]))[0] for j in range(len(excess))]
    change = np.sum((cells.removed - 2 * noise[:, None] * cells.share) * cells.widths, axis=2)
    energy = noise @ cells.widths
    weight = cells.weight
    whole = float(np.sum(energy[:, None] * weight))
    mean = whole / max(float(weight.sum()), 1) or 1.0
    return Leakage(
        cell,
        np.where(np.isfinite(ratio), _pairs(change, weight) / mean, np.nan),
        p,
        rejected(p, RATE),
        float(np.sum(change * weight) / (whole or 1.0)),
        unit,
        noise,
        cells.mean(cells.power),
        cells.mean(cells.removed),
        rejected(np.array(by_level), RATE),
        (coherence(removed) if null else lateral[0], np.concatenate(lateral, axis=None)),
        denoise is not None,
    )


def _pairs(values: Floats, weight: Floats) -> Floats:
    """Means over each window of two neighbouring cells, or over the only one."""
    sums = values * weight
    if sums.shape[1] == 1:
        return values
    both = weight[:, 1:] + weight[:, :-1]
    return np.asarray((sums[:, 1:] + sums[:, :-1]) / np.maximum(both, 1))


def _ratios(cells: Cells, noise: Floats) -> tuple[Floats, Floats]:
    """What was removed over the noise: of each window, levels counted by their widths, NaN in gaps; and of each level.

    The latter is the median over traces.
    """
    most = np.max(noise, axis=1, keepdims=True, initial=0)
    floor = np.where(most > 0, np.maximum(noise, 1e-9 * most), np.inf)
    whitened = np.sum(cells.removed / floor[:, None] * cells.widths, axis=2)
    weight = cells.weight
    full = _pairs(weight, np.ones_like(weight)) >= weight.max(initial=1) / 2
    levels = cells.mean(cells.removed) / floor
    alive = weight.any(axis=1) & (most[:, 0] > 0)
    own = np.median(levels[alive], axis=0) if alive.any() else np.zeros(noise.shape[1])
    return np.where(full & alive[:, None], _pairs(whitened, weight), np.nan), own


def _simulations(
    noisy: Floats, noise: Floats, denoise: Denoise | None, unit: float, seed: int
) -> Iterator[tuple[Floats, Floats]]:
    """Gaussian noise of these spectra with the same gaps, and what the denoise removes of it; of dead traces none.

    All traces, or neighbours from the middle. ``unit`` is 1 in the units of the denoise.
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
        x = np.where(gaps, np.nan, np.fft.irfft(white * spectrum, samples))
        yield x, x if denoise is None else x - denoise(unit * x) / unit


def _amplitudes(noise: Floats, samples: int) -> Floats:
    """Square roots of the power spectral density at the frequencies of so many samples, by interpolated logarithms."""
    count = noise.shape[1]
    centres = np.array([0.75 * 0.5**level for level in range(1, count)] + [0.25 * 0.5 ** (count - 1)])
    place = np.log2(np.maximum(np.fft.rfftfreq(samples), 0.5 / samples))
    logs = np.log2(np.maximum(noise, 1e-300))
    return np.array([2 ** (0.5 * np.interp(place, np.log2(centres)[::-1], own[::-1])) for own in logs])

"""Residual statics of sections: a time shift and an amplitude factor of each trace, found, removed and put back.

Each trace of a section is compared with a *pilot*, its prediction from its neighbours. In the f-k spectra of windows,
the pilot keeps the strongest `STRONGEST` wavenumbers of each frequency that have `SIGNIFICANT` times the energy of the
noise, and leaves out the part that a trace itself adds to them: with mask M over the wavenumbers, M minus its mean. A
pilot with that part would follow the trace and its noise, and find smaller shifts.

The shift of a trace maximises its correlation with the pilot, and the factor is the regression on it. Both are kept
relative to their running medians over `NEIGHBOURS` traces, because smooth changes along a section are structure, not
statics. `ROUNDS` rounds remove what was found and repeat the search.

Statics are kept only if two tests are passed, by the shifts or by the factors. They scatter from trace to trace: the
robust standard deviation of differences between neighbours, over √2, is at least `LEAST_SHIFT` samples (or
`LEAST_FACTOR`), and `TIMES_ERROR` times the standard error that the noise causes. And they are constant along a trace:
those found in the first round in the first and the second half of the energy of each pilot agree, their differences
between neighbours have a correlation of at least `AGREEMENT`. It is 0.5 to 1 for statics in noise, and -0.7 to 0.2 for
artefacts of curved or crossing events, in synthetic and in recorded gathers.

To remove and restore statics exactly, sections are continued beyond both ends by a cross-fade of their reflections, to
an odd length, and shifted by the phases of their spectrum. Without a Nyquist frequency, a shift and its inverse cancel
to rounding. What a shift moves over the ends of a trace stays in the continuation, which is denoised with the section.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array, Floats, Mask, constant
from wavefilt.chunks import filled, live_samples
from wavefilt.options import Options
from wavefilt.thresholding.rules import quantile_to_sigma
from wavefilt.transforms.fk import Axis, Frame
from wavefilt.wavelets.boundary import extended

if TYPE_CHECKING:
    from wavefilt.engine import Outcome

ROUNDS = 4
STEP = 1.15
"""Factor of the shifts that are found in all rounds except the last: pilots of shifted traces underestimate them."""
MOST, LAG = 12.0, 6
"""Largest shift, and largest shift that one round finds, in samples."""
FINER = 8
"""Lags in a sample at which the correlation is computed; a parabola through three of them gives the shift."""
FACTORS = (0.4, 2.5)
"""Smallest and largest factor."""
WINDOW = (32, 64)
"""Traces and samples of a window of the pilot."""
STRONGEST, SIGNIFICANT = 4, 10.0
SHARE = 0.3
"""The quantile of magnitudes from which the noise is estimated."""
NEIGHBOURS = 31
LEAST_SHIFT, LEAST_FACTOR, TIMES_ERROR, AGREEMENT = 0.5, 0.15, 4.0, 0.4
MARGIN = 32
"""Smallest number of samples that a section is continued by, at both ends together."""


@dataclass(frozen=True, eq=False)
class Statics:
    """Statics of a batch of sections: all 0 and 1 for a section in which none were found.

    Attributes
    ----------
    shifts : ndarray
        Shifts of the traces of each section in samples; a positive one makes a trace later than its neighbours.
    factors : ndarray
        Amplitudes of the traces of each section relative to neighbouring traces.
    """

    shifts: Floats
    factors: Floats

    @property
    def found(self) -> bool:
        """Whether any section has statics."""
        return bool(self.shifts.any() or (self.factors != 1).any())

    def removed(self, x: Array) -> Array:
        """Return sections (sections, traces, samples) without statics, longer than ``x`` at both ends."""
        return self._moved(_continued(x), 1)

    def restored(self, y: Array, samples: int) -> Array:
        """Return sections with their statics put back, from longer ones as `removed` returns them."""
        first = _before(samples)
        return np.ascontiguousarray(self._moved(y, -1)[..., first : first + samples])

    def _moved(self, x: Array, sign: int) -> Array:
        """Shift and scale sections of an odd length; traces with shift 0 and factor 1 are the same bit for bit."""

        y = x.copy()
        some = (self.shifts != 0) | (self.factors != 1)
        if some.any():
            phases = _turned(self.shifts[some] * sign, x.shape[-1], x.dtype)
            scale = (self.factors[some] ** -sign)[:, None].astype(x.dtype)
            y[some] = scale * np.fft.irfft(phases * np.fft.rfft(x[some]), x.shape[-1])
        return y

    def rolled(self, mask: Mask) -> Mask:
        """Return a mask (sections, traces, samples) of samples where `removed` has them, to the nearest sample."""
        places = np.arange(_length(mask.shape[-1])) - _before(mask.shape[-1]) + np.rint(self.shifts)[..., None]
        inside = np.clip(places.astype(int), 0, mask.shape[-1] - 1)
        return np.take_along_axis(mask, inside, axis=-1)


def find(sections: Array) -> Statics:
    """Find the statics of sections (sections, traces, samples), or of one section (traces, samples).

    Gaps (NaN) are interpolated. Dead traces, and sections of fewer than 8 traces or 32 samples, have none. Raises
    ValueError for complex samples and other shapes.
    """
    sections = np.asarray(sections)
    if sections.ndim not in (2, 3) or np.iscomplexobj(sections):
        found = f"{sections.dtype} of shape {sections.shape}"
        raise ValueError(f"statics need a real section (traces, samples), or a batch of sections, not {found}")
    batch = sections[None] if sections.ndim == 2 else sections
    live = live_samples(batch, bool(np.isfinite(batch).all()))
    whole = batch if live is None else filled(batch, live)[0]
    shifts, factors = np.zeros(batch.shape[:2]), np.ones(batch.shape[:2])
    for i, section in enumerate(whole):
        there = ~constant(section) if live is None else np.asarray(live[i].any(axis=1))
        if np.count_nonzero(there) >= 8 and section.shape[1] >= 32:
            shifts[i], factors[i] = _of_section(section, there)
    return Statics(shifts, factors)


def denoise_without(sections: Array, options: Options, run: Callable[[Array, Options], Outcome]) -> Outcome:
    """Call ``run`` for sections without their statics, and put these back; gaps are returned as they are."""
    statics, others = find(sections), replace(options, statics=False)
    if not statics.found:
        return replace(run(sections, others), options=options, statics=statics)
    samples, gaps = sections.shape[-1], np.isnan(sections)
    whole = statics.removed(filled(sections, ~gaps)[0] if gaps.any() else sections)
    longer = np.where(statics.rolled(gaps), np.nan, whole) if gaps.any() else whole
    if options.noise.window:
        start, stop = (end + _before(samples) for end in options.noise.window)
        others = replace(others, sigma=("window", start, stop))
    outcome = run(longer, others)
    y = statics.restored(np.where(np.isnan(outcome.samples), whole, outcome.samples), samples)
    return replace(outcome, samples=np.where(gaps, sections, y), options=options, statics=statics)


@lru_cache(maxsize=32)
def _length(samples: int) -> int:
    """Return the odd length to which sections are continued, a product of 3, 5 and 7 for its Fourier transform."""
    longest = samples + MARGIN
    factors = [3**a * 5**b * 7**c for a in range(30) for b in range(20) for c in range(16)]
    return int(min(n for n in factors if n >= longest))


def _before(samples: int) -> int:
    return (_length(samples) - samples) // 2


def _continued(x: Array) -> Array:
    """Continue traces periodically beyond both ends, by a cross-fade between the reflections of the two ends."""
    samples = x.shape[-1]
    more, first = _length(samples) - samples, _before(samples)
    both = extended(x, "symmetric", more, more)
    fade = ((np.arange(more) + 1) / (more + 1)).astype(x.dtype)
    before, after = both[..., :more], both[..., more + samples :]
    between = after + fade * (before - after)  # so that dead traces stay constant
    return np.concatenate([between[..., more - first :], x, between[..., : more - first]], axis=-1)


def _turned(shifts: Floats, samples: int, dtype: Any) -> Array:
    """Return the factors of a spectrum (traces, frequencies) that move traces to earlier times."""
    turns = np.exp(2j * np.pi * np.fft.rfftfreq(samples) * shifts[:, None])
    return np.asarray(turns, np.result_type(dtype, np.complex64))


def _of_section(x: Array, live: Mask) -> tuple[Floats, Floats]:
    """Return shifts and factors (traces,) of a section without gaps; ``live`` marks traces that are not dead."""
    longer = _continued((x / max(float(np.abs(x).max()), 1e-300)).astype(np.float32)[None])[0]
    count, samples = longer.shape
    frequency, spectrum = np.fft.rfftfreq(samples), np.fft.rfft(longer)
    lags = np.arange(-LAG * FINER, LAG * FINER + 1) / FINER
    waves = np.exp(2j * np.pi * np.outer(frequency, lags)).astype(np.complex64)
    shifts, factors = np.zeros(count), np.ones(count)
    for turn in range(ROUNDS):
        aligned = _turned(shifts, samples, np.float32) * spectrum / factors[:, None].astype(np.float32)
        samples_of_pilot, noise = _pilot(np.fft.irfft(aligned, samples))
        pilot = np.fft.rfft(samples_of_pilot)

        def compared(spectrum: Array, aligned: Array = aligned) -> tuple[Floats, Floats]:
            """Return the shifts and factors of the traces against a pilot; 0 and 1 where it is silent."""
            both, energy = aligned * spectrum.conj(), np.square(np.abs(spectrum)).sum(axis=1)
            known = live & (energy > 0)
            scaled = np.divide(both.real.sum(axis=1), energy, out=np.ones(count), where=known)
            return np.where(known, _peak((both @ waves).real, lags), 0), np.clip(scaled, *FACTORS)

        if turn == 0:
            early = np.cumsum(np.square(samples_of_pilot), axis=1)
            early = early < early[:, -1:] / 2
            parts = [compared(np.fft.rfft(samples_of_pilot * part)) for part in (early, ~early)]
            agreed = np.array([_agreement(first[live], second[live]) for first, second in zip(*parts, strict=True)])
            if not (agreed >= AGREEMENT).any():
                return np.zeros(count), np.ones(count)
        step = STEP if turn < ROUNDS - 1 else 1.0
        later, louder = compared(pilot)
        shifts = np.clip(_residual(shifts + step * later, live), -MOST, MOST)
        logs = _residual(np.log(factors * louder), live)
        factors = np.clip(np.exp(logs), *FACTORS)
    density = np.interp(frequency, np.linspace(0, 0.5, len(noise)), 4 * samples * noise)
    relative = np.square(np.abs(pilot)) / np.maximum(density, 1e-6 * density.max() + 1e-300)
    information = np.stack([relative @ np.square(2 * np.pi * frequency), relative.sum(axis=1)])[:, live]
    errors = 1 / np.sqrt(2 * np.maximum(np.median(information, axis=1), 1e-300))
    spreads = [_scatter(shifts[live]), _scatter(factors[live])]
    limits = np.maximum((LEAST_SHIFT, LEAST_FACTOR), TIMES_ERROR * errors)
    if not ((spreads >= limits) & (agreed >= AGREEMENT)).any():
        return np.zeros(count), np.ones(count)
    return shifts, factors


def _pilot(x: Array) -> tuple[Array, Floats]:
    """Return the prediction of each trace from its neighbours, and the energy of the noise at each frequency."""
    frame = Frame(*(Axis(n, min(size, n // 2 * 2)) for n, size in zip(x.shape, WINDOW, strict=True)))
    bands, noise = frame.analyse(x[None], ("symmetric", "symmetric")), np.empty(frame.frequencies)
    for f, band in enumerate(bands):
        power = np.square(band.real) + np.square(band.imag)
        quantile = np.quantile(np.sqrt(frame.counted(power, f)), SHARE)
        noise[f] = 2 * (quantile * quantile_to_sigma(2, SHARE)) ** 2
        strongest = np.partition(power, -min(STRONGEST, power.shape[-1]), axis=-1)[..., -STRONGEST:].min(axis=-1)
        kept = (power >= strongest[..., None]) & (power > SIGNIFICANT * noise[f])
        own = kept.mean(axis=-1, keepdims=True, dtype=np.float32)
        bands[f] = band * ((kept - own) / np.maximum(1 - own, 0.25))
    return frame.synthesise(bands)[0], noise


def _peak(values: Array, lags: Floats) -> Floats:
    """Return the lag at which each row is largest, by the parabola through the largest value and its neighbours."""
    rows, place = np.arange(len(values)), np.clip(values.argmax(axis=1), 1, len(lags) - 2)
    before, middle, after = (values[rows, place + k] for k in (-1, 0, 1))
    bend = np.minimum(before - 2 * middle + after, -1e-30)
    return np.asarray(lags[place] + np.clip((before - after) / (2 * bend), -1, 1) / FINER)


def _residual(values: Floats, live: Mask) -> Floats:
    """Return the difference from the running median over neighbouring live traces; 0 for dead traces."""
    from scipy.ndimage import median_filter

    own = values[live]
    found = np.zeros(len(values))
    found[live] = own - median_filter(own, min(NEIGHBOURS, len(own) - 1 | 1), mode="nearest")
    return found


def _agreement(first: Floats, second: Floats) -> float:
    """Return the correlation of the differences between neighbours; 0 if there are none."""
    a, b = np.diff(first), np.diff(second)
    return float(a @ b) / max(float(np.sqrt(a @ a * (b @ b))), 1e-300)


def _scatter(values: Floats) -> float:
    """Return the standard deviation between neighbours, from the median absolute difference."""
    return float(np.median(np.abs(np.diff(values))) / (0.6744897501960817 * np.sqrt(2)))

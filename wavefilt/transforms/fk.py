"""The windowed f-k transform of sections: Fourier transforms of overlapping windows of traces and samples.

Windows overlap by half of their size along both axes. Their sine tapers have squares that add up to 1. With orthonormal
transforms this is a tight frame (a Gabor frame, Daubechies, Grossmann and Meyer 1986) of redundancy 4: the same windows
serve for analysis and synthesis. The transform along time is that of real samples.

The bands are the temporal frequencies, one row of wavenumbers for each window. White noise of variance 1 has variance
1/4 in every coefficient, half of it in the real and half in the imaginary part. Coefficients that are real for real
samples have all of it in one part, and are not counted.

Rule "js" multiplies a coefficient F by g = max(0, 1 - λ/A), where A is the mean of |F|²/2σ² over 3 x 3 neighbours in
frequency and wavenumber and σ is the noise of a part at their frequency.

**Several window sizes** (``wavelet="mixed"``). Small windows suit curved and ragged events, large ones plane events:

1. The noise of larger windows is limited by that of the smallest ones, at the same frequency. A plane event fills a few
   wavenumbers of a large window in all of its neighbours, and raises the quantile that the noise is taken from.
2. Sections shrunk with each size are averaged with weights exp(-(R - R_min) / (`TEMPERATURE` S)), with the noise
   energy S of a coefficient and Stein's unbiased estimate of the risk of each size, R = Σ |F|² (1 - g)² +
   2 S (g + λ S |F|² / 9 A²) - S with A in the units of |F|², averaged over `AROUND` traces and samples.
3. The average is transformed with each size again, to E. The section is shrunk anew by g = |E|² / (|E|² + S), a Wiener
   filter, and averaged by the risk Σ |F|² (1 - g)² + 2 S g - S.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array, Floats, Mask
from wavefilt.errors import OptionError
from wavefilt.threads import parallel
from wavefilt.thresholding.local import Bivariate
from wavefilt.wavelets.boundary import extended
from wavefilt.wavelets.filters import WaveletLike

from .base import Analysis, Band, Pyramid, Refusal, Shape, Transform

if TYPE_CHECKING:
    from wavefilt.options import Options
    from wavefilt.statistics.reference import Statistics
    from wavefilt.thresholding.rules import Rule
    from wavefilt.thresholding.shrinkage import Shrinkage

GRAIN = 1 << 17
"""Samples, or real numbers of coefficients, that are worth a thread, and fit the cache of a core."""
MIXED = ((8, 32), (32, 64), (64, 128))
"""Sizes of the windows of "mixed", traces by samples, the smallest first.

Windows of 16 x 32 as well gain 0.15 dB in ragged sections and nothing in others, for a third more time.
"""
LARGER, LEAST = 1.3, 0.3
"""Limits of the noise of larger windows, in units of that of the smallest and of their own.

A lower limit of 1.05 gains 0.3 dB in ragged sections without ``statics``, and loses as much in recorded noise, whose
spectrum differs between traces, and 0.1 dB in others.
"""
TEMPERATURE = 0.04
"""The difference in risk, in units of the noise, at which the weight falls by a factor e: 0.02 to 0.075 is as good."""
AROUND = (33, 65)
"""Traces and samples over which the risk is averaged; with half of it, ragged sections lose up to 2 dB."""


@dataclass(frozen=True)
class Windows:
    """Windows with sine tapers, the filters of this transform: their ``sizes``, traces by samples, all even."""

    name: str
    sizes: tuple[tuple[int, int], ...]

    @property
    def dec_len(self) -> int:
        """Largest length along a trace."""
        return self.sizes[-1][1]


@dataclass(frozen=True)
class Axis:
    """The windows along an axis of a section: the first begins half a window before it, the last ends as far beyond."""

    samples: int
    size: int

    @property
    def half(self) -> int:
        return self.size // 2

    @property
    def count(self) -> int:
        return -(-self.samples // self.half) + 1

    @property
    def inside(self) -> slice:
        """The windows that lie inside the section; all windows of a single trace."""
        return slice(1, self.samples // self.half) if self.samples > 1 else slice(None)

    def extended(self, x: Array, mode: str) -> Array:
        """Extend ``x`` (..., samples) as far as the windows reach, to (..., (count + 1) half)."""
        mode = "periodic" if mode == "periodization" else mode
        return extended(x, mode, self.half, self.count * self.half - self.samples)

    def cut(self, x: Array, axis: int) -> Array:
        """Divide an extended axis into tapered windows; their samples become the last axis."""
        views = np.lib.stride_tricks.sliding_window_view(x, self.size, axis)
        every = (slice(None),) * (axis % x.ndim) + (slice(None, None, self.half),)
        return np.asarray(np.multiply(views[every], sine(self.size, x.real.dtype.char), order="C"))

    def joined(self, windows: Array) -> Array:
        """Invert `cut` of the last axis: from (..., count, size) to (..., samples)."""
        tapered, half = windows * sine(self.size, windows.real.dtype.char), self.half
        sums = np.zeros((*windows.shape[:-2], self.count + 1, half), windows.dtype)
        sums[..., :-1, :] = tapered[..., :half]
        sums[..., 1:, :] += tapered[..., half:]
        flat = sums.reshape(*windows.shape[:-2], -1)
        return flat[..., half : half + self.samples]

    def spread(self, values: Array, around: int) -> Array:
        """Interpolate values of the windows (..., count) to (..., samples), averaged over ``around`` samples.

        Each sample has the values of its two windows, weighted by the squares of their tapers.
        """
        from scipy.ndimage import uniform_filter1d

        later = sine(self.size, values.dtype.char)[: self.half] ** 2
        between = values[..., :-1, None] + np.diff(values)[..., None] * later
        at_samples = between.reshape(*values.shape[:-1], -1)[..., : self.samples]
        return np.asarray(uniform_filter1d(at_samples, around, mode="nearest"))


@lru_cache(maxsize=32)
def sine(size: int, dtype: str) -> Array:
    """Return the taper of a window: its squares half a window apart add up to 1."""
    return np.sin(np.pi * (np.arange(size) + 0.5) / size).astype(dtype)


@dataclass(frozen=True)
class Frame:
    """The transform of a section with windows of one size. Bands are in the order of their frequencies, from 0."""

    across: Axis
    along: Axis

    @property
    def frequencies(self) -> int:
        return self.along.half + 1

    def complex(self, frequency: int) -> slice:
        """Return the wavenumbers of a band that are not real, nor conjugates of others; all of two wavenumbers."""
        real = frequency in (0, self.along.half) and self.across.half > 1
        return slice(1, self.across.half) if real else slice(None)

    def counted(self, band: Array, frequency: int) -> Array:
        """Return the coefficients of windows inside the section: beyond its ends the samples are not independent."""
        inside = band[:, self.across.inside, self.along.inside, self.complex(frequency)]
        return inside.reshape(len(band), -1)

    def size(self, frequency: int) -> int:
        """Return the number of coefficients that `counted` returns."""
        inside = prod(len(range(axis.count)[axis.inside]) for axis in (self.across, self.along))
        return inside * len(range(self.across.size)[self.complex(frequency)])

    def analyse(self, x: Array, modes: Sequence[str]) -> list[Array]:
        """Return a band (batch, windows across, windows along, wavenumbers) for each frequency."""
        batch, along = len(x), self.along
        longer = self.across.extended(x.swapaxes(1, 2), modes[0]).swapaxes(1, 2)
        rows = longer.reshape(-1, along.samples)
        spectra = np.empty((self.frequencies, len(rows), along.count), np.result_type(x, np.complex64))

        def over_time(own: slice) -> None:
            windows = along.cut(along.extended(rows[own], modes[1]), -1)
            spectra[:, own] = np.moveaxis(np.fft.rfft(windows, norm="ortho"), -1, 0)

        _in_parts(over_time, len(rows), along.samples)
        bands: list[Any] = [None] * len(spectra)

        def over_traces(own: slice) -> None:
            for f in range(own.start, own.stop):
                windows = self.across.cut(spectra[f].reshape(batch, -1, along.count), 1)
                bands[f] = np.fft.fft(windows, norm="ortho")

        _in_parts(over_traces, len(bands), spectra[0].size)
        return bands

    def synthesise(self, bands: Sequence[Array]) -> Array:
        """Return the sections (batch, traces, samples)."""
        batch, shape = len(bands[0]), (self.across.samples, self.along.samples)
        spectra = np.empty((len(bands), batch, shape[0], self.along.count), bands[0].dtype)

        def over_traces(own: slice) -> None:
            for f in range(own.start, own.stop):
                windows = np.fft.ifft(bands[f], norm="ortho")
                spectra[f] = self.across.joined(windows.swapaxes(1, 2)).swapaxes(1, 2)

        _in_parts(over_traces, len(bands), spectra[0].size)
        rows, y = spectra.reshape(len(bands), -1, self.along.count), np.empty((batch, *shape), spectra.real.dtype)

        def over_time(own: slice) -> None:
            windows = np.fft.irfft(np.moveaxis(rows[:, own], 0, -1), self.along.size, norm="ortho")
            y.reshape(-1, shape[1])[own] = self.along.joined(windows)

        _in_parts(over_time, batch * shape[0], self.along.samples)
        return y

    def shrunk(self, bands: Sequence[Array], thresholds: Floats, noise: Floats) -> tuple[list[Array], Floats]:
        """Shrink by rule "js"; return the bands and the risk of each window (batch, windows across, windows along).

        ``thresholds`` are σ √λ, ``noise`` is σ (bands, batch). Frequencies next to zero and Nyquist have neighbours
        beyond these: the conjugates at opposite wavenumbers, because samples are real.
        """
        there = (thresholds > 0).astype(bands[0].real.dtype)
        number = 6 * _over_frequencies(there[..., None])
        share = np.divide(noise, thresholds, out=np.zeros_like(noise), where=thresholds > 0)
        surplus = float(2 * np.square(share).max())  # S in units of the squares of the thresholds

        def shrink(f: Array, section: Any) -> tuple[Array, Array]:
            power = np.square(f.real) + np.square(f.imag)
            energy = _over_frequencies(power)
            energy += np.roll(energy, 1, -1) + np.roll(energy, -1, -1)
            removed = np.minimum(number[:, section] / energy, 1)
            removed[there[:, section] == 0] = 0
            inner = np.where(removed < 1, 1 + surplus / 9, 1).astype(power.dtype)
            return 1 - removed, power * np.square(removed) * inner - 2 * surplus * removed + surplus

        return self._by_blocks(shrink, [bands], thresholds)

    def filtered(self, bands: Sequence[Array], pilot: Sequence[Array], noise: Floats) -> tuple[list[Array], Floats]:
        """Shrink by a Wiener filter for the signal ``pilot``; return the bands and the risk, as `shrunk` does."""

        def shrink(f: Array, section: Any, signal: Array) -> tuple[Array, Array]:
            energy = np.square(signal.real) + np.square(signal.imag)
            removed = 2 / (energy + 2)
            removed[(noise[:, section] == 0)] = 0
            power = np.square(f.real) + np.square(f.imag)
            return 1 - removed, power * np.square(removed) - 4 * removed + 2

        return self._by_blocks(shrink, [bands, pilot], noise)

    def _by_blocks(
        self, shrink: Callable[..., tuple[Array, Array]], parts: Sequence[Sequence[Array]], unit: Floats
    ) -> tuple[list[Array], Floats]:
        """Multiply the first bands by gains, from functions of blocks of windows of all bands in units of ``unit``.

        ``shrink`` returns the gain and the risk of coefficients. The sum of the risk over a window, both halves of the
        spectrum, is in the units of the largest of ``unit`` (bands, batch) for each section.
        """
        waves, real = self.across.size, parts[0][0].real.dtype
        flat = [[band.reshape(-1, waves) for band in bands] for bands in parts]
        count, each = len(flat[0][0]), len(flat[0][0]) // unit.shape[1]
        scale = np.divide(1, unit, out=np.zeros_like(unit), where=unit > 0)
        scale = np.minimum(scale, np.finfo(real).max).astype(real)
        largest = unit.max(axis=0)
        weight = np.square(np.divide(unit, largest, out=np.zeros_like(unit), where=largest > 0))
        weight[1:-1] *= 2
        shrunk, risk = list(map(np.empty_like, flat[0])), np.empty(count)

        def work(own: slice) -> None:
            section = np.arange(own.start, own.stop) // each
            blocks = [np.stack([band[own] for band in bands]) for bands in flat]
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                gain, lost = shrink(
                    blocks[0] * scale[:, section, None],
                    section,
                    *(block * scale[:, section, None] for block in blocks[1:]),
                )
            total = (lost.sum(axis=-1) * weight[:, section]).sum(axis=0)
            risk[own] = np.where(np.isfinite(total), total, 0)  # where squares overflow, nothing is removed
            for band, values in zip(shrunk, blocks[0] * gain, strict=True):
                band[own] = values

        _in_parts(work, count, 2 * len(flat[0]) * waves)
        shape = parts[0][0].shape
        return [values.reshape(shape) for values in shrunk], risk.reshape(shape[:-1])


class FKTransform(Transform):
    """The transform of sections. Its level is the number of bands less one, half of the samples in a single window."""

    name, word, ndim, parts, noise_share = "fk", "fk", 2, 2, 0.3
    default_wavelet, default_rule = "mixed", "js"
    has_levels, depends_on_shifts = False, False
    without_offsets = True  # a band would hold little else, and its noise is a quantile of its magnitudes

    def refusals(self, options: Options) -> Iterable[Refusal]:
        yield from super().refusals(options)
        yield "level", options.level is not None, ", which has windows instead, such as wavelet sine32x64"
        yield "keep", options.keep > 0, ", which has no levels"
        yield "sigma", options.sigma == "global", ": each frequency has noise of its own"
        yield "rule", len(options.rule.values) > 1, ", which has no levels: give one threshold"
        yield "rule", isinstance(options.rule.together, Bivariate), ", whose bands have no parents"
        several = len(options.filters.sizes) > 1 and not options.rule.local
        yield "rule", several, " and several windows: use rule js, or one window such as sine32x64"

    def usual_wavelet(self, rule: Rule) -> str:
        return "mixed" if rule.local else "sine32x64"

    def filters(self, wavelet: WaveletLike) -> Windows:
        """Return the windows of a name: "mixed", or one size such as "sine32x64", 32 traces by 64 samples.

        Raises OptionError for another.
        """
        if isinstance(wavelet, Windows):
            return wavelet
        if wavelet == "mixed":
            return Windows("mixed", MIXED)
        match = re.fullmatch(r"sine(\d+)x(\d+)", wavelet) if isinstance(wavelet, str) else None
        sizes = [int(size) for size in match.groups()] if match else []
        if not match or any(size < 2 or size % 2 for size in sizes):
            example = "'mixed', or such as sine32x64, which is 32 traces by 64 samples, both even"
            raise OptionError(f"`wavelet={wavelet!r}` is no window of transform 'fk': name it as {example}")
        return Windows(f"sine{sizes[0]}x{sizes[1]}", ((sizes[0], sizes[1]),))

    def growth(self, filters: Windows, level: int) -> float:
        """Return √n: a transform of n samples that keeps their energy multiplies the largest by up to this."""
        return float(prod(filters.sizes[-1]) ** 0.5)

    def usual_level(self, shape: Shape, filters: Windows) -> int:
        """Return the number of bands less one; 0 for a single trace."""
        bands = sum(min(size, shape[1]) // 2 + 1 for _, size in filters.sizes)
        return bands - 1 if min(shape) > 1 else 0

    def bands(self, level: int, filters: Any = None, approximation: bool = False) -> tuple[Band, ...]:
        """Return the bands: of the largest windows first, and of each from the highest frequency down."""
        return _bands(level, filters)

    def frames(self, analysis: Analysis, shape: Shape) -> list[Frame]:
        """Return the transform for each size of the windows; they are not larger than the section."""
        windows: Any = analysis.wavelets[0]
        lengths = _lengths(windows, analysis.level)
        return [
            # the noise of a single live trace is measured too
            Frame(Axis(shape[0], min(traces, max(shape[0] // 2 * 2, 2))), Axis(shape[1], length))
            for (traces, _), length in zip(windows.sizes, lengths, strict=True)
        ]

    def sizes(self, analysis: Analysis, shape: Shape) -> list[int]:
        if not analysis.level:
            return []
        frames = self.frames(analysis, shape)
        return [frame.size(f) for frame in frames for f in range(frame.frequencies)][::-1]

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        """Return no approximation, and the bands of all frames."""
        if np.iscomplexobj(x):
            raise OptionError(f"`transform={self.word!r}` is for real samples: denoise both parts one by one")
        if not analysis.level:
            return (x,)
        frames = self.frames(analysis, x.shape[1:])
        return (x[:, 0, :0], *(band for frame in frames for band in frame.analyse(x, analysis.modes)))

    def synthesise(self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: Shape) -> Array:
        """Return the samples; of several frames their mean."""
        if not analysis.level:
            return approximation
        bands = list(details)
        sections = [frame.synthesise(bands[own]) for frame, own in _places(self.frames(analysis, shape))]
        return sections[0] if len(sections) == 1 else np.mean(sections, axis=0)

    def reconstructed(self, pyramid: Pyramid, shrinkage: Shrinkage | None) -> Array:
        """Return the samples: with several frames, the mean of the results, by their risk, of the second stage."""
        frames = self.frames(pyramid.analysis, pyramid.shape) if pyramid.level else []
        if shrinkage is None or len(frames) < 2:
            return super().reconstructed(pyramid, shrinkage)
        assert shrinkage.sigma is not None
        batch, bands = len(pyramid.coefficients[0]), pyramid.coefficients[1:]
        thresholds, noise = (
            np.broadcast_to(numbers[::-1], (len(bands), batch)) for numbers in (shrinkage.thresholds, shrinkage.sigma)
        )
        units = noise.max(axis=0)

        def mixed(shrunk: Callable[..., tuple[list[Array], Floats]], unit: Floats) -> Array:
            """Shrink with each frame, and average the results."""
            sections, risks = [], []
            for frame, own in _places(frames):
                found, risk = shrunk(frame, own)
                sections.append(frame.synthesise(found))
                relative = np.divide(unit[own].max(axis=0), units, out=np.ones(batch), where=units > 0)
                risks.append(risk * np.square(relative)[:, None, None] / (frame.across.size * frame.along.size))
            return _average(frames, sections, risks, noise / np.where(units > 0, units, 1))

        first = mixed(lambda frame, own: frame.shrunk(bands[own], thresholds[own], noise[own]), thresholds)

        def again(frame: Frame, own: slice) -> tuple[list[Array], Floats]:
            return frame.filtered(bands[own], frame.analyse(first, pyramid.analysis.modes), noise[own])

        return mixed(again, noise)

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: Shape) -> tuple[Any, ...]:
        approximation, *bands = coefficients
        places = _places(self.frames(analysis, shape))
        counted = [frame.counted(band, f) for frame, own in places for f, band in enumerate(bands[own])]
        return (*counted[::-1], approximation)

    def noise(self, statistics: Statistics, sigma: str | float, bands: tuple[Band, ...]) -> Floats:
        """Return the noise of every band; that of larger windows is limited by the noise of the smallest."""
        found = super().noise(statistics, sigma, bands)
        starts = [i for i, band in enumerate(bands) if band.level == 1]
        if sigma != "level" or len(starts) < 2:
            return found
        energy = np.square(found)
        smallest, rows = energy[starts[-1] :], 2 * (len(bands) - starts[-1] - 1)
        for start, stop in pairwise(starts):
            half = stop - start - 1
            places = np.floor(np.arange(half, -1, -1) / (2 * half) * rows + 0.5).astype(int)
            sums = np.zeros_like(smallest)
            np.add.at(sums, -1 - places, energy[start:stop])
            mean = sums / np.maximum(np.bincount(places, minlength=len(smallest)), 1)[::-1, None]
            ratio = np.divide(LARGER * smallest, mean, out=np.ones_like(mean), where=mean > 0)
            limits = np.clip(ratio, LEAST, 1)[-1 - places]
            limits[-1] = 1  # at 0 Hz, where smaller windows have the noise of a wider band
            found[start:stop] *= np.sqrt(limits)
        return found

    def noise_from_fewer(self, noise: Floats, level: int, options: Options) -> Floats:
        """Return the noise at the frequencies of longer windows, interpolated from that of shorter ones."""
        windows: Any = options.filters
        found, start = [], 0
        shorter, longer = (_lengths(windows, bands - 1) for bands in (len(noise), level + 1))
        for own, length in zip(reversed(shorter), reversed(longer), strict=True):
            known = np.square(noise[start : start + own // 2 + 1][::-1])
            start += own // 2 + 1
            places = np.linspace(0, len(known) - 1, length // 2 + 1)
            low = np.minimum(places.astype(int), len(known) - 2)
            share = (places - low)[:, None]
            found.append(np.sqrt(known[low] * (1 - share) + known[low + 1] * share)[::-1])
        return np.concatenate(found)

    def shrunk_together(self, pyramid: Pyramid, shrinkage: Shrinkage) -> list[Array]:
        (frame,) = self.frames(pyramid.analysis, pyramid.shape)
        assert shrinkage.sigma is not None
        thresholds, sigma = shrinkage.thresholds[::-1], shrinkage.sigma[::-1]
        return [pyramid.coefficients[0], *frame.shrunk(pyramid.coefficients[1:], thresholds, sigma)[0]]

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        """Return the share of a window's energy, for all of its coefficients."""
        found = list[Array]()
        for frame in self.frames(analysis, live.shape):
            shares: Array = live.astype(np.float32)
            for axis in (frame.along, frame.across):  # the other one last in turn
                windows = axis.cut(axis.extended(shares, "symmetric"), -1)
                shares = (windows @ sine(axis.size, "f") / axis.half).T
            whole = np.broadcast_to(shares[None, ..., None], (1, *shares.shape, frame.across.size))
            found += [frame.counted(whole, f) for f in range(frame.frequencies)]
        return tuple(found[::-1])


FK = FKTransform()


def _places(frames: Sequence[Frame]) -> Iterator[tuple[Frame, slice]]:
    """Yield each frame with the places of its bands among those of all frames."""
    start = 0
    for frame in frames:
        yield frame, slice(start, start + frame.frequencies)
        start += frame.frequencies


def _average(frames: Sequence[Frame], sections: Sequence[Array], risks: Sequence[Floats], noise: Floats) -> Array:
    """Return the mean of sections, weighted by the risk of the windows of each frame for a coefficient.

    ``noise`` is in the units of the risk (bands, batch).
    """
    energies = [2 * np.square(noise[own]).mean(axis=0) for _, own in _places(frames)]
    energy: Floats = np.mean(energies, axis=0)
    for i in range(len(sections[0])):
        pairs = zip(frames, risks, strict=True)
        along = [frame.along.spread(risk[i].astype(np.float32), AROUND[1]).T for frame, risk in pairs]

        def some(own: slice, i: int = i, along: list[Array] = along) -> None:
            maps = [frame.across.spread(risk[own], AROUND[0]) for frame, risk in zip(frames, along, strict=True)]
            least = np.minimum.reduce(maps)
            weights = [np.exp((least - risk) / max(TEMPERATURE * energy[i], 1e-30)).T for risk in maps]
            parts = [section[i, :, own] * weight for section, weight in zip(sections, weights, strict=True)]
            sections[0][i, :, own] = sum(parts) / sum(weights)

        _in_parts(some, *sections[0].shape[:0:-1])
    return sections[0]


def _over_frequencies(x: Array) -> Array:
    """Return the sum of three neighbours along the first axis, reflected at the ends to opposite wavenumbers."""
    total, opposite = x.copy(), -np.arange(x.shape[-1]) % x.shape[-1]
    total[1:] += x[:-1]
    total[:-1] += x[1:]
    total[0] += x[1][:, opposite]
    total[-1] += x[-2][:, opposite]
    return total


def _in_parts(work: Callable[[slice], None], count: int, size: int) -> None:
    """Call ``work`` for parts of ``count`` rows of ``size`` samples, in parallel; each part has about `GRAIN`.

    The parts do not depend on the number of threads: the last digit of matrix products depends on the parts.
    """
    step = max(GRAIN // size, 1)

    def some(start: int, stop: int) -> None:
        for first in range(start * step, min(stop * step, count), step):
            work(slice(first, min(first + step, count)))

    parallel(some, -(-count // step))


@lru_cache(maxsize=32)
def _bands(level: int, windows: Windows | None) -> tuple[Band, ...]:
    lengths = [2 * level] if windows is None else _lengths(windows, level)
    found = (
        Band(f"f{f}" if len(lengths) == 1 else f"f{f}/{length}", length // 2 - f + 1, -1.5)
        for length in reversed(lengths)
        for f in range(length // 2, -1, -1)
    )
    return tuple(found) if level else ()


@lru_cache(maxsize=32)
def _lengths(windows: Windows, level: int) -> list[int]:
    """Return the samples of the windows of each size, which are not longer than the section, by the level."""
    for longest in range(2, windows.dec_len + 1, 2):
        lengths = [min(samples, longest) for _, samples in windows.sizes]
        if sum(length // 2 + 1 for length in lengths) > level:
            return lengths
    raise ValueError(f"{windows.name} has no {level + 1} bands")

"""The windowed f-k transform of sections: Fourier transforms of overlapping windows of traces and samples.

Windows overlap by half of their size along both axes. Their sine tapers have squares that add up to 1. With orthonormal
transforms this is a tight frame (a Gabor frame, Daubechies, Grossmann and Meyer 1986) of redundancy 4: the same windows
serve for analysis and synthesis. The transform along time is that of real samples.

The bands are the temporal frequencies, one row of wavenumbers for each window, and the level is the highest frequency,
in periods a window. White noise of variance 1 has variance 1/4 in every coefficient, half of it in the real and half in
the imaginary part. Coefficients that are real for real samples have all of it in one part, and are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array, Mask
from wavefilt.errors import OptionError
from wavefilt.threads import parallel
from wavefilt.thresholding.local import Bivariate, Local
from wavefilt.wavelets.boundary import extended
from wavefilt.wavelets.filters import WaveletLike

from .base import Analysis, Band, Pyramid, Refusal, Shape, Transform

if TYPE_CHECKING:
    from wavefilt.options import Options
    from wavefilt.thresholding.shrinkage import Shrinkage

GRAIN = 1 << 16
"""Samples that are worth a thread."""


@dataclass(frozen=True)
class Window:
    """Sine tapers over a number of ``traces`` and ``samples``, both even: the filters of this transform."""

    traces: int
    samples: int

    @property
    def name(self) -> str:
        return f"sine{self.traces}x{self.samples}"

    @property
    def dec_len(self) -> int:
        """Length along a trace."""
        return self.samples


def as_window(wavelet: object) -> Window:
    """Return the window of a name such as "sine32x64": 32 traces and 64 samples. Raises OptionError for another."""
    if isinstance(wavelet, Window):
        return wavelet
    match = re.fullmatch(r"sine(\d+)x(\d+)", wavelet) if isinstance(wavelet, str) else None
    sizes = [int(size) for size in match.groups()] if match else []
    if not match or any(size < 2 or size % 2 for size in sizes):
        example = "sine32x64, which is 32 traces by 64 samples, both even"
        raise OptionError(f"`wavelet={wavelet!r}` is no window of transform 'fk': name it as {example}")
    return Window(*sizes)


@dataclass(frozen=True)
class Windows:
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
        return np.asarray(views[every] * sine(self.size, x.real.dtype.char))

    def joined(self, windows: Array) -> Array:
        """Invert `cut` of the last axis: from (..., count, size) to (..., samples)."""
        tapered, half = windows * sine(self.size, windows.real.dtype.char), self.half
        sums = np.zeros((*windows.shape[:-2], self.count + 1, half), windows.dtype)
        sums[..., :-1, :] = tapered[..., :half]
        sums[..., 1:, :] += tapered[..., half:]
        flat = sums.reshape(*windows.shape[:-2], -1)
        return flat[..., half : half + self.samples]


@lru_cache(maxsize=32)
def sine(size: int, dtype: str) -> Array:
    """Return the taper of a window: its squares half a window apart add up to 1."""
    return np.sin(np.pi * (np.arange(size) + 0.5) / size).astype(dtype)


class FKTransform(Transform):
    """The transform of sections; its level follows from the window."""

    name, word, ndim, parts, noise_share = "fk", "fk", 2, 2, 0.3
    default_wavelet, default_rule = "sine32x64", "js"
    has_levels, depends_on_shifts = False, False

    def refusals(self, options: Options) -> Iterable[Refusal]:
        yield from super().refusals(options)
        yield "level", options.level is not None, ", which has windows instead, such as wavelet sine32x64"
        yield "keep", options.keep > 0, ", which has no levels"
        yield "sigma", options.sigma == "global", ": each frequency has noise of its own"
        yield "rule", len(options.rule.values) > 1, ", which has no levels: give one threshold"
        yield "rule", isinstance(options.rule.together, Bivariate), ", whose bands have no parents"

    def filters(self, wavelet: WaveletLike) -> Window:
        return as_window(wavelet)

    def growth(self, filters: Window, level: int) -> float:
        """Return √n: a transform of n samples that keeps their energy multiplies the largest by up to this."""
        return float((filters.traces * filters.samples) ** 0.5)

    def usual_level(self, shape: Shape, filters: Window) -> int:
        """Return half of the samples in a window, the highest frequency; 0 for a single trace."""
        return min(filters.samples, shape[1]) // 2 if shape[0] > 1 else 0

    def bands(self, level: int, filters: Any = None, approximation: bool = False) -> tuple[Band, ...]:
        """Return the frequencies from the highest down, in periods a window."""
        return _bands(level)

    def windows(self, analysis: Analysis, shape: Shape) -> tuple[Windows, Windows]:
        """Return the windows across traces and along time; they are not larger than the section."""
        window: Any = analysis.wavelets[0]
        across = min(window.traces, max(shape[0] // 2 * 2, 2))  # the noise of a single live trace is measured too
        return Windows(shape[0], across), Windows(shape[1], 2 * analysis.level)

    def sizes(self, analysis: Analysis, shape: Shape) -> list[int]:
        if not analysis.level:
            return []
        across, along = self.windows(analysis, shape)
        inside = prod(len(range(w.count)[w.inside]) for w in (across, along))
        numbers = (len(range(across.size)[_complex(f, analysis, across)]) for f in range(analysis.level + 1))
        return [inside * number for number in numbers][::-1]

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        """Return no approximation, and a band (batch, windows across, windows along, wavenumbers) a frequency."""
        from scipy import fft

        if np.iscomplexobj(x):
            raise OptionError(f"`transform={self.word!r}` is for real samples: denoise both parts one by one")
        if not analysis.level:
            return (x,)
        (across, along), batch = self.windows(analysis, x.shape[1:]), len(x)
        longer = across.extended(x.swapaxes(1, 2), analysis.modes[0]).swapaxes(1, 2)
        rows = longer.reshape(-1, along.samples)
        spectra = np.empty((analysis.level + 1, len(rows), along.count), np.result_type(x, np.complex64))

        def over_time(own: slice) -> None:
            windows = along.cut(along.extended(rows[own], analysis.modes[1]), -1)
            spectra[:, own] = np.moveaxis(fft.rfft(windows, norm="ortho"), -1, 0)

        _in_parts(over_time, len(rows), along.samples)
        bands: list[Any] = [None] * len(spectra)

        def over_traces(own: slice) -> None:
            for f in range(own.start, own.stop):
                windows = across.cut(spectra[f].reshape(batch, -1, along.count), 1)
                bands[f] = fft.fft(windows, norm="ortho", overwrite_x=True)

        _in_parts(over_traces, len(bands), spectra[0].size)
        return (x[:, 0, :0], *bands)

    def synthesise(self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: Shape) -> Array:
        from scipy import fft

        if not analysis.level:
            return approximation
        (across, along), bands = self.windows(analysis, shape), list(details)
        batch = len(bands[0])
        spectra = np.empty((len(bands), batch, shape[0], along.count), bands[0].dtype)

        def over_traces(own: slice) -> None:
            for f in range(own.start, own.stop):
                windows = fft.ifft(bands[f], norm="ortho")
                spectra[f] = across.joined(windows.swapaxes(1, 2)).swapaxes(1, 2)

        _in_parts(over_traces, len(bands), spectra[0].size)
        rows, y = spectra.reshape(len(bands), -1, along.count), np.empty((batch, *shape), spectra.real.dtype)

        def over_time(own: slice) -> None:
            windows = fft.irfft(np.moveaxis(rows[:, own], 0, -1), along.size, norm="ortho")
            y.reshape(-1, shape[1])[own] = along.joined(windows)

        _in_parts(over_time, batch * shape[0], along.samples)
        return y

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: Shape) -> tuple[Any, ...]:
        """Return the coefficients of windows inside the section: beyond its ends the samples are not independent."""
        approximation, *bands = coefficients
        across, along = self.windows(analysis, shape)
        counted = []
        for frequency, band in enumerate(bands):
            inside = band[:, across.inside, along.inside, _complex(frequency, analysis, across)]
            counted.append(inside.reshape(len(band), -1))
        return (*counted[::-1], approximation)

    def shrunk_together(self, pyramid: Pyramid, shrinkage: Shrinkage) -> list[Array]:
        assert isinstance(shrinkage.function, Local)
        bands = shrinkage.function.shrink_spectra(pyramid.coefficients[:0:-1], shrinkage.thresholds, self.parts)
        return [pyramid.coefficients[0], *bands[::-1]]

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        """Return the share of a window's energy, for all of its coefficients."""
        across, along = self.windows(analysis, live.shape)
        shares: Array = live.astype(np.float32)
        for axis in (along, across):  # the other one last in turn
            windows = axis.cut(axis.extended(shares, "symmetric"), -1)
            shares = (windows @ sine(axis.size, "f") / axis.half).T
        whole = np.broadcast_to(shares[None, ..., None], (1, across.count, along.count, across.size))
        return self.counted((whole,) * (analysis.level + 2), analysis, live.shape)[:-1]


FK = FKTransform()


def _in_parts(work: Callable[[slice], None], count: int, size: int) -> None:
    """Call ``work`` for all parts of ``count`` rows of ``size`` samples, in parallel; each part has about `GRAIN`."""
    step = max(GRAIN // size, 1)

    def some(start: int, stop: int) -> None:
        for first in range(start, stop, step):
            work(slice(first, min(first + step, stop)))

    parallel(some, count, step)


@lru_cache(maxsize=32)
def _bands(level: int) -> tuple[Band, ...]:
    return tuple(Band(f"f{f}", level - f + 1, -1.5) for f in range(level, -1, -1)) if level else ()


def _complex(frequency: int, analysis: Analysis, across: Windows) -> slice:
    """Return the wavenumbers of a band that are not real, nor conjugates of others; all if a window has only two."""
    return slice(1, across.half) if frequency in (0, analysis.level) and across.half > 1 else slice(None)

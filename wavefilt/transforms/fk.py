"""The windowed f-k transform of sections: Fourier transforms of overlapping windows of traces and samples.

Windows follow each other by half of their size along both axes, tapered by sines, whose squares add up to 1 there. With
orthonormal transforms this is a tight frame (a Gabor frame, Daubechies, Grossmann and Meyer 1986) of redundancy 4:
what is analysed is synthesised by the same windows. The transform along time is that of real samples.

The bands are the temporal frequencies, one row of wavenumbers a window, and the level is the highest frequency, in
periods a window. White noise of variance 1 has 1/4 in every coefficient, half of it in the real and half in the
imaginary part; those that are real for real samples have all of it in one, and are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from sys import maxsize
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array, Floats, Mask
from wavefilt.errors import OptionError, options
from wavefilt.threads import parallel
from wavefilt.thresholding.bivariate import Together
from wavefilt.thresholding.local_shrinkage import Local
from wavefilt.wavelets.extension import extended
from wavefilt.wavelets.filters import WaveletLike
from wavefilt.wavelets.fk_windows import Window, as_window

from .base import Analysis, Band, Transform
from .planes import check_panels

if TYPE_CHECKING:
    from wavefilt.options import Options

GRAIN = 1 << 16
"""Samples that are worth a thread."""


@dataclass(frozen=True)
class Windows:
    """Those along an axis of a panel: the first and the last begin and end half a window beyond it, or more."""

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
        """The windows that have nothing but samples of the panel; all of a single trace."""
        return slice(1, self.samples // self.half) if self.samples > 1 else slice(None)

    def extended(self, x: Array, mode: str) -> Array:
        """``x`` (..., samples) as far as the windows reach, (..., (count + 1) half)."""
        mode = "periodic" if mode == "periodization" else mode
        return extended(x, mode, self.half, self.count * self.half - self.samples)

    def cut(self, x: Array, axis: int) -> Array:
        """What lies in each window of an extended axis, tapered: window by window there, and its samples last."""
        views = np.lib.stride_tricks.sliding_window_view(x, self.size, axis)
        every = (slice(None),) * (axis % x.ndim) + (slice(None, None, self.half),)
        return np.asarray(views[every] * sine(self.size, x.real.dtype.char))

    def joined(self, windows: Array) -> Array:
        """The opposite of `cut` of the last axis but one, from (..., count, size): (..., samples)."""
        tapered, half = windows * sine(self.size, windows.real.dtype.char), self.half
        sums = np.zeros((*windows.shape[:-2], self.count + 1, half), windows.dtype)
        sums[..., :-1, :] = tapered[..., :half]
        sums[..., 1:, :] += tapered[..., half:]
        flat = sums.reshape(*windows.shape[:-2], -1)
        return flat[..., half : half + self.samples]


@lru_cache(maxsize=32)
def sine(size: int, dtype: str) -> Array:
    """The taper of a window, whose squares half a window apart add up to 1."""
    return np.sin(np.pi * (np.arange(size) + 0.5) / size).astype(dtype)


class _FK(Transform):
    name, word, dimensions, parts, noise_share = "fk", "fk", 2, 2, 0.3
    default_wavelet, default_rule = "sine32x64", "js"
    has_levels, auto_level, shrinks_approximation = False, maxsize, False

    def check(self, method: Options) -> None:
        check_panels(method)
        refused = [
            ("level", method.level is not None, ", which has windows instead, such as wavelet sine32x64"),
            ("keep", method.keep > 0, ", which has no levels"),
            ("sigma", method.sigma == "global", ", where every frequency has noise of its own"),
            ("rule", len(method.rule.values) > 1, ", which has no levels: give one threshold"),
            ("rule", method.rule.name == "bivariate", ", whose bands have no parents"),
        ]
        for option, wrong, why in refused:
            if wrong:
                given = options(**{option: vars(method)[option]})
                raise OptionError(given, " is not for ", options(transform=self.word), why)

    def filters(self, wavelet: WaveletLike) -> Window:
        return as_window(wavelet)

    def growth(self, bank: Window, level: int) -> float:
        """A transform of n samples, scaled to keep their energy, multiplies the largest by up to √n."""
        return float((bank.traces * bank.samples) ** 0.5)

    def usual_level(self, shape: tuple[int, ...], bank: Window) -> int:
        return self.deepest(shape, bank)

    def with_levels(self, samples: int, bank: Window, above: int = 0) -> str:
        return ""

    def deepest(self, shape: tuple[int, ...], bank: Window) -> int:
        """Half of the samples in a window, and so the highest frequency; 0 for a single trace."""
        return min(bank.samples, shape[1]) // 2 if shape[0] > 1 else 0

    def bands(self, level: int, bank: Any = None) -> tuple[Band, ...]:
        """The frequencies from the highest down, in periods a window."""
        return _bands(level)

    def levels(self, bands: int) -> int:
        return max(bands - 1, 0)

    def noise_exponent(self, level: int) -> float:
        return -1.5

    def windows(self, analysis: Analysis, shape: tuple[int, ...]) -> tuple[Windows, Windows]:
        """Along the traces of a panel and along time; not larger than the panel."""
        bank: Any = analysis.wavelets[0]
        across = min(bank.traces, max(shape[0] // 2 * 2, 2))  # a single live trace is a panel of its own for its noise
        return Windows(shape[0], across), Windows(shape[1], 2 * analysis.level)

    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        if not analysis.level:
            return []
        across, along = self.windows(analysis, shape)
        inside = prod(len(range(w.count)[w.inside]) for w in (across, along))
        numbers = (len(range(across.size)[_complex(band, analysis, across)]) for band in range(analysis.level + 1))
        return [inside * number for number in numbers][::-1]

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        """No approximation, and a band (batch, windows across, windows along, wavenumbers) a frequency, 0 first."""
        from scipy import fft

        if np.iscomplexobj(x):
            raise OptionError(options(transform=self.word), " is for real samples: denoise both parts one by one")
        if not analysis.level:
            return (x,)
        (across, along), batch = self.windows(analysis, x.shape[1:]), len(x)
        longer = across.extended(x.swapaxes(1, 2), analysis.modes[0]).swapaxes(1, 2)
        rows = longer.reshape(-1, along.samples)
        spectra = np.empty((analysis.level + 1, len(rows), along.count), np.result_type(x, np.complex64))

        def over_time(start: int, stop: int) -> None:
            step = max(GRAIN // along.samples, 1)
            for first in range(start, stop, step):
                own = slice(first, min(first + step, stop))
                windows = along.cut(along.extended(rows[own], analysis.modes[1]), -1)
                spectra[:, own] = np.moveaxis(fft.rfft(windows, norm="ortho"), -1, 0)

        parallel(over_time, len(rows), max(GRAIN // along.samples, 1))
        bands: list[Any] = [None] * len(spectra)

        def over_traces(start: int, stop: int) -> None:
            for f in range(start, stop):
                windows = across.cut(spectra[f].reshape(batch, -1, along.count), 1)
                bands[f] = fft.fft(windows, norm="ortho", overwrite_x=True)

        parallel(over_traces, len(bands), -(-len(bands) * GRAIN // spectra.size))
        return (x[:, 0, :0], *bands)

    def synthesise(
        self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: tuple[int, ...]
    ) -> Array:
        from scipy import fft

        if not analysis.level:
            return approximation
        (across, along), bands = self.windows(analysis, shape), list(details)
        batch = len(bands[0])
        spectra = np.empty((len(bands), batch, shape[0], along.count), bands[0].dtype)

        def over_traces(start: int, stop: int) -> None:
            for f in range(start, stop):
                windows = fft.ifft(bands[f], norm="ortho")
                spectra[f] = across.joined(windows.swapaxes(1, 2)).swapaxes(1, 2)

        parallel(over_traces, len(bands), -(-len(bands) * GRAIN // spectra.size))
        rows, y = spectra.reshape(len(bands), -1, along.count), np.empty((batch, *shape), spectra.real.dtype)

        def over_time(start: int, stop: int) -> None:
            step = max(GRAIN // along.samples, 1)
            for first in range(start, stop, step):
                own = slice(first, min(first + step, stop))
                windows = fft.irfft(np.moveaxis(rows[:, own], 0, -1), along.size, norm="ortho")
                y.reshape(-1, shape[1])[own] = along.joined(windows)

        parallel(over_time, batch * shape[0], max(GRAIN // along.samples, 1))
        return y

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """Those of windows inside the panel: beyond its ends the samples are not independent."""
        if not analysis.level:
            return ()
        (across, along), found = self.windows(analysis, shape), []
        for band, own in enumerate(coefficients[1:]):
            inside = own[:, across.inside, along.inside, _complex(band, analysis, across)]
            found.append(inside.reshape(len(own), -1))
        return tuple(found[::-1])

    def shrunk_together(
        self,
        function: Together,
        coefficients: tuple[Array, ...],
        thresholds: Floats,
        analysis: Analysis,
        shape: tuple[int, ...],
    ) -> list[Array]:
        assert isinstance(function, Local)
        bands = function.shrink_spectra(coefficients[:0:-1], thresholds, self.parts)
        return [coefficients[0], *bands[::-1]]

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        """The share of a window's energy, for all of its coefficients."""
        across, along = self.windows(analysis, live.shape)
        shares: Array = live.astype(np.float32)
        for axis in (along, across):  # the other one last in turn
            windows = axis.cut(axis.extended(shares, "symmetric"), -1)
            shares = (windows @ sine(axis.size, "f") / axis.half).T
        whole = np.broadcast_to(shares[None, ..., None], (1, across.count, along.count, across.size))
        return self.counted((whole,) * (analysis.level + 2), analysis, live.shape)


FK = _FK()


@lru_cache(maxsize=32)
def _bands(level: int) -> tuple[Band, ...]:
    return tuple(Band(f"f{f}", level - f + 1, -1.5) for f in range(level, -1, -1)) if level else ()


def _complex(band: int, analysis: Analysis, across: Windows) -> slice:
    """The wavenumbers of a band that are not real, nor conjugates of others; all where a window has but two."""
    return slice(1, across.half) if band in (0, analysis.level) and across.half > 1 else slice(None)

"""The interface of a wavelet transform, and the coefficients that it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pywt

from wavefilt.arrays import Array, Floats, Mask
from wavefilt.errors import OptionError
from wavefilt.thresholding import rules
from wavefilt.thresholding.local import above_rounding
from wavefilt.vocabulary import MODES
from wavefilt.vocabulary import Rule as RuleName
from wavefilt.wavelets.dual_tree import magnitude_quantile
from wavefilt.wavelets.filters import WaveletLike, as_reconstructing, gain, max_level

if TYPE_CHECKING:
    from wavefilt.options import Options
    from wavefilt.statistics.reference import Statistics
    from wavefilt.thresholding.shrinkage import Shrinkage

Shape = tuple[int, ...]
"""The lengths of the transformed axes."""

Refusal = tuple[str, bool, str]
"""An option, whether its value is refused, and the reason."""


@dataclass(frozen=True)
class Band:
    """Detail coefficients that share a threshold.

    ``noise_exponent`` is log2 of their standard deviation for white noise of unit variance. ``correlation`` is the
    correlation of the real and imaginary parts of complex coefficients, for the same noise; None for real ones.
    """

    name: str
    level: int
    noise_exponent: float = 0.0
    correlation: float | None = None

    @property
    def median_to_sigma(self) -> float:
        """The noise of a part of a coefficient over the median of the magnitudes of noise."""
        return rules.MAD_TO_SIGMA if self.correlation is None else 1 / magnitude_quantile(0.5, self.correlation)


class Transform(ABC):
    """A transform of traces (``ndim`` 1) or sections (``ndim`` 2), to any number of levels.

    A subclass defines `sizes`, `analyse` and `synthesise`. All else has a default, which fits a decimated orthogonal
    transform. Rule "js", noise that changes along a trace and noise windows need `grids`, division into chunks `halo`.

    Attributes
    ----------
    name : str
        Unique name. Backends list the names of the transforms that they accelerate.
    word : str
        Value of the option ``transform`` of `wavefilt.denoise`; the transform of sections may have the same word.
    ndim : int
        Number of transformed axes, 1 or 2.
    band_names : str
        A letter for each band of a level, in the order of thresholds.
    workspace : float
        Memory for the coefficients of a level beyond that of a decimated transform, in units of the samples.
    default_wavelet, default_rule : str
        Values of ``wavelet`` and ``rule`` if they are left out.
    parts : int
        Real numbers in a coefficient of real samples: 2 for complex bands. Noise and thresholds refer to one part; a
        rule for complex bands shrinks magnitudes and keeps phases.
    noise_share : float
        The quantile of |d| from which the noise is estimated.
    has_levels : bool
        Whether ``level`` is an option; otherwise the filters determine the number of bands.
    depends_on_shifts : bool
        Whether ``spins`` is an option.
    without_offsets : bool
        Whether the offset of each trace of a section is removed before the transform and added again after it.
    """

    name: str
    word: str
    ndim: int = 1
    band_names: str = "D"
    workspace: float = 0.0
    default_wavelet: ClassVar[str] = "db8"
    default_rule: ClassVar[RuleName] = "bayes"
    parts: ClassVar[int] = 1
    noise_share: ClassVar[float] = 0.5
    has_levels: ClassVar[bool] = True
    depends_on_shifts: ClassVar[bool] = True
    without_offsets: ClassVar[bool] = False

    # ---- options and filters

    def check(self, options: Options) -> None:
        """Raise OptionError for options that this transform does not have."""
        for name, refused, reason in self.refusals(options):
            if refused:
                value = options.rule.option if name == "rule" else getattr(options, name)
                raise OptionError(f"`{name}={value!r}` is not for `transform={self.word!r}`{reason}")

    def refusals(self, options: Options) -> Iterable[Refusal]:
        """Yield all options that this transform can refuse."""
        yield "spins", options.spins > 1 and not self.depends_on_shifts, ", which depends little on shifts"
        section, only_traces = self.ndim == 2, " of two axes; it is for traces"
        yield "sigma", section and options.noise.changing, only_traces
        yield "rule", section and options.rule.blocks, only_traces
        yield "detrend", section and options.detrend is not None, only_traces

    def usual_wavelet(self, rule: rules.Rule) -> str:
        """Return the option ``wavelet`` if it is left out."""
        return self.default_wavelet

    def filters(self, wavelet: WaveletLike) -> Any:
        """Return the filters for the option ``wavelet``: a hashable object with ``name`` and ``dec_len``.

        Raises ValueError for an unknown name, TypeError for anything that has no filters.
        """
        return as_reconstructing(wavelet)

    def deepest(self, shape: Shape, filters: Any) -> int:
        """Return the maximum number of levels of a trace or section of this shape."""
        return self.usual_level(shape, filters)

    def usual_level(self, shape: Shape, filters: Any) -> int:
        """Return the maximum number of levels of a trace or section of this shape if ``level`` is left out."""
        return max_level(min(shape), filters)

    def growth(self, filters: Any, level: int) -> float:
        """Return the largest factor by which samples may grow in this many levels and back."""
        return gain(filters) ** (self.ndim * (level + 1))

    def analysis(self, filters: Any, mode: str, level: int) -> Analysis:
        """Return this transform with the same filters and mode along every axis."""
        return _analysis(self, filters, mode, level)

    # ---- bands and their coefficients

    def noise_exponent(self, level: int) -> float:
        """Return log2 of the standard deviation, at this level, of white noise of unit variance."""
        return 0.0

    def bands(self, level: int, filters: Any = None, approximation: bool = False) -> tuple[Band, ...]:
        """Return the bands of all levels, finest first: thresholds and statistics have a row for each.

        With ``approximation``, the approximation of the last level is one more band. If the noise depends on the
        filters, ``filters`` are used, or the default ones.
        """
        return _bands(self, level, filters, approximation)

    def band(self, letter: str, level: int, filters: Any) -> Band:
        """Return the band of this letter at a level; "A" is the approximation."""
        return Band(f"{letter}{level}", level, self.noise_exponent(level))

    def levels(self, bands: int) -> int:
        """Return the number of levels that have this number of bands."""
        return next(level for level in count() if len(self.bands(level)) >= bands)

    @abstractmethod
    def sizes(self, analysis: Analysis, shape: Shape) -> list[int]:
        """Return the number of coefficients of each band that rules count."""

    @abstractmethod
    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        """Return the coefficients of ``x``, ``(batch, *shape)``: the approximation, then details, coarsest level first.

        They are arrays (batch, ...) in the reverse order of `bands`.
        """

    @abstractmethod
    def synthesise(self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: Shape) -> Array:
        """Return the samples ``(batch, *shape)``, C-contiguous, from coefficients in the order of `analyse`."""

    def reconstructed(self, pyramid: Pyramid, shrinkage: Shrinkage | None) -> Array:
        """Return the samples ``(batch, *shape)``, with the coefficients shrunk on the way."""
        if shrinkage is not None and shrinkage.together is not None:
            pyramid, shrinkage = pyramid.shrunk(shrinkage), None
        details = pyramid.shrunk_details(shrinkage)
        return self.synthesise(pyramid.coefficients[0], details, pyramid.analysis, pyramid.shape)

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: Shape) -> tuple[Any, ...]:
        """Return the coefficients that rules count (batch, n) in the order of `bands`, the approximation last."""
        return tuple(c if c.ndim == 2 else c.reshape(len(c), -1) for c in coefficients[::-1])

    def margin(self, analysis: Analysis, level: int) -> int:
        """Return how many coefficients of this level, and of an approximation, precede the first that rules count."""
        return 0

    # ---- noise and shrinkage

    def noise(self, statistics: Statistics, sigma: str | float, bands: tuple[Band, ...]) -> Floats:
        """Return the standard deviation of the noise (bands, groups) by the option ``sigma``.

        The statistics have these ``bands``. The noise is that of one of the `parts` of a coefficient. A number, and
        "global", give the noise of the finest band for all.
        """
        return rules.noise(statistics, sigma, self.parts, self.noise_share)

    def noise_from_fewer(self, noise: Floats, level: int, options: Options) -> Floats:
        """Return the noise in the bands of ``level`` levels, from that of fewer levels (bands, groups).

        Further levels have the noise of the last one, scaled for white noise; with a rule for coloured noise they are
        NaN, which stands for the estimate from all of their own coefficients.
        """
        bands, step = options.bands(level), len(self.band_names)
        last = np.array([band.noise_exponent for band in bands[len(noise) - step : len(noise)]])
        found = [noise]
        for first in range(len(noise), len(bands), step):
            gains = np.exp2([band.noise_exponent for band in bands[first : first + step]] - last)
            found.append(noise[-step:] * (np.nan if options.rule.local else gains[:, None]))
        return np.concatenate(found)

    def shrunk_together(self, pyramid: Pyramid, shrinkage: Shrinkage) -> list[Array]:
        """Return coefficients in the order of `analyse`, shrunk by a function of several.

        Thresholds (bands, batch) are in the order of `bands`; if the approximation is shrunk, its threshold is last.
        """
        function, bands = shrinkage.together, pyramid.coefficients[::-1]
        assert function is not None
        thresholds = above_rounding(shrinkage.thresholds, bands[0].dtype)
        number, grids = len(thresholds), self.grids(pyramid.analysis, pyramid.shape)
        shrunk = function.shrink(bands[:number], thresholds, grids[:number], self.parts, len(self.band_names))
        return [*shrunk, *bands[number:]][::-1]

    # ---- places in time

    def grids(self, analysis: Analysis, shape: Shape) -> Any:
        """Return the places of the coefficients of each band, in the order of `bands`.

        For traces a `Grid` for each band, the approximation last; for sections a pair with a `Grid` for each axis.
        Raises OptionError by default.
        """
        what = "coefficients have no known place in time, which rule js and noise that changes need"
        raise OptionError(f"`transform={self.name!r}`: its {what}")

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        """Return the share of each coefficient's filter energy on ``live`` samples of a section, finest band first.

        Arrays (1, coefficients), for a mask (traces, samples).
        """
        raise NotImplementedError(f"gaps in sections with transform {self.name!r}")

    def spacing(self, level: int) -> int:
        """Return log2 of the samples from one coefficient of this level to the next."""
        return level

    def halo(self, filters: Any, level: int, neighbours: int = 0) -> int | None:
        """Return how many samples on each side of a chunk its results depend on, a multiple of 2^level.

        A rule may shrink each coefficient by a number of ``neighbours`` on each side. None if traces cannot be divided
        into chunks.
        """
        return None


@lru_cache(maxsize=256)  # three or four times for each call of `denoise`
def _analysis(transform: Transform, filters: Any, mode: str, level: int) -> Analysis:
    return Analysis(transform, (filters,) * transform.ndim, (mode,) * transform.ndim, level)


@lru_cache(maxsize=256)
def _bands(transform: Transform, level: int, filters: Any, approximation: bool) -> tuple[Band, ...]:
    details = [transform.band(letter, j, filters) for j in range(1, level + 1) for letter in transform.band_names]
    return (*details, transform.band("A", level, filters)) if approximation else tuple(details)


@dataclass(frozen=True)
class Analysis:
    """A transform with its filters and boundary modes, one of each for every axis, the first axis first.

    ``start_level`` levels of an undecimated transform are skipped.
    """

    transform: Transform
    wavelets: tuple[pywt.Wavelet, ...]
    modes: tuple[str, ...]
    level: int
    start_level: int = 0

    @cached_property
    def builtin_modes(self) -> bool:
        """Whether PyWavelets and compiled kernels have its modes."""
        return all(mode in MODES for mode in self.modes)

    @cached_property
    def taps(self) -> int:
        """Length of the longest filter."""
        return max(int(wavelet.dec_len) for wavelet in self.wavelets)


@dataclass(frozen=True)
class Pyramid:
    """Coefficients of a batch of traces or sections, opaque to everything but the backend that made them.

    ``coefficients`` are in the order of `Transform.analyse`, arrays of the backend's kind; ``shape`` is the shape of
    one trace (samples,) or section (traces, samples), which `Backend.reconstruct` returns. If ``all_counted``, rules
    count the approximation too, as the last of `details`.
    """

    coefficients: tuple[Any, ...]
    analysis: Analysis
    shape: Shape
    all_counted: bool = False

    @property
    def level(self) -> int:
        return self.analysis.level

    @property
    def samples(self) -> int:
        """Number of samples of one trace or section."""
        return prod(self.shape)

    @property
    def details(self) -> tuple[Any, ...]:
        """The coefficients that rules count, finest band first: arrays (batch, coefficients)."""
        counted = self.analysis.transform.counted(self.coefficients, self.analysis, self.shape)
        return counted if self.all_counted else counted[:-1]

    @property
    def with_approximation(self) -> Pyramid:
        """This pyramid for rules that count the approximation as well."""
        return Pyramid(self.coefficients, self.analysis, self.shape, all_counted=True)

    def shrunk_details(self, shrinkage: Shrinkage | None) -> Iterator[Array]:
        """Yield the details, coarsest first, shrunk one after the other on the host."""
        last = len(self.coefficients) - 2
        for i, band in enumerate(self.coefficients[1:]):
            if shrinkage is not None:
                band = shrinkage.of_level(last - i, band.reshape(len(band), -1)).reshape(band.shape)
            yield band

    def shrunk(self, shrinkage: Shrinkage) -> Pyramid:
        """Return the coefficients with the details shrunk on the host, and by some rules the approximation too."""
        if shrinkage.together is not None:
            bands = self.analysis.transform.shrunk_together(self, shrinkage)
        else:
            bands = [self.coefficients[0], *self.shrunk_details(shrinkage)]
        return Pyramid(tuple(bands), self.analysis, self.shape)


def noise_gains(bands: tuple[Band, ...], relative: bool) -> Floats:
    """Return the factor of noise of unit variance in each band, (bands, 1); ``relative`` to the finest band."""
    first = bands[0].noise_exponent if relative and bands else 0.0
    return np.exp2(np.array([band.noise_exponent - first for band in bands], np.float64))[:, None]

"""What a wavelet transform is, and the coefficients it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pywt

from wavefilt.arrays import Array, Floats, Mask
from wavefilt.errors import OptionError, options
from wavefilt.thresholding import rules
from wavefilt.thresholding.bivariate import Together
from wavefilt.thresholding.local_shrinkage import Grid, low_pass_lag
from wavefilt.vocabulary import MODES, Rule
from wavefilt.wavelets.filters import WaveletLike, as_wavelet, gain, max_level, with_levels

if TYPE_CHECKING:
    from wavefilt.options import Options
    from wavefilt.statistics.interface import Statistics
    from wavefilt.thresholding.shrinkage import Shrinkage


@dataclass(frozen=True)
class Band:
    """Detail coefficients that share a threshold.

    ``noise_exponent`` is log2 of their standard deviation for white noise of unit variance. ``parent`` is the name of
    the band of the next coarser level that covers the same part of the spectrum's orientation, "" for the coarsest.
    ``correlation`` is that of the real and the imaginary part of complex coefficients, for the same noise.
    """

    name: str
    level: int
    noise_exponent: float = 0.0
    parent: str = ""
    correlation: float = 0.0


class Transform(ABC):
    """A transform of traces (one dimension) or panels (two), of any number of levels.

    Attributes
    ----------
    name : str
        Its own name, by which backends say that they accelerate it.
    word : str
        The option ``transform`` of `wavefilt.denoise` that means it, for data of so many ``dimensions``.
    band_names : str
        A letter for each band of a level, in the order of thresholds.
    workspace : float
        Memory for the coefficients of a level beyond those of a decimated transform, in units of the samples.
    default_wavelet, default_rule : str
        What ``wavelet`` and ``rule`` are where they are left out.
    parts : int
        Real numbers that make up a coefficient of real samples: 2 where bands are complex. Noise and thresholds are
        those of one of them; a rule for complex bands shrinks magnitudes and keeps phases.
    shrinks_approximation : bool
        Whether rule "js" shrinks the approximation too, as one more band.
    noise_share : float
        The quantile of |d| from which its noise is estimated.
    has_levels : bool
        Whether ``level`` is an option.
    auto_level : int
        Levels where none are asked for, if the samples and the filters allow so many; 0 leaves it to the rule.
    chooses_basis : bool
        Whether what is shrunk and put together depends on the coefficients: `reconstructed` does both then.
    """

    name: ClassVar[str]
    word: ClassVar[str]
    dimensions: ClassVar[int] = 1
    band_names: ClassVar[str] = "D"
    workspace: ClassVar[float] = 0.0
    default_wavelet: ClassVar[str] = "db8"
    default_rule: ClassVar[Rule] = "bayes"
    parts: ClassVar[int] = 1
    shrinks_approximation: ClassVar[bool] = True
    noise_share: ClassVar[float] = 0.5
    has_levels: ClassVar[bool] = True
    auto_level: ClassVar[int] = 0
    chooses_basis: ClassVar[bool] = False

    def check(self, method: Options) -> None:  # noqa: B027  # most transforms have all options
        """Raise ValueError for options that this transform does not have."""

    def filters(self, wavelet: WaveletLike) -> Any:
        """The filters that the option ``wavelet`` means, a `wavefilt.wavelets.filters.Bank`.

        Raises ValueError for an unknown name, TypeError for what cannot be one.
        """
        return as_wavelet(wavelet)

    def deepest(self, shape: tuple[int, ...], bank: Any) -> int:
        """Levels that a trace or panel of this shape may have at most."""
        return max_level(min(shape), bank)

    def usual_level(self, shape: tuple[int, ...], bank: Any) -> int:
        """Levels that one of this shape has at most if none are asked for."""
        return max_level(min(shape), bank)

    def with_levels(self, samples: int, bank: Any, above: int = 0) -> str:
        """Filters like these that have more levels than ``above`` for so many samples, in words; empty for none."""
        return with_levels(samples, bank, above)

    def growth(self, bank: Any, level: int) -> float:
        """By how much the largest sample may grow in so many levels and back."""
        return gain(bank) ** (self.dimensions * (level + 1))

    def analysis(self, wavelet: pywt.Wavelet, mode: str, level: int, start_level: int = 0) -> Analysis:
        """This transform by the same filters and mode along every axis."""
        return _analysis(self, wavelet, mode, level, start_level)

    def noise_exponent(self, level: int) -> float:
        """log2 of the standard deviation, at this level, of white noise of unit variance."""
        return 0.0

    def bands(self, level: int, bank: Any = None) -> tuple[Band, ...]:
        """The bands of so many levels, finest first: thresholds and statistics have a row for each.

        Their noise is that of these filters, or of the default ones, where it depends on them.
        """
        return _bands(self, level)

    def approximation_band(self, level: int, bank: Any) -> Band:
        """The approximation of the last level as one more band, for rules that shrink it."""
        return Band(f"A{level}", level, self.noise_exponent(level))

    def levels(self, bands: int) -> int:
        """How many levels so many bands are."""
        return bands // len(self.band_names)

    @abstractmethod
    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        """Number of coefficients of each band that rules count."""

    @abstractmethod
    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        """Coefficients of ``x`` (batch, *shape): the approximation, then details, the coarsest level first.

        In the order of `bands` reversed, arrays (batch, ...).
        """

    @abstractmethod
    def synthesise(
        self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: tuple[int, ...]
    ) -> Array:
        """The samples (batch, *shape), C-contiguous, from coefficients in the order of `analyse`."""

    def reconstructed(self, pyramid: Pyramid, shrinkage: Shrinkage | None) -> Array:
        """The samples (batch, *shape) again, the coefficients shrunk on the way."""
        if shrinkage is not None and shrinkage.across_bands:
            pyramid, shrinkage = pyramid.shrunk(shrinkage), None
        details = pyramid.shrunk_details(shrinkage)
        return self.synthesise(pyramid.coefficients[0], details, pyramid.analysis, pyramid.shape)

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """The detail coefficients that rules count, arrays (batch, coefficients) in the order of `bands`."""
        return tuple(coefficients[:0:-1])

    def counted_approximation(self, approximation: Array, analysis: Analysis, shape: tuple[int, ...]) -> Array:
        """The approximation coefficients that a rule counts which shrinks them too, (batch, coefficients)."""
        return approximation

    def margin(self, analysis: Analysis, level: int) -> int:
        """Coefficients of this level, and of an approximation, that lie before those that rules count."""
        return 0

    def noise(self, statistics: Statistics, sigma: str | float, bands: tuple[Band, ...]) -> Floats:
        """Standard deviation of the noise (bands, groups) by the option ``sigma``: "level", "global" or a number.

        ``bands`` are those that the statistics are of. The noise is that of one of the `parts` of a coefficient. A
        number, and "global", are those of the finest band for all.
        """
        return rules.noise(statistics, sigma, self.parts, self.noise_share)

    def on_device(self, spec: rules.Rule) -> bool:
        """Whether backend "cuda" has the rule for this transform; otherwise that runs on the CPU."""
        return spec.together is None

    def median_to_sigma(self, band: Band) -> float:
        """The noise of one of the `parts` of a coefficient over the median of the magnitudes of noise."""
        return rules.quantile_to_sigma(self.parts, 0.5)

    def shrunk_together(
        self,
        function: Together,
        coefficients: tuple[Array, ...],
        thresholds: Floats,
        analysis: Analysis,
        shape: tuple[int, ...],
    ) -> list[Array]:
        """Coefficients in the order of `analyse` shrunk by a function of several, as `Pyramid.shrunk` has them.

        ``thresholds`` (bands, batch) are in the order of `bands`, that of the approximation last if it is shrunk.
        """
        count, bands, grids = len(thresholds), coefficients[::-1], self.grids(analysis, shape)
        shrunk = function.shrink(bands[:count], thresholds, grids[:count], self.parts)
        return [*coefficients[: len(bands) - count], *shrunk[::-1]]

    def live_shares(self, live: Mask, analysis: Analysis) -> tuple[Array, ...]:
        """Of each coefficient of a panel, finest band first, which part of its filters' energy is on ``live`` samples.

        Arrays (1, coefficients), of a mask (rows, columns).
        """
        raise NotImplementedError(f"gaps in panels with transform {self.name!r}")

    def grids(self, analysis: Analysis, shape: tuple[int, ...]) -> tuple[Grid, ...]:
        """Where the coefficients of each band are in time, in the order of `bands`, the approximation last.

        Raises OptionError for a transform that does not say.
        """
        what = " and noise that changes are not for transform "
        raise OptionError(options(rule="js"), what, f"{self.name!r}, whose coefficients have no known place in time")

    def spacing(self, level: int) -> int:
        """log2 of the samples from one coefficient of this level to the next."""
        return level

    def lag(self, bank: Any) -> float:
        """By how much an approximation coefficient lies later than the detail of its level, in its own steps."""
        return low_pass_lag(bank.dec_lo)

    def halo(self, taps: int, level: int) -> int | None:
        """Samples on each side of a chunk that its samples depend on, a multiple of 2^level.

        None if traces cannot be cut into chunks for this transform.
        """
        return None


@lru_cache(maxsize=256)  # three or four times for each call of `denoise`
def _analysis(transform: Transform, wavelet: pywt.Wavelet, mode: str, level: int, start_level: int) -> Analysis:
    axes = transform.dimensions
    return Analysis(transform, (wavelet,) * axes, (mode,) * axes, level, start_level)


@cache
def _bands(transform: Transform, level: int) -> tuple[Band, ...]:
    return tuple(
        Band(f"{name}{j}", j, transform.noise_exponent(j), f"{name}{j + 1}" if j < level else "")
        for j in range(1, level + 1)
        for name in transform.band_names
    )


@dataclass(frozen=True)
class Analysis:
    """Which transform, by which filters: ``wavelets`` and ``modes`` have one for each axis, the first axis first.

    ``start_level`` levels of an undecimated transform are skipped.
    """

    transform: Transform
    wavelets: tuple[pywt.Wavelet, ...]
    modes: tuple[str, ...]
    level: int
    start_level: int = 0

    @cached_property
    def builtin_modes(self) -> bool:
        """Whether its modes are those that PyWavelets and compiled kernels know."""
        return all(mode in MODES for mode in self.modes)

    @cached_property
    def taps(self) -> int:
        """Length of the longest filter."""
        return max(int(wavelet.dec_len) for wavelet in self.wavelets)


@dataclass(frozen=True)
class Pyramid:
    """Coefficients of a batch of traces or panels, opaque to everything but the backend that made them.

    ``coefficients`` are in the order of `Transform.analyse`, arrays of the backend's kind; ``shape`` is that of one
    trace (samples,) or panel (rows, columns), to which `Backend.reconstruct` returns.
    """

    coefficients: tuple[Any, ...]
    analysis: Analysis
    shape: tuple[int, ...]

    @property
    def level(self) -> int:
        return self.analysis.level

    @property
    def samples(self) -> int:
        """Of one trace or panel."""
        return prod(self.shape)

    @property
    def details(self) -> tuple[Any, ...]:
        """What rules count, finest band first: arrays (batch, coefficients)."""
        return self.analysis.transform.counted(self.coefficients, self.analysis, self.shape)

    def shrunk_details(self, shrinkage: Shrinkage | None) -> Iterator[Array]:
        """The details, coarsest first, shrunk one after the other on the host."""
        bands = len(self.coefficients) - 1
        for i, band in enumerate(self.coefficients[1:]):
            if shrinkage is None:
                yield band
            else:
                rows = band.reshape(len(band), -1)
                yield shrinkage.of_level(bands - 1 - i, rows).reshape(band.shape)

    def shrunk(self, shrinkage: Shrinkage | None) -> Pyramid:
        """The same with the details, and by a rule for it the approximation, shrunk on the host."""
        if shrinkage is not None and shrinkage.across_bands:
            coefficients = self.analysis.transform.shrunk_together(
                shrinkage.together, self.coefficients, shrinkage.thresholds, self.analysis, self.shape
            )
        else:
            coefficients = [self.coefficients[0], *self.shrunk_details(shrinkage)]
        return Pyramid(tuple(coefficients), self.analysis, self.shape)

    @property
    def with_approximation(self) -> Pyramid:
        """The same for rules that count the approximation as well: it is the last of `details`."""
        return AllCounted(self.coefficients, self.analysis, self.shape)


class AllCounted(Pyramid):
    """`Pyramid.with_approximation`."""

    @property
    def details(self) -> tuple[Any, ...]:
        transform = self.analysis.transform
        return (*super().details, transform.counted_approximation(self.coefficients[0], self.analysis, self.shape))


def noise_gains(bands: tuple[Band, ...], relative: bool) -> Floats:
    """What noise of unit variance is multiplied by in each band, (bands, 1); ``relative`` to the finest band."""
    first = bands[0].noise_exponent if relative and bands else 0.0
    return np.exp2(np.array([band.noise_exponent - first for band in bands], np.float64))[:, None]

"""Threshold functions, as PyWavelets defines them but without its NaN at zero, and their application to bands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wavefilt.arrays import Array, Floats
from wavefilt.errors import OptionError
from wavefilt.thresholding.empirical_bayes import PRIORS
from wavefilt.thresholding.local import Blocks, Together
from wavefilt.vocabulary import Estimator, check

FIRM_RATIO = 2.0
"""``denoise(shrink="firm")`` leaves coefficients above this multiple of the threshold unchanged."""


@dataclass(frozen=True)
class Posterior:
    """An ``estimator`` for a prior of `wavefilt.thresholding.empirical_bayes`; the threshold determines its weight."""

    prior: str
    estimator: Estimator = "median"

    @property
    def word(self) -> str:
        return self.estimator

    def shrink(self, data: Array, value: Any, sigma: Any) -> Array:
        """Shrink ``data``; the threshold ``value`` and ``sigma`` broadcast against it. 0 changes nothing."""
        prior, modulus = PRIORS[self.prior], np.abs(data)
        value, sigma = (np.broadcast_to(np.asarray(v, np.float64), data.shape) for v in (value, sigma))
        kept = np.zeros_like(modulus)
        some = (modulus > value) if self.estimator == "median" else np.ones(data.shape, bool)
        some &= (value > 0) & (sigma > 0)
        scale = sigma[some]
        weights = prior.weight_of(value[some] / scale)
        kept[some] = scale * getattr(prior, self.estimator)(modulus[some].astype(np.float64) / scale, weights)
        kept = np.where(value > 0, kept, modulus)
        return _attenuated(data, modulus - kept) if np.iscomplexobj(data) else np.asarray(np.copysign(kept, data))


Elementwise = str | Callable[[Array, Array], Array]
"""A threshold function of single coefficients: a name in `FUNCTIONS`, or a function like those."""
Function = Elementwise | Posterior | Blocks | Together
"""A threshold function of single coefficients, with a posterior, or of several coefficients."""


@dataclass(frozen=True)
class Shrinkage:
    """A threshold function and the thresholds with which `reconstruct` shrinks the details.

    ``thresholds`` has shape (levels, traces), finest level first, in the data's units; so has the noise ``sigma``,
    which only a `Posterior` needs. `Local` and `Bivariate` shrink all bands at once; if they include the approximation,
    its numbers are the last row. If traces are ``pooled``, a transform that chooses its basis by the coefficients
    chooses one for all traces.
    """

    function: Function
    thresholds: Floats
    sigma: Floats | None = None
    pooled: bool = False

    @property
    def together(self) -> Together | None:
        """The threshold function, if it shrinks bands together, by `Transform.shrunk_together`, not one by one."""
        return self.function if isinstance(self.function, Together) else None

    def of_level(self, place: int, details: Array) -> Array:
        """Shrink the details (traces, coefficients) of a level; the finest level has place 0."""
        value = self.thresholds[place, :, None]
        if isinstance(self.function, Blocks):
            return self.function.shrink(details, value)
        if isinstance(self.function, Posterior):
            assert self.sigma is not None
            return self.function.shrink(details, value, self.sigma[place, :, None])
        assert isinstance(self.function, str) or callable(self.function)
        return apply(self.function, details, value)

    def of_rows(self, rows: slice) -> Shrinkage:
        """Return the shrinkage of some of the traces."""
        sigma = None if self.sigma is None else self.sigma[:, rows]
        return Shrinkage(self.function, self.thresholds[:, rows], sigma, self.pooled)


def _attenuated(data: Array, residual: Array) -> Array:
    """Subtract ``residual`` from the modulus of complex ``data``; zero stays zero."""
    modulus = np.abs(data)
    gain = np.divide(modulus - residual, modulus, out=np.zeros_like(modulus), where=modulus > 0)
    return np.asarray(data * gain).astype(data.dtype, copy=False)


def soft(data: Array, value: ArrayLike) -> Array:
    """Return sgn(d) (|d| - t)+, by modulus for complex data (Donoho 1995)."""
    if np.iscomplexobj(data):
        return _attenuated(data, np.minimum(np.abs(data), value))
    return np.asarray(data - np.clip(data, np.negative(value), value))


def hard(data: Array, value: ArrayLike) -> Array:
    """Return d where |d| >= t, else 0.

    Donoho and Johnstone (1994) and WaveLab remove |d| = t; PyWavelets keeps it.
    """
    return np.asarray(np.where(np.abs(data) < value, data.dtype.type(0), data))


def garrote(data: Array, value: ArrayLike) -> Array:
    """Return d - t²/d where |d| > t, else 0 (non-negative garrote; Gao 1998)."""
    modulus = np.abs(data)
    kept = ~(modulus <= value)  # NaN stays
    # t (t/|d|) rather than t²/|d|: t² would overflow or vanish before the quotient does
    residual = np.multiply(np.divide(value, modulus, out=np.ones_like(modulus), where=kept), value)
    if np.iscomplexobj(data):
        return np.where(kept, _attenuated(data, residual), 0)
    return np.asarray(np.where(kept, data - np.copysign(residual, data), data.dtype.type(0)))


def firm(data: Array, low: ArrayLike, high: ArrayLike) -> Array:
    """Return 0 up to ``low``, d above ``high``, t_high (|d| - t_low)/(t_high - t_low) between (Gao and Bruce 1997).

    Where the two thresholds are equal this is hard thresholding.
    """
    modulus = np.abs(data)
    low, high = np.asarray(low, modulus.dtype), np.asarray(high, modulus.dtype)
    ratio = np.divide(low, high, out=np.zeros_like(low + high), where=high > low)  # also right for high = inf
    with np.errstate(invalid="ignore"):  # infinite data: inf - inf, which the next line does not use
        kept = np.where(modulus <= low, 0, (modulus - low) / (1 - ratio))
        residual = np.where(modulus > high, 0, modulus - np.minimum(kept, modulus))
    return _attenuated(data, residual) if np.iscomplexobj(data) else np.asarray(data - np.copysign(residual, data))


def _firm(data: Array, value: Array) -> Array:
    """Apply `firm` between a threshold and `FIRM_RATIO` times it."""
    return firm(data, value, np.minimum(value, np.finfo(data.real.dtype).max / FIRM_RATIO) * FIRM_RATIO)


FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {"soft": soft, "hard": hard, "garrote": garrote, "firm": _firm}
"""Threshold functions by name: of coefficients, real or complex, and thresholds that broadcast against them."""


def apply(function: Elementwise, data: Array, value: ArrayLike) -> Array:
    """Shrink ``data`` by a threshold function or one of `FUNCTIONS`; ``value`` broadcasts against it."""
    real = data.real.dtype
    shrink = FUNCTIONS[function] if isinstance(function, str) else function
    shrunk = np.asarray(shrink(data, np.minimum(value, np.finfo(real).max).astype(real)))
    if shrunk.shape != data.shape or not np.can_cast(shrunk.dtype, data.dtype, "same_kind"):
        wanted, found = (f"dtype {each.dtype} and shape {each.shape}" for each in (data, shrunk))
        raise OptionError(f"`shrink` must return coefficients of {wanted}, not {found}")
    return shrunk.astype(data.dtype, copy=False)


def threshold(data: ArrayLike, value: Any, mode: str = "soft", substitute: float = 0) -> Array:
    """Threshold an array: signature and values of `pywt.threshold`, without NaN where value and data are 0.

    Parameters
    ----------
    data : array_like
        Real or complex values of any shape.
    value : float
        Threshold, at least 0, in the units of ``data``; for ``mode="firm"`` a pair (low, high).
    mode : {"soft", "hard", "garrote", "firm", "greater", "less"}
        ``greater`` keeps values >= ``value``, ``less`` keeps values <= ``value`` (real data only).
    substitute : float
        Value where |data| is below the threshold.

    Returns
    -------
    ndarray of the shape of ``data``.

    Raises
    ------
    ValueError
        For an unknown mode, a negative or NaN threshold, a firm pair out of order, or complex data with
        ``greater`` or ``less``.
    """
    mode = "garrote" if mode == "garotte" else mode  # PyWavelets accepts both spellings
    check("mode", mode, ("soft", "hard", "garrote", "firm", "greater", "less"))
    array = np.asarray(data)
    if mode in ("greater", "less"):
        if np.iscomplexobj(array):
            raise ValueError(f"`mode={mode!r}` supports real data only")
        return np.where(array < value if mode == "greater" else array > value, substitute, array)
    if mode == "firm":
        if np.shape(value) != (2,):
            raise ValueError(f"`mode='firm'` needs a pair of thresholds (low, high), not {value!r}")
        shrunk, limit = threshold_firm(array, *value), value[0]
    elif not np.all(np.asarray(value) >= 0):
        raise ValueError(f"the threshold must be at least 0, not {value!r}")
    elif mode == "hard":
        return np.where(np.abs(array) < value, substitute, array)
    else:
        array = _floating(array)
        limit = np.asarray(value, dtype=array.real.dtype)
        shrunk = soft(array, limit) if mode == "soft" else garrote(array, limit)
    return shrunk if substitute == 0 else np.where(np.abs(array) < limit, substitute, shrunk)


def threshold_firm(data: ArrayLike, value_low: float, value_high: float) -> Array:
    """Apply a firm threshold: signature and values of `pywt.threshold_firm`; hard where the two values are equal.

    Raises ValueError unless 0 <= value_low <= value_high.
    """
    if not 0 <= value_low <= value_high:
        raise ValueError(f"firm thresholds must satisfy 0 <= low <= high, not {value_low!r} and {value_high!r}")
    return firm(_floating(np.asarray(data)), value_low, value_high)


def _floating(data: Array) -> Array:
    return data if data.dtype.kind in "fc" else data.astype(np.float64)

"""Wavelets: a name, a `pywt.Wavelet` or any object with four filters becomes one `pywt.Wavelet`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import pywt

from wavefilt.errors import OptionError
from wavefilt.vocabulary import nearest


@runtime_checkable
class FilterBank(Protocol):
    """Any object with the four filters of a two-channel bank, each a sequence of floats of one even length."""

    dec_lo: list[float]
    dec_hi: list[float]
    rec_lo: list[float]
    rec_hi: list[float]


WaveletLike: TypeAlias = "str | FilterBank"

CONTINUOUS = "`wavelet={!r}` is continuous; choose a discrete one (`wavefilt wavelets`)"


def names() -> list[str]:
    """Return the names of all discrete wavelets, e.g. ``["bior1.1", ..., "db8", ...]``."""
    return list(pywt.wavelist(kind="discrete"))


def as_wavelet(wavelet: WaveletLike) -> pywt.Wavelet:
    """Return a `pywt.Wavelet` for a name or an object with ``dec_lo, dec_hi, rec_lo, rec_hi``.

    Raises ValueError for an unknown name, a continuous wavelet, or filters that PyWavelets refuses, TypeError for
    anything else.
    """
    if isinstance(wavelet, pywt.Wavelet):
        return wavelet
    if isinstance(wavelet, str):
        return _named(wavelet)
    if isinstance(wavelet, pywt.ContinuousWavelet):
        raise OptionError(CONTINUOUS.format(wavelet.name))
    if isinstance(wavelet, FilterBank):
        filters = [list(map(float, f)) for f in (wavelet.dec_lo, wavelet.dec_hi, wavelet.rec_lo, wavelet.rec_hi)]
        lengths = [len(taps) for taps in filters]
        if lengths[0] < 2 or lengths[0] % 2 or len(set(lengths)) > 1:
            raise ValueError(f"filters of {lengths} taps: all four need one even length")
        if not all(math.isfinite(tap) for taps in filters for tap in taps):
            raise ValueError("a filter has taps that are not finite")
        return pywt.Wavelet(getattr(wavelet, "name", "custom"), filter_bank=filters)
    raise TypeError(
        f"wavelet must be a name, a pywt.Wavelet or an object with dec_lo, dec_hi, rec_lo and rec_hi, "
        f"not {type(wavelet).__name__}"
    )


@lru_cache(maxsize=256)
def _named(name: str) -> pywt.Wavelet:
    try:
        return pywt.Wavelet(name)
    except (TypeError, ValueError) as error:  # TypeError for ""
        if name in pywt.wavelist(kind="continuous"):
            raise OptionError(CONTINUOUS.format(name)) from error
        known = f"{len(names())} discrete wavelets are known (`wavefilt wavelets`)"
        raise OptionError(f"unknown wavelet {name!r}: {known}{nearest(name, names())}") from error


LARGEST_ERROR = 1e-6
"""Error of reconstruction, as a share of the samples, from which a warning is given; custom taps may be rounded."""


def as_reconstructing(wavelet: WaveletLike) -> pywt.Wavelet:
    """Return what `as_wavelet` does; warn once about filters that do not reconstruct samples, such as "dmey"."""
    found = as_wavelet(wavelet)
    _check_reconstruction(found)
    return found


@lru_cache(maxsize=64)
def _check_reconstruction(wavelet: pywt.Wavelet) -> None:
    low, high = (np.convolve(*taps) for taps in zip(wavelet.filter_bank[:2], wavelet.filter_bank[2:], strict=True))
    product = low + high
    product[wavelet.dec_len - 1] -= 2
    error = np.abs(product).max() / 2
    if error > LARGEST_ERROR:
        text = f"the filters of {wavelet.name} do not reconstruct the samples exactly"
        warnings.warn(f"{text}: every level changes them by up to {error:.1g} of their size", stacklevel=3)


@lru_cache(maxsize=64)
def gain(wavelet: pywt.Wavelet) -> float:
    """Return the largest factor by which a level can multiply the largest sample: the greatest sum of |taps|."""
    return float(max(sum(map(abs, taps)) for taps in wavelet.filter_bank))


@lru_cache(maxsize=256)
def max_level(samples: int, wavelet: pywt.Wavelet) -> int:
    """Return the deepest level with a coefficient that is free of boundary effects (`pywt.dwt_max_level`)."""
    return int(pywt.dwt_max_level(samples, wavelet.dec_len)) if samples > 0 else 0


def shorter(samples: int, wavelet: object, level: int = 2) -> str | None:
    """Return the longest wavelet of the same family, or haar, that has this number of levels, or one; None if none has.

    None also for filters of other transforms.
    """
    if not isinstance(wavelet, pywt.Wavelet):
        return None
    family = [own for own in map(as_wavelet, names()) if own.short_family_name == wavelet.short_family_name]
    family = sorted((as_wavelet("haar"), *family), key=lambda own: -own.dec_len)
    levels = {own.name: max_level(samples, own) for own in family}
    return next((name for least in (level, 1) for name, own in levels.items() if own >= least), None)


def detail_length(samples: int, taps: int, mode: str) -> int:
    """Return the number of coefficients of one level: ceil(n/2) for periodization, else floor((n + taps - 1)/2)."""
    return (samples + 1) // 2 if mode == "periodization" else (samples + taps - 1) // 2


def detail_lengths(samples: int, taps: int, mode: str, level: int) -> list[int]:
    """Return the number of detail coefficients of every level, finest first."""
    lengths = [samples]
    for _ in range(level):
        lengths.append(detail_length(lengths[-1], taps, mode))
    return lengths[1:]


def lengths_from(known: Mapping[int, int], taps: int, mode: str) -> list[int]:
    """Return the number of samples, and of coefficients of every level, finest first, from those of some levels.

    Level 0 are the samples, and the deepest level is known. From m coefficients, an unknown level has 2m for
    periodization, otherwise 2m - taps + 2. All are 0 if that is none. Known lengths may not fit the others.
    """
    deepest, less = max(known), 0 if mode == "periodization" else taps - 2
    samples = known[deepest]
    for level in range(deepest - 1, -1, -1):
        samples = known.get(level, 2 * samples - less)
    return [samples, *detail_lengths(samples, taps, mode, deepest)] if samples > 0 else [0] * (deepest + 1)

"""Wavelets: from a name, a `pywt.Wavelet`, or any object with four filters, to one `pywt.Wavelet`."""

from __future__ import annotations

import difflib
import math
from functools import lru_cache
from typing import Protocol, TypeAlias, runtime_checkable

import pywt

from wavefilt.errors import OptionError, options


@runtime_checkable
class FilterBank(Protocol):
    """Any object with the four filters of a two-channel bank, each a sequence of floats of one even length."""

    dec_lo: list[float]
    dec_hi: list[float]
    rec_lo: list[float]
    rec_hi: list[float]


class Bank(Protocol):
    """What the filters of any transform have: see `Transform.filters`; they are hashable."""

    @property
    def name(self) -> str:
        """As ``wavelet`` takes it."""

    @property
    def dec_len(self) -> int:
        """Taps of the longest filter."""


WaveletLike: TypeAlias = "str | FilterBank"


@lru_cache(maxsize=256)
def _named(name: str) -> pywt.Wavelet:
    try:
        return pywt.Wavelet(name)
    except ValueError as error:
        if name in pywt.wavelist(kind="continuous"):
            raise OptionError(
                options(wavelet=name), " is continuous; choose a discrete one (`wavefilt wavelets`)"
            ) from error
        near = difflib.get_close_matches(name.lower(), names(), n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise OptionError(
            f"unknown wavelet {name!r}: {len(names())} discrete wavelets are known{hint} (`wavefilt wavelets`)"
        ) from error


def names() -> list[str]:
    """Names of all discrete wavelets, e.g. ``["bior1.1", ..., "db8", ...]``."""
    return list(pywt.wavelist(kind="discrete"))


def as_wavelet(wavelet: WaveletLike) -> pywt.Wavelet:
    """The `pywt.Wavelet` meant by a name or by an object with ``dec_lo, dec_hi, rec_lo, rec_hi``.

    Raises ValueError for an unknown name, a continuous wavelet, or a filter bank PyWavelets refuses, TypeError for
    anything else.
    """
    if isinstance(wavelet, pywt.Wavelet):
        return wavelet
    if isinstance(wavelet, pywt.ContinuousWavelet):
        raise ValueError(f"wavelet {wavelet.name!r} is continuous; choose a discrete one (`wavefilt wavelets`)")
    if isinstance(wavelet, str):
        return _named(wavelet)
    if isinstance(wavelet, FilterBank):
        bank = [list(map(float, f)) for f in (wavelet.dec_lo, wavelet.dec_hi, wavelet.rec_lo, wavelet.rec_hi)]
        lengths = [len(taps) for taps in bank]
        if lengths[0] < 2 or lengths[0] % 2 or len(set(lengths)) > 1:
            raise ValueError(f"filters of {lengths} taps: all four need one even length")
        if not all(math.isfinite(tap) for taps in bank for tap in taps):
            raise ValueError("a filter has taps that are not finite")
        return pywt.Wavelet(getattr(wavelet, "name", "custom"), filter_bank=bank)
    raise TypeError(
        f"wavelet must be a name, a pywt.Wavelet or an object with dec_lo, dec_hi, rec_lo and rec_hi, "
        f"not {type(wavelet).__name__}"
    )


@lru_cache(maxsize=64)
def gain(wavelet: pywt.Wavelet) -> float:
    """The most by which a level multiplies the largest sample: the greatest sum of |taps|."""
    return float(max(sum(map(abs, taps)) for taps in wavelet.filter_bank))


@lru_cache(maxsize=256)
def max_level(samples: int, wavelet: pywt.Wavelet) -> int:
    """Deepest level at which at least one coefficient is free of boundary effects (`pywt.dwt_max_level`)."""
    return int(pywt.dwt_max_level(samples, wavelet.dec_len)) if samples > 0 else 0


def with_levels(samples: int, wavelet: pywt.Wavelet, above: int = 0) -> str:
    """The longest wavelet of the family for each number of levels above one that so many samples have room for.

    In words: "db6 has 1 level, db3 2, db2 3, haar 4"; haar is one for every family. Empty if there is none.
    """
    family = [bank for bank in map(as_wavelet, names()) if bank.short_family_name == wavelet.short_family_name]
    longest: dict[int, str] = {}
    for bank in sorted((as_wavelet("haar"), *family), key=lambda bank: -bank.dec_len):
        longest.setdefault(max_level(samples, bank), bank.name)
    found = [(level, name) for level, name in longest.items() if level > above]
    if not found:
        return ""
    (level, name), *rest = sorted(found)
    return ", ".join([f"{name} has {level} level{'s' * (level > 1)}", *(f"{name} {level}" for level, name in rest)])


def detail_length(samples: int, taps: int, mode: str) -> int:
    """Number of coefficients of one level: ceil(n/2) for periodization, floor((n + taps - 1)/2) otherwise."""
    return (samples + 1) // 2 if mode == "periodization" else (samples + taps - 1) // 2


def detail_lengths(samples: int, taps: int, mode: str, level: int) -> list[int]:
    """Number of details at every level, finest first."""
    lengths = [samples]
    for _ in range(level):
        lengths.append(detail_length(lengths[-1], taps, mode))
    return lengths[1:]


def synthesis_length(coefficients: int, taps: int, mode: str) -> int:
    """Number of samples that one inverse level returns: 2m for periodization, 2m - taps + 2 otherwise."""
    return 2 * coefficients if mode == "periodization" else 2 * coefficients - taps + 2

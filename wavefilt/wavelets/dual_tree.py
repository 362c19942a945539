"""Filters of the dual-tree complex wavelet transform, by name, and white noise after these filters.

The first level has a biorthogonal pair of odd lengths, ``biort``:

=============  =====  =================================================================================
`antonini`     9, 7   Antonini, Barlaud, Mathieu and Daubechies (IEEE Trans. Image Process. 1, 1992)
`legall`       5, 3   Le Gall and Tabatabai (ICASSP 1988)
`near_sym_a`   5, 7   Kingsbury (Appl. Comput. Harmon. Anal. 10, 2001), near-symmetric
`near_sym_b`   13, 19 Kingsbury, as above
=============  =====  =================================================================================

All other levels have an orthogonal filter of even length in tree a and the same filter reversed in time in tree b,
``qshift``: the delays differ by half a sample (Kingsbury, ICIP 2000, 2001 and ICIP 2003). There are `qshift_06` (10
taps, 6 of them not 0), `qshift_a` (10), `qshift_b` (14), `qshift_c` (16) and `qshift_d` (18). Variants for rotational
symmetry (``_bp``) have a third filter for diagonal bands and do not reconstruct; they are not included.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.vocabulary import check

BIORTS = {  # analysis and synthesis low-pass filters, from the middle outwards
    "antonini": (
        (0.602949018236360, 0.266864118442875, -0.078223266528990, -0.016864118442875, 0.026748757410810),
        (0.557543526228500, 0.295635881557125, -0.028771763114250, -0.045635881557125),
    ),
    "legall": ((6 / 8, 2 / 8, -1 / 8), (2 / 4, 1 / 4)),
    "near_sym_a": ((12 / 20, 5 / 20, -1 / 20), (170 / 280, 73 / 280, -15 / 280, -3 / 280)),
    "near_sym_b": (
        tuple(tap / 5120 for tap in (2844, 1520, -247, -240, 114, 0, -9)),
        tuple(tap / 1146880 for tap in (641600, 343786, -59280, -63816, 27360, 8208, -2160, -1539, 0, 81)),
    ),
}
"""Half of the symmetric filters of the first level."""

QSHIFTS = {
    "qshift_06": (
        *(0.03516383657149474, 0.0, -0.08832942445107285, 0.23389032060723564, 0.7602723690661257),
        *(0.5875182977235605, 0.0, -0.11430183714424873, 0.0, 0.0),
    ),
    "qshift_a": (
        *(0.05113040528383166, -0.01397537024688884, -0.10983605166597087, 0.26383956105893763, 0.7666284677930372),
        *(0.5636557101270515, 0.0008736226952171, -0.1002312195074762, -0.00168968127252815, -0.00618188189211644),
    ),
    "qshift_b": (
        *(0.00325314276365318, -0.00388321199915849, 0.03466034684485349, -0.03887280126882779, -0.11720388769911527),
        *(0.27529538466888204, 0.7561456438925225, 0.5688104207121227, 0.011866092033797, -0.1067118046866654),
        *(0.0238253847949203, 0.01702522388155399, -0.00543947593727412, -0.00455689562847549),
    ),
    "qshift_c": (
        *(-0.0047616119384559135, -0.0004460227892622852, -0.00007144197327965012, 0.034914612306842195),
        *(-0.03727389579989796, -0.11591145742744076, 0.2763686431330317, 0.7563937651990367, 0.5671344841001330),
        *(0.01463740596447335, -0.11255888425752203, 0.02228926326692271, 0.018498682724156248),
        *(-0.0072026778782583465, -0.0002276522058977718, 0.0024303499451486751),
    ),
    "qshift_d": (
        *(-0.00228412744027053, 0.00120989416307344, -0.01183479451543079, 0.0012834569993444, 0.044365221606617),
        *(-0.05327610880304726, -0.1133058863621428, 0.2809028632221865, 0.7528160380878561, 0.5658080673964587),
        *(0.02455015243366656, -0.12018854471079482, 0.01815649394554645, 0.03152637712208465),
        *(-0.00662879461243006, -0.00257617430660079, 0.001277558653807, 0.00241186945666628),
    ),
}
"""The low-pass filter of tree a."""


class Filters(NamedTuple):
    """Analysis and synthesis filters of one level: symmetric filters, or the filters of tree a."""

    dec_lo: Floats
    dec_hi: Floats
    rec_lo: Floats
    rec_hi: Floats


class Trees(NamedTuple):
    """Filters of the first level, and of tree a at all other levels; tree b has them reversed in time."""

    first: Filters
    later: Filters


@dataclass(frozen=True)
class DualTree:
    """The filters of all levels, by their names in `BIORTS` and `QSHIFTS`. Raises ValueError for other names."""

    biort: str = "near_sym_b"
    qshift: str = "qshift_b"

    def __post_init__(self) -> None:
        check("biort", self.biort, tuple(BIORTS))
        check("qshift", self.qshift, tuple(QSHIFTS))

    @property
    def name(self) -> str:
        return f"{self.biort},{self.qshift}"

    @property
    def filter_bank(self) -> tuple[Floats, ...]:
        """The filters of the first level, then the filters of all other levels."""
        return (*self.first, *self.later)

    @property
    def dec_len(self) -> int:
        """Number of taps of the longest filter."""
        return max(map(len, self.filter_bank))

    @property
    def gain(self) -> float:
        """The largest factor by which a level can multiply the largest sample, in magnitude."""
        return float(max(np.abs(taps).sum() for taps in self.filter_bank) * 2**0.5)

    @cached_property
    def first(self) -> Filters:
        """Filters of the first level, of odd lengths, symmetric about their middle."""
        low, inverse = (np.array([*taps[:0:-1], *taps]) for taps in BIORTS[self.biort])
        low_signs, inverse_signs = ((-1.0) ** (np.arange(len(taps)) - len(taps) // 2) for taps in (low, inverse))
        return Filters(low, inverse * inverse_signs, inverse, low * low_signs)

    @cached_property
    def later(self) -> Filters:
        """Filters of tree a at all other levels, in the order of the samples they multiply; tree b reverses them."""
        low = np.array(QSHIFTS[self.qshift])
        high = low[::-1] * (-1.0) ** np.arange(len(low))
        return Filters(low, high, low[::-1], high[::-1])

    @cached_property
    def squared(self) -> Trees:
        """The squares of all taps, over their sums."""
        return Trees(*(Filters(*(taps**2 / np.sum(taps**2) for taps in own)) for own in (self.first, self.later)))


def as_dual_tree(wavelet: object) -> DualTree:
    """Return the filters for the option ``wavelet``: a `DualTree`, or both names separated by a comma.

    Raises ValueError for unknown names, TypeError for anything else.
    """
    if isinstance(wavelet, DualTree):
        return wavelet
    if not isinstance(wavelet, str):
        raise TypeError(f"wavelet must be names as in {DualTree().name!r} or a DualTree, not {type(wavelet).__name__}")
    biort, comma, qshift = (part.strip() for part in wavelet.partition(","))
    if not comma:
        raise ValueError(f"`wavelet={wavelet!r}` must be the names of two filters, as in {DualTree().name!r}")
    return DualTree(biort, qshift)


def deepest(shape: tuple[int, ...]) -> int:
    """Return the number of levels that leave at least two complex coefficients along each axis."""
    return max(min(shape).bit_length() - 2, 0)


class Moments(NamedTuple):
    """Moments of white noise of unit variance: ``variance`` of either tree, ``covariance`` of both at one place."""

    variance: float
    covariance: float


@lru_cache(maxsize=256)
def noise(tree: DualTree, level: int) -> tuple[Moments, Moments]:
    """Return the `Moments` of the low-pass and high-pass coefficients of a level along one axis, away from the ends.

    The result is exact. From level to level it follows the autocovariance of low-pass coefficients, which both trees
    share, and the covariance between the trees, each at lags about 0 in the middle.
    """
    low, high = (_first_level(taps) for taps in (tree.first.dec_lo, tree.first.dec_hi))
    for _ in range(level - 1):
        low, high = (_next_level(*low, taps) for taps in (tree.later.dec_lo, tree.later.dec_hi))
    low_moments, high_moments = (Moments(*(float(lags[len(lags) // 2]) for lags in both)) for both in (low, high))
    return low_moments, high_moments


def _first_level(taps: Floats) -> tuple[Floats, Floats]:
    """Return both covariances of a filtered sequence, with tree a at its even places, tree b at the odd ones."""
    lags = np.convolve(taps, taps[::-1])
    return _even(lags), _even(np.pad(lags, (0, 2)))  # lag 1 becomes the middle


def _next_level(same: Floats, cross: Floats, taps: Floats) -> tuple[Floats, Floats]:
    """Return both covariances after filtering, with the taps reversed in tree b, and decimation."""
    return (
        _even(np.convolve(same, np.convolve(taps, taps[::-1]))),
        _even(np.convolve(cross, np.convolve(taps, taps))),
    )


def _even(lags: Floats) -> Floats:
    """Return every second lag, including the middle."""
    return lags[len(lags) // 2 % 2 :: 2]


@lru_cache(maxsize=256)
def magnitude_quantile(share: float, correlation: float) -> float:
    """Return the quantile of |a + ib| at ``share``, with a and b normal of unit variance and this correlation.

    Exact: with variances 1 + correlation and 1 - correlation along the main axes, the magnitude is Rayleigh-distributed
    in each direction of the normalised plane.
    """
    width = 1 + correlation * np.cos(np.linspace(0, 2 * np.pi, 256, endpoint=False))
    low, high = 0.0, 40.0
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        below = 1 - np.exp(-(middle**2) / (2 * width)).mean()
        low, high = (middle, high) if below < share else (low, middle)
    return (low + high) / 2

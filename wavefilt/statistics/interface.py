"""What is measured of detail coefficients: the questions that a rule may ask, and the answers that a caller gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from wavefilt.arrays import Array, Counts, Floats

Risk = Callable[..., Array]
"""``risk(square, rank, sum_below, count)``: a function of the k-th smallest squared coefficient (in units of the
noise variance), k, the sum of the k smallest, and their number; see `Statistics.minimise`."""


class Statistics(Protocol):
    """Everything a rule may ask about the details of a group of traces: nothing but mergeable numbers.

    Arrays have one row a level, finest (level 1) first, and one column a group: a group is one trace
    (scope "trace") or all of them (scope "record").
    """

    @property
    def counts(self) -> Counts:
        """Coefficients of one group at each level, shape (levels,)."""

    @property
    def groups(self) -> int:
        """Number of groups."""

    def median_abs(self, levels: Sequence[int]) -> Floats:
        """Median of |d| at the levels asked for, shape (len(levels), groups); the mean of the middle two if even."""

    def quantile_abs(self, levels: Sequence[int], share: float) -> Floats:
        """The quantile of |d| below which this share of them lies, shape (len(levels), groups).

        Of n magnitudes in order, counted from 0, that of rank ``share`` (n - 1), linear between the two nearest.
        """

    def mean_square(self) -> Floats:
        """Mean of |d|², shape (levels, groups)."""

    def exceeding(self, thresholds: Floats) -> Counts:
        """How many |d| are at least the threshold (levels, groups) of their level and group."""

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        """|d| of a level counted by bins of each group's width (groups,), the last for all beyond; (groups, bins).

        All of a group are in the first bin where its width is 0.
        """

    def minimise(self, risk: Risk, sigma: Floats, inverse: bool = False) -> Floats:
        """The |d| of the level, or 0, at which ``risk`` is least, shape (levels, groups); the smallest such value.

        For 0 the risk sees square, rank and sum of 0. ``sigma`` (levels, groups) scales the squares the risk sees;
        where it is 0 the result is 0. With ``inverse`` the risk takes one more argument: the sum of 1/|d| of the larger
        ones, in units of 1/sigma.
        """


@dataclass(frozen=True)
class Measured:
    """Noise, thresholds and mean squares (None unless asked for) as arrays (levels, traces), finest level first."""

    sigma: Floats
    thresholds: Floats
    power: Floats | None

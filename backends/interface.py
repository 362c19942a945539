"""What a backend is: two verbs and the statistics. Rules and public functions know nothing else of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.shrinkage import Shrinkage
from wavefilt.vocabulary import Scope

Risk = Callable[[NDArray[Any], NDArray[Any], NDArray[Any], int], NDArray[Any]]
"""``risk(square, rank, sum_below, count)``: a function of the k-th smallest squared coefficient (in units of the
noise variance), k, the sum of the k smallest, and their number; see `Statistics.minimise`."""


@dataclass(frozen=True)
class Pyramid:
    """Coefficients of a batch of traces, opaque to everything but the backend that made them.

    ``coefficients`` is (cA_n, cD_n, ..., cD_1), arrays of the backend's kind of shape (traces, length of the
    level); ``samples`` is the length of a trace, so that reconstruction returns exactly that many.
    """

    coefficients: tuple[Any, ...]
    wavelet: pywt.Wavelet
    mode: str
    samples: int

    @property
    def level(self) -> int:
        return len(self.coefficients) - 1


class Statistics(Protocol):
    """Everything a rule may ask about the details of a group of traces: nothing but mergeable numbers.

    Arrays have one row a level, finest (level 1) first, and one column a group: a group is one trace
    (scope "trace") or all of them (scope "record").
    """

    @property
    def counts(self) -> NDArray[np.int64]:
        """Coefficients of one group at each level, shape (levels,)."""

    @property
    def groups(self) -> int:
        """Number of groups."""

    def median_abs(self, levels: Sequence[int]) -> NDArray[np.float64]:
        """Median of |d| at the levels asked for, shape (len(levels), groups); the mean of the middle two if even."""

    def mean_square(self) -> NDArray[np.float64]:
        """Mean of |d|², shape (levels, groups)."""

    def minimise(self, risk: Risk, sigma: NDArray[np.float64]) -> NDArray[np.float64]:
        """The |d| of the level, or 0, at which ``risk`` is least, shape (levels, groups); the smallest such value.

        For 0 the risk sees square, rank and sum of 0. ``sigma`` (levels, groups) scales the squares the risk sees;
        where it is 0 the result is 0.
        """


@dataclass(frozen=True)
class Measured:
    """Noise, thresholds and mean squares (None unless asked for) as arrays (levels, traces), finest level first."""

    sigma: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    power: NDArray[np.float64] | None


class Backend(Protocol):
    """Transforms of batches: ``x`` has shape (traces, samples), one of the dtypes in ``dtypes``, C order."""

    @property
    def name(self) -> str:
        """Name in the registry."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """NumPy names of the dtypes it computes in."""

    def describe(self) -> str:
        """One line for `wavefilt backends`: versions, device."""

    def peak(self, x: Any) -> float:
        """Largest |x|: NaN if there is a NaN, else infinite if there is an infinity; 0 for no samples."""

    def decompose(self, x: Any, wavelet: pywt.Wavelet, mode: str, level: int) -> Pyramid:
        """Wavelet coefficients of every row to the given level, with PyWavelets' lengths and values."""

    def statistics(self, pyramids: Sequence[Pyramid], scope: Scope) -> Statistics:
        """Statistics of one pyramid by trace, or of several pooled as one record."""

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage | None = None) -> Any:
        """The rows again, shape (traces, pyramid.samples), their details shrunk on the way."""


class DeviceBackend(Backend, Protocol):
    """A backend with memory of its own: it denoises whole batches there, and takes arrays that live there."""

    def take(self, x: Any, axis: int) -> Taken:
        """As `wavefilt.arrays.take`, for an array on the device."""

    def to_host(self, x: Any) -> NDArray[Any]:
        """A copy in host memory."""

    def to_device(self, rows: NDArray[Any], like: Any) -> Any:
        """Host rows as an array of the library and on the device of ``like``."""

    def denoise(self, x: Any, method: Any, level: int, report: bool) -> tuple[Any, Measured | None] | None:
        """All five steps for rows (traces, samples), in host or device memory, and what was measured on request.

        None if a sample is not finite: gaps are for the caller to cut out.
        """


class Taken(Protocol):
    """Rows taken in, and the way back to the kind of array they came as."""

    @property
    def rows(self) -> Any:
        """Shape (traces, samples), C-contiguous, in the dtype of computation."""

    def restore(self, rows: Any) -> Any:
        """``rows`` as an array of the original's shape, floating dtype and library."""

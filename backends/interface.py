"""The interface of backends: two transforms and the statistics, all that rules and public functions use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wavefilt.arrays import Array, DType, Traces, equal_runs
from wavefilt.statistics.mergeable import Summation
from wavefilt.statistics.reference import Measured, Statistics
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.vocabulary import Scope

if TYPE_CHECKING:
    from wavefilt.options import Options

WHOLE_BYTES_FACTOR = 11.0
"""`Backend.whole_bytes_factor` of the backend that takes most."""


class Backend(Protocol):
    """Transforms of batches: ``x`` has shape (traces, samples) or (panels, rows, columns), in C order.

    A class that derives from this one has what most backends in host memory have in common: factors of memory as
    measured by `tests/outofcore/test_streaming.py`, and NumPy's sums.
    """

    @property
    def name(self) -> str:
        """Name in the registry."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """NumPy names of the dtypes it computes in."""

    @property
    def transforms(self) -> tuple[str, ...]:
        """Names of the transforms it computes; all others run on the reference backend."""

    @property
    def device(self) -> bool:
        """True for a backend that computes in memory of its own: a `DeviceBackend`."""
        return False

    @property
    def whole_bytes_factor(self) -> float:
        """Bytes of host memory for each byte of samples of whole traces, whose gaps take more than anything else."""
        return WHOLE_BYTES_FACTOR

    @property
    def chunk_bytes_factor(self) -> float | None:
        """Bytes of host memory for each byte of a chunk: two buffers, coefficients, two results, and its own memory.

        None if it computes no chunks in host memory.
        """
        return 7.5

    @property
    def for_many_shapes(self) -> Backend:
        """The backend for segments of many lengths; another one if this one prepares for each length."""
        return self

    @property
    def summation(self) -> Summation:
        """How it adds up squares of coefficients in host memory."""
        return Summation()

    def release(self) -> None:
        """Give up host memory kept for later calls."""
        return

    def describe(self) -> str:
        """One line for `wavefilt backends`: versions, device."""

    def peak(self, x: Any) -> float:
        """Return the largest |x|, infinite if there is an infinity, and 0 for no samples.

        NaN if traces may have to be divided: there is a NaN, or a run of equal samples (`wavefilt.arrays.equal_runs`).
        """
        if not x.size:
            return 0.0
        return float(np.nan if equal_runs(x) is not None else np.max(np.abs(x)))

    def peak_and_pyramid(self, x: Any, analysis: Analysis) -> tuple[float, Pyramid | None]:
        """Return `peak`, and `decompose` if both are found in one pass over finite samples, else None."""
        return self.peak(x), None

    def decompose(self, x: Any, analysis: Analysis) -> Pyramid:
        """The coefficients of a batch, with the lengths and values of `Transform.analyse`."""

    def statistics(self, pyramids: Sequence[Pyramid], scope: Scope) -> Statistics:
        """Statistics of one pyramid by trace or panel, or of several pooled as one record."""

    def shrunk(self, pyramid: Pyramid, shrinkage: Shrinkage) -> Pyramid:
        """The coefficients shrunk, to be changed before they are reconstructed."""
        return pyramid.shrunk(shrinkage)

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage | None = None, out: Array | None = None) -> Any:
        """The samples again, shape ``(batch, *pyramid.shape)``, the details shrunk on the way.

        They may be in ``out``, a C-contiguous array of their shape and dtype, or elsewhere all the same.
        """

    def denoise(
        self, x: Any, options: Options, level: int, report: bool, out: Array | None = None, *, wait: bool = True
    ) -> tuple[Any, Measured | None] | None:
        """Denoise a batch ``(batch, *shape)`` in one go, if this backend can; with measurements if ``report``.

        The result is in ``out`` if that is given, contiguous memory of the kind of ``x`` that is none of it. Without
        ``wait`` an array on a device may be returned before it is computed, whatever its samples are.
        Return None where rows have to be denoised step by step: samples that are not finite or in runs of equal ones,
        which the caller cuts out, dead traces, rows that stay as they are, errors, options that the backend does not
        compute so, or a ``report`` without measurements.
        """
        return None

    def result(self, shape: tuple[int, ...], dtype: DType) -> Array:
        """Host memory for the samples of many calls of `reconstruct`."""
        return np.empty(shape, dtype)


def accelerates(backend: Backend, dtype: str, analysis: Analysis) -> bool:
    """Whether a backend computes this transform, in these modes, of samples of this dtype."""
    known = dtype in backend.dtypes and analysis.transform.name in backend.transforms
    return known and analysis.builtin_modes


class DeviceBackend(Backend, Protocol):
    """A backend with memory of its own: it denoises whole batches there, and takes arrays that live there."""

    def take(self, x: Any, *axes: int) -> Traces:
        """As `wavefilt.arrays.take`, for an array on the device."""

    def to_host(self, x: Any) -> Array:
        """A copy in host memory."""

    def to_device(self, rows: Array, like: Any) -> Any:
        """Host rows as an array of the library and on the device of ``like``."""

    def at_once(self, x: Any, options: Options, axes: tuple[int, ...], wait: bool) -> Any:
        """An array on the device denoised as its kind, if that needs neither `take` nor the host; else None."""

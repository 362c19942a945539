"""What a backend is: two verbs and the statistics. Rules and public functions know nothing else of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.statistics.interface import Measured, Statistics
from wavefilt.statistics.summation import PairwiseSums, Summation
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.vocabulary import Scope
from wavefilt.wavelets import modwt_boundary

WHOLE_BYTES_FACTOR = 11.0
"""`Backend.whole_bytes_factor` of the backend that takes most."""


@dataclass(frozen=True)
class Pyramid:
    """Coefficients of a batch of traces, opaque to everything but the backend that made them.

    ``coefficients`` is (cA_n, cD_n, ..., cD_1), arrays of the backend's kind of shape (traces, length of the
    level); ``samples`` is the length of a trace, so that reconstruction returns exactly that many. ``transform`` is
    "dwt" or "modwt", whose taps lie 2^start_level apart at the first level.
    """

    coefficients: tuple[Any, ...]
    wavelet: pywt.Wavelet
    mode: str
    samples: int
    transform: str = "dwt"
    start_level: int = 0

    @property
    def level(self) -> int:
        return len(self.coefficients) - 1

    def holding(self, coefficients: tuple[Any, ...]) -> Pyramid:
        """The same with other coefficients."""
        return Pyramid(coefficients, self.wavelet, self.mode, self.samples, self.transform, self.start_level)

    @property
    def details(self) -> tuple[Any, ...]:
        """What rules count, finest level first: of a MODWT the details of the samples, not those in the margins."""
        finest_first = self.coefficients[:0:-1]
        if self.transform == "dwt" or self.mode in modwt_boundary.ROUND:
            return finest_first
        starts = (
            modwt_boundary.kept(self.wavelet.dec_len, self.mode, j + 1, self.start_level)[0] for j in range(self.level)
        )
        return tuple(d[:, a : a + self.samples] for d, a in zip(finest_first, starts, strict=True))


@dataclass(frozen=True)
class Pyramid2:
    """Coefficients of a batch of sections, transformed along both of their axes.

    ``coefficients`` is (cA_n, cH_n, cV_n, cD_n, ..., cH_1, cV_1, cD_1), arrays of shape (sections, rows, columns) of
    the level, C-contiguous; ``wavelets`` and ``modes`` are for rows and columns, that is along axes 1 and 2 of these,
    and ``shape`` that of a section.
    """

    coefficients: tuple[Any, ...]
    wavelets: tuple[pywt.Wavelet, pywt.Wavelet]
    modes: tuple[str, str]
    shape: tuple[int, int]

    @property
    def level(self) -> int:
        return (len(self.coefficients) - 1) // 3

    @property
    def details(self) -> tuple[Any, ...]:
        """What rules count: rows of coefficients, one a section, of cD_1, cV_1, cH_1, cD_2, ...

        To a rule each band is a level of its own. The finest is cD_1, by which noise that is one for all is known.
        """
        return tuple(c.reshape(len(c), -1) for c in self.coefficients[:0:-1])

    def shrunk(self, shrinkage: Shrinkage) -> Pyramid2:
        """The same with the details shrunk, by thresholds (bands, sections) in the order of `details`."""
        shapes = [c.shape for c in self.coefficients[1:]]
        smooth, *rows = shrinkage.of_all((self.coefficients[0], *self.details[::-1]))
        details = (row.reshape(shape) for row, shape in zip(rows, shapes, strict=True))
        return Pyramid2((smooth, *details), self.wavelets, self.modes, self.shape)


class Backend(Protocol):
    """Transforms of batches: ``x`` has shape (traces, samples), one of the dtypes in ``dtypes``, C order.

    A class that derives from this one has what most backends in host memory have in common: factors of memory as
    measured by `benchmarks/throughput/streaming.py` and `tests/outofcore/test_streaming.py`, and NumPy's sums.
    """

    @property
    def name(self) -> str:
        """Name in the registry."""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """NumPy names of the dtypes it computes in."""

    @property
    def device(self) -> bool:
        """Whether it computes in memory of its own: then it is a `DeviceBackend`."""
        return False

    @property
    def whole_bytes_factor(self) -> float:
        """Bytes of host memory for each byte of samples of whole traces, whose gaps take more than anything else."""
        return WHOLE_BYTES_FACTOR

    @property
    def chunk_bytes_factor(self) -> float | None:
        """The same of chunks: two buffers, coefficients, a result and the one before it, and the backend's own.

        None if it computes no chunks in host memory.
        """
        return 7.5

    @property
    def summation(self) -> Summation:
        """How it adds up squares of coefficients in host memory."""
        return PairwiseSums()

    def release(self) -> None:
        """Give up host memory kept for later calls."""

    def to_host(self, x: Any) -> NDArray[Any]:
        """Coefficients of a pyramid in host memory."""
        return np.asarray(x)

    def describe(self) -> str:
        """One line for `wavefilt backends`: versions, device."""

    def peak(self, x: Any) -> float:
        """Largest |x|: NaN if there is a NaN, else infinite if there is an infinity; 0 for no samples."""

    def decompose(
        self, x: Any, wavelet: pywt.Wavelet, mode: str, level: int, transform: str = "dwt", start_level: int = 0
    ) -> Pyramid:
        """Wavelet coefficients of every row to the given level, with PyWavelets' lengths and values.

        ``transform="modwt"`` gives those of `wavefilt.modwt`, whose first ``start_level`` levels are skipped. Raises
        ValueError for a transform that the backend does not have.
        """

    def statistics(self, pyramids: Sequence[Pyramid | Pyramid2], scope: Scope) -> Statistics:
        """Statistics of one pyramid by trace, or of several pooled as one record."""

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage | None = None) -> Any:
        """The rows again, shape (traces, pyramid.samples), their details shrunk on the way."""


class Backend2(Backend, Protocol):
    """A backend that transforms two axes as well: ``x`` has shape (sections, rows, columns)."""

    def decompose2(
        self, x: Any, wavelets: tuple[pywt.Wavelet, pywt.Wavelet], modes: tuple[str, str], level: int
    ) -> Pyramid2:
        """Coefficients of every section to the given level, with the lengths and values of `pywt.wavedec2`.

        `Backend.statistics` takes such pyramids too.
        """

    def reconstruct2(self, pyramid: Pyramid2, shrinkage: Shrinkage | None = None) -> Any:
        """The sections again, shape (sections, *pyramid.shape), their details shrunk on the way."""


class DeviceBackend(Backend, Protocol):
    """A backend with memory of its own: it denoises whole batches there, and takes arrays that live there."""

    def take(self, x: Any, *axes: int) -> Taken:
        """As `wavefilt.arrays.take`, for an array on the device."""

    def to_device(self, rows: NDArray[Any], like: Any) -> Any:
        """Host rows as an array of the library and on the device of ``like``."""

    def denoise(self, x: Any, method: Any, level: int, report: bool) -> tuple[Any, Measured | None] | None:
        """All five steps for rows (traces, samples), in host or device memory, and what was measured on request.

        None if a sample is not finite: gaps are for the caller to cut out.
        """

    def spun(self, x: Any, method: Any, level: int) -> Any:
        """The mean of ``method.spins`` denoises of shifted rows of an array on the device; None as `denoise`."""

    def resident(self, shape: tuple[int, int], dtype: Any) -> Any:
        """Room for rows on the device. Raises MemoryError."""

    def host_buffer(self, size: int, dtype: Any) -> NDArray[Any]:
        """Host memory that the device reads and writes without a copy in between."""

    def send(self, samples: NDArray[Any], resident: Any, place: int) -> None:
        """Contiguous samples to a place, counted in samples, of rows on the device."""

    def fetch(self, resident: Any, place: int, out: NDArray[Any]) -> None:
        """Samples from a place of rows on the device into a contiguous array."""


class Taken(Protocol):
    """Rows taken in, and the way back to the kind of array they came as."""

    @property
    def rows(self) -> Any:
        """Shape (traces, samples) or (sections, rows, columns), C-contiguous, in the dtype of computation."""

    def restore(self, rows: Any) -> Any:
        """``rows`` as an array of the original's shape, floating dtype and library."""

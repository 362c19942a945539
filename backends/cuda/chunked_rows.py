"""Rows too long for the device's memory, and batches that share thresholds, chunk by chunk."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt import engine
from wavefilt.arrays import Array
from wavefilt.backends.cuda import trend
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceArray, Kernel
from wavefilt.backends.cuda.runtime.memory import OutOfMemory, guarded
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.chunks import Chunk
from wavefilt.options import Options
from wavefilt.statistics.mergeable import Counted, Details, Interval, State
from wavefilt.statistics.reference import Measured
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid

if TYPE_CHECKING:
    from wavefilt.backends.cuda.backend import Cuda, CudaPyramid

ANY = Build("", 0)
"""These kernels are for any dtype and number of threads."""
SHARE = 10
"""Free memory over the samples of a chunk: plans for chunks of two lengths take four times the samples each."""
LEAST = 1 << 18
"""Bytes of samples in a chunk below which smaller chunks are not tried."""


def denoise(
    backend: Cuda, x: Array, out: Array, options: Options, level: int, report: bool
) -> tuple[Array, Measured | None] | None:
    """Rows that do not fit in the device's memory denoised into ``out`` as `Cuda.denoise` does.

    Chunks are sized for the free memory, and smaller if that is not enough. Samples on the device stay there; details
    are copied to the host only for rules that sort them or count exceedances and histograms.
    Raises OutOfMemory if even small chunks do not fit.
    """
    rows = _DeviceRows(x, out, backend) if interop.on_device(x) else HostRows(x, out, backend)

    def attempt(limit: int) -> Measured | None:
        return engine.denoise_chunks(rows, options, level, limit, report)

    limit = min(_free(backend) // SHARE, rows.nbytes // 2)
    while True:
        try:
            measured = guarded(partial(attempt, limit), backend.clear)
            return None if measured is None else (out, measured if report else None)
        except OutOfMemory:
            limit //= 2
            if limit < LEAST:
                raise


def _free(backend: Cuda) -> int:
    """Free everything kept for later calls, and return the free bytes of device memory."""
    backend.clear()
    context = cuda.current_context()
    if not SIMULATED:
        context.deallocations.clear()
    return int(min(context.get_memory_info().free, 1 << 62))  # infinite where simulated


class DeviceTally:
    """`wavefilt.statistics.mergeable.Tally` of details on the device; every step is waited for."""

    def __init__(self, state: State, counting: tuple[int, int]) -> None:
        self._state, self._counting = state, counting
        self._tables = [cuda.to_device(np.zeros(interval.bins, np.int64)) for _, _, interval in state.places]
        levels = range(len(state.counts) if state.sums_squares else 0)
        self._sums = [cuda.to_device(np.zeros(counting[0] * counting[1])) for _ in levels]
        self._stream = cuda.stream()

    def add(self, details: Details) -> None:
        for (level, _, interval), table in zip(self._state.places, self._tables, strict=True):
            for _, part in details[level - 1]:
                count(part, interval, table, self._counting, self._stream)
        for sums, parts in zip(self._sums, details, strict=False):
            for _, part in parts:
                add_squares()[(*self._counting, self._stream)](part, sums)
                self._stream.synchronize()

    def result(self) -> Counted:
        sums = np.array([sums.copy_to_host().sum() for sums in self._sums])
        return Counted([table.copy_to_host() for table in self._tables], sums.reshape(-1, len(self._state.counts), 1))


def count(details: Array, interval: Interval, table: Array, counting: tuple[int, int], stream: Any) -> None:
    """Count magnitudes inside the interval in its table."""
    keys = np.dtype(f"i{details.dtype.itemsize}")
    limits = np.iinfo(keys).max, interval.low, interval.high, interval.shift
    count_bits()[(*counting, stream)](details.view(keys), *limits, table)
    stream.synchronize()


@cache
def count_bits() -> Kernel:
    """Kernel that counts magnitudes from low to high, given by their bits, by those above the last ``shift``."""

    @kernel(ANY)
    def count_kernel(keys, sign_off, low, high, shift, counts):
        rows, n = keys.shape
        for row in range(rows):
            for i in range(cuda.grid(1), n, cuda.gridsize(1)):
                bits = keys[row, i] & sign_off
                if low <= bits <= high:
                    cuda.atomic.add(counts, (bits - low) >> shift, 1)

    return count_kernel


@cache
def add_squares() -> Kernel:
    """Kernel that adds squares to a sum for each thread, always in the same order."""

    @kernel(ANY)
    def add_kernel(details, sums):
        rows, n = details.shape
        thread, total = cuda.grid(1), 0.0
        for row in range(rows):
            for i in range(thread, n, cuda.gridsize(1)):
                total += np.float64(details[row, i]) * np.float64(details[row, i])
        sums[thread] += total

    return add_kernel


class HostRows(engine.Rows):
    """Rows in host memory, whose coefficients stay on the device."""

    backend: Cuda

    def coefficients(self, pyramid: CudaPyramid) -> tuple[DeviceArray, ...]:  # type: ignore[override]
        pyramid.stream.synchronize()
        return pyramid.plan.coefficients()

    def tally(self, state: State) -> DeviceTally:
        return DeviceTally(state, self.backend.options.counting)

    def finite(self, coefficients: Array) -> bool:
        beyond = Interval.not_finite(self.dtype)
        table = cuda.to_device(np.zeros(beyond.bins, np.int64))
        count(coefficients, beyond, table, self.backend.options.counting, cuda.stream())
        return not table.copy_to_host().any()

    def _with_trends(self, chunk: Chunk, x: Array, out: Array, operation: np.ufunc) -> Array:
        if not interop.on_device(out):
            return super()._with_trends(chunk, x, out, operation)
        source, target, begin = interop.flat(x), interop.flat(out), 0
        for row in range(chunk.rows.start, chunk.rows.stop):
            for part in chunk.parts:
                own = slice(begin, begin + part.last - part.first)
                parts = source[own], target[own]
                restoring, options = operation is np.add, self.backend.options
                stream = interop.current_stream(x)
                trend.change_part(self.trends[row], *parts, part.first, restoring, options, stream)
                begin = own.stop
        return out

    def to_host(self, details: DeviceArray) -> Array:  # type: ignore[override]
        return np.asarray(interop.host_rows(details, cuda.stream()))


class _DeviceRows(HostRows):
    """Rows on the device, of any library; chunks are views of them, except the joined ends of a row."""

    def __init__(self, x: Array, out: Array, backend: Cuda) -> None:
        self.x, self.out, self.backend, self.shape = x, out, backend, tuple(x.shape)
        self.trends = {}
        self.dtype, self._stream = np.dtype(interop.dtype_name(x)), interop.current_stream(x)
        self.itemsize = self.dtype.itemsize

    def take(self, chunk: Chunk) -> Array:
        parts = [self.x[chunk.rows, part.first : part.last] for part in chunk.parts]
        if len(parts) == 1:
            return parts[0]
        joined = interop.empty((1, chunk.length), self.dtype, self.x)
        target, begin = interop.flat(joined), 0
        for part in map(interop.flat, parts):
            target[begin : begin + part.size].copy_to_device(part, stream=self._stream)
            begin += part.size
        return joined

    def decompose(self, chunk: Chunk, job: engine.Job) -> Pyramid:
        x = self.take(chunk)
        if job.options.trend is not None:
            if chunk.rows.start not in self.trends:
                self._fit(chunk, interop.to_host(x), job.options.trend)
            x = self._with_trends(chunk, x, interop.empty(x.shape, self.dtype, self.x), np.subtract)
        return self.backend.decompose(x, job.analysis)

    def read(self, row: int, first: int, last: int) -> Array:
        return interop.to_host(self.x[row, first:last])

    def put(self, chunk: Chunk, y: Array) -> None:
        for own, place in chunk.kept():
            self._copy(y[:, own], self.out[chunk.rows, place])

    def leave(self, row: int, written: bool) -> None:
        self._copy(self.x[row], self.out[row])

    def _copy(self, source: Array, target: Array) -> None:
        """Copy contiguous samples: parts of one row, or whole rows."""
        interop.flat(target).copy_to_device(interop.flat(source), stream=self._stream)

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage) -> Array:
        return self.backend.reconstruct(pyramid, shrinkage, like=self.x)

"""Rows too long for the device's memory, and batches that share thresholds: chunk by chunk through it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wavefilt import backends
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.memory import OutOfMemory, guarded
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.backends.interface import Pyramid
from wavefilt.chunking import passes
from wavefilt.chunking.chunks import Chunk
from wavefilt.method import Method
from wavefilt.statistics.chunked import Tally
from wavefilt.statistics.interface import Measured, Statistics
from wavefilt.statistics.radix_select import Interval
from wavefilt.thresholding.shrinkage import Shrinkage

if TYPE_CHECKING:
    from wavefilt.backends.cuda import Cuda

SHARE = 10
"""Parts of the free memory of which a chunk's samples are one: plans for chunks of two lengths take four each."""
LEAST = 1 << 18
"""Bytes of samples in a chunk, below which there is no use in trying a smaller one."""
BLOCKS, THREADS = 256, 256


def denoise(
    backend: Cuda, x: Any, out: Any, method: Method, level: int, report: bool
) -> tuple[Any, Measured | None] | None:
    """Rows that do not fit in the device's memory denoised into ``out`` as `Cuda.denoise` does.

    Chunks are made for the memory free now, and smaller if that was not enough. Samples on the device stay there;
    details come to the host for rule "sure" alone, which sorts them.
    Raises OutOfMemory if even small chunks do not fit.
    """
    rows = _DeviceRows(x, out, backend) if interop.on_device(x) else HostRows(x, out, backend)

    def attempt(limit: int) -> Measured | None:
        return passes.denoise(rows, method, level, limit, report)

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
    """Bytes of device memory that are free when nothing is kept for later calls."""
    backend.clear()
    context = cuda.current_context()
    if not SIMULATED:
        context.deallocations.clear()
    return int(min(context.get_memory_info().free, 1 << 62))  # infinite where simulated


class DeviceTally:
    """`wavefilt.statistics.chunked.Tally` of details on the device; every step is waited for."""

    def __init__(self, dtype: np.dtype[Any], intervals: Sequence[Interval], sums: int) -> None:
        self._keys, self._intervals = np.dtype(f"i{dtype.itemsize}"), intervals
        self._counts = [cuda.to_device(np.zeros(interval.bins, np.int64)) for interval in intervals]
        self._sums = [cuda.to_device(np.zeros(BLOCKS * THREADS)) for _ in range(sums)]
        self._stream = cuda.stream()

    def count(self, i: int, details: Any) -> None:
        interval = self._intervals[i]
        sign_off = np.iinfo(self._keys).max
        keys, counts = details.view(self._keys), self._counts[i]
        self._launch("count", keys, sign_off, interval.low, interval.high, interval.shift, counts)

    def add_squares(self, i: int, details: Any) -> None:
        self._launch("add_squares", details, self._sums[i])

    def _launch(self, name: str, *arguments: Any) -> None:
        _kernels()[name][BLOCKS, THREADS, self._stream](*arguments)
        self._stream.synchronize()

    def counts(self) -> list[NDArray[np.int64]]:
        return [counts.copy_to_host() for counts in self._counts]

    def sums(self) -> NDArray[np.float64]:
        return np.array([sums.copy_to_host().sum() for sums in self._sums])


@cache
def _kernels() -> dict[str, Any]:
    @kernel()
    def count(keys, sign_off, low, high, shift, counts):
        """Count magnitudes from low to high, given by their bits, by those above the last ``shift``."""
        rows, n = keys.shape
        for row in range(rows):
            for i in range(cuda.grid(1), n, cuda.gridsize(1)):
                bits = keys[row, i] & sign_off
                if low <= bits <= high:
                    cuda.atomic.add(counts, (bits - low) >> shift, 1)

    @kernel()
    def add_squares(details, sums):
        """Add squares to a sum for each thread, always in the same order."""
        rows, n = details.shape
        thread, total = cuda.grid(1), 0.0
        for row in range(rows):
            for i in range(thread, n, cuda.gridsize(1)):
                total += np.float64(details[row, i]) * np.float64(details[row, i])
        sums[thread] += total

    return {"count": count, "add_squares": add_squares}


class HostRows(passes.Rows):
    """Rows in host memory, whose coefficients stay on the device."""

    tally: type[Tally] = DeviceTally

    def coefficients(self, pyramid: Any) -> tuple[Any, ...]:
        pyramid.stream.synchronize()
        return tuple(pyramid.plan.coefficients())

    def to_host(self, details: Any) -> NDArray[Any]:
        return np.asarray(interop.host_rows(details, cuda.stream()))

    def pooled(self, details: NDArray[Any], like: Method) -> Statistics:
        """Sorted on the host: the device has no room."""
        host = backends.choose("auto", self.dtype.name, details.shape, like.bank.dec_len)
        pyramid = Pyramid((details[:, :0], details), like.bank, like.mode, 2 * details.size)
        return host.statistics([pyramid], "record")


class _DeviceRows(HostRows):
    """Rows on the device, of any library; chunks are views of them, but for the ends of a row, which are joined."""

    def __init__(self, x: Any, out: Any, backend: Any) -> None:
        self.x, self.out, self.backend = x, out, backend
        self.shape = tuple(x.shape)
        self.dtype = np.dtype(str(x.dtype).rpartition(".")[2])
        self.itemsize = self.dtype.itemsize
        self._stream = interop.current_stream(x)

    def take(self, chunk: Chunk) -> Any:
        parts = [self.x[chunk.rows, part.first : part.last] for part in chunk.parts]
        if len(parts) == 1:
            return parts[0]
        joined = interop.empty((1, chunk.length), self.dtype, self.x)
        target, begin = interop.flat(joined), 0
        for part in map(interop.flat, parts):
            target[begin : begin + part.size].copy_to_device(part, stream=self._stream)
            begin += part.size
        return joined

    def put(self, chunk: Chunk, y: Any) -> None:
        for own, place in chunk.kept():
            self._copy(y[:, own], self.out[chunk.rows, place])

    def leave(self, row: int) -> None:
        self._copy(self.x[row], self.out[row])

    def _copy(self, source: Any, target: Any) -> None:
        """Contiguous samples to others: parts of one row, or whole ones."""
        interop.flat(target).copy_to_device(interop.flat(source), stream=self._stream)

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage) -> Any:
        return self.backend.reconstruct(pyramid, shrinkage, self.x)  # type: ignore[call-arg]

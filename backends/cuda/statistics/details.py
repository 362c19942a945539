"""Statistics of details in device memory.

Medians and mean squares come from `Selection`. For rules that count, kernels count details above a threshold and by
size. For rules that sort all details (SURE), the details are copied to host memory, and the CPU backend sorts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.backends.cuda.dwt.tiling import ROWS, grid
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, Kernel, Stream
from wavefilt.backends.cuda.runtime.memory import retried
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.statistics.reference import Risk, around, between

from .layout import MEDIAN, DetailLayout, amounts
from .selection import Selection


@cache
def counting(build: Build, bins: int) -> Kernel:
    """Kernel that counts the |d| of a band in bins: the integer part of |d| times the scale of its group.

    The last bin also counts all larger values. With one bin, it counts the |d| that are at least the threshold of the
    group. ``step`` is 1 if each row is a group, else 0.
    """
    threads = build.threads

    @kernel(build, bins)
    def count_details(details, band, numbers, step, counts):
        begin, stride, length, rows = band
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        own = cuda.shared.array(bins, np.int32)
        for i in range(cuda.threadIdx.x, bins, threads):
            own[i] = 0
        cuda.syncthreads()
        number, found = numbers[row * step], np.int32(0)
        for i in range(cuda.blockIdx.x * threads + cuda.threadIdx.x, length, cuda.gridDim.x * threads):
            magnitude = abs(np.float64(details[begin + row * stride + i]))
            if bins > 1:
                place = magnitude * number
                cuda.atomic.add(own, np.int32(place) if place < bins - 1 else bins - 1, 1)
            elif magnitude >= number:
                found = np.int32(found + 1)
        if found:
            cuda.atomic.add(own, 0, found)
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, bins, threads):
            if own[i]:
                cuda.atomic.add(counts, row * step * bins + i, np.int64(own[i]))

    return count_details


class CudaStatistics:
    """`Statistics` of pyramids on the device, measured when they are asked for.

    ``owners`` are kept in use as long as these: the pyramids, and so the memory of their layouts. ``clear`` frees what
    is not in use. Raises OutOfMemory where that is not enough.
    """

    def __init__(
        self,
        layouts: Sequence[DetailLayout],
        options: KernelOptions,
        pooled: bool,
        stream: Stream,
        owners: object = None,
        clear: Callable[[], None] = lambda: None,
    ) -> None:
        self._layouts, self._options, self._pooled = sorted(layouts, key=len, reverse=True), options, pooled
        self._stream, self._owners, self.clear = stream, owners, clear

    @property
    def counts(self) -> Counts:
        return amounts(self._layouts, len(self._layouts[0]), self._pooled)

    @property
    def groups(self) -> int:
        return 1 if self._pooled else self._layouts[0].rows

    def quantile_abs(self, levels: Sequence[int], share: float = MEDIAN) -> Floats:
        depth = max(levels)
        found = self._searched(depth, False, share)
        pairs = found.middle.copy_to_host().reshape(depth, self.groups, 2)
        return np.array([between(pairs[i - 1], around(int(self.counts[i - 1]), share)[1]) for i in levels])

    def mean_square(self) -> Floats:
        depth = len(self._layouts[0])
        energy = self._searched(depth, True).energy.copy_to_host()
        return np.asarray(energy.reshape(depth, self.groups) / self.counts[:, None])

    @retried
    def _searched(self, depth: int, energy: bool, share: float = MEDIAN) -> Selection:
        """Return middle values of ``depth`` bands, or their sums of squares, once they are computed."""
        found = Selection(self._layouts, self._options, depth, self._pooled, share)
        found.run(0 if energy else depth, energy, self._stream)
        self._stream.synchronize()
        return found

    def exceeding(self, thresholds: Floats) -> Counts:
        return np.array([self._counted(i, own, 1) for i, own in enumerate(thresholds)])[..., 0]

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        scales = np.divide(1, widths, out=np.zeros_like(widths), where=widths > 0)
        return self._counted(level - 1, scales, bins)

    @retried
    def _counted(self, i: int, numbers: Floats, bins: int) -> Counts:
        """Return the counts (groups, bins) of the i-th band's details, by the kernel `counting`."""
        count = counting(self._options.build(self._layouts[0].array.dtype.name), bins)
        counts, threads = cuda.to_device(np.zeros(self.groups * bins, np.int64)), self._options.threads
        on_device = cuda.to_device(np.ascontiguousarray(numbers, np.float64), stream=self._stream)
        for layout in (layout for layout in self._layouts if len(layout) > i):
            band = layout.bands[i]
            blocks = max(min(-(-band.length // (16 * threads)), 512), 1)  # each thread has several to count
            launch = count[grid(blocks, band.rows), threads, self._stream]
            launch(layout.array, band, on_device, int(not self._pooled), counts)
        found = counts.copy_to_host(stream=self._stream)
        self._stream.synchronize()
        return np.asarray(found.reshape(self.groups, bins))

    def minimise(self, risk: Risk, sigma: Floats, inverse: bool = False) -> Floats:
        from wavefilt.backends.numba_cpu.selection import NumbaStatistics

        found = [list[Array]() for _ in self._layouts[0].bands]
        for layout in self._layouts:
            host = layout.array.copy_to_host(stream=self._stream)
            self._stream.synchronize()
            for own, band in zip(found, layout.bands, strict=False):
                own.append(band.of(host))
        return NumbaStatistics(found, "record" if self._pooled else "trace").minimise(risk, sigma, inverse)

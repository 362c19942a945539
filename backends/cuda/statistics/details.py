"""Statistics of details in device memory: only medians, mean squares and thresholds leave it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.backends.cuda.dwt.tiling import ROWS, grid
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.runtime.compiler import kernel as compiled
from wavefilt.backends.cuda.runtime.interfaces import Kernel, Stream
from wavefilt.backends.cuda.runtime.memory import guarded
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.statistics.batch import ReferenceStatistics, around, between
from wavefilt.statistics.interface import Risk

from . import sorting
from .layout import DetailLayout, amounts, key_dtype
from .search_window import MEDIAN
from .selection import Selection


@cache
def counting_above(dtype: str, threads: int) -> Kernel:
    """Kernel that adds to ``counts`` of each group how many |d| of a band are at least its threshold.

    ``step`` is 1 if each row is a group, else 0.
    """

    @compiled(dtype, threads)
    def exceeding(details, begin, stride, length, rows, thresholds, step, counts):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        limit, found = thresholds[row * step], np.int64(0)
        for i in range(cuda.blockIdx.x * threads + cuda.threadIdx.x, length, cuda.gridDim.x * threads):
            if abs(np.float64(details[begin + row * stride + i])) >= limit:
                found += 1
        if found:
            cuda.atomic.add(counts, row * step, found)

    return exceeding


@cache
def counting_bins(dtype: str, threads: int, bins: int) -> Kernel:
    """Kernel that adds to ``counts`` of each group those of |d| times its scale by whole numbers.

    The last is for all beyond; ``step`` as in `counting_above`.
    """

    @compiled(dtype, threads, bins)
    def histogram(details, begin, stride, length, rows, scales, step, counts):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        own = cuda.shared.array(bins, np.int32)
        for i in range(cuda.threadIdx.x, bins, threads):
            own[i] = 0
        cuda.syncthreads()
        for i in range(cuda.blockIdx.x * threads + cuda.threadIdx.x, length, cuda.gridDim.x * threads):
            place = abs(np.float64(details[begin + row * stride + i])) * scales[row * step]
            cuda.atomic.add(own, np.int32(place) if place < bins - 1 else bins - 1, 1)
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, bins, threads):
            if own[i]:
                cuda.atomic.add(counts, row * step * bins + i, np.int64(own[i]))

    return histogram


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
        self._stream, self._owners, self._clear = stream, owners, clear

    @property
    def counts(self) -> Counts:
        return amounts(self._layouts, len(self._layouts[0]), self._pooled)

    @property
    def groups(self) -> int:
        return 1 if self._pooled else self._layouts[0].rows

    def median_abs(self, levels: Sequence[int]) -> Floats:
        depth = max(levels)
        found = guarded(partial(self._searched, depth, False), self._clear)
        middle = found.middle.copy_to_host().reshape(depth, self.groups, 2)
        return np.asarray(middle.mean(axis=-1, dtype=np.float64)[np.array(levels) - 1])

    def quantile_abs(self, levels: Sequence[int], share: float) -> Floats:
        depth = max(levels)
        found = guarded(partial(self._searched, depth, False, share), self._clear)
        pairs = found.middle.copy_to_host().reshape(depth, self.groups, 2)
        return np.array([between(pairs[i - 1], around(int(self.counts[i - 1]), share)[1]) for i in levels])

    def mean_square(self) -> Floats:
        depth = len(self._layouts[0])
        energy = guarded(partial(self._searched, depth, True), self._clear).energy.copy_to_host()
        return np.asarray(energy.reshape(depth, self.groups) / self.counts[:, None])

    def _searched(self, depth: int, energy: bool, share: float = MEDIAN) -> Selection:
        """Middle values of so many bands, or their sums of squares, when they are there."""
        found = Selection(self._layouts, self._options, depth, self._pooled, share)
        found.run(0 if energy else depth, energy, self._stream)
        self._stream.synchronize()
        return found

    def exceeding(self, thresholds: Floats) -> Counts:
        kernel = counting_above(self._dtype, self._options.threads)
        found = [guarded(partial(self._counted, i, kernel, own, 1), self._clear) for i, own in enumerate(thresholds)]
        return np.array(found)[..., 0]

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        scales = np.divide(1, widths, out=np.zeros_like(widths), where=widths > 0)
        kernel = counting_bins(self._dtype, self._options.threads, bins)
        return guarded(partial(self._counted, level - 1, kernel, scales, bins), self._clear)

    @property
    def _dtype(self) -> str:
        return self._layouts[0].array.dtype.name

    def _having(self, i: int) -> list[DetailLayout]:
        """Those that have the i-th band."""
        return [layout for layout in self._layouts if len(layout) > i]

    def _counted(self, i: int, kernel: Kernel, numbers: Floats, bins: int) -> Counts:
        """Counts (groups, bins) of the i-th band's details, by a kernel."""
        counts, threads = cuda.to_device(np.zeros(self.groups * bins, np.int64)), self._options.threads
        on_device = cuda.to_device(np.ascontiguousarray(numbers, np.float64), stream=self._stream)
        for layout in self._having(i):
            band = layout.bands[i]
            blocks = max(min(-(-band.length // (16 * threads)), 512), 1)  # each thread has several to count
            launch = kernel[grid(blocks, band.rows), threads, self._stream]
            launch(layout.array, *band, on_device, int(not self._pooled), counts)
        found = counts.copy_to_host(stream=self._stream)
        self._stream.synchronize()
        return np.asarray(found.reshape(self.groups, bins))

    def minimise(self, risk: Risk, sigma: Floats, inverse: bool = False) -> Floats:
        if inverse:
            return self._on_host.minimise(risk, sigma, inverse)
        return np.array([guarded(partial(self._least, i, risk, row), self._clear) for i, row in enumerate(sigma)])

    @property
    def _on_host(self) -> ReferenceStatistics:
        """Of copies of all details in host memory."""
        found = [list[Array]() for _ in self._layouts[0].bands]
        for layout in self._layouts:
            host = layout.array.copy_to_host(stream=self._stream)
            self._stream.synchronize()
            for own, band in zip(found, layout.bands, strict=False):
                strides = (host.itemsize * band.pitch, host.itemsize)
                own.append(np.lib.stride_tricks.as_strided(host[band.offset :], (band.rows, band.length), strides))
        if self._pooled:
            return ReferenceStatistics([np.concatenate([rows.ravel() for rows in own])[None] for own in found])
        return ReferenceStatistics([rows for (rows,) in found])

    def _least(self, i: int, risk: Risk, sigma: Floats) -> Floats:
        """`minimise` for one band: sort its |d|, then evaluate the risk at every one."""
        threads, span, stream = self._options.threads, max(sorting.SPAN, self._options.threads), self._stream
        kernels = sorting.kernels(self._dtype, threads, span)
        count, groups = int(self.counts[i]), self.groups
        size = max(1 << (count - 1).bit_length(), span)
        values = cuda.device_array(groups * size, self._dtype)
        keys = values.view(key_dtype(self._dtype))
        filled = 0
        for layout in self._having(i):
            band = layout.bands[i]
            blocks = min(-(-band.length // (4 * threads)), 1024)
            kernels["pack"][grid(blocks, band.rows), threads, stream](
                layout.keys, *band, keys, size, filled, not self._pooled
            )
            filled += band.length * band.rows
        kernels["pad"][grid(64, groups), threads, stream](keys, size, count, groups)
        spans = size // span
        kernels["near"][groups * spans, threads, stream](keys, size, span)
        k = 2 * span
        while k <= size:
            j = k // 2
            while j >= span:
                pairs = groups * size // 2
                kernels["far"][-(-pairs // threads), threads, stream](keys, size, k, j, pairs)
                j //= 2
            kernels["near"][groups * spans, threads, stream](keys, size, k)
            k *= 2
        scale = cuda.to_device(np.ascontiguousarray(sigma, np.float64), stream=stream)
        parts, risks = cuda.device_array(groups * spans, np.float64), cuda.device_array(groups * spans, np.float64)
        places, best = cuda.device_array(groups * spans, np.int64), cuda.device_array(groups, np.float64)
        kernels["sums"][groups * spans, threads, stream](values, size, count, scale, parts)
        kernels["accumulate"][-(-groups // threads), threads, stream](parts, spans, groups)
        sorting.evaluate(risk, threads, span)[groups * spans, threads, stream](
            values, size, count, scale, parts, risks, places
        )
        kernels["pick"][-(-groups // threads), threads, stream](risks, places, values, size, spans, scale, groups, best)
        found: Floats = best.copy_to_host(stream=stream)
        stream.synchronize()
        return found

"""Statistics of details in device memory: only medians, mean squares, counts and thresholds leave it.

Medians and mean squares come from `Selection`. For rules that count, kernels count details above a threshold and by
size; for rules that need every coefficient (SURE), |d| are sorted by a bitonic sort, which takes no memory but the
padding to a power of two and gives the same order whatever the scheduling. Risks are formulas of scalars, compiled for
the device as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.backends.cuda.dwt.tiling import ROWS, grid
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, Kernel, Stream
from wavefilt.backends.cuda.runtime.memory import retried
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.statistics.reference import ReferenceStatistics, Risk, around, between

from .layout import MEDIAN, DetailLayout, amounts, key_dtype
from .selection import Selection

ZERO = -1
"""The place of the value 0, which comes before all sorted ones."""


@cache
def counting_above(build: Build) -> Kernel:
    """Kernel that adds to ``counts`` of each group how many |d| of a band are at least its threshold.

    ``step`` is 1 if each row is a group, else 0.
    """

    threads = build.threads

    @kernel(build)
    def exceeding(details, band, thresholds, step, counts):
        begin, stride, length, rows = band
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
def counting_bins(build: Build, bins: int) -> Kernel:
    """Kernel that counts |d| times the scale of each group, rounded down, in ``counts``.

    The last is for all beyond; ``step`` as in `counting_above`.
    """

    threads = build.threads

    @kernel(build, bins)
    def histogram(details, band, scales, step, counts):
        begin, stride, length, rows = band
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
        self._stream, self._owners, self.clear = stream, owners, clear

    @property
    def counts(self) -> Counts:
        return amounts(self._layouts, len(self._layouts[0]), self._pooled)

    @property
    def groups(self) -> int:
        return 1 if self._pooled else self._layouts[0].rows

    def median_abs(self, levels: Sequence[int]) -> Floats:
        depth = max(levels)
        found = self._searched(depth, False)
        middle = found.middle.copy_to_host().reshape(depth, self.groups, 2)
        return np.asarray(middle.mean(axis=-1, dtype=np.float64)[np.array(levels) - 1])

    def quantile_abs(self, levels: Sequence[int], share: float) -> Floats:
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
        count = counting_above(self._build)
        found = [self._counted(i, count, own, 1) for i, own in enumerate(thresholds)]
        return np.array(found)[..., 0]

    def histogram(self, level: int, widths: Floats, bins: int) -> Counts:
        scales = np.divide(1, widths, out=np.zeros_like(widths), where=widths > 0)
        return self._counted(level - 1, counting_bins(self._build, bins), scales, bins)

    @property
    def _build(self) -> Build:
        return self._options.build(self._layouts[0].array.dtype.name)

    def _having(self, i: int) -> list[DetailLayout]:
        """Return the layouts with an i-th band."""
        return [layout for layout in self._layouts if len(layout) > i]

    @retried
    def _counted(self, i: int, count: Kernel, numbers: Floats, bins: int) -> Counts:
        """Counts (groups, bins) of the i-th band's details, by a kernel."""
        counts, threads = cuda.to_device(np.zeros(self.groups * bins, np.int64)), self._options.threads
        on_device = cuda.to_device(np.ascontiguousarray(numbers, np.float64), stream=self._stream)
        for layout in self._having(i):
            band = layout.bands[i]
            blocks = max(min(-(-band.length // (16 * threads)), 512), 1)  # each thread has several to count
            launch = count[grid(blocks, band.rows), threads, self._stream]
            launch(layout.array, band, on_device, int(not self._pooled), counts)
        found = counts.copy_to_host(stream=self._stream)
        self._stream.synchronize()
        return np.asarray(found.reshape(self.groups, bins))

    def minimise(self, risk: Risk, sigma: Floats, inverse: bool = False) -> Floats:
        if inverse:
            return self._on_host.minimise(risk, sigma, inverse)
        return np.array([self._least(i, risk, row) for i, row in enumerate(sigma)])

    @property
    def _on_host(self) -> ReferenceStatistics:
        """The statistics of copies of all details in host memory."""
        found = [list[Array]() for _ in self._layouts[0].bands]
        for layout in self._layouts:
            host = layout.array.copy_to_host(stream=self._stream)
            self._stream.synchronize()
            for own, band in zip(found, layout.bands, strict=False):
                own.append(band.of(host))
        if self._pooled:
            return ReferenceStatistics([np.concatenate([rows.ravel() for rows in own])[None] for own in found])
        return ReferenceStatistics([rows for (rows,) in found])

    @retried
    def _least(self, i: int, risk: Risk, sigma: Floats) -> Floats:
        """`minimise` for one band: sort its |d|, then evaluate the risk at every one."""
        build, threads, stream = self._build, self._options.threads, self._stream
        span, count, groups = max(self._options.span, threads), int(self.counts[i]), self.groups
        sort = sorting(build, span)
        size = max(1 << (count - 1).bit_length(), span)
        values, filled = cuda.device_array(groups * size, build.dtype), 0
        keys = values.view(key_dtype(build.dtype))
        for layout in self._having(i):
            band = layout.bands[i]
            blocks = min(-(-band.length // (4 * threads)), 1024)
            pack = sort["pack"][grid(blocks, band.rows), threads, stream]
            pack(layout.keys, band, keys, size, filled, not self._pooled)
            filled += band.length * band.rows
        sort["pad"][grid(64, groups), threads, stream](keys, size, count, groups)
        spans = size // span
        sort["near"][groups * spans, threads, stream](keys, size, span)
        k = 2 * span
        while k <= size:
            j = k // 2
            while j >= span:
                pairs = groups * size // 2
                sort["far"][-(-pairs // threads), threads, stream](keys, size, k, j, pairs)
                j //= 2
            sort["near"][groups * spans, threads, stream](keys, size, k)
            k *= 2
        scale = cuda.to_device(np.ascontiguousarray(sigma, np.float64), stream=stream)
        parts, risks = (cuda.device_array(groups * spans, np.float64) for _ in range(2))
        places, best = cuda.device_array(groups * spans, np.int64), cuda.device_array(groups, np.float64)
        sort["sums"][groups * spans, threads, stream](values, size, count, scale, parts)
        sort["accumulate"][-(-groups // threads), threads, stream](parts, spans, groups)
        evaluate = evaluating(build, _Formula(risk, (risk.__code__.co_code, risk.__code__.co_consts)), span)
        evaluate[groups * spans, threads, stream](values, size, count, scale, parts, risks, places)
        sort["pick"][-(-groups // threads), threads, stream](risks, places, values, size, spans, scale, groups, best)
        found: Floats = best.copy_to_host(stream=stream)
        stream.synchronize()
        return found


@dataclass(frozen=True)
class _Formula:
    """A function of scalars, equal to any other of the same code."""

    function: Risk = field(compare=False)
    code: tuple[Hashable, ...]


@cache
def sorting(build: Build, span: int) -> dict[str, Kernel]:
    """Return the kernels of the sort, by name."""
    threads, key = build.threads, np.int64 if np.dtype(build.dtype).itemsize == 8 else np.int32
    last = np.iinfo(key).max
    compiled = kernel(build, span)

    @compiled
    def pack(details, band, out, size, offset, per_row):
        """Bits of |d|, without the sign, row by row: rows apart (``per_row``) or one after another."""
        begin, stride, length, rows = band
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        target = row * size if per_row else offset + row * length
        for i in range(cuda.blockIdx.x * threads + cuda.threadIdx.x, length, cuda.gridDim.x * threads):
            out[target + i] = details[begin + row * stride + i] & last

    @compiled
    def pad(out, size, count, groups):
        """The largest key behind the ``count`` of every group."""
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= groups:
            return
        for i in range(count + cuda.blockIdx.x * threads + cuda.threadIdx.x, size, cuda.gridDim.x * threads):
            out[row * size + i] = last

    @compiled
    def near(keys, size, most):
        """Merges whose partners lie in one span: all up to runs of ``span``, or the end of runs of ``most``."""
        part = cuda.shared.array(span, key)
        thread, start = cuda.threadIdx.x, cuda.blockIdx.x * span
        for i in range(thread, span, threads):
            part[i] = keys[start + i]
        cuda.syncthreads()
        k = most if most > span else 2
        while k <= most:
            j = min(k, span) >> 1
            while j > 0:
                for i in range(thread, span, threads):
                    other = i ^ j
                    if other > i:
                        a, b = part[i], part[other]
                        if (a > b) == (((start + i) & (size - 1) & k) == 0):
                            part[i], part[other] = b, a
                cuda.syncthreads()
                j >>= 1
            k <<= 1
        for i in range(thread, span, threads):
            keys[start + i] = part[i]

    @compiled
    def far(keys, size, k, j, pairs):
        """One step of a merge whose partners lie ``j`` apart."""
        p = cuda.blockIdx.x * threads + cuda.threadIdx.x
        if p < pairs:
            i = (p & ~(j - 1)) * 2 + (p & (j - 1))
            a, b = keys[i], keys[i + j]
            if (a > b) == ((i & (size - 1) & k) == 0):
                keys[i], keys[i + j] = b, a

    @compiled
    def sums(values, size, count, sigma, parts):
        """Sum of the squares, in units of the noise, of every span."""
        total = cuda.shared.array(threads, np.float64)
        thread, start = cuda.threadIdx.x, cuda.blockIdx.x * span
        group = start // size
        own = 0.0
        each = span // threads
        for i in range(start + thread * each, start + (thread + 1) * each):
            if i - group * size < count and sigma[group] > 0:
                square = np.float64(values[i]) / sigma[group]
                own += square * square
        total[thread] = own
        cuda.syncthreads()
        if thread == 0:
            for i in range(1, threads):
                own += total[i]
            parts[cuda.blockIdx.x] = own

    @compiled
    def accumulate(parts, spans, groups):
        """Sums of all spans before each, group by group."""
        group = cuda.blockIdx.x * threads + cuda.threadIdx.x
        if group < groups:
            before = 0.0
            for i in range(group * spans, (group + 1) * spans):
                before, parts[i] = before + parts[i], before

    @compiled
    def pick(risks, places, values, size, spans, sigma, groups, best):
        """The value at the first place of the least risk of each group."""
        group = cuda.blockIdx.x * threads + cuda.threadIdx.x
        if group < groups:
            least = group * spans
            for i in range(group * spans + 1, (group + 1) * spans):
                if risks[i] < risks[least]:
                    least = i
            found = places[least]
            best[group] = np.float64(values[found]) if found != ZERO and sigma[group] > 0 else 0.0

    return {"pack": pack, "pad": pad, "near": near, "far": far, "sums": sums, "accumulate": accumulate, "pick": pick}


@cache
def evaluating(build: Build, formula: _Formula, span: int) -> Kernel:
    """Kernel that finds the least risk, and where, among the sorted values of every span."""
    threads, risk = build.threads, device(formula.function)

    @kernel(build, formula.code, span)
    def evaluate_kernel(values, size, count, sigma, before, risks, places):
        total = cuda.shared.array(threads, np.float64)
        least = cuda.shared.array(threads, np.float64)
        where = cuda.shared.array(threads, np.int64)
        thread, start = cuda.threadIdx.x, cuda.blockIdx.x * span
        group = start // size
        each = span // threads
        first = start + thread * each
        own = 0.0
        for i in range(first, first + each):
            if i - group * size < count and sigma[group] > 0:
                square = np.float64(values[i]) / sigma[group]
                own += square * square
        total[thread] = own
        cuda.syncthreads()
        below = before[cuda.blockIdx.x]
        for i in range(thread):
            below += total[i]
        least[thread], where[thread] = np.inf, start
        if first == group * size:  # 0 is a candidate too
            least[thread], where[thread] = risk(0.0, 0, 0.0, count), ZERO
        for i in range(first, first + each):
            if i - group * size < count and sigma[group] > 0:
                square = np.float64(values[i]) / sigma[group]
                square *= square
                below += square
                value = risk(square, i - group * size + 1, below, count)
                if value < least[thread]:
                    least[thread], where[thread] = value, i
        cuda.syncthreads()
        if thread == 0:
            for i in range(1, threads):
                if least[i] < least[0]:
                    least[0], where[0] = least[i], where[i]
            risks[cuda.blockIdx.x], places[cuda.blockIdx.x] = least[0], where[0]

    return evaluate_kernel

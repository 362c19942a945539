"""Means and straight lines of rows on the device: what they are, `wavefilt.trend`."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS, grid
from wavefilt.backends.cuda.options import THREADS
from wavefilt.backends.cuda.plan import Plan
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import load4, store
from wavefilt.backends.cuda.statistics.search_window import summing
from wavefilt.trend import BLOCK, Trend
from wavefilt.vocabulary import Detrend

PARTS = 528  # of all rows: blocks that sum, four a multiprocessor
LEAST = 1 << 12  # samples that a block sums, or changes


@cache
def fit(dtype: str, threads: int, line: bool) -> Kernel:
    """Kernel of the sums of each part of the rows, and for a ``line`` of those times their places from the middle."""
    total = summing(threads)

    @kernel(dtype, threads, line)
    def fit_kernel(x, samples, rows, aligned, chunk, partial):
        sums = cuda.shared.array(threads, np.float64)
        thread, part = cuda.threadIdx.x, cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        start, first, last = row * samples, part * chunk, min((part + 1) * chunk, samples)
        middle, level, moment = 0.5 * (samples - 1), 0.0, 0.0
        wide, at = last // 4 * 4, start
        for i in range(first + 4 * thread, wide, 4 * threads):  # in this order wherever the array lies
            at = start + i
            if aligned:
                a, b, c, d = load4(x, at)
            else:
                a, b, c, d = x[at], x[at + 1], x[at + 2], x[at + 3]
            level += (np.float64(a) + np.float64(b)) + (np.float64(c) + np.float64(d))
            if line:
                moment += (i - middle) * np.float64(a) + (i + 1 - middle) * np.float64(b)
                moment += (i + 2 - middle) * np.float64(c) + (i + 3 - middle) * np.float64(d)
        for i in range(wide + thread, last, threads):
            level += np.float64(x[start + i])
            if line:
                moment += (i - middle) * np.float64(x[start + i])
        place = 2 * (row * cuda.gridDim.x + part)
        sums[thread] = level
        total(sums, thread)
        if thread == 0:
            partial[place] = sums[0]
        if line:
            cuda.syncthreads()
            sums[thread] = moment
            total(sums, thread)
            if thread == 0:
                partial[place + 1] = sums[0]

    return fit_kernel


@cache
def settle(dtype: str, threads: int, line: bool) -> Kernel:
    """Kernel of the middle and the slope of each row from the sums of its parts, and of the middles as samples."""
    total, number = summing(threads), np.dtype(dtype).type

    @kernel(dtype, threads, line)
    def settle_kernel(partial, parts, samples, rows, trends, means):
        sums = cuda.shared.array(threads, np.float64)
        thread, row = cuda.threadIdx.x, cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        for field in range(2 if line else 1):
            own = 0.0
            for part in range(thread, parts, threads):
                own += partial[2 * (row * parts + part) + field]
            sums[thread] = own
            total(sums, thread)
            if thread == 0:
                size = np.float64(samples)
                spread = size if field == 0 else max(size * (size * size - 1) / 12, 1.0)
                trends[2 * row + field] = sums[0] / spread
                if field == 0:
                    means[row] = number(sums[0] / spread)
            cuda.syncthreads()

    return settle_kernel


@cache
def change(dtype: str, threads: int, line: bool, restoring: bool) -> Kernel:
    """Kernel that takes the trends off rows, or ``restoring`` adds them again to those that are ``live``.

    Of the ``samples`` of a row there are so many, from ``first`` on.
    """
    number = np.dtype(dtype).type

    @device
    def trend(level, slope, middle, i):
        if not line:
            return number(level)
        start = i // BLOCK * BLOCK
        return number(slope) * number(i - start) + number(level + slope * (start - middle))

    @device
    def changed(value, own):
        return value + own if restoring else value - own

    @kernel(dtype, threads, line, restoring)
    def change_kernel(x, y, first, count, samples, rows, aligned, trends, live):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows or (restoring and live[row] == 0):
            return
        start, middle = row * count, 0.5 * (samples - 1)
        level, slope = trends[2 * row], trends[2 * row + 1] if line else 0.0
        wide, thread, step = count // 4 if aligned else 0, cuda.grid(1), cuda.gridsize(1)
        for v in range(thread, wide, step):
            at, i = start + 4 * v, first + 4 * v
            a, b, c, d = load4(x, at)
            p, q = trend(level, slope, middle, i), trend(level, slope, middle, i + 1)
            r, s = trend(level, slope, middle, i + 2), trend(level, slope, middle, i + 3)
            store(y, at, (changed(a, p), changed(b, q), changed(c, r), changed(d, s)))
        for i in range(4 * wide + thread, count, step):
            y[start + i] = changed(x[start + i], trend(level, slope, middle, first + i))

    return change_kernel


class Trends:
    """Those of the rows of a plan, which are taken off before the transform and added again after it.

    By the plan itself, if ``fused``, which then takes `means`.
    """

    def __init__(self, plan: Plan, kind: Detrend) -> None:
        s = plan.shape
        self.plan, self.line = plan, kind == "line"
        self.fused = plan.centres and not self.line
        self.means = cuda.device_array(s.rows, s.dtype)
        most = max(PARTS // s.rows, 1)
        self.chunk = max(-(-s.samples // most) + 3 & ~3, LEAST)
        self.parts = -(-s.samples // self.chunk)
        self._partial = cuda.device_array(2 * self.parts * s.rows, np.float64)
        self._trends = cuda.device_array(2 * s.rows, np.float64)

    def removed(self, x: DeviceArray, stream: Stream) -> DeviceArray:
        """The flat rows of ``x`` without their trends; ``x`` itself if that is left to the plan."""
        s, threads = self.plan.shape, self.plan.options.threads
        sums = fit(s.dtype, threads, self.line)[grid(self.parts, s.rows), threads, stream]
        sums(x, s.samples, s.rows, self.plan.aligned(x), self.chunk, self._partial)
        ends = settle(s.dtype, threads, self.line)[grid(1, s.rows), threads, stream]
        ends(self._partial, self.parts, s.samples, s.rows, self._trends, self.means)
        if self.fused:
            return x
        out = self.plan.buffer("detrended", s.rows * s.samples)
        self._change(False, x, out, self.plan.flags, stream)
        return out

    def restore(self, y: DeviceArray, live: DeviceArray, stream: Stream) -> None:
        """Add them to the rows of ``y`` that are ``live``, in place, unless the plan does."""
        if not self.fused:
            self._change(True, y, y, live, stream)

    def _change(self, restoring: bool, x: DeviceArray, y: DeviceArray, live: DeviceArray, stream: Stream) -> None:
        s, threads = self.plan.shape, self.plan.options.threads
        aligned = self.plan.aligned(x) and self.plan.aligned(y)
        launch = change(s.dtype, threads, self.line, restoring)[grid(-(-s.samples // LEAST), s.rows), threads, stream]
        launch(x, y, 0, s.samples, s.samples, s.rows, aligned, self._trends, live)


def change_part(trend: Trend, x: DeviceArray, y: DeviceArray, first: int, restoring: bool, stream: Stream) -> None:
    """Into ``y`` samples from ``first`` on of a row ``x`` without its trend, or with it again."""
    numbers, live = np.array([trend.middle[0, 0], trend.slope[0, 0]]), cuda.to_device(np.ones(1, np.int32))
    launch = change(y.dtype.name, THREADS, True, restoring)[-(-x.size // LEAST), THREADS, stream]
    launch(x, y, first, x.size, trend.samples, 1, False, cuda.to_device(numbers), live)
    stream.synchronize()  # what was made for it is freed

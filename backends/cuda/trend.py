"""Means and straight lines of rows on the device; see `wavefilt.trend`."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS, grid
from wavefilt.backends.cuda.plan import Plan
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceArray, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import load4, store
from wavefilt.backends.cuda.statistics.block_search import summing
from wavefilt.trend import BLOCK
from wavefilt.vocabulary import Detrend


@cache
def fit(build: Build, line: bool) -> Kernel:
    """Kernel of the sums of each part of the rows, and for a ``line`` of samples times their places from the middle."""
    threads, total = build.threads, summing(build.threads)

    @kernel(build, line)
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
def settle(build: Build, line: bool) -> Kernel:
    """Kernel of the middle and the slope of each row from the sums of its parts."""
    threads, total = build.threads, summing(build.threads)

    @kernel(build, line)
    def settle_kernel(partial, parts, samples, rows, trends):
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
            cuda.syncthreads()

    return settle_kernel


@cache
def change(build: Build, line: bool, restoring: bool) -> Kernel:
    """Kernel that subtracts the trends from rows, or, if ``restoring``, adds them to rows that are ``live``."""
    number = np.dtype(build.dtype).type

    @device
    def trend(level, slope, middle, i):
        if not line:
            return number(level)
        start = i // BLOCK * BLOCK
        return number(slope) * number(i - start) + number(level + slope * (start - middle))

    @device
    def changed(value, own):
        return value + own if restoring else value - own

    @kernel(build, line, restoring)
    def change_kernel(x, y, samples, rows, aligned, trends, live):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows or (restoring and live[row] == 0):
            return
        start, middle = row * samples, 0.5 * (samples - 1)
        level, slope = trends[2 * row], trends[2 * row + 1] if line else 0.0
        wide, thread, step = samples // 4 if aligned else 0, cuda.grid(1), cuda.gridsize(1)
        for v in range(thread, wide, step):
            i = 4 * v
            at = start + i
            a, b, c, d = load4(x, at)
            p, q = trend(level, slope, middle, i), trend(level, slope, middle, i + 1)
            r, s = trend(level, slope, middle, i + 2), trend(level, slope, middle, i + 3)
            store(y, at, (changed(a, p), changed(b, q), changed(c, r), changed(d, s)))
        for i in range(4 * wide + thread, samples, step):
            y[start + i] = changed(x[start + i], trend(level, slope, middle, i))

    return change_kernel


class Trends:
    """Trends of the rows of a plan, which are removed before the transform and added again after it."""

    def __init__(self, plan: Plan, kind: Detrend) -> None:
        s, (self._least, parts) = plan.shape, plan.options.sums
        self.plan, self.line = plan, kind == "line"
        most = max(parts // s.rows, 1)
        self.chunk = max(-(-s.samples // most) + 3 & ~3, self._least)
        self.parts = -(-s.samples // self.chunk)
        self._partial = cuda.device_array(2 * self.parts * s.rows, np.float64)
        self._trends = cuda.device_array(2 * s.rows, np.float64)

    def removed(self, x: DeviceArray, stream: Stream) -> DeviceArray:
        """Return the flat rows of ``x`` without their trends."""
        s, build = self.plan.shape, self.plan.build
        sums = fit(build, self.line)[grid(self.parts, s.rows), build.threads, stream]
        sums(x, s.samples, s.rows, self.plan.aligned(x), self.chunk, self._partial)
        ends = settle(build, self.line)[grid(1, s.rows), build.threads, stream]
        ends(self._partial, self.parts, s.samples, s.rows, self._trends)
        out = self.plan.buffer("detrended", s.rows * s.samples)
        self._change(False, x, out, self.plan.flags, stream)
        return out

    def restore(self, y: DeviceArray, live: DeviceArray, stream: Stream) -> None:
        """Add the trends to the rows of ``y`` that are ``live``, in place."""
        self._change(True, y, y, live, stream)

    def _change(self, restoring: bool, x: DeviceArray, y: DeviceArray, live: DeviceArray, stream: Stream) -> None:
        s, build = self.plan.shape, self.plan.build
        aligned, blocks = self.plan.aligned(x) and self.plan.aligned(y), -(-s.samples // self._least)
        launch = change(build, self.line, restoring)[grid(blocks, s.rows), build.threads, stream]
        launch(x, y, s.samples, s.rows, aligned, self._trends, live)

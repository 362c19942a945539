"""Sorted |d| and the least risk over them, for rules that need every coefficient (SURE), on the device.

A bitonic sort: simple, no extra memory but the padding to a power of two, and the same order whatever the
scheduling. Risks are formulas of scalars, compiled for the device as they are.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.statistics.reference import Risk

SPAN = 2048  # keys that one block sorts in shared memory
ZERO = -1  # the place of the value 0, which comes before all


def evaluate(risk: Risk, threads: int, span: int) -> Kernel:
    """Kernel that finds the least risk, and where, among the sorted values of every span; once for the same code."""
    return _evaluate(_Formula(risk, (risk.__code__.co_code, risk.__code__.co_consts)), threads, span)


@dataclass(frozen=True)
class _Formula:
    """A function of scalars, equal to any other of the same code."""

    function: Risk = field(compare=False)
    code: tuple[Hashable, ...]


@cache
def kernels(dtype: str, threads: int, span: int) -> dict[str, Kernel]:
    """The kernels of the sort, by name."""
    key = np.int64 if np.dtype(dtype).itemsize == 8 else np.int32
    last = np.iinfo(key).max
    compiled = kernel(dtype, threads, span)

    @compiled
    def pack(details, begin, stride, length, rows, out, size, offset, per_row):
        """Bits of |d|, without the sign, row by row: rows apart (``per_row``) or one after another."""
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
        """Merges whose partners lie in one span: all up to runs of ``span``, or the end of those of ``most``."""
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
def _evaluate(formula: _Formula, threads: int, span: int) -> Kernel:
    risk = device(formula.function)

    @kernel(formula.code, threads, span)
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

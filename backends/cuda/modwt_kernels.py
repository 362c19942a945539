"""Kernels of the MODWT, a thread for each coefficient: neighbours read neighbours, whatever the level.

What the transform is: `wavefilt.stationary`; which coefficients beyond the samples are kept: `wavefilt.margins`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt import boundary

from .compiler import kernel
from .geometry import NOT_FINITE, ROWS
from .shrink import shrink
from .target import cuda, device


@cache
def extend(mode: str, dtype: str, threads: int) -> Any:
    """Kernel that writes ``length`` samples of the rows' extension from ``first`` on; it tells what is not finite."""
    number, code = np.dtype(dtype).type, boundary.code(mode)
    place = device(boundary.extension)

    @kernel(mode, dtype, threads)
    def extend_kernel(x, pitch, samples, rows, first, target, target_pitch, length, flags):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows or i >= length:
            return
        start = row * pitch
        j, a, k, b, m, c = place(code, first + i, samples)
        value = number(0)
        if a:
            value += number(a) * x[start + j]
        if b:
            value += number(b) * x[start + k]
        if c:
            value += number(c) * x[start + m]
        target[row * target_pitch + i] = value
        if value - value != 0:
            flags[NOT_FINITE] = 1

    return extend_kernel


def _scaled(lo: tuple[float, ...], hi: tuple[float, ...], dtype: str) -> NDArray[Any]:
    """Both filters over sqrt 2, last tap first: for constant memory, which a warp reads at once."""
    return (np.array([lo[::-1], hi[::-1]]) / 2**0.5).astype(dtype)


@cache
def analysis(lo: tuple[float, ...], hi: tuple[float, ...], round_about: bool, dtype: str, threads: int) -> Any:
    """Kernel of one level: smooths of ``v``, and those of the details that are kept, from smooth ``begin`` on.

    Taps lie ``stride`` apart, the first ``shift`` before the coefficient; both less than the length in rows that go
    round.
    """
    number = np.dtype(dtype).type
    both = _scaled(lo, hi, dtype)
    taps = len(lo)

    @kernel(lo, hi, round_about, dtype, threads)
    def analysis_kernel(
        v, pitch, rows, stride, shift, smooth, smooth_pitch, length, details, detail_pitch, begin, count
    ):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows or i >= length:
            return
        start, at = row * pitch, i
        if round_about:
            at = i - shift if i >= shift else i - shift + length
        filters = cuda.const.array_like(both)
        a, d = number(0), number(0)
        for q in range(taps):
            value = v[start + at]
            a += filters[0, q] * value
            d += filters[1, q] * value
            at += stride
            if round_about and at >= length:
                at -= length
        smooth[row * smooth_pitch + i] = a
        if begin <= i < begin + count:
            details[row * detail_pitch + i - begin] = d

    return analysis_kernel


@cache
def synthesis(
    lo: tuple[float, ...], hi: tuple[float, ...], round_about: bool, dtype: str, threads: int, function: str
) -> Any:
    """Kernel of one level of the inverse: smooths or samples, from smooths and details shrunk as they are loaded."""
    number = np.dtype(dtype).type
    both = _scaled(lo, hi, dtype)
    taps, keeps = len(lo), function == "keep"
    shrunk = shrink(function, dtype)

    @kernel(lo, hi, round_about, dtype, threads, function)
    def synthesis_kernel(
        v, pitch, details, detail_pitch, rows, stride, shift, thresholds, first, out, out_pitch, length
    ):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows or i >= length:
            return
        limit = number(0) if keeps else thresholds[first + row]
        at = i
        if round_about:
            at = i - shift if i >= shift else i - shift + length
        filters = cuda.const.array_like(both)
        total = number(0)
        for q in range(taps):
            d = details[row * detail_pitch + at]
            if not keeps:
                d = shrunk(d, limit)
            total += filters[0, q] * v[row * pitch + at] + filters[1, q] * d
            at += stride
            if round_about and at >= length:
                at -= length
        out[row * out_pitch + i] = total

    return synthesis_kernel


@cache
def cut(dtype: str, threads: int) -> Any:
    """Kernel that copies ``length`` elements of every row, from ``begin`` on."""

    @kernel(dtype, threads)
    def cut_kernel(x, pitch, rows, begin, target, target_pitch, length):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row < rows and i < length:
            target[row * target_pitch + i] = x[row * pitch + begin + i]

    return cut_kernel


@cache
def leave(dtype: str, threads: int) -> Any:
    """Kernel that copies the rows of ``x`` that are not ``live`` to ``y``."""

    @kernel(dtype, threads)
    def leave_kernel(x, y, samples, rows, live):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows or live[row] != 0:
            return
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        while i < samples:
            y[row * samples + i] = x[row * samples + i]
            i += threads * cuda.gridDim.x

    return leave_kernel

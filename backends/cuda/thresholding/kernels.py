"""Details shrunk by what takes more than a threshold: blocks by their energy, posteriors. On the device, in float64.

And rows from which nothing is removed.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.backends.cuda.dwt.tiling import ROWS, grid
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, DeviceFunction, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.statistics.layout import Band
from wavefilt.thresholding.blocks import Blocks
from wavefilt.thresholding.empirical_bayes import FAR, PRIORS, ROUNDS, formulas
from wavefilt.thresholding.shrinkage import Function, Posterior, Shrinkage

MOST_BLOCKS = 2112  # of a kernel that mostly has nothing to do, but one a row


def sent(shrinkage: Shrinkage, dtype: str, bands: int, rows: int, stream: Stream) -> DeviceArray:
    """The thresholds on the device, band by band, in the dtype of the samples."""
    values = np.ascontiguousarray(np.broadcast_to(shrinkage.thresholds, (bands, rows)), dtype)
    found: DeviceArray = cuda.to_device(values.ravel(), stream=stream)
    return found


def shrink(
    function: Function,
    details: DeviceArray,
    target: DeviceArray,
    band: Band,
    thresholds: Floats,
    sigma: Floats,
    threads: int,
    stream: Stream,
) -> None:
    """Launch what shrinks one band by a `Blocks` or a `Posterior`, by numbers of every row, or one for all."""
    numbers, constants, dtype, length = [thresholds], list[int](), details.dtype.name, band.length
    if isinstance(function, Posterior):
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = PRIORS[function.prior].weight_of(np.nan_to_num(thresholds / sigma))
        numbers += [sigma, weights]
        kernel, items = posterior(dtype, function.prior, function.estimator, threads), length
    else:
        assert isinstance(function, Blocks)
        constants = [function.core, function.reach]
        kernel, items = block(dtype, threads), -(-length // function.core)
    own = [cuda.to_device(np.array(np.broadcast_to(a, band.rows)), stream=stream) for a in numbers]
    kernel[grid(-(-items // threads), band.rows), threads, stream](details, target, *band, *own, *constants)


@cache
def block(dtype: str, threads: int) -> Kernel:
    """Kernel of `Blocks`, a thread for each block."""
    number = np.dtype(dtype).type

    @kernel(dtype, threads)
    def block_kernel(details, target, begin, stride, length, rows, thresholds, core, reach):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        core = min(core, length)
        reach = reach if core + 2 * reach <= length else 0
        first = (cuda.blockIdx.x * threads + cuda.threadIdx.x) * core
        if row >= rows or first >= length:
            return
        start, limit, energy = begin + row * stride, thresholds[row] * thresholds[row], 0.0
        for k in range(first - reach, first + core + reach):
            i = k + length if k < 0 else k - length if k >= length else k
            d = float(details[start + i])
            energy += d * d
        power = energy / (core + 2 * reach)
        gain = 1.0 if limit == 0 else 1 - limit / power if power > limit else 0.0
        for i in range(first, min(first + core, length)):
            target[start + i] = details[start + i] * number(gain)

    return block_kernel


@cache
def posterior(dtype: str, prior: str, estimator: str, threads: int) -> Kernel:
    """Kernel of `Posterior`, a thread for each detail."""
    number = np.dtype(dtype).type
    of = formulas(prior, math.erfc, math.exp, math.expm1, device)
    ratio, tail, shift = of.ratio, of.tail, of.shift
    far, rounds, mean = FAR, ROUNDS, estimator == "mean"

    @kernel(dtype, prior, estimator, threads)
    def posterior_kernel(details, target, begin, stride, length, rows, thresholds, sigma, weights):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows or i >= length:
            return
        i += begin + row * stride
        d, t, scale, w = details[i], thresholds[row], sigma[row], weights[row]
        size = abs(np.float64(d))
        found = size
        if t > 0:
            x = size / scale
            near = min(x, far)
            g = ratio(near)
            if mean:
                found = scale * (w * g / (1 + w * (g - 1)) * (x - shift(x)))
            elif size <= t:
                found = np.float64(0)
            elif x >= far:
                found = scale * (x - shift(x))
            else:
                half = (1 + w * (g - 1)) / (2 * w * g)
                low, high = 0.0, near
                for _ in range(rounds):
                    middle = 0.5 * (low + high)
                    if tail(near, middle) - half > 0:
                        low = middle
                    else:
                        high = middle
                found = scale * (0.5 * (low + high))
        target[i] = math.copysign(number(found), d)

    return posterior_kernel


@cache
def leaving(dtype: str, threads: int) -> Kernel:
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


def leave(
    x: DeviceArray, y: DeviceArray, samples: int, rows: int, live: DeviceArray, threads: int, stream: Stream
) -> None:
    """Copy the rows of ``x`` from which nothing is removed to ``y``."""
    blocks = max(min(-(-samples // threads), MOST_BLOCKS // rows), 1)
    leaving(y.dtype.name, threads)[grid(blocks, rows), threads, stream](x, y, samples, rows, live)


@cache
def constant(threads: int) -> DeviceFunction:
    """Device function: whether all samples of this thread's trace are equal; all threads of a block call it.

    They look through a trace together, if three of its samples are equal.
    """

    @device
    def is_constant(x, trace, traces, length):
        thread, alike = cuda.threadIdx.x, np.int32(0)
        if trace < traces:
            start = trace * length
            if x[start] == x[start + length - 1] and x[start] == x[start + length // 2]:
                alike = np.int32(1)
        if cuda.syncthreads_or(alike) == 0:
            return False
        suspected = cuda.shared.array(threads, np.int32)
        suspected[thread] = alike
        cuda.syncthreads()
        for k in range(threads):
            if suspected[k] != 0:
                start, i = (trace - thread + k) * length, thread
                while i < length and x[start + i] == x[start]:
                    i += threads
                differs = cuda.syncthreads_or(np.int32(1 if i < length else 0))
                if thread == k and differs != 0:
                    alike = np.int32(0)
        return alike != 0

    return is_constant


@cache
def marking(dtype: str, threads: int) -> Kernel:
    """Kernel that writes a ``value`` for each trace whose samples are all equal, ``step`` elements apart."""
    is_constant = constant(threads)

    @kernel(dtype, threads)
    def mark_kernel(x, length, traces, target, first, step, value):
        trace = cuda.blockIdx.x * threads + cuda.threadIdx.x
        if is_constant(x, trace, traces, length):
            target[first + trace * step] = value

    return mark_kernel

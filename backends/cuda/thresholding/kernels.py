"""Details shrunk by what takes more than a threshold: blocks by their energy, posteriors. On the device, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.cuda.dwt.plan import Plan, grid
from wavefilt.backends.cuda.dwt.tiling import ROWS, up4
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.thresholding.block_shrinkage import Blocks
from wavefilt.thresholding.empirical_bayes import FAR, PRIORS, ROUNDS, formulas
from wavefilt.thresholding.shrinkage import Posterior, Shrinkage


def sent(shrinkage: Shrinkage, shape: Any, stream: Any) -> Any:
    """The thresholds on the device, level by level, in the dtype of the samples."""
    values = np.ascontiguousarray(np.broadcast_to(shrinkage.thresholds, (shape.level, shape.rows)), shape.dtype)
    return cuda.to_device(values.ravel(), stream=stream)


def prepared(
    shrinkage: Shrinkage | None, shape: Any, stream: Any, shrunk: Callable[[Shrinkage], Any]
) -> tuple[str, Any, Any]:
    """What an inverse takes: a function's name and its thresholds, or details that ``shrunk`` has shrunk before."""
    if shrinkage is None:
        return "keep", None, None
    if isinstance(shrinkage.function, str):
        return shrinkage.function, sent(shrinkage, shape, stream), None
    return "keep", None, shrunk(shrinkage)


def shrunk(
    plan: Plan, function: Blocks | Posterior, thresholds: NDArray[np.float64], sigma: NDArray[np.float64], stream: Any
) -> Any:
    """All details of the plan shrunk, in a buffer of their layout; ``thresholds`` and ``sigma`` (levels, rows)."""
    s, target = plan.shape, plan.buffer("shrunk", len(plan.details))
    for j, n in enumerate(s.lengths[1:]):
        layout = s.offsets[j], up4(n), n, s.rows
        shrink(function, plan.details, target, layout, thresholds[j], sigma[j], s.dtype, plan.options.threads, stream)
    return target


def shrink(
    function: Blocks | Posterior,
    details: Any,
    target: Any,
    layout: tuple[int, int, int, int],
    thresholds: NDArray[np.float64],
    sigma: NDArray[np.float64],
    dtype: str,
    threads: int,
    stream: Any,
) -> None:
    """Launch what shrinks one level: ``layout`` is where it begins, its pitch, its length and its rows.

    ``thresholds`` and ``sigma`` are of every row, or one for all.
    """
    *_, n, rows = layout
    numbers, constants = [thresholds], []
    if isinstance(function, Posterior):
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = PRIORS[function.prior].weight_of(np.nan_to_num(thresholds / sigma))
        numbers += [sigma, weights]
        launched, items = posterior(dtype, function.prior, function.estimator, threads), n
    else:
        constants = [function.core, function.reach]
        launched, items = block(dtype, threads), -(-n // function.core)
    own = [cuda.to_device(np.array(np.broadcast_to(a, rows)), stream=stream) for a in numbers]
    launched[grid(-(-items // threads), rows), threads, stream](details, target, *layout, *own, *constants)


@cache
def block(dtype: str, threads: int) -> Any:
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
def posterior(dtype: str, prior: str, estimator: str, threads: int) -> Any:
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

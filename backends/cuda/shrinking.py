"""Details shrunk by what takes more than a threshold: blocks by their energy, posteriors. On the device, in float64."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.blocks import Blocks
from wavefilt.posterior import FAR, PRIORS, ROUNDS, formulas
from wavefilt.shrinkage import Posterior

from .compiler import kernel
from .geometry import ROWS, up4
from .plan import Plan, grid
from .target import cuda, device


def shrunk(
    plan: Plan, function: Blocks | Posterior, thresholds: NDArray[np.float64], sigma: NDArray[np.float64], stream: Any
) -> Any:
    """All details of the plan shrunk, in a buffer of their layout; ``thresholds`` and ``sigma`` (levels, rows)."""
    s, threads, target = plan.shape, plan.options.threads, plan.buffer("shrunk", len(plan.details))
    thresholds, sigma = (np.broadcast_to(a, (s.level, s.rows)) for a in (thresholds, sigma))
    numbers = [np.ascontiguousarray(thresholds)]
    if isinstance(function, Posterior):
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = PRIORS[function.prior].weight_of(np.nan_to_num(thresholds / sigma))
        numbers += [np.ascontiguousarray(sigma), np.ascontiguousarray(weights)]
        kernel_, constants = posterior(s.dtype, function.prior, function.estimator, threads), []
    else:
        kernel_, constants = block(s.dtype, threads), [function.core, function.reach]
    on_device = [cuda.to_device(a.ravel(), stream=stream) for a in numbers]
    for level in range(1, s.level + 1):
        n = s.lengths[level]
        items = -(-n // constants[0]) if constants else n
        own = [a[(level - 1) * s.rows : level * s.rows] for a in on_device]
        kernel_[grid(-(-items // threads), s.rows), threads, stream](
            plan.details, target, s.offsets[level - 1], up4(n), n, s.rows, *own, *constants
        )
    return target


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

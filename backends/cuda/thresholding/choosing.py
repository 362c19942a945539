"""Noise and thresholds computed on the device, so that a whole denoise is one graph without a host in the middle."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, UNFINISHED
from wavefilt.backends.cuda.plan import NoiseOf
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.statistics.search_window import MEDIAN, ended
from wavefilt.backends.cuda.thresholding.kernels import constant
from wavefilt.options import Options
from wavefilt.thresholding.rules import MAD_TO_SIGMA, bayes_formula
from wavefilt.wavelets.dual_tree import magnitude_quantile


def factors(method: Options, bands: int, samples: int, noise: NoiseOf) -> Floats:
    """`Options.factors`, and for each band what multiplies the quantile of magnitudes that tells the noise."""
    scales = np.full(bands, MAD_TO_SIGMA)
    if noise.parts == 2:
        own = method.bands_of(bands)
        scales = np.array([1 / magnitude_quantile(noise.share, band.correlation or 0.0) for band in own])
    return np.concatenate([*method.factors(bands, samples), scales])


def rows_at_once(levels: int, threads: int) -> int:
    """Rows of a block of `choose`."""
    return max(threads // levels, 1)


@cache
def noise(share: float) -> DeviceFunction:
    """Device function: from the two values around a quantile of ``count`` magnitudes, by what multiplies it."""
    median = share == MEDIAN

    @device
    def quantile(low, high, count, scale):
        a, b = np.float64(low), np.float64(high)
        if median:
            return scale * (0.5 * (a + b))
        place = share * (count - 1)
        part = place - math.floor(place)
        return scale * ((1 - part) * a + part * b)

    return quantile


@cache
def threshold(rule: str, parts: int) -> DeviceFunction:
    """Device function: the threshold of a band, from its noise, its own factor, its energy and how many it has."""
    bayes = device(bayes_formula(max, min, _quotient, _root))

    @device
    def threshold_of(sigma, factor, energy, count):
        if rule == "linear":
            return sigma * factor
        if rule == "fixed":
            return factor
        return bayes(energy / (parts * count), energy, sigma) if sigma > 0 else 0.0

    return threshold_of


@device
def _quotient(a, b):
    return a / b if b > 0 else math.inf


@device
def _root(a):
    return math.sqrt(a)


@cache
def choose(rule: str, sigma_of: str, dtype: str, threads: int, of: NoiseOf) -> Kernel:
    """Kernel from middle values and sums of squares to sigma and thresholds, a thread for each row and level.

    A block has all levels of `rows_at_once`.

    Those of a row whose samples are all equal are 0, and where others share its numbers it is told as what is not
    finite. ``length`` is 0 where rows are panels, which are not looked at.
    ``rule`` is "linear", "fixed" or "bayes"; ``sigma_of`` "level", "global" or "given". In float64, as on the host.
    """
    number, is_constant = np.dtype(dtype).type, constant(threads)
    shared = rule != "fixed" or sigma_of != "given"
    share, parts, directions = of
    mirrored = directions > 1 and sigma_of == "level"
    noise_of, threshold_of, measured = noise(share), threshold(rule, parts), rule == "bayes"

    @device
    def quantile(middle, at, count, scale):
        return noise_of(middle[2 * at], middle[2 * at + 1], count, scale)

    @kernel(rule, sigma_of, dtype, threads, of)
    def choose_kernel(
        x,
        length,
        middle,
        energy,
        counts,
        factors,
        given,
        levels,
        rows,
        groups,
        state,
        searched,
        numbers,
        chosen,
        live,
        flags,
    ):
        """``factors`` has those of `factors`; ``numbers`` get sigma, then thresholds."""
        thread, each = cuda.threadIdx.x, max(threads // levels, 1)
        first = cuda.blockIdx.x * each
        last = min(first + each, rows)
        constants = cuda.shared.array(threads, np.int32)
        above = cuda.shared.array(threads, np.int32)
        dead = is_constant(x, first + thread, last if length > 0 else 0, length)
        constants[thread], above[thread] = 1 if dead else 0, 0
        if dead and shared and groups < rows:
            flags[NOT_FINITE] = 1
        for row in range(cuda.blockIdx.x * threads + thread, searched, cuda.gridDim.x * threads):
            if not ended(state, row):
                flags[UNFINISHED] = 1
        cuda.syncthreads()
        for item in range(thread, each * levels, threads):
            level, own = item // each, item % each
            row = first + own
            if row >= last:
                continue
            group = row if groups > 1 else 0
            segment, i = level * groups + group, level * rows + row
            if sigma_of == "given":
                sigma = given
            else:
                at = level if sigma_of == "level" else 0
                sigma = quantile(middle, at * groups + group, counts[at], factors[2 * levels + at])
                if mirrored:
                    at = level // directions * directions + directions - 1 - level % directions
                    sigma = min(sigma, quantile(middle, at * groups + group, counts[at], factors[2 * levels + at]))
            sigma *= factors[levels + level]
            power, count = (energy[segment], counts[level]) if measured else (0.0, 1.0)
            t = threshold_of(sigma, factors[level], power, count)
            if constants[own] != 0:
                sigma = t = 0.0
            if t - t != 0:  # squares overflowed, or a sample was not finite
                flags[NOT_FINITE] = 1
            if t != 0:
                above[own] = 1
            numbers[i] = sigma
            numbers[levels * rows + i] = t
            chosen[i] = number(t)
        cuda.syncthreads()
        if first + thread < last:
            live[first + thread] = above[thread]

    return choose_kernel

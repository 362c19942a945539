"""Noise and thresholds on the device, and how details are shrunk by more than a threshold.

* `shrink`: the threshold functions, one coefficient at a time, which the inverse kernels apply as they load details
* `choose`: a kernel from medians and energies to thresholds, so that a whole run is one graph without a host in the
  middle. A block has all levels of some rows, a thread one level of one row:

      block       row 0 ... row r-1 of level 0 | row 0 ... row r-1 of level 1 | ...
* `block` and `posterior`: blocks shrunk by their energy, and posteriors, in float64
* `leave` and `marking`: rows from which nothing is removed, and traces whose samples are all equal
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, ROWS, UNFINISHED, grid
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceArray, DeviceFunction, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda, device
from wavefilt.backends.cuda.statistics.block_search import ended
from wavefilt.backends.cuda.statistics.layout import MEDIAN, Band, NoiseOf
from wavefilt.options import Options
from wavefilt.thresholding.empirical_bayes import FAR, PRIORS, ROUNDS, formulas
from wavefilt.thresholding.local import ROUNDING, Blocks, above_rounding
from wavefilt.thresholding.rules import MAD_TO_SIGMA, bayes_formula
from wavefilt.thresholding.shrinkage import FIRM_RATIO, Function, Posterior, Shrinkage
from wavefilt.wavelets.dual_tree import magnitude_quantile

KNOWN = ("soft", "hard", "garrote", "firm")
"""Functions that kernels know; others are applied on the host."""


@cache
def shrink(function: str, dtype: str) -> DeviceFunction:
    """Device function ``(d, t) -> d shrunk`` for one of the four functions, or ``"keep"``."""
    number = np.dtype(dtype).type
    zero, ratio, rest = number(0), number(FIRM_RATIO), number(1) / (number(1) - number(1) / number(FIRM_RATIO))

    def keep(d, t):
        return d

    def soft(d, t):
        return d - max(min(d, t), -t)

    def hard(d, t):
        return zero if abs(d) < t else d

    def garrote(d, t):
        m = abs(d)
        return d - math.copysign(t / m * t, d) if m > t else zero

    def firm(d, t):
        m = abs(d)
        return d if m > ratio * t else math.copysign((m - t) * rest, d) if m > t else zero

    return device({f.__name__: f for f in (keep, soft, hard, garrote, firm)}[function])


def factors(options: Options, bands: int, samples: int, noise: NoiseOf) -> Floats:
    """Return `Options.factors`, and for each band the factor from the quantile of magnitudes to the noise."""
    scales = np.full(bands, MAD_TO_SIGMA)
    if noise.parts == 2:
        own = options.bands_of(bands)
        scales = np.array([1 / magnitude_quantile(noise.share, band.correlation or 0.0) for band in own])
    return np.concatenate([*options.factors(bands, samples), scales])


def rows_at_once(levels: int, threads: int) -> int:
    """Return the rows of a block of `choose`."""
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


class Found(NamedTuple):
    """Middle values (two a segment) and energies of a search, and coefficients of a band; factors and given noise."""

    middle: DeviceArray
    energy: DeviceArray
    counts: DeviceArray
    factors: DeviceArray
    given: float


class Searches(NamedTuple):
    """The states of searches, and their number."""

    state: DeviceArray
    number: int


class Chosen(NamedTuple):
    """Noise and thresholds in float64, thresholds as kernels take them, and rows of which something is removed."""

    numbers: DeviceArray
    thresholds: DeviceArray
    live: DeviceArray


@cache
def choose(rule: str, sigma_of: str, build: Build, of: NoiseOf, local: bool) -> Kernel:
    """Kernel from middle values and sums of squares to sigma and thresholds, a thread for each row and level.

    A block has all levels of `rows_at_once`. Thresholds of a row whose samples are all equal are 0; where others share
    its numbers, that is flagged as a sample that is not finite. ``length`` is 0 where rows are sections, which are not
    searched for such. ``rule`` is "linear", "fixed" or "bayes"; ``sigma_of`` "level", "global" or "given". In float64,
    as on the host. Thresholds that are ``local`` are sent as `above_rounding` returns them.
    """
    number, threads, is_constant = np.dtype(build.dtype).type, build.threads, constant(build.threads)
    shared = rule != "fixed" or sigma_of != "given"
    share, parts, directions = of
    mirrored = directions > 1 and sigma_of == "level"
    rounding = number(ROUNDING * np.finfo(build.dtype).eps)
    noise_of, threshold_of, measured = noise(share), threshold(rule, parts), rule == "bayes"

    @device
    def quantile(middle, at, count, scale):
        return noise_of(middle[2 * at], middle[2 * at + 1], count, scale)

    @kernel(build, rule, sigma_of, of, local)
    def choose_kernel(x, length, levels, rows, groups, found, searches, chosen, flags):
        middle, energy, counts, factors, given = found
        numbers, thresholds, live = chosen
        thread, each = cuda.threadIdx.x, max(threads // levels, 1)
        first = cuda.blockIdx.x * each
        last = min(first + each, rows)
        constants = cuda.shared.array(threads, np.int32)
        above = cuda.shared.array(threads, np.int32)
        dead = is_constant(x, first + thread, last if length > 0 else 0, length)
        constants[thread], above[thread] = 1 if dead else 0, 0
        if dead and shared and groups < rows:
            flags[NOT_FINITE] = 1
        for row in range(cuda.blockIdx.x * threads + thread, searches.number, cuda.gridDim.x * threads):
            if not ended(searches.state, row):
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
            thresholds[i] = number(t)
        cuda.syncthreads()
        if first + thread < last:
            live[first + thread] = above[thread]
            if local:
                largest = number(0)
                for i in range(first + thread, levels * rows, rows):
                    largest = max(largest, thresholds[i])
                for i in range(first + thread, levels * rows, rows):
                    if thresholds[i] <= rounding * largest:
                        thresholds[i] = number(0)

    return choose_kernel


MOST_BLOCKS = 2112  # of a kernel that mostly has nothing to do, but one a row


def sent(shrinkage: Shrinkage, dtype: str, bands: int, rows: int, stream: Stream) -> DeviceArray:
    """Send the thresholds to the device, band by band, in the dtype of the samples."""
    limits = shrinkage.thresholds
    if shrinkage.together is not None:
        limits = above_rounding(limits, np.dtype(dtype))
    values = np.ascontiguousarray(np.broadcast_to(limits, (bands, rows)), dtype)
    found: DeviceArray = cuda.to_device(values.ravel(), stream=stream)
    return found


def shrink_band(
    function: Function,
    details: DeviceArray,
    target: DeviceArray,
    band: Band,
    thresholds: Floats,
    sigma: Floats,
    build: Build,
    stream: Stream,
) -> None:
    """Launch the kernel that shrinks one band by a `Blocks` or a `Posterior`, with numbers for every row or all."""
    numbers, constants, length = [thresholds], list[int](), band.length
    if isinstance(function, Posterior):
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = PRIORS[function.prior].weight_of(np.nan_to_num(thresholds / sigma))
        numbers += [sigma, weights]
        own_kernel, items = posterior(build, function.prior, function.estimator), length
    else:
        assert isinstance(function, Blocks)
        constants = [function.core, function.reach]
        own_kernel, items = block(build), -(-length // function.core)
    own = [cuda.to_device(np.array(np.broadcast_to(a, band.rows)), stream=stream) for a in numbers]
    launch = own_kernel[grid(-(-items // build.threads), band.rows), build.threads, stream]
    launch(details, target, band, *own, *constants)


@cache
def block(build: Build) -> Kernel:
    """Kernel of `Blocks`, a thread for each block."""
    number, threads = np.dtype(build.dtype).type, build.threads

    @kernel(build)
    def block_kernel(details, target, band, thresholds, core, reach):
        begin, stride, length, rows = band
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


@device
def _fast_exp(x):
    return np.float64(math.exp(np.float32(x))) if SIMULATED else np.float64(cuda.libdevice.fast_expf(np.float32(x)))


@device
def _fast_erfc(x):
    return np.float64(math.erfc(np.float32(x)))


NEAR = 12.0
"""From here on the weight does not matter in float32 either, whose exponential would overflow from 13.3 on."""


@cache
def posterior(build: Build, prior: str, estimator: str) -> Kernel:
    """Kernel of `Posterior`, a thread for each detail.

    With fast math, exponentials of the Laplace prior are computed in float32; the formulas of the Cauchy prior have
    differences that would lose all digits.
    """
    number, threads = np.dtype(build.dtype).type, build.threads
    exact = formulas(prior, math.erfc, math.exp, math.expm1, device)
    fast = build.fastmath and prior == "ebayes" and build.dtype == "float32"
    of = formulas(prior, _fast_erfc, _fast_exp, math.expm1, device) if fast else exact
    ratio, tail, shift = of.ratio, of.tail, exact.shift
    far, rounds, mean = NEAR if fast else FAR, ROUNDS // 2 if fast else ROUNDS, estimator == "mean"

    @kernel(build, prior, estimator)
    def posterior_kernel(details, target, band, thresholds, sigma, weights):
        begin, stride, length, rows = band
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
def leaving(build: Build) -> Kernel:
    """Kernel that copies the rows of ``x`` that are not ``live`` to ``y``."""
    threads = build.threads

    @kernel(build)
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
    x: DeviceArray, y: DeviceArray, samples: int, rows: int, live: DeviceArray, build: Build, stream: Stream
) -> None:
    """Copy the rows of ``x`` from which nothing is removed to ``y``."""
    blocks = max(min(-(-samples // build.threads), MOST_BLOCKS // rows), 1)
    leaving(build)[grid(blocks, rows), build.threads, stream](x, y, samples, rows, live)


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
def marking(build: Build) -> Kernel:
    """Kernel that writes a ``value`` for each trace whose samples are all equal, ``step`` elements apart."""
    threads, is_constant = build.threads, constant(build.threads)

    @kernel(build)
    def mark_kernel(x, length, traces, target, first, step, value):
        trace = cuda.blockIdx.x * threads + cuda.threadIdx.x
        if is_constant(x, trace, traces, length):
            target[first + trace * step] = value

    return mark_kernel

"""The MODWT of rows and of sections, and its inverse: how it is cut up, arrays and launches.

A section in C order is filtered along its first axis as one long row, the filter's taps whole rows of the section
apart: in the periodic modes the long row goes round just as each column does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pywt

from wavefilt import threads
from wavefilt.arrays import Array, DType, Floats
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import MODWT, Analysis, Pyramid
from wavefilt.transforms.separable import axes, parts
from wavefilt.wavelets import boundary

from . import entries, launching, memory, team
from .dwt import BLOCK
from .launching import Launch
from .native import GROUP_BYTES, Constant
from .selection import Peak

HALO_SHARE = 8  # levels are fused while the samples that only the windows need stay below this share of a tile


@lru_cache(maxsize=256)
def level_lengths(samples: int, taps: int, mode: str, level: int, start_level: int) -> tuple[int, ...]:
    """Return the number of coefficients of every level, finest first."""
    return tuple(boundary.modwt_length(samples, taps, mode, j, start_level) for j in range(1, level + 1))


def in_tiles(step: int, n: int, table: Sequence[tuple[int, int]], span: int, halo: int, tile: int) -> Launch:
    """Return a launch for rows of n samples, in tiles that are alike and at least as long as their ``span``.

    Kernels get the distance of the first level's taps, the samples, the margins (depth + 2, 2) of the input, of each
    level's details and of the last approximation, the samples and number of the tiles, and the elements of the longest
    buffer.
    """
    count = -(-n // max(tile, span))
    size = -(-n // count)
    count = -(-n // size)
    scratch = size + halo + span + GROUP_BYTES
    arguments = Constant(step, n, np.array(table, np.int64), size, count, scratch)
    return Launch(arguments, count, size, elements=2 * scratch + 3 * BLOCK, more=4 * GROUP_BYTES)


@lru_cache(maxsize=256)
def plan(
    samples: int, taps: int, mode: str, level: int, start_level: int, tile: int, inverse: bool
) -> tuple[Launch, ...]:
    """Return the launches of a forward transform in order, or of an inverse, which takes them in reverse."""
    found, first = [], 0
    while first < level:
        step, depth = 1 << start_level + first, 1
        while first + depth < level and HALO_SHARE * step * ((2 << depth) - 1) * (taps - 1) <= tile:
            depth += 1
        last, span = first + depth, step * ((1 << depth) - 1) * (taps - 1)
        if inverse:
            above, below = (boundary.modwt_kept(taps, mode, i, start_level) for i in (first, last))
        else:
            above, below = (boundary.modwt_needed(taps, mode, i, level, start_level) for i in (first, last))
            above = above if first else (0, 0)  # the samples are extended when they are read
        table = [above, *(boundary.modwt_kept(taps, mode, i, start_level) for i in range(first + 1, last + 1)), below]
        halo = sum(above if inverse else below)
        launch = in_tiles(step, samples, table, span, halo, tile)
        columns, rest = samples + sum(above), samples + sum(below)
        found.append(replace(launch, work=depth * launch.work, first=first, depth=depth, columns=columns, rest=rest))
        first = last
    return tuple(found)


@lru_cache(maxsize=64)
def synthesis_taps(wavelet: pywt.Wavelet, dtype: DType) -> Constant:
    """Return the filters of the inverse kernel, low and high in turn."""
    bank = np.array([wavelet.rec_lo[::-1], wavelet.rec_hi[::-1]]) / np.sqrt(2)
    return Constant(np.array(bank.T.ravel(), dtype))


def analysing(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> tuple[Pyramid, list[team.Job]]:
    """Return the pyramid of ``x`` (rows, samples) for at least one level, and the jobs that compute it."""
    (samples,), (wavelet, mode, level, start_level) = x.shape[1:], parts(analysis)
    boundary.check_single(samples, mode)
    launches = plan(samples, wavelet.dec_len, mode, level, start_level, tile, False)
    lengths = level_lengths(samples, wavelet.dec_len, mode, level, start_level)
    outside = boundary.PERIODIC if mode in boundary.ROUND else boundary.code(mode)
    constants = outside, launching.analysis_filters(wavelet, x.dtype, 2**0.5)
    return launching.analysing(entries.MODWT_FORWARD, x, analysis, launches, lengths, constants, peak)


def synthesising(
    pyramid: Pyramid, function: int, thresholds: Floats, out: Array | None, tile: int
) -> tuple[Array, list[team.Job]]:
    """Return the reconstructed rows, and the jobs that compute them.

    Raises ValueError for coefficients that do not belong together: kernels check nothing.
    """
    (wavelet, mode, level, start_level), (samples,) = parts(pyramid.analysis), pyramid.shape
    shape = samples, wavelet.rec_len, mode, level, start_level
    if not isinstance(pyramid, launching.Packed):
        arrays, lengths = pyramid.coefficients, level_lengths(*shape)
        deepest = boundary.modwt_length(*shape)
        pyramid = launching.checked(arrays, pyramid, [(len(arrays[0]), n) for n in (deepest, *reversed(lengths))])
    taps = synthesis_taps(wavelet, pyramid.coefficients[0].dtype)
    launches = plan(*shape, tile, True)
    constants = boundary.PERIODIC, taps
    return launching.synthesising(entries.MODWT_INVERSE, pyramid, launches, function, thresholds, out, *constants)


decompose = partial(launching.decompose, analysing)
reconstruct = partial(launching.reconstruct, synthesising)


GRAIN = 1 << 15
"""Coefficients below which a share of the work is not worth waking a thread."""


@lru_cache(maxsize=256)
def _pass(
    shape: tuple[int, ...], axis: int, taps: int, step: int, periodic: bool, tile: int, inverse: bool
) -> tuple[tuple[int, ...], int, Launch]:
    """Return the shape of the results of one level of sections along an axis, the number of rows, and the launch."""
    (sections, rows, columns), (before, after) = shape, (taps // 2 - 1, taps // 2)
    read = (0, 0)
    if axis == 1:
        step *= columns
    if not periodic:  # more elements are read, before and after each result
        read = (step * after, step * before) if inverse else (step * before, step * after)
        lost = step * (taps - 1)
        rows, columns = (rows - lost // columns, columns) if axis == 1 else (rows, columns - lost)
    count, n = (sections, rows * columns) if axis == 1 else (sections * rows, columns)
    table = [(0, 0), read, read] if inverse else [read, (0, 0), (0, 0)]
    return (sections, rows, columns), count, in_tiles(step, n, table, step * (taps - 1), 0, tile)


def _split(x: Array, analysis: Analysis, axis: int, j: int, tile: int, peak: Peak | None = None) -> tuple[Array, Array]:
    """Return the low-pass and high-pass coefficients of level j of sections along an axis."""
    wavelet, mode, _, start_level = parts(analysis)
    step = 1 << start_level + j - 1
    shape, rows, launch = _pass(x.shape, axis, wavelet.dec_len, step, mode in boundary.ROUND, tile, False)
    low, high = (memory.empty(shape, x.dtype) for _ in range(2))
    filters = launching.analysis_filters(wavelet, x.dtype, 2**0.5)
    arguments = memory.address(x), memory.addresses([high]), memory.address(low), boundary.PERIODIC, filters
    job = launching.job(entries.MODWT_FORWARD, x.dtype, rows, launch, arguments, (x, low, high), peak)
    launching.run([job], peak)
    return low, high


def _joined(
    low: Array, high: Array, analysis: Analysis, axis: int, j: int, tile: int, function: int, thresholds: Floats
) -> Array:
    """Undo `_split`, with the high-pass coefficients shrunk by ``thresholds`` (1, rows)."""
    wavelet, mode, _, start_level = parts(analysis)
    step = 1 << start_level + j - 1
    shape, rows, launch = _pass(low.shape, axis, wavelet.rec_len, step, mode in boundary.ROUND, tile, True)
    out, target = memory.placed(shape, low.dtype)
    coefficients = target, memory.addresses([high]), memory.address(low)
    arguments = *coefficients, function, thresholds, boundary.PERIODIC, synthesis_taps(wavelet, low.dtype)
    team.run([launching.job(entries.MODWT_INVERSE, low.dtype, rows, launch, arguments, (low, high, out))])
    return out


def decompose_sections(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """Return the coefficients of ``x`` (sections, rows, columns) for at least one level."""
    shape, along, details = x.shape[1:], axes(analysis), list[Array]()
    for axis, own in enumerate(along, 1):
        x = MODWT.extend(x, own, axis)
    x = memory.packed(x)
    for j in range(1, analysis.level + 1):
        low, high = _split(x, along[1], 2, j, tile, peak)
        peak = None
        (x, horizontal), (vertical, diagonal) = (_split(c, along[0], 1, j, tile) for c in (low, high))
        rows, columns = (MODWT.kept(c, own, j) for c, own in zip(diagonal.shape[1:], along, strict=True))
        details += [memory.packed(c[:, rows, columns]) for c in (diagonal, vertical, horizontal)]
    return Pyramid((x, *reversed(details)), analysis, shape)


def reconstruct_sections(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """Return the reconstructed sections. Raises ValueError for coefficients that do not belong together."""
    analysis, level, shape = pyramid.analysis, pyramid.level, pyramid.shape
    along, levels = axes(analysis), [pyramid.level, *(j for j in range(level, 0, -1) for _ in range(3))]
    sections = len(pyramid.coefficients[0])
    wanted = []
    for j in levels:
        more = (boundary.modwt_length(0, own.taps, own.modes[0], j, own.start_level) for own in along)
        wanted.append((sections, *(n + m for n, m in zip(shape, more, strict=True))))
    checked = launching.checked(pyramid.coefficients, pyramid, wanted)
    x, *details = checked.coefficients
    function, thresholds = launching.shrinking(shrinkage, checked)
    for j in range(level, 0, -1):
        (horizontal, vertical, diagonal), details = details[:3], details[3:]
        place = 3 * (j - 1)
        if shrinkage is not None:  # a kernel shrinks one of the two bands that it joins
            vertical = _shrunk(vertical, shrinkage, place + 1)
        own = [np.ascontiguousarray(thresholds[i : i + 1]) for i in (place + 2, place)]
        low = _joined(x, horizontal, along[0], 1, j, tile, function, own[0])
        high = _joined(vertical, diagonal, along[0], 1, j, tile, function, own[1])
        kept = np.empty((1, sections * low.shape[1]))
        x = _joined(low, high, along[1], 2, j, tile, launching.KEEP, kept)
    return np.asarray(x)


def _shrunk(band: Array, shrinkage: Shrinkage, place: int) -> Array:
    rows = band.reshape(len(band), -1)
    out = np.empty_like(rows)

    def work(begin: int, end: int) -> None:
        out[:, begin:end] = shrinkage.of_level(place, rows[:, begin:end])

    threads.parallel(work, rows.shape[1], GRAIN)
    return out.reshape(band.shape)

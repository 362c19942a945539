"""The decimated transform of rows and its inverse: how it is cut up, arrays and launches."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array, Floats
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.transforms.packets import PacketTransform, analysed, one_level
from wavefilt.wavelets import boundary
from wavefilt.wavelets.filters import detail_lengths

from . import entries, launching, memory, team
from .launching import Launch
from .native import GROUP_BYTES, Constant
from .selection import Peak

TILE = 1 << 15
"""Samples of a tile: two of its approximations fit the second-level cache."""

LEAST = 1 << 13
"""The smallest size of a tile where there are fewer tiles than threads need."""
SHARES = 4  # tiles for each thread: one more than the others have makes a call longer by a quarter of it

BLOCK = 512
"""Coefficients computed at a time: their inputs and sums stay in the first-level cache."""
PADDING = 80
"""Elements added to a power of two: buffers a multiple of 4 KiB apart would evict each other."""

HALO_SHARE = 16  # levels are fused while the samples computed twice stay below this share of a tile


@lru_cache(maxsize=256)
def level_lengths(samples: int, taps: int, mode: str, level: int) -> tuple[int, ...]:
    """Return the number of samples, and of coefficients of every level, finest first.

    Raises ValueError where PyWavelets does: a single sample cannot be reflected about itself.
    """
    found = (samples, *detail_lengths(samples, taps, mode, level))
    if 1 in found[:-1] and mode in ("reflect", "antireflect"):
        raise ValueError(f"mode={mode!r} needs more than one sample at every level; use a lower level or another mode")
    return found


def fitting(tile: int, samples: int, number: int) -> int:
    """Return the size of tiles for a total number of samples and of threads."""
    while number > 1 and tile > LEAST and samples < SHARES * number * tile:
        tile //= 2
    return tile


@lru_cache(maxsize=256)
def plan(samples: int, taps: int, mode: str, level: int, tile: int) -> tuple[Launch, ...]:
    """Return the launches of a forward transform, in order; an inverse takes them in reverse.

    Tiles are counted in coefficients of a launch's deepest level: tile 0 is both ends of the row, [0, left) and
    [right, end), since a boundary mode may join them; the others lie between, ``step`` each. A row of one tile has
    left = right = 0.
    """
    sizes = level_lengths(samples, taps, mode, level)
    tile = max(tile, HALO_SHARE * taps)
    found, first = [], 0
    while first < level:
        if sizes[first] <= 2 * tile:
            depth, left, right, step, tiles = level - first, 0, 0, 0, 1
            scratch = sizes[first + 1]
        else:
            depth = 1
            while first + depth < level and HALO_SHARE * (taps - 1) * ((2 << depth) - 1) <= tile:
                depth += 1
            step = tile >> depth
            left = step // 2
            right = (sizes[first] >> depth) - left
            tiles = 1 + -(-(right - left) // step)
            scratch = tile // 2 + ((taps + 4) << depth)
        own = sizes[first : first + depth + 1]
        arguments = Constant(np.array(own, dtype=np.int64), left, right, step, tiles, scratch)
        # four blocks of coefficients, two levels of two pieces, where all these begin and end, and boundary tables
        elements = 4 * (BLOCK + taps // 2 + scratch + 2 * PADDING)
        more = 4 * GROUP_BYTES + 32 * (depth + 1) + 96 * (taps + 1) * depth
        found.append(Launch(arguments, tiles, own[0] // tiles, first, depth, own[0], own[-1], elements, more))
        first += depth
    return tuple(found)


def analysing(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> tuple[Pyramid, list[team.Job]]:
    """Return the pyramid of ``x`` (rows, samples) for at least one level, and the jobs that compute it."""
    wavelet, mode = analysis.wavelets[0], analysis.modes[0]
    tile = fitting(tile, x.size, threads.get_num_threads())
    shape = x.shape[1], wavelet.dec_len, mode, analysis.level
    filters = launching.analysis_filters(wavelet, x.dtype)
    past = launching.past(memory.PASSED, x.shape, x.itemsize)
    constants = boundary.first_input(wavelet.dec_len, mode), boundary.code(mode), past, filters
    launches, lengths = plan(*shape, tile), level_lengths(*shape)[1:]
    return launching.analysing(entries.FORWARD, x, analysis, launches, lengths, constants, peak)


def synthesising(
    pyramid: Pyramid, function: int, thresholds: Floats, out: Array | None, tile: int
) -> tuple[Array, list[team.Job]]:
    """Return the reconstructed rows, and the jobs that compute them.

    Raises ValueError for coefficients that do not belong together: kernels check nothing.
    """
    (samples,), wavelet, mode = pyramid.shape, pyramid.analysis.wavelets[0], pyramid.analysis.modes[0]
    taps, level = wavelet.rec_len, pyramid.level
    if not isinstance(pyramid, launching.Packed):
        (y, *details), lengths = pyramid.coefficients, level_lengths(samples, taps, mode, level)
        y = y[..., : lengths[-1]]  # one that was itself reconstructed may have one sample more than is used
        pyramid = launching.checked((y, *details), pyramid, [(len(y), n) for n in (lengths[-1], *lengths[:0:-1])])
    filters = launching.synthesis_filters(wavelet, pyramid.coefficients[0].dtype)
    shift = taps // 2 - 1 if mode == "periodization" else 0
    y = pyramid.coefficients[0]
    tile = fitting(tile, len(y) * samples, threads.get_num_threads())
    launches = plan(samples, taps, mode, level, tile)
    constants = shift, launching.past(memory.PASSED, (len(y), samples), y.itemsize), filters
    return launching.synthesising(entries.INVERSE, pyramid, launches, function, thresholds, out, *constants)


decompose = partial(launching.decompose, analysing)
reconstruct = partial(launching.reconstruct, synthesising)


def decompose_packets(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """Return the nodes of all levels of ``x`` (rows, samples); the nodes of a level are rows of one batch."""
    peaks = [peak]  # of the samples, which the first level reads

    def split(rows: Array, one: Analysis) -> tuple[Array, ...]:
        return decompose(rows, one, tile, peaks.pop() if peaks else None).coefficients

    return Pyramid(analysed(x, analysis, split), analysis, x.shape[1:])


def reconstruct_packets(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """Return the reconstructed rows, from the best basis if they are shrunk."""
    one, transform = one_level(pyramid.analysis), pyramid.analysis.transform
    assert isinstance(transform, PacketTransform)

    def merge(low: Array, high: Array, length: int) -> Array:
        return reconstruct(Pyramid((low, high), one, (length,)), None, None, tile)

    y = transform.merged(pyramid, shrinkage, merge)
    if out is None:
        return y
    out[...] = y
    return out

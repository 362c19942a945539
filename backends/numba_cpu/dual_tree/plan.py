"""How one level of the dual-tree transform of both axes is cut into tiles."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.backends.numba_cpu.launching import Launch
from wavefilt.backends.numba_cpu.native import Constant
from wavefilt.backends.numba_cpu.target import GROUP_BYTES
from wavefilt.wavelets.dual_tree import DualTree

SCRATCH = 3 << 18
"""Bytes of a tile's filtered rows: they fit the second-level cache."""
ROW, LINES = 1 << 12, 16
"""Complex coefficients of a tile of a row, and lines of so many that kernels work in."""
PAD = 2 * GROUP_BYTES // 4 + 16
"""Elements more than a line has: two groups are written at a time, and lines 4 KiB apart evict each other."""


@lru_cache(maxsize=256)
def launch(sizes: tuple[int, int, int, int], tree: DualTree, level: int, itemsize: int, inverse: bool) -> Launch:
    """The tiles of one level of all panels: ``sizes`` are rows, columns, and complex coefficients down and across."""
    taps = max(len(low) for low in tree.first) if level == 1 else len(tree.later.dec_lo)
    places, group = sizes[2:], GROUP_BYTES // itemsize
    height = min(48 if level == 1 else 24, places[0])
    if level == 1:
        planes, rows, wide, pads = 2, 2 * height + taps + 1, 2, 1
    elif inverse:
        planes, rows, wide, pads = 4, height + taps // 2, 4, 2
    else:
        planes, rows, wide, pads = 4, 4 * height + 2 * taps - 4, 1, 1
    width = max((SCRATCH // (itemsize * planes * rows) - pads * PAD) // wide // group, 1) * group
    across = -(-places[1] // min(width, -(-places[1] // group) * group))
    width = -(-places[1] // across // group) * group  # alike
    down, across = -(-places[0] // height), -(-places[1] // width)
    lines = 32 * (width + taps + PAD)
    elements = planes * rows * (wide * width + pads * PAD) + lines
    arguments = Constant(np.array(sizes, np.int64), np.array([height, width, down, across], np.int64))
    return Launch(arguments, down * across, 4 * sizes[0] * sizes[1] // (down * across), elements=elements)


@lru_cache(maxsize=256)
def row_launch(samples: int, n: int, tree: DualTree, itemsize: int) -> Launch:
    """The tiles of one level of all rows, of so many samples, and complex coefficients at this level."""
    taps = max(tree.dec_len, max(map(len, tree.first)))
    width = min(ROW, n)
    arguments = Constant(np.array([samples, n], np.int64), np.array([width, -(-n // width)], np.int64))
    return Launch(arguments, -(-n // width), 2 * width, elements=LINES * (width + taps + PAD))


@lru_cache(maxsize=64)
def analysis_taps(tree: DualTree, first: bool, dtype: DType) -> Constant:
    """Low-pass and high-pass ones of `kernels.first_forward`, or of both trees of `kernels.forward`."""
    low, high = tree.first[:2] if first else tree.later[:2]
    if first:
        return Constant(*_alike(low, high, 1, dtype))
    return Constant(*(np.ascontiguousarray(taps, dtype) for taps in (low, high, low[::-1], high[::-1])))


@lru_cache(maxsize=64)
def synthesis_taps(tree: DualTree, first: bool, dtype: DType) -> Constant:
    """Those of `kernels.first_inverse`, or those of `kernels.inverse` and its first coefficient."""
    if first:
        return Constant(np.stack(_alike(*tree.first[2:], 0, dtype), 1).ravel())
    low, high = tree.later[:2]
    taps = len(low)
    # tap t takes coefficient k to the place 2k + t + 1 - taps/2 of its tree
    offsets = {
        (p, t): (p + taps // 2 - 1 - t) // 2 for t in range(taps) for p in (0, 1) if (p + taps // 2 - 1 - t) % 2 == 0
    }
    least, most = min(offsets.values()), max(offsets.values())
    found = np.zeros((2, 2, most - least + 1, 2), dtype)  # tree, parity of the place, coefficient, low or high
    for (parity, t), offset in offsets.items():
        found[0, parity, offset - least] = low[t], high[t]
        found[1, parity, offset - least] = low[taps - 1 - t], high[taps - 1 - t]
    return Constant(*(np.ascontiguousarray(one.ravel()) for tree_taps in found for one in tree_taps), -least)


def _alike(low: Array, high: Array, more: int, dtype: DType) -> list[Array]:
    """Symmetric taps about one middle, in arrays of one odd length and ``more``."""
    length = max(len(low), len(high))
    sides = [(length - len(taps)) // 2 for taps in (low, high)]
    return [np.pad(taps, (side, side + more)).astype(dtype) for taps, side in zip((low, high), sides, strict=True)]

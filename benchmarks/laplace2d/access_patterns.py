"""What the memory accesses of the 2-D Laplace kernels cost, counted from the address that each lane of a warp uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import fmean

from wavefilt.benchmarks.laplace2d.variants import BORDER, CHANNELS, CHUNK, RADIUS, ROWS, SIDE, Variant

WARP, BANKS, WORD, SECTOR, LINE = 32, 32, 4, 32, 128
BLOCKS = range(1, 9)
"""Blocks side by side inside of an image: 48 bytes of a row each, at eight alignments to the cache's lines."""

Access = list[int]
"""The addresses in bytes of the lanes that take part in one access of a warp; no lane's bytes cross a line."""


def conflict_degree(access: Access) -> int:
    """Times that shared memory is gone through for an access of at most a word a lane: most different words of a bank.

    1 is an access without conflicts; lanes that use the same word share it.
    """
    words = {address // WORD for address in access}
    return max(Counter(word % BANKS for word in words).values())


def tile_reads(variant: Variant) -> Iterator[Access]:
    """Reads of the tile, of every warp of a block."""
    for access in _pixels(variant, variant.pitch, SIDE):
        yield [variant.itemsize * place for place in access]


def tile_writes(variant: Variant) -> Iterator[Access]:
    """Writes of the tile, of every warp of a block."""
    for access in _items(variant, variant.pitch):
        yield [variant.itemsize * place for place in access]


def image_reads(variant: Variant, width: int) -> Iterator[Access]:
    """Reads of an image so wide, of every warp of some blocks; where they are wide, those of one row by one warp."""
    length = CHANNELS * width
    corner = (variant.block[1] - RADIUS) * length - BORDER
    if variant.memory == "wide":
        # 8 bytes before, 16 and 8 behind
        return _at(variant, 0, ([CHUNK * lane + shift for lane in range(WARP)] for shift in (-CHUNK // 2, 0, CHUNK)))
    parts = _items(variant, length) if variant.memory == "tile" else _pixels(variant, length, SIDE)
    return _at(variant, corner, parts)


def image_writes(variant: Variant, width: int) -> Iterator[Access]:
    """Writes of the result, likewise."""
    if variant.memory == "wide":
        return _at(variant, 0, [[CHUNK * lane for lane in range(WARP)]])
    length = CHANNELS * width
    return _at(variant, variant.block[1] * length, _pixels(variant, length, 1))


def lines(accesses: Iterable[Access]) -> float:
    """Lines of the cache in an access, in the mean: each passes the pipe of L1 by itself."""
    return fmean(len({address // LINE for address in access}) for access in accesses)


def bytes_read(variant: Variant, width: int) -> float:
    """Bytes that an SM reads for a pixel of the result, in sectors, if its own cache keeps what a block reads."""
    across, rows, reach, length = CHANNELS * variant.block[0], variant.block[1], BORDER, CHANNELS * width
    if variant.memory == "wide":
        across, rows, reach, length = CHUNK * variant.block[0], ROWS * rows, CHUNK // 2, 0
    starts = [across * block - reach + row * length for block in BLOCKS for row in range(rows + 2 * RADIUS)]
    sectors = sum((start + across + 2 * reach - 1) // SECTOR - start // SECTOR + 1 for start in starts)
    return SECTOR * sectors / (len(BLOCKS) * across * rows / CHANNELS)


def _at(variant: Variant, corner: int, accesses: Iterable[Access]) -> Iterator[Access]:
    """The same accesses by each of `BLOCKS`, the first row and column of block 0 lying at ``corner``."""
    across = variant.block[0] * (CHUNK if variant.memory == "wide" else CHANNELS)
    for access in accesses:
        for block in BLOCKS:
            yield [corner + across * block + address for address in access]


def _pixels(variant: Variant, pitch: int, side: int) -> Iterator[Access]:
    """A thread a pixel: the numbers of ``side`` times ``side`` pixels from its own on, rows ``pitch`` apart."""
    across = variant.block[0]
    for warp in range(0, variant.threads, WARP):
        lanes = [divmod(thread, across) for thread in range(warp, min(warp + WARP, variant.threads))]
        for i in range(side):
            for j in range(CHANNELS * side):
                yield [(y + i) * pitch + CHANNELS * x + j for y, x in lanes]


def _items(variant: Variant, pitch: int) -> Iterator[Access]:
    """A thread a number of the tile, row after row."""
    used, rows = variant.tile
    for first in range(0, used * rows, WARP):
        yield [item // used * pitch + item % used for item in range(first, min(first + WARP, used * rows))]

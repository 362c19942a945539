"""The GPU kernels of the 5x5 Laplace filter as data, and their operation counts for the SKE model.

Reads, writes, additions and barriers are those of the source. The other instructions of a warp (addresses, guards,
moves) were read from SASS for sm_90; a test compares the sum with the compiled code. The cost of a memory access is
counted from the byte address of each lane, in arrays (accesses, lanes of a warp).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wavefilt.benchmarks.common.tables import Row
from wavefilt.ske.calibrated import Launch

RADIUS, CHANNELS = 2, 3
SIDE = 2 * RADIUS + 1
"""Pixels of a side of the filter, whose weights are all -1, that of the centre 24."""
BORDER = RADIUS * CHANNELS
"""Bytes of a row that the filter needs on each side."""
CHUNK, ROWS = 16, 16
"""Bytes of a row, and rows, of a thread of the last variant."""
ALIGNMENT = 128
"""Bytes that its rows are a multiple of, so that a warp reads four whole cache lines at a time."""

Memory = Literal["global", "tile", "wide"]
Number = Literal["uint8", "float32"]


@dataclass(frozen=True)
class Variant:
    """A kernel with ``block`` threads across and down; a thread computes a pixel, or `CHUNK` bytes of `ROWS` rows.

    A ``tile`` holds the block's pixels and their neighbours as numbers of type ``held``, and each of its rows ends
    with ``padding`` unused numbers; bytes are added as integers.
    """

    name: str
    heads: tuple[str, str]
    what: str
    memory: Memory = "tile"
    block: tuple[int, int] = (16, 16)
    held: Number = "uint8"
    padding: int = 0
    registers: int = 32
    """Registers of a thread, compiled for sm_90; a test compares them with the compiler's."""

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1]

    @property
    def itemsize(self) -> int:
        """Bytes of a number of the tile."""
        return 1 if self.held == "uint8" else 4

    @property
    def tile(self) -> tuple[int, int]:
        """Used numbers of a row of the tile, and rows."""
        return CHANNELS * self.block[0] + 2 * BORDER, self.block[1] + 2 * RADIUS

    @property
    def pitch(self) -> int:
        """Numbers from one row of the tile to the next."""
        return self.tile[0] + self.padding

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        return self.pitch * self.tile[1] * self.itemsize if self.memory == "tile" else 0

    def grid(self, width: int, height: int) -> tuple[int, int]:
        """Return the blocks across and down an image."""
        columns, rows = (pitch(width) // CHUNK, -(-height // ROWS)) if self.memory == "wide" else (width, height)
        return -(-columns // self.block[0]), -(-rows // self.block[1])


def pitch(width: int) -> int:
    """Return the bytes from one aligned row to the next, as cudaMallocPitch lays them out."""
    return -(-CHANNELS * width // ALIGNMENT) * ALIGNMENT


_FLOAT = "bytes converted to float once, as the tile is written"
_PADDED = "a float tile, its rows 20 words longer so that two share no bank"
_ROW = "a float tile, a block of 32x8: a warp reads one row"
_WIDE = f"no tile: 16 aligned bytes and {ROWS} rows a thread, running column sums"
_READ = "each of the 25 pixels read from global memory"
VARIANTS = (
    Variant("gpu_global", ("GPU", "global"), _READ, "global", registers=40),
    Variant("gpu_tile", ("GPU", "byte tile"), "20x20 pixels in shared memory, integer arithmetic"),
    Variant("gpu_float", ("GPU", "float tile"), _FLOAT, held="float32"),
    Variant("gpu_padded", ("GPU", "padded tile"), _PADDED, held="float32", padding=20),
    Variant("gpu_row", ("GPU", "row a warp"), _ROW, block=(32, 8), held="float32"),
    Variant("gpu_wide", ("GPU", "wide"), _WIDE, "wide", (32, 4), registers=48),
)

Integers = NDArray[np.int64]
WARP, BANKS, WORD, SECTOR, LINE = 32, 32, 4, 32, 128
BLOCKS = np.arange(1, 9)
"""Blocks side by side inside of an image: 48 bytes of a row each, at eight alignments to the cache's lines."""
READS = CHANNELS * SIDE**2
"""Reads, and additions, of a thread that makes a pixel."""
PER_THREAD, PER_FILL, PER_BYTE = 30, 18, 4
"""Other instructions of a thread: in total, for each number of the tile, and for each byte of the result."""
PER_LINE = 7
"""Those of the kernel without a tile for each row."""
PER_ROW, PER_ROW_ABOVE = 264, 68
"""Those of the wide kernel for each row of the result, and for each row above the first."""
LOADS = {
    "global": {"global": 1, "l1": 2},
    "tile": {"global": 1, "shared": 2},
    "wide": {"global": ROWS + 2 * RADIUS},
}
"""Loads that wait for each other, by the variant's memory."""
WIDE_READS = 3 * (ROWS + 2 * RADIUS) + 3 * (ROWS - 1)
"""Reads of a thread: a chunk with its neighbours, of each row that enters the sums and each that leaves them."""


def instructions(variant: Variant) -> dict[str, float]:
    """Return the instructions of an average warp by class, without wavefronts; accesses and conversions are "other"."""
    if variant.memory == "wide":
        integers = PER_THREAD + ROWS * PER_ROW + 2 * RADIUS * PER_ROW_ABOVE
        return {"int": integers, "other": WIDE_READS + 2 * ROWS}
    fills = _fills(variant)
    counts = {"int": PER_THREAD + PER_FILL * fills + PER_BYTE * CHANNELS, "other": READS + CHANNELS + 2 * fills}
    if variant.memory == "global":
        counts["int"] += SIDE * PER_LINE
        counts["other"] += CHANNELS  # the centre once more
    if variant.held == "float32":
        counts["fma"] = READS + CHANNELS  # SASS multiplies and subtracts at once
        counts["other"] += fills + CHANNELS  # conversions
    else:
        counts["int"] += READS / 2  # SASS adds two numbers at a time
    return counts


def wavefronts(variant: Variant, width: int) -> float:
    """Return the wavefronts of an average warp in L1 and shared memory."""
    read, written = (lines(of(variant, width)) for of in (image_reads, image_writes))
    if variant.memory == "wide":
        return WIDE_READS * read + 2 * ROWS * written  # the row of the result is read as it is written
    if variant.memory == "global":
        return (READS + CHANNELS) * read + CHANNELS * written
    reads, writes = map(fmean, conflicts(variant).values())
    return READS * reads + _fills(variant) * (writes + read) + CHANNELS * written


def launch(variant: Variant, width: int, height: int) -> Launch:
    """Return the operation counts of the kernel over an image."""
    across, down = variant.grid(width, height)
    pixels = (pitch(width) / CHANNELS if variant.memory == "wide" else width) * height
    counts = instructions(variant) | {"wavefront": wavefronts(variant, width)}
    moved = pixels * bytes_read(variant, width), pixels * CHANNELS
    held: Row = {"registers": variant.registers, "shared": variant.shared}
    work = (counts, LOADS[variant.memory], int(variant.memory == "tile"), *moved, 2 * CHANNELS * pixels)
    return Launch(variant.name, across * down, variant.threads, *work, **held)


def _fills(variant: Variant) -> float:
    """Return the writes to the tile by an average warp, those of its lanes counting as one."""
    used, rows = variant.tile
    return -(-used * rows // WARP) * WARP / variant.threads if variant.memory == "tile" else 0


def conflict_degree(access: Sequence[int] | Integers) -> int:
    """Return the transactions of shared memory for an access: the most different words of a bank; 1 is no conflict."""
    return int(np.bincount(np.unique(np.asarray(access) // WORD) % BANKS).max())


def conflicts(variant: Variant) -> dict[str, list[int]]:
    """Return the conflict degrees of reads and writes of the tile, for every warp of a block."""
    accesses = {"reads": _pixels(variant, variant.pitch, SIDE), "writes": _items(variant, variant.pitch)}
    return {name: [conflict_degree(variant.itemsize * lanes) for lanes in of] for name, of in accesses.items()}


def image_reads(variant: Variant, width: int) -> Integers:
    """Return the reads of an image by every warp of some blocks; if they are wide, those of one row by one warp."""
    if variant.memory == "wide":  # 8 bytes before, 16 and 8 behind
        return _at(variant, 0, CHUNK * np.arange(WARP) + np.array([[-CHUNK // 2], [0], [CHUNK]]))
    length = CHANNELS * width
    parts = _items(variant, length) if variant.memory == "tile" else _pixels(variant, length, SIDE)
    return _at(variant, (variant.block[1] - RADIUS) * length - BORDER, parts)


def image_writes(variant: Variant, width: int) -> Integers:
    """Return the writes of the result, likewise."""
    if variant.memory == "wide":
        return _at(variant, 0, CHUNK * np.arange(WARP))
    length = CHANNELS * width
    return _at(variant, variant.block[1] * length, _pixels(variant, length, 1))


def lines(accesses: Integers) -> float:
    """Return the average cache lines of an access."""
    return fmean(len(np.unique(access)) for access in accesses // LINE)


def bytes_read(variant: Variant, width: int) -> float:
    """Return the bytes that an SM reads per pixel, in sectors, if its cache keeps the reads of a block."""
    across, rows, reach, length = CHANNELS * variant.block[0], variant.block[1], BORDER, CHANNELS * width
    if variant.memory == "wide":
        across, rows, reach, length = CHUNK * variant.block[0], ROWS * rows, CHUNK // 2, 0
    starts = across * BLOCKS[:, None] - reach + length * np.arange(rows + 2 * RADIUS)
    sectors = (starts + across + 2 * reach - 1) // SECTOR - starts // SECTOR + 1
    return float(SECTOR * sectors.sum() / (len(BLOCKS) * across * rows / CHANNELS))


def _at(variant: Variant, corner: int, accesses: Integers) -> Integers:
    """Return the same accesses by each of `BLOCKS`, with the first row and column of block 0 at ``corner``."""
    across = variant.block[0] * (CHUNK if variant.memory == "wide" else CHANNELS)
    return (corner + across * BLOCKS[:, None, None] + accesses).reshape(-1, WARP)


def _pixels(variant: Variant, pitch: int, side: int) -> Integers:
    """Return the accesses of a thread per pixel to ``side`` by ``side`` pixels from its own, rows ``pitch`` apart."""
    y, x = np.divmod(np.arange(variant.threads).reshape(-1, 1, 1, WARP), variant.block[0])
    i, j = np.ogrid[:side, : CHANNELS * side]
    return np.asarray((y + i[..., None]) * pitch + CHANNELS * x + j[..., None]).reshape(-1, WARP)


def _items(variant: Variant, pitch: int) -> Integers:
    """Return the accesses of a thread per number of the tile; lanes without one use the last, which costs nothing."""
    used, rows = variant.tile
    item = np.minimum(np.arange(-(-used * rows // WARP) * WARP), used * rows - 1)
    return np.asarray(item // used * pitch + item % used).reshape(-1, WARP)

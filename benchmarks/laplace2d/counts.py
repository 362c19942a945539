"""What a launch of each 2-D Laplace kernel does, counted for the SKE model from how the variant is made.

Reads, writes, additions and barriers are those of the source. What else a warp issues (addresses, guards, moves) was
read from SASS for sm_90; a test compares the sum with the compiled code. What memory accesses cost is counted from the
address in bytes that each lane uses: arrays (accesses, lanes of a warp).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.laplace2d.variants import BORDER, CHANNELS, CHUNK, RADIUS, ROWS, SIDE, Variant, pitch
from wavefilt.ske import occupancy
from wavefilt.ske.calibrated import Launch

Integers = NDArray[np.int64]
WARP, BANKS, WORD, SECTOR, LINE = 32, 32, 4, 32, 128
BLOCKS = np.arange(1, 9)
"""Blocks side by side inside of an image: 48 bytes of a row each, at eight alignments to the cache's lines."""
READS = CHANNELS * SIDE**2
"""Reads, and additions, of a thread that makes a pixel."""
PER_THREAD, PER_FILL, PER_BYTE = 30, 18, 4
"""Other instructions of a thread: in all, for each number of the tile that it writes, for each byte of the result."""
PER_LINE = 7
"""Those of the kernel without a tile for each row that it reads."""
PER_ROW, PER_ROW_ABOVE = 264, 68
"""Those of the wide kernel for each row of the result, and for each of the rows above the first."""
LOADS = {
    "global": {"global": 1, "l1": 2},
    "tile": {"global": 1, "shared": 2},
    "wide": {"global": ROWS + 2 * RADIUS},
}
"""Loads that wait for each other, by the variant's memory."""
WIDE_READS = 3 * (ROWS + 2 * RADIUS) + 3 * (ROWS - 1)
"""Of a thread: a chunk with its neighbours of each new row and of each that is left behind."""


def instructions(variant: Variant) -> dict[str, float]:
    """Of an average warp by class, without wavefronts; accesses and conversions count as "other"."""
    if variant.memory == "wide":
        integers = PER_THREAD + ROWS * PER_ROW + 2 * RADIUS * PER_ROW_ABOVE
        return {"int": integers, "other": WIDE_READS + 2 * ROWS}
    fills = _fills(variant)
    counts = {"int": PER_THREAD + PER_FILL * fills + PER_BYTE * CHANNELS, "other": READS + CHANNELS + 2 * fills}
    if variant.memory == "global":
        counts["int"] += SIDE * PER_LINE
        counts["other"] += CHANNELS  # the centre once more
    if variant.summed == "float32":
        counts["fma"] = READS + CHANNELS  # SASS multiplies and subtracts at once
        counts["other"] += (READS if variant.held == "uint8" else fills) + CHANNELS  # conversions
    else:
        counts["int"] += READS / 2  # SASS adds two numbers at a time
    return counts


def wavefronts(variant: Variant, width: int) -> float:
    """Wavefronts in which the accesses of an average warp pass the pipe of L1 and shared memory."""
    read, written = (lines(of(variant, width)) for of in (image_reads, image_writes))
    if variant.memory == "wide":
        return WIDE_READS * read + 2 * ROWS * written  # the row of the result is read as it is written
    if variant.memory == "global":
        return (READS + CHANNELS) * read + CHANNELS * written
    reads, writes = map(fmean, conflicts(variant).values())
    return READS * reads + _fills(variant) * (writes + read) + CHANNELS * written


def launch(variant: Variant, width: int, height: int, registers: int | None = None) -> Launch:
    """The kernel over an image; ``registers`` of a thread instead of the declared."""
    across, down = variant.grid(width, height)
    pixels = (pitch(width) / CHANNELS if variant.memory == "wide" else width) * height
    counts = instructions(variant) | {"wavefront": wavefronts(variant, width)}
    moved = pixels * bytes_read(variant, width), pixels * CHANNELS
    held: Row = {"registers": registers or variant.registers, "shared": variant.shared}
    work = (counts, LOADS[variant.memory], int(variant.memory == "tile"), *moved, 2 * CHANNELS * pixels)
    return Launch(variant.name, across * down, variant.threads, *work, **held)


def explained(variant: Variant, made: Launch, width: int, capability: str) -> Row:
    """What its time is made of: what an SM of this ``capability`` holds, and for a pixel its bytes and instructions.

    Conflicts are the times that shared memory is gone through for a warp's access, in the mean and at most.
    """
    held = occupancy(capability, made.threads, made.registers, made.shared)
    pixels = ROWS * CHUNK / CHANNELS if variant.memory == "wide" else 1  # of a thread
    facts: Row = {"registers": made.registers, "shared": made.shared, "blocks": held.blocks, "warps": held.warps}
    facts |= {"occupancy": held.share, "limit": held.limit}
    facts["bytes"] = {"DRAM": 2 * CHANNELS, "L2": bytes_read(variant, width) + CHANNELS}
    facts["instructions"] = sum(instructions(variant).values()) / pixels
    if variant.memory == "tile":
        facts["conflicts"] = {n: {"mean": fmean(of), "most": max(of)} for n, of in conflicts(variant).items()}
        facts["bytes"]["shared"] = variant.itemsize * (READS + _fills(variant))
    return facts


def _fills(variant: Variant) -> float:
    """Numbers of the tile that an average warp writes, those of its lanes at once."""
    used, rows = variant.tile
    return -(-used * rows // WARP) * WARP / variant.threads if variant.memory == "tile" else 0


def conflict_degree(access: Sequence[int] | Integers) -> int:
    """Times that shared memory is gone through for an access of at most a word a lane: most different words of a bank.

    1 is an access without conflicts; lanes that use the same word share it.
    """
    return int(np.bincount(np.unique(np.asarray(access) // WORD) % BANKS).max())


def conflicts(variant: Variant) -> dict[str, list[int]]:
    """Conflict degrees of reads and writes of the tile, of every warp of a block."""
    accesses = {"reads": _pixels(variant, variant.pitch, SIDE), "writes": _items(variant, variant.pitch)}
    return {name: [conflict_degree(variant.itemsize * lanes) for lanes in of] for name, of in accesses.items()}


def image_reads(variant: Variant, width: int) -> Integers:
    """Reads of an image so wide, of every warp of some blocks; where they are wide, those of one row by one warp."""
    if variant.memory == "wide":  # 8 bytes before, 16 and 8 behind
        return _at(variant, 0, CHUNK * np.arange(WARP) + np.array([[-CHUNK // 2], [0], [CHUNK]]))
    length = CHANNELS * width
    parts = _items(variant, length) if variant.memory == "tile" else _pixels(variant, length, SIDE)
    return _at(variant, (variant.block[1] - RADIUS) * length - BORDER, parts)


def image_writes(variant: Variant, width: int) -> Integers:
    """Writes of the result, likewise."""
    if variant.memory == "wide":
        return _at(variant, 0, CHUNK * np.arange(WARP))
    length = CHANNELS * width
    return _at(variant, variant.block[1] * length, _pixels(variant, length, 1))


def lines(accesses: Integers) -> float:
    """Lines of the cache in an access, in the mean: each passes the pipe of L1 by itself."""
    return fmean(len(np.unique(access)) for access in accesses // LINE)


def bytes_read(variant: Variant, width: int) -> float:
    """Bytes that an SM reads for a pixel of the result, in sectors, if its own cache keeps what a block reads."""
    across, rows, reach, length = CHANNELS * variant.block[0], variant.block[1], BORDER, CHANNELS * width
    if variant.memory == "wide":
        across, rows, reach, length = CHUNK * variant.block[0], ROWS * rows, CHUNK // 2, 0
    starts = across * BLOCKS[:, None] - reach + length * np.arange(rows + 2 * RADIUS)
    sectors = (starts + across + 2 * reach - 1) // SECTOR - starts // SECTOR + 1
    return float(SECTOR * sectors.sum() / (len(BLOCKS) * across * rows / CHANNELS))


def _at(variant: Variant, corner: int, accesses: Integers) -> Integers:
    """The same accesses by each of `BLOCKS`, the first row and column of block 0 lying at ``corner``."""
    across = variant.block[0] * (CHUNK if variant.memory == "wide" else CHANNELS)
    return (corner + across * BLOCKS[:, None, None] + accesses).reshape(-1, WARP)


def _pixels(variant: Variant, pitch: int, side: int) -> Integers:
    """A thread a pixel: the numbers of ``side`` times ``side`` pixels from its own on, rows ``pitch`` apart."""
    y, x = np.divmod(np.arange(variant.threads).reshape(-1, 1, 1, WARP), variant.block[0])
    i, j = np.ogrid[:side, : CHANNELS * side]
    return np.asarray((y + i[..., None]) * pitch + CHANNELS * x + j[..., None]).reshape(-1, WARP)


def _items(variant: Variant, pitch: int) -> Integers:
    """A thread a number of the tile, row after row; lanes without one count as the last, which costs nothing."""
    used, rows = variant.tile
    item = np.minimum(np.arange(-(-used * rows // WARP) * WARP), used * rows - 1)
    return np.asarray(item // used * pitch + item % used).reshape(-1, WARP)

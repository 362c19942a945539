"""What a launch of each 2-D Laplace kernel does, counted for the SKE model from how the variant is made.

Reads, writes, additions and barriers are those of the source. What else a warp issues (addresses, guards, moves) was
read from SASS for sm_90; a test compares the sum with the compiled code.
"""

from __future__ import annotations

from statistics import fmean

from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.laplace2d.variants import CHANNELS, CHUNK, RADIUS, ROWS, SIDE, Variant, pitch
from wavefilt.ske import occupancy
from wavefilt.ske.calibrated import Launch

from . import access_patterns as patterns

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
    read, written = (patterns.lines(of(variant, width)) for of in (patterns.image_reads, patterns.image_writes))
    if variant.memory == "wide":
        return WIDE_READS * read + 2 * ROWS * written  # the row of the result is read as it is written
    if variant.memory == "global":
        return (READS + CHANNELS) * read + CHANNELS * written
    reads, writes = (
        fmean(map(patterns.conflict_degree, of(variant))) for of in (patterns.tile_reads, patterns.tile_writes)
    )
    return READS * reads + _fills(variant) * (writes + read) + CHANNELS * written


def launch(variant: Variant, width: int, height: int, registers: int | None = None) -> Launch:
    """The kernel over an image; ``registers`` of a thread instead of the declared."""
    across, down = variant.grid(width, height)
    pixels = (pitch(width) / CHANNELS if variant.memory == "wide" else width) * height
    counts = instructions(variant) | {"wavefront": wavefronts(variant, width)}
    moved = pixels * (patterns.bytes_read(variant, width) + CHANNELS)
    held: Row = {"registers": registers or variant.registers, "shared": variant.shared}
    work = (counts, LOADS[variant.memory], int(variant.memory == "tile"), moved, 2 * CHANNELS * pixels)
    return Launch(variant.name, across * down, variant.threads, *work, **held)


def explained(variant: Variant, made: Launch, width: int, capability: str) -> Row:
    """What its time is made of: what an SM of this ``capability`` holds, and for a pixel its bytes and instructions.

    Conflicts are the times that shared memory is gone through for a warp's access, in the mean and at most.
    """
    held = occupancy(capability, made.threads, made.registers, made.shared)
    pixels = ROWS * CHUNK / CHANNELS if variant.memory == "wide" else 1  # of a thread
    facts: Row = {"registers": made.registers, "shared": made.shared, "blocks": held.blocks, "warps": held.warps}
    facts |= {"occupancy": held.share, "limit": held.limit}
    facts["bytes"] = {"DRAM": 2 * CHANNELS, "L2": patterns.bytes_read(variant, width) + CHANNELS}
    facts["instructions"] = sum(instructions(variant).values()) / pixels
    if variant.memory == "tile":
        degrees = {
            name: [patterns.conflict_degree(access) for access in of(variant)]
            for name, of in (("reads", patterns.tile_reads), ("writes", patterns.tile_writes))
        }
        facts["conflicts"] = {name: {"mean": fmean(of), "most": max(of)} for name, of in degrees.items()}
        facts["bytes"]["shared"] = variant.itemsize * (READS + _fills(variant))
    return facts


def _fills(variant: Variant) -> float:
    """Numbers of the tile that an average warp writes, those of its lanes at once."""
    used, rows = variant.tile
    return -(-used * rows // patterns.WARP) * patterns.WARP / variant.threads if variant.memory == "tile" else 0

"""What the GPU kernels of the 1-D Laplace operator do, counted: for the SKE model, as functions of samples and block.

It follows from their loops, so it needs neither a GPU nor a compiler; tests compare it with the compiled kernels.
Integer and other instructions were read from SASS for sm_90.
"""

from __future__ import annotations

from collections.abc import Mapping

from wavefilt.ske.calibrated import Launch

BLOCK = 256
"""Threads of a block."""
WARP, SECTOR = 32, 32
"""Threads of a warp, and bytes that L2 gives to an SM at least."""
SAMPLE = 4
"""Bytes."""
REGISTERS = 16
"""Of a thread, at most."""
ARITHMETIC, ACCESSES = 3, 4
"""2 x is x + x. Three loads and a store of global memory."""
WAVEFRONTS = 6
"""Of a warp: an aligned load and a store of 128 bytes each, and two loads that lie across two lines."""
DIRECT = {"fma": ARITHMETIC, "int": 7, "int mul": 5, "other": 10 + ACCESSES, "wavefront": WAVEFRONTS}
BARRIER = DIRECT | {"int": 10, "int mul": 6, "other": 15 + ACCESSES}
TILED = {"fma": ARITHMETIC, "int": 11, "int mul": 5, "other": 16 + ACCESSES + 6}
"""Six accesses of shared memory more; those of a tile's ends take a slot in every warp."""


def launches(samples: int, block: int = BLOCK) -> dict[str, Launch]:
    """The launch of every kernel of `laplace1d_kernels`, by its name, over so many samples."""
    blocks, warps = -(-samples // block), -(-block // WARP)
    written = SAMPLE * samples
    read = written + 2 * SECTOR * blocks  # every block reads a sample of both its neighbours

    def launch(name: str, instructions: Mapping[str, float], shared: int = 0, barriers: int = 0) -> Launch:
        loads = {"global": 1, "shared": 1} if shared else {"global": 1}
        counts = (blocks, block, instructions, loads, barriers, read, written, 2 * written)
        return Launch(name, *counts, registers=REGISTERS, shared=shared)

    # x to the tile and three times from it, y: a wavefront each; the tile's ends come twice, once a block
    tiled = TILED | {"wavefront": 6 + 4 / warps}
    return {
        "naive": launch("naive", DIRECT),
        "readonly": launch("readonly", DIRECT),
        "shared": launch("shared", tiled, SAMPLE * (block + 2), 1),
        "barrier": launch("barrier", BARRIER, barriers=1),
    }

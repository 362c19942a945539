"""Kernels of the 5x5 Laplace filter, as data: the shape of a block, and from where a thread reads its pixels.

`laplace2d_kernels` compiles them, `laplace2d_patterns` counts what their accesses cost, `laplace2d_counts` what
they execute; the last two need no compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

RADIUS, CHANNELS = 2, 3
SIDE = 2 * RADIUS + 1
"""Pixels of the filter from one side to the other: all weights are -1, that of the centre 24."""
BORDER = RADIUS * CHANNELS
"""Bytes of a row that the filter reaches beyond a byte."""
CHUNK, ROWS = 16, 16
"""Bytes of a row, and rows, that a thread of the last variant makes."""
ALIGNMENT = 128
"""Bytes that its rows are a multiple of: what a warp reads at a time then is four whole lines of the cache."""

Memory = Literal["global", "tile", "wide"]
Number = Literal["uint8", "float32", "int32"]


@dataclass(frozen=True)
class Variant:
    """``block`` is its width and height in threads; a thread makes a pixel, or `CHUNK` bytes of `ROWS` rows.

    A ``tile`` holds the block's pixels and those around them as numbers of type ``held``, each of its rows ``padding``
    of them longer than it need be; pixels are summed up as ``summed``.
    """

    name: str
    heads: tuple[str, str]
    what: str
    memory: Memory = "tile"
    block: tuple[int, int] = (16, 16)
    held: Number = "uint8"
    summed: Number = "int32"
    padding: int = 0
    registers: int = 32
    """Of a thread, compiled for `COMPILED_FOR`; a test compares them with the compiler's."""

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1]

    @property
    def itemsize(self) -> int:
        """Bytes of a number of the tile."""
        return 1 if self.held == "uint8" else 4

    @property
    def tile(self) -> tuple[int, int]:
        """Numbers of a row of the tile that are used, and rows."""
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
        """Blocks over an image of so many pixels."""
        columns, rows = (pitch(width) // CHUNK, -(-height // ROWS)) if self.memory == "wide" else (width, height)
        return -(-columns // self.block[0]), -(-rows // self.block[1])


def pitch(width: int) -> int:
    """Bytes from one row to the next where rows are aligned, as cudaMallocPitch would lay them out."""
    return -(-CHANNELS * width // ALIGNMENT) * ALIGNMENT


COMPILED_FOR = "9.0"
"""The compute capability that the registers are of."""
FLOATS: dict[str, Any] = {"held": "float32", "summed": "float32"}
_FLOAT = "bytes converted to float once, as the tile is written"
_PADDED = "a float tile, its rows 20 words longer so that two share no bank"
_ROW = "a float tile, a block of 32x8: a warp reads one row"
_WIDE = f"no tile: 16 aligned bytes and {ROWS} rows a thread, running column sums"
_CONVERT, _READ = (
    "the same tile, each byte converted to float as it is read",
    "each of the 25 pixels read from global memory",
)
VARIANTS = (
    Variant("gpu_global", ("GPU", "global"), _READ, "global", registers=40),
    Variant("gpu_tile", ("GPU", "byte tile"), "20x20 pixels in shared memory, integer arithmetic"),
    Variant("gpu_convert", ("GPU", "float reads"), _CONVERT, summed="float32"),
    Variant("gpu_float", ("GPU", "float tile"), _FLOAT, **FLOATS),
    Variant("gpu_padded", ("GPU", "padded tile"), _PADDED, **FLOATS, padding=20),
    Variant("gpu_row", ("GPU", "row a warp"), _ROW, block=(32, 8), **FLOATS),
    Variant("gpu_wide", ("GPU", "wide"), _WIDE, "wide", (32, 4), registers=48),
)

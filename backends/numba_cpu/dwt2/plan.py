"""How one level of a transform of both axes is cut into tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from wavefilt.backends.numba_cpu.vector import GROUP_BYTES
from wavefilt.wavelets.filters import detail_length

SCRATCH = 1 << 19
"""Bytes of a tile's filtered rows: half of a second-level cache."""
HEIGHT = 32  # rows of coefficients of a tile at least, and no fewer than twice the taps: its halo is filtered twice
MARGIN = 64  # bytes between rows of the scratch: rows 4 KiB apart would evict each other


@dataclass(frozen=True)
class Launch:
    """One level of all sections: ``sizes`` (rows, columns) and those of its bands, and the tiles of a section.

    ``tile`` is their height and width, in coefficients or pairs of samples, how many lie down and across a section,
    and how many elements lie between rows of the scratch.
    """

    sizes: tuple[int, int, int, int]
    tile: tuple[int, int, int, int, int]

    @property
    def tiles(self) -> int:
        return self.tile[2] * self.tile[3]

    @property
    def work(self) -> int:
        """Samples of a tile."""
        return self.sizes[0] * self.sizes[1] // self.tiles

    @property
    def arguments(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.sizes, self.tile


@lru_cache(maxsize=64)
def lengths(samples: int, taps: int, mode: str, level: int) -> tuple[int, ...]:
    """Samples, and coefficients of every level, finest first. Raises ValueError where PyWavelets does."""
    found = [samples]
    for _ in range(level):
        if found[-1] == 1 and mode in ("reflect", "antireflect"):
            raise ValueError(f"mode={mode!r} needs more than one sample at every level of both axes")
        found.append(detail_length(found[-1], taps, mode))
    return tuple(found)


@lru_cache(maxsize=256)
def launch(
    sizes: tuple[int, int, int, int], places: tuple[int, int], taps: int, itemsize: int, inverse: bool
) -> Launch:
    """The tiles of one level: ``places`` are coefficients, or pairs of samples, down and across; ``taps`` go down."""
    height = min(max(HEIGHT, 2 * taps), places[0])
    group = GROUP_BYTES // itemsize
    scratch_rows = height + taps // 2 - 1 if inverse else 2 * height + taps - 2
    wide = 2 if inverse else 1  # elements of the scratch for each place across
    width = max(SCRATCH // (2 * itemsize * wide * scratch_rows) // group, 1) * group
    width = min(width, -(-places[1] // group) * group)
    across = -(-places[1] // width)
    width = -(-places[1] // across // group) * group  # alike
    down, across = -(-places[0] // height), -(-places[1] // width)
    return Launch(sizes, (height, width, down, across, wide * width + MARGIN // itemsize))

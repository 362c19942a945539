"""The examples of the paper, recomputed with the classic model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from wavefilt.vocabulary import Hiding

from .classic import Correction, Estimate, Kernel, blocks_of, estimate
from .tables import communication, computation

DEVICE, GRID, WIDTH = "GTX670", (480, 270), 32
"""The grid has one thread per pixel; blocks are 32 threads wide."""
HEIGHTS = (*range(1, 17), 24, 32)
"""Heights of blocks: 1 to 16 as in the paper, and two larger valid ones."""

KERNELS = {
    "resize": Kernel(computation({"int mul": 16, "add": 12, "compare": 3}), communication({"global": 6})),
    "rgb2gray": Kernel(244, communication({"global": 4})),  # printed as 6 * 500 = 2000
    "smooth": Kernel(960, communication({"global": 12})),
}
"""The paper gives only the sums for the last two, and no registers, shared memory or barriers."""

SHARED_PER_THREAD = 1156
"""Bytes of shared memory per thread in the paper's H.264 example."""


class Extreme(NamedTuple):
    """The minimum, or a time above or below both neighbours, at blocks of this height."""

    kind: Literal["minimum", "high", "low"]
    height: int


CLAIMED = (Extreme("minimum", 4), Extreme("high", 11), Extreme("low", 12), Extreme("high", 13))
"""Extremes that the paper claims for its model."""


def extremes(times: Mapping[int, float]) -> set[Extreme]:
    """Return the extremes of times by height, for heights 1 to 16."""
    heights = HEIGHTS[:16]
    found = {Extreme("minimum", min(heights, key=lambda h: times[h]))}
    for h in heights[1:-1]:
        if times[h] > max(times[h - 1], times[h + 1]):
            found.add(Extreme("high", h))
        if times[h] < min(times[h - 1], times[h + 1]):
            found.add(Extreme("low", h))
    return found


def reproduce(hiding: Hiding = "product", correction: Correction | None = None) -> dict[str, dict[int, Estimate]]:
    """Estimate the three kernels on a GTX 670, by kernel and height of the blocks. Raises ValueError as `estimate`."""
    return {
        name: {
            h: estimate(kernel, DEVICE, WIDTH * h, blocks_of(GRID, (WIDTH, h)), hiding=hiding, correction=correction)
            for h in HEIGHTS
        }
        for name, kernel in KERNELS.items()
    }

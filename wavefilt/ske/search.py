"""The nonlinear program of the paper: the block shape of least time, found by trying all legal ones."""

from __future__ import annotations

from typing import Any

from .amounts import count
from .classic import Estimate, Kernel, constraints, estimate
from .occupancy import refuse
from .tables import Device, as_device

Shape = tuple[int, int]
"""Width and height: of a block in threads, or of the grid in threads."""


def blocks_of(grid: Shape, block: Shape) -> int:
    """Blocks that cover the grid."""
    return -(-grid[0] // block[0]) * -(-grid[1] // block[1])


def shapes(kernel: Kernel, device: str | Device, grid: Shape) -> list[Shape]:
    """Every legal block: a multiple of the warp wide, no larger than the grid needs, and within the constraints.

    Raises ValueError, naming the constraints, if even a block of one warp breaks them.
    """
    device = as_device(device)
    width, height = (count(name, value, 1) for name, value in zip(("width", "height"), grid, strict=True))
    warp, most = device.capability.warp, device.capability.threads_per_block
    refuse(constraints(kernel, device, warp), device.name)
    return [
        (w, h)
        for w in range(warp, min(width + warp - 1, most) + 1, warp)
        for h in range(1, min(height, most // w) + 1)
        if all(c.holds for c in constraints(kernel, device, w * h))
    ]


def optimise(kernel: Kernel, device: str | Device, grid: Shape, **options: Any) -> tuple[Shape, Estimate]:
    """The block shape for which the classic model gives the least time: min Tn(t, b) under (10) to (16).

    Parameters
    ----------
    kernel : Kernel
    device : str or Device
    grid : (int, int)
        Width and height of the grid in threads; (n, 1) for a one-dimensional one.
    **options
        Those of `estimate`.

    Returns
    -------
    tuple of Shape and Estimate
        The shape (width, height) and its estimate. Of equal times the one with more active warps wins, then the
        smaller block.

    Raises
    ------
    ValueError
        As `estimate` does, or if no block is legal.
    """
    found = {
        shape: estimate(kernel, device, shape[0] * shape[1], blocks_of(grid, shape), **options)
        for shape in shapes(kernel, device, grid)
    }
    best = min(found, key=lambda shape: (found[shape].Tn, -found[shape].nw, found[shape].threads))
    return best, found[best]

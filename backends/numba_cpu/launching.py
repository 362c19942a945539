"""Kernels called on all tiles of all rows, and what the inverse transforms have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array, DType, Floats
from wavefilt.backends.numba_cpu.dwt import kernels
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid

from . import memory

GRAIN = 1 << 15  # samples below which a share of the work is not worth waking a thread
FUNCTIONS = {"soft": kernels.SOFT, "hard": kernels.HARD, "garrote": kernels.GARROTE, "firm": kernels.FIRM}


class Launch(Protocol):
    """Work cut into tiles: `plan.Launch` and `modwt_plan.Launch`."""

    @property
    def tiles(self) -> int:
        """Of each row."""

    @property
    def work(self) -> int:
        """Samples of a tile, or what takes as long."""

    @property
    def arguments(self) -> tuple[object, ...]:
        """What every kernel is told of the launch."""


def run(
    kernel: Callable[..., object], rows: int, launch: Launch, arguments: tuple[object, ...], kept: tuple[object, ...]
) -> None:
    """Call ``kernel`` on all tiles of all rows.

    ``kept`` are the arrays behind the addresses in ``arguments``, which must live as long as the work does.
    """

    def work(begin: int, end: int, _: object = kept) -> None:
        kernel(*launch.arguments, *arguments, begin, end)

    threads.parallel(work, rows * launch.tiles, max(GRAIN // max(launch.work, 1), 1))


def destination(out: Array | None, shape: tuple[int, int], dtype: DType) -> tuple[Array, int]:
    """``out``, or a new array, and where it begins. Raises ValueError if ``out`` is not of the result's kind."""
    if out is None:
        return memory.placed(shape, dtype)
    if out.shape != shape or out.dtype != dtype or not out.flags.carray:
        raise ValueError(f"out must be a C-contiguous {dtype} array of shape {shape}")
    return out, memory.address(out)


def shrinking(shrinkage: Shrinkage | None, shape: tuple[int, int]) -> tuple[int, Floats]:
    """The number of one of the four functions and the thresholds of ``shape`` (levels, rows)."""
    if shrinkage is None:
        return kernels.KEEP, np.empty(shape)
    return FUNCTIONS[str(shrinkage.function)], np.ascontiguousarray(shrinkage.thresholds, float)


def mismatch(pyramid: Pyramid, wanted: Sequence[tuple[int, ...]]) -> ValueError:
    """The error of coefficients that do not belong together; ``wanted`` are the shapes that would."""
    found = ", ".join(f"{c.dtype} {c.shape}" for c in pyramid.coefficients)
    what = f"{pyramid.samples} samples" if len(pyramid.shape) == 1 else f"a panel {pyramid.shape}"
    return ValueError(
        f"coefficients {found} do not belong together: {what} have {', '.join(map(str, wanted))} of one dtype"
    )

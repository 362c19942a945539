"""Kernels compiled before they are needed: `wavefilt warm-up`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wavefilt.backends.cuda.backend import Cuda
from wavefilt.options import Options

SHAPES: dict[int, list[tuple[int, ...]]] = {
    1: [(1, 1 << 16), (1, 1 << 20), (1, 1 << 24), (24, 1024), (240, 1 << 13), (64, 1 << 14), (4096, 1 << 14)],
    2: [(1, 512, 512)],
}
"""Arrays of traces and of sections whose kernels have blocks and tiles of all sizes that are chosen."""


def warm_up(
    methods: Sequence[Mapping[str, Any]],
    dtypes: Sequence[str] = ("float32",),
) -> None:
    """Compile the kernels that `denoise` launches by some options, for samples of some dtypes, on the current GPU.

    They go to the cache on disk.
    """
    backend = Cuda()
    for given in methods:
        options = Options(**given)
        for dtype in dtypes:
            for shape in SHAPES[options.ndim]:
                backend.denoise(np.zeros(shape, dtype), options, options.level_for(*shape[1:]))
    backend.clear()

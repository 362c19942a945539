"""Denoising sections along both axes: separable, dual-tree and f-k transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

import wavefilt

TRANSFORMS: dict[str, dict[str, Any]] = {
    "dwt": {"axes": (0, 1)},
    "modwt": {"axes": (0, 1), "transform": "modwt", "level": 3},
    "dtcwt": {"axes": (0, 1), "transform": "dtcwt", "level": 4},
    "fk": {"axes": (0, 1), "transform": "fk"},
}


class Sections:
    """A section by each transform."""

    param_names = ("shape", "transform")
    params = ([(240, 1024), (1024, 4096)], list(TRANSFORMS))
    timeout = 300

    def setup(self, shape: tuple[int, int], transform: str) -> None:
        self.x = np.random.default_rng(7).standard_normal(shape, dtype="float32")
        wavefilt.denoise(self.x, **TRANSFORMS[transform])

    def time_denoise(self, shape: tuple[int, int], transform: str) -> None:
        wavefilt.denoise(self.x, **TRANSFORMS[transform])

    peakmem_denoise = time_denoise

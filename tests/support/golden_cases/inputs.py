"""Input arrays and the options that several areas combine."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RESIDUAL = os.environ.get("GOLDEN_RESIDUAL", "return_residual")
"""Name of the option; older checkouts need `GOLDEN_RESIDUAL=return_noise`."""
MODES = ["symmetric", "reflect", "periodic", "periodization", "zero"]
MODES += ["constant", "smooth", "antisymmetric", "antireflect"]
NAMED = ["universal", "minimax", "sure", "hybrid", "bayes", "fdr", "blockjs", "neighblock", "ebayes", "ebayes-cauchy"]
NAMED += ["js"]
RULES = [*NAMED, 7.5, [40.0, 30, 20, 10]]
"""Rules for four levels."""
SHRINKS = [None, "soft", "hard", "garrote", "firm", "median", "mean"]
TRANSFORMS, SCOPES = ["dwt", "modwt"], ["trace", "record"]
SAMPLES = Path(os.environ.get("GOLDEN_SAMPLES", "samples"))


def traces(shape: tuple[int, ...] | int = (3, 600), dtype: str = "f8", seed: int = 7) -> np.ndarray:
    """Chirps of several heights under noise; integers are rounded, unsigned ones moved above 0."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else shape
    t = np.linspace(0, 1, shape[-1])
    x = 50 * np.sin(40 * t**2) * np.exp(-2 * t) + 9 * rng.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 9j * rng.standard_normal(shape)
    return np.abs(x).astype(dtype) if dtype.kind in "ub" else x.astype(dtype)


def with_gaps(dtype: str = "f8") -> dict[str, Any]:
    """Traces with gaps of all kinds."""
    runs, dead = traces((5, 400), dtype), traces((4, 400), dtype)
    runs[0, 100:140] = runs[1, :7] = runs[1, -1] = runs[2, ::130] = runs[3] = np.nan
    dead[0], dead[1], dead[2, :300] = 0, 3, 0
    mask = np.zeros((3, 400), bool)
    mask[0, 50:90] = mask[1, 399] = mask[2, :380] = True
    return {
        f"runs-{dtype}": runs,
        f"dead-{dtype}": dead,
        f"nothing-{dtype}": np.full((2, 300), np.nan, dtype),
        f"masked-{dtype}": np.ma.MaskedArray(traces((3, 400), dtype), mask, fill_value=-1),
        f"unmasked-{dtype}": np.ma.MaskedArray(traces((3, 400), dtype)),
    }


def on_device() -> dict[str, Callable[[Any], Any]]:
    """What sends an array to a GPU: numba, and CuPy where it is installed."""
    from numba import cuda

    ways: dict[str, Callable[[Any], Any]] = {"numba": cuda.to_device}
    with contextlib.suppress(ImportError):
        ways["cupy"] = importlib.import_module("cupy").asarray
    return ways

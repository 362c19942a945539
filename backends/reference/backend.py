"""The reference backend: PyWavelets and NumPy, on the CPU, one trace after another."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from itertools import zip_longest

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends.interface import Backend
from wavefilt.statistics.reference import ReferenceStatistics
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import TRANSFORMS, Analysis, Pyramid
from wavefilt.vocabulary import Scope


class PyWavelets(Backend):
    name = "pywavelets"
    dtypes = ("float32", "float64", "complex64", "complex128")

    @property
    def transforms(self) -> tuple[str, ...]:
        return tuple(TRANSFORMS)

    def describe(self) -> str:
        return f"PyWavelets {version('PyWavelets')}, NumPy {np.__version__}"

    def decompose(self, x: Array, analysis: Analysis) -> Pyramid:
        return Pyramid(analysis.transform.analyse(x, analysis), analysis, x.shape[1:])

    def statistics(self, pyramids: Sequence[Pyramid], scope: Scope) -> ReferenceStatistics:
        together = zip_longest(*(pyramid.details for pyramid in pyramids))
        bands = [[d for d in details if d is not None] for details in together]
        if scope == "record":
            return ReferenceStatistics([np.concatenate([d.ravel() for d in ds])[None] for ds in bands])
        return ReferenceStatistics([d for (d,) in bands])  # by trace there is one pyramid

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage | None = None, out: Array | None = None) -> Array:
        return pyramid.analysis.transform.reconstructed(pyramid, shrinkage)

"""The transforms that the GPU computes: for each, the shape of its plans, and how they are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wavefilt.backends.cuda.dwt.plan import DwtPlan, DwtShape
from wavefilt.backends.cuda.dwt2.plan import PanelPlan, PanelShape
from wavefilt.backends.cuda.modwt.plan import ModwtPlan, ModwtShape
from wavefilt.backends.cuda.options import Options
from wavefilt.backends.cuda.plan import Plan, Shape
from wavefilt.transforms import Analysis


@dataclass(frozen=True)
class TransformFamily:
    """``shape(analysis, dtype, rows, size)`` of so many traces or panels of that size, and ``plan(shape, options)``."""

    shape: Callable[[Analysis, str, int, tuple[int, ...]], Shape]
    plan: Callable[..., Plan]

    def make(self, shape: Shape, options: Options) -> Plan:
        return self.plan(shape, options)


def _dwt(analysis: Analysis, dtype: str, rows: int, size: tuple[int, ...]) -> Shape:
    (wavelet,), (mode,) = analysis.wavelets, analysis.modes
    return DwtShape.of(wavelet, mode, dtype, analysis.level, rows, *size)


def _modwt(analysis: Analysis, dtype: str, rows: int, size: tuple[int, ...]) -> Shape:
    (wavelet,), (mode,) = analysis.wavelets, analysis.modes
    return ModwtShape.of(wavelet, mode, dtype, analysis.level, analysis.start_level, rows, *size)


def _dwt2(analysis: Analysis, dtype: str, rows: int, size: tuple[int, ...]) -> Shape:
    return PanelShape.of(analysis.wavelets, analysis.modes, dtype, analysis.level, rows, size)


FAMILIES = {
    "dwt": TransformFamily(_dwt, DwtPlan),
    "modwt": TransformFamily(_modwt, ModwtPlan),
    "dwt2": TransformFamily(_dwt2, PanelPlan),
}
"""By the transform's name."""

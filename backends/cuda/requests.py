"""What calls ask of plans, found again by their options and the type, shape and dtype of their array."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

from wavefilt.arrays import DType, dtype_name
from wavefilt.backends.cuda.denoiser import key_of
from wavefilt.backends.cuda.plan import Shape
from wavefilt.backends.cuda.plans import FAMILIES
from wavefilt.backends.cuda.runtime import interop
from wavefilt.options import Options

DTYPES = ("float32", "float64")
"""Names of those that kernels compute in."""


class Asked(NamedTuple):
    """What a plan is made for, and by which key it keeps a denoiser."""

    shape: Shape
    key: Hashable


@lru_cache(maxsize=1024)
def asked(changes: int, method: Options, level: int, dtype: str, shape: tuple[int, ...], report: bool) -> Asked:
    """For a batch of this shape; ``changes`` are `Registry.changes`."""
    return Asked(Shape.of(method.analysis(level), dtype, shape[0], shape[1:]), key_of(method, report))


@lru_cache(maxsize=1024)
def simple(
    changes: int, method: Options, kind: type, shape: tuple[int, ...], dtype: object, axes: tuple[int, ...]
) -> tuple[interop.Library, DType, Asked] | None:
    """Library, dtype of computation and request for arrays of a type and shape; None if not for `Cuda.at_once`.

    Raises what `interop.take` and `Options.level_for` do.
    """
    library, found = interop.library_of_type(kind), interop.layout(shape, axes)
    level = method.level_for(*found.rows[1:])
    if library is None or found.orders is not None or not level or not found.rows[0]:
        return None
    computed = interop.computed(dtype)
    name, analysis = dtype_name(computed), method.analysis(level)
    known = name in DTYPES and analysis.transform.name in FAMILIES and analysis.builtin_modes
    if not known or not method.plain or method.blend or method.host_only:
        return None
    return library, computed, asked(changes, method, level, name, found.rows, False)

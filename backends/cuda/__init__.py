"""The GPU backend: numba.cuda kernels that keep coefficients in device memory from input to output.

Modules that need numba are imported when a class is asked for, so that the counts in `wavefilt.benchmarks.ske` do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wavefilt.backends.cuda.several import Several

    from .backend import Cuda, CudaPyramid, KernelOptions

__all__ = ["Cuda", "CudaPyramid", "KernelOptions", "Several"]


def __getattr__(name: str) -> type:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .backend import Cuda, CudaPyramid, KernelOptions
        from .several import Several
    except ImportError as error:  # of a part of numba or of numba-cuda that has moved
        from wavefilt.errors import BackendUnavailable

        raise BackendUnavailable(
            f"backend 'cuda': this version of numba or numba-cuda is not supported ({error})"
        ) from error

    return {"Cuda": Cuda, "CudaPyramid": CudaPyramid, "KernelOptions": KernelOptions, "Several": Several}[name]

"""The GPU backend: numba.cuda kernels that keep coefficients in device memory from input to output.

What needs numba is imported when it is asked for, so that `geometry` and the counts beside the kernels need nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wavefilt.backends.cuda.multi_gpu.backend import Several

    from .backend import Cuda, CudaPyramid, KernelOptions

__all__ = ["Cuda", "CudaPyramid", "KernelOptions", "Several"]


def __getattr__(name: str) -> type:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .backend import Cuda, CudaPyramid, KernelOptions
    from .multi_gpu.backend import Several

    return {"Cuda": Cuda, "CudaPyramid": CudaPyramid, "KernelOptions": KernelOptions, "Several": Several}[name]

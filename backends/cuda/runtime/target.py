"""The only module that imports numba's CUDA target, and what is missing for it to run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from wavefilt.errors import BackendUnavailable

INSTALL = 'pip install "wavefilt[cuda13]" (driver 580 or newer) or "wavefilt[cuda12]"'
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


def _import_implementations() -> None:
    """Import modules that numba-cuda 0.30 needs to compile, with `numpy.row_stack`, which NumPy 2.5 lacks."""
    names = vars(np)
    if "row_stack" in names:
        return
    names["row_stack"] = np.vstack
    try:
        import_module("numba.cuda.np.arrayobj")
    finally:
        del names["row_stack"]


try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy 2.5 deprecates what numba-cuda 0.30 does
        from numba import cuda
        from numba.core import config

        installed = "numba_cuda" in str(cuda.__file__)
        if installed and not SIMULATED:
            _import_implementations()
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # small signals make small grids
except Exception as error:
    raise BackendUnavailable(f"backend 'cuda': numba cannot be imported ({error}); {INSTALL}") from error
if not installed and not SIMULATED:
    raise BackendUnavailable(
        f"backend 'cuda': numba-cuda is not installed, and the CUDA target built into numba is too old; {INSTALL}"
    )


if SIMULATED:
    from numba.cuda.simulator import kernel as _simulator
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray as DeviceNDArray

    class _OfTheRunningKernel:
        """`cuda` for every module of kernels: numba's simulator exchanges it in that of the launched kernel alone."""

        def __getattr__(self, name: str) -> Any:
            return getattr(_simulator._get_kernel_context() or _numba_cuda, name)

    class CudaAPIError(Exception):
        """Stands for the driver's errors in the simulator, which has no driver."""

    driver: Any = None
    _numba_cuda, cuda = cuda, _OfTheRunningKernel()
else:
    from cuda.bindings import driver  # type: ignore[no-redef]
    from numba.cuda.cudadrv.devicearray import DeviceNDArrayBase as DeviceNDArray
    from numba.cuda.cudadrv.driver import CudaAPIError  # type: ignore[no-redef]

__all__ = [
    "INSTALL",
    "SIMULATED",
    "CudaAPIError",
    "DeviceNDArray",
    "cuda",
    "device",
    "driver",
    "in_turn",
    "shared_memory",
]

_inlined = {} if SIMULATED else {"forceinline": True}
device: Callable[[Callable[..., Any]], Callable[..., Any]] = cuda.jit(device=True, **_inlined)
"""Decorator of functions for kernels; inlined by LLVM, which takes a third of the time of numba's own inlining."""


def in_turn(*functions: Callable[..., Any]) -> Callable[..., Any]:
    """Device function that calls some others one after the other, each with all its arguments."""
    if not functions:
        return device(lambda *arguments: None)
    first, others = functions[0], in_turn(*functions[1:]) if functions[1:] else None

    def calls(*arguments):
        first(*arguments)
        if others is not None:
            others(*arguments)

    return device(calls)


def shared_memory() -> int:
    """Bytes that a block may have on the current GPU, if it asks for more than the 48 KiB that all have."""
    return 1 << 17 if SIMULATED else int(cuda.get_current_device().MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)


def require() -> None:
    """Raise BackendUnavailable, with what to install, unless there is a GPU that kernels run on."""
    if SIMULATED:
        return
    try:
        if cuda.is_available():
            return
        reason = str(cuda.cuda_error() or "no GPU is visible")
    except Exception as error:  # a driver that is too old or a toolkit that is missing ends up here
        reason = str(error)
    raise BackendUnavailable(
        f"backend 'cuda': no usable NVIDIA driver and GPU ({reason.strip()}); install NVIDIA's driver, "
        f"check CUDA_VISIBLE_DEVICES, and install the kernels' compiler with {INSTALL}"
    )


def device_name() -> str:
    """Return the name of the current GPU, as its driver reports it."""
    if SIMULATED:
        return "CUDA simulator"
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def describe() -> str:
    """One line: the device, its memory, the driver, and the versions in use."""
    if SIMULATED:
        return "CUDA simulator of numba"
    device = cuda.get_current_device()
    name = device_name()
    total = cuda.current_context().get_memory_info().total
    _, api = driver.cuDriverGetVersion()
    major, minor = device.compute_capability
    return (
        f"{name}, {total / 2**30:.0f} GiB, compute capability {major}.{minor}, driver for CUDA "
        f"{api // 1000}.{api % 1000 // 10}, numba-cuda {version('numba-cuda')}, numba {version('numba')}"
    )

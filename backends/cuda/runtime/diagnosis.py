"""What is there, and what is missing, for the GPU backend to run."""

from __future__ import annotations

from importlib.metadata import version

from wavefilt.errors import BackendUnavailable

from .target import INSTALL, SIMULATED, cuda


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


def describe() -> str:
    """One line: the device, its memory, the driver, and the versions in use."""
    if SIMULATED:
        return "CUDA simulator of numba"
    from cuda.bindings import driver

    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    total = cuda.current_context().get_memory_info().total
    _, api = driver.cuDriverGetVersion()
    major, minor = device.compute_capability
    return (
        f"{name}, {total / 2**30:.0f} GiB, compute capability {major}.{minor}, driver for CUDA "
        f"{api // 1000}.{api % 1000 // 10}, numba-cuda {version('numba-cuda')}, numba {version('numba')}"
    )

"""From what size the GPU denoises an array in host memory faster than the CPU; imports no numba.

The time on the GPU is that of a call, of both transfers, and of the kernels, which the SKE model estimates from the
data sheet of the GPU (a test compares them). The time on the CPU was measured with 2 and 16 threads.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from wavefilt import threads
from wavefilt.transforms import Analysis


class Gpu(NamedTuple):
    """Seconds of the kernels for few samples and for each further one, and bytes per second of the link to the host."""

    kernels: float
    sample: float
    link: float


GEN4, GEN5 = 23e9, 46e9
"""Links by PCI Express with 16 lanes; the second measured for whole calls beside an H200, the first half of it."""
GPUS = {
    "NVIDIA H200": Gpu(50e-6, 6.6e-12, GEN5),
    "NVIDIA B200": Gpu(50e-6, 5.6e-12, GEN5),
    "NVIDIA A100-SXM4-80GB": Gpu(60e-6, 13.7e-12, GEN4),
    "NVIDIA GeForce RTX 4090": Gpu(45e-6, 20.6e-12, GEN4),
    "NVIDIA L4": Gpu(55e-6, 69.4e-12, GEN4),
}
"""Estimates for db8, float32, 8 levels. Other GPUs count as the last one."""
CALL, STARTING = 70e-6, 0.85
"""Seconds of a call beside transfers and kernels, and of the first call, which starts the GPU and loads kernels."""
CPU_CALL, CPU_THREAD, CPU_MEMORY = 60e-6, 2.4e-9, 0.25e-9
"""Seconds of a call on the CPU, of a sample on one thread, and of a sample at the full bandwidth of the memory."""

loaded: dict[tuple[str, int], str] = {}
"""Name of the GPU by dtype and taps whose kernels this process has used; the backend adds to them."""


def faster(shape: tuple[int, ...], analysis: Analysis, dtype: str) -> bool:
    """Return whether the GPU takes less time for a DWT of a batch (batch, *shape), in this process as it is."""
    if analysis.transform.name != "dwt":
        return False
    name, samples = loaded.get((dtype, analysis.taps)), prod(shape)
    start = STARTING if name is None else 0.0
    if start > CPU_CALL + samples * CPU_THREAD:  # even one thread takes less; the number of threads takes 2 us to find
        return False
    return start + gpu_seconds(samples, name or "", np.dtype(dtype).itemsize) < cpu_seconds(samples)


def gpu_seconds(samples: int, name: str, itemsize: int = 4) -> float:
    """Return the seconds of a call for an array in host memory, on the GPU of this name."""
    gpu = GPUS.get(name, GPUS["NVIDIA L4"])
    return CALL + gpu.kernels + samples * itemsize * (gpu.sample / 4 + 2 / gpu.link)


def cpu_seconds(samples: int, count: int | None = None) -> float:
    """Return the seconds of a call on ``count`` threads, by default `threads.get_num_threads`."""
    return CPU_CALL + samples * max(CPU_THREAD / (count or threads.get_num_threads()), CPU_MEMORY)


def note(transform: str, dtype: str, taps: int, gpu: str) -> None:
    """Remember that this process has used the kernels of a transform on a GPU of this name."""
    if transform == "dwt":
        loaded[dtype, taps] = gpu

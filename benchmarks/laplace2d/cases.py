"""Who filters one RGB image with the 5x5 Laplace operator: SciPy, numba on one core and on all, CUDA kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import ndimage

from wavefilt import backends, threads
from wavefilt.benchmarks.common.comparison import COPY, on_device
from wavefilt.benchmarks.common.implementation import Implementation, Prepared
from wavefilt.benchmarks.laplace2d import cpu_kernels
from wavefilt.benchmarks.laplace2d.image import MADE, Image, made
from wavefilt.benchmarks.laplace2d.variants import CHANNELS, RADIUS, SIDE, VARIANTS, Variant, pitch

SCIPY, NUMPY = "scipy.ndimage.correlate in int32", "the sum of 25 shifted images in NumPy's int16"
GRAIN = 1 << 16
"""Bytes below which a thread's share of the rows is not worth waking it."""
WEIGHTS = np.full((SIDE, SIDE, 1), -1, np.int32)
WEIGHTS[RADIUS, RADIUS] = SIDE**2 - 1


class Problem:
    """An image (height, width, 3) to be filtered; beyond its edges are zeros, and results are clamped to 0..255."""

    def __init__(self, x: Image, name: str = MADE) -> None:
        self.x, self.name = x, name
        self.height, self.width, _ = x.shape
        self.samples = self.height * self.width

    @classmethod
    def of(cls, samples: int) -> Problem:
        """About so many pixels, 4 to 3, and no multiple of a tile."""
        width = max(math.isqrt(samples * 4 // 3), 1)
        return cls(made(width, -(-samples // width)))

    def __str__(self) -> str:
        return f"5x5 Laplace filter, {self.width}x{self.height} RGB pixels, image {self.name}"

    @cached_property
    def bordered(self) -> Image:
        return np.pad(self.x, ((RADIUS, RADIUS), (RADIUS, RADIUS), (0, 0)))

    def expected(self, oracle: str) -> Image:
        if oracle == COPY:
            return self.x
        return by_scipy(self.x) if oracle == SCIPY else by_numpy(self.bordered)


def by_scipy(x: Image) -> Image:
    sums = ndimage.correlate(x.astype(np.int32), WEIGHTS, mode="constant")
    return np.asarray(np.clip(sums, 0, 255, out=sums), np.uint8)


def by_numpy(bordered: Image) -> Image:
    """Of the image with its border."""
    height, width, _ = (size - 2 * RADIUS for size in bordered.shape)
    shifted = [bordered[i : i + height, j : j + width] for i in range(SIDE) for j in range(SIDE)]
    value = np.int16(SIDE**2) * shifted[len(shifted) // 2].astype(np.int16)
    for one in shifted:
        value -= one
    return np.clip(value, 0, 255, out=value).astype(np.uint8)


def _host(kernel: Callable[..., object], spread: bool, problem: Problem) -> Prepared:
    """``kernel(problem, y, start, stop)`` of all rows by this thread, or ``spread`` over the library's own."""
    y = np.empty_like(problem.x)
    work, grain = partial(kernel, problem, y), max(GRAIN // y[0].size, 1)

    def call() -> Image:
        if spread:
            threads.parallel(work, problem.height, grain)
        else:
            work(0, problem.height)
        return y

    return Prepared(call)


def _plain(problem: Problem, y: Image, start: int, stop: int) -> None:
    cpu_kernels.plain(problem.bordered, y, start, stop)


def _vectors(problem: Problem, y: Image, start: int, stop: int) -> None:
    cpu_kernels.vectors(*(image.reshape(problem.height, -1) for image in (problem.x, y)), start, stop)


def _copied(problem: Problem, y: Image, start: int, stop: int) -> None:
    np.copyto(y[start:stop], problem.x[start:stop])


def _scipy(problem: Problem) -> Prepared:
    return Prepared(partial(by_scipy, problem.x))


def _gpu(variant: Variant | None, problem: Problem) -> Prepared:
    """A kernel, or a copy, from and to device memory."""
    from wavefilt.backends.cuda.runtime.target import cuda

    used, wide = CHANNELS * problem.width, variant is not None and variant.memory == "wide"
    rows = problem.x.reshape(problem.height, used)
    if wide:  # as cudaMallocPitch lays rows out; the zeros behind them serve as the border
        rows = np.pad(rows, ((0, 0), (0, pitch(problem.width) - used)))
    x = cuda.to_device(rows.reshape(-1).view(np.uint32 if wide else np.uint8))
    y = cuda.device_array_like(x)

    def host(result: Any) -> Image:
        image: Image = result.copy_to_host().view(np.uint8).reshape(problem.height, -1)[:, :used]
        return image.reshape(problem.x.shape)

    if variant is None:
        return on_device(lambda stream: y.copy_to_device(x, stream=stream), y, host)
    from wavefilt.benchmarks.laplace2d.kernels import kernel

    launched, grid = kernel(variant), variant.grid(problem.width, problem.height)
    sizes = np.int32(x.size // problem.height), np.int32(problem.height)
    return on_device(lambda stream: launched[grid, variant.block, stream](x, y, *sizes), y, host)


_cpu = partial(Implementation, require=lambda: None, host=12, oracle=SCIPY, reference=36, tolerance=0)
_cuda = partial(_cpu, require=lambda: backends.get("cuda"), device=8)
_PLAIN = "the 25 pixels one after the other, zeros around the image"
_SUMS = "running sums of columns in 16 bits, vector instructions"
_SPREAD = "the same, rows spread over threads"
IMPLEMENTATIONS = (
    _cpu("plain", ("plain", "1 core"), _PLAIN, partial(_host, _plain, False)),
    _cpu("threads", ("plain", "all cores"), _SPREAD, partial(_host, _plain, True)),
    _cpu("simd", ("SIMD", "1 core"), _SUMS, partial(_host, _vectors, False)),
    _cpu("simd_threads", ("SIMD", "all cores"), _SPREAD, partial(_host, _vectors, True)),
    _cpu(
        "scipy",
        ("SciPy", "1 core"),
        f"{SCIPY}, then clipped to bytes",
        lambda p: Prepared(partial(by_scipy, p.x)),
        host=36,
        oracle=NUMPY,
    ),
    *(_cuda(v.name, v.heads, v.what, partial(_gpu, v)) for v in VARIANTS),
)
_COPIED = "the image copied, rows spread over threads"
COPIES = (
    _cpu("host_copy", ("CPU", "copy"), _COPIED, partial(_host, _copied, True), oracle=COPY),
    _cuda("gpu_copy", ("GPU", "copy"), "the image copied in device memory", partial(_gpu, None), oracle=COPY),
)
"""What the others are compared with: a filter reads and writes each byte at least once."""

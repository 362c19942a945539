"""Denoising traces, on the CPU and on the GPU; reading a file, and denoising one in chunks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import wavefilt


def noise(*shape: int) -> Any:
    return np.random.default_rng(7).standard_normal(shape, dtype="float32")


def require_gpu() -> None:
    """Skip the benchmark without a GPU; asv expects a NotImplementedError."""
    if isinstance(wavefilt.backends.available()["cuda"], wavefilt.BackendUnavailable):
        raise NotImplementedError("no GPU")


class Rules:
    """One trace by each rule; the first call, which compiles, is not timed."""

    param_names = ("samples", "rule", "backend")
    params = ([1 << 14, 1 << 16, 1 << 20, 1 << 24], ["universal", "bayes", "sure", "js", "ebayes"], ["numba", "cuda"])
    timeout = 300

    def setup(self, samples: int, rule: Any, backend: str) -> None:
        if backend == "cuda":
            require_gpu()
        self.x = noise(samples)
        wavefilt.denoise(self.x, rule=rule, backend=backend)

    def time_denoise(self, samples: int, rule: Any, backend: str) -> None:
        wavefilt.denoise(self.x, rule=rule, backend=backend)

    peakmem_denoise = time_denoise


class Gathers:
    """Many traces, four different arrays in turn."""

    param_names = ("shape",)
    params = ([(24, 1024), (256, 4096), (4096, 4096)],)

    def setup(self, shape: tuple[int, int]) -> None:
        self.arrays = [noise(*shape) for _ in range(4)]

    def time_denoise(self, shape: tuple[int, int]) -> None:
        for x in self.arrays:
            wavefilt.denoise(x)

    peakmem_denoise = time_denoise


class OnGpu:
    """Traces that are on the GPU already, by CuPy."""

    param_names = ("shape",)
    params = ([(1, 1 << 16), (24, 1024), (1, 1 << 20), (1, 1 << 26)],)

    def setup(self, shape: tuple[int, int]) -> None:
        require_gpu()
        try:
            import cupy
        except ImportError as error:
            raise NotImplementedError("CuPy is not installed") from error
        self.x = cupy.asarray(noise(*shape))
        wavefilt.denoise(self.x)

    def time_denoise(self, shape: tuple[int, int]) -> None:
        wavefilt.denoise(self.x)


class Files:
    """A file of traces, read whole, and denoised in chunks to another file."""

    param_names = ("traces",)
    params = ([64, 16384],)

    def setup(self, traces: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path, self.out = (str(Path(self.folder.name) / name) for name in ("in.npy", "out.npy"))
        np.save(self.path, noise(traces, 4096))

    def teardown(self, traces: int) -> None:
        self.folder.cleanup()

    def time_read(self, traces: int) -> None:
        wavefilt.read(self.path)

    def time_denoise_file(self, traces: int) -> None:
        wavefilt.denoise_file(self.path, self.out, max_memory="64MiB", overwrite=True)

    peakmem_denoise_file = time_denoise_file

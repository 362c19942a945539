"""Who denoises one long trace: this library on CPU and GPU, PyWavelets, GSL, ptwt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from typing import Any

import numpy as np
import pywt

import wavefilt
from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.implementation import Implementation, Prepared
from wavefilt.benchmarks.common.measuring import different, loop, on_gpu_in_turn, signal
from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.cpu.denoise import Case, pywavelets_denoise
from wavefilt.benchmarks.gpu.denoise import LEVEL, graph_time, torch_denoise
from wavefilt.errors import BackendUnavailable
from wavefilt.method import Method
from wavefilt.vocabulary import Mode

from . import gsl

KEPT = 1 << 30
"""Bytes of the arrays of a loop, but five at least."""
SYMMETRIC, PERIODIC = "float32, symmetric ends", "float64, periodic ends"


@dataclass(frozen=True)
class Problem:
    """One float32 trace to be denoised to `LEVEL`: universal soft threshold, noise by the MAD of the finest level."""

    wavelet: str
    samples: int

    def __str__(self) -> str:
        return f"{self.wavelet}, {self.samples} samples"

    @cached_property
    def taps(self) -> int:
        return int(pywt.Wavelet(self.wavelet).dec_len)

    @cached_property
    def method(self) -> Method:
        return Method(self.wavelet, LEVEL, rule="universal", shrink="soft", sigma="global")

    @cached_property
    def x(self) -> Array:
        row: Array = signal(1, self.samples)[0]
        return row

    def expected(self, oracle: str) -> Array:
        """By this library's reference backend."""
        if oracle == SYMMETRIC:
            y: Array = self.denoised(self.x, "pywavelets")
            return y
        shift = gsl.aligned(self.taps, LEVEL)
        rolled = np.roll(self.x.astype(np.float64), -shift)
        return np.roll(self.denoised(rolled, "pywavelets", mode="periodization"), shift)

    def denoised(self, x: Array, backend: str, mode: Mode = "symmetric") -> Array:
        """As a user of this library writes it."""
        options: Row = {"rule": "universal", "shrink": "soft", "sigma": "global"}
        return np.asarray(wavefilt.denoise(x, self.wavelet, level=LEVEL, backend=backend, mode=mode, **options))


def _gsl(problem: Problem) -> Prepared:
    transform = gsl.Daubechies(problem.wavelet, problem.samples)
    return Prepared(partial(transform.denoise, problem.x, LEVEL))


def _pywavelets(problem: Problem) -> Prepared:
    case = Case(problem.wavelet, problem.samples, 0, wavelet=problem.wavelet, level=LEVEL)
    return Prepared(partial(pywavelets_denoise, problem.x, case))


def _host(backend: str, problem: Problem) -> Prepared:
    return Prepared(partial(problem.denoised, problem.x, backend))


def _kept(backend: str, problem: Problem) -> Prepared:
    """As in a user's loop: different arrays, whose results are kept."""
    call = partial(problem.denoised, backend=backend)

    def clock(repeats: int, warm: int) -> dict[str, float]:
        return loop(call, different(problem.x, KEPT, repeats), True, warm)

    return Prepared(partial(call, problem.x), clock=clock)


def _torch(device: str) -> Any:
    """torch, where it and ptwt are installed and the device is there."""
    try:
        import ptwt  # noqa: F401
        import torch
    except ImportError as error:
        raise BackendUnavailable(f"ptwt is not installed ({error}): pip install ptwt torch") from error
    if device == "cuda" and not torch.cuda.is_available():
        raise BackendUnavailable("torch sees no GPU")
    return torch


def _ptwt(device: str, problem: Problem) -> Prepared:
    import ptwt

    torch = _torch(device)
    torch.backends.cudnn.allow_tf32 = False  # 10 bits of mantissa would not pass the comparison
    x = torch.as_tensor(problem.x, device=device)
    call = partial(torch_denoise, ptwt, torch, x, problem.wavelet)
    return Prepared(call, lambda y: np.asarray(y.cpu().reshape(-1)))


def _cuda(where: str, problem: Problem) -> Prepared:
    """From and to pinned arrays, or from and to device memory, there also by the GPU's own clock.

    What is "resident" are arrays in turn, so that none is met again soon.
    """
    from wavefilt.backends.cuda.runtime.target import cuda

    backend: Any = backends.get("cuda")
    if where == "pinned":
        x, out = (cuda.pinned_array((1, problem.samples), np.float32) for _ in range(2))
        x[:] = problem.x
    else:
        x = cuda.to_device(problem.x.reshape(1, -1))
        out = cuda.device_array_like(x)
    inputs, outputs = map(on_gpu_in_turn if where == "resident" else repeat, (x, out))

    def call() -> Any:
        return backend.denoise(next(inputs), problem.method, LEVEL, out=next(outputs))

    clock = partial(_graph, backend, problem.method, x, out) if where == "kernels" else None
    return Prepared(call, lambda done: (done[0] if where == "pinned" else done[0].copy_to_host())[0], clock)


def _graph(backend: Any, method: Method, x: Any, out: Any, repeats: int, warm: int) -> dict[str, float]:
    return graph_time(backend, method, x, out, repeats)


_single = partial(Implementation, oracle=SYMMETRIC)
_gpu = partial(backends.get, "cuda")
_IN_GSL = "gsl_wavelet_transform in float64, periodic ends, from a float32 array"
_PAGEABLE = "wavefilt.denoise, backend cuda, from and to NumPy arrays (pageable memory)"
_ALONE = "its kernels alone: the replay of their graph between two events"
_PTWT = "wavedec, median, waverec of ptwt, all cores"
_STEPS = "wavedec, NumPy's median, threshold, waverec"
_OURS = "wavefilt.denoise, backend numba"
_THERE = "the same on the GPU, the data resident there"
_PINNED, _DEVICE = "the same from and to pinned arrays", "the same from and to device memory, 64 arrays in turn"
_AGAIN = "the same from and to device memory, one array again and again"
_KEPT = "the same, different arrays in turn, their results kept"
_gsl_options: Row = {"oracle": PERIODIC, "reference": 48, "tolerance": 1e-10}
IMPLEMENTATIONS = (
    Implementation("gsl", ("GSL", "1 core"), _IN_GSL, _gsl, gsl.load, 32, **_gsl_options),
    _single("pywavelets", ("PyWavelets", "1 core"), _STEPS, _pywavelets, lambda: None, 16),
    _single("numba", ("numba", "all cores"), _OURS, partial(_host, "numba"), lambda: backends.get("numba"), 16),
    _single("numba_kept", ("numba", "kept"), _KEPT, partial(_kept, "numba"), lambda: backends.get("numba"), 64),
    _single("ptwt_cpu", ("ptwt", "CPU"), _PTWT, partial(_ptwt, "cpu"), lambda: _torch("cpu"), 48),
    _single("ptwt_gpu", ("ptwt", "GPU"), _THERE, partial(_ptwt, "cuda"), lambda: _torch("cuda"), 12, 48),
    _single("cuda", ("CUDA", "pageable"), _PAGEABLE, partial(_host, "cuda"), _gpu, 16, 20),
    _single("cuda_kept", ("CUDA", "kept"), _KEPT, partial(_kept, "cuda"), _gpu, 64, 20),
    _single("cuda_pinned", ("CUDA", "pinned"), _PINNED, partial(_cuda, "pinned"), _gpu, 20, 20),
    _single("cuda_resident", ("CUDA", "resident"), _DEVICE, partial(_cuda, "resident"), _gpu, 16, 20),
    _single("cuda_again", ("CUDA", "again"), _AGAIN, partial(_cuda, "again"), _gpu, 16, 20),
    _single("cuda_kernels", ("CUDA", "kernels"), _ALONE, partial(_cuda, "kernels"), _gpu, 16, 32),
)

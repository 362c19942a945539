"""Implementations of denoising one long trace: this library on CPU and GPU, PyWavelets, GSL, ptwt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pywt

import wavefilt
from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.calls import by_wavedec
from wavefilt.benchmarks.common.columns import Implementation, Prepared
from wavefilt.benchmarks.common.measuring import different, gpu_time, loop, signal
from wavefilt.benchmarks.common.tables import Row
from wavefilt.errors import BackendUnavailable
from wavefilt.method import Method
from wavefilt.thresholding.rules import MAD_TO_SIGMA

from . import gsl

LEVEL = 8
OPTIONS: Row = {"level": LEVEL, "rule": "universal", "sigma": "global"}
KEPT = 1 << 30
"""Bytes of the arrays of a loop, but at least five arrays."""
SYMMETRIC, PERIODIC = "float32, symmetric ends", "float64, periodic ends"


@dataclass(frozen=True)
class Problem:
    """One float32 trace, denoised by the universal soft threshold with noise by the MAD of the finest level."""

    wavelet: str
    samples: int

    def __str__(self) -> str:
        return f"{self.wavelet}, {self.samples} samples"

    @cached_property
    def taps(self) -> int:
        return int(pywt.Wavelet(self.wavelet).dec_len)

    @cached_property
    def x(self) -> Array:
        row: Array = signal(1, self.samples)[0]
        return row

    def denoised(self, x: Any, backend: str = "auto", **options: Any) -> Any:
        """Denoise as a user of this library does."""
        return wavefilt.denoise(x, self.wavelet, backend=backend, **OPTIONS, **options)

    def expected(self, oracle: str) -> Array:
        """Return the result of this library's reference backend."""
        if oracle == SYMMETRIC:
            return np.asarray(self.denoised(self.x, "pywavelets"))
        shift = gsl.aligned(self.taps, LEVEL)
        rolled = np.roll(self.x.astype(np.float64), -shift)
        return np.roll(self.denoised(rolled, "pywavelets", mode="periodization"), shift)


def _gsl(problem: Problem) -> Prepared:
    transform = gsl.Daubechies(problem.wavelet, problem.samples)
    return Prepared(partial(transform.denoise, problem.x, LEVEL))


def _pywavelets(problem: Problem) -> Prepared:
    return Prepared(partial(by_wavedec, problem.x, problem.wavelet, **OPTIONS))


def _same(backend: str, problem: Problem) -> Prepared:
    return Prepared(partial(problem.denoised, problem.x, backend))


def _kept(backend: str, problem: Problem) -> Prepared:
    """Prepare a user's loop: different arrays, whose results are kept."""
    call = partial(problem.denoised, backend=backend)

    def clock(repeats: int, warm: int) -> dict[str, float]:
        return loop(call, different(problem.x, KEPT, repeats), warm)

    return Prepared(partial(call, problem.x), clock=clock)


def torch_with_ptwt(device: str) -> Any:
    """Return torch. Raises BackendUnavailable unless ptwt is installed too and the device is there."""
    try:
        import ptwt  # noqa: F401
        import torch
    except ImportError as error:
        raise BackendUnavailable(f"ptwt is not installed ({error}): pip install ptwt torch") from error
    if device == "cuda" and not torch.cuda.is_available():
        raise BackendUnavailable("torch sees no GPU")
    torch.backends.cudnn.allow_tf32 = False  # its 10 bits of mantissa would not pass the comparison
    return torch


def by_ptwt(x: Any, wavelet: str, level: int = LEVEL) -> Any:
    """Denoise as a user of ptwt does, and wait for the result."""
    import ptwt
    import torch

    coefficients = ptwt.wavedec(x, wavelet, mode="symmetric", level=level)
    t = coefficients[-1].abs().median() * MAD_TO_SIGMA * float(np.sqrt(2 * np.log(x.shape[-1])))
    details = [torch.sign(d) * torch.clamp(d.abs() - t, min=0) for d in coefficients[1:]]
    y = ptwt.waverec([coefficients[0], *details], wavelet)
    if x.is_cuda:
        torch.cuda.synchronize()
    return y


def _ptwt(device: str, problem: Problem) -> Prepared:
    x = torch_with_ptwt(device).as_tensor(problem.x, device=device)
    return Prepared(partial(by_ptwt, x, problem.wavelet), lambda y: np.asarray(y.cpu().reshape(-1)))


def _pinned(problem: Problem) -> Prepared:
    from wavefilt.backends.cuda.runtime.target import cuda

    x, out = (cuda.pinned_array(problem.samples, np.float32) for _ in range(2))
    x[:] = problem.x
    return Prepared(partial(problem.denoised, x, "cuda", out=out))


def _resident(several: bool, problem: Problem) -> Prepared:
    """Prepare arrays in device memory: one again and again, or ``several`` once each, with the results kept."""
    from wavefilt.backends.cuda.runtime.target import cuda

    x, free = cuda.to_device(problem.x), cuda.current_context().get_memory_info().free

    def clock(repeats: int, warm: int) -> dict[str, float]:
        count = max(min(repeats, free // (4 * problem.x.nbytes)), 2)
        return loop(problem.denoised, [cuda.to_device(problem.x) for _ in range(count)], warm)

    return Prepared(partial(problem.denoised, x), lambda y: y.copy_to_host(), clock if several else None)


def _kernels(problem: Problem) -> Prepared:
    """Prepare the launches of a denoising run alone, without Python between them."""
    from wavefilt.backends.cuda.denoiser import Denoiser
    from wavefilt.backends.cuda.dwt.plan import DwtPlan
    from wavefilt.backends.cuda.options import Options
    from wavefilt.backends.cuda.plan import Shape
    from wavefilt.backends.cuda.runtime.target import cuda

    method = Method(problem.wavelet, **OPTIONS)
    plan = DwtPlan(Shape.of(method.analysis(LEVEL), "float32", 1, (problem.samples,)), Options())
    denoiser, x = Denoiser(plan, method, False), cuda.to_device(problem.x)
    out = cuda.device_array_like(x)

    def call() -> Any:
        denoiser.run(x, out, cuda.default_stream())
        cuda.synchronize()
        return out

    def clock(repeats: int, warm: int) -> dict[str, float]:
        try:
            return gpu_time(lambda stream: denoiser.run(x, out, stream), repeats=repeats)
        finally:
            plan.release()

    return Prepared(call, lambda y: y.copy_to_host(), clock)


def _one(
    name: str, heads: tuple[str, str], what: str, prepare: Callable[[Problem], Prepared], device: str = "cpu"
) -> Implementation:
    """Describe an implementation with symmetric ends, whose name begins with the backend or library it requires."""
    required = name.partition("_")[0]
    require = partial(torch_with_ptwt, device) if required == "ptwt" else partial(backends.get, required)
    return Implementation(name, heads, what, prepare, require, SYMMETRIC)


_IN_GSL = "gsl_wavelet_transform in float64, periodic ends, from a float32 array"
_KEPT = "the same, different arrays in turn, their results kept"
_ON_GPU = "the same on the GPU, the data resident there"
IMPLEMENTATIONS = (
    Implementation("gsl", ("GSL", "1 core"), _IN_GSL, _gsl, gsl.load, PERIODIC, 1e-10),
    _one("pywavelets", ("PyWavelets", "1 core"), "wavedec, NumPy's median, threshold, waverec", _pywavelets),
    _one("numba", ("numba", "all cores"), "wavefilt.denoise, backend numba", partial(_same, "numba")),
    _one("numba_kept", ("numba", "kept"), _KEPT, partial(_kept, "numba")),
    _one("ptwt_cpu", ("ptwt", "CPU"), "wavedec, median, waverec of ptwt, all cores", partial(_ptwt, "cpu")),
    _one("ptwt_gpu", ("ptwt", "GPU"), _ON_GPU, partial(_ptwt, "cuda"), "cuda"),
    _one("cuda", ("CUDA", "pageable"), "wavefilt.denoise, from and to NumPy arrays", partial(_same, "cuda")),
    _one("cuda_kept", ("CUDA", "kept"), _KEPT, partial(_kept, "cuda")),
    _one("cuda_pinned", ("CUDA", "pinned"), "the same from and to pinned arrays", _pinned),
    _one("cuda_resident", ("CUDA", "resident"), "the same in device memory, each once", partial(_resident, True)),
    _one("cuda_again", ("CUDA", "again"), "one array there again and again", partial(_resident, False)),
    _one("cuda_kernels", ("CUDA", "kernels"), "the kernels alone, by the GPU's events", _kernels),
)

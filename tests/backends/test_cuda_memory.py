"""Device memory that runs out: every allocation that can fail is tried again with less, or is a MemoryError."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import pywt

from tests.support.simulation import inside, outside
from wavefilt.method import Method
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DWT

ALLOCATING = ("device_array", "to_device", "pinned_array", "mapped_array")
X = np.random.default_rng(5).standard_normal((2, 40))


def _backend():
    from wavefilt.backends.cuda import Cuda, Options

    return Cuda(options=Options(tile=128, threads=8, select=8, scan=8, row=8))


class _Memory:
    """That of the simulated GPU, of which there is none left from the ``first`` allocation to the ``last``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from wavefilt.backends.cuda.runtime import target

        self.made, self.first, self.last = 0, 1 << 30, 0
        for name in ALLOCATING:
            plain = getattr(target.cuda, name)
            monkeypatch.setitem(vars(target.cuda), name, lambda *a, plain=plain, **k: self._allocate(plain, *a, **k))

    def _allocate(self, plain, *arguments, **named):
        from wavefilt.backends.cuda.runtime.target import CudaAPIError

        self.made += 1
        if self.first <= self.made <= self.last:
            raise CudaAPIError(2, "Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
        return plain(*arguments, **named)

    def lack(self, first: int, last: int) -> None:
        self.made, self.first, self.last = 0, first, last


def _denoise(options, x):
    return lambda backend: backend.denoise(x, Method(level=2, **options), 2)[0]


def _steps(backend):
    analysis = DWT.analysis(pywt.Wavelet("haar"), "symmetric", 2)
    pyramid = backend.decompose(X, analysis)
    statistics = backend.statistics([pyramid], "trace")
    found = statistics.median_abs([1, 2]), statistics.mean_square(), statistics.exceeding(np.full((2, 2), 0.5))
    shrinkage = Shrinkage("soft", np.full((2, 2), 0.4))
    y = backend.reconstruct(pyramid, shrinkage)
    from_host = backend.reconstruct(SimpleNamespace(**_host(pyramid)), shrinkage)
    return np.concatenate([np.ravel(part) for part in (*found, *pyramid.coefficients, y, from_host)])


def _host(pyramid):
    return {name: getattr(pyramid, name) for name in ("analysis", "level", "shape", "coefficients")}


OPERATIONS = {
    "universal": _denoise({"wavelet": "haar", "rule": "universal"}, X),
    "one row": _denoise({"wavelet": "haar", "rule": "bayes", "mode": "zero"}, X[:1]),
    "on the host": _denoise({"wavelet": "haar", "rule": "fdr"}, X),
    "sorted": _denoise({"wavelet": "haar", "rule": "sure"}, X),
    "panels": _denoise({"wavelet": "haar", "rule": "universal", "dimensions": 2}, X.reshape(2, 5, 8)),
    "step by step": _steps,
}


@inside
@pytest.mark.parametrize("name", OPERATIONS)
def test_memory_that_is_used_up(name, monkeypatch):
    from wavefilt.backends.cuda.statistics import sorting

    monkeypatch.setattr(sorting, "SPAN", 32)
    operation, memory = OPERATIONS[name], _Memory(monkeypatch)
    expected = operation(_backend())
    number = memory.made
    assert number > 5
    for first in range(1, number + 1, number // 5):  # every one takes a minute in the simulator
        memory.lack(first, first)
        np.testing.assert_allclose(operation(_backend()), expected, atol=1e-12, err_msg=str(first))
    memory.lack(number // 2, 1 << 30)
    with pytest.raises(MemoryError):
        operation(_backend())


@outside
def test_errors_that_say_that_memory_is_used_up():
    """Those of numba's driver, of ours, and of cuda.core, which launches kernels."""
    graph = pytest.importorskip("wavefilt.backends.cuda.runtime.graph", exc_type=Exception)
    from wavefilt.backends.cuda.runtime.memory import OutOfMemory, used_up
    from wavefilt.backends.cuda.runtime.target import CudaAPIError

    core = type("CUDAError", (Exception,), {"__module__": "cuda.core._utils.cuda_utils"})
    for error in (
        CudaAPIError(2, "cuMemAlloc"),
        graph.DriverError(2, "CUDA_ERROR_OUT_OF_MEMORY"),
        core("CUDA_ERROR_OUT_OF_MEMORY: the API call failed because ..."),
        OutOfMemory(),
    ):
        assert used_up(error)
    for error in (CudaAPIError(700, ""), graph.DriverError(700, ""), core("CUDA_ERROR_ILLEGAL_ADDRESS"), MemoryError()):
        assert not used_up(error)

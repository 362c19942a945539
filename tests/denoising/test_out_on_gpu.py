"""`denoise` into an array on a GPU, with arrays of the CUDA simulator."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.simulation import arrays_on_device, inside, small_options

X = np.random.default_rng(4).standard_normal((40, 300)).astype(np.float32)


@pytest.fixture
def on_gpu(monkeypatch):
    """Let the simulator's arrays stand for arrays on a GPU."""
    from wavefilt import arrays
    from wavefilt.backends import registry
    from wavefilt.backends.cuda import Cuda
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda

    arrays_on_device(monkeypatch)
    kind, backend = (
        type(cuda.device_array(1)),
        Cuda(options=small_options()),
    )
    for module in (arrays, interop):
        monkeypatch.setattr(module, "on_gpu", lambda x: isinstance(x, kind))
    monkeypatch.setattr(interop, "address", lambda x: x._ary.__array_interface__["data"][0])
    monkeypatch.setattr(registry, "home", lambda x: backend)
    return cuda.to_device


@inside
def test_arrays_on_a_gpu(on_gpu, monkeypatch):
    x = X[:3, :60].copy()
    expected = wavefilt.denoise(x, "haar", level=2, backend="pywavelets")
    for out in (on_gpu(np.zeros_like(x)), on_gpu(np.zeros((3, 120), np.float32))[:, ::2], on_gpu(x)):
        source = out if np.array_equal(out.copy_to_host(), x) else on_gpu(x)
        assert wavefilt.denoise(source, "haar", level=2, out=out) is out
        np.testing.assert_allclose(out.copy_to_host(), expected, atol=1e-5)
    with pytest.raises(TypeError, match="ndarray"):
        wavefilt.denoise(on_gpu(x), "haar", level=2, out=np.zeros_like(x))
    with pytest.raises(ValueError, match=r"float64.*float32"):
        wavefilt.denoise(on_gpu(x), "haar", level=2, out=on_gpu(np.zeros(x.shape)))
    with pytest.raises(TypeError, match="NumPy"):
        wavefilt.denoise(x, "haar", level=2, out=on_gpu(x))

"""Names of backends, backends that cannot run, and the choice of ``backend="auto"``."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import pywt

import wavefilt
from tests.support.checkout import needs
from wavefilt import backends, extending
from wavefilt.backends import registry
from wavefilt.transforms import DWT


def python(code, **environment):
    """Run a program in a process of its own; return its words on standard output."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_names():
    assert backends.names()[0] == "pywavelets"
    assert {"numba", "cuda"} <= set(backends.names())
    assert set(backends.available()) == set(backends.names())
    assert "PyWavelets" in backends.available()["pywavelets"]
    assert backends.get("pywavelets") is backends.get("pywavelets")


@pytest.mark.parametrize("call", [backends.get, lambda name: wavefilt.denoise(np.ones(64), backend=name)])
def test_an_unknown_name(call):
    with pytest.raises(ValueError, match="numba"):
        call("nunba")


def test_a_backend_that_cannot_run():
    """It is reported, refused by name, and passed over by "auto"."""
    code = """
import numpy as np, wavefilt
from wavefilt import backends
x = np.random.default_rng(0).standard_normal(1 << 24).astype("f4")
state = backends.available()["numba"]
print(type(state).__name__, "NUMBA_DISABLE_JIT" in str(state))
try:
    wavefilt.denoise(x, backend="numba")
except wavefilt.BackendUnavailable:
    print("refused")
y = wavefilt.denoise(x[:1 << 20], level=2)
print(np.array_equal(y, wavefilt.denoise(x[:1 << 20], level=2, backend="pywavelets")))
"""
    expected = ["BackendUnavailable", "True", "refused", "True"]
    assert python(code, NUMBA_DISABLE_JIT="1") == expected


@pytest.mark.skipif(
    not isinstance(backends.available()["cuda"], wavefilt.BackendUnavailable), reason="a GPU can be used here"
)
def test_without_a_gpu():
    with pytest.raises(wavefilt.BackendUnavailable):
        wavefilt.denoise(np.ones(64), backend="cuda")
    with pytest.raises(wavefilt.BackendUnavailable):
        backends.get("cuda", devices="all")
    assert wavefilt.denoise(np.ones(1 << 16, "f4")).shape == (1 << 16,)


def test_the_search_for_a_gpu_is_announced_once():
    code = """
import logging, sys
from wavefilt import backends
logging.basicConfig(stream=sys.stdout, format="%(name)s")
logging.getLogger("wavefilt").setLevel("INFO")
backends.available()
backends.available()
"""
    assert python(code).count("wavefilt.backends.registry") == 1


@needs("numba")
def test_auto_compiles_nothing_for_small_arrays(tmp_path):
    """A new process has to load kernels, or compile them; then they are used for small arrays, too."""
    code = """
import sys, numpy as np, pywt
from wavefilt import backends
from wavefilt.transforms import DWT
analysis = DWT.analysis(pywt.Wavelet("db8"), "symmetric", 5)
for samples in (1 << 12, 1 << 20, 1 << 28):
    print(backends.choose("auto", "float32", (1, samples), analysis).name)
print("numba" in sys.modules, "wavefilt.backends.cuda.backend" in sys.modules)
backends.get("numba").decompose(np.ones((1, 64), "f4"), DWT.analysis(pywt.Wavelet("haar"), "zero", 1))
for samples in (64, 1 << 12, 1 << 20):
    print(backends.choose("auto", "float32", (1, samples), analysis).name)
print(backends.choose("auto", "float32", (1 << 20, 4), analysis).name)
"""
    words = python(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert words[:5] == ["pywavelets", "pywavelets", "numba", "False", "False"]
    assert words[5:] == ["pywavelets", "numba", "numba", "pywavelets"]


def test_auto_takes_the_gpu_once_it_is_in_use(monkeypatch):
    """Starting it costs more than any array here; after that the link and the threads decide."""
    from wavefilt.backends.crossover import cuda_crossover

    monkeypatch.setattr(cuda_crossover, "loaded", {})
    monkeypatch.setenv("WAVEFILT_NUM_THREADS", "16")
    asked = []

    def get(name):
        asked.append(name)
        return SimpleNamespace(name=name, dtypes=("float32", "float64"), transforms=("dwt",))

    def chosen(wavelet, dtype, denoising):
        analysis = DWT.analysis(pywt.Wavelet(wavelet), "symmetric", 5)
        return backends.choose("auto", dtype, (1, 1 << 24), analysis, denoising).name

    monkeypatch.setattr(registry, "get", get)
    chosen("db8", "float32", True)
    cuda_crossover.note("dwt", "float32", 16, "NVIDIA L4")
    assert chosen("db8", "float32", True) != "cuda"
    cuda_crossover.note("dwt", "float32", 16, "NVIDIA H200")
    assert chosen("db8", "float32", True) == "cuda"
    for wavelet, dtype, denoising in (("db4", "float32", True), ("db8", "float64", True), ("db8", "float32", False)):
        chosen(wavelet, dtype, denoising)
    assert asked.count("cuda") == 1


def test_a_backend_that_does_not_compute_a_dtype_is_replaced(rng):
    x = rng.standard_normal((2, 300)) + 1j * rng.standard_normal((2, 300))
    options = {"level": 3, "rule": 0.4}
    found, expected = (wavefilt.denoise(x, backend=name, **options) for name in ("auto", "pywavelets"))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("name", ["pywavelets", pytest.param("numba", marks=needs("numba"))])
def test_nothing_kept_for_a_built_in_backend_replaces_one_derived_from_it(rng, name):
    """As an object and under a name of its own, in repeated calls with arrays that the built-in one has had."""
    base = type(backends.get(name))

    class Doubled(base):
        def reconstruct(self, *arguments, **options):
            return 2 * super().reconstruct(*arguments, **options)

    x = rng.standard_normal((3, 5000))
    expected = [wavefilt.denoise(x, backend=name) for _ in range(3)]
    extending.register_backend("doubled", Doubled)
    try:
        for backend in (Doubled(), "doubled", name):
            for _ in range(3):
                found = wavefilt.denoise(x, backend=backend)
                np.testing.assert_array_equal(found, expected[0] if backend == name else 2 * expected[0])
    finally:
        del registry.BACKENDS["doubled"]

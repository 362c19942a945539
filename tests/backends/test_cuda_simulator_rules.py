"""Rules that shrink by more than a threshold, and the MODWT: their kernels in numba's CUDA simulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import pywt

from tests.support.simulation import arrays_on_device, inside
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.thresholding.shrinkage import FUNCTIONS, Shrinkage
from wavefilt.transforms import DWT, MODWT
from wavefilt.vocabulary import MODES


@pytest.fixture(scope="module")
def backend():
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.statistics import selection, sorting

    selection.WHOLE, selection.CHUNK, selection.SAMPLE, selection.STAGE = 250, 128, 256, 32
    sorting.SPAN = 32
    return Cuda(options=Options(tile=128, threads=8, select=8, scan=8, row=8))


@pytest.fixture(scope="module")
def reference():
    from wavefilt.backends.reference.backend import PyWavelets

    return PyWavelets()


def _traces(rows, n):
    return np.random.default_rng(n).standard_normal((rows, n))


@inside
@pytest.mark.parametrize(
    "options",
    [
        {"rule": "fdr", "scope": "record"},
        {"rule": "hybrid", "keep": 1},
        {"rule": "blockjs"},
        {"rule": "neighblock", "sigma": 0.5, "keep": 1},
        {"rule": "ebayes", "shrink": "mean"},
        {"rule": "ebayes-cauchy", "scope": "record"},
        {"rule": "bayes", "keep": 1},
        {"rule": "minimax", "shrink": "hard", "keep": 1},
    ],
    ids=lambda options: options["rule"],
)
def test_rules(backend, reference, options):
    x, bank = _traces(2, 140), pywt.Wavelet("db2")
    x[1, 60:70] += 40  # beyond where the posterior depends on the weight
    method = Method(wavelet=bank, level=2, **options)
    y, measured = backend.denoise(x, method, 2, report=True)
    whole = run(x, method, "pywavelets")
    np.testing.assert_allclose(y, whole.samples, atol=1e-9)
    (estimate,) = whole.estimates
    np.testing.assert_allclose(measured.thresholds, estimate.thresholds, rtol=1e-12)
    shrinkage = Shrinkage(method.function(140), estimate.thresholds, estimate.sigma)
    pyramid = backend.decompose(x, DWT.analysis(bank, "symmetric", 2))
    for _ in range(2):  # the pyramid stays as it is
        np.testing.assert_allclose(backend.reconstruct(pyramid, shrinkage), y, atol=1e-12)


@inside
@pytest.mark.parametrize("mode", MODES)
def test_modwt(backend, reference, mode):
    x, bank = _traces(2, 11), pywt.Wavelet("db2")
    ours, theirs = (b.decompose(x, MODWT.analysis(bank, mode, 2)) for b in (backend, reference))
    for a, b in zip(ours.coefficients, theirs.coefficients, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)
    shrinkage = Shrinkage("soft", np.array([[0.4, 0.0], [0.2, 1.0]]))
    for pyramid in (ours, ours, theirs):  # those of the reference are copied to the device
        y = backend.reconstruct(pyramid, shrinkage)
        np.testing.assert_allclose(y, reference.reconstruct(theirs, shrinkage), atol=1e-11)
    found, expected = (b.statistics([p], "trace") for b, p in ((backend, ours), (reference, theirs)))
    np.testing.assert_allclose(found.median_abs([2]), expected.median_abs([2]), atol=1e-12)
    np.testing.assert_allclose(found.mean_square(), expected.mean_square(), rtol=1e-12)
    assert np.array_equal(found.counts, expected.counts)


@inside
@pytest.mark.parametrize(
    ("wavelet", "mode", "n", "level"),
    [
        ("haar", "zero", 70, 6),
        ("db2", "periodization", 101, 5),
        ("bior2.4", "reflect", 41, 3),
        ("db1", "zero", 5, 0),
    ],
)
def test_tiles_of_the_modwt(reference, monkeypatch, wavelet, mode, n, level):
    """Tiles with and without gaps, in the middle of rows and at their ends."""
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.modwt import tiling

    monkeypatch.setattr(tiling, "RUN_BYTES", 16)
    backend, x, bank = Cuda(options=Options(threads=4)), _traces(1, n).astype("f4"), pywt.Wavelet(wavelet)
    ours, theirs = (b.decompose(x, MODWT.analysis(bank, mode, level)) for b in (backend, reference))
    for a, b in zip(ours.coefficients, theirs.coefficients, strict=True):
        np.testing.assert_allclose(a, b, atol=3e-6)
    shrinkage = Shrinkage("hard", np.full((level, 1), 0.4))
    expected = reference.reconstruct(replace(theirs, coefficients=ours.coefficients), shrinkage)
    np.testing.assert_allclose(backend.reconstruct(ours, shrinkage), expected, atol=3e-6)


@inside
@pytest.mark.parametrize(("rule", "sigma", "scope"), [("universal", "global", "trace"), ("ebayes", "level", "record")])
def test_denoise_by_modwt(backend, rule, sigma, scope):
    x, method = _traces(2, 33), Method("haar", 2, "symmetric", rule, None, sigma, scope, transform="modwt")
    y, measured = backend.denoise(x, method, 2, report=True)
    whole = run(x, method, "pywavelets", report=True)
    np.testing.assert_allclose(y, whole.samples, atol=1e-10)
    (estimate,) = whole.estimates
    for name in ("sigma", "thresholds", "power"):
        np.testing.assert_allclose(getattr(measured, name), getattr(estimate, name), rtol=1e-10)
    assert np.array_equal(backend.denoise(np.zeros((1, 33)), method, 2)[0], np.zeros((1, 33)))
    x[1, 30] = np.nan
    assert backend.denoise(x, method, 2) is None
    x[1, 30] = 0
    assert backend.denoise(x, method, 2) is not None


@inside
@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
def test_cycle_spinning_in_device_memory(backend, monkeypatch, mode):
    """As an array on a GPU is denoised; the simulator's arrays stand for one."""
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda

    arrays_on_device(monkeypatch)
    x, method = _traces(2, 48), Method("haar", 2, mode, "universal", sigma="global", spins=3)
    y = backend.spun(cuda.to_device(x), method, 2)
    np.testing.assert_allclose(interop.to_host(y), run(x, method, "pywavelets").samples, atol=1e-10)


@inside
def test_a_threshold_function_from_elsewhere(backend, reference):
    """Kernels do not have it: details are shrunk on the host."""
    FUNCTIONS.register("halve", lambda data, value: np.where(np.abs(data) < value, data / 2, data))
    try:
        x = _traces(2, 60)
        for options in ({"transform": "modwt"}, {"transform": "dwt"}):
            method = Method("haar", 2, rule="universal", shrink="halve", **options)
            y, _ = backend.denoise(x, method, 2)
            np.testing.assert_allclose(y, run(x, method, "pywavelets").samples, atol=1e-12)
        method = Method("haar", 1, rule="universal", shrink="halve", dimensions=2)
        y, _ = backend.denoise(x[None], method, 1)
        np.testing.assert_allclose(y, run(x[None], method, "pywavelets").samples, atol=1e-12)
    finally:
        FUNCTIONS.unregister("halve")


@inside
@pytest.mark.parametrize(
    "options",
    [
        {"rule": "js", "spins": 2},
        {"rule": "bayes", "detrend": "line", "sigma": ("window", 0, 30)},
        {"rule": "bayes", "blend": 0.2},
    ],
)
def test_what_the_host_does_instead(backend, monkeypatch, options):
    """For samples in host memory and on a GPU: what comes before and after transform and statistics."""
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.denoising.device_arrays import _rows

    x, method = _traces(2, 64) + 3, Method("db2", 2, **options)
    expected = run(x, method, "pywavelets").samples
    done = run(x, method, backend)
    np.testing.assert_allclose(done.samples, expected, atol=1e-10)
    assert done.backend == "cuda"
    arrays_on_device(monkeypatch)
    y = _rows(cuda.to_device(x), method, backend)
    np.testing.assert_allclose(interop.to_host(y), expected, atol=1e-10)

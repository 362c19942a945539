"""Two dimensions on a GPU: small sizes in the simulator, real ones with ``pytest -m gpu``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import pywt
from numpy.testing import assert_allclose

import wavefilt
from tests.support.simulation import arrays_on_device, inside
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DWT2, Analysis
from wavefilt.vocabulary import MODES


@pytest.fixture(scope="module")
def small():
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.dwt2 import plan
    from wavefilt.backends.cuda.statistics import selection, sorting

    selection.WHOLE, selection.CHUNK, selection.SAMPLE, selection.STAGE = 250, 128, 256, 32
    sorting.SPAN, plan.BLOCKS = 32, 2
    return Cuda(options=Options(tile=64, threads=16, select=8, scan=8, row=8))


@pytest.fixture(scope="module")
def reference():
    from wavefilt.backends.reference.backend import PyWavelets

    return PyWavelets()


@inside
@pytest.mark.parametrize("mode", MODES)
def test_transforms(small, reference, mode):
    """Edges and tiles inside, two filters, an axis that is periodized and one that is not."""
    x = np.random.default_rng(5).standard_normal((1, 43, 38))
    pair, modes = (pywt.Wavelet("db2"), pywt.Wavelet("haar")), (mode, "periodization" if mode == "zero" else mode)
    ours, theirs = (b.decompose(x, Analysis(DWT2, pair, modes, 2)) for b in (small, reference))
    for a, b in zip(ours.coefficients, theirs.coefficients, strict=True):
        assert_allclose(a, b, atol=1e-11)
    shrinkage = Shrinkage("soft", np.linspace(0.1, 0.6, 6)[:, None])
    assert_allclose(small.reconstruct(theirs, shrinkage), reference.reconstruct(theirs, shrinkage), atol=1e-11)


@inside
def test_denoise_and_what_is_measured(small, reference):
    x = np.random.default_rng(6).standard_normal((2, 22, 30))
    for options in (
        {"rule": "universal", "sigma": "global"},
        {"rule": "bayes", "scope": "record"},
        {"rule": "ebayes"},
        {"rule": 0.4, "shrink": "firm"},
    ):
        method = Method("haar", level=1, dimensions=2, **options)
        ours, theirs = run(x, method, small, report=True), run(x, method, reference, report=True)
        assert_allclose(ours.samples, theirs.samples, atol=1e-10)
        for name in ("sigma", "thresholds", "power", "counts"):
            assert_allclose(*(getattr(o.estimates[0], name) for o in (ours, theirs)), rtol=1e-10)


@inside
@pytest.mark.parametrize("gap", [np.nan, 0, 4.5])
@pytest.mark.parametrize("options", [{"rule": "universal"}, {"rule": "sure"}], ids=str)
def test_gaps_and_dead_traces(small, reference, monkeypatch, gap, options):
    """Found by the device in what is there, and filled by way of the host."""
    x = np.random.default_rng(6).standard_normal((2, 22, 30))
    x[1, 7] = gap
    x[0, 3, 3] = np.nan if np.isnan(gap) else 1
    method = Method("haar", level=1, dimensions=2, **options)
    ours, theirs = run(x, method, small), run(x, method, reference)
    assert_allclose(ours.samples, theirs.samples, atol=1e-10)
    assert np.array_equal(ours.samples[1, 7], x[1, 7], equal_nan=True)
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.denoising import device_arrays

    arrays_on_device(monkeypatch)
    y = interop.to_host(device_arrays._rows(cuda.to_device(x), method, small))
    assert_allclose(y, theirs.samples, atol=1e-10)
    assert np.array_equal(y[1, 7], x[1, 7], equal_nan=True)


@inside
def test_statistics_of_bands_and_coefficients_from_elsewhere(small, reference):
    x = np.random.default_rng(7).standard_normal((2, 20, 26))
    pair, modes = (pywt.Wavelet("haar"),) * 2, ("symmetric",) * 2
    theirs = reference.decompose(x, Analysis(DWT2, pair, modes, 1))
    found, expected = (b.statistics([theirs], "record") for b in (small, reference))
    assert np.array_equal(found.counts, expected.counts)
    assert np.array_equal(found.median_abs([1, 3]), expected.median_abs([1, 3]))
    assert_allclose(found.mean_square(), expected.mean_square(), rtol=1e-12)
    with pytest.raises(ValueError, match="do not belong together"):
        small.reconstruct(replace(theirs, shape=(30, 26)))
    assert small.decompose(x, Analysis(DWT2, pair, modes, 0)).coefficients[0] is x


@pytest.fixture(scope="module")
def gpu():
    from wavefilt import backends

    try:
        return backends.get("cuda")
    except wavefilt.errors.BackendUnavailable as error:
        pytest.skip(str(error))


def difference(a, b):
    return np.linalg.norm(a.astype(np.float64) - b) / np.linalg.norm(b.astype(np.float64))


@pytest.mark.gpu
@pytest.mark.parametrize("wavelet", ["haar", "db4", "sym8", "bior2.4", "db20", "coif17"])
def test_transforms_on_a_gpu(gpu, reference, wavelet):
    rng, pair = np.random.default_rng(8), (pywt.Wavelet(wavelet),) * 2
    for mode in MODES:
        for dtype, shape, limit in (("float32", (1, 517, 603), 2e-6), ("float64", (3, 131, 260), 1e-12)):
            x = rng.standard_normal(shape).astype(dtype)
            if mode in ("smooth", "antireflect"):  # what lies beyond a corner is large
                limit *= pair[0].dec_len ** 2
            theirs = reference.decompose(x.astype("f8"), Analysis(DWT2, pair, (mode, mode), 2))
            ours = gpu.decompose(x, Analysis(DWT2, pair, (mode, mode), 2))
            assert max(difference(a, b) for a, b in zip(ours.coefficients, theirs.coefficients, strict=True)) < limit
            shrinkage = Shrinkage("soft", np.full((6, len(x)), 0.5))
            y = reference.reconstruct(theirs, shrinkage)
            assert difference(gpu.reconstruct(ours, shrinkage), y) < 10 * limit
    gpu.clear()


@pytest.mark.gpu
@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (2, 0)])
def test_denoise_of_host_and_device_arrays(gpu, axes):
    cupy = pytest.importorskip("cupy")
    x = np.random.default_rng(9).standard_normal((600, 90, 700), dtype="f4")
    options = {"level": 2, "rule": "universal", "sigma": "global", "axes": axes}
    expected = wavefilt.denoise(x, "db4", **options, backend="numba")
    assert difference(wavefilt.denoise(x, "db4", **options, backend="cuda"), expected) < 1e-5
    on_device = cupy.asarray(x)
    for _ in range(4):  # launches, then a graph
        y = wavefilt.denoise(on_device, "db4", **options)
        assert isinstance(y, cupy.ndarray)
        assert difference(y.get(), expected) < 1e-5

"""The dual tree on a GPU: small sizes in the simulator, real ones with ``pytest -m gpu``."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wavefilt
from tests.support.simulation import arrays_on_device, inside
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DTCWT, DTCWT2
from wavefilt.wavelets.dual_tree import DualTree

SHORT, LONG = DualTree("legall", "qshift_06"), DualTree("near_sym_b", "qshift_b")


@pytest.fixture(scope="module")
def small():
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.dual_tree import panels_plan, tiles
    from wavefilt.backends.cuda.statistics import selection, sorting

    selection.WHOLE, selection.CHUNK, selection.SAMPLE, selection.STAGE = 250, 128, 256, 32
    sorting.SPAN, panels_plan.BLOCKS, tiles.LEAST = 32, 2, 8
    return Cuda(options=Options(tile=64, threads=64, select=8, scan=8, row=8))


@pytest.fixture(scope="module")
def reference():
    from wavefilt.backends.reference.backend import PyWavelets

    return PyWavelets()


def _compared(ours, theirs, x, analysis, bands):
    """Coefficients, and what comes back of them: as they are, shrunk by magnitudes, and from elsewhere."""
    own, expected = (backend.decompose(x, analysis) for backend in (ours, theirs))
    for a, b in zip(own.coefficients, expected.coefficients, strict=True):
        assert_allclose(a, b, atol=1e-11)
    shrinkage = Shrinkage("soft", np.linspace(0.1, 0.6, bands * len(x)).reshape(bands, -1))
    assert_allclose(ours.reconstruct(own), x, atol=1e-11)
    assert_allclose(ours.reconstruct(expected, shrinkage), theirs.reconstruct(expected, shrinkage), atol=1e-11)
    found, wanted = (backend.statistics([expected], "trace") for backend in (ours, theirs))
    assert_allclose(found.quantile_abs([1, bands], 0.3), wanted.quantile_abs([1, bands], 0.3), rtol=1e-12)
    assert_allclose(found.mean_square(), wanted.mean_square(), rtol=1e-12)


@inside
@pytest.mark.parametrize(
    ("tree", "rows", "samples", "level"), [(SHORT, 2, 203, 5), (LONG, 1, 517, 6), (LONG, 1, 1, 1), (LONG, 2, 129, 3)]
)
def test_traces(small, reference, tree, rows, samples, level):
    """Several tiles and launches, lengths that are extended, and a trace shorter than its filters."""
    x = np.random.default_rng(1).standard_normal((rows, samples))
    _compared(small, reference, x, DTCWT.analysis(tree, "symmetric", level), level)


@inside
@pytest.mark.parametrize(
    ("tree", "shape", "level"), [(SHORT, (2, 19, 42), 2), (LONG, (1, 12, 45), 2), (LONG, (1, 3, 5), 1)]
)
def test_panels(small, reference, tree, shape, level):
    x = np.random.default_rng(2).standard_normal(shape)
    _compared(small, reference, x, DTCWT2.analysis(tree, "symmetric", level), 6 * level)


@inside
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rule": "bayes", "scope": "record"},
        {"rule": "universal", "sigma": "global"},
        {"rule": "js", "sigma": 0.5},
        {"rule": "js", "detrend": "line", "keep": 1},
        {"rule": "sure"},
    ],
    ids=str,
)
def test_denoise_of_traces(small, reference, options):
    x = np.random.default_rng(3).standard_normal((2, 150)) + 3
    x[1] *= 10
    _denoised(small, reference, x, Method(transform="dtcwt", level=3, **options))


@inside
@pytest.mark.parametrize(
    "options", [{}, {"rule": "bayes", "scope": "record"}, {"rule": 0.4, "shrink": "firm"}], ids=str
)
def test_denoise_of_panels(small, reference, options):
    x = np.random.default_rng(4).standard_normal((2, 10, 30))
    x[:, :, :15] *= 10
    _denoised(small, reference, x, Method("legall,qshift_a", transform="dtcwt", level=1, dimensions=2, **options))


def _denoised(ours, theirs, x, method):
    found, expected = (run(x, method, backend, report=True) for backend in (ours, theirs))
    assert_allclose(found.samples, expected.samples, atol=1e-10)
    for name in ("sigma", "thresholds", "counts"):
        assert_allclose(*(getattr(one.estimates[0], name) for one in (found, expected)), rtol=1e-10)


@inside
def test_arrays_on_a_gpu_with_a_dead_trace(small, reference, monkeypatch):
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.denoising import device_arrays

    arrays_on_device(monkeypatch)
    x = np.random.default_rng(5).standard_normal((3, 80))
    x[1] = 2
    method = Method(transform="dtcwt", level=2)
    y = interop.to_host(device_arrays._rows(cuda.to_device(x), method, small))
    assert_allclose(y, run(x, method, reference).samples, atol=1e-10)
    assert np.array_equal(y[1], x[1])


@pytest.fixture(scope="module")
def gpu():
    from wavefilt import backends

    try:
        return backends.get("cuda")
    except wavefilt.errors.BackendUnavailable as error:
        pytest.skip(str(error))


def difference(a, b):
    return np.linalg.norm(a.astype(np.complex128) - b) / np.linalg.norm(b.astype(np.complex128))


@pytest.mark.gpu
@pytest.mark.parametrize("tree", [LONG, SHORT, DualTree("antonini", "qshift_d")], ids=lambda tree: tree.name)
def test_transforms_on_a_gpu(gpu, reference, tree):
    rng = np.random.default_rng(8)
    for dtype, limit in (("float32", 2e-6), ("float64", 1e-12)):
        for transform, shape, level in ((DTCWT2, (2, 517, 603), 3), (DTCWT, (3, 30011), 6)):
            x = rng.standard_normal(shape).astype(dtype)
            analysis = transform.analysis(tree, "symmetric", level)
            theirs, ours = reference.decompose(x.astype("f8"), analysis), gpu.decompose(x, analysis)
            assert max(difference(a, b) for a, b in zip(ours.coefficients, theirs.coefficients, strict=True)) < limit
            shrinkage = Shrinkage("soft", np.full((level * (6 if len(shape) == 3 else 1), len(x)), 0.5))
            assert difference(gpu.reconstruct(ours, shrinkage), reference.reconstruct(theirs, shrinkage)) < 10 * limit
    gpu.clear()


@pytest.mark.gpu
@pytest.mark.parametrize("options", [{}, {"rule": "bayes"}, {"rule": "js", "sigma": "global"}], ids=str)
@pytest.mark.parametrize(("shape", "axes"), [((3, 200_003), {}), ((300, 5, 421), {"axes": (0, 2)})])
def test_denoise_of_host_and_device_arrays(gpu, shape, axes, options):
    cupy = pytest.importorskip("cupy")
    x = np.random.default_rng(9).standard_normal(shape, dtype="f4")
    x += np.sin(np.arange(shape[-1]) / 30, dtype="f4")
    options = {"transform": "dtcwt", "level": 4, **axes, **options}
    expected = wavefilt.denoise(x, **options, backend="pywavelets")
    assert difference(wavefilt.denoise(x, **options, backend="cuda"), expected) < 1e-5
    on_device = cupy.asarray(x)
    for _ in range(4):  # launches, then a graph
        y = wavefilt.denoise(on_device, **options)
        assert isinstance(y, cupy.ndarray)
        assert difference(y.get(), expected) < 1e-5

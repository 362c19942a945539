"""Rule js and trends on the GPU, in numba's simulator: as the reference computes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import pywt

from tests.support.simulation import arrays_on_device, inside
from wavefilt import BackendUnavailable, backends
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.thresholding.local_shrinkage import Local
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DWT, MODWT

# of what lies between rows, which is computed along, and of samples that are not finite
pytestmark = [pytest.mark.filterwarnings(f"ignore:{what}:RuntimeWarning") for what in ("invalid", "overflow")]
TOLERANCE = {"f4": 3e-6, "f8": 1e-12}


@pytest.fixture(scope="module")
def small():
    """Tiles and chunks that are so small that short rows have several."""
    from wavefilt.backends.cuda import Cuda, Options, trend
    from wavefilt.backends.cuda.dwt import local_shrinkage
    from wavefilt.backends.cuda.modwt import local_shrinkage as undecimated
    from wavefilt.backends.cuda.statistics import selection, sorting

    selection.WHOLE, selection.CHUNK, selection.SAMPLE, selection.STAGE, sorting.SPAN = 250, 128, 256, 32, 32
    local_shrinkage.TILE_BYTES, local_shrinkage.LEAST, undecimated.EACH, trend.LEAST, trend.PARTS = 512, 8, 2, 32, 12
    local_shrinkage.FILL, local_shrinkage.WIDE_BYTES = 4, 9 << 7
    return Cuda(options=Options(tile=128, threads=8, select=8, scan=8, row=8))


@pytest.fixture(scope="module")
def reference():
    from wavefilt.backends.reference.backend import PyWavelets

    return PyWavelets()


def _traces(rows, n, dtype="f8"):
    """Noise with a burst in it, and an offset."""
    x = np.random.default_rng(n).standard_normal((rows, n))
    x[:, n // 2 : n // 2 + n // 8] *= 12
    return (x + 3).astype(dtype)


def _shrunk(backend, reference, analysis, rows, n, dtype="f8", off=()):
    """Coefficients shrunk together and reconstructed, as by the reference."""
    x = _traces(rows, n, dtype) - 3
    ours, theirs = (b.decompose(x, analysis) for b in (backend, reference))
    thresholds = np.random.default_rng(1).uniform(0.5, 2.5, (analysis.level + 1, rows))
    thresholds[list(off)] = 0
    shrinkage, tolerance = Shrinkage(Local(), thresholds), TOLERANCE[dtype]
    expected = reference.reconstruct(theirs, shrinkage)
    for pyramid in (ours, ours, theirs):  # those of the reference are copied to the device
        y = backend.reconstruct(pyramid, shrinkage)
        np.testing.assert_allclose(y, expected, atol=tolerance * np.abs(x).max(), rtol=0)
    assert 0.01 < np.linalg.norm(x - expected) / np.linalg.norm(x) < 0.9


@inside
@pytest.mark.parametrize(
    ("wavelet", "mode", "n", "level"),
    [
        ("db2", "symmetric", 300, 5),
        ("haar", "periodization", 130, 6),
        ("sym8", "reflect", 201, 4),
        ("db2", "periodization", 37, 5),
        ("bior2.4", "periodic", 67, 1),
        ("db5", "zero", 12, 2),
        ("sym8", "symmetric", 266, 4),  # a wide tile
    ],
)
def test_bands_of_the_dwt(small, reference, wavelet, mode, n, level):
    _shrunk(small, reference, DWT.analysis(pywt.Wavelet(wavelet), mode, level), 2, n)


@inside
@pytest.mark.parametrize(
    ("wavelet", "mode", "n", "level", "start_level"),
    [
        ("db2", "symmetric", 70, 3, 0),
        ("haar", "periodization", 33, 4, 0),
        ("sym8", "reflect", 60, 2, 0),
        ("db2", "periodic", 9, 3, 0),
        ("haar", "zero", 40, 2, 1),
    ],
)
def test_bands_of_the_modwt(small, reference, wavelet, mode, n, level, start_level):
    _shrunk(small, reference, MODWT.analysis(pywt.Wavelet(wavelet), mode, level, start_level), 2, n)


@inside
@pytest.mark.parametrize("transform", [DWT, MODWT], ids=lambda transform: transform.name)
@pytest.mark.parametrize("off", [(0,), (1,), (3,), (2, 3)])
def test_bands_that_are_unchanged(small, reference, transform, off):
    """They are no neighbours of others."""
    _shrunk(small, reference, transform.analysis(pywt.Wavelet("db2"), "symmetric", 3), 1, 90, off=off)


@inside
@pytest.mark.parametrize("transform", [DWT, MODWT], ids=lambda transform: transform.name)
def test_float32(small, reference, transform):
    _shrunk(small, reference, transform.analysis(pywt.Wavelet("db2"), "symmetric", 3), 2, 120, "f4")


@inside
@pytest.mark.parametrize("transform", ["dwt", "modwt"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sigma": "global", "detrend": "line"},
        {"sigma": 0.7, "mode": "periodization"},
        {"scope": "record"},
        {"keep": 1},
        {"sigma": ("window", 4, 40)},
        {"blend": 0.2},
        {"level": 1, "mode": "reflect"},
    ],
    ids=str,
)
def test_denoise(small, monkeypatch, transform, options):
    """In host memory and as an array on a GPU."""
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.denoising.device_arrays import _rows

    x = _traces(3, 101)
    x[1] = np.linspace(1, 2, 101) + 0.1 * x[1]
    method = Method(**{"wavelet": "db2", "level": 3, "rule": "js", "transform": transform} | options)
    expected, found = run(x, method, "pywavelets", report=True), run(x, method, small, report=True)
    assert found.backend == "cuda"
    np.testing.assert_allclose(found.samples, expected.samples, atol=1e-10)
    (ours,), (theirs,) = found.estimates, expected.estimates
    for name in ("sigma", "thresholds", "power", "approximation"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-10)
    again = run(x, method, small)
    assert np.array_equal(again.samples, found.samples)
    arrays_on_device(monkeypatch)
    y = _rows(cuda.to_device(x), method, small)
    np.testing.assert_allclose(interop.to_host(y), expected.samples, atol=1e-10)


@inside
@pytest.mark.parametrize("transform", ["dwt", "modwt"])
def test_gaps_and_dead_traces(small, transform):
    x = _traces(4, 120)
    x[1] = 2.5
    x[2, 60:64] = np.nan
    for scope in ("trace", "record"):
        method = Method("haar", 3, rule="js", transform=transform, scope=scope)
        found, expected = run(x, method, small), run(x, method, "pywavelets")
        np.testing.assert_allclose(found.samples, expected.samples, atol=1e-10)
        assert np.array_equal(found.samples[1], x[1])


@inside
@pytest.mark.parametrize("detrend", ["mean", "line"])
@pytest.mark.parametrize(("rows", "n"), [(3, 100), (1, 501), (20, 33)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_trends(small, detrend, rows, n, dtype):
    """Of any rule; removed and added again, as on the host."""
    x = _traces(rows, n, dtype) + np.linspace(0, 50, n, dtype=dtype)
    if rows > 1:
        x[0] = 4
    method = Method("db2", 2, "zero", "bayes", detrend=detrend)
    y, _ = small.denoise(x, method, 2)
    expected = run(x, method, "pywavelets").samples
    np.testing.assert_allclose(y, expected, atol=TOLERANCE[dtype] * 50)
    assert np.array_equal(y[0], x[0]) == (rows > 1)
    plain = run(x, replace(method, detrend=None), "pywavelets").samples
    assert np.abs(plain - expected).max() > 0.1


@inside
@pytest.mark.parametrize(("listed", "energy"), [(4, True), (3, False), (3, True)])
def test_a_coarsest_band_without_room_for_lists(small, listed, energy):
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.backends.cuda.statistics.layout import DetailLayout
    from wavefilt.backends.cuda.statistics.selection import Selection

    bands, values = [(0, 800, 797, 2), (1600, 400, 399, 2), (2400, 300, 300, 2), (3000, 260, 259, 2)], []
    flat, rng = np.full(4000, np.nan), np.random.default_rng(3)
    for offset, pitch, length, rows in bands:
        values.append(rng.standard_normal((rows, length)))
        flat[offset : offset + rows * pitch].reshape(rows, pitch)[:, :length] = values[-1]
    found = Selection([DetailLayout(cuda.to_device(flat), bands, 3520, listed)], small._options, 4, False, 0.3)
    found.run(4, energy, cuda.stream(), True)
    place, ordered = [int(0.3 * (own.shape[1] - 1)) for own in values], [np.sort(abs(own)) for own in values]
    expected = [own[:, k : k + 2] for own, k in zip(ordered, place, strict=True)]
    middle = found.middle.copy_to_host().reshape(4, 2, 2)
    assert np.array_equal(middle[..., 0], [e[:, 0] for e in expected])
    assert np.array_equal(middle[:3, :, 1], [e[:, 1] for e in expected[:3]])
    if energy:
        np.testing.assert_allclose(found.energy.copy_to_host().reshape(4, 2), [(v**2).sum(1) for v in values])


@inside
def test_not_finite(small):
    x, method = _traces(2, 90), Method("haar", 3, rule="js")
    x[1, 30] = np.inf
    assert small.denoise(x, method, 3) is None


@pytest.fixture(scope="module")
def gpu():
    try:
        return backends.get("cuda")
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("transform", ["dwt", "modwt"])
@pytest.mark.parametrize(
    ("wavelet", "mode", "rows", "n", "level"),
    [
        ("sym8", "reflect", 1, 1 << 20, 6),
        ("db8", "symmetric", 1, 2_000_003, 12),
        ("db4", "periodization", 3, 100_001, 9),
        ("coif17", "zero", 2, 50_000, 5),
        ("haar", "smooth", 70_000, 40, 3),
        ("db8", "symmetric", 24, 1024, 6),
        ("sym8", "periodic", 300, 16_384, 6),
    ],
)
def test_as_the_cpu(gpu, wavelet, mode, rows, n, level, transform, dtype):
    """Each time the same bits: launched, recorded and replayed."""
    x, method = _traces(rows, n, dtype), Method(wavelet, level, mode, "js", transform=transform)
    expected, samples = run(x, method, "numba").samples, cuda_array(x)
    found = [gpu.denoise(samples, method, level)[0].copy_to_host() for _ in range(4)]
    found.append(gpu.denoise(x, method, level)[0])
    for y in found:
        assert np.array_equal(y, found[0])
    difference = np.linalg.norm(found[0].astype("f8") - expected) / np.linalg.norm(x - 3.0)
    assert difference < (1e-5 if dtype == "f4" else 1e-12)
    gpu.clear()


def cuda_array(x):
    from wavefilt.backends.cuda.runtime.target import cuda

    return cuda.to_device(x)

"""`denoise` into an array of the caller's."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.simulation import arrays_on_device, inside, outside

X = np.random.default_rng(4).standard_normal((40, 300)).astype(np.float32)


@outside
@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
@pytest.mark.parametrize(
    "options",
    [{}, {"axis": 0}, {"axes": (0, 1)}, {"blend": 0.3}, {"scope": "record"}, {"rule": "js"}, {"spins": 2}],
    ids=str,
)
def test_the_result_is_there(backend, options):
    expected = wavefilt.denoise(X, "db2", level=2, backend=backend, **options)
    wide = np.zeros((40, 600), np.float32)
    for out in (np.zeros_like(X), np.zeros((300, 40), np.float32).T, wide[:, ::2], X.copy()):
        x = out if np.array_equal(out, X) else X
        y = wavefilt.denoise(x, "db2", level=2, backend=backend, out=out, **options)
        assert y is out
        np.testing.assert_array_equal(out, expected)
    assert not wide[:, 1::2].any()


@outside
def test_the_residual_is_of_the_samples_as_they_were():
    y, removed = wavefilt.denoise(X, level=2, return_noise=True)
    out = X.copy()
    found = wavefilt.denoise(out, level=2, return_noise=True, out=out)
    assert found[0] is out
    np.testing.assert_array_equal(out, y)
    np.testing.assert_array_equal(found[1], removed)


@outside
def test_gaps_and_other_dtypes():
    x = X.copy()
    x[1, 50] = np.nan
    out = x.copy()
    np.testing.assert_array_equal(wavefilt.denoise(out, level=2, out=out), wavefilt.denoise(x, level=2))
    for given, dtype in ((np.int16, np.float32), (np.int64, np.float64), (np.float16, np.float16), (">f4", ">f4")):
        x, out = (100 * X).astype(given), np.zeros(X.shape, dtype)
        np.testing.assert_array_equal(wavefilt.denoise(x, level=2, out=out), wavefilt.denoise(x, level=2))
    listed = np.zeros(300)
    np.testing.assert_array_equal(
        wavefilt.denoise(X[0].tolist(), level=2, out=listed), wavefilt.denoise(X[0].tolist(), level=2)
    )


@outside
def test_what_cannot_be_written_to():
    locked = np.zeros_like(X)
    locked.flags.writeable = False
    for out, error, message in (
        (np.zeros((40, 299), np.float32), ValueError, r"\(40, 299\).*\(40, 300\)"),
        (np.zeros(X.shape), ValueError, "float64.*float32"),
        (np.zeros(X.shape, ">f4"), ValueError, "float32"),
        (locked, ValueError, "read-only"),
        (X.tolist(), TypeError, "list"),
        (np.ma.array(X.copy()), TypeError, "MaskedArray"),
    ):
        with pytest.raises(error, match=message):
            wavefilt.denoise(X, level=2, out=out)
    with pytest.raises(TypeError, match="masked"):
        wavefilt.denoise(np.ma.array(X), level=2, out=np.zeros_like(X))


@outside
def test_pandas_has_no_out():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match=r"to_numpy"):
        wavefilt.denoise(pandas.Series(X[0]), level=2, out=np.zeros_like(X[0]))


@pytest.fixture
def on_gpu(monkeypatch):
    """Arrays of the simulator for arrays on a GPU, and where they begin."""
    from wavefilt import arrays
    from wavefilt.backends import registry
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda

    arrays_on_device(monkeypatch)
    kind, backend = type(cuda.device_array(1)), Cuda(options=Options(tile=128, threads=8, select=8, scan=8, row=8))
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

"""Arrays of every kind: dtypes, layouts, `out`, the residual, masks, and objects that are no arrays of samples."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wavefilt
from tests.support.checkout import SAMPLES, usable_backends
from tests.support.signals import noisy_chirp

X = np.random.default_rng(4).standard_normal((40, 300)).astype(np.float32)


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        ("f2", "f2"),
        ("f4", "f4"),
        ("f8", "f8"),
        (">f4", ">f4"),
        ("<f8", "<f8"),
        ("c8", "c8"),
        ("c16", "c16"),
        ("i1", "f4"),
        ("u1", "f4"),
        ("i2", "f4"),
        (">i2", "f4"),
        ("i4", "f8"),
        ("u4", "f8"),
        ("i8", "f8"),
    ],
)
def test_dtypes(backend, rng, dtype, out):
    x = (100 * noisy_chirp(rng, traces=2, samples=300)[1].clip(0, 1)).astype(dtype)
    kept = x.copy()
    y = wavefilt.denoise(x, backend=backend)
    assert y.dtype == np.dtype(out)
    assert y.shape == x.shape
    assert np.array_equal(x, kept)
    wide = wavefilt.denoise(kept.astype("c16" if np.dtype(dtype).kind == "c" else "f8"))
    assert_allclose(y, wide, atol=0.2 if dtype == "f2" else 1e-3)


def test_longdouble_goes_through_float64(rng):
    x = rng.standard_normal(200)
    y = wavefilt.denoise(x.astype(np.longdouble))
    assert y.dtype == np.longdouble
    assert np.array_equal(y, wavefilt.denoise(x))


def test_layouts(backend, rng):
    x = noisy_chirp(rng, traces=6, samples=400)[1]
    expected = wavefilt.denoise(x, backend=backend)
    wide = np.zeros((12, 800))
    wide[::2, ::2] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for same in (np.asfortranarray(x), wide[::2, ::2], frozen, x[::-1][::-1], x.tolist()):
        assert np.array_equal(wavefilt.denoise(same, backend=backend), expected)
    assert np.array_equal(wavefilt.denoise(x.T, axis=0, backend=backend), expected.T)
    cube = x.reshape(2, 3, 400)
    assert np.array_equal(wavefilt.denoise(cube, backend=backend).reshape(6, 400), expected)
    assert np.array_equal(wavefilt.denoise(np.moveaxis(cube, -1, 1), axis=1).shape, (2, 400, 3))


@pytest.mark.parametrize("shape", [(0, 100), (3, 0, 100), (1, 100), (2, 2, 2, 100)])
def test_batches_of_any_shape(backend, shape):
    y = wavefilt.denoise(np.ones(shape, "f4"), backend=backend)
    assert y.shape == shape
    assert y.dtype == np.float32


@pytest.mark.parametrize("backend", usable_backends())
def test_host_memory_is_always_waited_for(backend):
    x = np.random.default_rng(4).standard_normal(300)
    assert np.array_equal(wavefilt.denoise(x, backend=backend, wait=False), wavefilt.denoise(x, backend=backend))


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_what_was_removed(dtype):
    x = (100 * np.random.default_rng(0).standard_normal((3, 500))).astype(dtype)
    y, noise = wavefilt.denoise(x, return_residual=True)
    assert np.array_equal(y, wavefilt.denoise(x))
    np.testing.assert_allclose(y + noise, x, rtol=1e-5)
    if dtype == "float32":
        found = wavefilt.denoise(x, return_residual=True, out=x)
        assert found[0] is x
        assert np.array_equal(x, y)
        assert np.array_equal(found[1], noise)
    gappy = np.ma.masked_array(np.random.default_rng(0).standard_normal(500), np.arange(500) == 30)
    y, noise = wavefilt.denoise(gappy, return_residual=True)
    assert noise.mask[30]
    np.testing.assert_allclose((y + noise).compressed(), gappy.compressed())


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


def test_gaps_and_other_dtypes():
    x = X.copy()
    x[1, 50] = np.nan
    for given, dtype in ((x, "f4"), (X.astype(">f4"), ">f4"), ((100 * X).astype("i8"), "f8"), (X[0].tolist(), "f8")):
        expected = wavefilt.denoise(given, level=2)
        out = np.zeros(expected.shape, dtype)
        np.testing.assert_array_equal(wavefilt.denoise(given, level=2, out=out), expected)


def test_arrays_that_cannot_be_written_to():
    locked = np.zeros_like(X)
    locked.flags.writeable = False
    for out, error in (
        (np.zeros((40, 299), np.float32), ValueError),
        (np.zeros(X.shape), ValueError),
        (np.zeros(X.shape, ">f4"), ValueError),
        (locked, ValueError),
        (X.tolist(), TypeError),
        (np.ma.array(X.copy()), TypeError),
    ):
        with pytest.raises(error):
            wavefilt.denoise(X, level=2, out=out)
    with pytest.raises(TypeError, match="masked"):
        wavefilt.denoise(np.ma.array(X), level=2, out=np.zeros_like(X))
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="to_numpy"):
        wavefilt.denoise(pandas.Series(X[0]), level=2, out=np.zeros_like(X[0]))


@pytest.mark.parametrize(
    ("library", "make", "advice"),
    [
        ("obspy", lambda o: o.read(), r"wavefilt\.obspy\.denoise"),
        ("obspy", lambda o: o.read()[0], r"wavefilt\.obspy\.denoise"),
        ("obspy", lambda o: list(o.read()), r"wavefilt\.obspy\.denoise"),
        ("xarray", lambda x: x.DataArray(np.ones(64)), r"import wavefilt\.xarray"),
        ("xarray", lambda x: x.Dataset({"a": x.DataArray(np.ones(64))}), r"x\.wavefilt\.denoise"),
        ("dascore", lambda d: d.get_example_patch(), r"x\.wavefilt\.denoise"),
        ("dask.array", lambda d: d.ones(64), r"wavefilt\.dask\.denoise"),
        ("pandas", lambda p: [p.DataFrame(np.ones((64, 2)))], r"to_numpy"),
        ("wavefilt", lambda w: w.read(SAMPLES / "seismic.dat"), r"x\.denoise\(\)"),
    ],
)
def test_objects_of_other_libraries(library, make, advice):
    pytest.importorskip(library)
    x = make(importlib.import_module(library))
    with pytest.raises(TypeError, match=advice):
        wavefilt.denoise(x)


@pytest.mark.parametrize("kind", [str, Path, lambda name: str(name).encode(), lambda name: [str(name)]])
def test_paths(kind, tmp_path):
    with pytest.raises(TypeError, match=r"wavefilt\.read"):
        wavefilt.denoise(kind(tmp_path / "line.sgy"))
    with pytest.raises(TypeError, match="denoise_file"):
        wavefilt.denoise(kind(tmp_path))


def test_gpu_arrays_are_refused_where_there_is_no_gpu():
    class OnDevice:
        __cuda_array_interface__ = None

    if "cuda" in usable_backends():
        with pytest.raises(TypeError, match="GPU"):
            wavefilt.denoise(OnDevice(), backend="pywavelets")
    else:
        with pytest.raises(wavefilt.BackendUnavailable, match="cuda"):
            wavefilt.denoise(OnDevice())
    with pytest.raises(TypeError, match="wait=False"):
        wavefilt.denoise([OnDevice()])


def test_uneven_coordinates_of_xarray_are_refused(rng):
    xarray = pytest.importorskip("xarray")
    importlib.import_module("wavefilt.xarray")
    time = np.arange(200) * 0.5
    array = xarray.DataArray(rng.standard_normal(200), {"time": time}, "time")
    array.wavefilt.denoise()
    array.assign_coords(time=time[::-1]).wavefilt.denoise()
    days = np.datetime64("2024-02-01") + np.arange(200)
    array.assign_coords(time=days).wavefilt.denoise()
    for place, change in ((50, 0.2), (199, 3.0)):
        uneven = array.assign_coords(time=time + np.where(np.arange(200) >= place, change, 0))
        with pytest.raises(ValueError, match=f"sample {place - 1} "):
            uneven.to_dataset(name="a").wavefilt.denoise()
        uneven.drop_vars("time").wavefilt.denoise()
    with pytest.raises(ValueError, match="evenly"):
        array.assign_coords(time=np.append(days[:-1], days[-1] + np.timedelta64(2, "D"))).wavefilt.denoise()


def test_uneven_coordinates_of_dascore_are_refused():
    dascore = pytest.importorskip("dascore")
    patch = dascore.get_example_patch()
    time = patch.get_array("time").copy()
    time[700:] += np.timedelta64(1, "ms")
    with pytest.raises(ValueError, match="evenly"):
        patch.update_coords(time=time).wavefilt.denoise()
    jitter = patch.get_array("time") + (np.arange(len(time)) % 2) * np.timedelta64(10, "us")
    patch.update_coords(time=jitter).wavefilt.denoise()


def test_a_transformer_of_scikit_learn(rng):
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    traces, options = rng.standard_normal((8, 300)), {"rule": "universal"}
    found = preprocessing.FunctionTransformer(wavefilt.denoise, kw_args=options).fit_transform(traces)
    np.testing.assert_array_equal(found, wavefilt.denoise(traces, **options))

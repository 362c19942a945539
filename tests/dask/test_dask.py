"""Dask arrays denoised block by block: the result of NumPy, on threads and on processes that may die."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import pytest

import wavefilt
from tests.support.signals import partly_dead

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
zarr = pytest.importorskip("zarr")

import wavefilt.dask  # noqa: E402
from wavefilt.backends import interface  # noqa: E402

WHOLE, CUT, UNEVEN = (2, 3, -1), (4, 5, 1000), ((6,), (2, 3), (100, 1, 900, 1500))


def _samples(shape=(6, 5, 2501), dtype="f4"):
    rng = np.random.default_rng(3)
    x = np.sin(np.arange(shape[-1]) / 9) + rng.standard_normal(shape) * np.linspace(0.2, 2, shape[-2])[:, None]
    return x.astype(dtype)


def _both(x, chunks, *arguments, **options):
    """Return the array denoised by Dask and by NumPy."""
    array = da.from_array(x, chunks=chunks)
    options.setdefault("backend", "pywavelets")
    lazy = wavefilt.dask.denoise(array, *arguments, **options)
    whole = wavefilt.denoise(x, *arguments, **options)
    assert (lazy.chunks, lazy.dtype) == (array.chunks, whole.dtype)
    found = lazy.compute(scheduler="threads")
    assert (found.shape, found.dtype) == (whole.shape, whole.dtype)
    return found, whole


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("chunks", [WHOLE, CUT, UNEVEN], ids=["whole", "cut", "uneven"])
@pytest.mark.parametrize("scope", ["trace", "record"])
@pytest.mark.parametrize(
    ("rule", "sigma"),
    [("universal", "level"), ("minimax", "global"), ("bayes", "level"), ("bayes", 0.7), ([0.1, 0.2, 0.3], "level")],
)
def test_blocks_give_the_result_of_numpy(chunks, scope, rule, sigma):
    dtype = "f8" if sigma == "global" else "f4"
    found, whole = _both(_samples(dtype=dtype), chunks, "db4", level=3, rule=rule, sigma=sigma, scope=scope)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-5 if rule == "bayes" else 0)


@pytest.mark.parametrize(
    ("chunks", "options"),
    [
        *(((2, 700), {"mode": mode, "wavelet": "sym8", "level": 4}) for mode in
          ("zero", "constant", "smooth", "reflect", "antisymmetric", "antireflect")),
        *(((2, 700), {"transform": transform, "level": 3, "scope": scope, "sigma": sigma})
          for transform in ("modwt", "dtcwt")
          for scope, sigma in (("trace", "level"), ("record", "level"), ("trace", "global"))),
        ((2, 50), {"level": 5}),  # chunks smaller than the halo are joined
        ((1, 3001), {"level": 5}),
        ((2, 1000), {"level": 4, "backend": "numba"}),
    ],
    ids=str,
)  # fmt: skip
def test_cut_traces(chunks, options):
    found, whole = _both(_samples((2, 3001)), chunks, rule="universal", **options)
    assert np.array_equal(found, whole)


WHOLE_TRACES = [{"rule": "sure"}, {"rule": "ebayes"}, {"rule": "neighblock"}, {"transform": "modwt"}, {"spins": 3}]
WHOLE_TRACES += [{"sigma": ("window", 0, 500)}, {"sigma": ("running", 300), "rule": "js"}, {"mode": "periodic"}]
WHOLE_TRACES += [{"sigma": ("intervals", [100])}, {"keep": 2, "shrink": "hard"}]


@pytest.mark.parametrize("options", WHOLE_TRACES, ids=str)
def test_every_option_where_traces_are_whole(options):
    assert np.array_equal(*_both(_samples((6, 1200)), (2, -1), "db4", **options))


@pytest.mark.parametrize("dtype", ["i2", "i8", "f2", "c8"])
@pytest.mark.parametrize("chunks", [(-1, 3), (700, 6), ((900, 1100), (1, 5))])
def test_other_dtypes_along_the_first_axis(dtype, chunks):
    x = (100 * _samples((6, 2000), "f8")).T
    x = (x + 1j * x[::-1]).astype(dtype) if dtype == "c8" else x.astype(dtype)
    assert np.array_equal(*_both(x, chunks, "db4", level=3, rule="universal", axis=0))


@pytest.mark.gpu
@pytest.mark.parametrize("chunks", [WHOLE, CUT], ids=["whole", "cut"])
def test_cupy_chunks_stay_on_the_gpu(chunks):
    cupy = pytest.importorskip("cupy")
    x, options = _samples(), {"level": 3, "rule": "universal"}
    array = da.from_array(x, chunks=chunks).map_blocks(cupy.asarray)
    found = wavefilt.dask.denoise(array, "db4", backend="cuda", **options).compute(scheduler="synchronous")
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_allclose(cupy.asnumpy(found), wavefilt.denoise(x, "db4", **options), atol=1e-5)


@pytest.fixture
def runs_counted(monkeypatch):
    """Do not leave out runs of equal samples, as for divided traces."""
    monkeypatch.setattr(interface, "equal_runs", lambda x: None)


@pytest.mark.usefixtures("runs_counted")
@pytest.mark.parametrize("chunks", [(5, -1), (5, 600), (1, 2500), (24, 600)], ids=str)
@pytest.mark.parametrize(
    ("rule", "sigma"),
    [("bayes", "level"), ("universal", "global"), ("universal", 0.3), ("minimax", "level"), (0.3, 0.3)],
)
def test_dead_traces_of_a_record_count_for_nothing(rng, chunks, rule, sigma):
    x, dead = partly_dead(rng, 2500, "f4" if sigma == "level" else "f8")
    x[np.flatnonzero(~dead)[0], 650:1850] = 3  # a whole block of a live trace, and its halo
    options = {"level": 3, "rule": rule, "sigma": sigma, "scope": "record"}
    found, whole = _both(x, chunks, "db4", **options)
    alone = wavefilt.denoise(x[~dead], "db4", backend="pywavelets", **options)
    assert np.array_equal(whole[~dead], alone)
    assert np.array_equal(found[dead], x[dead])
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-5 if rule == "bayes" else 0)


@pytest.mark.parametrize("rule", ["bayes", "universal"])
def test_a_record_of_dead_traces_is_unchanged(rule):
    found, whole = _both(np.ones((4, 600)), (2, 300), rule=rule, scope="record")
    assert np.array_equal(found, whole)


@pytest.mark.usefixtures("runs_counted")
@pytest.mark.parametrize(("rule", "scope"), [(1.5, "trace"), ("universal", "trace"), ("bayes", "record")])
@pytest.mark.parametrize("mode", ["zero", "antisymmetric", "smooth"])
def test_constant_blocks_at_the_ends_of_traces(mode, rule, scope):
    """Modes that extend a constant by other values have details at its end, except in dead traces."""
    x = _samples((4, 3000), "f8")
    x[1, :1200], x[2, 1800:], x[3] = 3, 5, 7
    found, whole = _both(x, (3, 500), "db4", level=3, mode=mode, rule=rule, scope=scope)
    assert np.array_equal(found[3], x[3])
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-9)


def test_gaps_need_whole_traces():
    x = _samples((4, 2000))
    x[1], x[2, 700:720] = 0, np.nan
    np.testing.assert_array_equal(*_both(x, (1, -1), "db4", level=3))
    for rule in ("bayes", 0.5):
        lazy = wavefilt.dask.denoise(da.from_array(x, chunks=(2, 500)), "db4", rule=rule)
        with pytest.raises(ValueError, match="gaps"):
            lazy.compute(scheduler="threads")


@pytest.mark.parametrize(
    ("chunks", "options", "most"),
    [
        ((2, -1), {"scope": "record"}, 3),
        ((2, 1000), {"scope": "record"}, 4),
        ((2, 1000), {"scope": "record", "rule": 0.3}, 1),
        ((2, 1000), {"scope": "trace"}, 4),
        ((2, 1000), {"scope": "trace", "rule": "universal", "sigma": 0.3}, 1),
    ],
)
def test_chunks_are_read_lazily_and_not_too_often(chunks, options, most):
    read = []
    array = da.from_array(_samples((6, 4000)), chunks=chunks).map_blocks(
        lambda block: read.append(1) or block, dtype="f4", meta=np.empty((0, 0), "f4")
    )
    lazy = wavefilt.dask.denoise(array, "db4", level=3, backend="pywavelets", **options)
    assert not read
    lazy.compute(scheduler="threads")
    assert len(read) <= most * array.npartitions


IMPOSSIBLE = [
    *((2, 500, option) for option in ({"rule": "sure"}, {"mode": "periodic"}, {"spins": 2})),
    *((2, 500, {"sigma": sigma}) for sigma in (("window", 0, 100), ("running", 100))),
    *((2, -1, option) for option in ({"level": 20}, {"backend": "gpu"}, {"axis": 2}, {"axes": (0, 1)})),
    *((4, -1, {"axes": axes}) for axes in ((0, 1, 2), (0, 3))),
    *((2, -1, option) for option in ({"thershold": 1}, {"return_residual": True}, {"rule": "fdr", "scope": "record"})),
]


@pytest.mark.parametrize(("rows", "samples", "options"), IMPOSSIBLE, ids=str)
def test_impossible_options_are_refused_at_once(rows, samples, options):
    with pytest.raises(ValueError, match="axis|" + next(iter(options))):
        wavefilt.dask.denoise(da.from_array(_samples((4, 2000)), chunks=(rows, samples)), "db4", **options)


def test_arrays_that_are_refused():
    array = da.from_array(_samples((4, 2000)), chunks=(2, 500))
    for bad in (_samples(), array > 0, array[array[:, 0] > 0], array[:, :0]):
        with pytest.raises((TypeError, ValueError)):
            wavefilt.dask.denoise(bad)
    assert wavefilt.dask.denoise(array[:0]).compute().shape == (0, 2000)


class Scaled:
    """A threshold function whose repr does not show its factor."""

    def __init__(self, factor):
        self.factor = factor

    def __repr__(self):
        return "Scaled"

    def __call__(self, coefficients, thresholds):
        return self.factor * coefficients


def test_functions_with_the_same_repr_are_different_tasks():
    array = da.from_array(_samples((4, 2000)), chunks=(2, 500))
    lazy = [wavefilt.dask.denoise(array, "db4", rule=1.0, shrink=Scaled(factor)) for factor in (0, 1)]
    smooth, same = dask.compute(*lazy, scheduler="sync")
    np.testing.assert_allclose(same, array, atol=1e-5)
    assert np.abs(smooth - same).max() > 0.1


# ---- processes


def test_processes_and_a_worker_killed_in_the_middle(client):
    x = _samples((6, 4001))
    for chunks, scope in [((3, 1000), "trace"), (((1, 5), (900, 1100, 2001)), "record"), ((2, -1), "record")]:
        options = {"rule": "universal", "scope": scope, "backend": "pywavelets"}
        lazy = wavefilt.dask.denoise(da.from_array(x, chunks=chunks), "db4", **options)
        assert np.array_equal(lazy.compute(), wavefilt.denoise(x, "db4", **options))
    slow = da.from_array(x, chunks=(2, 1000)).map_blocks(
        lambda block: time.sleep(0.05) or block, dtype="f4", meta=np.empty((0, 0), "f4")
    )
    future = client.compute(wavefilt.dask.denoise(slow, "db4", **options))
    time.sleep(0.3)
    before = client.run(os.getpid)
    assert future.status == "pending"
    os.kill(next(iter(before.values())), signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
    assert np.array_equal(future.result(timeout=60), wavefilt.denoise(x, "db4", **options))
    assert set(client.run(os.getpid).values()) != set(before.values())

"""Dask arrays denoised block by block: the one machine's result, on threads and on processes that may die."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wavefilt
from tests.support.signals import partly_dead
from wavefilt import cli
from wavefilt.method import Method
from wavefilt.statistics.mergeable import HostTally, State, merged
from wavefilt.transforms import DWT

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
zarr = pytest.importorskip("zarr")

import wavefilt.dask  # noqa: E402
from wavefilt.dask import cluster, zarr_volumes  # noqa: E402
from wavefilt.io.arrays.zarr import copied, opened  # noqa: E402

WHOLE, CUT, UNEVEN = (2, 3, -1), (4, 5, 1000), ((6,), (2, 3), (100, 1, 900, 1500))


@pytest.fixture(autouse=True)
def forgetful(monkeypatch):
    """So that "auto" chooses by size alone, for blocks as for the whole, whatever other tests have loaded."""
    from wavefilt.backends.crossover import numba_crossover

    monkeypatch.setattr(numba_crossover, "loaded", set())


def _samples(shape=(6, 5, 2501), dtype="f4"):
    rng = np.random.default_rng(3)
    x = np.sin(np.arange(shape[-1]) / 9) + rng.standard_normal(shape) * np.linspace(0.2, 2, shape[-2])[:, None]
    return x.astype(dtype)


def _both(x, chunks, *arguments, **options):
    """The array denoised by dask and at once."""
    array = da.from_array(x, chunks=chunks)
    options.setdefault("backend", "pywavelets")
    lazy = wavefilt.dask.denoise(array, *arguments, **options)
    whole = wavefilt.denoise(x, *arguments, **options)
    assert (lazy.chunks, lazy.dtype) == (array.chunks, whole.dtype)
    found = lazy.compute(scheduler="threads")
    assert (found.shape, found.dtype) == (whole.shape, whole.dtype)
    return found, whole


def _volume(path, x, chunks):
    volume = zarr.open_array(str(path), mode="w", shape=x.shape, chunks=chunks, dtype=x.dtype)
    volume[:] = x
    return volume


@pytest.fixture(scope="module")
def client():
    with cluster.connected("local:2") as client:
        yield client


@pytest.mark.parametrize("chunks", [WHOLE, CUT, UNEVEN], ids=["whole", "cut", "uneven"])
@pytest.mark.parametrize("scope", ["trace", "record"])
@pytest.mark.parametrize(
    ("rule", "sigma"),
    [("universal", "level"), ("minimax", "global"), ("bayes", "level"), ("bayes", 0.7), ([0.1, 0.2, 0.3], "level")],
)
def test_blocks_give_what_the_whole_gives(chunks, scope, rule, sigma):
    dtype = "f8" if sigma == "global" else "f4"
    found, whole = _both(_samples(dtype=dtype), chunks, "db4", level=3, rule=rule, sigma=sigma, scope=scope)
    if rule == "bayes":
        np.testing.assert_allclose(found, whole, atol=1e-5)
    else:
        assert np.array_equal(found, whole)


@pytest.mark.parametrize("mode", ["zero", "constant", "smooth", "reflect", "antisymmetric", "antireflect"])
def test_ends_of_cut_traces(mode):
    assert np.array_equal(*_both(_samples((2, 3001)), (2, 700), "sym8", level=4, mode=mode, rule="universal"))


@pytest.mark.parametrize("transform", ["modwt", "dtcwt"])
@pytest.mark.parametrize(("scope", "sigma"), [("trace", "level"), ("record", "level"), ("trace", "global")])
def test_cut_traces_of_other_transforms(transform, scope, sigma):
    options = {"level": 3, "rule": "universal", "transform": transform, "scope": scope, "sigma": sigma}
    assert np.array_equal(*_both(_samples((2, 3001)), (2, 700), None, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "sure"},
        {"rule": "ebayes"},
        {"rule": "neighblock"},
        {"transform": "modwt"},
        {"spins": 3},
        {"sigma": ("window", 0, 500)},
        {"sigma": ("running", 300)},
        {"sigma": ("running", 300), "rule": "js"},
        {"sigma": ("intervals", "find")},
        {"mode": "periodic"},
        {"keep": 2, "shrink": "hard"},
    ],
)
def test_every_option_where_traces_are_whole(options):
    assert np.array_equal(*_both(_samples((6, 1200)), (2, -1), "db4", **options))


@pytest.mark.parametrize("dtype", ["i2", "i8", "f2", "c8"])
@pytest.mark.parametrize("chunks", [(-1, 3), (700, 6)])
def test_other_dtypes_along_the_first_axis(dtype, chunks):
    x = (100 * _samples((6, 2000), "f8")).T
    x = (x + 1j * x[::-1]).astype(dtype) if dtype == "c8" else x.astype(dtype)
    assert np.array_equal(*_both(x, chunks, "db4", level=3, rule="universal", axis=0))


def test_compiled_blocks():
    assert np.array_equal(*_both(_samples((4, 4000)), (2, 1000), rule="universal", level=4, backend="numba"))


@pytest.mark.gpu
@pytest.mark.parametrize("chunks", [WHOLE, CUT], ids=["whole", "cut"])
def test_cupy_chunks(chunks):
    """They stay arrays of CuPy, whether denoised on the GPU or by way of the host."""
    cupy = pytest.importorskip("cupy")
    x, options = _samples(), {"level": 3, "rule": "universal"}
    array = da.from_array(x, chunks=chunks).map_blocks(cupy.asarray)
    found = wavefilt.dask.denoise(array, "db4", backend="cuda", **options).compute(scheduler="synchronous")
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_allclose(cupy.asnumpy(found), wavefilt.denoise(x, "db4", **options), atol=1e-5)


def test_lots_of_one_trace_and_of_several():
    for dtype in ("f4", "f8"):
        assert np.array_equal(*_both(_samples((6, 2000), dtype), ((1, 5), (900, 1100)), "db4", rule="universal"))


def test_dead_traces_stay_and_gaps_are_cut_out():
    x = _samples((4, 2000))
    x[1] = 0
    x[3] = 3.7
    for scope in ("trace", "record"):
        found, whole = _both(x, (4, 500), "db4", level=3, scope=scope)
        assert not found[1].any()
        np.testing.assert_array_equal(found[3], x[3])
        np.testing.assert_array_equal(whole[3], x[3])
    x[2, 700:720] = np.nan
    found, whole = _both(x, (1, -1), "db4", level=3)
    np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize("chunks", [(5, -1), (5, 600), (1, 2500), (24, 600)], ids=str)
@pytest.mark.parametrize(
    ("rule", "sigma"),
    [("bayes", "level"), ("universal", "global"), ("universal", 0.3), ("minimax", "level"), (0.3, 0.3)],
)
def test_dead_traces_of_a_record_count_for_nothing(rng, chunks, rule, sigma):
    x, dead = partly_dead(rng, 2500, "f4" if sigma == "level" else "f8")
    x[dead, 700], x[dead, 700] = 99, x[dead, 0]
    x[np.flatnonzero(~dead)[0], 650:1850] = 3  # a whole block of a live trace, and what it is denoised from
    options = {"level": 3, "rule": rule, "sigma": sigma, "scope": "record"}
    found, whole = _both(x, chunks, "db4", **options)
    alone = wavefilt.denoise(x[~dead], "db4", backend="pywavelets", **options)
    assert np.array_equal(whole[~dead], alone)
    assert np.array_equal(found[dead], x[dead])
    np.testing.assert_allclose(found, whole, atol=1e-5 if rule == "bayes" else 0)


@pytest.mark.parametrize("chunks", [(2, -1), (2, 600)], ids=str)
@pytest.mark.parametrize(("rule", "sigma"), [("bayes", "level"), ("universal", 0.3), ("bayes", 0.3)])
def test_a_record_of_dead_traces(chunks, rule, sigma):
    x = np.repeat([[0.0], [3.7], [-1.0]], 2500, axis=1)
    found, _ = _both(x, chunks, "db4", level=3, rule=rule, sigma=sigma, scope="record")
    assert np.array_equal(found, x)
    x[1] = np.inf
    lazy = wavefilt.dask.denoise(
        da.from_array(x, chunks=chunks), "db4", level=3, rule=rule, sigma=sigma, scope="record"
    )
    with pytest.raises(ValueError, match="NaN or infinite"):
        lazy.compute(scheduler="threads")


@pytest.mark.parametrize(
    ("chunks", "options", "times"),
    [
        ((2, -1), {"scope": "record"}, 3),  # dead traces are found in the first pass
        ((2, 1000), {"scope": "record"}, 4),
        ((2, 1000), {"scope": "record", "rule": 0.3}, 1),
        ((2, -1), {"scope": "record", "rule": "universal", "sigma": 0.3}, 2),
        ((2, 1000), {"scope": "trace"}, 4),
        ((2, 1000), {"scope": "trace", "rule": "universal", "sigma": 0.3}, 1),
    ],
)
def test_how_often_chunks_are_read(chunks, options, times):
    read = []
    array = da.from_array(_samples((6, 4000)), chunks=chunks).map_blocks(
        lambda block: read.append(1) or block, dtype="f4", meta=np.empty((0, 0), "f4")
    )
    wavefilt.dask.denoise(array, "db4", level=3, backend="pywavelets", **options).compute(scheduler="threads")
    assert len(read) == times * array.npartitions


def test_chunks_smaller_than_the_halo_are_joined():
    assert DWT.halo(16, 5) == 480
    found, whole = _both(_samples((2, 4000)), (2, 50), level=5, rule="universal")
    assert np.array_equal(found, whole)
    assert np.array_equal(*_both(_samples((2, 600)), (2, 100), level=5, rule="universal"))


@given(st.lists(st.integers(1, 300), min_size=1, max_size=30), st.sampled_from([0, 32, 96, 480]), st.integers(0, 5))
@settings(max_examples=100, deadline=None)
def test_aligned_chunks(sizes, reach, level):
    step = 1 << level
    found = wavefilt.dask.blocks.aligned(sizes, reach, step)
    assert sum(found) == sum(sizes)
    assert min(found) >= min(max(reach, 1), sum(sizes))
    assert all(edge % step == 0 for edge in np.cumsum(found)[:-1])


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
@pytest.mark.parametrize("groups", [1, 3])
def test_statistics_add_up_in_any_order(groups, dtype):
    rng = np.random.default_rng(5)
    parts = [(rng.standard_normal((3, size)) * 10.0 ** rng.integers(-9, 9, size)).astype(dtype) for size in (5, 1, 90)]
    every = np.concatenate(parts, axis=1).reshape(groups, -1)
    method = Method(rule="bayes", scope="record" if groups == 1 else "trace")
    real = every.real.dtype
    state = State.of(method, np.array([every.shape[1]]), groups, real)
    while state.passes:
        tallies = [HostTally(state) for part in parts]
        for tally, part in zip(tallies, parts, strict=True):
            tally.add([[(0, part)]])
        counted = [tally.result() for tally in tallies]
        random.Random(1).shuffle(counted)
        state = state.after(merged([merged(counted[:1]), merged(counted[1:])]))
    medians = state.medians[1]
    low, high = (every.shape[1] - 1) // 2, every.shape[1] // 2
    middle = np.sort(np.abs(every), axis=1)[:, [low, high]]
    assert np.array_equal(medians, middle.mean(axis=1, dtype="f8"))
    np.testing.assert_allclose(state.mean_square[0], np.mean(np.abs(every.astype("c16")) ** 2, axis=1), rtol=1e-6)


def test_nothing_is_computed_before_it_is_asked_for():
    touched = []
    array = da.from_array(_samples((4, 2000)), chunks=(2, 500)).map_blocks(
        lambda x: touched.append(1) or x, dtype="f4", meta=np.empty((0, 0), "f4")
    )
    wavefilt.dask.denoise(array, "db4", scope="record")
    assert not touched


def test_local_processes(client):
    """Uneven chunks, traces cut, one record; and the command on the same scheduler."""
    x = _samples((6, 4001))
    for chunks, scope in [((3, 1000), "trace"), (((1, 5), (900, 1100, 2001)), "record"), ((2, -1), "record")]:
        options = {"rule": "universal", "scope": scope, "backend": "pywavelets"}
        lazy = wavefilt.dask.denoise(da.from_array(x, chunks=chunks), "db4", **options)
        assert np.array_equal(lazy.compute(), wavefilt.denoise(x, "db4", **options))
    assert len(client.scheduler_info()["workers"]) == 2


def test_the_command_on_a_scheduler(client, tmp_path, capsys):
    x = _samples((6, 4001))
    source, target = tmp_path / "volume.zarr", tmp_path / "out.zarr"
    volume = zarr.open_array(str(source), mode="w", shape=x.shape, chunks=(2, 1000), dtype="f4")
    volume[:] = x
    volume.attrs["line"] = 7
    arguments = ["denoise", str(source), "-o", str(target), "--scheduler", client.scheduler.address]
    for scope in ("trace", "record"):
        with pytest.raises(SystemExit) as ended:
            cli.main([*arguments, "--scope", scope, "--overwrite"])
        assert not ended.value.code, capsys.readouterr().err
        out = zarr.open_array(str(target), mode="r")
        assert (out.chunks, dict(out.attrs), out.dtype) == (volume.chunks, {"line": 7}, volume.dtype)
        np.testing.assert_allclose(out[:], wavefilt.denoise(x, scope=scope), atol=1e-5)
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.zarr", "volume.zarr"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
def test_a_worker_killed_in_the_middle(client):
    x = _samples((8, 4000))
    slow = da.from_array(x, chunks=(2, 1000)).map_blocks(
        lambda block: time.sleep(0.05) or block, dtype="f4", meta=np.empty((0, 0), "f4")
    )
    options = {"rule": "universal", "scope": "record", "backend": "pywavelets"}
    future = client.compute(wavefilt.dask.denoise(slow, "db4", **options))
    time.sleep(0.5)
    before = client.run(os.getpid)
    assert future.status == "pending"
    os.kill(next(iter(before.values())), signal.SIGKILL)
    assert np.array_equal(future.result(timeout=60), wavefilt.denoise(x, "db4", **options))
    assert set(client.run(os.getpid).values()) != set(before.values())


def test_volumes_are_read_in_blocks_of_whole_chunks(tmp_path):
    x = _samples((6, 3000))
    volume = zarr.open_array(str(tmp_path / "v.zarr"), mode="w", shape=x.shape, chunks=(4, 700), dtype="f4")
    volume[:] = x
    for limit, chunks in [(1 << 20, ((4, 2), (3000,))), (4 * 1400 * 4, ((4, 2), (1400, 1400, 200)))]:
        array = zarr_volumes.lazily(volume, limit=limit)
        assert array.chunks == chunks
        zarr_volumes.save(wavefilt.dask.denoise(array, "db4", rule="universal"), tmp_path / "o.zarr", volume, True)
        assert np.array_equal(
            zarr.open_array(str(tmp_path / "o.zarr"))[:], wavefilt.denoise(x, "db4", rule="universal")
        )
    with pytest.raises(FileExistsError, match=r"o\.zarr exists"):
        zarr_volumes.save(array, tmp_path / "o.zarr", volume)
    with pytest.raises(ValueError, match=r"axis 1 end inside the file's chunks of 700: rechunk"):
        zarr_volumes.save(array.rechunk((4, 1000)), tmp_path / "p.zarr", volume)
    assert not (tmp_path / "p.zarr").exists()
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    group.create_array("trace", shape=(3, 3), dtype="f4")
    assert opened(tmp_path / "g.zarr", "trace")[1].shape == (3, 3)
    group.create_array("other", shape=(3, 3), dtype="f4")
    for path, component, message in [
        ("no", None, "no such folder"),
        (".", None, "not a zarr array"),
        ("g.zarr", None, "2 arrays; choose one .*: other, trace"),
        ("g.zarr", "x", "no array 'x'; it has other, trace"),
        ("v.zarr", "x", "no array 'x'"),
    ]:
        with pytest.raises(wavefilt.FormatError, match=message):
            opened(tmp_path / path, component)


def test_workers_in_another_folder_read_the_same_file(client, tmp_path, monkeypatch):
    x = _samples((4, 2000))
    _volume(tmp_path / "v.zarr", x, (2, 1000))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(["denoise", "v.zarr", "-o", "o.zarr", "-q", "--scheduler", client.scheduler.address])
    assert not ended.value.code
    np.testing.assert_allclose(zarr.open_array("o.zarr", mode="r")[:], wavefilt.denoise(x), atol=1e-5)


def test_a_store_that_is_not_there_is_neither_empty_nor_made_anew(tmp_path):
    x = _samples((4, 2000))
    stored = zarr_volumes.Stored(_volume(tmp_path / "v.zarr", x, (2, 1000)))
    assert np.array_equal(stored[:2, 5:], x[:2, 5:])
    shutil.rmtree(tmp_path / "v.zarr")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*v\.zarr"):
        stored[:2]
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*v\.zarr"):
        stored[:2] = x[:2]
    assert not os.listdir(tmp_path)


def test_a_volume_that_changes_while_it_is_read(tmp_path):
    volume = _volume(tmp_path / "v.zarr", _samples((4, 2000)), (1, 1000))
    chunk = tmp_path / "v.zarr" / "c" / "3" / "1"
    array = zarr_volumes.lazily(volume).map_blocks(
        lambda block: (chunk.unlink(missing_ok=True), block)[1], dtype="f4", meta=np.empty((0, 0), "f4")
    )
    with pytest.raises(OSError, match=r"v\.zarr: chunks were changed while they were read"):
        zarr_volumes.save(wavefilt.dask.denoise(array, "db4"), tmp_path / "o.zarr", volume)
    assert os.listdir(tmp_path) == ["v.zarr"]


def test_a_damaged_chunk_is_told_in_one_line(tmp_path, capfd):
    _volume(tmp_path / "v.zarr", _samples((4, 2000)), (1, 1000))
    os.truncate(tmp_path / "v.zarr" / "c" / "3" / "1", 30)
    with pytest.raises(SystemExit) as ended:
        cli.main(["denoise", str(tmp_path / "v.zarr"), "--scheduler", "local:1"])
    error = capfd.readouterr().err
    assert ended.value.code == 1
    assert error.startswith(f"wavefilt: error: {tmp_path / 'v.zarr'}: a chunk became shorter, or is damaged (")
    assert error.count("\n") == 1
    assert os.listdir(tmp_path) == ["v.zarr"]


SLOW = """
import sys, time, zarr, wavefilt.cli
write = zarr.Array.__setitem__
def slow(*arguments):
    open("begun", "a").close()
    time.sleep(0.5)
    write(*arguments)
zarr.Array.__setitem__ = slow
if __name__ == "__main__":
    wavefilt.cli.main(sys.argv[1:])
"""
"""The command, whose workers take a while to write."""


@pytest.mark.skipif(os.name == "nt", reason="signals to a group of processes")
def test_an_interrupt_leaves_nothing_that_workers_still_wrote(tmp_path):
    _volume(tmp_path / "v.zarr", _samples((8, 2000)), (1, 2000))
    (tmp_path / "slow.py").write_text(SLOW)
    command = [
        sys.executable,
        "slow.py",
        "denoise",
        "v.zarr",
        "-o",
        "o.zarr",
        "--backend",
        "pywavelets",
        "--scheduler",
        "local:2",
    ]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True
    )
    while process.poll() is None and not (tmp_path / "begun").exists():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 130, error
    assert sorted(set(os.listdir(tmp_path)) - {"__pycache__"}) == ["begun", "slow.py", "v.zarr"]
    assert error.strip() == "Interrupted."


def test_a_copy_that_failed_goes_though_others_write_to_it(tmp_path, monkeypatch):
    volume = _volume(tmp_path / "v.zarr", _samples((4, 2000)), (1, 1000))
    remove, removed = shutil.rmtree, []

    def late(folder, **options):
        remove(folder, **options)
        removed.append(folder)
        if len(removed) < 3:
            folder.mkdir()

    monkeypatch.setattr(shutil, "rmtree", late)
    with pytest.raises(InterruptedError), copied(tmp_path / "v.zarr", "", volume, tmp_path / "o.zarr", overwrite=False):
        raise InterruptedError
    assert os.listdir(tmp_path) == ["v.zarr"]


def test_workers_that_die_over_and_over(client):
    worker = type("Worker", (), {"address": "tcp://a:1"})()
    with (
        pytest.raises(RuntimeError, match="4 workers died at the same block, for want of memory perhaps"),
        cluster.connected(client.scheduler.address),
    ):
        raise distributed.KilledWorker("block", worker, 3)


@pytest.mark.parametrize(
    ("chunks", "options", "message"),
    [
        (
            (2, 500),
            {"rule": "sure"},
            r"rule='sure' \(possible are universal, minimax, bayes, bivariate and numbers\) is not possible "
            r"for traces cut into chunks: rechunk the samples' axis to one chunk",
        ),
        ((2, -1), {"rule": "fdr", "scope": "record"}, "rule='fdr' .* for a record of several chunks"),
        ((2, 500), {"mode": "periodic"}, "mode='periodic', which joins the ends"),
        ((2, 500), {"spins": 2}, "spins=2 is not possible"),
        ((2, 500), {"sigma": ("window", 0, 100)}, "a noise window is not possible"),
        ((2, 500), {"sigma": ("running", 100)}, r"sigma=\('running', 100\) is not possible for traces cut"),
        ((2, -1), {"level": 20}, "level=20 is above the maximum"),
        ((2, -1), {"backend": "gpu"}, "backend='gpu' is not one of auto, pywavelets"),
        ((2, -1), {"axis": 2}, "axis=2 is out of range"),
        ((2, -1), {"axes": (0, 1)}, r"axes=\(0, 1\) is not possible for panels cut into chunks: rechunk both to one"),
        ((2, -1), {"axes": (0, 1), "axis": 0}, r"axes=\(0, 1\) must be a pair of axes, instead of axis=0"),
        ((2, -1), {"axes": (0, 1, 2)}, "must be a pair of axes"),
        ((2, -1), {"axes": (0, 3)}, "axis=3 is out of range"),
        ((2, -1), {"axes": (0, 1), "detrend": "mean"}, "is for traces, not for two dimensions"),
        ((2, -1), {"thershold": 1}, "option='thershold' is not one of level, mode, rule"),
        ((2, -1), {"devices": "all"}, "option='devices' is not one of level, mode, rule"),
        (
            (2, -1),
            {"return_noise": True},
            "return_noise is no option for dask arrays: what was removed is array - quiet",
        ),
    ],
)
def test_what_cannot_be_done_is_told_at_once(chunks, options, message):
    with pytest.raises(ValueError, match=message):
        wavefilt.dask.denoise(da.from_array(_samples((4, 2000)), chunks=chunks), "db4", **options)


def test_arrays_that_are_refused():
    with pytest.raises(TypeError, match="a dask array is needed, not ndarray"):
        wavefilt.dask.denoise(_samples())
    array = da.from_array(_samples((4, 2000)), chunks=(2, 500))
    with pytest.raises(ValueError, match="sizes of the array's chunks are not known"):
        wavefilt.dask.denoise(array[array[:, 0] > 0])
    with pytest.raises(ValueError, match="has no samples"):
        wavefilt.dask.denoise(array[:, :0])
    with pytest.raises(TypeError, match="dtype bool cannot be denoised"):
        wavefilt.dask.denoise(array > 0)


def test_gaps_in_cut_traces_are_an_error_when_computed():
    x = _samples((4, 2000))
    x[3, 77] = np.nan
    for rule in ("bayes", 0.5):
        lazy = wavefilt.dask.denoise(da.from_array(x, chunks=(2, 500)), "db4", rule=rule)
        with pytest.raises(ValueError, match="NaN or infinite: gaps need whole traces"):
            lazy.compute(scheduler="threads")


def test_a_scheduler_that_is_missing_or_has_no_workers():
    with pytest.raises(ConnectionError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
        cluster.connected("tcp://127.0.0.1:9", timeout=0.3).__enter__()
    for scheduler in ("local:0", "local:x"):
        with pytest.raises(ValueError, match="is neither local, local:N nor an address"):
            cluster.connected(scheduler).__enter__()
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        pytest.raises(ConnectionError, match="has no workers"),
    ):
        cluster.connected(empty.scheduler_address, timeout=0.3).__enter__()


@pytest.mark.parametrize("number", [1, 3])
def test_as_many_processes_as_were_asked_for(number, monkeypatch):
    asked = {}

    def started(**options):
        asked.update(options, environment=dict(dask.config.get("distributed.nanny.pre-spawn-environ")))
        raise InterruptedError

    monkeypatch.setattr(distributed, "LocalCluster", started)
    with pytest.raises(InterruptedError):
        cluster.connected(f"local:{number}").__enter__()
    assert asked["n_workers"] == number
    assert asked["threads_per_worker"] == 1
    assert asked["environment"]["MALLOC_TRIM_THRESHOLD_"] == 256 << 20
    assert dask.config.get("distributed.nanny.pre-spawn-environ")["MALLOC_TRIM_THRESHOLD_"] != 256 << 20


def test_workers_without_this_package_are_named():
    class Client:
        """What a scheduler with three workers answers."""

        def run(self, function, *arguments, on_error):
            assert on_error == "return"
            return {"tcp://a:1": function(*arguments), "tcp://b:2": ModuleNotFoundError("wavefilt"), "tcp://c:3": "0.0"}

    with pytest.raises(RuntimeError, match=r"tcp://b:2 has no wavefilt, tcp://c:3 has wavefilt 0\.0$"):
        cluster.check_workers(Client())


def test_a_scheduler_has_a_limit_of_its_own(tmp_path, capsys):
    (tmp_path / "v.zarr").mkdir()
    with pytest.raises(SystemExit) as ended:
        cli.main(["denoise", str(tmp_path / "v.zarr"), "--scheduler", "local", "--max-memory", "1GiB"])
    assert ended.value.code == 2
    assert "--max-memory does not go with --scheduler" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("scope", "itemsize", "passes"), [("record", 4, 2), ("record", 8, 4), ("trace", 4, 3), ("trace", 8, 6)]
)
def test_tables_are_small_enough_to_travel(scope, itemsize, passes):
    state = State.of(Method(scope=scope), np.array([1000]), 1, np.dtype(f"f{itemsize}"))
    ((_, _, interval),) = state.places
    assert (interval.low, interval.high, state.passes) == (0, 2 ** (8 * itemsize - 1) - 1, passes)
    assert interval.table(1000).nbytes <= (1 << 18 if scope == "record" else 1 << 13)

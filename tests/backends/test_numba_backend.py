"""The numba backend against the reference, and what only it promises: the same bits from any tile and thread."""

from __future__ import annotations

import copy
import errno
import json
import os
import pickle
import re
import subprocess
import sys
import tracemalloc
import types
from pathlib import Path

import numba
import numpy as np
import pytest
import pywt
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import cpu_target

from tests.support.agreement import TOLERANCE, assert_coefficients_agree, norm
from tests.support.checkout import ROOT
from tests.support.pyramids import pyramid_of
from wavefilt import threads
from wavefilt.backends import registry
from wavefilt.backends.crossover import numba_crossover
from wavefilt.backends.numba_cpu import (
    NumbaCPU,
    compiler,
    entries,
    memory,
    native,
    processes,
    selection,
    selection_kernels,
    target,
)
from wavefilt.backends.numba_cpu.dwt import plan
from wavefilt.backends.numba_cpu.selection import NumbaStatistics
from wavefilt.backends.reference.backend import PyWavelets
from wavefilt.statistics.batch import ReferenceStatistics
from wavefilt.thresholding import rules
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DWT, Pyramid
from wavefilt.vocabulary import MODES, SHRINKS
from wavefilt.wavelets.filters import names

REFERENCE = PyWavelets()
SMALL = NumbaCPU(tile=64)  # a tile is never shorter than 16 filters


def assert_agrees(backend, x, bank, mode, level):
    expected = assert_coefficients_agree(
        backend.decompose(x, DWT.analysis(bank, mode, level)).coefficients, x, bank, mode, level
    )
    reference = pyramid_of(expected, bank, mode, x.shape[1])
    y, expected = backend.reconstruct(reference), REFERENCE.reconstruct(reference)
    assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
    scale = max(norm([expected]), 0.1 * norm(reference.coefficients))
    assert norm([y - expected]) <= TOLERANCE[x.dtype.str[1:]] * scale


@pytest.mark.parametrize("wavelet", names())
def test_every_wavelet_and_mode(rng, wavelet):
    bank = pywt.Wavelet(wavelet)
    tiles = 48 * bank.dec_len + 301
    for mode in MODES:
        for n, level, dtype in [(1, 1, "f4"), (5, 2, "f8"), (211, 4, "f8"), (tiles, 4, "f4")]:
            if n > 1 or "reflect" not in mode:
                assert_agrees(SMALL, rng.standard_normal((2, n)).astype(dtype), bank, mode, level)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [2, 3, 7, 8, 64, 1001, 2500])
def test_every_length_and_level(rng, mode, n):
    for wavelet in ("db1", "db2", "bior1.3", "db7"):
        for level in (0, 1, 2, 6):
            if "reflect" in mode and 2**level >= n:
                continue
            assert_agrees(SMALL, rng.standard_normal((3, n)), pywt.Wavelet(wavelet), mode, level)


@pytest.mark.parametrize("mode", ["reflect", "antireflect"])
def test_a_single_sample_cannot_be_reflected(mode):
    with pytest.raises(ValueError, match="needs more than one sample at every level"):
        NumbaCPU().decompose(np.ones((1, 2)), DWT.analysis(pywt.Wavelet("db1"), mode, 2))


def test_no_traces_level_zero_and_any_layout(rng):
    backend, bank = NumbaCPU(), pywt.Wavelet("db4")
    empty = backend.decompose(np.empty((0, 100), "f4"), DWT.analysis(bank, "zero", 2))
    assert [c.shape for c in empty.coefficients] == [(0, 30), (0, 30), (0, 53)]
    assert backend.reconstruct(empty).shape == (0, 100)
    assert backend.statistics([empty], "trace").median_abs([1, 2]).shape == (2, 0)
    x = rng.standard_normal((100, 6))
    np.testing.assert_array_equal(backend.reconstruct(backend.decompose(x, DWT.analysis(bank, "zero", 0))), x)
    x.flags.writeable = False
    expected = backend.decompose(np.array(x[::2].T), DWT.analysis(bank, "zero", 2))
    found = backend.decompose(x[::2].T, DWT.analysis(bank, "zero", 2))
    assert all(map(np.array_equal, found.coefficients, expected.coefficients))


def test_other_dtypes_are_refused():
    with pytest.raises(TypeError, match="computes in float32 and float64, not complex128"):
        NumbaCPU().decompose(np.ones((1, 9), complex), DWT.analysis(pywt.Wavelet("db1"), "zero", 1))


@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
def test_a_bank_of_any_filters(rng, mode):
    bank = pywt.Wavelet("mine", filter_bank=rng.standard_normal((4, 14)).tolist())
    assert_agrees(SMALL, rng.standard_normal((2, 3000)), bank, mode, 3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("wavelet", ["db2", "db8", "coif17"])
def test_the_same_bits_from_any_tile_and_number_of_threads(rng, mode, dtype, wavelet):
    bank, x = pywt.Wavelet(wavelet), rng.standard_normal((2, 20_011)).astype(dtype)
    shrinkage = Shrinkage("garrote", rng.random((4, 2)))
    results = []
    for tile, count in [(64, 1), (2048, 3), (5000, 2), (plan.TILE, 1)]:
        threads.set_num_threads(count)
        backend = NumbaCPU(tile)
        pyramid = backend.decompose(x, DWT.analysis(bank, mode, 4))
        statistics = backend.statistics([pyramid], "record")
        numbers = statistics.median_abs([1, 2, 3, 4]), statistics.mean_square()
        results.append([*pyramid.coefficients, backend.reconstruct(pyramid, shrinkage), *numbers])
    threads.set_num_threads(None)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("mode", MODES)
def test_a_row_alone_and_beside_others_has_the_same_bits_and_nothing_else_is_written(rng, mode, dtype):
    backend = NumbaCPU()
    for wavelet, n, level in [("db2", 37, 3), ("db8", 512, 5), ("db8", 1301, 3), ("coif17", 211, 2)]:
        analysis, x = DWT.analysis(pywt.Wavelet(wavelet), mode, level), rng.standard_normal((3, n)).astype(dtype)
        shrinkage = Shrinkage("soft", rng.random((level, 3)))
        around = np.full((5, n), 7, dtype)
        pyramid = backend.decompose(x, analysis)
        backend.reconstruct(pyramid, shrinkage, out=around[1:4])
        assert (around[[0, 4]] == 7).all()
        statistics = backend.statistics([pyramid], "trace")
        medians, powers = statistics.median_abs(range(1, level + 1)), statistics.mean_square()
        for row in range(3):
            alone = backend.decompose(x[row : row + 1], analysis)
            for a, b in zip(alone.coefficients, pyramid.coefficients, strict=True):
                assert a[0].tobytes() == b[row].tobytes()
            y = backend.reconstruct(alone, Shrinkage("soft", shrinkage.thresholds[:, row : row + 1]))
            assert y[0].tobytes() == around[1 + row].tobytes()
            own = backend.statistics([alone], "trace")
            np.testing.assert_array_equal(own.median_abs(range(1, level + 1))[:, 0], medians[:, row])
            np.testing.assert_array_equal(own.mean_square()[:, 0], powers[:, row])


def test_a_gap_spreads_no_further_than_in_the_reference(rng):
    x = rng.standard_normal((1, 4000))
    x[0, [0, 700, 3999]] = np.nan, np.inf, np.nan
    for mode in ("symmetric", "periodization"):
        found, expected = (b.decompose(x, DWT.analysis(pywt.Wavelet("bior2.2"), mode, 3)) for b in (SMALL, REFERENCE))
        for f, e in zip(found.coefficients, expected.coefficients, strict=True):
            np.testing.assert_array_equal(np.isfinite(f), np.isfinite(e))
        found, expected = (b.reconstruct(expected) for b in (SMALL, REFERENCE))
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))


@pytest.mark.parametrize("function", SHRINKS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
def test_details_are_shrunk_as_in_the_reference(rng, function, dtype, mode):
    x = np.round(rng.standard_normal((3, 3001)), 1).astype(dtype)
    pyramid = REFERENCE.decompose(x, DWT.analysis(pywt.Wavelet("db1"), mode, 3))
    for detail in pyramid.coefficients[1:]:
        detail[:, :40] = np.round(detail[:, :40])  # some exactly at the threshold, at twice of it, and 0
    before = [c.copy() for c in pyramid.coefficients]
    shrinkage = Shrinkage(function, np.array([[0, 1, 0.5], [1, 0, 2], [0.3, 1, 1e30]]))
    y, expected = (b.reconstruct(pyramid, shrinkage) for b in (SMALL, REFERENCE))
    np.testing.assert_allclose(y, expected, rtol=0, atol=10 * np.finfo(dtype).eps * np.abs(x).max())
    assert all(np.array_equal(a, b) for a, b in zip(before, pyramid.coefficients, strict=True))


def test_the_result_goes_where_it_is_wanted(rng):
    backend, x = NumbaCPU(), rng.standard_normal((2, 500))
    pyramid, out = backend.decompose(x, DWT.analysis(pywt.Wavelet("db3"), "smooth", 3)), np.empty((2, 500))
    assert backend.reconstruct(pyramid, out=out) is out
    np.testing.assert_allclose(out, x, atol=1e-12)
    with pytest.raises(ValueError, match=r"C-contiguous float64 array of shape \(2, 500\)"):
        backend.reconstruct(pyramid, out=np.empty((500, 2)).T)


def test_copies_of_a_pyramid_are_reconstructed_from_their_own_arrays(rng):
    backend, x = NumbaCPU(), rng.standard_normal((2, 500))
    pyramid = backend.decompose(x, DWT.analysis(pywt.Wavelet("db3"), "smooth", 3))
    for again in (copy.copy(pyramid), copy.deepcopy(pyramid), pickle.loads(pickle.dumps(pyramid))):
        assert type(again) is Pyramid
        again.coefficients[1][:] *= 2
        expected = REFERENCE.reconstruct(again)
        np.testing.assert_allclose(backend.reconstruct(again), expected, atol=1e-12)


def details(rng, kind, shape):
    x = rng.standard_normal(shape)
    return {
        "normal": x,
        "heavy tails": x**9,
        "small integers": np.round(x),
        "mostly zero": x * (rng.random(shape) < 0.04),
        "half zero": x * (np.arange(shape[1]) % 2),
        "dead": 0 * x,
        "strided": x * (np.arange(shape[1]) % 64 == 0),
        "tiny": x * 1e-310,
        "large": x * 1e30,
    }[kind]


KINDS = ["normal", "heavy tails", "small integers", "mostly zero", "half zero", "dead", "strided", "tiny", "large"]


def _groups(pyramids, scope):
    """Details of each group of each level, finest first."""
    levels = list(zip(*(p.coefficients[:0:-1] for p in pyramids), strict=True))
    return [list(ds[0]) if scope == "trace" else [np.concatenate([d.ravel() for d in ds])] for ds in levels]


@pytest.fixture(params=["whole", "cut", "listed again"])
def long_rows(request, monkeypatch):
    """Rows of more than 128 Ki coefficients as one thread's work, or cut into chunks as longer ones are.

    Their lists are listed again inside closer brackets, as those of still longer ones are, or not.
    """
    if request.param != "whole":
        monkeypatch.setattr(selection, "SHORT", 1 << 17)
    if request.param == "listed again":
        monkeypatch.setattr(selection, "LISTED_AGAIN", 1 << 16)


@pytest.mark.usefixtures("long_rows")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_statistics_are_exact(rng, kind, dtype):
    bank = pywt.Wavelet("db1")
    pyramids = []
    for rows, n in [(2, 140_001), (3, 5000), (3, 7)]:
        arrays = [details(rng, kind, (rows, m)).astype(dtype) for m in (n, n // 2, n // 3)]
        pyramids.append(pyramid_of((arrays[0], *arrays[::-1]), bank, "zero", 2 * n))
    for group, scope in [*(([p], "trace") for p in pyramids), (pyramids, "record"), (pyramids[1:2], "record")]:
        found, expected = (b.statistics(group, scope) for b in (NumbaCPU(), REFERENCE))
        np.testing.assert_array_equal(found.counts, expected.counts)
        assert found.groups == expected.groups
        medians = expected.median_abs([1, 2, 3])
        np.testing.assert_array_equal(found.median_abs([2]), medians[1:2])
        np.testing.assert_array_equal(found.median_abs([1, 2, 3]), medians)
        exact = [[np.mean(g.astype("f8") ** 2) for g in level] for level in _groups(group, scope)]
        np.testing.assert_allclose(found.mean_square(), exact, rtol=1e-12)
        assert found.mean_square().dtype == np.float64


@pytest.mark.usefixtures("long_rows")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("scope", ["trace", "record"])
def test_statistics_have_the_same_bits_from_any_number_of_threads(rng, dtype, scope):
    pyramid = REFERENCE.decompose(
        rng.standard_normal((2, 400_000)).astype(dtype), DWT.analysis(pywt.Wavelet("db2"), "zero", 3)
    )
    results = []
    for count in (1, 2, 3):
        threads.set_num_threads(count)
        statistics = NumbaCPU().statistics([pyramid], scope)
        results.append((statistics.median_abs([3, 1, 2]).tobytes(), statistics.mean_square().tobytes()))
    threads.set_num_threads(None)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("scope", ["trace", "record"])
def test_the_threshold_of_least_risk(rng, scope):
    x = rng.standard_normal((2, 300_000)).astype("f4")
    x[:, 1000:1500] += 20 * np.sin(np.arange(500))
    pyramid = REFERENCE.decompose(x, DWT.analysis(pywt.Wavelet("db3"), "symmetric", 3))
    sigma = np.full((3, 2 if scope == "trace" else 1), 1.1)
    sigma[1, 0] = 0
    found, expected = (rules.sure(b.statistics([pyramid], scope), sigma, 1) for b in (NumbaCPU(), REFERENCE))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("extreme", [np.nan, np.inf, -np.inf, -3.5])
def test_peak(rng, dtype, extreme):
    backend, x = NumbaCPU(), rng.uniform(-3, 3, (3, 100_001)).astype(dtype)
    assert backend.peak(x) == np.abs(x).max()
    for place in (0, 150_000, x.size - 1):
        spoilt = x.copy()
        spoilt.flat[place] = extreme
        np.testing.assert_equal(backend.peak(spoilt), abs(extreme))
    spoilt.flat[:2] = np.nan, np.inf
    assert np.isnan(backend.peak(spoilt))
    assert backend.peak(x[:0]) == 0


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("mode", ["symmetric", "zero", "smooth", "antireflect", "periodization"])
@pytest.mark.parametrize(("wavelet", "samples", "tile"), [("haar", 9, 32), ("db2", 4096, 32), ("db8", 1501, 1 << 15)])
def test_peak_while_transforming(rng, dtype, mode, wavelet, samples, tile):
    """Every sample counts, and nothing beyond the ends, which modes extrapolate."""
    backend, analysis = NumbaCPU(tile), DWT.analysis(pywt.Wavelet(wavelet), mode, 3)
    x = rng.uniform(-1, 1, (2, samples)).astype(dtype)
    for row, place in [(0, 0), (1, samples - 1), *((i % 2, i) for i in rng.integers(0, samples, 30).tolist())]:
        one = x.copy()
        one[row, place] = -2
        peak, pyramid = backend.peak_and_pyramid(one, analysis)
        assert peak == 2
        assert pyramid is not None
        one[row, place] = np.nan
        peak, pyramid = backend.peak_and_pyramid(one, analysis)
        assert np.isnan(peak)
        assert pyramid is None


def test_details_stored_past_the_caches(rng, monkeypatch):
    """The same bits, wherever the details of a row begin."""
    analysis = DWT.analysis(pywt.Wavelet("db8"), "symmetric", 5)
    x = rng.standard_normal((3, 300_001)).astype("f4")
    expected = NumbaCPU().decompose(x, analysis)
    monkeypatch.setattr(memory, "PASSED", 1)
    for own, there in zip(NumbaCPU().decompose(x, analysis).coefficients, expected.coefficients, strict=True):
        np.testing.assert_array_equal(own, there)


@pytest.mark.parametrize("extreme", [np.nan, np.inf, -7.5])
def test_peak_before_kernels_are_loaded(monkeypatch, rng, extreme):
    monkeypatch.setattr(entries.PEAK, "versions", {})
    x = rng.uniform(-3, 3, (3, 300_001)).astype("f4")
    assert NumbaCPU().peak(x) == np.abs(x).max()
    x[1, 7] = extreme
    np.testing.assert_equal(NumbaCPU().peak(x), abs(extreme))
    assert NumbaCPU().peak(x[:0]) == 0


def test_memory_of_a_whole_denoise(rng):
    backend, x = NumbaCPU(), rng.standard_normal((1, 1 << 21)).astype("f4")

    def denoise():
        assert backend.peak(x) < 10
        pyramid = backend.decompose(x, DWT.analysis(pywt.Wavelet("db8"), "symmetric", 5))
        statistics = backend.statistics([pyramid], "trace")
        thresholds = rules.sure(statistics, rules.noise(statistics, "level"), x.size)
        return backend.reconstruct(pyramid, Shrinkage("soft", thresholds))

    denoise()
    memory.trim()
    tracemalloc.start()
    y = denoise()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = y.nbytes + memory.HUGE  # of which what aligns it is never touched
    assert peak - result <= 1.5 * x.nbytes


MEMORY = """
import numpy as np, wavefilt

def peak():  # getrusage tells that of the process that started this one, if it was more
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

small, x = (np.random.default_rng(0).standard_normal((1, n), dtype="f4") for n in (1 << 21, 1 << 24))
wavefilt.denoise(small, backend="numba", level=8)
before = peak()
y = wavefilt.denoise(x, backend="numba", level=8, rule={rule!r})
print((peak() - before - y.nbytes) / x.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is what Linux tells")
@pytest.mark.parametrize("rule", ["bayes", "universal"])
def test_peak_memory_of_a_process(rule):
    """Beyond input and output at most 1.2 times the input: its coefficients, and lists of some of them."""
    result = _python(MEMORY.format(rule=rule))
    assert 0.9 < float(result.stdout) <= 1.2, result.stderr


COMPILE = """
import sys
import numpy as np
from wavefilt.backends.numba_cpu import entries, partial_sums
x, y = np.ones(100, "f4"), np.zeros(100, "f4")
print(*partial_sums.ChunkSums.energies(x, y, 2.0), "numba" in sys.modules)
"""


def test_kernels_are_compiled_in_another_process_and_cached_on_disk(tmp_path):
    for _ in range(2):
        result = _python(COMPILE, NUMBA_CACHE_DIR=str(tmp_path))
        assert result.stdout.split() == ["400.0", "400.0", "False"], result.stderr
        (kernel,) = tmp_path.rglob("*energies-float32*.o")
        written = kernel.stat().st_mtime_ns
    assert kernel.stat().st_mtime_ns == written


def test_a_kernel_whose_cache_is_damaged_is_compiled_again(tmp_path):
    _python(COMPILE, NUMBA_CACHE_DIR=str(tmp_path))
    (kernel,) = tmp_path.rglob("*energies-float32*.o")
    whole = kernel.read_bytes()
    kernel.write_bytes(whole[:-10])
    result = _python(COMPILE, NUMBA_CACHE_DIR=str(tmp_path))
    assert result.stdout.split() == ["400.0", "400.0", "False"], result.stderr
    assert kernel.read_bytes() != whole[:-10]


@pytest.mark.parametrize("without", ["sys.executable = ''", "tempfile.gettempdir()"])
def test_kernels_are_compiled_without_other_processes_or_a_folder(tmp_path, without):
    """In an embedded interpreter, and where nothing but temporary files can be written."""
    file = tmp_path / "file"
    file.write_text("")
    result = _python(f"import sys, tempfile\n{without}\n{COMPILE}", NUMBA_CACHE_DIR=str(file))
    assert result.stdout.split() == ["400.0", "400.0", str("executable" in without)], result.stderr


def test_no_more_processes_than_processors(monkeypatch, tmp_path):
    shares = []

    class Process:
        def __init__(self, tasks):
            shares.append(tasks)

        def wait(self):
            return 0

        poll = wait

    monkeypatch.setattr(processes, "_started", lambda tasks, _: Process(tasks))
    kernels = entries.TRANSFORMS["dwt"]
    for cpus, expected in [(2, [[0, 3, 4], [1, 2]]), (1, [[0, 1, 2, 3, 4]]), (16, [[0], [1], [2], [3], [4]])]:
        monkeypatch.setattr(threads, "available_cpus", lambda cpus=cpus: cpus)
        shares.clear()
        processes.compiled([(kernel, np.dtype("f4")) for kernel in kernels], tmp_path, lambda _: b"code")
        assert shares == [[(kernels[i].symbol, "float32") for i in share] for share in expected]


def test_want_of_memory_where_kernels_are_compiled(monkeypatch, tmp_path):
    class Process:
        def wait(self):
            return processes.OUT_OF_MEMORY

        poll = wait

    monkeypatch.setattr(processes, "_started", lambda *_: Process())
    with pytest.raises(MemoryError, match="to compile kernels"):
        processes.compiled([(entries.PEAK, np.dtype("f4"))], tmp_path, lambda _: None)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(1, "i8"), np.zeros((1, 1), "i4"), np.zeros(4, "i4")[::2], np.zeros(1, "u4"), 0, native.Constant(0, 1)],
    ids=["dtype", "dimensions", "strides", "sign", "number", "count"],
)
def test_a_kernel_takes_its_own_arguments_only(wrong):
    with pytest.raises(TypeError, match=re.escape("dwt.kernels.peak takes i B[] of float32, not")):
        entries.PEAK.of(np.dtype("f4"), 0, wrong)
    assert entries.PEAK.of(np.dtype("f4"), 0, np.zeros(1, "i4"))(0, 0) == 0


def test_the_benchmark_on_small_arrays(monkeypatch):
    from wavefilt.benchmarks.cpu import denoise as cpu

    works = [cpu.Case(work, 1 << 16, 1, work=work, level=3) for work in ("denoise", "forward", "inverse")]
    batch = cpu.Case("batch", 1 << 10, 1, traces=64, rule="bayes", sigma="level", level=3, dtype="float64")
    monkeypatch.setattr(cpu, "CASES", (*works, batch))
    result = cpu.run(quick=True, repeats=1)
    assert [case["name"] for case in result["cases"]] == ["denoise", "forward", "inverse", "batch"]
    assert all(case["ratio"] > 0 and case["error"] < 1e-5 for case in result["cases"])
    assert len(cpu.report(result).sheets[0].rows) == 4


def test_memory_is_used_again_and_never_while_in_use():
    memory.trim()
    first = memory.empty((1000, 30), "f8")
    first[:] = 1
    view, place = first[10:20, ::2], first.ctypes.data
    del first
    second = memory.empty((1000, 30), "f8")
    second[:] = 2
    assert (view == 1).all()
    del view
    assert memory.empty((30, 1000), "f8").ctypes.data == place
    blocks = [memory.empty((1 << 24,), "u1") for _ in range(20)]
    del blocks
    assert sum(block.nbytes for block in memory._free.values()) <= memory.RETAINED
    memory.trim()
    assert not memory._free


def test_memory_kept_stays_within_the_limit_and_the_last_used_is_kept():
    memory.trim()
    large, small = memory.empty((150 << 20,), "u1"), [memory.empty((6 << 20,), "u1") for _ in range(31)]
    huge = memory.empty((memory.RETAINED,), "u1")
    del large, small, huge
    assert sum(block.nbytes for block in memory._free.values()) <= memory.RETAINED
    assert len(memory._free) <= memory.BLOCKS
    blocks = [memory.empty((2 << 20,), "u1") for _ in range(4)]
    places = [block.ctypes.data for block in blocks]
    memory.trim()
    for _ in range(4):
        del blocks[0]
    memory.empty((3 << 20,), "u1")
    memory.trim(5 << 20)
    kept = {memory.address(block) for block in memory._free.values()}
    assert places[3] in kept
    assert not kept & set(places[:2])
    memory.trim()


def test_results_fill_huge_pages():
    memory.trim()
    for size in (memory.HUGE, 2 * memory.HUGE + 4096):
        result, begin = memory.placed((size,), "u1", result=True)
        assert (result.nbytes, memory.address(result), begin % memory.HUGE) == (size, begin, 0)
        result[:] = 1
        del result
        assert memory.placed((size,), "u1")[1] == begin
    assert memory.placed((memory.HUGE - 1,), "u1", result=True)[0].nbytes == memory.HUGE - 1
    memory.trim()


def test_free_memory_is_given_up_where_there_is_no_other(monkeypatch):
    memory.trim()
    memory.empty((1 << 20,), "u1")
    allocate = np.empty

    def scarce(*arguments):
        if memory._free:
            raise MemoryError
        return allocate(*arguments)

    monkeypatch.setattr(np, "empty", scarce)
    assert memory.empty((2 << 20,), "u1").nbytes == 2 << 20
    assert not memory._free


def faster(shape, taps, dtype):
    bank = next(bank for bank in map(pywt.Wavelet, ("db1", "db8", "coif17")) if bank.dec_len == taps)
    return numba_crossover.faster(shape, DWT.analysis(bank, "symmetric", 1), dtype)


def test_numba_pays_for_large_data_and_long_rows_only(monkeypatch):
    monkeypatch.setattr(numba_crossover, "loaded", set())
    many = 1 << 26
    assert not faster((1, 1 << 12), 16, "float32")
    assert faster((1, many), 102, "float32")
    assert not faster((many // 32, 32), 102, "float32")
    NumbaCPU().decompose(np.ones((1, 64), "f4"), DWT.analysis(pywt.Wavelet("db1"), "zero", 1))
    assert numba_crossover.loaded == {"float32"}
    assert faster((1, 1 << 12), 16, "float32")
    assert not faster((1, 1 << 12), 16, "float64")
    assert not faster((1, 64), 16, "float32")
    assert not faster((1 << 20, 4), 2, "float32")


def test_auto_waits_for_the_compiler_for_large_data_only(monkeypatch):
    from wavefilt.backends.numba_cpu import backend as numba_cpu

    monkeypatch.setattr(numba_crossover, "loaded", set())
    for there, few in ((True, "numba"), (False, "pywavelets")):
        monkeypatch.setattr(numba_cpu, "compiled", lambda transform, dtype, there=there: there)
        for samples, name in ((1 << 20, "pywavelets"), (1 << 23, few), (1 << 28, "numba")):
            analysis = DWT.analysis(pywt.Wavelet("db8"), "symmetric", 5)
            assert registry.choose("auto", "float32", (1, samples), analysis).name == name
    numba_crossover.loaded.add("float32")  # then they are in use
    assert registry.choose("auto", "float32", (1, 1 << 20), analysis).name == "numba"


def test_kernels_are_compiled_once_they_were_used(monkeypatch, tmp_path):
    from wavefilt.backends.numba_cpu import backend as numba_cpu

    native.compiled([(kernel, np.dtype("f4")) for kernel in (*entries.TRANSFORMS["dwt"], *entries.LONG)])
    assert numba_cpu.compiled("dwt", "float32")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for kernel in entries.TRANSFORMS["dwt2"]:
        monkeypatch.setattr(kernel, "versions", {})
    assert not numba_cpu.compiled("dwt2", "float32")


def test_the_crossover_is_what_was_measured():
    measured = json.loads((ROOT / "benchmarks" / "results" / "crossover.json").read_text())
    assert measured["loaded"] <= numba_crossover.LOADED
    assert measured["row"] <= numba_crossover.ROW
    for taps, samples in numba_crossover.FIRST.items():
        assert samples == pytest.approx(measured["first"][str(taps)], rel=0.1)


def test_the_crossover_can_be_measured_again(monkeypatch):
    from wavefilt.benchmarks.cpu import crossover

    monkeypatch.setattr(crossover, "SIZES", (256, 1024))
    monkeypatch.setattr(crossover, "ROWS", (16, 512))
    monkeypatch.setattr(crossover, "TOTAL", 4096)
    monkeypatch.setattr(crossover, "load_seconds", lambda: 1.0)
    result = crossover.run(repeats=1)
    assert [entry["shapes"][-1] for entry in result["one row"]] == [(1, 1024)] * 12
    assert set(result["first"]) == {"2", "4", "16", "40"}


@pytest.mark.usefixtures("long_rows")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [100_000, 300_001])
def test_the_median_of_details_that_rise_and_fall(dtype, n):
    rising = np.concatenate([np.arange(n // 2), np.arange(n - n // 2)[::-1]]).astype(dtype) + 1
    for data in (
        rising,
        rising.max() + 1 - rising,
        np.sort(rising),
        (np.hanning(n) * (-1.0) ** np.arange(n)).astype(dtype),
    ):
        for scope in ("trace", "record"):
            found = NumbaStatistics([[data[None]]], scope).median_abs([1])
            assert found[0, 0] == ReferenceStatistics([data[None]]).median_abs([1])[0, 0]


def test_selection_takes_few_turns_whatever_the_order():
    n = 1 << 14
    pipe = np.concatenate([np.arange(n // 2), np.arange(n // 2)[::-1]]).astype("i4") + 1
    turns = []

    def counted(a, begin, end, mask, low, high, listed, k):
        turns.append(end - begin)
        kept = a[begin:end][(a[begin:end] >= low) & (a[begin:end] <= high)]
        listed[k : k + len(kept)] = kept
        return k + len(kept), 0

    def ranked(a, n, k, all_bits):
        return tuple(np.sort(a[:n])[[k, k + 1]])

    namespace = vars(selection_kernels) | {"_list_inside": counted, "ranked": ranked, "ranked_few": ranked}
    middle = types.FunctionType(selection_kernels._middle.py_func.__code__, namespace)
    assert middle(pipe.copy(), n, n // 2, True, np.int32(2**31 - 1)) == tuple(np.sort(pipe)[[n // 2, n // 2 + 1]])
    assert sum(turns) < 8 * n


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_medians_of_rows_unlike_the_one_before(rng, dtype):
    """What the median of a row is guessed from: the mean square, and the medians of the rows before."""
    for m in (1, 2, 15, 63, 64, 65, 263, 1000, 5000):
        d = rng.standard_normal((12, m)) * 10.0 ** rng.integers(-3, 4, (12, 1))
        d[3:5, : m // 3] *= 1e6
        d[5:7, : m - m // 3] = 0
        d[7], d[8] = 0, 3
        d[9, ::7], d[10, ::5] = np.nan, np.inf
        d = d.astype(dtype)
        found = NumbaStatistics([[d]], "trace").median_abs([1])[0]
        bits = np.sort(np.abs(d).view(f"i{d.itemsize}"), axis=1).view(dtype)  # a NaN is larger than all others
        np.testing.assert_array_equal(found, (bits[:, (m - 1) // 2].astype("f8") + bits[:, m // 2]) / 2)


def test_memory_of_a_record_in_many_pieces(rng):
    backend, bank = NumbaCPU(), pywt.Wavelet("db2")
    pieces = [rng.standard_normal((1, n)).astype("f4") for n in range(100, 2100)]
    size = sum(piece.nbytes for piece in pieces)
    memory.trim()
    tracemalloc.start()
    pyramids = [backend.decompose(piece, DWT.analysis(bank, "symmetric", 4)) for piece in pieces]
    statistics = backend.statistics(pyramids, "record")
    medians, powers = statistics.median_abs([1, 2, 3, 4]), statistics.mean_square()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 6 * size
    expected = REFERENCE.statistics(pyramids, "record")
    np.testing.assert_array_equal(medians, expected.median_abs([1, 2, 3, 4]))
    np.testing.assert_allclose(powers, expected.mean_square(), rtol=1e-5)


def test_coefficients_that_do_not_belong_together_are_refused(rng):
    backend, bank = NumbaCPU(), pywt.Wavelet("db4")
    good = backend.decompose(rng.standard_normal((2, 300)), DWT.analysis(bank, "symmetric", 2))
    first, *rest = good.coefficients
    longer = pyramid_of((np.pad(first, ((0, 0), (0, 1))), *rest), bank, "symmetric", 300)
    np.testing.assert_array_equal(backend.reconstruct(longer), backend.reconstruct(good))
    for coefficients, samples in [
        ((first[:, 1:], *rest), 300),
        ((first, rest[0][:, 1:], rest[1]), 300),
        ((first, rest[0][:1], rest[1]), 300),
        ((first, rest[0], rest[1].astype("f4")), 300),
        ((first, rest[0][0], rest[1]), 300),
        ((first[0], *rest), 300),
        ((first, *rest), 400),
        ((first,), 300),
    ]:
        with pytest.raises(ValueError, match="do not belong together"):
            backend.reconstruct(pyramid_of(coefficients, bank, "symmetric", samples))


def test_no_backend_without_compilation():
    result = _python(
        "from wavefilt import backends\n"
        "state = backends.available()['numba']\n"
        "print(type(state).__name__, 'NUMBA_DISABLE_JIT' in str(state))",
        NUMBA_DISABLE_JIT="1",
    )
    assert result.stdout.split() == ["BackendUnavailable", "True"], result.stderr


def _python(code, **env):
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | env,
        capture_output=True,
        text=True,
        timeout=100,
    )


def _successor(x):
    return x + 1


def test_a_cache_that_is_damaged_or_full_is_done_without(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def hits():
        kernel = compiler.jit(_successor)
        assert kernel(1) == 2
        return sum(kernel.stats.cache_hits.values())

    assert (hits(), hits()) == (0, 1)
    for name in ("*.nbi", "*.nbc"):
        for kept in (0, 10, -10):
            (path,) = tmp_path.rglob(name)
            path.write_bytes(path.read_bytes()[:kept])
            assert (hits(), hits()) == (0, 1)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    for path in tmp_path.rglob("*.nb?"):
        path.write_bytes(b"")
    monkeypatch.setattr(IndexDataCacheFile, "_dump", full)
    assert (hits(), hits()) == (0, 0)


def test_kernels_do_without_a_folder_to_be_cached_in(monkeypatch):
    monkeypatch.setattr(FunctionCache._impl_class, "_locator_classes", [])
    for _ in range(2):
        kernel = compiler.jit(_successor)
        assert kernel(1) == 2
        assert not kernel.stats.cache_hits


def test_the_cache_knows_the_sources_of_what_kernels_use(monkeypatch, tmp_path):
    key = target.key()
    for module in (target.boundary, target.shrinkage, target.vocabulary):
        edited = tmp_path / "edited.py"
        edited.write_text(Path(module.__file__).read_text() + "\n")
        with monkeypatch.context() as patch:
            patch.setattr(module, "__file__", str(edited))
            assert target.key.__wrapped__() != key
    assert target.key.__wrapped__() == key
    own = {path.name for path in target._sources()}
    assert {"vector.py", "kernels.py", "selection_kernels.py", "compiler.py", "_version.py"} <= own
    assert compiler.jit(_successor)._cache._index_key((), cpu_target.target_context.codegen())[-1] == key

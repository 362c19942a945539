"""The GPU backend on a real GPU (``pytest -m gpu``): every kernel against the reference, threads, memory."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import pywt

import wavefilt
from wavefilt import backends
from wavefilt.api import run
from wavefilt.options import Options
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DTCWT2, DWT, DWT2, MODWT, Analysis
from wavefilt.vocabulary import MODES
from wavefilt.wavelets.dual_tree import DualTree

if isinstance(state := backends.available()["cuda"], wavefilt.BackendUnavailable):
    pytest.skip(str(state), allow_module_level=True)

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]  # those of other libraries


def _backend():
    from wavefilt.backends.cuda import Cuda

    return Cuda()


@pytest.fixture(scope="module")
def backend():
    try:
        return _backend()
    except wavefilt.errors.BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def reference():
    from wavefilt.backends.reference.backend import PyWavelets

    return PyWavelets()


def _host(x):
    from wavefilt.backends.cuda.runtime.interop import to_host

    return np.asarray(x) if isinstance(x, np.ndarray) else to_host(x)


def _traces(rows, n, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    return (np.sin(np.linspace(0, 60, n)) + rng.standard_normal((rows, n)) * 0.3).astype(dtype)


def _close(a, b, dtype, factor=1.0):
    limit = factor * (1e-6 if dtype == "float32" else 1e-13)
    assert a.shape == b.shape
    assert np.linalg.norm(a.astype(np.float64) - b) <= limit * np.linalg.norm(b.astype(np.float64)) + 1e-30


def _roundtrip(backend, reference, wavelet, mode, rows, n, level, dtype="float32"):
    """Coefficients, exact medians, mean squares and shrunk reconstruction as the reference's."""
    bank, x = pywt.Wavelet(wavelet), _traces(rows, n, dtype)
    ours, theirs = (b.decompose(x, DWT.analysis(bank, mode, level)) for b in (backend, reference))
    coefficients = [_host(c) for c in ours.coefficients]
    for a, b in zip(coefficients, theirs.coefficients, strict=True):
        _close(a, b, dtype, 30 if mode in ("smooth", "antireflect") else 4)  # extrapolation grows rounding
    statistics = backend.statistics([ours], "trace")
    medians = statistics.quantile_abs(range(1, level + 1))
    exact = [np.median(np.abs(d).astype(np.float64), axis=-1) for d in coefficients[:0:-1]]
    assert np.array_equal(medians, exact)
    squares = [np.mean(d.astype(np.float64) ** 2, axis=-1) for d in coefficients[:0:-1]]
    np.testing.assert_allclose(statistics.mean_square(), squares, rtol=1e-12)
    shrinkage = Shrinkage("soft", 0.5 * medians)
    _close(backend.reconstruct(ours, shrinkage), reference.reconstruct(theirs, shrinkage), dtype, 30)


@pytest.mark.parametrize("wavelet", pywt.wavelist(kind="discrete"))
def test_every_wavelet_and_mode(backend, reference, wavelet):
    for mode in MODES:
        _roundtrip(backend, reference, wavelet, mode, 2, 9001, 2)
    backend.clear()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wavelet", ["haar", "db4", "bior3.5", "coif17"])
def test_double_precision(backend, reference, wavelet, mode):
    _roundtrip(backend, reference, wavelet, mode, 2, 20011, 2, "float64")


@pytest.mark.parametrize("wavelet", ["haar", "db4", "db8"])
@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
def test_lengths_around_tile_boundaries(backend, reference, wavelet, mode):
    from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES, Filter, forward_tiling, inverse_tiling

    f = Filter(pywt.Wavelet(wavelet).dec_len, mode == "periodization")
    for cut in (forward_tiling(f, TILE_BYTES // 4, 4), inverse_tiling(f, TILE_BYTES // 4, 4)):
        ends = cut.left + cut.right << cut.levels
        for tiles in (0, 1, 3):
            for around in (-17, -1, 0, 1, 15):
                _roundtrip(backend, reference, wavelet, mode, 1, ends + tiles * cut.tile + around, 5)
    backend.clear()


@pytest.mark.parametrize(("rows", "n"), [(1, 262144), (2, 131071), (512, 501), (70000, 33), (40000, 2)])
def test_batches_from_one_long_to_many_short(backend, reference, rows, n):
    _roundtrip(backend, reference, "db2", "symmetric", rows, n, 3 if n > 32 else 1)


@pytest.mark.parametrize("n", [36 * 1024 * 2 + 100, 300001, 3000000])
@pytest.mark.parametrize("kind", ["noise", "uneven", "few values", "constant"])
def test_exact_medians_of_awkward_data(backend, n, kind):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((1, n)).astype(np.float32)
    if kind == "uneven":
        x *= np.exp(4 * np.sin(np.linspace(0, 9, n)))
    elif kind == "few values":
        x = np.round(x)
    elif kind == "constant":
        x[:] = 3
    pyramid = backend.decompose(x, DWT.analysis(pywt.Wavelet("haar"), "symmetric", 2))
    for scope in ("trace", "record"):
        medians = backend.statistics([pyramid], scope).quantile_abs([1, 2])
        exact = [np.median(np.abs(_host(d)).astype(np.float64)) for d in pyramid.coefficients[:0:-1]]
        assert np.array_equal(medians[:, 0], exact)


WHOLE = [
    *(
        {"rule": rule, "scope": scope}
        for rule in ("universal", "minimax", "bayes", "sure", 0.4)
        for scope in ("trace", "record")
    ),
    *({"rule": "universal", "shrink": function} for function in ("garrote", "firm", "hard")),
]


@pytest.mark.parametrize("options", WHOLE, ids=str)
@pytest.mark.parametrize("shape", [(1, 1 << 20), (5, 80003), (300, 1001)])
def test_denoise_as_the_reference(backend, options, shape):
    x, method = _traces(*shape), Options(level=5, **options)
    expected = wavefilt.denoise(x, level=5, backend="pywavelets", **options)
    for report in (False, False, False, True):  # launched, captured, replayed
        y, measured = backend.denoise(x, method, 5, report=report)
        # a coefficient within rounding of the threshold may be kept by one and dropped by the other
        _close(y, expected, "float32", 1e4 if "hard" in options.values() else 10)
    assert measured.thresholds.shape == measured.sigma.shape == measured.power.shape == (5, len(x))


def test_unchanged_rows_are_bit_for_bit(backend):
    x = _traces(4, 5000)
    x[2] = 0.1  # a constant: no noise, nothing to remove
    x[2, 1::2] = 0.1
    method = Options(level=3, rule=[0, 0, 0])
    y, _ = backend.denoise(x, method, 3)
    assert np.array_equal(y, x)


def test_not_finite_is_reported(backend):
    x = _traces(3, 70001)
    for value in (np.nan, np.inf):
        x[1, 777] = value
        assert backend.denoise(x, Options(level=4), 4) is None
    x[1, 777] = 0
    assert backend.denoise(x, Options(level=4), 4) is not None


def test_host_threads_and_streams(backend):
    cupy = pytest.importorskip("cupy")
    method = Options(level=5, rule="universal")
    inputs = [_traces(2, 30000 + 7 * i, seed=i) for i in range(4)]
    expected = [wavefilt.denoise(x, level=5, rule="universal", backend="pywavelets") for x in inputs]
    failures = []

    def work(i):
        try:
            stream = cupy.cuda.Stream(non_blocking=True)
            for turn in range(20):
                if turn % 2:
                    y = backend.denoise(inputs[i], method, 5)[0]
                else:
                    with stream:
                        y = cupy.asnumpy(backend.denoise(cupy.asarray(inputs[i]), method, 5)[0])
                _close(y, expected[i], "float32", 10)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("n", [70_001, 400_003, 1 << 20, 5_000_011, 1 << 24])
def test_a_loop_over_numpy_arrays(n):
    """Kept or dropped, from pageable or pinned memory, into an array of the caller's: the same bits."""
    from wavefilt.backends.cuda.runtime.target import cuda

    backend, rng = _backend(), np.random.default_rng(n)
    xs = [rng.standard_normal(n, np.float32) for _ in range(5)]
    expected = []
    for x in xs:
        there = wavefilt.denoise(cuda.to_device(x), backend=backend)
        expected.append(there.copy_to_host())
    out, locked = np.empty(n, np.float32), cuda.pinned_array(n, np.float32)
    kept = [wavefilt.denoise(x, backend=backend) for x in xs]
    for x, right in zip(xs * 2, expected * 2, strict=True):
        assert np.array_equal(wavefilt.denoise(x, backend=backend), right)
        assert wavefilt.denoise(x, backend=backend, out=out) is out
        assert np.array_equal(out, right)
        locked[:] = x
        assert np.array_equal(wavefilt.denoise(locked, backend=backend), right)
        locked[:] = x
        wavefilt.denoise(locked, backend=backend, out=locked)
        assert np.array_equal(locked, right)
    for y, right in zip(kept, expected, strict=True):
        assert np.array_equal(y, right)


FORKED = """
import os, sys, numpy as np, wavefilt
x = np.random.default_rng(0).standard_normal(1 << 20, np.float32)
for _ in range(4):
    y = wavefilt.denoise(x, backend="cuda")
expected = y.copy()
child = os.fork()
if not child:
    same = np.array_equal(y, expected)
    del y
    os._exit(0 if same else 3)
assert os.waitpid(child, 0)[1] == 0, "the child reads something else"
for _ in range(4):
    y = wavefilt.denoise(x, backend="cuda")
    assert np.array_equal(y, expected)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_reads_results_and_leaves_the_parent_its_own():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


AT_ONCE = """
import sys, threading, numpy as np
from wavefilt import backends
from wavefilt.api import run
from wavefilt.options import Options
backend, method, failures = backends.get("cuda"), Options("db5", 5, rule="universal"), []
together = threading.Barrier(8)
def work():
    try:
        together.wait()
        backend.denoise(np.ones((1, 40000), "f4"), method, 5)
    except BaseException as error:
        failures.append(error)
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.exit(repr(failures) if failures else 0)
"""


def test_threads_that_load_the_same_kernels_at_once():
    for _ in range(3):  # compiled, then from the cache on disk
        done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.whole_gpu
def test_nothing_leaks(backend):
    from wavefilt.backends.cuda.runtime.target import cuda

    x, method = _traces(2, 3000), Options(level=4)
    for _ in range(10):
        backend.denoise(x, method, 4)
        backend.decompose(x, DWT.analysis(method.filters, "symmetric", 4))
    free = cuda.current_context().get_memory_info().free
    for _ in range(1000):
        backend.denoise(x, method, 4)
    for _ in range(50):
        backend.decompose(x, DWT.analysis(method.filters, "symmetric", 4))
    assert cuda.current_context().get_memory_info().free >= free - (4 << 20)


def test_clear_frees_the_memory(backend):
    """Of this process, by what numba has allocated: others use the GPU at the same time."""
    from wavefilt.backends.cuda.runtime.target import cuda

    def held():
        gc.collect()  # plans of other tests
        context = cuda.current_context()
        context.deallocations.clear()
        return sum(memory.size for memory in context.memory_manager.allocations.values())

    backend.clear()
    x, before = _traces(1, 1 << 24), held()
    for _ in range(8):
        backend.denoise(x, Options(level=4), 4)
        assert held() > before + (100 << 20)
        backend.clear()
        assert held() <= before + (4 << 20)


def _arrays(x):
    """The same samples in every library here, plain, transposed, strided and read-only."""
    cupy = pytest.importorskip("cupy")
    torch = pytest.importorskip("torch")
    from wavefilt.backends.cuda.runtime.target import cuda

    wide = np.repeat(x, 2, axis=1)

    class ReadOnly:
        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "data": (array.data.ptr, True)}

    class DLPackOnly:
        def __init__(self, array):
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    return {
        "cupy": (cupy.asarray(x), -1, "cupy"),
        "cupy transposed": (cupy.asarray(np.ascontiguousarray(x.T)), 0, "cupy"),
        "cupy strided": (cupy.asarray(wide)[:, ::2], -1, "cupy"),
        "torch": (torch.tensor(x, device="cuda"), -1, "torch"),
        "torch transposed": (torch.tensor(x.T.copy(), device="cuda"), 0, "torch"),
        "numba": (cuda.to_device(x), -1, "numba"),
        "numba transposed": (cuda.to_device(np.ascontiguousarray(x.T)), 0, "numba"),
        "numba strided": (cuda.to_device(wide)[:, ::2], -1, "numba"),
        "read-only": (ReadOnly(cupy.asarray(x)), -1, "numba"),
        "DLPack": (DLPackOnly(cupy.asarray(x)), -1, "cupy"),
    }


def test_arrays_on_the_gpu_keep_their_kind(backend):
    from wavefilt.backends.cuda.runtime import interop

    x = _traces(6, 5003)
    expected = wavefilt.denoise(x, level=4, rule="universal", backend="pywavelets")
    for name, (array, axis, kind) in _arrays(x).items():
        traces = interop.take(array, axis)
        y = traces.restore(backend.denoise(traces.rows, Options(level=4, rule="universal"), 4)[0])
        assert type(y).__module__.partition(".")[0] == kind, name
        host = interop.to_host(y)
        _close(host.T if axis == 0 else host, expected, "float32", 10)


@pytest.mark.whole_gpu
def test_pieces_when_memory_is_short(backend):
    from wavefilt.backends.cuda.runtime.target import cuda

    backend.clear()
    cuda.current_context().deallocations.clear()
    x, method = _traces(8, 1 << 22), Options(level=4, rule="universal")
    long, record = x.reshape(1, -1), Options(level=4, scope="record", mode="periodization")
    expected = [backend.denoise(x[i : i + 1], method, 4)[0][0] for i in (0, 7)]
    whole, pooled = backend.denoise(long, method, 4, report=True), backend.denoise(x, record, 4, report=True)
    there = cuda.to_device(long)
    backend.clear()
    cuda.current_context().deallocations.clear()
    ballast = cuda.device_array(cuda.current_context().get_memory_info().free - (200 << 20), np.uint8)
    y, measured = backend.denoise(x, method, 4, report=True)
    assert measured.sigma.shape == (4, 8)
    assert np.array_equal(y[0], expected[0])
    assert np.array_equal(y[7], expected[1])
    for rows, how, (z, wanted) in [(long, method, whole), (there, method, whole), (x, record, pooled)]:
        y, measured = backend.denoise(rows, how, 4, report=True)
        _close(_host(y), z, "float32")
        # of bands of noise, power less the squared sigma, by which thresholds divide, is mostly rounding
        for name, rtol in (("sigma", 1e-5), ("power", 1e-5), ("thresholds", 1e-2)):
            np.testing.assert_allclose(getattr(measured, name), getattr(wanted, name), rtol)
    del y
    backend.clear()
    cuda.current_context().deallocations.clear()
    rest, size = [], 1 << 30
    while size >= 1 << 16:  # all there is
        try:
            rest.append(cuda.device_array(size, np.uint8))
        except Exception:
            size //= 2
    with pytest.raises(MemoryError, match="do not fit"):
        backend.denoise(long, replace(method, transform="modwt"), 4)
    del ballast, rest
    backend.clear()


def test_coefficients_from_elsewhere(backend, reference):
    x, bank = _traces(3, 4001), pywt.Wavelet("db4")
    theirs = reference.decompose(x, DWT.analysis(bank, "reflect", 3))
    _close(backend.reconstruct(theirs), x, "float32", 10)


WAYS = (
    *({"rule": rule} for rule in ("hybrid", "fdr", "blockjs", "neighblock", "ebayes", "ebayes-cauchy")),
    {"rule": "ebayes", "shrink": "mean", "scope": "record", "keep": 2},
    {"rule": "universal", "sigma": ("window", 100, 5000)},
    {"rule": "universal", "spins": 4},
    {"rule": "bayes", "spins": 3, "mode": "periodization"},
    {"rule": "universal", "sigma": "global", "transform": "modwt"},
    {"rule": "bayes", "transform": "modwt", "mode": "periodic"},
    {"rule": "ebayes", "transform": "modwt", "scope": "record"},
    {"rule": "fdr", "transform": "modwt", "mode": "smooth"},
    {"rule": "js"},
    {"rule": "js", "mode": "periodization", "detrend": "line", "sigma": "global"},
    {"rule": "js", "sigma": ("window", 100, 5000), "blend": 0.2},
    {"rule": "js", "spins": 3},
    {"rule": "js", "transform": "modwt"},
    {"rule": "js", "transform": "modwt", "mode": "periodic", "scope": "record", "keep": 1},
    {"rule": "bayes", "detrend": "line"},
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", WAYS, ids=lambda options: " ".join(map(str, options.values())))
def test_every_way_in_host_and_device_memory(backend, options, dtype):
    from wavefilt.backends.cuda.runtime.target import cuda

    x = _traces(3, 30001, dtype)
    x[1, 9000:9400] += 5
    expected = wavefilt.denoise(x, "db6", level=5, backend="numba", **options)
    found = [wavefilt.denoise(x, "db6", level=5, backend="cuda", **options)]
    found.append(wavefilt.denoise(cuda.to_device(x), "db6", level=5, **options).copy_to_host())
    for y in found:
        _close(y, expected, dtype, 100)  # a detail beside its threshold, or noise of another last digit


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("rows", "n", "level"), [(1, 100_003, 8), (5, 257, 3), (300, 64, 2)])
def test_modwt(backend, reference, mode, rows, n, level):
    bank, x = pywt.Wavelet("db8"), _traces(rows, n, "float64")
    ours, theirs = (b.decompose(x, MODWT.analysis(bank, mode, level)) for b in (backend, reference))
    for a, b in zip(ours.coefficients, theirs.coefficients, strict=True):
        _close(_host(a), b, "float64", 10)
    _close(backend.reconstruct(ours), x, "float64", 100)
    found, expected = (b.statistics([p], "record") for b, p in ((backend, ours), (reference, theirs)))
    np.testing.assert_allclose(found.quantile_abs([1, level]), expected.quantile_abs([1, level]), rtol=1e-9)


def difference(a, b):
    return np.linalg.norm(a.astype(np.complex128) - b) / np.linalg.norm(b.astype(np.complex128))


@pytest.mark.parametrize("wavelet", ["haar", "db4", "sym8", "bior2.4", "db20", "coif17"])
def test_transforms_of_sections(backend, reference, wavelet):
    rng, pair = np.random.default_rng(8), (pywt.Wavelet(wavelet),) * 2
    for mode in MODES:
        for dtype, shape, limit in (("float32", (1, 517, 603), 2e-6), ("float64", (3, 131, 260), 1e-12)):
            x = rng.standard_normal(shape).astype(dtype)
            if mode in ("smooth", "antireflect"):  # what lies beyond a corner is large
                limit *= pair[0].dec_len ** 2
            theirs = reference.decompose(x.astype("f8"), Analysis(DWT2, pair, (mode, mode), 2))
            ours = backend.decompose(x, Analysis(DWT2, pair, (mode, mode), 2))
            assert max(difference(a, b) for a, b in zip(ours.coefficients, theirs.coefficients, strict=True)) < limit
            shrinkage = Shrinkage("soft", np.full((6, len(x)), 0.5))
            y = reference.reconstruct(theirs, shrinkage)
            assert difference(backend.reconstruct(ours, shrinkage), y) < 10 * limit
    backend.clear()


@pytest.mark.parametrize(
    "tree",
    [DualTree("near_sym_b", "qshift_b"), DualTree("legall", "qshift_06"), DualTree("antonini", "qshift_d")],
    ids=lambda tree: tree.name,
)
def test_transforms_of_the_dual_tree(backend, reference, tree):
    rng = np.random.default_rng(8)
    for dtype, limit in (("float32", 2e-6), ("float64", 1e-12)):
        for transform, shape, level in ((DTCWT2, (2, 517, 603), 3), (DTCWT2, (3, 61, 1030), 5)):
            x = rng.standard_normal(shape).astype(dtype)
            analysis = transform.analysis(tree, "symmetric", level)
            theirs, ours = reference.decompose(x.astype("f8"), analysis), backend.decompose(x, analysis)
            assert max(difference(a, b) for a, b in zip(ours.coefficients, theirs.coefficients, strict=True)) < limit
            shrinkage = Shrinkage("soft", np.full((6 * level, len(x)), 0.5))
            assert (
                difference(backend.reconstruct(ours, shrinkage), reference.reconstruct(theirs, shrinkage)) < 10 * limit
            )
    backend.clear()


def noise_with_a_burst(rows, n, dtype="f8"):
    """Noise with a burst in it, and an offset."""
    x = np.random.default_rng(n).standard_normal((rows, n))
    x[:, n // 2 : n // 2 + n // 8] *= 12
    return (x + 3).astype(dtype)


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
def test_rule_js(backend, wavelet, mode, rows, n, level, transform, dtype):
    """Each time the same bits: launched, recorded and replayed."""
    from wavefilt.backends.cuda.runtime.target import cuda

    x, method = noise_with_a_burst(rows, n, dtype), Options(wavelet, level, mode, "js", transform=transform)
    expected, samples = run(x, method, "numba").samples, cuda.to_device(x)
    found = [backend.denoise(samples, method, level)[0].copy_to_host() for _ in range(4)]
    found.append(backend.denoise(x, method, level)[0])
    for y in found:
        assert np.array_equal(y, found[0])
    difference = np.linalg.norm(found[0].astype("f8") - expected) / np.linalg.norm(x - 3.0)
    assert difference < (1e-5 if dtype == "f4" else 1e-12)
    backend.clear()


def test_shapes_and_rules_that_take_turns():
    """They share a kernel, and graphs of those that take more memory are launched on other arrays after others."""
    from wavefilt.backends.cuda.runtime.target import cuda

    cases = [(n, rule) for n in (3001, 500, 1024) for rule in ("bayes", "universal")]
    held = []
    for turn in range(4):
        for n, rule in cases:
            x = _traces(24, n, seed=turn)
            held.append(cuda.to_device(x))
            y = wavefilt.denoise(held[-1], rule=rule, level=4)
            expected = wavefilt.denoise(x, rule=rule, level=4, backend="pywavelets")
            np.testing.assert_allclose(y.copy_to_host(), expected, atol=2e-5)


@pytest.mark.parametrize("sigma", ["global", "level"])
@pytest.mark.parametrize(
    ("rows", "n", "wavelet"),
    [
        (1, 1000, "db8"),
        (24, 1024, "sym8"),
        (700, 2001, "db4"),
        (300, 5001, "db8"),
        (40, 9999, "db8"),
        (300, 20001, "db2"),
    ],
)
def test_rows_of_one_block(rows, n, wavelet, sigma):
    """Rows of all sizes of blocks, aligned and not, and of more shared memory than all GPUs have.

    Blocks of 512 threads are not for the medians of several levels.
    """
    from wavefilt.backends.cuda import Cuda, KernelOptions

    level = min(6, pywt.dwt_max_level(n, wavelet))
    method, x = Options(wavelet=wavelet, rule="universal", sigma=sigma), _traces(rows, n)
    alone, divided = (
        Cuda(options=how).denoise(x, method, level)[0] for how in (KernelOptions(), KernelOptions(tile=2048))
    )
    np.testing.assert_array_equal(alone, divided)


@pytest.mark.parametrize(
    ("rows", "n", "options"),
    [
        (1, 1 << 20, {}),
        (24, 1024, {"rule": "bayes"}),
        (3, 50_001, {"mode": "periodization"}),
        (2, 30_001, {"transform": "modwt"}),
        (2, 30_001, {"rule": "ebayes"}),
    ],
    ids=str,
)
def test_padding_and_fast_math(rows, n, options):
    """The layout of tiles changes no bit, fast math little, and a sample that is not finite is found with both."""
    from wavefilt.backends.cuda import Cuda

    method, x = Options("db8", 5, **{"rule": "universal", **options}), _traces(rows, n)
    expected = Cuda().denoise(x, method, 5)[0]
    assert np.array_equal(Cuda(padding=False).denoise(x, method, 5)[0], expected)
    fast = Cuda(fastmath=True)
    np.testing.assert_allclose(fast.denoise(x, method, 5)[0], expected, atol=2e-5)
    x[0, n // 2] = np.nan
    assert fast.denoise(x, method, 5) is None

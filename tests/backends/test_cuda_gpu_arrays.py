"""Arrays of GPU libraries and several GPUs (``pytest -m gpu``): recorded launches, streams, captures, errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import wavefilt
from wavefilt import backends
from wavefilt.options import Options

if isinstance(state := backends.available()["cuda"], wavefilt.BackendUnavailable):
    pytest.skip(str(state), allow_module_level=True)

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]  # those of other libraries
cupy = pytest.importorskip("cupy")
GPUS = cupy.cuda.runtime.getDeviceCount()

CASES = {
    "short": ((1, 3000), {"rule": "universal"}),
    "64 Ki": ((1, 1 << 16), {}),
    "1 Mi": ((1, 1 << 20), {"rule": "universal", "sigma": "global", "level": 8}),
    "1 Mi, bayes": ((1, 1 << 20), {"level": 8}),
    "gather": ((24, 1024), {}),
    "rows apart by no multiple of 16 bytes": ((5, 4001), {"rule": "minimax"}),
    "record": ((6, 50_000), {"scope": "record", "rule": "universal"}),
    "number": ((3, 2000), {"rule": 0.4}),
    "given noise": ((3, 2000), {"rule": "universal", "sigma": 1e-40}),
    "periodization": ((2, 70_000), {"mode": "periodization"}),
    "modwt": ((3, 9000), {"transform": "modwt", "level": 4}),
    "modwt, periodic": ((1, 200_000), {"transform": "modwt", "mode": "periodic", "rule": "universal", "level": 6}),
    "js": ((3, 30_000), {"rule": "js"}),
    "js, modwt": ((2, 5000), {"rule": "js", "transform": "modwt", "level": 4}),
    "line": ((5, 4001), {"detrend": "line", "rule": "universal"}),
    "panels": ((3, 90, 130), {"ndim": 2, "wavelet": "db4"}),
    "panel": ((1, 1000, 1001), {"ndim": 2, "wavelet": "db4", "rule": "universal", "sigma": "global"}),
}


def _samples(shape, seed, dtype="float32"):
    rng = np.random.default_rng(seed)
    return (np.sin(np.linspace(0, 40, shape[-1])) + 0.3 * rng.standard_normal(shape)).astype(dtype)


def _new():
    from wavefilt.backends.cuda import Cuda

    return Cuda()


def _case(name):
    shape, options = CASES[name]
    method = Options(**options)
    return shape, method, method.level_for(*shape[1:])


def _placed(x, offset):
    """On the GPU, so many elements behind a multiple of 16 bytes."""
    memory = cupy.empty(x.size + 8, x.dtype)
    view = memory[offset : offset + x.size].reshape(x.shape)
    view.set(x)
    return view


@pytest.fixture
def ordinary(monkeypatch):
    """Denoises by launches one by one."""
    from wavefilt.backends.cuda.denoiser import Denoiser

    first = Denoiser._first

    def denoise(samples, method, level):
        backend = _new()
        with monkeypatch.context() as patch:
            patch.setattr(Denoiser, "_first", lambda self, work, stream: work(stream))
            found = [backend.denoise(cupy.asarray(x), method, level)[0].get() for x in samples]
        assert Denoiser._first is first
        return found

    return denoise


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_arrays_of_every_alignment(ordinary, name, dtype):
    """Bit for bit what ordinary launches give; inputs are not modified."""
    backend, (shape, method, level) = _new(), _case(name)
    samples = [_samples(shape, seed, dtype) for seed in range(12)]
    expected = ordinary(samples, method, level)
    for turn in range(2):
        for i, x in enumerate(samples):
            there = _placed(x, (i + turn) % 4)
            out = None if i % 3 else _placed(np.zeros_like(x), i % 4)
            y = backend.denoise(there, method, level, out=out, wait=i % 2 == 0)[0]
            assert out is None or y is out
            assert np.array_equal(y.get(), expected[i])
            assert np.array_equal(there.get(), x)
    backend.check()


@pytest.mark.parametrize("name", CASES)
def test_output_in_the_place_of_the_input(ordinary, name):
    backend, (shape, method, level) = _new(), _case(name)
    samples = [_samples(shape, seed) for seed in range(4)]
    for x, expected in zip(samples, ordinary(samples, method, level), strict=True):
        there = cupy.asarray(x)
        backend.denoise(there, method, level, out=there)
        assert np.array_equal(there.get(), expected)


@pytest.mark.parametrize("name", ["64 Ki", "1 Mi", "gather", "modwt", "panel"])
def test_a_driver_that_cannot_exchange_arrays(ordinary, monkeypatch, name):
    from wavefilt.backends.cuda import denoiser

    backend, (shape, method, level) = _new(), _case(name)
    samples = [_samples(shape, seed) for seed in range(4)]
    monkeypatch.setattr(denoiser, "repoints", lambda: False)
    for x, expected in zip(samples, ordinary(samples, method, level), strict=True):
        assert np.array_equal(backend.denoise(cupy.asarray(x), method, level)[0].get(), expected)


def test_every_library(ordinary):
    torch = pytest.importorskip("torch")
    from wavefilt.backends.cuda.runtime.interop import to_host
    from wavefilt.backends.cuda.runtime.target import cuda

    samples = [_samples((24, 1024), seed) for seed in range(12)]
    expected = ordinary(samples, Options(), Options().level_for(1024))
    makes = (cupy.asarray, lambda x: torch.as_tensor(x, device="cuda"), cuda.to_device)
    for wait in (True, False):
        found = [wavefilt.denoise(makes[i % 3](x), wait=wait) for i, x in enumerate(samples)]
        for y, right in zip(found, expected, strict=True):
            assert np.array_equal(to_host(y), right)


@pytest.mark.parametrize("wait", [True, False])
def test_threads_and_streams(ordinary, wait):
    """Four threads, each with two streams in turn, with results that are kept."""
    backend, names = _new(), ["1 Mi", "gather", "64 Ki", "modwt"]
    cases = [_case(name) for name in names]
    samples = [[_samples(shape, 10 * i + k) for k in range(6)] for i, (shape, _, _) in enumerate(cases)]
    expected = [ordinary(own, method, level) for own, (_, method, level) in zip(samples, cases, strict=True)]
    failures = []

    def work(number):
        try:
            streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
            for turn in range(20):
                i = (number + turn) % 4
                _, method, level = cases[i]
                found = []
                for k, x in enumerate(samples[i]):
                    with streams[k % 2] as stream:
                        found.append((stream, backend.denoise(cupy.asarray(x), method, level, wait=wait)[0]))
                for k, (stream, y) in enumerate(found):
                    with stream:
                        assert np.array_equal(y.get(), expected[i][k])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    backend.check()


def test_streams_that_come_and_go(ordinary):
    """The number of a stream is used again while work of the one before may be under way."""
    backend, (shape, method, level) = _new(), _case("1 Mi")
    samples = [_samples(shape, seed) for seed in range(20)]
    expected, found = ordinary(samples, method, level), []
    for x in samples:
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            found.append(backend.denoise(cupy.asarray(x), method, level, wait=False)[0])
        del stream
    cupy.cuda.Device().synchronize()
    for y, right in zip(found, expected, strict=True):
        assert np.array_equal(y.get(), right)


@pytest.mark.parametrize("name", ["64 Ki", "1 Mi", "1 Mi, bayes", "gather", "panel", "modwt"])
def test_a_stream_that_the_caller_captures(ordinary, name):
    """The caller's graph denoises what is in its input by then, while others use the backend."""
    backend, (shape, method, level) = _new(), _case(name)
    samples = [_samples(shape, seed) for seed in range(4)]
    expected = ordinary(samples, method, level)
    x = cupy.asarray(samples[0])
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        with pytest.raises(RuntimeError, match="before a call can be captured"):
            backend.denoise(x, method, level, wait=False)
        stream.end_capture()
        for _ in range(2):
            out = backend.denoise(x, method, level)[0]
        stream.begin_capture()
        with pytest.raises(RuntimeError, match="wait=False"):
            backend.denoise(x, method, level, out=out)
        y = backend.denoise(x, method, level, out=out, wait=False)[0]
        graph = stream.end_capture()
        for i, right in enumerate(expected):
            x.set(samples[i])
            graph.launch(stream)
            other = backend.denoise(cupy.asarray(samples[-1 - i]), method, level, wait=False)[0]
            assert np.array_equal(y.get(), right)
            assert np.array_equal(other.get(), expected[-1 - i])
        backend.clear()
        graph.launch(stream)
        assert np.array_equal(y.get(), expected[-1])


@pytest.mark.parametrize("name", ["64 Ki", "1 Mi", "1 Mi, bayes", "gather", "panel", "modwt"])
def test_samples_that_are_not_finite(name):
    """Without waiting they are told by `check`, once; a call that waits tells its own alone."""
    backend, (shape, method, level) = _new(), _case(name)
    good, bad = _samples(shape, 1), _samples(shape, 2)
    bad[(0,) * (len(shape) - 1) + (77,)] = np.nan
    for _ in range(3):
        assert backend.denoise(cupy.asarray(bad), method, level) is None
        backend.denoise(cupy.asarray(good), method, level, wait=False)
        backend.check()
        y, _ = backend.denoise(cupy.asarray(bad), method, level, wait=False)
        assert np.isnan(y.get()).any()
        assert backend.denoise(cupy.asarray(good), method, level) is not None
        with pytest.raises(ValueError, match="wait=False"):
            backend.check()
        backend.check()
        backend.denoise(cupy.asarray(bad), method, level, wait=False)
        with pytest.raises(ValueError, match="wait=False"):
            backend.check()
        backend.denoise(cupy.asarray(bad), method, level, wait=False)
        backend.clear()
        with pytest.raises(ValueError, match="wait=False"):
            backend.check()


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("options", [{"rule": "universal", "sigma": "global"}, {}, {"rule": "universal"}])
def test_equal_values(options, wait):
    """The lists of the searches overflow: one block each finds the medians, and later calls make all passes."""
    backend, method = _new(), Options("haar", 3, **options)
    x = np.round(4 * _samples((2, 300_000), 3))
    expected = wavefilt.denoise(x, "haar", level=3, backend="pywavelets", **options)
    for _ in range(5):
        y = backend.denoise(cupy.asarray(x), method, 3, wait=wait)[0].get()
        np.testing.assert_allclose(y, expected, atol=2e-5)
    backend.check()


def test_errors_of_the_driver(ordinary, monkeypatch):
    """An update that fails is an error of that call alone."""
    from cuda.bindings import driver

    from wavefilt.backends.cuda.runtime.graph import DriverError

    backend, (shape, method, level) = _new(), _case("1 Mi")  # of several kernels
    samples = [_samples(shape, seed) for seed in range(4)]
    expected = ordinary(samples, method, level)
    there = [cupy.asarray(x) for x in samples]  # all at different addresses
    for x in there[:2]:
        backend.denoise(x, method, level)
    update, calls = driver.cuGraphExecKernelNodeSetParams, []

    def failing(*arguments):
        calls.append(arguments)
        return (driver.CUresult.CUDA_ERROR_INVALID_VALUE,) if len(calls) > 1 else update(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "cuGraphExecKernelNodeSetParams", failing)
        with pytest.raises(DriverError, match="INVALID_VALUE"):
            backend.denoise(there[2], method, level)
    for x, right in zip(there, expected, strict=True):
        assert np.array_equal(backend.denoise(x, method, level)[0].get(), right)


@pytest.mark.whole_gpu
def test_what_is_kept_is_bounded():
    """Memory for shapes that never come again."""
    from wavefilt.backends.cuda.runtime.target import cuda

    backend, method = _new(), Options(level=3)

    def denoise(n):
        for offset in range(4):
            backend.denoise(_placed(_samples((2, n), n), offset), method, 3, wait=False)

    for n in range(400, 420):
        denoise(n)
    backend.check()
    free = cuda.current_context().get_memory_info().free
    for n in range(420, 620):
        denoise(n)
    backend.check()
    assert free - cuda.current_context().get_memory_info().free < 200 << 20


TREE = {"transform": "dtcwt", "level": 4}
SECTION = {"wavelet": "db4", "level": 2, "axes": (0, 2)}


def difference(a, b):
    return np.linalg.norm(a.astype(np.complex128) - b) / np.linalg.norm(b.astype(np.complex128))


@pytest.mark.parametrize("options", [{}, {"rule": "bayes"}, {"rule": "js", "sigma": "global"}], ids=str)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((300, 5, 421), TREE | {"axes": (0, 2)}),
        ((600, 90, 700), SECTION),
        ((90, 600, 700), SECTION),
    ],
)
def test_denoise_of_host_and_device_arrays(shape, axes, options):
    x = np.random.default_rng(9).standard_normal(shape, dtype="f4")
    x += np.sin(np.arange(shape[-1]) / 30, dtype="f4")
    options = {**axes, **options}
    expected = wavefilt.denoise(x, **options, backend="numba")
    assert difference(wavefilt.denoise(x, **options, backend="cuda"), expected) < 1e-5
    on_device = cupy.asarray(x)
    for _ in range(4):  # launches, then a graph
        y = wavefilt.denoise(on_device, **options)
        assert isinstance(y, cupy.ndarray)
        assert difference(y.get(), expected) < 1e-5


@pytest.fixture(scope="module")
def all_gpus():
    """All GPUs of this machine, if there are two or more."""
    if GPUS < 2:
        pytest.skip("one GPU")
    return backends.get("cuda", devices="all")


@pytest.mark.parametrize(
    ("rows", "n", "options"),
    [
        (64, 1 << 18, {}),
        (9, 1 << 20, {"rule": "universal", "dtype": "f8"}),
        (1, (1 << 24) + 77, {"rule": "universal", "sigma": "global"}),
        (3, 1 << 22, {"rule": "bayes", "mode": "periodization"}),
        (40, 1 << 18, {"rule": "universal", "scope": "record"}),
        (8, 1 << 20, {"transform": "modwt", "rule": "universal"}),
        (1, 1 << 22, {"rule": "fdr"}),
        (64, 1 << 18, {"rule": "js"}),
        (8, 1 << 20, {"rule": "js", "transform": "modwt"}),
    ],
)
def test_as_on_one_gpu(all_gpus, rows, n, options):
    options = dict(options)
    dtype = options.pop("dtype", "f4")
    x = np.random.default_rng(n).standard_normal((rows, n), "f4").astype(dtype)
    one = wavefilt.denoise(x, "db8", level=6, backend="cuda", **options)
    for _ in range(3):  # the last recorded
        assert np.array_equal(wavefilt.denoise(x, "db8", level=6, backend=all_gpus, **options), one)


def test_arrays_on_every_gpu(all_gpus):
    parts = []
    for number in range(GPUS):
        with cupy.cuda.Device(number):
            parts.append(cupy.random.default_rng(number).standard_normal((2, 1 << 20), dtype="f4"))
    options = {"wavelet": "db8", "level": 8, "rule": "universal"}
    expected = [wavefilt.denoise(part.get(), **options, backend="cuda") for part in parts]
    for _ in range(5):  # launches, then graphs
        found = [wavefilt.denoise(part, **options, backend=all_gpus, wait=False) for part in parts]
        all_gpus.check()
        for part, y, right in zip(parts, found, expected, strict=True):
            assert y.device == part.device
            assert np.array_equal(y.get(), right)
    with parts[1].device:
        parts[1][0, 5] = np.nan
    wavefilt.denoise(parts[1], **options, backend=all_gpus, wait=False)
    with pytest.raises(ValueError, match="NaN"):
        all_gpus.check()

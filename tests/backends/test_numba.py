"""The compiled CPU backend: equal bits from any threads, chunks and batches, repeated calls, interrupts, its caches."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from tests.support.simulation import SIMULATED
from wavefilt import backends
from wavefilt.vocabulary import MODES

if not SIMULATED:
    pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def number_of_threads():
    yield
    wavefilt.set_num_threads(None)


def anew(x, **options):
    """Denoise with nothing kept from earlier calls."""
    backends.get("numba").release()
    return wavefilt.denoise(x, backend="numba", **options)


WAYS = [
    {},
    {"rule": "universal", "shrink": "hard"},
    {"rule": "sure", "sigma": "global"},
    {"rule": 0.5, "sigma": 1.0},
    {"rule": "ebayes", "scope": "record"},
    {"rule": "universal", "scope": "record"},
    {"rule": "js"},
    {"rule": "js", "scope": "record", "detrend": "line"},
    {"rule": "neighblock"},
    {"transform": "modwt"},
    {"transform": "modwt", "rule": "js", "scope": "record"},
    {"transform": "dtcwt"},
    {"transform": "wp", "level": 3},
    {"spins": 3},
    {"sigma": ("running", 9000)},
]
SECTIONS = [{"axes": (0, 1), "level": 2, "transform": transform} for transform in ("dwt", "dtcwt")]
INDEPENDENT = [options for options in WAYS if options.get("scope") != "record"]


@pytest.mark.parametrize("options", [*WAYS, *SECTIONS], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_any_number_of_threads_gives_the_same_bits(rng, options, dtype):
    shapes = [(350, 600)] if "axes" in options else [(1, 90_001), (2, 20_011), (40, 701)]
    for shape in shapes:
        x, found = rng.standard_normal(shape).astype(dtype), []
        for count in (1, 2, 3, 5):
            wavefilt.set_num_threads(count)
            found.append(wavefilt.denoise(x, backend="numba", **options))
        for other in found[1:]:
            assert found[0].tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("wavelet", "samples"), [("db2", 20_011), ("db8", 20_011), ("coif17", 50_001)])
def test_any_tile_gives_the_same_bits(rng, mode, dtype, wavelet, samples):
    from wavefilt.backends.numba_cpu import NumbaCPU

    x, found = rng.standard_normal((2, samples)).astype(dtype), []
    options = {"level": 4, "mode": mode, "rule": "universal", "shrink": "garrote", "scope": "record"}
    for tile, count in [(64, 1), (2048, 3), (5000, 2), (1 << 15, 1)]:
        wavefilt.set_num_threads(count)
        backend = NumbaCPU(tile)
        coefficients = wavefilt.wavedec(x, wavelet, mode, 4, backend=backend)
        y = wavefilt.waverec(coefficients, wavelet, mode, backend=backend)
        found.append([*coefficients, y, wavefilt.denoise(x, wavelet, backend=backend, **options)])
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            assert one.tobytes() == same.tobytes()


@pytest.mark.parametrize("options", INDEPENDENT, ids=str)
@pytest.mark.parametrize("n", [37, 512, 13_001])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_row_alone_and_beside_others_has_the_same_bits(rng, options, n, dtype):
    x = rng.standard_normal((3, n)).astype(dtype)
    options = {"level": 1 if n < 100 else 3, "mode": "reflect"} | options
    if options.get("transform") != "dtcwt":
        options["wavelet"] = "db2"
    else:
        options.pop("mode")
    if n < 9000 and "sigma" in options and options["sigma"] == ("running", 9000):
        options["sigma"] = ("running", n // 2)
    together = wavefilt.denoise(x, backend="numba", **options)
    for row in range(3):
        assert_array_equal(wavefilt.denoise(x[row], backend="numba", **options), together[row])


@pytest.mark.parametrize("rule", ["universal", "bayes", "js"])
def test_a_file_in_chunks_has_the_same_samples(tmp_path, rng, rule):
    x = rng.standard_normal((3, 300_000)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    options = {"rule": rule, "level": 4, "backend": "numba"}
    wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory="48 MiB", **options)
    scale = np.abs(x).max()
    assert_allclose(np.load(tmp_path / "y.npy"), wavefilt.denoise(x, **options), rtol=0, atol=1e-6 * scale)


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("shape", [(1, 90_000), (3, 20_000)])
def test_the_next_array_of_a_shape(rng, shape, options):
    """What is kept between calls changes no result: other samples, options in between, gaps."""
    wavefilt.set_num_threads(3)
    xs = rng.standard_normal((4, *shape))
    expected = [anew(x, **options) for x in xs]
    first = wavefilt.denoise(xs[0], backend="numba", **options)
    for x, right in zip(xs, expected, strict=True):
        assert_array_equal(wavefilt.denoise(x, backend="numba", **options), right)
        wavefilt.denoise(x, backend="numba", rule="universal", shrink="garrote")
    assert_array_equal(first, expected[0])  # the memory of a result is not used again while it is in use
    gappy = xs[1].copy()
    gappy[0, 400:410] = np.nan
    if options.get("sigma", "level") in ("level", "global", 1.0):
        right = anew(gappy, **options)
        for _ in range(2):
            assert_array_equal(wavefilt.denoise(gappy, backend="numba", **options), right)
            assert_array_equal(wavefilt.denoise(xs[2], backend="numba", **options), expected[2])


@pytest.mark.parametrize("shape", [(1, 1 << 17), (7, 4096), (2, 50_001), (1, 5_000_000)])
@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
def test_large_arrays_after_small_ones(rng, shape, mode):
    """Stores that bypass the caches, lists that are narrowed by all threads."""
    x = rng.standard_normal(shape, "f4")
    options = {"wavelet": "db4", "level": 3, "mode": mode, "rule": "universal"}
    expected = wavefilt.denoise(x, backend="pywavelets", **options)
    for count in (1, 2):
        wavefilt.set_num_threads(count)
        for _ in range(2):
            assert_allclose(wavefilt.denoise(x, backend="numba", **options), expected, rtol=0, atol=1e-4)


def test_views_of_a_result_keep_its_memory(rng):
    x = rng.standard_normal(100_000)
    view = wavefilt.denoise(x, backend="numba")[::2]
    kept = view.copy()
    for _ in range(4):
        wavefilt.denoise(2 * x, backend="numba")
    assert_array_equal(view, kept)


def test_an_array_for_the_result(rng):
    x = rng.standard_normal((2, 5000)).astype("f4")
    around = np.full((4, 5000), 7, "f4")
    expected = wavefilt.denoise(x, backend="numba")
    assert wavefilt.denoise(x, backend="numba", out=around[1:3]).base is around
    assert_array_equal(around[1:3], expected)
    assert (around[[0, 3]] == 7).all()
    other = np.empty((5000, 2), "f4").T
    assert wavefilt.denoise(x, backend="numba", out=other) is other
    assert_array_equal(other, expected)
    assert wavefilt.denoise(x, backend="numba", out=x) is x
    assert_array_equal(x, expected)


def test_calls_at_once_under_stress(rng):
    """One call has the team of threads, the others are spread by Python; the number of threads changes meanwhile."""
    xs = [rng.standard_normal(shape) for shape in ((70_000,), (24, 1024), (3, 50_001), (300, 40), (1, 200_000))]
    ways = [{"rule": "universal"}, {}, {"transform": "modwt", "level": 2}, {"rule": "js", "level": 1}, {"level": 4}]
    expected = [anew(x, **options) for x, options in zip(xs, ways, strict=True)]
    done = threading.Event()

    def change():
        while not done.is_set():
            for count in (1, 4, 2, 9):
                wavefilt.set_num_threads(count)
                done.wait(0.002)

    def check(i):
        i %= len(xs)
        return np.array_equal(wavefilt.denoise(xs[i], backend="numba", **ways[i]), expected[i])

    changing = threading.Thread(target=change)
    changing.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(check, range(60)))
    finally:
        done.set()
        changing.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(rng):
    wavefilt.set_num_threads(4)
    x = rng.standard_normal((4, 40_000)).astype("f4")
    expected = wavefilt.denoise(x, backend="numba")
    child = os.fork()
    if child == 0:
        same = [np.array_equal(wavefilt.denoise(x, backend="numba"), expected) for _ in range(3)]
        os._exit(0 if all(same) else 1)
    ended = threading.Timer(60, os.kill, (child, 9))
    ended.start()
    assert os.waitpid(child, 0)[1] == 0
    ended.cancel()
    assert_array_equal(wavefilt.denoise(x, backend="numba"), expected)


FEW_THREADS = """
import numpy as np, wavefilt
x = np.random.default_rng(0).standard_normal((24, 4096)).astype("f4")
wavefilt.set_num_threads(1)
expected = wavefilt.denoise(x, backend="numba")
import resource
held = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (held + (96 << 20),) * 2)
wavefilt.set_num_threads(4)
for _ in range(3):
    assert np.array_equal(wavefilt.denoise(x, backend="numba"), expected)
print(True)
"""

PEAK = """
import numpy as np, wavefilt

def peak():  # getrusage would report the peak of the parent process
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

small, x = (np.random.default_rng(0).standard_normal((1, n), dtype="f4") for n in (1 << 21, 1 << 24))
wavefilt.denoise(small, backend="numba", level=8)
before = peak()
y = wavefilt.denoise(x, backend="numba", level=8, rule={rule!r})
print((peak() - before - y.nbytes) / x.nbytes)
"""


def python(code, start=(), **environment):
    done = subprocess.run(
        [*start, sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


@pytest.mark.skipif(sys.platform != "linux", reason="stacks are limited as Linux does it")
def test_threads_that_cannot_be_started_are_done_without():
    """Stacks of 1 GiB do not fit in the memory that the process may have."""
    assert python(FEW_THREADS, ("bash", "-c", 'ulimit -s 1048576; exec "$@"', "bash")) == ["True"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("rule", ["bayes", "universal"])
def test_peak_memory_of_a_process(rule):
    """Beyond input and output at most 1.2 times the input: coefficients, and lists of some of them."""
    assert 0.9 < float(python(PEAK.format(rule=rule))[0]) <= 1.2


def test_memory_of_a_call(rng):
    x = rng.standard_normal((1, 1 << 21)).astype("f4")
    backends.get("numba").release()
    wavefilt.denoise(x, rule="sure", backend="numba")
    backends.get("numba").release()
    tracemalloc.start()
    y = wavefilt.denoise(x, rule="sure", backend="numba")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - y.nbytes <= 2 * x.nbytes


COMPILE = """
import sys
import numpy as np, wavefilt
x = np.sin(np.arange(300)).astype("f4")
y = wavefilt.denoise(x, "haar", level=2, rule=0.2, backend="numba")
print(np.allclose(y, wavefilt.denoise(x, "haar", level=2, rule=0.2, backend="pywavelets"), atol=1e-5))
print("numba" in sys.modules)
"""


def test_compiled_kernels_are_kept_on_disk(tmp_path):
    """By another process, so that this one need not import numba; a damaged file is written anew."""
    assert python(COMPILE, NUMBA_CACHE_DIR=str(tmp_path)) == ["True", "False"]
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.o")}
    assert files
    times = {path: path.stat().st_mtime_ns for path in files}
    assert python(COMPILE, NUMBA_CACHE_DIR=str(tmp_path)) == ["True", "False"]
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.o")}
    for i, (path, code) in enumerate(files.items()):
        path.write_bytes((code[:-10], code[:20], b"", code[:-1] + b"x")[i % 4])
    damaged = {path: path.read_bytes() for path in files}
    assert python(COMPILE, NUMBA_CACHE_DIR=str(tmp_path)) == ["True", "False"]
    assert any(path.read_bytes() != damaged[path] for path in files)


@pytest.mark.parametrize("without", ["sys.executable = ''", "tempfile.gettempdir()"])
def test_kernels_are_compiled_without_other_processes_or_a_folder(tmp_path, without):
    """In an embedded interpreter, and where nothing but temporary files can be written."""
    file = tmp_path / "file"
    file.write_text("")
    words = python(f"import sys, tempfile\n{without}\n{COMPILE}", NUMBA_CACHE_DIR=str(file))
    assert words == ["True", str("executable" in without)]


def test_a_version_of_numba_that_cannot_compile_the_kernels(tmp_path):
    """The error tells why; the automatic choice takes the reference instead."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['numba.np.arrayobj'] = None")
    code = """
import numpy as np, wavefilt
from wavefilt.backends.crossover import numba_crossover
numba_crossover.COMPILING, numba_crossover.FIRST = 0, {16: 1}
x = np.random.default_rng(0).standard_normal((4, 2000))
print(np.array_equal(wavefilt.denoise(x), wavefilt.denoise(x, backend="pywavelets")))
for _ in range(2):
    try:
        wavefilt.denoise(x, backend="numba")
    except wavefilt.BackendUnavailable as error:
        print("arrayobj" in str(error))
"""
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    assert python(code, PYTHONPATH=path, NUMBA_CACHE_DIR=str(tmp_path)) == ["True"] * 3

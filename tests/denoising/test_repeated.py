"""Arrays like one that was denoised before take a shorter way, with the same bits."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import wavefilt
from wavefilt.backends import registry
from wavefilt.backends.numba_cpu import whole
from wavefilt.backends.numba_cpu.backend import NumbaCPU
from wavefilt.backends.reference.backend import PyWavelets
from wavefilt.denoising import repeated
from wavefilt.denoising.pipeline import check_size, run
from wavefilt.errors import BackendUnavailable
from wavefilt.extending import register_rule
from wavefilt.method import Method
from wavefilt.thresholding.rules import RULES, RuleSpec
from wavefilt.wavelets.boundary import EXTENSIONS

pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def nothing_known():
    for kept in (repeated._known, repeated._waiting):
        kept.clear()
    yield
    for kept in (repeated._known, repeated._waiting):
        kept.clear()


@pytest.fixture
def again(monkeypatch):
    """Whether each call of the shorter way gave a result."""
    found = []
    own = NumbaCPU._again

    def note(self, *arguments):
        y = own(self, *arguments)
        found.append(y is not None)
        return y

    monkeypatch.setattr(NumbaCPU, "_again", note)
    return found


def _samples(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _outcome(x, **options):
    try:
        return wavefilt.denoise(x, backend="numba", **options)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


def _both(make, **options):
    """By the shorter way after another array of this shape, and by the long one."""
    x = make(_samples((4, 5000), seed=1))
    wavefilt.denoise(_samples(x.shape, x.dtype), backend="numba", **options)
    short = _outcome(x, **options)
    repeated._known.clear()
    return short, _outcome(x, **options)


OPTIONS = (
    {},
    {"rule": "universal", "sigma": "global", "wavelet": "db8", "level": 4},
    {"rule": "universal", "sigma": 0.7},
    {"rule": "universal", "keep": 2},
    {"rule": "minimax", "shrink": "hard"},
    {"rule": 0.5},
    {"rule": 0.5, "sigma": "global", "shrink": "firm"},
    {"transform": "modwt"},
    {"transform": "modwt", "rule": "universal", "sigma": "global", "mode": "periodization"},
    {"wavelet": "haar", "shrink": "garrote", "mode": "zero"},
    {"detrend": "line"},
    {"rule": "js"},
    {"rule": "js", "sigma": "global", "detrend": "line"},
    {"rule": "js", "sigma": 1.0, "transform": "modwt", "mode": "reflect"},
)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((1024,), "float32"),
        ((24, 1024), "float32"),
        ((2, 3, 777), "float64"),
        ((2, 40_001), "float32"),
        ((150_001,), "float32"),
    ],
    ids=str,
)
def test_same_bits(options, shape, dtype, again):
    wavefilt.denoise(_samples(shape, dtype), backend="numba", **options)
    x = _samples(shape, dtype, seed=1)
    kept = x.copy()
    y = wavefilt.denoise(x, backend="numba", **options)
    assert again == [True]
    repeated._known.clear()
    assert np.array_equal(y, wavefilt.denoise(x, backend="numba", **options))
    assert np.array_equal(x, kept)
    assert y.shape == shape
    assert y.dtype == dtype


def test_results_are_arrays_of_their_own():
    x = _samples((3, 1000))
    results = [wavefilt.denoise(x + i, backend="numba") for i in range(4)]
    for i, y in enumerate(results):
        repeated._known.clear()
        assert np.array_equal(y, wavefilt.denoise(x + i, backend="numba"))


def test_with_what_is_removed(again):
    x = _samples((3, 1000))
    first, second = (wavefilt.denoise(x, backend="numba", return_noise=True) for _ in range(2))
    assert again == [True]
    assert np.array_equal(first, second)


@pytest.mark.parametrize("shape", [(1, 1 << 21), (2, 1 << 20)])
def test_large_arrays(shape, again):
    x = _samples(shape, "float64")
    first, second = (wavefilt.denoise(x, rule="universal", backend="numba") for _ in range(2))
    assert again == [True]
    assert np.array_equal(first, second)


@pytest.mark.parametrize("detrend", [None, "line"])
@pytest.mark.parametrize("traces", [6, 7, 8])
def test_traces_in_blocks(traces, detrend, again, monkeypatch):
    """The last block has traces of the one before again; one of any block may take the long way."""
    monkeypatch.setattr(whole, "BLOCK", 3 * 1000 * 8)
    monkeypatch.setattr(whole, "SHARE", 0)
    x = _samples((traces, 1000), "float64")
    first, second = (wavefilt.denoise(x, detrend=detrend, backend="numba") for _ in range(2))
    assert again == [True]
    assert np.array_equal(first, second)
    for dead in range(traces):
        repeated._waiting.clear()
        wavefilt.denoise(x, detrend=detrend, backend="numba")
        again.clear()
        spoilt = x.copy()
        spoilt[dead] = 3
        y = wavefilt.denoise(spoilt, detrend=detrend, backend="numba")
        assert again == [False]
        assert np.array_equal(y[dead], spoilt[dead])
        np.testing.assert_array_equal(np.delete(y, dead, axis=0), np.delete(first, dead, axis=0))


def _with(x, where, value):
    x[where] = value
    return x


UNUSUAL = {
    "gap": lambda x: _with(x, (1, 100), np.nan),
    "infinite": lambda x: _with(x, (1, 100), np.inf),
    "dead trace": lambda x: _with(x, 1, 3),
    "all zero": lambda x: 0 * x,
    "large": lambda x: x / x.max() * np.float32(3e38),
    "tiny": lambda x: x * np.float32(1e-44),
    "squares overflow": lambda x: x.astype(np.float64) * 1e200,
    "large line": lambda x: x + np.float32(1e38) * np.linspace(-1, 1, 5000, dtype=np.float32),
    "large mean": lambda x: x + np.float32(3e38),
    "tapered": lambda x: x * np.hanning(5000).astype(np.float32),
    "rounded": lambda x: np.round(x),
    "many equal in a long trace": lambda x: (np.random.default_rng(2).random(1 << 18) < 0.01).astype(np.float32),
}


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("what", UNUSUAL)
@pytest.mark.parametrize("options", [{}, {"rule": "universal"}, {"rule": "js"}, {"detrend": "line"}], ids=str)
def test_unusual_samples(what, options):
    short, long = _both(UNUSUAL[what], **options)
    assert np.array_equal(short, long, equal_nan=True) if isinstance(long, np.ndarray) else short == long


def test_gaps_are_looked_at_once(again):
    x = _samples((2, 500))
    whole = x.copy()
    wavefilt.denoise(x, backend="numba")
    x[0, 7] = np.nan
    for _ in range(3):
        wavefilt.denoise(x, backend="numba")
    assert again == [False]
    for _ in range(repeated.WAIT + 2):
        wavefilt.denoise(whole, backend="numba")
    assert again == [False, True]


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "sure"},
        {"spins": 2},
        {"scope": "record"},
        {"blend": 0.1},
        {"level": 0},
        {"sigma": ("running", 200)},
        {"sigma": 0.7},
        {"rule": (1.0, 2.0, 3.0, 4.0, 5.0)},
        {"transform": "dtcwt"},
        {"axes": (-2, -1), "wavelet": "db2"},
        {"axis": 0, "wavelet": "db2"},
    ],
    ids=str,
)
def test_what_takes_the_long_way(options, again):
    x = _samples((64, 512))
    first = wavefilt.denoise(x, backend="numba", **options)
    second = wavefilt.denoise(x, backend="numba", **options)
    assert not again
    assert not repeated._known
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[:, ::-1],
        lambda x: x.astype(">f4"),
        lambda x: x.astype(np.int16),
        lambda x: np.ma.array(x),
        lambda x: x.tolist(),
        lambda x: x.astype(np.float16),
    ],
    ids=["strides", "byte order", "integers", "masked", "list", "float16"],
)
def test_other_arrays(change, again):
    x = _samples((3, 1000))
    wavefilt.denoise(x, backend="numba")
    other = change(x)
    first, second = (wavefilt.denoise(other, backend="numba") for _ in range(2))
    assert not again
    assert np.array_equal(first, second)


def test_a_read_only_array(again):
    x = _samples((3, 1000))
    expected = wavefilt.denoise(x, backend="numba")
    x.flags.writeable = False
    assert np.array_equal(wavefilt.denoise(x, backend="numba"), expected)
    assert again == [True]


def test_other_numbers_of_threads(again):
    x = _samples((24, 4096))
    before = wavefilt.denoise(x, backend="numba")
    for count in (1, 2, 3):
        wavefilt.set_num_threads(count)
        try:
            assert np.array_equal(wavefilt.denoise(x, backend="numba"), before)
        finally:
            wavefilt.set_num_threads(None)
    assert not again


def test_auto_takes_the_shorter_way_to_numba(again):
    x = _samples((24, 1024))
    wavefilt.denoise(x, backend="numba")
    assert registry.choose("auto", "float32", x.shape, wavefilt.method.Method().analysis(5)).name == "numba"
    first, second = (wavefilt.denoise(x) for _ in range(2))
    assert again == [True]
    assert np.array_equal(first, second)


def test_several_threads_at_once():
    x = [_samples((8, 2000), seed=i) for i in range(8)]
    expected = [wavefilt.denoise(own, backend="numba") for own in x]
    wrong = []

    def work(i):
        for _ in range(40):
            if not np.array_equal(wavefilt.denoise(x[i], backend="numba"), expected[i]):
                wrong.append(i)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not wrong


def test_as_many_are_kept_as_there_is_room_for(monkeypatch):
    monkeypatch.setattr(repeated, "KEPT", 3)
    for samples in range(1000, 1010):
        wavefilt.denoise(_samples(samples), backend="numba")
    assert [key[0] for key in repeated._known] == [(1007,), (1008,), (1009,)]


def test_a_name_that_is_registered_later(again):
    x = _samples((3, 1000))
    wavefilt.denoise(x, backend="numba")
    wavefilt.thresholding.rules.RULES.register("of-a-test", wavefilt.thresholding.rules.RULES["universal"])
    try:
        wavefilt.denoise(x, backend="numba")
    finally:
        wavefilt.thresholding.rules.RULES.unregister("of-a-test")
    assert not again


@pytest.mark.parametrize(("wavelet", "level"), [("bior1.3", 4), ("bior1.5", 1), ("sym8", 5)])
def test_the_largest_samples(wavelet, level, again):
    """The limit of float32 samples is computed in float32."""
    method = Method(wavelet, level)
    most = np.finfo("f4").max / np.float32(method.kind.growth(method.bank, level))
    around = [np.nextafter(most, np.float32(side)) for side in (0, np.inf)]
    around += [most, np.nextafter(around[1], np.float32(np.inf))]
    wavefilt.denoise(_samples(4000), wavelet, level=level, backend="numba")
    for largest in around:
        x = _samples(4000)
        x[2222] = largest
        try:
            check_size(x[None], float(largest), level, method)
        except ValueError:
            with pytest.raises(ValueError, match="overflow"):
                wavefilt.denoise(x, wavelet, level=level, backend="numba")
        else:
            wavefilt.denoise(x, wavelet, level=level, backend="numba")
    assert True in again
    assert False in again


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_backend_object_and_samples_that_it_does_not_compute(dtype, again):
    x = _samples((3, 1000)).astype(dtype)
    first, second = (wavefilt.denoise(x, backend=registry.get("numba")) for _ in range(2))
    assert not again
    assert np.array_equal(first, second)


def test_a_backend_object_and_a_mode_that_it_does_not_compute(again):
    EXTENSIONS.register("of-a-test", lambda i, n: (min(max(i, 0), n - 1), 2, 0, 0, 0, 0))
    try:
        x = _samples((3, 1000))
        first, second = (wavefilt.denoise(x, mode="of-a-test", backend=registry.get("numba")) for _ in range(2))
    finally:
        EXTENSIONS.unregister("of-a-test")
    assert not again
    assert np.array_equal(first, second)


def test_the_object_of_a_name_is_as_good_as_the_name(again):
    x = _samples((3, 1000))
    for _ in range(2):
        wavefilt.denoise(x, backend=registry.get("numba"))
    assert again == [True]


def test_another_backend_object_takes_the_long_way(again):
    x, own = _samples((3, 1000)), NumbaCPU()
    for _ in range(2):
        wavefilt.denoise(x, backend=own)
    assert not again


def test_an_object_with_the_name_of_a_backend_that_cannot_run_here():
    def missing():
        raise BackendUnavailable("not here")

    class Other(PyWavelets):
        name = "of-a-test"

    registry.BACKENDS.register("of-a-test", missing)
    try:
        assert registry.name_of(Other()) is None
    finally:
        registry.BACKENDS.unregister("of-a-test")


def test_a_backend_without_a_hash():
    class Other(PyWavelets):
        __hash__ = None

        def __eq__(self, other):
            return self is other

    x = _samples((3, 1000))
    assert np.array_equal(wavefilt.denoise(x, backend=Other()), wavefilt.denoise(x, backend="pywavelets"))


def test_a_backend_registered_by_another_name():
    class Other(PyWavelets):
        name = "another"

    registry.BACKENDS.register("of-a-test", Other)
    try:
        x = _samples((3, 1000))
        assert np.array_equal(wavefilt.denoise(x, backend="of-a-test"), wavefilt.denoise(x, backend="pywavelets"))
    finally:
        registry.BACKENDS.unregister("of-a-test")


def test_a_backend_derived_from_the_compiled_one(again):
    class Zeros(NumbaCPU):
        def reconstruct(self, pyramid, shrinkage=None, out=None):
            return 0 * super().reconstruct(pyramid, shrinkage)

    x, own = _samples((3, 1000)), Zeros()
    for _ in range(2):
        assert not wavefilt.denoise(x, backend=own).any()
    assert not again


def test_a_rule_of_a_user(again):
    """It may be rounded in another way than a product of the noise and one factor."""
    register_rule("of-a-test", RuleSpec(lambda statistics, sigma, samples: sigma / 7 * 0.3, device_kind="linear"))
    try:
        x = _samples((3, 1000), "float64")
        first, second = (wavefilt.denoise(x, rule="of-a-test", backend="numba") for _ in range(2))
    finally:
        RULES.unregister("of-a-test")
    assert not again
    assert np.array_equal(first, second)


def test_an_axis_that_is_no_whole_number():
    x = _samples((3, 1000))
    wavefilt.denoise(x, backend="numba")
    with pytest.raises(TypeError, match="integer"):
        wavefilt.denoise(x, backend="numba", axis=-1.0)


def test_several_threads_note_what_they_did():
    x, wrong, methods = _samples((1, 600)), [], [Method() for _ in range(80)]
    outcome = run(x, methods[0], "numba")

    def work(_):
        try:
            for method in 60 * methods:
                repeated.note(x, method, "numba", outcome)
        except (RuntimeError, StopIteration) as error:
            wrong.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert not wrong

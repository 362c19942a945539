"""The same samples give the same bits: alone or in a batch, at the first call or later, with any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import wavefilt

OPTIONS = [
    {},
    {"rule": "universal", "sigma": "global", "wavelet": "db8", "level": 4},
    {"rule": "universal", "sigma": 0.7},
    {"rule": "universal", "keep": 2},
    {"rule": "minimax", "shrink": "hard"},
    {"rule": 0.5},
    {"rule": 0.5, "sigma": "global", "shrink": "firm"},
    {"rule": (1.0, 2.0, 3.0, 4.0, 5.0), "level": 5},
    {"rule": "sure"},
    {"rule": "ebayes", "level": 2},
    {"rule": "js"},
    {"rule": "js", "sigma": "global", "detrend": "line"},
    {"rule": "js", "sigma": 1.0, "transform": "modwt", "mode": "reflect"},
    {"wavelet": "haar", "shrink": "garrote", "mode": "zero"},
    {"detrend": "line", "blend": 0.25},
    {"spins": 3, "mode": "periodization"},
    {"sigma": ("window", 0, 120), "level": 2},
    {"sigma": ("running", 100), "level": 2},
    {"transform": "modwt"},
    {"transform": "modwt", "keep": 1},
    {"transform": "modwt", "rule": "universal", "sigma": "global", "mode": "periodization"},
    {"transform": "dtcwt", "level": 2},
]


def samples(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.fixture(autouse=True)
def usual_number_of_threads():
    yield
    wavefilt.set_num_threads(None)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_traces_alone_and_in_a_batch(backend, options):
    """One trace has a gap and one is dead."""
    x = samples((7, 1531), seed=2)
    if "window" not in str(options):
        x[2, 1340:1350] = np.nan
    x[5] = 1
    y = wavefilt.denoise(x, backend=backend, **options)
    for row, found in zip(x, y, strict=True):
        assert np.array_equal(wavefilt.denoise(row, backend=backend, **options), found, equal_nan=True)


@pytest.mark.parametrize("options", [{}, {"rule": "js"}, {"rule": "sure", "transform": "modwt"}], ids=str)
def test_traces_of_more_than_a_block(options):
    """Large arrays are denoised in blocks of traces."""
    x = np.tile(samples((16, 65_536)), (16 if not options else 4, 1))
    y = wavefilt.denoise(x, backend="numba", **options)
    assert np.array_equal(y[:16], y[-16:])
    assert np.array_equal(y[[0, 15]], wavefilt.denoise(x[[0, 15]], backend="numba", **options))
    if not options:
        out = np.empty_like(x)
        assert wavefilt.denoise(x, backend="numba", out=out) is out
        assert np.array_equal(out, y)
        x[250, 3] = np.inf
        with pytest.raises(ValueError, match="trace 250"):
            wavefilt.denoise(x, backend="numba")


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_sections_alone_and_in_a_batch(backend, gaps, rng):
    x = rng.standard_normal((5, 20, 30))
    if gaps:
        x[1, 4, 5:9] = x[3, 6:8] = np.nan
    y = wavefilt.denoise(x, "db2", axes=(1, 2), backend=backend)
    for plane, found in zip(x, y, strict=True):
        assert np.array_equal(wavefilt.denoise(plane, "db2", axes=(0, 1), backend=backend), found, equal_nan=True)


SHAPES = [((24, 1024), "f4"), ((2, 3, 777), "f8"), ((2, 40_001), "f4")]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_the_first_call_and_later_ones(options, case):
    """A backend may keep what it prepared for arrays of one shape; results are arrays of their own."""
    (shape, dtype), number = case, OPTIONS.index(options)
    shape = (*shape[:-1], shape[-1] + number)  # not used by another test
    x, other = samples(shape, dtype), samples(shape, dtype, seed=1)
    kept = x.copy()
    first = wavefilt.denoise(x, backend="numba", **options)
    assert (first.shape, first.dtype) == (x.shape, x.dtype)
    between = [wavefilt.denoise(other, backend="numba", **options) for _ in range(3)]
    y, residual = wavefilt.denoise(x, backend="numba", return_noise=True, **options)
    assert np.array_equal(y, first)
    assert np.array_equal(wavefilt.denoise(x, backend="numba", **options), first)
    assert np.array_equal(between[0], between[2])
    assert np.array_equal(x, kept)
    np.testing.assert_allclose(y + residual, x, atol=1e-5)


def changed(x, where, value):
    x[where] = value
    return x


UNUSUAL = {
    "gap": lambda x: changed(x, (1, 100), np.nan),
    "infinite": lambda x: changed(x, (1, 100), np.inf),
    "dead trace": lambda x: changed(x, 1, 3),
    "all zero": lambda x: 0 * x,
    "large": lambda x: x / x.max() * np.float32(3e38),
    "nearly too large": lambda x: changed(x, (2, 2222), np.finfo("f4").max / np.float32(8)),
    "tiny": lambda x: x * np.float32(1e-44),
    "squares overflow": lambda x: x.astype(np.float64) * 1e200,
    "large line": lambda x: x + np.float32(1e38) * np.linspace(-1, 1, x.shape[1], dtype=np.float32),
    "large mean": lambda x: x + np.float32(3e38),
    "tapered": lambda x: x * np.hanning(x.shape[1]).astype(np.float32),
    "rounded": np.round,
    "strides": lambda x: x[:, ::-1],
    "byte order": lambda x: x.astype(">f4"),
    "integers": lambda x: (100 * x).astype(np.int16),
    "masked": np.ma.array,
    "list": lambda x: x.tolist(),
    "float16": lambda x: x.astype(np.float16),
    "complex": lambda x: x.astype(np.complex64),
    "read only": lambda x: np.frombuffer(x.tobytes(), np.float32).reshape(x.shape),
}


def outcome(x, **options):
    """Return the denoised samples, or the error as text."""
    try:
        return np.ma.filled(wavefilt.denoise(x, backend="numba", **options), np.nan)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("options", [{}, {"rule": "universal"}, {"rule": "js"}, {"detrend": "line"}], ids=str)
def test_unusual_samples_after_usual_ones(name, options):
    n = 5000 + list(UNUSUAL).index(name)  # a shape that no test used before
    usual, unusual = samples((4, n)), UNUSUAL[name](samples((4, n), seed=1))
    first = outcome(unusual, **options)
    wavefilt.denoise(usual, backend="numba", **options)
    wavefilt.denoise(usual, backend="numba", **options)
    for _ in range(2):
        again = outcome(unusual, **options)
        assert np.array_equal(again, first, equal_nan=True) if isinstance(first, np.ndarray) else again == first


@pytest.mark.parametrize("options", [{}, {"rule": "js"}, {"transform": "modwt", "rule": "js"}, {"rule": "sure"}])
@pytest.mark.parametrize("mode", ["symmetric", "periodization", "smooth"])
def test_any_number_of_threads(options, mode):
    for shape in ((1, 100_003), (24, 4096)):
        x, found = samples(shape), []
        for count in (1, 2, 3, 4):
            wavefilt.set_num_threads(count)
            found.append(wavefilt.denoise(x, mode=mode, backend="numba", **options))
        assert all(np.array_equal(found[0], y) for y in found[1:])


@pytest.mark.parametrize("transform", [wavefilt.wavedec, wavefilt.modwt, wavefilt.wavedec2, wavefilt.modwt2])
def test_transforms_by_any_number_of_threads(transform):
    x, found = samples((301, 700)), []
    for count in (1, 2, 4):
        wavefilt.set_num_threads(count)
        coefficients = transform(x, "db6", level=3, backend="numba")
        found.append(b"".join(np.stack(c).tobytes() for c in coefficients))
    assert found[0] == found[1] == found[2]


def test_calls_from_several_threads_at_once():
    x = [samples((8, 2000), seed=i) for i in range(8)]
    expected = [wavefilt.denoise(own, backend="numba") for own in x]

    def work(i):
        return all(np.array_equal(wavefilt.denoise(x[i], backend="numba"), expected[i]) for _ in range(40))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))

"""The GPU backend in numba's CUDA simulator: every kernel on small arrays, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
import pywt
from numpy.testing import assert_allclose

import wavefilt
from tests.support.signals import partly_dead
from tests.support.simulation import arrays_on_device, inside, small_cuda, small_options
from wavefilt import backends
from wavefilt.options import Options
from wavefilt.thresholding.rules import RULES, Rule
from wavefilt.thresholding.shrinkage import FUNCTIONS, Shrinkage
from wavefilt.vocabulary import MODES

# values between the rows, which nothing uses, may overflow in the simulator
pytestmark = [
    inside,
    *(pytest.mark.filterwarnings(f"ignore:{what}:RuntimeWarning") for what in ("invalid", "overflow")),
]


@pytest.fixture
def small():
    return small_cuda()


@pytest.fixture
def to_device(monkeypatch, small):
    return arrays_on_device(monkeypatch, small)


def samples(shape, dtype="f8"):
    """Return noise with a burst and an offset."""
    x = np.random.default_rng(shape[-1]).standard_normal(shape)
    n = shape[-1]
    x[..., n // 2 : n // 2 + n // 8] *= 12
    return (x + 3).astype(dtype)


def flattened(coefficients):
    """Return all arrays of nested coefficients as one."""
    return np.concatenate([item.ravel() if isinstance(item, np.ndarray) else flattened(item) for item in coefficients])


def halved(coefficients):
    return [item / 2 if isinstance(item, np.ndarray) else tuple(band / 3 for band in item) for item in coefficients]


def agree(forward, inverse, x, *arguments, tolerance=1e-11, **options):
    """Compare the coefficients, and the samples reconstructed from scaled coefficients, with the reference."""
    ours, theirs = (forward(x, *arguments, backend=name, **options) for name in (small_cuda(), "pywavelets"))
    assert_allclose(flattened(ours), flattened(theirs), rtol=0, atol=tolerance)
    options.pop("level")
    own, other = (inverse(halved(theirs), *arguments, backend=name, **options) for name in (small_cuda(), "pywavelets"))
    assert_allclose(own, other, rtol=0, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
def test_coefficients_in_every_mode(mode):
    """Both ends, interior tiles, several launches."""
    for wavelet, shape, level in (("haar", (2, 301), 3), ("db3", (1, 300), 2)):
        agree(wavefilt.wavedec, wavefilt.waverec, samples(shape), wavelet, mode=mode, level=level)
    agree(wavefilt.modwt, wavefilt.imodwt, samples((2, 11)), "db2", mode=mode, level=2)
    other = "periodization" if mode == "zero" else mode
    x = samples((1, 43, 38))
    agree(wavefilt.wavedec2, wavefilt.waverec2, x, ("db2", "haar"), mode=(mode, other), level=2, axes=(-2, -1))


@pytest.mark.parametrize(
    ("forward", "inverse", "shape", "wavelet", "options"),
    [
        (wavefilt.wavedec, wavefilt.waverec, (1, 257), "coif17", {"level": 1}),  # longer than the tile
        (wavefilt.modwt, wavefilt.imodwt, (1, 70), "haar", {"level": 6, "mode": "zero"}),
        (wavefilt.modwt, wavefilt.imodwt, (1, 101), "db2", {"level": 5, "mode": "periodization"}),
        (wavefilt.modwt, wavefilt.imodwt, (1, 41), "bior2.4", {"level": 3, "mode": "reflect"}),
    ],
)
def test_coefficients_of_many_tiles_and_levels(forward, inverse, shape, wavelet, options):
    agree(forward, inverse, samples(shape) - 3, wavelet, tolerance=1e-9, **options)


def test_tiles_of_the_modwt_in_float32(monkeypatch):
    from wavefilt.backends.cuda import modwt

    monkeypatch.setattr(modwt, "RUN_BYTES", 16)
    backend, x = small_cuda(threads=4), samples((1, 101), "f4") - 3
    for wavelet, mode, level in (("haar", "zero", 6), ("db2", "periodization", 5)):
        found, expected = (
            wavefilt.denoise(x, wavelet, level=level, mode=mode, rule=0.4, transform="modwt", backend=name)
            for name in (backend, "pywavelets")
        )
        assert_allclose(found, expected, atol=3e-5)


JS = {"wavelet": "db2", "level": 3, "rule": "js"}
MODWT = {"transform": "modwt", "wavelet": "haar", "level": 2}
TREE = {"transform": "dtcwt", "level": 3}
SECTION = {"wavelet": "haar", "level": 1, "axes": (-2, -1)}
CASES = [
    # thresholds of traces and records, by every rule
    ((2, 300), {"rule": "universal"}),
    ((2, 300), {"rule": "bayes"}),
    ((2, 140), {"rule": "sure"}),
    ((2, 300), {"rule": 0.3}),
    ((2, 140), {"rule": "fdr", "scope": "record"}),
    ((2, 140), {"rule": "hybrid", "keep": 1}),
    ((2, 140), {"rule": "blockjs"}),
    ((2, 140), {"rule": "neighblock", "sigma": 0.5, "keep": 1}),
    ((2, 140), {"rule": "ebayes", "shrink": "mean"}),
    ((2, 140), {"rule": "ebayes-cauchy", "scope": "record"}),
    ((2, 140), {"rule": "minimax", "shrink": "hard", "keep": 1}),
    ((2, 140), {"rule": "universal", "shrink": "garrote", "sigma": "global", "mode": "periodization"}),
    ((1, 1101), {"rule": "universal", "sigma": "global", "wavelet": "haar"}),  # searches of several blocks
    ((2, 64), {"rule": "bayes", "detrend": "line", "sigma": ("window", 0, 30)}),
    ((2, 64), {"rule": "bayes", "blend": 0.2}),
    ((2, 48), {"rule": "universal", "sigma": "global", "spins": 3, "wavelet": "haar"}),
    ((2, 48), {"rule": "universal", "spins": 3, "wavelet": "haar", "mode": "periodization"}),
    # trends
    ((3, 100), {"rule": "bayes", "detrend": "mean", "mode": "zero"}),
    ((1, 501), {"rule": "bayes", "detrend": "line", "mode": "zero", "wavelet": "haar"}),
    ((9, 33), {"rule": "bayes", "detrend": "line", "mode": "zero"}),
    # the MODWT
    ((2, 33), {**MODWT, "rule": "universal", "sigma": "global"}),
    ((2, 33), {**MODWT, "rule": "ebayes", "scope": "record"}),
    # rule js
    ((1, 200), {**JS, "level": 5}),
    ((1, 130), {**JS, "wavelet": "haar", "mode": "periodization", "level": 6}),
    ((1, 137), {**JS, "wavelet": "sym8", "mode": "reflect"}),
    ((1, 266), {**JS, "wavelet": "sym8", "level": 4}),  # a wide tile
    ((2, 67), {**JS, "wavelet": "bior2.4", "mode": "periodic", "level": 1}),
    ((2, 61), {**JS, "sigma": "global", "detrend": "line"}),
    ((2, 61), {**JS, "scope": "record"}),
    ((2, 61), {**JS, "keep": 1}),
    ((2, 61), {**JS, "sigma": ("window", 4, 40), "blend": 0.2}),
    ((2, 64), {**JS, "spins": 2, "level": 2}),
    ((1, 35), {**JS, "transform": "modwt"}),
    ((2, 33), {**JS, "transform": "modwt", "wavelet": "haar", "level": 4, "mode": "periodization", "sigma": 0.7}),
    ((1, 60), {**JS, "transform": "modwt", "wavelet": "sym8", "mode": "reflect", "level": 2, "keep": 1}),
    ((2, 30), {**JS, "transform": "modwt", "scope": "record", "detrend": "line", "wavelet": "haar", "level": 2}),
    # the dual tree of sections
    ((1, 10, 22), {**SECTION, "transform": "dtcwt", "wavelet": "legall,qshift_a", "rule": "sure"}),
    ((2, 103), TREE),  # computed by the CPU backend
    ((1, 10, 22), {**SECTION, "transform": "dtcwt", "wavelet": "legall,qshift_a"}),
    ((2, 10, 8), {**SECTION, "transform": "dtcwt", "wavelet": "legall,qshift_a", "rule": "bayes", "scope": "record"}),
    ((1, 10, 22), {**SECTION, "transform": "dtcwt", "wavelet": "legall,qshift_a", "rule": 0.4, "shrink": "firm"}),
    ((1, 19, 14), {**TREE, "axes": (-2, -1), "wavelet": "legall,qshift_06", "rule": 0.6, "level": 2}),
    ((1, 12, 15), {**TREE, "axes": (-2, -1), "wavelet": "near_sym_b,qshift_b", "rule": 0.6, "level": 1}),
    ((1, 5, 12), {**TREE, "axes": (-2, -1), "wavelet": "near_sym_b,qshift_b", "rule": 0.6, "level": 1}),
    # sections
    ((2, 8, 14), {**SECTION, "rule": "universal", "sigma": "global"}),
    ((2, 8, 14), {**SECTION, "rule": "bayes", "scope": "record"}),
    ((2, 8, 14), {**SECTION, "rule": "ebayes"}),
    ((2, 8, 14), {**SECTION, "rule": 0.4, "shrink": "firm"}),
    ((2, 20, 19), {**SECTION, "rule": 0.4, "wavelet": "db4"}),  # the last column in tiles without edges
]


@pytest.mark.parametrize(("shape", "options"), CASES, ids=str)
def test_denoise(small, to_device, shape, options):
    """In host memory and on the device."""
    x, options = samples(shape), {"level": 2} | options
    if options.get("transform") != "dtcwt":
        options.setdefault("wavelet", "db2")
    if "axes" in options:
        small = small_cuda(tile=64, threads=64 if "transform" in options else 16)
    x[0] *= 3
    expected = wavefilt.denoise(x, backend="pywavelets", **options)
    assert np.abs(x - expected).max() > 0.01
    assert_allclose(wavefilt.denoise(x, backend=small, **options), expected, atol=1e-9)
    assert_allclose(wavefilt.denoise(to_device(x), backend=small, **options).copy_to_host(), expected, atol=1e-9)


PLAIN = [
    ((2, 300), {"wavelet": "sym8", "mode": "reflect"}),
    ((1, 301), {"mode": "periodization", "level": 3}),
    ((1, 10, 22), {**SECTION, "rule": 0.4}),
    ((2, 33), {**MODWT, "rule": 0.4}),
]


@pytest.mark.parametrize(("shape", "options"), PLAIN, ids=str)
@pytest.mark.parametrize("alone", [False, True])
def test_tiles_without_padding(shape, options, alone):
    """The same values in other places, for tiles and for rows of one block."""
    x, options = samples(shape, "f4"), {"wavelet": "db2", "level": 2, "rule": "universal"} | options
    sizes = {"tile": 0, "threads": 256} if alone else {}
    padded, plain = (small_cuda(**sizes, padding=padding) for padding in (True, False))
    found, expected = (wavefilt.denoise(x, backend=backend, **options) for backend in (plain, padded))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("rule", ["ebayes", "ebayes-cauchy", "universal"])
def test_fast_math(rule):
    x = samples((2, 140), "f4")
    options = {"wavelet": "db2", "level": 2, "rule": rule, "shrink": "garrote" if rule == "universal" else None}
    options = {name: value for name, value in options.items() if value is not None}
    found, expected = (wavefilt.denoise(x, backend=b, **options) for b in (small_cuda(fastmath=True), "pywavelets"))
    assert_allclose(found, expected, atol=2e-4)


@pytest.mark.parametrize("options", [{**JS, "wavelet": "db2"}, {**JS, **MODWT}, {"rule": "bayes", "detrend": "line"}])
def test_denoise_in_float32(small, options):
    x, options = samples((2, 90), "f4"), {"wavelet": "db2", "level": 2} | options
    found, expected = (wavefilt.denoise(x, backend=name, **options) for name in (small, "pywavelets"))
    assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(("kind", "rows"), [("dwt", (1, 0, 1)), ("dwt", (0, 1, 1)), ("modwt", (1, 1, 0))])
def test_bands_that_are_unchanged(small, kind, rows):
    """Thresholds of 0 for some bands."""
    x, rule = samples((1, 90)), [0.8 * one for one in rows]
    options = {"wavelet": "db2", "level": 3, "rule": rule, "transform": kind}
    found, expected = (wavefilt.denoise(x, backend=name, **options) for name in (small, "pywavelets"))
    assert_allclose(found, expected, atol=1e-11)
    assert np.array_equal(wavefilt.denoise(x, backend=small, **{**options, "rule": 0.0}), x)


@pytest.mark.parametrize(("rows", "n"), [(2, 420), (1, 1101)])
@pytest.mark.parametrize("options", [{}, {"scope": "record"}, {"transform": "modwt", "mode": "periodization"}], ids=str)
def test_noise_is_that_of_the_exact_median(small, rows, n, options):
    """Levels searched by one block and by many, a sampled window and the widest one, odd and even counts."""
    x = np.random.default_rng(n).standard_normal((rows, n))
    if options.get("transform"):
        x = x[:, :60]
    given = {"level": 2, "by_band": True, **options}
    found, expected = (wavefilt.estimate_sigma(x, "haar", backend=name, **given) for name in (small, "pywavelets"))
    assert_allclose(found, expected, rtol=1e-12)
    ties = np.repeat(np.float32([1, 3, 1, 1]), 200)
    assert_allclose(*(wavefilt.estimate_sigma(ties, "haar", level=1, backend=b) for b in (small, "pywavelets")))


def test_medians_of_several_batches():
    """Batches have different lengths and numbers of levels, and bands take several blocks of each."""
    backend, options = small_cuda(whole=20, chunk=32), Options(wavelet="haar", level=4)
    parts = [(samples(shape), level) for shape, level in (((2, 300), 4), ((3, 150), 3), ((1, 90), 2))]
    found, expected = (
        one.statistics([one.decompose(x, options.analysis(level)) for x, level in parts], "record")
        for one in (backend, backends.get("pywavelets"))
    )
    for levels in ([1, 2, 3, 4], [1, 2]):
        assert_allclose(found.quantile_abs(levels), expected.quantile_abs(levels), rtol=1e-12)
        assert_allclose(found.quantile_abs(levels, 0.3), expected.quantile_abs(levels, 0.3), rtol=1e-12)


DEAD = [
    {"rule": "universal", "scope": "record"},
    {"wavelet": "db2", "rule": "bayes", "scope": "record"},
    {"rule": "sure", "scope": "record", "transform": "modwt", "level": 1},
    {"rule": "neighblock", "scope": "record", "level": 1},
    {"rule": 0.3, "scope": "record"},
    {"rule": "universal"},
    {"rule": "js"},
    {"rule": "universal", "scope": "record", "spins": 2, "level": 1},
]


@pytest.mark.parametrize("options", DEAD, ids=str)
def test_dead_traces(small, to_device, rng, options):
    """The others are denoised as if they were alone; dead ones are returned as they are."""
    x, dead = partly_dead(rng, 40, traces=3, dead=1)
    options = {"wavelet": "haar", "level": 2} | options
    expected = x.copy()
    expected[~dead] = wavefilt.denoise(x[~dead], backend=small, **options)
    assert_allclose(expected[~dead], wavefilt.denoise(x[~dead], backend="pywavelets", **options), atol=1e-10)
    tolerance = {"rtol": 0, "atol": 1e-12 if "spins" in options else 0}
    assert_allclose(wavefilt.denoise(x, backend=small, **options), expected, **tolerance)
    y = wavefilt.denoise(to_device(x), **options).copy_to_host()
    assert_allclose(y, expected, **tolerance)
    assert np.array_equal(y[dead], x[dead])


@pytest.mark.parametrize("gap", [np.nan, 4.5])
@pytest.mark.parametrize("options", [{"rule": "universal"}, {"rule": "sure"}], ids=str)
def test_gaps_and_dead_traces_of_a_section(small, to_device, gap, options):
    x = np.random.default_rng(6).standard_normal((1, 10, 14))
    x[0, 7] = gap
    x[0, 3, 3] = np.nan if np.isnan(gap) else 1
    options = {**SECTION, **options}
    expected = wavefilt.denoise(x, backend="pywavelets", **options)
    for y in (wavefilt.denoise(x, backend=small, **options), wavefilt.denoise(to_device(x), **options).copy_to_host()):
        assert_allclose(y, expected, atol=1e-10)
        assert np.array_equal(y[0, 7], x[0, 7], equal_nan=True)


@pytest.mark.parametrize("options", [JS, MODWT, {"rule": "bayes", "wavelet": "db2", "level": 2}], ids=str)
def test_gaps_and_infinite_samples(small, to_device, options):
    x = samples((2, 48))
    x[1, 22:25] = np.nan
    expected = wavefilt.denoise(x, backend="pywavelets", **options)
    assert_allclose(wavefilt.denoise(x, backend=small, **options), expected, atol=1e-10)
    assert_allclose(wavefilt.denoise(to_device(x), **options).copy_to_host(), expected, atol=1e-10)
    x[1, 23] = np.inf
    for backend, array in ((small, x), ("auto", to_device(x))):
        with pytest.raises(ValueError, match="inf"):
            wavefilt.denoise(array, backend=backend, **options)


@pytest.mark.parametrize("scope", ["trace", "record"])
def test_results_that_are_not_waited_for(small, to_device, scope):
    """A sample that is not finite is reported once, by `check`."""
    options = {"wavelet": "db2", "level": 1, "rule": "universal", "scope": scope}
    good = samples((2, 60))
    bad = good.copy()
    bad[1, 40] = np.inf
    expected = wavefilt.denoise(to_device(good), **options).copy_to_host()
    small.check()
    for forget in (lambda: None, small.clear):
        wavefilt.denoise(to_device(bad), wait=False, **options)
        for wait in (False, True):
            y = wavefilt.denoise(to_device(good), wait=wait, **options)
            assert np.array_equal(y.copy_to_host(), expected)
        forget()
        with pytest.raises(ValueError, match="wait=False"):
            small.check()
        small.check()


@pytest.mark.parametrize("options", [{"sigma": "global"}, {}], ids=["one band", "all bands"])
def test_equal_values(small, to_device, options):
    """The lists of the search overflow: the first result is right, and so are later ones, which make all passes."""
    x = np.round(np.random.default_rng(3).standard_normal((2, 700))).astype(np.float32)
    options = {"wavelet": "haar", "level": 2, "rule": "universal", **options}
    expected = wavefilt.denoise(x, backend="pywavelets", **options)
    for _ in range(2):
        y = wavefilt.denoise(to_device(x), wait=False, **options)
        assert_allclose(y.copy_to_host(), expected, atol=1e-5)
    small.check()


def test_axes_layouts_and_options_of_arrays_on_the_device(small, to_device):
    x, options = samples((2, 3, 60), "f4"), {"wavelet": "haar", "level": 2, "rule": "universal"}
    for axis, array in ((-1, x), (np.int64(0), x[0, 0]), (1, np.ascontiguousarray(x.swapaxes(1, 2)))):
        expected = wavefilt.denoise(array, axis=axis, backend="pywavelets", **options)
        for wait in (True, False):
            y = wavefilt.denoise(to_device(array), axis=axis, wait=wait, **options)
            assert_allclose(y.copy_to_host(), expected, atol=1e-5)
    with pytest.raises(TypeError):
        wavefilt.denoise(to_device(x), axis=-1.0, **options)
    with pytest.raises(ValueError, match="axis"):
        wavefilt.denoise(to_device(x), axis=3, **options)
    small.check()


def test_a_threshold_function_of_a_user(small):
    """No kernel has it: details are shrunk on the host."""
    FUNCTIONS["halve"] = lambda data, value: np.where(np.abs(data) < value, data / 2, data)
    try:
        x = samples((2, 60))
        for options in ({"transform": "modwt"}, {}, {"axes": (0, 1), "level": 1}):
            options = {"wavelet": "haar", "level": 2, "rule": "universal", "shrink": "halve"} | options
            if "axes" in options:
                x = samples((12, 20))
            found, expected = (wavefilt.denoise(x, backend=name, **options) for name in (small, "pywavelets"))
            assert_allclose(found, expected, atol=1e-12)
    finally:
        del FUNCTIONS["halve"]


@pytest.mark.parametrize("kind", ["dwt", "modwt"])
def test_coefficients_stay_as_they_are_when_rows_are_shrunk_together(small, kind):
    x, options = samples((2, 60)), Options(wavelet="db2", transform=kind, level=2, rule="js")
    pyramid = small.decompose(x, options.analysis(2))
    shrinkage = Shrinkage(options.rule.shrink, np.full((3, 2), 1.5))
    first, second = (small.reconstruct(pyramid, shrinkage) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.allclose(first, x, atol=1e-3)
    assert_allclose(small.reconstruct(pyramid), x, atol=1e-12)


def out_of_memory(*_, **__):
    from wavefilt.backends.cuda.runtime.memory import OutOfMemory

    raise OutOfMemory("none left")


@pytest.mark.parametrize(
    ("rule", "sigma", "scope", "rows", "mode", "dtype"),
    [
        ("bayes", "level", "trace", 1, "symmetric", "f4"),
        ("sure", "level", "record", 2, "periodization", "f8"),
        ([0.3, 0.0], "global", "record", 2, "periodic", "f8"),
        ("js", "level", "trace", 1, "symmetric", "f8"),
        ("js", 0.8, "record", 2, "reflect", "f4"),
        ("universal", "level", "record", 3, "symmetric", "f8"),
        ("neighblock", "level", "record", 3, "symmetric", "f8"),
    ],
)
def test_rows_on_the_cpu_when_memory_is_short(small, to_device, monkeypatch, rule, sigma, scope, rows, mode, dtype):
    """A row that does not fit alone, and a record with a dead row among three."""
    from wavefilt.backends.cuda import Cuda

    x = samples((rows, 201), dtype) - 3
    if rows == 3:
        x[1] = 2
    options = {"wavelet": "db2", "level": 2, "mode": mode, "rule": rule, "sigma": sigma, "scope": scope}
    expected = wavefilt.denoise(x, backend="pywavelets", **options)
    monkeypatch.setattr(Cuda, "_whole", out_of_memory)
    monkeypatch.setattr(Cuda, "at_once", lambda *_: None)
    tolerance = {"rtol": 0, "atol": 1e-10 if dtype == "f8" else 1e-4}
    assert_allclose(wavefilt.denoise(x, backend=small, **options), expected, **tolerance)
    assert_allclose(wavefilt.denoise(to_device(x), **options).copy_to_host(), expected, **tolerance)
    with pytest.raises(MemoryError, match="do not fit"):
        wavefilt.denoise(x, backend=small, **options | {"transform": "modwt", "rule": "universal"})


def one_block_or_many(x, **options):
    """Denoise rows by one kernel, a block for each, and by the kernels that divide rows among blocks."""
    alone, divided = backends.get("cuda", options=small_options(tile=0, threads=256)), small_cuda()
    return tuple(wavefilt.denoise(x, backend=backend, **options) for backend in (alone, divided))


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "periodization"])
def test_rows_of_one_block_in_every_mode(mode):
    wavelet, n = {"zero": ("haar", 301), "symmetric": ("sym8", 137)}.get(mode, ("db3", 120))
    x = samples((2, n), "f4")
    alone, divided = one_block_or_many(x, wavelet=wavelet, mode=mode, rule="universal", sigma="global", level=2)
    assert np.array_equal(alone, divided)


@pytest.mark.parametrize(
    ("rule", "sigma", "shrink"),
    [
        ("universal", "global", "hard"),
        ("universal", "level", "garrote"),
        ("universal", 0.25, "firm"),
        ("minimax", "level", "soft"),
        ("minimax", 0.25, "hard"),
        ("bayes", "global", "garrote"),
        ("bayes", "level", "soft"),
        ((0.5, 0.0, 0.25), "level", "soft"),
    ],
)
def test_rows_of_one_block_by_every_rule(rule, sigma, shrink):
    """Energies are summed in another order: thresholds of rule bayes may differ in the last bit."""
    x = samples((2, 126), "f4")
    alone, divided = one_block_or_many(x, wavelet="db2", rule=rule, sigma=sigma, shrink=shrink, level=3)
    assert_allclose(alone, divided, rtol=0, atol=1e-5 if rule == "bayes" else 0)


MISLEADING = {
    "ties": lambda x: np.round(x) % 2,
    "one large": lambda x: x * np.where(np.arange(x.shape[1]) % 25, 1, 1e6),
    "mostly zero": lambda x: x * (np.arange(x.shape[1]) < 30),
    "tiny": lambda x: x * 1e-41,
    "huge": lambda x: x * 1e35,
    "steps": lambda x: x * np.where(np.arange(x.shape[1]) < 75, 1e-4, 1),
}


@pytest.mark.parametrize("kind", MISLEADING)
def test_rows_of_one_block_that_mislead_the_search(kind):
    """Equal and zero details, denormals, and details near the largest float32 or far from those of a sample."""
    x = MISLEADING[kind](samples((1, 200)) - 3).astype("f4")
    alone, divided = one_block_or_many(x, wavelet="haar", rule="universal", level=3)
    assert np.array_equal(alone, divided)


@pytest.mark.parametrize(
    "options", [{"mode": "periodization"}, {"scope": "record"}, {"wavelet": "haar", "level": 6}, {}], ids=str
)
def test_rows_that_one_block_does_not_take(options):
    x = samples((1, 120), "f4" if options else "f8")
    options = {"wavelet": "db4", "rule": "universal", "sigma": "global", "level": 2} | options
    alone, divided = one_block_or_many(x, **options)
    assert_allclose(alone, divided, rtol=0, atol=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_of_one_block_with_gaps(value):
    x = samples((3, 80), "f4")
    x[1] = np.float32(0.1)
    options = {"wavelet": "db4", "rule": "universal", "sigma": "global", "level": 2}
    assert np.array_equal(one_block_or_many(x, **options)[0][1], x[1])
    x[2, 42] = value
    if np.isinf(value):
        with pytest.raises(ValueError, match="inf"):
            one_block_or_many(x, **options)
    else:
        found, expected = one_block_or_many(x, **options)[0], wavefilt.denoise(x, backend="pywavelets", **options)
        assert_allclose(found, expected, atol=1e-4)


@pytest.fixture
def three(monkeypatch):
    """Three GPUs, for all of which the simulated one stands."""
    from wavefilt.backends.cuda import Several
    from wavefilt.backends.cuda import several as backend

    monkeypatch.setattr(backend, "checked", lambda devices, count: [0] * 3)
    monkeypatch.setattr(backend, "LEAST", 0)
    several = Several(options=small_options())
    arrays_on_device(monkeypatch, several)
    return several


@pytest.mark.parametrize(
    ("shape", "options", "cut"),
    [
        ((3, 90), {"rule": "universal"}, False),
        ((3, 60), {"transform": "modwt", "rule": 0.3, "wavelet": "haar"}, False),
        ((2, 100), {"rule": "blockjs"}, False),
        ((2, 150), {"rule": "universal", "sigma": "global"}, True),  # each of two rows over three
        ((1, 203), {"rule": "sure", "mode": "periodization"}, True),
        ((1, 200), {"rule": "fdr"}, True),
        ((4, 90), {"rule": "universal", "scope": "record"}, True),
        ((1, 200), {"rule": "js"}, True),
        ((3, 90), {"rule": "bayes", "scope": "record"}, True),
    ],
    ids=str,
)
def test_several_gpus(three, monkeypatch, shape, options, cut):
    """Rows dealt out give the result of one GPU, and rows for which no GPU has room that of the CPU."""
    from wavefilt.backends.cuda import Cuda

    x, options = samples(shape) - 3, {"wavelet": "db2", "level": 2, **options}
    one = wavefilt.denoise(x, backend=small_cuda(), **options)
    assert_allclose(one, wavefilt.denoise(x, backend="pywavelets", **options), atol=1e-10)
    if cut:
        monkeypatch.setattr(Cuda, "_whole", out_of_memory)
    exact = not cut and options["rule"] not in ("js", "bayes")  # means are summed in another order
    assert_allclose(wavefilt.denoise(x, backend=three, **options), one, rtol=0, atol=0 if exact else 1e-10)


def test_gaps_and_dead_traces_on_several_gpus(three, rng):
    x = samples((1, 300))
    x[0, 200] = np.nan
    expected = wavefilt.denoise(x, "db2", level=2, backend="pywavelets")
    assert_allclose(wavefilt.denoise(x, "db2", level=2, backend=three), expected, atol=1e-10)
    x, dead = partly_dead(rng, 80, traces=3, dead=1)
    options = {"wavelet": "haar", "level": 2, "rule": "universal", "scope": "record"}
    y = wavefilt.denoise(x, backend=three, **options)
    assert_allclose(y, wavefilt.denoise(x, backend="pywavelets", **options), atol=1e-10)
    assert np.array_equal(y[dead], x[dead])
    assert three.describe().count("simulator") == 3
    three.clear()


def test_arrays_on_several_gpus(three, to_device):
    x = np.random.default_rng(0).standard_normal((1, 80))
    expected = wavefilt.denoise(x, "db2", level=2, backend="pywavelets")
    assert_allclose(wavefilt.denoise(to_device(x), "db2", level=2, backend=three).copy_to_host(), expected, atol=1e-10)
    with pytest.raises(TypeError, match="wait=False"):
        wavefilt.denoise([to_device(x)], "db2")


class Memory:
    """Memory of the simulated GPU, of which none is left from the ``first`` allocation to the ``last``."""

    def __init__(self, monkeypatch):
        from wavefilt.backends.cuda.runtime import target

        self.made, self.first, self.last = 0, 1 << 30, 0
        for name in ("device_array", "to_device", "pinned_array", "mapped_array"):
            plain = getattr(target.cuda, name)
            monkeypatch.setitem(vars(target.cuda), name, lambda *a, plain=plain, **k: self.allocate(plain, *a, **k))

    def allocate(self, plain, *arguments, **named):
        from wavefilt.backends.cuda.runtime.target import CudaAPIError

        self.made += 1
        if self.first <= self.made <= self.last:
            raise CudaAPIError(2, "Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
        return plain(*arguments, **named)

    def lack(self, first, last):
        self.made, self.first, self.last = 0, first, last


def steps(x, backend, **_):
    coefficients = wavefilt.wavedec(x, "haar", level=2, backend=backend)
    sigma = wavefilt.estimate_sigma(x, "haar", level=2, backend=backend)
    return np.concatenate([flattened(coefficients), sigma, *wavefilt.waverec(coefficients, "haar", backend=backend)])


@pytest.mark.parametrize(
    ("operation", "shape", "options"),
    [
        (wavefilt.denoise, (2, 40), {"rule": "universal"}),
        (wavefilt.denoise, (1, 40), {"rule": "bayes", "mode": "zero"}),
        (wavefilt.denoise, (1, 40), {"rule": "fdr"}),
        (wavefilt.denoise, (1, 40), {"rule": "sure"}),
        (wavefilt.denoise, (1, 5, 8), {"rule": "universal", "axes": (-2, -1), "level": 1}),
        (steps, (2, 40), {}),
    ],
    ids=["universal", "one row", "on the host", "sorted", "section", "steps"],
)
def test_memory_that_is_used_up(monkeypatch, operation, shape, options):
    """An allocation that fails is tried again with less memory in use; without any memory, the CPU denoises traces."""
    small, x, memory = small_cuda(), samples(shape), Memory(monkeypatch)
    options = {"wavelet": "haar", "level": 2, **options}

    def run():
        small.clear()
        return operation(x, backend=small, **options)

    expected, number = run(), memory.made
    assert number > 5
    for first in range(1, number + 1, number // 3):
        memory.lack(first, first)
        assert_allclose(run(), expected, atol=1e-12)
    memory.lack(number // 2, 1 << 30)
    if operation is wavefilt.denoise and len(shape) == 2:
        assert_allclose(run(), expected, atol=1e-12)
    else:
        with pytest.raises(MemoryError):
            run()


def test_coefficients_that_do_not_belong_together_are_refused(small):
    coefficients = wavefilt.wavedec2(samples((2, 20, 26)), "haar", level=2, axes=(-2, -1), backend=small)
    with pytest.raises(ValueError):  # noqa: PT011
        wavefilt.waverec2([coefficients[0][:, :2], *coefficients[1:]], "haar", axes=(-2, -1), backend=small)
    x = samples((2, 100))
    for wavelet in ("haar", pywt.Wavelet("haar")):
        (same,) = wavefilt.wavedec(x, wavelet, level=0, backend=small)
        assert np.array_equal(same, x)


def test_a_rule_registered_again(monkeypatch, small):
    x = samples((2, 150))
    for factor in (1.0, 2.0):
        monkeypatch.setitem(RULES, "bayes", Rule("bayes", factor=lambda samples, options, factor=factor: factor))
        for _ in range(2):
            found, expected = (wavefilt.denoise(x, rule="bayes", backend=name) for name in (small, "pywavelets"))
            assert_allclose(found, expected, rtol=0, atol=1e-11)

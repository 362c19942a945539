"""Two dimensions: transforms against PyWavelets, denoising against a composition written with it."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import wavefilt
from tests.support.agreement import TOLERANCE, error
from tests.support.checkout import run_cli, usable_backends
from tests.support.pyramids import pyramid_of
from wavefilt import backends
from wavefilt.benchmarks.cpu import panels
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DWT2, Analysis, Pyramid
from wavefilt.vocabulary import MODES
from wavefilt.wavelets.filters import names

HOST = [name for name in usable_backends() if name != "cuda"]


@pytest.fixture(params=HOST)
def backend(request):
    """The backends that transform two axes."""
    return request.param


def flat(coefficients):
    return [coefficients[0], *(band for bands in coefficients[1:] for band in bands)]


def oracle(x, wavelet, mode, level, axes=(-2, -1)):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # above its maximum level
        return pywt.wavedec2(x, wavelet, mode, level, axes)


def section(rng, shape=(60, 90), dtype="f8"):
    """Dipping events, and the same in noise."""
    down, across = np.indices(shape[-2:])
    clean = np.sin((down + 0.4 * across) / 5) * (down > across / 3) + np.cos(across / 9)
    clean = np.broadcast_to(clean, shape)
    return clean.astype(dtype), (clean + 0.3 * rng.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("number", range(4))
def test_every_wavelet_and_mode_agrees_with_pywavelets(backend, rng, number):
    shapes = [((2, 9, 24), "f4"), ((3, 31), "f8"), ((18, 1), "f8")]
    # the reference calls PyWavelets' own functions
    cases = product(names()[number :: 4 if backend == "numba" else 16], MODES)
    for wavelet, mode in cases:
        shape, dtype = shapes[rng.integers(2 if mode in ("reflect", "antireflect") else 3)]
        level = int(rng.integers(1, 3))
        x = rng.standard_normal(shape).astype(dtype)
        reference = oracle(x, wavelet, mode, level)
        exact = flat(reference if dtype == "f8" else oracle(x.astype("f8"), wavelet, mode, level))
        found = wavefilt.wavedec2(x, wavelet, mode, level, backend=backend)
        assert [type(bands) for bands in found] == [np.ndarray, tuple, tuple][: level + 1]
        assert all(f.dtype == x.dtype for f in flat(found))
        bound = max(TOLERANCE[dtype], 2 * error(flat(reference), exact))
        # smooth extrapolates from a rounded slope, as in one dimension
        assert error(flat(found), exact) <= (100 * bound if mode == "smooth" else bound), (wavelet, mode, shape)
        y, expected = (
            wavefilt.waverec2(reference, wavelet, mode, backend=backend),
            pywt.waverec2(reference, wavelet, mode),
        )
        assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
        assert np.linalg.norm(y - expected) <= TOLERANCE[dtype] * max(
            np.linalg.norm(expected), 0.1 * sum(map(np.linalg.norm, flat(reference)))
        ), (wavelet, mode, shape)


@pytest.mark.parametrize("axes", [(-2, -1), (0, 2), (2, 0), (1, 0)])
def test_any_axes_of_any_batch_with_a_wavelet_and_a_mode_for_each(backend, rng, axes):
    x = rng.standard_normal((33, 26, 38))
    wavelets, modes = ("db2", "bior2.4"), ("periodization", "reflect")
    expected = oracle(x, wavelets, modes, 2, axes)
    found = wavefilt.wavedec2(x, wavelets, modes, 2, axes, backend=backend)
    assert error(flat(found), flat(expected)) < 1e-14
    y = wavefilt.waverec2(found, wavelets, modes, axes, backend=backend)
    assert_allclose(y, pywt.waverec2(expected, wavelets, modes, axes), atol=1e-12)


def test_large_sections_have_many_tiles(backend, rng):
    x = rng.standard_normal((300, 2100), dtype="f4")
    found = wavefilt.wavedec2(x, "db4", level=3, backend=backend)
    assert error(flat(found), flat(oracle(x.astype("f8"), "db4", "symmetric", 3))) < 1e-6
    assert np.linalg.norm(wavefilt.waverec2(found, "db4", backend=backend) - x) < 1e-6 * np.linalg.norm(x)


@settings(max_examples=25)
@given(
    st.sampled_from(HOST),
    st.integers(1, 70),
    st.integers(1, 70),
    st.sampled_from(["haar", "db3", "sym8", "bior3.3"]),
    st.sampled_from(sorted(set(MODES) - {"reflect", "antireflect"})),
    st.integers(0, 4),
    st.integers(0, 2**31),
)
def test_perfect_reconstruction(backend, rows, columns, wavelet, mode, level, seed):
    x = np.random.default_rng(seed).standard_normal((rows, columns))
    coefficients = wavefilt.wavedec2(x, wavelet, mode, level, backend=backend)
    y = wavefilt.waverec2(coefficients, wavelet, mode, backend=backend)[:rows, :columns]
    scale = max(np.abs(c).max() for c in flat(coefficients))  # smooth extrapolates
    assert_allclose(y, x, atol=1e-12 * max(scale, 1))


def test_levels_dtypes_and_missing_bands_as_in_pywavelets(rng):
    x = rng.standard_normal((50, 41))
    assert len(wavefilt.wavedec2(x, "db4")) == len(pywt.wavedec2(x, "db4"))
    (only,) = wavefilt.wavedec2(x, "db4", level=0)
    assert np.array_equal(only, x)
    assert np.array_equal(wavefilt.waverec2([x], "db4"), x)
    cA, second, (cH, cV, cD) = oracle(x, "db4", "symmetric", 2)
    zeros = np.zeros_like(cH)
    expected = pywt.waverec2([cA, second, (cH, zeros, cD)], "db4")
    assert_allclose(wavefilt.waverec2([cA, second, (cH, None, cD)], "db4"), expected)
    expected = pywt.waverec2([np.zeros_like(cA), second, (cH, cV, cD)], "db4")
    assert_allclose(wavefilt.waverec2([None, second, (cH, cV, cD)], "db4"), expected)
    none = (None,) * 3
    for bands in ([cA, none, none], [cA, none, (cH, cV, cD)], [cA, second, none]):
        assert_allclose(wavefilt.waverec2(bands, "db4"), pywt.waverec2(bands, "db4"), atol=1e-12)
    for dtype, computed in (("i2", "f8"), ("f2", "f4"), (">f4", "f4"), ("c8", "c8")):
        assert {c.dtype for c in flat(wavefilt.wavedec2(x.astype(dtype), "db2", level=1))} == {np.dtype(computed)}


REFERENCE_RULES = {
    "universal": lambda d, sigma, n: sigma * np.sqrt(2 * np.log(n)),
    "bayes": lambda d, sigma, n: sigma**2 / np.sqrt(max((d**2).mean() - sigma**2, 1e-300)),
}


def composed(x, wavelet, level, mode, rule, shrink, sigma):
    """What a user of PyWavelets writes for one section."""
    coefficients = pywt.wavedec2(x, wavelet, mode, level)
    finest = np.median(np.abs(coefficients[-1][-1])) / 0.6744897501960817

    def shrunk(d):
        own = np.median(np.abs(d)) / 0.6744897501960817 if sigma == "level" else finest
        value = REFERENCE_RULES[rule](d, own, x.size)
        if shrink == "firm":  # pywt.threshold_firm shrinks a large value in the first row if it is the only one
            return np.where(np.abs(d) > 2 * value, d, 2 * np.sign(d) * np.maximum(np.abs(d) - value, 0))
        return pywt.threshold(d, value, shrink)

    coefficients[1:] = [tuple(map(shrunk, bands)) for bands in coefficients[1:]]
    return pywt.waverec2(coefficients, wavelet, mode)[: x.shape[0], : x.shape[1]]


@pytest.mark.parametrize("shrink", ["soft", "hard", "garrote", "firm"])
def test_denoise_is_the_composition_of_its_parts(backend, rng, shrink):
    _, x = section(rng, (2, 75, 120))
    for rule, sigma, mode in product(REFERENCE_RULES, ("level", "global"), ("symmetric", "periodization")):
        kwargs = {"rule": rule, "shrink": shrink, "sigma": sigma, "mode": mode, "level": 2}
        y = wavefilt.denoise(x, "db4", **kwargs, axes=(1, 2), backend=backend)
        expected = [composed(plane, "db4", 2, mode, rule, shrink, sigma) for plane in x]
        assert_allclose(y, expected, atol=1e-10)


@pytest.mark.parametrize("rule", ["sure", "hybrid", "fdr", "ebayes", "ebayes-cauchy", [0.5, 0.25], 0.4])
def test_rules_see_every_band_as_a_level_of_its_own(backend, rng, rule):
    """A threshold, and what is left, is what the rule and function give for the band alone."""
    _, x = section(rng)
    bands = pywt.wavedec2(x, "db4", level=2)
    noise = 0.3
    one = backends.get("pywavelets")
    for i, level in enumerate(bands[1:]):
        shrunk = []
        for band in level:
            own = rule if not isinstance(rule, list) else rule[i]
            method = Method("haar", rule=own, sigma=noise)
            row = band.reshape(1, -1)
            pyramid = pyramid_of((row[:, :0], row), method.bank, "symmetric", row.size)
            sigma, thresholds = method.thresholds(one.statistics([pyramid], "trace"), x.size)
            shrinkage = Shrinkage(method.function(x.size), thresholds, sigma)
            shrunk.append(shrinkage.of_level(0, row).reshape(band.shape))
        bands[i + 1] = tuple(shrunk)
    expected = pywt.waverec2(bands, "db4")[:60, :90]
    y = wavefilt.denoise(x, "db4", level=2, rule=rule, sigma=noise, axes=(0, 1), backend=backend)
    assert_allclose(y, expected, atol=1e-9)
    assert not np.allclose(y, x, atol=1e-3)


def test_keep_leaves_the_bands_of_the_coarsest_levels(backend, rng):
    _, x = section(rng)
    kept = oracle(x, "db4", "symmetric", 3)
    y = wavefilt.denoise(x, "db4", level=3, rule=1e6, keep=2, mode="symmetric", axes=(0, 1), backend=backend)
    kept[-1] = tuple(map(np.zeros_like, kept[-1]))
    assert_allclose(y, pywt.waverec2(kept, "db4"), atol=1e-10)


def test_scope_trace_is_each_section_alone_and_record_pools_them(backend, rng):
    _, x = section(rng, (3, 40, 50))
    x *= np.array([1, 10, 100.0])[:, None, None]
    alone = [wavefilt.denoise(plane, "db2", axes=(0, 1), backend=backend) for plane in x]
    assert_allclose(wavefilt.denoise(x, "db2", axes=(1, 2), backend=backend), alone, rtol=1e-12)
    pooled = wavefilt.denoise(x, "db2", axes=(1, 2), rule="universal", sigma="global", scope="record", backend=backend)
    finest = np.concatenate([pywt.dwt2(plane, "db2")[1][2].ravel() for plane in x])
    value = np.median(np.abs(finest)) / 0.6744897501960817 * np.sqrt(2 * np.log(x.size))
    assert_allclose(pooled, wavefilt.denoise(x, "db2", axes=(1, 2), rule=value, backend=backend), rtol=1e-9)


@pytest.mark.parametrize(
    "layout",
    [lambda x: x.T.copy().T, lambda x: np.repeat(x, 2, axis=0)[::2], lambda x: x.astype(x.dtype.newbyteorder())],
)
def test_any_layout_gives_the_same_samples_and_is_left_alone(backend, rng, layout):
    _, x = section(rng, dtype="f4")
    odd = layout(x)
    odd.flags.writeable = False
    y = wavefilt.denoise(odd, "db3", axes=(0, 1), backend=backend)
    assert (y.shape, y.dtype) == (x.shape, odd.dtype)
    assert_allclose(y, wavefilt.denoise(x, "db3", axes=(0, 1), backend=backend), rtol=1e-6)
    assert np.array_equal(odd, x)


def test_other_dtypes_axes_and_what_was_removed(rng):
    _, x = section(rng, (40, 2, 50))
    expected = np.stack([wavefilt.denoise(x[:, i], "db2", axes=(0, 1)) for i in range(2)], axis=1)
    y, removed = wavefilt.denoise(x, "db2", axes=(0, -1), return_noise=True)
    assert_allclose(y, expected, rtol=1e-12)
    assert_allclose(y + removed, x)
    for dtype, result in (("i2", "f4"), ("i4", "f8"), ("f2", "f2")):
        assert wavefilt.denoise((100 * x).astype(dtype), axes=(0, 2)).dtype == result
    masked = wavefilt.denoise(np.ma.MaskedArray(x), "db2", axes=(0, 2))
    assert isinstance(masked, np.ma.MaskedArray)
    assert_allclose(masked, expected)
    turned = wavefilt.denoise(x * np.exp(0.7j), "db2", axes=(0, 2))  # complex samples by modulus
    assert_allclose(turned, expected * np.exp(0.7j), atol=1e-10)


def test_what_has_no_noise_or_no_level_comes_back_bit_for_bit(backend, rng):
    dead = np.zeros((2, 40, 40))
    dead[1] = rng.standard_normal((40, 40))
    y = wavefilt.denoise(dead, axes=(1, 2), backend=backend)
    assert np.array_equal(y[0], dead[0])
    assert not np.array_equal(y[1], dead[1])
    nothing = rng.standard_normal((0, 20, 20))
    assert np.array_equal(wavefilt.denoise(nothing, axes=(-2, -1), backend=backend), nothing)
    for shape, others in (((1, 1), "no wavelet has a level"), ((7, 300), "db2 has 1 level, haar 2")):
        small = rng.standard_normal(shape)
        with pytest.warns(UserWarning, match=f"unchanged: .*too few for one level of db8 .*; {others}$"):
            assert np.array_equal(wavefilt.denoise(small, axes=(-2, -1), backend=backend), small)
        assert np.array_equal(wavefilt.denoise(small, level=0, axes=(-2, -1), backend=backend), small)


DEAD = {
    "one": [17],
    "first and last": [0, 59],
    "several side by side at both ends": [0, 1, 2, 30, 31, 57, 58, 59],
    "all but one": [i for i in range(60) if i != 20],
    "all": list(range(60)),
}


@pytest.mark.parametrize("value", [0, 3.7, np.nan, "masked"])
@pytest.mark.parametrize("which", DEAD.values(), ids=DEAD)
def test_dead_and_missing_traces_stay_and_count_for_nothing(backend, rng, which, value):
    """Noise and thresholds are those of the live traces alone, side by side."""
    _, x = section(rng, dtype="f4")
    x[which] = 5 if value == "masked" else value
    given = np.ma.masked_array(x, np.isin(np.arange(60), which)[:, None] * np.ones((1, 90))) if value == "masked" else x
    y = wavefilt.denoise(given, "db2", level=2, axes=(0, 1), backend=backend)
    assert np.array_equal(np.ma.getdata(y)[which], x[which], equal_nan=True)
    live = np.setdiff1d(np.arange(60), which)
    assert np.isfinite(np.ma.getdata(y)[live]).all()
    samples = np.where(np.ma.getmaskarray(given), np.float32(np.nan), x)
    method = Method("db2", level=2, dimensions=2)
    estimates = run(samples, method, backend, report=True).estimates
    assert len(estimates) == (len(live) > 0)
    if len(live) > 1:
        assert not np.array_equal(np.ma.getdata(y)[live], x[live])
        assert_allclose(np.ma.getdata(y)[live], x[live], atol=2)  # nothing of the dead traces' offset came in
        alone = run(x[live], method, backend, report=True).estimates[0]
        for name in ("sigma", "thresholds", "power"):
            assert_allclose(getattr(estimates[0], name), getattr(alone, name), rtol=1e-6)


def test_live_traces_are_denoised_nearly_as_well_beside_dead_ones(backend):
    left = {"complete": 0.0, "dead": 0.0, "as zeros": 0.0}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        clean, x = section(rng, (96, 128))
        clean, x = clean + 20, x + 20  # an offset, which zeros would interrupt
        dead = rng.permutation(96)[:20]
        live = np.setdiff1d(np.arange(96), dead)
        gone, zeros = x.copy(), x.copy()
        gone[dead], zeros[dead] = np.nan, 0
        zeros[dead, 0] = 1e-30  # not dead
        for name, samples in (("complete", x), ("dead", gone), ("as zeros", zeros)):
            y = wavefilt.denoise(samples, "db4", axes=(0, 1), backend=backend)
            left[name] += np.linalg.norm((y - clean)[live])
    assert left["dead"] < 1.25 * left["complete"] < left["as zeros"]


@pytest.mark.parametrize("rule", ["universal", "sure", "fdr", "ebayes", 0.4, [0.3, 0.5]])
@pytest.mark.parametrize("scope", ["trace", "record"])
@pytest.mark.parametrize("mode", ["symmetric", "reflect", "periodization"])
def test_gaps_inside_traces_are_filled_and_come_back(backend, rng, rule, scope, mode):
    clean, x = section(rng, (3, 60, 90))
    gap = np.zeros(x.shape, bool)
    gap[0, 12, 30], gap[0, 13, 20:60], gap[0, 40], gap[2, :, 50:53] = True, True, True, True
    broken = np.where(gap, np.nan, x)
    options = {"wavelet": "db2", "level": 2, "rule": rule, "scope": scope, "mode": mode, "axes": (1, 2)}
    y = wavefilt.denoise(broken, **options, backend=backend)
    assert np.array_equal(np.isnan(y), gap)
    expected = wavefilt.denoise(x, **options, backend=backend)
    if scope == "trace":
        assert_allclose(y[1], expected[1], rtol=1e-12)
    assert np.linalg.norm((y - clean)[~gap]) < 1.1 * np.linalg.norm((expected - clean)[~gap])
    masked = np.ma.masked_array(np.where(gap, 1e30, x), gap)
    again = wavefilt.denoise(masked, **options, backend=backend)
    assert np.array_equal(again.mask, gap)
    assert np.array_equal(again.data, np.where(gap, 1e30, y))


def test_gaps_of_the_same_trace_count_as_one_dead_trace(rng):
    """All that is left of a trace is equal."""
    _, x = section(rng)
    x[5], x[5, 10:20] = 2, np.nan
    y = wavefilt.denoise(x, "db2", axes=(0, 1), backend="pywavelets")
    assert np.array_equal(y[5], x[5], equal_nan=True)


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: (x[::-1, ::-1], (0, 1)),
        lambda x: (np.asfortranarray(x), (0, 1)),
        lambda x: (x.T, (1, 0)),
        lambda x: (x[:, None], (0, 2)),
        lambda x: (np.stack([x, x], axis=1), (0, -1)),
        lambda x: (x * np.exp(0.7j), (0, 1)),
        lambda x: ((1000 * np.nan_to_num(x)).astype("i2"), (0, 1)),
        lambda x: ((1000 * np.nan_to_num(x)).astype("i8"), (0, 1)),
        lambda x: (x.astype(">f4"), (0, 1)),
        lambda x: (np.nan_to_num(x).astype("f2"), (0, 1)),
    ],
    ids=["turned", "fortran", "swapped", "3-D", "batch", "complex", "i2", "i8", "big-endian", "f2"],
)
def test_dead_traces_of_any_array(backend, rng, layout):
    _, x = section(rng)
    x[7], x[30], x[31, 5:9] = 0, 3, np.nan
    given, axes = layout(x)
    before = given.copy()
    y = wavefilt.denoise(given, "db2", axes=axes, backend=backend)
    assert np.array_equal(given, before, equal_nan=True)
    last = np.moveaxis(given, axes, (-2, -1))
    dead = np.isnan(last) | (last == last[..., :1]).all(axis=-1)[..., None]
    assert dead.any()
    y = np.moveaxis(y, axes, (-2, -1))
    assert np.array_equal(y[dead], last[dead].astype(y.dtype), equal_nan=True)
    assert not np.array_equal(y[~dead], last[~dead])


def test_more_is_gained_than_trace_by_trace(backend, rng):
    clean, x = section(rng, (128, 256))
    left = {axes: np.linalg.norm(wavefilt.denoise(x, axes=axes, backend=backend) - clean) for axes in (None, (0, 1))}
    assert left[(0, 1)] < 0.8 * left[None]


X = np.ones((40, 50))
GAP = np.where(np.arange(50) == 7, np.nan, X)


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (X, {"transform": "wp"}, "transform='wp' is for traces"),
        (X, {"spins": 4, "transform": "fk"}, "transform='fk' depends little on shifts: leave spins out"),
        (X, {"sigma": ("window", 0, 20)}, "is for traces"),
        (X, {"rule": "blockjs"}, "rule='blockjs' is for traces"),
        (X, {"axes": (0,)}, "must be a pair"),
        (X, {"axes": 1}, "must be a pair"),
        (X, {"axes": (0, -2)}, "one and the same axis"),
        (X, {"axes": (0, 2)}, "axis=2 is out of range for an array of 2"),
        (X, {"axis": 0}, "give one"),
        (X[0], {}, "axis=-2 is out of range for an array of 1"),
        (X[:, :0], {}, "no samples along axis -1"),
        (X, {"level": 3}, "level=3 is above the maximum of 1 for 40 traces or samples and db8"),
        (X, {"rule": [1.0, 2.0], "wavelet": "haar"}, "2 thresholds for 5 levels"),
        (np.where(np.isnan(GAP), np.inf, GAP), {}, r"infinite value at row 0, column 7 of section 0 .*, 40 in all"),
        (np.where(np.arange(50) == 9, -np.inf, GAP), {"wavelet": "db20"}, "infinite value at row 0, column 9"),
        (X * 1e308, {}, "overflow float64"),
        (np.outer(np.arange(-20, 20), np.sin(np.arange(50) ** 2)) * 1e200, {}, "squares of the samples overflow"),
    ],
)
def test_what_makes_no_sense_is_refused(backend, x, options, message):
    with pytest.raises(ValueError, match=message):
        wavefilt.denoise(x, backend=backend, **{"axes": (-2, -1)} | options)


D = np.ones((9, 9))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wavefilt.wavedec2(X[0], "db2"), "has no two axes"),
        (lambda: wavefilt.wavedec2(X, "db2", axes=(0, 0)), "same axis"),
        (lambda: wavefilt.wavedec2(X, "db2", axes=(0, 1, 1)), "pair of axes"),
        (lambda: wavefilt.wavedec2(X[:0], "db2"), "no samples"),
        (lambda: wavefilt.wavedec2(X, "db2", level=-1), "at least 0"),
        (lambda: wavefilt.wavedec2(X[:1], "db2", "reflect", level=1), "cannot extend a single sample"),
        (lambda: wavefilt.wavedec2(X, ("db2",) * 3), "3 wavelets for two axes"),
        (lambda: wavefilt.wavedec2(X, "db2", ("zero",)), "1 modes for two axes"),
        (lambda: wavefilt.waverec2([], "db2"), "must be a list"),
        (lambda: wavefilt.waverec2([None], "db2"), "must be an array"),
        (lambda: wavefilt.waverec2([D, (D, D)], "db2"), r"coeffs\[1\] must be the three arrays"),
        (lambda: wavefilt.waverec2([None, (None,) * 3], "db2"), "must be an array"),
        (lambda: wavefilt.waverec2([D, (D, D, D[1:])], "db2"), "are no level"),
        (lambda: wavefilt.waverec2([D, (D[2:],) * 3], "db2"), r"coeffs\[1\] of shape \(7, 9\) does not fit"),
        (lambda: wavefilt.waverec2([D, (D[None],) * 3], "db2"), r"coeffs\[1\] of shape \(1, 9, 9\) does not fit"),
    ],
)
def test_what_is_no_transform_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


class OneAxis:
    """A backend, as far as it is asked."""

    name = "one-axis"
    dtypes = ("float64",)
    transforms = ("dwt",)
    device = False


def test_the_reference_computes_what_a_backend_does_not():
    x = X + np.eye(40, 50)
    y = wavefilt.denoise(x, axes=(0, 1), backend=OneAxis())
    np.testing.assert_array_equal(y, wavefilt.denoise(x, axes=(0, 1), backend="pywavelets"))


def test_a_list_of_arrays_on_gpus_is_refused():
    class OnDevice:
        __cuda_array_interface__: dict = {}  # noqa: RUF012

    with pytest.raises(ValueError, match="one after the other"):
        wavefilt.denoise([OnDevice()], axes=(0, 1))


def test_kernels_refuse_coefficients_that_do_not_belong_together(rng):
    numba = pytest.importorskip("wavefilt.backends.numba_cpu").NumbaCPU()
    bank = (pywt.Wavelet("db2"),) * 2
    bands = (D,) * 4
    with pytest.raises(ValueError, match="do not belong together"):
        numba.reconstruct(Pyramid(tuple(b[None] for b in bands), Analysis(DWT2, bank, ("zero", "zero"), 1), (30, 30)))
    with pytest.raises(TypeError, match="computes in float32 and float64"):
        numba.decompose(np.ones((1, 8, 8), "i4"), Analysis(DWT2, bank, ("zero", "zero"), 1))


def test_a_recording_is_a_section(tmp_path, rng):
    _, x = section(rng, dtype="f4")
    np.save(tmp_path / "section.npy", x)
    expected = wavefilt.denoise(x, "db4", axes=(0, 1), backend="pywavelets")
    recording = wavefilt.read(tmp_path / "section.npy")
    assert_allclose(recording.denoise("db4", two_dimensional=True).samples, expected, atol=1e-5)
    result = run_cli("denoise", "section.npy", "-w", "db4", "--two-dimensional", "-v", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert_allclose(np.load(tmp_path / "section.denoised.npy"), expected, atol=1e-5)
    bands = [line.split(":")[0].strip() for line in result.stderr.decode().splitlines()[1:]]
    assert bands == [*(f"level {level} {band}" for level in (1, 2, 3) for band in "DVH"), "trust"]
    assert b"2-D L3" in result.stderr
    outcome = recording.apply(Method("db4", dimensions=2), report=True).outcome
    assert outcome.estimates[0].power.shape == outcome.estimates[0].sigma.shape == (9, 1)


def test_a_record_of_few_traces_says_that_it_is_unchanged(tmp_path, rng):
    x = rng.standard_normal((24, 300))
    np.save(tmp_path / "few.npy", x)
    result = run_cli("denoise", "few.npy", "--two-dimensional", "-v", cwd=tmp_path)
    assert b"unchanged: too few traces or samples for one level of db8" in result.stderr
    assert np.array_equal(np.load(tmp_path / "few.denoised.npy"), x)


def test_the_study_in_small():
    pytest.importorskip("numba")
    result = panels.measure(panels.Case(96, 128, 2), 1)
    assert result["error"] < 1e-5
    assert result["ratios"]["pywavelets"] == result["pywavelets"]["median"] / result["numba"]["median"]


@pytest.mark.parametrize("option", [("--noise-window", 0, 1), ("--max-memory", "1GiB"), ("--scheduler", "local:1")])
def test_the_command_refuses_what_is_for_traces(tmp_path, option):
    from wavefilt.cli import main

    np.save(tmp_path / "x.npy", X)
    with pytest.raises(SystemExit, match="2"):
        main(["denoise", str(tmp_path / "x.npy"), "--two-dimensional", *map(str, option)])
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
def test_spins_are_the_mean_of_denoised_shifted_panels(backend, rng, mode):
    _, x = section(rng, (48, 70))
    x = x[:, :64]
    options = {"wavelet": "db2", "level": 2, "mode": mode, "rule": "universal", "axes": (0, 1), "backend": backend}
    shifts = [(0, 0), (1, 1), (2, 3), (3, 2), (0, 1)]  # the step of 4 samples is 1
    expected = np.zeros_like(x)
    for down, across in shifts:
        if mode == "symmetric":
            y = wavefilt.denoise(np.pad(x, ((down, 0), (across, 0)), "symmetric"), **options)[down:, across:]
        else:
            y = np.roll(wavefilt.denoise(np.roll(x, (down, across), (0, 1)), **options), (-down, -across), (0, 1))
        expected += y / len(shifts)
    found = wavefilt.denoise(x, spins=5, **options)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(x).max()
    assert np.abs(found - wavefilt.denoise(x, **options)).max() > 1e-2 * np.abs(x).max()


@pytest.mark.parametrize("level", range(5))
def test_shifts_of_panels_are_spread_over_the_phases_of_both_axes(level):
    pairs = Method(spins=10**4, dimensions=2).axis_shifts(level)
    assert len(set(pairs)) == len(pairs) == 4**level
    for i in range(level + 1):
        for j in range(level + 1):
            first = pairs[: 2 ** (i + j)]
            assert len({(down % 2**i, across % 2**j) for down, across in first}) == 2 ** (i + j)
    for axis in (0, 1):  # alone, a new phase at every shift
        assert sorted(pair[axis] for pair in pairs[: 2**level]) == list(range(2**level))


def test_spins_gain_and_keep_gaps(backend, rng):
    clean, x = section(rng, (64, 128))
    left = [
        np.linalg.norm(wavefilt.denoise(x, "db4", axes=(0, 1), spins=k, backend=backend) - clean) for k in (1, 4, 16)
    ]
    assert max(left[1:]) < 0.9 * left[0]
    x[20, 30:50], x[40] = np.nan, 3
    y = wavefilt.denoise(x, "db4", axes=(0, 1), spins=3, backend=backend)
    assert np.isnan(y[20, 30:50]).all()
    assert (y[40] == 3).all()
    assert np.isfinite(np.delete(y, 20, 0)).all()

"""`wavefilt.denoise`: values against a composition of PyWavelets, gains, properties, and each option's meaning."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import wavefilt
from tests.support.checkout import SAMPLES
from tests.support.signals import gain_db, noisy_chirp, section
from wavefilt.vocabulary import ESTIMATORS, MODES, RULES, SHRINKS

LOCAL = ("blockjs", "neighblock", "js", "bivariate")
"""Rules with a way to shrink of their own."""
WAYS = [
    (rule, shrink)
    for rule in RULES
    for shrink in ([None] if rule in LOCAL else [*SHRINKS, *(ESTIMATORS if rule.startswith("ebayes") else ())])
]


def test_one_threshold_a_level_is_ordered_as_wavedec(backend, rng):
    x = rng.standard_normal(512)
    coefficients = pywt.wavedec(x, "db4", level=3)
    coefficients[1:] = [pywt.threshold(d, t) for d, t in zip(coefficients[1:], [3.0, 0.5, 0.1], strict=True)]
    got = wavefilt.denoise(x, "db4", level=3, rule=[3.0, 0.5, 0.1], backend=backend)
    assert_allclose(got, pywt.waverec(coefficients, "db4"), atol=1e-12)


def mad(d):
    return np.median(np.abs(d)) / 0.6744897501960817


def bayes(d, sigma, n):
    return sigma**2 / np.sqrt(np.mean(d**2) - sigma**2)


def sure(d, sigma, n):
    squares = np.sort((d / sigma).ravel() ** 2)
    m, k = d.size, np.arange(1, d.size + 1)
    return sigma * np.sqrt(squares[np.argmin(m - 2 * k + np.cumsum(squares) + (m - k) * squares)])


THRESHOLDS = {
    "universal": lambda d, sigma, n: sigma * np.sqrt(2 * np.log(n)),
    "bayes": bayes,
    "sure": sure,
    0.25: lambda d, sigma, n: 0.25,
}


@pytest.mark.parametrize(
    ("rule", "shrink"),
    [pair for pair in product(THRESHOLDS, ("soft", "hard", "garrote", "firm")) if pair != ("sure", "hard")],
)  # the threshold of sure is one of the magnitudes, where rounding decides
@pytest.mark.parametrize("shape", [(2, 1023), (2, 75, 120)])
def test_values_of_a_plain_composition(backend, rng, rule, shrink, shape):
    """PyWavelets' transforms of each trace or section alone, and a threshold for each band."""
    clean = section(rng, shape)[0] if len(shape) == 3 else noisy_chirp(rng, *shape)[0]
    # a strong signal at every level, so that no level of BayesShrink is all noise
    x = 3 * clean + np.where(rng.random(shape) < 0.2, 5, 0.1) * rng.standard_normal(shape)
    forward, inverse = (pywt.wavedec, pywt.waverec) if len(shape) == 2 else (pywt.wavedec2, pywt.waverec2)
    for sigma, mode in product(("level", "global", 0.2), ("symmetric", "periodization")):

        def shrunk(d, finest, sigma=sigma):
            own = {"level": mad(d), "global": mad(finest)}.get(sigma, sigma)
            value = THRESHOLDS[rule](d, own, x[0].size)
            if shrink == "firm":  # PyWavelets' own shrinks a large value in the first row if it is the only one
                return np.where(np.abs(d) > 2 * value, d, 2 * pywt.threshold(d, value, "soft"))
            return pywt.threshold(d, value, shrink)

        options = {"rule": rule, "shrink": shrink, "sigma": sigma, "mode": mode, "level": 2}
        axes = None if len(shape) == 2 else (1, 2)
        for own, found in zip(x, wavefilt.denoise(x, "sym6", axes=axes, backend=backend, **options), strict=True):
            low, *levels = forward(own, "sym6", mode, 2)
            finest = levels[-1] if axes is None else levels[-1][-1]
            levels = [shrunk(d, finest) if axes is None else tuple(shrunk(b, finest) for b in d) for d in levels]
            expected = inverse([low, *levels], "sym6", mode)[tuple(map(slice, own.shape))]
            assert_allclose(found, expected, atol=1e-10)


@pytest.fixture(scope="module")
def sample():
    """The live traces of the sample record without and with noise."""
    noisy = np.asarray(wavefilt.read(SAMPLES / "seismic.dat").samples, float)
    live = np.ptp(noisy, axis=1) > 0
    return np.load(SAMPLES / "seismic_clean.npy")[live], noisy[live]


@pytest.mark.parametrize(
    ("options", "least", "by_modwt"),
    [
        ({"rule": "universal"}, 1.3, 1.2),
        ({"rule": "minimax"}, 3.5, 3.7),
        ({"rule": "sure"}, 5.3, 6.2),
        ({"rule": "hybrid"}, 4.0, 5.4),
        ({"rule": "bayes"}, 5.3, 6.4),
        ({"rule": "fdr"}, 4.6, 6.7),
        ({"rule": "blockjs"}, 3.7, None),
        ({"rule": "neighblock"}, 4.1, None),
        ({"rule": "js"}, 6.9, 7.1),
        ({"rule": "bivariate"}, 6.6, 7.4),
        ({"rule": "ebayes"}, 5.1, 6.6),
        ({"rule": "ebayes-cauchy"}, 5.0, 6.6),
        ({"transform": "dtcwt"}, 7.3, None),
        ({"transform": "wp"}, 4.6, None),
        ({"transform": "wp", "basis": "entropy"}, 5.2, None),
        ({"transform": "wp", "basis": "full"}, 4.2, None),
        ({"transform": "fk", "axes": (0, 1)}, 6.1, None),
        ({"transform": "dtcwt", "axes": (0, 1)}, 6.3, None),
        ({"wavelet": "db2", "axes": (0, 1)}, 2.0, 2.0),
    ],
)
def test_gain_on_the_sample_in_db(sample, options, least, by_modwt):
    """The bounds are a little below the gains measured with default options."""
    clean, noisy = sample
    assert gain_db(clean, noisy, wavefilt.denoise(noisy, **options)) > least
    if by_modwt is not None:
        assert gain_db(clean, noisy, wavefilt.denoise(noisy, transform="modwt", **options)) > by_modwt


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_function_and_mode_removes_noise(backend, rng, rule):
    clean, noisy = noisy_chirp(rng, traces=3, samples=1024)
    for shrink, mode in [*((s, "symmetric") for r, s in WAYS if r == rule), *((None, mode) for mode in MODES)]:
        sigma = "global" if rule == "js" else "level"  # the median of the approximation is that of the chirp
        y = wavefilt.denoise(noisy, "db4", rule=rule, shrink=shrink, mode=mode, sigma=sigma, backend=backend)
        assert gain_db(clean, noisy, y) > 2.5, (shrink, mode)


@pytest.mark.parametrize("rule", RULES)
def test_record_scope_pools_the_details(backend, rng, rule):
    noisy = rng.standard_t(2, (4, 512))  # heavy tails, so that every threshold leaves something
    noisy[2] *= 100
    pooled = wavefilt.denoise(noisy, rule=rule, scope="record", level=2, backend=backend)
    assert not np.allclose(pooled[0], wavefilt.denoise(noisy, rule=rule, level=2, backend=backend)[0])
    assert_allclose(pooled, wavefilt.denoise(noisy[::-1], rule=rule, scope="record", level=2, backend=backend)[::-1])


@pytest.mark.parametrize(("rule", "shrink"), [(rule, f) for rule, f in WAYS if f != "hard"])
def test_complex_samples_are_shrunk_by_modulus(rng, rule, shrink):
    _, noisy = noisy_chirp(rng, traces=2)
    y = wavefilt.denoise(noisy * np.exp(0.7j), rule=rule, shrink=shrink)
    assert_allclose(y, wavefilt.denoise(noisy, rule=rule, shrink=shrink) * np.exp(0.7j), atol=1e-10)


def test_single_sample_and_short_traces_are_unchanged(backend):
    for n in (1, 2, 14):
        x = np.arange(1.0, n + 1)
        assert np.array_equal(wavefilt.denoise(x, "db8", backend=backend), x)


def test_level_zero_and_threshold_zero_are_the_identity(backend, rng):
    x = rng.standard_normal((2, 100))
    assert np.array_equal(wavefilt.denoise(x, level=0, backend=backend), x)
    assert np.array_equal(wavefilt.denoise(x, rule=0, backend=backend), x)


def test_default_level_is_five_or_the_maximum(rng):
    long, short = rng.standard_normal(10_000), rng.standard_normal(70)
    assert np.array_equal(wavefilt.denoise(long), wavefilt.denoise(long, level=5))
    assert np.array_equal(wavefilt.denoise(short), wavefilt.denoise(short, level=2))


@pytest.mark.parametrize(("dtype", "factor"), [("f4", 1e30), ("f4", 1e-30), ("f8", 1e150), ("f8", 1e-150)])
def test_samples_of_any_size(backend, rng, dtype, factor):
    _, x = noisy_chirp(rng, samples=512)
    y = wavefilt.denoise((factor * x).astype(dtype), backend=backend)
    assert_allclose(y.astype("f8") / factor, wavefilt.denoise(x), atol=1e-5)


@given(
    st.sampled_from(WAYS),
    st.sampled_from(["level", "global"]),
    st.integers(-20, 20),
    st.integers(20, 400),
    st.integers(0, 2**32 - 1),
)
def test_scaling_the_input_scales_the_output(way, sigma, exponent, n, seed):
    rule, shrink = way
    x = np.random.default_rng(seed).standard_normal(n)
    y = wavefilt.denoise(x, "db3", rule=rule, sigma=sigma, shrink=shrink)
    for factor in (2.0**exponent, -(2.0**exponent)):
        scaled = wavefilt.denoise(factor * x, "db3", rule=rule, sigma=sigma, shrink=shrink)
        assert_allclose(scaled, factor * y, rtol=1e-9, atol=1e-9 * abs(factor))


@pytest.mark.parametrize("rule", [*RULES, 0.5])
def test_kept_levels_stay(rng, rule):
    x = rng.standard_normal(600)
    before = wavefilt.wavedec(x, "db2", "periodization", 4)
    y = wavefilt.denoise(x, "db2", level=4, rule=rule, mode="periodization", keep=2)
    after = wavefilt.wavedec(y, "db2", "periodization", 4)
    for i in (1, 2):
        assert_allclose(after[i], before[i], atol=1e-10)
    assert np.abs(after[4] - before[4]).max() > 0.1
    assert all(np.linalg.norm(e) <= np.linalg.norm(d) * (1 + 1e-9) for d, e in zip(before[1:], after[1:], strict=True))
    assert np.array_equal(wavefilt.denoise(x, "db2", level=4, rule=rule, keep=4), x)


def test_thresholds_given_as_an_array(rng):
    x = rng.standard_normal(4000)
    expected = wavefilt.denoise(x, rule=[1, 2, 3, 4, 5])
    assert np.array_equal(wavefilt.denoise(x, rule=np.array([1.0, 2, 3, 4, 5])), expected)
    assert np.array_equal(wavefilt.denoise(x, rule=np.float32(0.5)), wavefilt.denoise(x, rule=0.5))


class TestSpins:
    @pytest.mark.parametrize("mode", ["symmetric", "periodization", "smooth", "antireflect"])
    def test_they_are_the_mean_over_shifts(self, backend, rng, mode):
        x = rng.standard_normal(256) + 4 * (np.arange(256) > 100)
        options = {"wavelet": "db3", "level": 3, "rule": "universal", "mode": mode, "backend": backend}
        y = wavefilt.denoise(x, spins=3, **options)
        shifts = [0, 3, 6]
        if mode == "periodization":
            each = [np.roll(wavefilt.denoise(np.roll(x, s), **options), -s) for s in shifts]
        else:
            extended = pywt.pad(x, 6, mode)[:-6]
            each = [wavefilt.denoise(extended[6 - s :], **options)[s:] for s in shifts]
        assert_allclose(y, np.mean(each, axis=0), atol=1e-12)

    @pytest.mark.parametrize(("shape", "spins"), [((256,), 8), ((64, 72), 64)])
    def test_all_shifts_are_the_undecimated_transform(self, rng, shape, spins):
        x = rng.standard_normal(shape) + 4 * (np.arange(shape[-1]) > 40)
        options = {"wavelet": "db3", "level": 3, "rule": 1.5, "shrink": "hard", "mode": "periodization"}
        options["axes"] = (0, 1) if len(shape) == 2 else None
        spun = wavefilt.denoise(x, spins=spins, **options)
        assert_allclose(spun, wavefilt.denoise(x, transform="modwt", **options), atol=1e-10)
        assert_allclose(spun, wavefilt.denoise(x, spins=1000, **options), atol=1e-10)

    def test_segments_of_different_levels_are_shifted_within_their_own_periods(self, rng):
        """Eight shifts are all of a segment of three levels, beside one of five whose eight shifts reach farther."""
        x = rng.standard_normal(600)
        x[10] = np.nan
        options = {"wavelet": "haar", "rule": 1.0, "scope": "record", "backend": "numba", "spins": 8}
        y = wavefilt.denoise(x, level=5, **options)
        assert_allclose(y[:10], wavefilt.denoise(x[:10], level=3, **options), atol=1e-12)


@pytest.mark.parametrize("rule", [rule for rule in RULES if not rule.startswith(("block", "neigh"))])
def test_the_modwt_does_not_depend_on_shifts(rng, rule):
    x = rng.standard_normal(300) + 4 * (np.arange(300) > 100)
    options = {"wavelet": "db3", "level": 3, "rule": rule, "mode": "periodic", "transform": "modwt"}
    if rule == "js":  # a step is noise to the median of the approximation
        options["sigma"] = 1.0
    y = wavefilt.denoise(x, backend="numba", **options)
    assert_allclose(wavefilt.denoise(np.roll(x, 5), **options, backend="numba"), np.roll(y, 5), atol=1e-9)
    assert_allclose(wavefilt.denoise(x, **options, backend="pywavelets"), y, atol=1e-9)
    assert np.abs(wavefilt.denoise(x, **options | {"transform": "dwt"}) - y).max() > 0.05


@pytest.mark.parametrize("rule", ["js", "bayes", 0.5])
def test_detrending(backend, rng, rule):
    x, time = rng.standard_normal((3, 1500)), np.arange(1500)
    trend = np.array([[1e3], [-5.0], [0.0]]) + np.array([[0.0], [2.0], [-1.0]]) * time
    options = {"rule": rule, "mode": "zero", "backend": backend}
    for kind, added in (("mean", trend[:, :1]), ("line", trend)):
        found = wavefilt.denoise(x + added, detrend=kind, **options)
        assert np.allclose(found, wavefilt.denoise(x, detrend=kind, **options) + added, atol=1e-8)
    whole = np.full((1, 700), 3.0)
    assert np.array_equal(wavefilt.denoise(whole, detrend="line", **options), whole)


@pytest.mark.parametrize("rule", ["js", "sure", 0.5])
def test_blending(backend, rng, rule):
    x = rng.standard_normal((2, 800)) + 5 * np.sin(np.arange(800) / 9)
    x[1, 500] = np.nan
    quiet, noise = wavefilt.denoise(x, rule=rule, backend=backend, return_residual=True)
    blended, less = wavefilt.denoise(x, rule=rule, backend=backend, blend=0.2, return_residual=True)
    assert np.allclose(blended, quiet + 0.2 * noise, equal_nan=True)
    assert np.allclose(less, 0.8 * noise, equal_nan=True)
    section = wavefilt.denoise(x[:, :400], "haar", rule="bayes", axes=(0, 1), level=1, blend=0.5)
    plain = wavefilt.denoise(x[:, :400], "haar", rule="bayes", axes=(0, 1), level=1)
    assert np.allclose(section, (plain + x[:, :400]) / 2)

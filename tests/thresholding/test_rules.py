"""Rules that need more than a formula of a few statistics: FDR, blocks, empirical Bayes; noise windows, kept levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtri

import wavefilt
from wavefilt.benchmarks.quality.records import functions
from wavefilt.method import Method
from wavefilt.statistics.batch import ReferenceStatistics
from wavefilt.thresholding import rules
from wavefilt.thresholding.block_shrinkage import ROOT, Blocks
from wavefilt.thresholding.empirical_bayes import BINS, FAR, PRIORS, WIDTH
from wavefilt.thresholding.shrinkage import Posterior

NEW = ("hybrid", "fdr", "blockjs", "neighblock", "ebayes", "ebayes-cauchy")


def normal(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def statistics(*levels):
    return ReferenceStatistics([np.atleast_2d(d) for d in levels])


def test_published_thresholds():
    """MATLAB's thselect for 1000 samples; minimax for soft and hard of WavDen, 1000 by the linear fit of others."""
    assert rules.universal(None, np.ones((1, 1)), 1000)[0, 0] == pytest.approx(3.7169, abs=5e-5)
    assert rules.minimax_threshold(1000) == pytest.approx(2.2163, abs=0.01)
    for n, soft, hard in ((128, 1.669, 2.913), (256, 1.859, 3.117), (512, 2.045, 3.312), (1024, 2.226, 3.497)):
        assert rules.minimax_threshold(n) == pytest.approx(soft, abs=1e-3)
        assert rules.minimax_threshold_hard(n) == pytest.approx(hard, abs=1e-3)
    for n, soft, hard in ((65536, 3.222, 4.468), (1 << 20, 3.808, 5.022)):
        assert rules.minimax_threshold(n) == pytest.approx(soft, abs=2e-3)
        assert rules.minimax_threshold_hard(n) == pytest.approx(hard, abs=2e-3)
    assert rules.minimax_threshold(1 << 26) < rules.minimax_threshold_hard(1 << 26) < math.sqrt(2 * math.log(1 << 26))


def test_noise_alone_is_sparse_for_the_hybrid_rule():
    """Of 1000 normal samples: √(2 ln m), thselect's heursure, where SURE itself is less."""
    d = normal(1000)
    ones = np.ones((1, 1))
    assert rules.hybrid(statistics(d), ones, 1000)[0, 0] == pytest.approx(3.7169, abs=5e-5)
    d[:300] *= 5
    least = rules.sure(statistics(d), ones, 1000)[0, 0]
    assert rules.hybrid(statistics(d), ones, 1000)[0, 0] == min(least, math.sqrt(2 * math.log(1000))) < 3


@given(st.integers(0, 10**6), st.integers(1, 300), st.floats(0.1, 10))
def test_fdr_is_the_step_up_procedure(seed, m, scale):
    rng = np.random.default_rng(seed)
    d = scale * rng.standard_normal(m)
    d[: m // 4] *= rng.uniform(1, 6)
    ranked = np.sort(np.abs(d))[::-1]
    levels = scale * -ndtri(0.05 * np.arange(1, m + 1) / (2 * m))
    passed = np.flatnonzero(ranked >= levels)
    expected = levels[passed[-1]] if len(passed) else levels[0]
    assert rules.fdr(statistics(d), np.array([[scale]]), m)[0, 0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("blocks", [Blocks(6), Blocks(3, 1), Blocks(5, 2), Blocks(40), Blocks(2, 30)])
@pytest.mark.parametrize("length", [1, 4, 17, 24])
def test_blocks_one_by_one(blocks, length):
    d, limit = 2 * normal(length), 1.3
    core, reach = min(blocks.core, length), blocks.reach if blocks.core + 2 * blocks.reach <= length else 0
    expected = np.empty(length)
    for first in range(0, length, core):
        around = [d[k % length] for k in range(first - reach, first + core + reach)]
        gain = max(0, 1 - limit**2 * len(around) / sum(v * v for v in around))
        expected[first : first + core] = gain * d[first : first + core]
    np.testing.assert_allclose(blocks.shrink(d[None], np.array([[limit]]))[0], expected, atol=1e-14)
    assert np.array_equal(blocks.shrink(d[None], np.zeros((1, 1)))[0], d)
    assert not blocks.shrink(np.zeros((1, length)), np.array([[limit]])).any()


def test_block_lengths():
    assert pytest.approx(3) == ROOT - math.log(ROOT)
    assert Blocks.js(1024) == Blocks(6)
    assert Blocks.neighbour(1024) == Blocks(3, 1)
    assert Blocks.js(1) == Blocks(1)
    assert Blocks.neighbour(2) == Blocks(1, 1)


def pdf(u):
    return math.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)


def sf(u):
    return 0.5 * math.erfc(u / math.sqrt(2))


def densities(name):
    if name == "ebayes":
        return lambda u: 0.25 * math.exp(-0.5 * abs(u))

    def cauchy(u):
        far = pdf(0) / (u * u) if u else 0
        return pdf(0) * (1 - abs(u) * sf(abs(u)) / pdf(u)) if abs(u) < 30 else far

    return cauchy


@pytest.mark.filterwarnings("ignore:.*(occurrence of roundoff|maximum number of subdivisions)")
@pytest.mark.parametrize("x", [0.0, 2.5, 7.0])
@pytest.mark.parametrize("name", PRIORS)
def test_posterior_by_integration(name, x):
    prior, density = PRIORS[name], densities(name)

    def joint(u):
        return density(u) * pdf(x - u)

    def above(m, f=joint):
        return sum(quad(f, a, b, limit=200, epsabs=1e-12)[0] for a, b in ((m, max(m, x) + 1), (max(m, x) + 1, 60)))

    def below(f=joint):
        return quad(f, -40, 0, limit=200, epsabs=1e-12)[0]

    g = above(0) + below()
    assert prior.formulas.ratio(np.array(x)) == pytest.approx(g / pdf(x), rel=2e-6)
    for w in (0.02, 0.6):
        evidence = (1 - w) * pdf(x) + w * g
        mean = w * (above(0, lambda u: u * joint(u)) + below(lambda u: u * joint(u))) / evidence
        assert prior.mean(np.array([x]), np.array([w]))[0] == pytest.approx(mean, abs=1e-6)
        tail = lambda m, w=w, evidence=evidence: w * above(m) / evidence - 0.5  # noqa: E731
        median = brentq(tail, 0, x + 1, xtol=1e-8) if tail(0) > 0 else 0
        shrunk = Posterior(name, "median").shrink(np.array([x]), prior.threshold(np.array([w])), 1.0)
        assert shrunk[0] == pytest.approx(median, abs=1e-6)


@pytest.mark.parametrize("name", PRIORS)
def test_weights_and_thresholds(name):
    prior = PRIORS[name]
    w = np.array([1, 0.9, 0.3, 0.02, 1e-4, 1e-8])
    t = prior.threshold(w)
    assert np.all(np.diff(t) > 0)
    np.testing.assert_allclose(prior.weight_of(t), w, rtol=1e-3)
    for n, large in ((64, 4), (4096, 10), (4096, 400)):
        d = normal(n)
        d[:large] *= 8
        counts = np.bincount(np.minimum(np.abs(d) / WIDTH, BINS - 1).astype(int), minlength=BINS)
        beta = prior.formulas.ratio(np.minimum(np.abs(d), FAR)) - 1
        low = float(prior.weight_of(math.sqrt(2 * math.log(n))))

        def slope(w, beta=beta):
            return np.sum(beta / (1 + w * beta))

        exact = 1 if slope(1) >= 0 else low if slope(low) <= 0 else brentq(slope, low, 1)
        assert prior.weight(counts) == pytest.approx(exact, rel=3e-3)
    nothing, much = np.zeros(BINS, int), np.zeros(BINS, int)
    nothing[0] = much[-1] = 1000
    assert prior.threshold(prior.weight(nothing)) == pytest.approx(math.sqrt(2 * math.log(1000)))
    assert prior.weight(much) == pytest.approx(1)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("estimator", ["median", "mean"])
def test_posteriors_shrink_and_rise(name, estimator):
    d = np.concatenate([np.linspace(-90, 90, 2001), [1e6, -1e6, 0]])
    y = Posterior(name, estimator).shrink(d, 2.4, 0.8)
    assert np.all(np.abs(y) <= np.abs(d) + 1e-12)
    assert np.all(np.diff(y[:2001]) >= -2e-3)
    assert np.array_equal(np.sign(y)[y != 0], np.sign(d)[y != 0])
    assert y[-3] == pytest.approx(1e6, rel=1e-6)
    assert np.array_equal(Posterior(name, estimator).shrink(d, 0.0, 0.8), d)
    some = np.abs(d) <= 2.4
    assert np.all((y[some] == 0) | (estimator == "mean"))


@pytest.mark.parametrize("rule", NEW)
@pytest.mark.parametrize(("dtype", "scope"), [("float32", "trace"), ("float64", "record")])
def test_backends_agree(rule, dtype, scope):
    x = normal((5, 700)).astype(dtype)
    x[:, 100:140] += 6
    x[3] = 0
    ours, theirs = (
        wavefilt.denoise(x, "db4", rule=rule, scope=scope, level=4, backend=b) for b in ("numba", "pywavelets")
    )
    assert ours.dtype == dtype
    assert np.abs(ours - theirs).max() < (2e-5 if dtype == "float32" else 1e-11)
    if scope == "trace":
        assert np.array_equal(ours[3], x[3])


@pytest.mark.parametrize("rule", NEW)
def test_scale_and_sign_are_kept(rule):
    x = normal(900) + 5 * (np.arange(900) > 400)
    y = wavefilt.denoise(x, rule=rule)
    np.testing.assert_allclose(wavefilt.denoise(-1e-9 * x, rule=rule), -1e-9 * y, rtol=1e-6, atol=1e-17)
    assert np.std(y - x) > 0.5


@pytest.mark.parametrize("rule", [*NEW, "universal", "bayes", 0.5])
def test_kept_levels_stay(rule):
    x = normal(600)
    before = wavefilt.wavedec(x, "db2", "periodization", 4)
    y = wavefilt.denoise(x, "db2", level=4, rule=rule, mode="periodization", keep=2)
    after = wavefilt.wavedec(y, "db2", "periodization", 4)
    for i in (1, 2):
        np.testing.assert_allclose(after[i], before[i], atol=1e-10)
    assert np.abs(after[4] - before[4]).max() > 0.1
    assert np.array_equal(wavefilt.denoise(x, "db2", level=4, rule=rule, keep=9), x)


def test_noise_window():
    x = np.stack([normal(1000), 3 * normal(1000, 1)])
    x[:, 500:] += 50 * np.sin(np.arange(500) ** 2)
    found = Method(rule="universal", sigma=("window", 20, 480))
    from wavefilt.denoising.pipeline import run

    (estimate,) = run(x, found, "pywavelets").estimates
    assert estimate.sigma[0] == pytest.approx([1, 3], rel=0.15)
    (pooled,) = run(x, Method(rule="universal", sigma=("window", 20, 480), scope="record"), "numba").estimates
    assert np.ptp(pooled.sigma, axis=1).max() == 0
    x[0, 700] = np.nan
    first, *_ = run(x, found, "numba").estimates
    assert first.sigma[0, 0] == pytest.approx(estimate.sigma[0, first.segments.rows[0]])
    short = run(x[1:], Method("db2", 5, sigma=("window", 100, 130)), "numba").estimates[0].sigma[:, 0]
    assert short[2] == short[3] == short[4] != short[1]
    scaled = Method("db2", 5, sigma=("window", 100, 130), transform="modwt")
    short = run(x[1:], scaled, "numba").estimates[0].sigma[:, 0]
    assert short[3:] / short[2] == pytest.approx([2**-0.5, 0.5])  # as white noise has it there


def test_thresholds_given_as_an_array():
    assert Method(rule=np.array([1, 2.5])) == Method(rule=[1.0, 2.5])
    assert Method(rule=np.float32(0.5)).rule == 0.5
    with pytest.raises(ValueError, match="for rules with a posterior"):
        Method(rule=np.array([1, 2.0]), shrink="mean")
    x, rule = normal(4000), np.array([1.0, 2, 3, 4, 5])
    expected = wavefilt.denoise(x, rule=[1, 2, 3, 4, 5])
    assert np.array_equal(wavefilt.denoise(x, rule=rule), expected)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sigma": ("window", 10)}, "must be"),
        ({"sigma": ("window", 10, 12)}, "4 samples or more"),
        ({"sigma": ("window", 10, 5000)}, "does not lie in 100 samples"),
        ({"sigma": ("window", 10, 20)}, "too few for db8"),
        ({"sigma": ("window", 40, 90)}, "has gaps"),
        ({"rule": "blockjs", "shrink": "soft"}, "leave shrink='soft' out"),
        ({"rule": "sure", "shrink": "mean"}, "rules with a posterior"),
        ({"rule": 1.0, "shrink": "median"}, "rules with a posterior"),
        ({"keep": -1}, "keep=-1"),
        ({"keep": 1.5}, "keep=1.5"),
        ({"spins": 0}, "spins=0"),
        ({"spins": 4, "transform": "modwt"}, "leave spins out"),
        ({"rule": "blockjs", "transform": "modwt"}, "use spins"),
        ({"transform": "swt"}, "transform='swt' is not one of dwt, modwt"),
    ],
)
def test_mistakes(options, words):
    x = normal(100)
    x[50] = np.nan
    with pytest.raises(ValueError, match=words):
        wavefilt.denoise(x, **options)


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_what_was_removed(dtype):
    x = (100 * normal((3, 500))).astype(dtype)
    y, noise = wavefilt.denoise(x, return_noise=True)
    assert np.array_equal(y, wavefilt.denoise(x))
    np.testing.assert_allclose(y + noise, x, rtol=1e-5)
    gappy = np.ma.masked_array(normal(500), np.arange(500) == 30)
    y, noise = wavefilt.denoise(gappy, return_noise=True)
    assert noise.mask[30]
    np.testing.assert_allclose((y + noise).compressed(), gappy.compressed())


@pytest.mark.parametrize("mode", ["symmetric", "periodization", "smooth", "antireflect"])
@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_cycle_spinning_is_the_mean_over_shifts(backend, mode):
    x = normal(256) + 4 * (np.arange(256) > 100)
    options = {"wavelet": "db3", "level": 3, "rule": "universal", "mode": mode, "backend": backend}
    y = wavefilt.denoise(x, spins=3, **options)
    shifts = [0, 3, 6]
    if mode == "periodization":
        each = [np.roll(wavefilt.denoise(np.roll(x, s), **options), -s) for s in shifts]
    else:
        extended = pywt.pad(x, 6, mode)[:-6]
        each = [wavefilt.denoise(extended[6 - s :], **options)[s:] for s in shifts]
    np.testing.assert_allclose(y, np.mean(each, axis=0), atol=1e-12)


@pytest.mark.parametrize("level", range(9))
def test_shifts_are_spread_through_the_period(level):
    shifts = Method(spins=1000).shifts(level)
    assert sorted(shifts) == list(range(min(2**level, 1000)))
    for j in range(level + 1):
        assert len({s % 2**j for s in shifts[: 2**j]}) == 2**j  # every phase of a level before one comes again
    if level > 3:
        first = np.sort(Method(spins=8).shifts(level))
        assert np.diff([*first, 2**level]).max() < 2 * 2**level / 8 + 1


@pytest.mark.parametrize("name", ["Blocks", "Bumps", "HeaviSine", "Doppler"])
def test_a_quarter_as_many_shifts_do_the_same_when_spread(name):
    """As in docs/reproduction.md."""
    f = functions(2048)[name]
    f *= 7 / f.std()
    x = f + np.random.default_rng(5).standard_normal((20, 2048))
    options = {"wavelet": "sym8", "mode": "periodization", "level": 6, "rule": "universal", "shrink": "hard"}
    options |= {"sigma": "global", "backend": "numba"}
    consecutive = np.mean([np.roll(wavefilt.denoise(np.roll(x, s, 1), **options), -s, 1) for s in range(32)], axis=0)
    spread = wavefilt.denoise(x, spins=8, **options)
    assert np.mean((spread - f) ** 2) < 1.02 * np.mean((consecutive - f) ** 2)


def test_segments_of_different_levels_are_shifted_within_their_own_periods():
    """Eight shifts are all of a segment of three levels, beside one of five whose eight shifts reach farther."""
    x = normal(600)
    x[10] = np.nan
    options = {"wavelet": "haar", "rule": 1.0, "scope": "record", "backend": "numba", "spins": 8}
    y = wavefilt.denoise(x, level=5, **options)
    np.testing.assert_allclose(y[:10], wavefilt.denoise(x[:10], level=3, **options), atol=1e-12)


@pytest.mark.parametrize("rule", rules.RULES.where(lambda spec: not spec.blocks))
def test_the_modwt_does_not_depend_on_shifts(rule):
    x = normal(300) + 4 * (np.arange(300) > 100)
    options = {"wavelet": "db3", "level": 3, "rule": rule, "mode": "periodic", "transform": "modwt"}
    if rule == "js":  # a step is noise to the median of the approximation
        options["sigma"] = 1.0
    y = wavefilt.denoise(x, backend="numba", **options)
    np.testing.assert_allclose(wavefilt.denoise(np.roll(x, 5), **options, backend="numba"), np.roll(y, 5), atol=1e-9)
    np.testing.assert_allclose(wavefilt.denoise(x, **options, backend="pywavelets"), y, atol=1e-9)
    assert np.abs(wavefilt.denoise(x, **options | {"transform": "dwt"}) - y).max() > 0.05


@pytest.mark.parametrize(
    ("sigma", "rule"), [("global", "universal"), (2.0, "universal"), ("level", "universal"), ("level", 3.0)]
)
def test_noise_fades_with_the_levels_of_the_modwt(sigma, rule):
    from wavefilt.denoising.pipeline import run

    method = Method("db4", 4, "periodic", rule, sigma=sigma, transform="modwt")
    (estimate,) = run(2 * normal((3, 8000)), method, "numba").estimates
    fading = 2.0 ** (-0.5 * np.arange(1, 5))[:, None]
    assert estimate.sigma == pytest.approx(
        np.broadcast_to(2 * fading, (4, 3)), rel=0.1 if isinstance(sigma, str) else 0
    )
    expected = 3 * fading if rule == 3.0 else estimate.sigma * math.sqrt(2 * math.log(8000))
    assert estimate.thresholds == pytest.approx(np.broadcast_to(expected, (4, 3)))


def test_the_modwt_goes_deeper_than_filters_fit():
    x = normal(64)
    y = wavefilt.denoise(x, "db8", level=6, transform="modwt", mode="periodic", rule=0.0)
    np.testing.assert_allclose(y, x, atol=1e-12)
    assert not np.allclose(wavefilt.denoise(x, "db8", level=6, transform="modwt", mode="periodic", rule=1.0), x)
    with pytest.raises(ValueError, match="above the maximum of 6"):
        wavefilt.denoise(x, "db8", level=7, transform="modwt")
    with pytest.raises(ValueError, match="above the maximum of 2"):
        wavefilt.denoise(x, "db8", level=6)

"""Complex bands of real samples: noise and thresholds of magnitudes, statistics that rules ask for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import wavefilt
from wavefilt.backends import get
from wavefilt.backends.numba_cpu.selection import NumbaStatistics
from wavefilt.method import Method
from wavefilt.statistics.batch import ReferenceStatistics
from wavefilt.statistics.mergeable import PassStatistics, State
from wavefilt.thresholding import rules
from wavefilt.thresholding.local_shrinkage import Grid
from wavefilt.thresholding.shrinkage import Shrinkage, soft
from wavefilt.transforms import DWT, TRANSFORMS, Transform


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 2, 10, 1001, 40_000])
def test_quantiles_of_magnitudes(rng, share, count):
    details = [rng.standard_normal((3, count)).astype("f4"), rng.standard_normal((3, 7)) + 1j]
    expected = [np.quantile(np.abs(d).astype("f8"), share, axis=1) for d in details]
    found = ReferenceStatistics(details).quantile_abs([1, 2], share)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.array_equal(NumbaStatistics([details[:1]], "trace").quantile_abs([1], share), found[:1])
    state = State(np.array([count]), 3, np.dtype("f4"), 1 << 8, False)

    def run(begin):
        add, result = begin()
        add([[(0, details[0])]])
        return [result()]

    passes = PassStatistics(state, run)
    assert np.array_equal(passes.median_abs([1]), ReferenceStatistics(details[:1]).median_abs([1]))
    assert np.array_equal(passes.quantile_abs([1], share), found[:1])


@pytest.mark.parametrize("count", [50, 20_001])
def test_a_quantile_among_equal_magnitudes_and_what_is_asked_after_it(rng, count):
    d = [rng.integers(-3, 4, (5, count)).astype("f4"), rng.standard_normal((5, count)).astype("f4")]
    d[0][2] = 0
    reference, numba = ReferenceStatistics(d), NumbaStatistics([[own] for own in d], "trace")
    for share in (0.3, 0.9):
        assert np.array_equal(numba.quantile_abs([2, 1], share), reference.quantile_abs([2, 1], share))
    asked_first = NumbaStatistics([[own] for own in d], "trace").mean_square()
    assert np.array_equal(numba.mean_square(), asked_first)
    assert np.array_equal(numba.median_abs([1, 2]), reference.median_abs([1, 2]))
    numba.forget()
    d[0][:] = 2
    assert np.array_equal(numba.quantile_abs([1], 0.3), np.full((1, 5), 2))
    assert (numba.mean_square()[0] == 4).all()


def test_noise_of_magnitudes_is_that_of_a_part(rng):
    parts = 2.5 * rng.standard_normal((2, 1, 100_000))
    statistics = ReferenceStatistics([parts[0] + 1j * parts[1]])
    for share in (0.3, 0.5):
        assert rules.noise(statistics, "level", 2, share) == pytest.approx(2.5, rel=0.02)
    assert rules.noise(ReferenceStatistics([parts[0]]), "global", 1, 0.3) == pytest.approx(2.5, rel=0.02)


class Pairs(Transform):
    """Complex coefficients of real samples: neighbouring details of the Haar transform, level by level."""

    name = word = "pairs"
    parts, noise_share, default_rule, default_wavelet = 2, 0.3, "sure", "haar"
    shrinks_approximation = False

    def sizes(self, analysis, shape):
        return [shape[0] >> j + 1 for j in range(1, analysis.level + 1)]

    def analyse(self, x, analysis):
        low, *details = DWT.analyse(x, replace(analysis, transform=DWT))
        return (low, *(d[:, ::2] + 1j * d[:, 1::2] for d in details))

    def synthesise(self, approximation, details, analysis, shape):
        real = (np.stack([d.real, d.imag], axis=-1).reshape(len(d), -1) for d in details)
        return DWT.synthesise(approximation, real, replace(analysis, transform=DWT), shape)

    def grids(self, analysis, shape):
        return tuple(Grid(shape[0] >> j + 1, 2 << j, 1.5 * 2**j, 1, 3, False) for j in range(1, analysis.level + 1))


@pytest.fixture
def pairs():
    TRANSFORMS.register("pairs", Pairs())
    yield
    TRANSFORMS.unregister("pairs")


def noisy(rng, samples=4096):
    t = np.arange(samples)
    clean = 8 * np.exp(-(((t - 1500) / 90) ** 2)) * np.sin(t / 4)
    return clean, clean + 1.5 * rng.standard_normal((3, samples))


@pytest.mark.parametrize("rule", ["universal", "sure", "hybrid", "bayes", "fdr", "js", "bivariate"])
def test_rules_for_magnitudes_remove_noise_and_scale_with_the_samples(rng, pairs, rule):
    clean, x = noisy(rng)
    y = wavefilt.denoise(x, transform="pairs", rule=rule)
    assert np.mean((y - clean) ** 2) < 0.35 * 1.5**2
    assert wavefilt.denoise(100 * x, transform="pairs", rule=rule) == pytest.approx(100 * y)
    assert np.array_equal(wavefilt.denoise(x, transform="pairs", rule=rule, sigma=0.0), x)


@pytest.mark.parametrize("shrink", ["soft", "hard", "garrote", "firm"])
def test_phases_are_kept(rng, pairs, shrink):
    _, x = noisy(rng)
    method = Method(level=3, rule=2.0, shrink=shrink, transform="pairs")
    pyramid = get("pywavelets").decompose(x, method.analysis(3))
    shrunk = pyramid.shrunk(Shrinkage(method.function(4096), np.full((3, 3), 2.0)))
    for before, after in zip(pyramid.coefficients[1:], shrunk.coefficients[1:], strict=True):
        assert np.abs(np.imag(after * before.conj())).max() < 1e-12
        assert (np.abs(after) <= np.abs(before) + 1e-12).all()
        assert not after[np.abs(before) < 2].any()


def test_left_out_options_are_those_of_the_transform(rng, pairs):
    _, x = noisy(rng)
    y = wavefilt.denoise(x, transform="pairs")
    assert np.array_equal(y, wavefilt.denoise(x, "haar", rule="sure", transform="pairs"))
    method = Method(transform="pairs")
    assert (method.wavelet, method.rule, method.bank.name) == ("haar", "sure", "haar")
    assert method.summary(3) == "pairs haar level 3, sure soft"
    assert Method(None, rule=None) == Method("db8", rule="bayes")


@pytest.mark.parametrize("rule", ["minimax", "blockjs", "neighblock", "ebayes", "ebayes-cauchy"])
def test_rules_of_real_coefficients_are_refused(rng, pairs, rule):
    with pytest.raises(ValueError, match=f"rule='{rule}' is for real coefficients, and transform='pairs' has complex"):
        wavefilt.denoise(rng.standard_normal(64), rule=rule, transform="pairs")


def risk_of(threshold, magnitudes, sigma):
    below = magnitudes <= threshold
    above = magnitudes[~below]
    return np.sum(magnitudes[below] ** 2 - 2 * sigma**2) + np.sum(
        2 * sigma**2 + threshold**2 - 2 * sigma**2 * threshold / above
    )


def test_sure_is_the_least_of_all_candidates(rng):
    for count, sigma in ((1, 1.0), (7, 0.5), (300, 2.0)):
        d = rng.standard_normal((2, count)) * 3 + 1j * rng.standard_normal((2, count))
        if count > 1:
            d[0, :2] = 0
            d[1, 1] = d[1, 0]
        statistics = ReferenceStatistics([d])
        found = rules.sure_of_magnitudes(statistics, np.full((1, 2), sigma), count)
        for row, threshold in zip(np.abs(d), found[0], strict=True):
            risks = {value: risk_of(value, row, sigma) for value in (0.0, *row) if value or row.all()}
            risks[0.0] = 2 * sigma**2 * count
            assert risk_of(threshold, row, sigma) - min(risks.values()) < 1e-6 * count * sigma**2


def test_stein_estimates_the_risk_of_pairs_without_bias(rng):
    signal = np.repeat([0, 0.5, 2, 4], 50_000) * np.exp(1j * rng.uniform(0, 7, 200_000))
    y = signal + 0.8 * (rng.standard_normal(200_000) + 1j * rng.standard_normal(200_000))
    for threshold in (0.5, 1.5, 3.0):
        error = np.sum(np.abs(soft(y, threshold) - signal) ** 2)
        assert risk_of(threshold, np.abs(y), 0.8) == pytest.approx(error, rel=0.01)


def test_false_discoveries_are_few(rng):
    y = rng.standard_normal((400, 1000)) + 1j * rng.standard_normal((400, 1000))
    y[:, :50] += 12
    statistics = ReferenceStatistics([y])
    limits = rules.fdr_of_magnitudes(statistics, np.ones((1, 400)), 1000)
    kept = np.abs(y) >= limits[0][:, None]
    share = kept[:, 50:].sum(axis=1) / kept.sum(axis=1)
    assert share.mean() == pytest.approx(0.05 * 0.95, abs=0.006)


def test_universal_threshold_is_passed_by_one_in_n(rng):
    n = 1000
    limit = rules.universal(None, np.ones((1, 1)), n)[0, 0]
    y = np.abs(rng.standard_normal((2000, n)) + 1j * rng.standard_normal((2000, n)))
    assert np.mean((y > limit).sum(axis=1)) == pytest.approx(1, abs=0.1)  # exp(-ln n) each


def test_backends_agree_on_statistics_of_complex_bands(rng):
    d = (rng.standard_normal((2, 3001)) + 1j * rng.standard_normal((2, 3001))).astype("c8")
    for scope in ("trace", "record"):
        numba = NumbaStatistics([[d]], scope)
        rows = d if scope == "trace" else d.reshape(1, -1)
        reference = ReferenceStatistics([rows])
        assert np.array_equal(numba.quantile_abs([1], 0.3), reference.quantile_abs([1], 0.3))
        np.testing.assert_allclose(numba.median_abs([1]), reference.median_abs([1]), rtol=1e-7)
        np.testing.assert_allclose(numba.mean_square(), reference.mean_square(), rtol=1e-7)
        sigma = np.ones((1, len(rows)))
        for rule in (rules.sure_of_magnitudes, rules.fdr_of_magnitudes, rules.bayes_of_magnitudes):
            np.testing.assert_allclose(rule(numba, sigma, 3001), rule(reference, sigma, 3001), rtol=1e-6)

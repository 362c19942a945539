"""Rules and threshold functions against their formulas in plain NumPy, and against published values."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import norm

import wavefilt
from tests.support.signals import noisy_chirp, shrunk_details

# ---- thresholds by formula; d are the details of one level, n is the number of samples, and sigma is 1


def sure(d, n):
    squares, m = np.sort(d**2), len(d)
    k = np.arange(1, m + 1)
    risks = m - 2 * k + np.cumsum(squares) + (m - k) * squares
    return math.sqrt(squares[np.argmin(risks)]) if risks.min() < m else 0.0


def hybrid(d, n):
    m = len(d)
    sparse = (np.sum(d**2) - m) / m <= math.log2(m) ** 1.5 / math.sqrt(m)
    return math.sqrt(2 * math.log(m)) if sparse else min(sure(d, n), math.sqrt(2 * math.log(m)))


def fdr(d, n):
    """Return the threshold of Benjamini and Hochberg's step-up procedure at 5 %."""
    m = len(d)
    levels = -ndtri(0.05 * np.arange(1, m + 1) / (2 * m))
    passed = np.flatnonzero(np.sort(np.abs(d))[::-1] >= levels)
    return levels[passed[-1]] if len(passed) else levels[0]


THRESHOLDS = {
    "universal": lambda d, n: math.sqrt(2 * math.log(n)),
    "bayes": lambda d, n: 1 / math.sqrt(np.mean(d**2) - 1) if np.mean(d**2) > 1 else math.inf,
    "sure": sure,
    "hybrid": hybrid,
    "fdr": fdr,
}

FUNCTIONS = {
    "soft": lambda d, t: np.sign(d) * np.maximum(np.abs(d) - t, 0),
    "hard": lambda d, t: np.where(np.abs(d) > t, d, 0),
    "garrote": lambda d, t: np.where(np.abs(d) > t, d - t**2 / np.where(d == 0, 1, d), 0),
    "firm": lambda d, t: np.where(np.abs(d) > 2 * t, d, 2 * np.sign(d) * np.maximum(np.abs(d) - t, 0)),
}


@pytest.mark.parametrize("shrink", FUNCTIONS)
@pytest.mark.parametrize("rule", THRESHOLDS)
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), m=st.integers(4, 300), scale=st.floats(0.1, 10), large=st.floats(1, 6))
def test_details_are_shrunk_by_the_formula(rule, shrink, seed, m, scale, large):
    d = np.random.default_rng(seed).standard_normal(m)
    d[: m // 4] *= large
    threshold = THRESHOLDS[rule](d, 2 * m)
    expected = FUNCTIONS[shrink](d, threshold) if math.isfinite(threshold) else 0 * d
    found = shrunk_details(scale * d, rule=rule, shrink=shrink, sigma=scale) / scale
    away = np.abs(np.abs(d) - threshold) > 1e-9  # where rounding decides
    np.testing.assert_allclose(found[away], expected[away], atol=1e-9)


def threshold_of(rule, n, shrink):
    """Return the threshold for unit noise in ``n`` samples, measured with one coefficient."""
    d = np.linspace(1e-9, 2e-9, n // 2)  # equal samples would be left out
    if shrink == "soft":
        d[0] = 1e3
        return 1e3 - shrunk_details(d, rule=rule, sigma=1.0)[0]
    low, high = 0.0, 10.0
    for _ in range(16):
        d[0] = (low + high) / 2
        kept = abs(shrunk_details(d, rule=rule, sigma=1.0, shrink=shrink)[0]) > 1e-6
        low, high = (low, d[0]) if kept else (d[0], high)
    return high


@pytest.mark.parametrize(
    ("rule", "n", "soft", "hard"),
    [
        ("universal", 1000, 3.7169, 3.7169),  # MATLAB's thselect
        ("minimax", 64, 1.474, None),
        ("minimax", 128, 1.669, 2.913),  # WavDen
        ("minimax", 1000, 2.2163, None),
        ("minimax", 1024, 2.226, 3.497),
        ("minimax", 8192, 2.744, None),
        ("minimax", 65536, 3.222, 4.468),
        ("minimax", 1 << 20, 3.808, 5.022),
    ],
)
def test_published_thresholds(rule, n, soft, hard):
    within = 0.01 if n == 1000 and rule == "minimax" else 2e-3  # a linear fit there
    assert threshold_of(rule, n, "soft") == pytest.approx(soft, abs=within)
    if hard is not None:
        assert threshold_of(rule, n, "hard") == pytest.approx(hard, abs=within)


# ---- block rules

LAMBDA = brentq(lambda x: x - math.log(x) - 3, 4, 5)
"""The root of x - ln x = 3 (Cai 1999)."""


def in_blocks(d, core, reach):
    """Shrink block by block (James-Stein); neighbours wrap around the ends."""
    m, expected = len(d), np.empty(len(d))
    core = min(core, m)
    reach = reach if core + 2 * reach <= m else 0
    for first in range(0, m, core):
        around = [d[k % m] for k in range(first - reach, first + core + reach)]
        gain = max(0, 1 - LAMBDA * len(around) / sum(v * v for v in around))
        expected[first : first + core] = gain * d[first : first + core]
    return expected


@pytest.mark.parametrize("m", [2, 4, 17, 24, 512, 1000])
def test_blocks_one_by_one(m):
    d = 2.5 * np.random.default_rng(m).standard_normal(m)
    core = max(int(math.log(2 * m)), 1)
    np.testing.assert_allclose(shrunk_details(d, rule="blockjs", sigma=1.0), in_blocks(d, core, 0), atol=1e-6)
    core = max(int(math.log(2 * m) / 2), 1)
    expected = in_blocks(d, core, max(core // 2, 1))
    np.testing.assert_allclose(shrunk_details(d, rule="neighblock", sigma=1.0), expected, atol=1e-6)


# ---- empirical Bayes

GRID = np.arange(-60, 60, 0.004) + 0.002


def laplace(u):
    return 0.25 * np.exp(-0.5 * np.abs(u))


def quasi_cauchy(u):
    near = np.minimum(np.abs(u), 30)
    tail = np.where(np.abs(u) < 30, 1 - near * norm.sf(near) / norm.pdf(near), 1 / u**2)
    return norm.pdf(0) * tail


@pytest.mark.parametrize(("rule", "density"), [("ebayes", laplace), ("ebayes-cauchy", quasi_cauchy)])
@pytest.mark.parametrize("estimator", ["median", "mean"])
def test_posteriors_by_numerical_integration(rule, density, estimator):
    """The weight of greatest marginal likelihood, and the posterior median or mean of every coefficient."""
    rng = np.random.default_rng(5)
    d = rng.standard_normal(160)
    d[:40] += rng.uniform(-9, 9, 40)
    joint = density(GRID) * norm.pdf(d[:, None] - GRID) * 0.004
    marginal = joint.sum(axis=1)
    excess = marginal / norm.pdf(d) - 1
    weight = brentq(lambda w: np.sum(excess / (1 + w * excess)), 0.02, 1)
    posterior = weight * joint / ((1 - weight) * norm.pdf(d) + weight * marginal)[:, None]
    if estimator == "mean":
        expected = posterior @ GRID
    else:
        magnitudes = np.where(
            d[:, None] > 0, posterior[:, ::-1], posterior
        )  # from the far end of the coefficient's side
        place = np.argmax(np.cumsum(magnitudes, axis=1) > 0.5, axis=1)
        expected = np.sign(d) * np.maximum(-GRID[place], 0) * (magnitudes[:, : len(GRID) // 2].sum(axis=1) > 0.5)
    found = shrunk_details(d, rule=rule, sigma=1.0, shrink=estimator)
    np.testing.assert_allclose(found, expected, atol=0.02)
    if estimator == "median":
        np.testing.assert_array_equal(found, shrunk_details(d, rule=rule, sigma=1.0))


# ---- magnitudes of complex coefficients of real samples


def sure_of_magnitudes(r):
    """Return the soft threshold of pairs with the least of Stein's risk estimates."""

    def risk(t):
        below, above = r[r <= t], r[r > t]
        return np.sum(below**2 - 2) + np.sum(2 + t**2 - 2 * t / above)

    return min((risk(t), t) for t in r)[1] if min(map(risk, r)) < 2 * len(r) else 0.0


def fdr_of_magnitudes(r):
    """Return the threshold for magnitudes, which exceed t in noise with probability exp(-t²/2)."""
    m = len(r)
    levels = np.sqrt(-2 * np.log(0.05 * np.arange(1, m + 1) / m))
    passed = np.flatnonzero(np.sort(r)[::-1] >= levels)
    return levels[passed[-1]] if len(passed) else levels[0]


MAGNITUDES = {
    "universal": lambda r, n: math.sqrt(2 * math.log(n)),
    "sure": lambda r, n: sure_of_magnitudes(r),
    "fdr": lambda r, n: fdr_of_magnitudes(r),
    "bayes": lambda r, n: 1 / math.sqrt(np.mean(r**2) / 2 - 1),
}


@pytest.fixture(scope="module")
def gains():
    """Noise of the dual-tree transform's levels for unit white noise, from the rows of the transform's matrix."""
    found = wavefilt.dtcwt(np.eye(1024), level=3).highpasses
    return [math.sqrt(np.sum(np.abs(d[:, d.shape[1] // 2]) ** 2) / 2) for d in found]


@pytest.mark.parametrize(
    ("rule", "shrink"), [pair for pair in product(MAGNITUDES, FUNCTIONS) if pair != ("sure", "hard")]
)  # the threshold of sure is one of the magnitudes, where rounding decides
def test_magnitudes_are_shrunk_by_the_formula_and_phases_kept(rng, gains, rule, shrink):
    """The dual-tree transform has complex coefficients."""
    x = 3 * noisy_chirp(rng, samples=1024)[0][0] + np.where(rng.random(1024) < 0.2, 5, 0.3) * rng.standard_normal(1024)
    found = wavefilt.dtcwt(x, level=3)
    details = []
    for d, gain in zip(found.highpasses, gains, strict=True):
        sigma, magnitudes = 0.5 * gain, np.abs(d)
        threshold = sigma * MAGNITUDES[rule](magnitudes / sigma, 1024)
        details.append(d * (FUNCTIONS[shrink](magnitudes, threshold) / magnitudes))
    expected = wavefilt.idtcwt(dataclasses.replace(found, highpasses=tuple(details)))
    y = wavefilt.denoise(x, level=3, rule=rule, shrink=shrink, sigma=0.5, transform="dtcwt")
    np.testing.assert_allclose(y, expected, atol=1e-5)
    assert np.std(y - x) > 1e-3

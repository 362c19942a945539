"""The estimated risk beside the error that is known."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.tuning.test_noise import coloured
from wavefilt.method import Method
from wavefilt.tuning.criterion import Criterion
from wavefilt.tuning.intake import take

METHODS = [{"rule": "bayes"}, {"rule": "universal"}, {"rule": "js"}]


@pytest.fixture(scope="module")
def records():
    """Bursts in a part of each of 12 traces, and white and coloured noise of variance 1 and about 4."""
    rng = np.random.default_rng(1)
    t = np.arange(1500)
    onsets = rng.integers(600, 800, (12, 1))
    clean = 12 * np.exp(-(t - onsets) / 100.0) * np.sin((t - onsets) * 0.4) * (t >= onsets)
    return clean, {"global": rng.standard_normal(clean.shape), "level": coloured(rng, clean.shape)[0]}


@pytest.mark.parametrize("sigma", ["global", "level", ("window", 0, 600)])
@pytest.mark.parametrize("options", METHODS, ids=lambda options: " ".join(options.values()))
def test_the_risk_is_the_error(records, sigma, options):
    clean, kinds = records
    added = kinds["global" if sigma == "global" else "level"]
    x = clean + added
    y = wavefilt.denoise(x, sigma=sigma, **options)
    true = np.mean((y - clean) ** 2, axis=1) / np.mean(added**2, axis=1)
    risk = Criterion.of(take(x, sigma), seed=0).risk({sigma: Method(sigma=sigma, **options)})
    assert risk.mean == pytest.approx(true.mean(), abs=0.1)
    assert 0 < risk.error < 0.1
    assert risk.removed == pytest.approx(np.sum((x - y) ** 2) / np.sum(x**2))
    np.testing.assert_array_equal(risk.denoised, y)


def test_samples_as_they_are_have_the_noise_as_their_error(records):
    clean, kinds = records
    criterion = Criterion.of(take(clean + kinds["global"], 1.0), seed=0)
    identity = {1.0: Method(rule=0.0)}
    assert criterion.risk(identity).mean == pytest.approx(1, abs=0.02)
    assert criterion.stein(identity)[0] == pytest.approx(np.ones(12), abs=0.15)


def test_the_pilot_is_nearer_to_the_signal_than_most_methods(records):
    clean, kinds = records
    x = clean + kinds["level"]
    pilot = Criterion.of(take(x), seed=0).pilot
    error = np.mean((pilot - clean) ** 2)
    assert error < min(np.mean((wavefilt.denoise(x, **options) - clean) ** 2) for options in METHODS[:2])


def test_one_trace_has_an_error_too(records):
    clean, kinds = records
    risk = Criterion.of(take((clean + kinds["global"])[0], "global"), seed=0).risk({"global": Method(sigma="global")})
    assert len(risk.blocks) == 32
    assert 0 < risk.error < 0.2


def test_gaps_and_scale_do_not_matter(records):
    clean, kinds = records
    x = clean + kinds["global"]
    method = {"global": Method(sigma="global")}
    whole = Criterion.of(take(x, "global"), seed=0).risk(method)
    scaled = Criterion.of(take(1e6 * x, "global"), seed=0).risk(method)
    assert scaled.mean == pytest.approx(whole.mean, rel=1e-6)
    x[3:6, 100:300] = np.nan
    assert Criterion.of(take(x, "global"), seed=0).risk(method).mean == pytest.approx(whole.mean, abs=0.02)

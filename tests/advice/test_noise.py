"""The noise models: spectra and bands beside the true ones, quiet windows, and which models have to agree."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.signals import coloured
from wavefilt import noise


def events(rng, traces=6, samples=2048):
    """Return noise with arrivals in its second half."""
    t = np.arange(samples) - samples // 2
    return coloured(rng, (traces, samples), lambda f: f**-0.5) + 6 * (t > 0) * np.exp(-t / 300.0) * np.sin(t * 0.4)


def test_the_noise_of_octaves_is_that_of_the_transform_of_noise():
    power = np.repeat(1 / np.maximum(np.fft.rfftfreq(1024), 1 / 1024)[None], 400, axis=0)
    model = noise.NoiseModel("declared", power, 1024)
    draws = model.draw(np.random.default_rng(0))
    bands = noise.octave_bands(draws, np.ones(draws.shape, bool))
    octaves = [np.mean(band**2) for band in bands]  # the mean is not in the approximation
    np.testing.assert_allclose(model.octaves[0, :-1], octaves[:-1], rtol=0.15)
    white = noise.NoiseModel("declared", np.full((1, 513), 4.0), 1024, 2.0)
    np.testing.assert_allclose(white.octaves, 4)
    assert white.variance == pytest.approx(4)


def test_a_quiet_window_is_found_before_events_alone():
    rng = np.random.default_rng(0)
    window = noise.quiet_window(events(rng))
    assert window is not None
    assert window.stop - window.start > 200
    assert window.stop <= 1060
    assert noise.quiet_window(coloured(rng, (6, 2048), lambda f: f**-0.5)) is None
    assert noise.quiet_window(np.sin(np.arange(2048) * 0.3)[None] + rng.standard_normal((1, 2048))) is None


def test_models_that_have_to_agree():
    rng = np.random.default_rng(1)
    x, steady = events(rng), rng.standard_normal((2, 2048))

    def kinds(x, sigma="level"):
        return [model.kind for model in noise.estimates(x, sigma)]

    assert kinds(x) == ["found", "median", "flat", "extrapolated"]
    assert kinds(steady) == ["extrapolated", "median"]
    assert kinds(steady, ("window", 0, 300)) == kinds(steady, "global") == ["declared", "median"]
    assert kinds(steady, 1.5) == ["declared"]
    assert [noise.for_ranking(rows).kind for rows in (x, steady)] == ["median", "extrapolated"]
    for model in noise.estimates(steady, ("window", 0, 1024)) + noise.estimates(steady):
        np.testing.assert_allclose(model.variance, 1, rtol=0.2)


def test_muted_parts_are_no_noise():
    rng = np.random.default_rng(2)
    x = events(rng)
    muted = np.where(np.arange(2048) < 200, 0.0, x)
    window = noise.quiet_window(noise.without_flat_parts(muted))
    assert window is not None
    assert window.start >= 128
    median = noise.estimates(muted)[1]
    np.testing.assert_allclose(median.variance, noise.estimates(x)[1].variance, rtol=0.3)

"""The noise models: spectra and bands beside the true ones, quiet windows, and which models have to agree."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.signals import coloured
from wavefilt import noise
from wavefilt.options import Options


def events(rng, traces=6, samples=2048):
    """Return noise with arrivals in its second half."""
    t = np.arange(samples) - samples // 2
    return coloured(rng, (traces, samples), lambda f: f**-0.5) + 6 * (t > 0) * np.exp(-t / 300.0) * np.sin(t * 0.4)


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({"transform": "dwt"}, 5),
        ({"transform": "modwt", "wavelet": "sym8", "rule": "js"}, 5),
        ({"transform": "dtcwt"}, 4),
        ({"transform": "dwt", "wavelet": "db2", "dimensions": 2, "mode": "periodization"}, 3),
        ({"transform": "fk", "dimensions": 2}, 32),
    ],
)
def test_the_noise_of_bands_is_that_of_a_transform_of_noise(options, level):
    chosen = Options(**options)
    power = 1 / np.maximum(np.fft.rfftfreq(1024), 1 / 1024)[None]
    model = noise.NoiseModel("declared", "", np.repeat(power, 64, axis=0), 1024, ("level",) * 64)
    draws = np.stack([model.draw(np.random.default_rng(seed)) for seed in range(6)])
    rows = draws if chosen.dimensions == 2 else draws.reshape(-1, 1024)
    pyramid = wavefilt.backends.get("pywavelets").decompose(rows, chosen.analysis(level))
    bands = (pyramid.with_approximation if chosen.shrinks_approximation else pyramid).details
    squares = np.array([np.mean(np.abs(band) ** 2) / chosen.transform.parts for band in bands])
    wanted = np.sqrt(squares) / chosen.noise_gains(len(bands))[:, 0]
    found = model.sigma(chosen, level)[:, 0]
    np.testing.assert_allclose(found, wanted, rtol=0.15)
    white = noise.NoiseModel("declared", "", np.full((1, 513), 4.0), 1024, (2.0,))
    np.testing.assert_allclose(white.sigma(chosen, level), 2)
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

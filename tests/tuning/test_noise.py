"""The spectrum of noise found in samples, and noise drawn from it."""

from __future__ import annotations

import numpy as np
import pytest

from wavefilt.tuning import noise
from wavefilt.tuning.criterion import power
from wavefilt.tuning.intake import take


def coloured(rng, shape, exponent=0.5):
    """Noise whose power falls as 1/f, and the power."""
    frequency = np.fft.rfftfreq(shape[1])
    frequency[0] = frequency[1]
    law = frequency ** (-2 * exponent) * frequency.mean() ** (2 * exponent)
    return noise.drawn(np.repeat(law[None], shape[0], axis=0), shape[1], rng), law


def in_bands(spectrum, count=8):
    return np.array([part.mean() for part in np.array_split(spectrum, count)])


@pytest.mark.parametrize("samples", [1024, 4097])
def test_drawn_noise_has_its_variance(rng, samples):
    _, law = coloured(rng, (1, samples))
    drawn = noise.drawn(np.repeat(law[None], 200, axis=0), samples, rng)
    assert drawn.var() == pytest.approx(noise.variance(law[None], samples)[0], rel=0.05)
    assert noise.variance(noise.white(np.array([3.0]), samples), samples)[0] == pytest.approx(9)


@pytest.mark.parametrize("sigma", ["level", ("window", 1000, 3000), ("running", 500)])
def test_the_spectrum_of_coloured_noise(rng, sigma):
    x, law = coloured(rng, (60, 4096))
    found = power(take(x, sigma)).mean(axis=0)
    np.testing.assert_allclose(in_bands(found), in_bands(law), rtol=0.15)


def test_a_signal_in_less_than_half_of_the_trace_is_no_noise(rng):
    x, law = coloured(rng, (60, 4096))
    x[:, 1500:2800] += 30 * np.sin(np.arange(1300) * 0.3)
    np.testing.assert_allclose(in_bands(power(take(x)).mean(axis=0)), in_bands(law), rtol=1)
    x[:, 1500:] += 30 * np.sin(np.arange(2596) * 0.3)
    assert in_bands(power(take(x)).mean(axis=0))[0] > 10 * in_bands(law)[0]
    np.testing.assert_allclose(in_bands(power(take(x, ("window", 0, 1400))).mean(axis=0)), in_bands(law), rtol=0.3)


def test_white_noise_by_its_finest_details_and_by_a_number(rng):
    x = 3 * rng.standard_normal((20, 2048)) + 50 * np.sin(np.arange(2048) / 300)
    np.testing.assert_allclose(power(take(x, "global")), 9, rtol=0.3)
    assert np.all(power(take(x, 2.0)) == 4)


def test_gaps_tell_nothing(rng):
    x = rng.standard_normal((20, 2048))
    x[:, 500:700] = np.nan
    assert power(take(x)).mean() == pytest.approx(1, rel=0.1)
    x[:, ::50] = np.nan
    assert power(take(x)).mean() == pytest.approx(1, rel=0.1)
    x[0, : len(x[0]) * 4 // 5] = np.nan
    assert np.isfinite(power(take(x))).all()


def test_dead_traces_have_none(rng):
    x = rng.standard_normal((3, 512))
    x[1], x[2] = 7, np.nan
    assert power(take(x)).any(axis=1).tolist() == [True, False, False]

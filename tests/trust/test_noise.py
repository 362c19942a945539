"""The noise that the trust report compares with: steep spectra, gathers of unlike stations, strength that varies."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from wavefilt import trust
from wavefilt.trust.cells import widths
from wavefilt.trust.leakage import UNSTEADY


def coloured(rng, shape, amplitude):
    """Gaussian noise of variance 1 whose spectrum has this amplitude at frequencies in cycles a sample."""
    frequency = np.maximum(np.fft.rfftfreq(shape[-1]), 1 / shape[-1])
    x = np.fft.irfft(np.fft.rfft(rng.standard_normal(shape)) * amplitude(frequency), shape[-1])
    return x / x.std(axis=-1, keepdims=True)


def microseisms(frequency):
    """A thousand times the amplitude at periods of 250 samples and more, five octaves of power an octave above."""
    return 1 + 1000 / (1 + (frequency / 0.004) ** 2.5)


def power(found):
    """The variance of the noise that a report estimated, by trace."""
    return found.leakage.noise @ widths(found.leakage.noise.shape[1]) * found.leakage.unit**2


def test_steep_noise_is_noise_and_a_steep_signal_is_not():
    rng = np.random.default_rng(0)
    x = coloured(rng, (1, 4096), microseisms)
    assert power(trust.report(x, x)) == pytest.approx(1, rel=0.4)
    steps = 5 * np.repeat(rng.standard_normal((1, 16)), 256, axis=1)  # fill the trace as well
    noisy = steps + rng.standard_normal((1, 4096))
    assert power(trust.report(noisy, noisy)) < 4 < np.var(noisy) / 4


def test_stations_have_their_own_noise_and_a_gather_a_common_one():
    rng = np.random.default_rng(1)
    white, red = (coloured(rng, (4, 1024), lambda f, slope=slope: f**-slope) for slope in (0, 0.7))
    blue = coloured(rng, (4, 1024), lambda f: f)
    found = power(trust.report(*[np.concatenate([white, red, blue])] * 2))
    assert np.median(found[4:8]) > 0.15  # with the slope of the others it would be 0.06 or less
    event = 30 * np.exp(-(((np.arange(1024) - 400) / 250) ** 2)) * np.sin(np.arange(1024) / 3)
    gather = trust.report(*[coloured(rng, (12, 1024), np.ones_like) + event] * 2)
    np.testing.assert_allclose(power(gather), 1, rtol=0.4)


def test_simulated_noise_varies_as_the_noise_does():
    rng = np.random.default_rng(2)
    steady = rng.standard_normal((1, 8192))
    strength = np.repeat(np.exp(0.3 * rng.standard_normal(64)), 128)

    def spread(x):
        """Of the logarithm of the power of windows of the noise that a report denoised."""
        seen = []

        def watched(rows):
            seen.append(rows)
            return wavefilt.denoise(rows, backend="pywavelets")

        trust.report(x, wavefilt.denoise(x, backend="pywavelets"), watched)
        return float(np.std(np.log(np.mean(np.reshape(seen, (-1, 64)) ** 2, axis=1))))

    assert spread(steady) == pytest.approx(np.sqrt(2 / 64), rel=0.2)
    assert 0.3 < spread(strength * steady) < np.hypot(UNSTEADY, 0.2)

"""Measures of what a denoise did."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from wavefilt import quality


def test_noise_of_known_power():
    s = np.sqrt(2) * np.sin(np.arange(1000) * 2 * np.pi / 50)
    noise = np.where(np.arange(1000) % 2, 0.1, -0.1)
    x = np.stack([s, s + noise, s + 10 * noise])
    np.testing.assert_allclose(quality.snr(s, x)[1:], [20, 0], atol=1e-9)
    assert quality.snr(s, x)[0] == np.inf
    np.testing.assert_allclose(quality.rmse(s, x), [0, 0.1, 1], atol=1e-12)


def test_leakage_tells_signal_from_noise():
    rng = np.random.default_rng(0)
    s = np.sin(np.arange(4096) / 20) * 3
    x = s + rng.standard_normal(4096)
    gentle = wavefilt.denoise(x, level=5, return_noise=True)
    crude = wavefilt.denoise(x, level=8, rule=10.0, return_noise=True)
    assert abs(quality.leakage(*gentle)) < 0.05
    assert quality.leakage(*crude) > 0.2
    assert quality.leakage(s, 0.3 * s) == pytest.approx(1)
    assert quality.leakage(s, np.zeros(4096)) == 0


def test_complex_samples_count_by_both_parts():
    rng = np.random.default_rng(3)
    s, x = rng.standard_normal((2, 500)) + 1j * rng.standard_normal((2, 500))
    both = [np.concatenate([v.real - v.real.mean(), v.imag - v.imag.mean()]) for v in (s, x)]
    assert quality.snr(s, s + 0.1j) == pytest.approx(10 * np.log10(np.sum(np.abs(s) ** 2) / 5))
    assert quality.snr(s.real, s.real + 1j) == pytest.approx(10 * np.log10(np.mean(s.real**2)))
    assert quality.rmse(s, s + 0.3 - 0.4j) == pytest.approx(0.5)
    assert quality.leakage(s, x) == pytest.approx(quality.leakage(*both))
    assert quality.leakage(s, 1j * s) == pytest.approx(0, abs=1e-12)
    with pytest.raises(TypeError, match="real samples, not complex"):
        quality.arrival_shift(s.real, x, 0, 500)


@pytest.mark.parametrize("shift", [0.0, 2.0, -3.4, 0.25])
def test_shift_of_an_arrival(shift):
    def ricker(at):
        phase = ((np.arange(400) - at) / 9) ** 2
        return (1 - 2 * phase) * np.exp(-phase)

    found = quality.arrival_shift(np.stack([ricker(180)] * 2), np.stack([ricker(180 + shift), ricker(180)]), 120, 260)
    np.testing.assert_allclose(found, [shift, 0], atol=0.02)
    assert np.isnan(quality.arrival_shift(np.zeros(50), np.zeros(50), 0, 50))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: quality.snr(np.ones(3), np.ones(4)), "not the same traces"),
        (lambda: quality.rmse(np.ones((2, 3)), np.ones(3)), "not the same traces"),
        (lambda: quality.arrival_shift(np.ones(9), np.ones(9), 4, 6), "3 samples or more of 9"),
        (lambda: quality.arrival_shift(np.ones(9), np.ones(9), 4, 10), "3 samples or more of 9"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(ValueError, match=words):
        call()

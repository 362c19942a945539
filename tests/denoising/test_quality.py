"""`wavefilt.quality`: signal-to-noise ratio, error and shift of arrivals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.signals import ricker
from wavefilt import quality


def test_noise_of_known_power():
    s = np.sqrt(2) * np.sin(np.arange(1000) * 2 * np.pi / 50)
    noise = np.where(np.arange(1000) % 2, 0.1, -0.1)
    x = np.stack([s, s + noise, s + 10 * noise])
    np.testing.assert_allclose(quality.snr(s, x)[1:], [20, 0], atol=1e-9)
    assert quality.snr(s, x)[0] == np.inf
    np.testing.assert_allclose(quality.rmse(s, x), [0, 0.1, 1], atol=1e-12)


def test_complex_samples_count_by_both_parts():
    rng = np.random.default_rng(3)
    s, x = rng.standard_normal((2, 500)) + 1j * rng.standard_normal((2, 500))
    assert quality.snr(s, s + 0.1j) == pytest.approx(10 * np.log10(np.sum(np.abs(s) ** 2) / 5))
    assert quality.snr(s.real, s.real + 1j) == pytest.approx(10 * np.log10(np.mean(s.real**2)))
    assert quality.rmse(s, s + 0.3 - 0.4j) == pytest.approx(0.5)
    with pytest.raises(TypeError, match="real samples"):
        quality.arrival_shift(s.real, x, 0, 500)


@pytest.mark.parametrize("shift", [0.0, 2.0, -3.4, 0.25])
def test_shift_of_an_arrival(shift):
    first, second = (ricker(400, at, 0.035) for at in (180, 180 + shift))
    found = quality.arrival_shift(np.stack([first] * 2), np.stack([second, first]), 120, 260)
    np.testing.assert_allclose(found, [shift, 0], atol=0.02)
    assert np.isnan(quality.arrival_shift(np.zeros(50), np.zeros(50), 0, 50))


def test_wrong_arguments():
    for measure, arguments in (
        (quality.snr, (np.ones(3), np.ones(4))),
        (quality.rmse, (np.ones((2, 3)), np.ones(3))),
        (quality.arrival_shift, (np.ones(9), np.ones(9), 4, 6)),
        (quality.arrival_shift, (np.ones(9), np.ones(9), 4, 10)),
    ):
        with pytest.raises(ValueError, match=r"traces|samples"):
            measure(*arguments)

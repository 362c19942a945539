"""`wavefilt.quality`: signal-to-noise ratio, error, shift of arrivals, and signal that leaked into the residual."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES
from tests.support.signals import coloured, ricker
from wavefilt import quality


def test_noise_of_known_power():
    s = np.sqrt(2) * np.sin(np.arange(1000) * 2 * np.pi / 50)
    noise = np.where(np.arange(1000) % 2, 0.1, -0.1)
    x = np.stack([s, s + noise, s + 10 * noise])
    np.testing.assert_allclose(quality.snr(s, x)[1:], [20, 0], atol=1e-9)
    assert quality.snr(s, x)[0] == np.inf
    np.testing.assert_allclose(quality.rmse(s, x), [0, 0.1, 1], atol=1e-12)


def flagged(x, live=None, **options):
    """Return the share of traces whose residual is flagged."""
    options = {"backend": "numba", **options}
    wavelet = options.get("wavelet", "db8")
    found = quality.leakage_test(*wavefilt.denoise(x, return_residual=True, **options), wavelet=wavelet)
    assert found.share.shape == found.p_value.shape == x.shape[:-1]
    return found.flagged[live if live is not None else ...].mean()


def test_the_sample_leaks_where_too_much_is_removed_and_not_at_the_defaults():
    x = np.asarray(wavefilt.read(SAMPLES / "seismic.dat").samples, float)
    live = np.ptp(x, axis=1) > 0
    assert flagged(x, live) < 0.05
    assert flagged(x, live, transform="modwt") < 0.05
    assert flagged(x, live, rule=3 * x.std()) > 0.8
    assert flagged(x, ~live, rule=3 * x.std()) == 0


SPECTRA = {
    "white": np.ones_like,
    "pink": lambda f: f**-0.5,
    "red": lambda f: 1 / f,
    "narrow band": lambda f: 0.03 + np.exp(-(((f - 0.1) / 0.02) ** 2)),
}


@pytest.mark.parametrize("rule", [1e9, "bayes", "universal", "sure", "neighblock"])
@pytest.mark.parametrize("colour", [*SPECTRA, "white with gaps"])
def test_noise_alone_is_flagged_once_in_a_hundred_at_most(rng, colour, rule):
    x = coloured(rng, (400, 1024), SPECTRA[colour.removesuffix(" with gaps")])
    if "gaps" in colour:
        x[:, 300:340] = np.nan
    assert flagged(x, rule=rule) <= 0.025  # 0.01 on average, and three standard deviations


@pytest.mark.parametrize("wavelet", ["haar", "sym8", "coif5"])
def test_noise_alone_by_other_wavelets_and_lengths(rng, wavelet):
    for n in (2048, 700, 129):
        assert flagged(rng.standard_normal((300, n)), rule="universal", wavelet=wavelet) <= 0.027


@pytest.mark.parametrize("kind", [float, complex])
def test_known_leakage_is_found(rng, kind):
    clean = np.array([sum(ricker(1024, at, 0.05) for at in rng.uniform(0, 1024, 12)) for _ in range(50)])
    noise = rng.standard_normal(clean.shape) * np.sqrt(np.mean(clean**2, axis=1, keepdims=True)) / 3
    if kind is complex:
        clean, noise = clean * (1 + 1j), noise * (1 + 1j)
    assert quality.leakage_test(clean, noise).flagged.mean() < 0.1
    found = quality.leakage_test(0.5 * clean, noise + 0.5 * clean)  # -6 dB of the signal
    assert found.flagged.mean() > 0.95
    assert np.all((found.share > 0.1) & (found.share < 0.9))
    assert quality.leakage_test(0.99 * clean, noise + 0.01 * clean).flagged.mean() < 0.1  # -40 dB


def test_nothing_to_test_is_no_leakage():
    x = np.random.default_rng(7).standard_normal((2, 3, 400))
    for removed in (np.zeros_like(x), np.full_like(x, np.nan), np.where(np.arange(400) % 7, x, np.nan)):
        found = quality.leakage_test(x, removed)
        assert np.all(found.p_value == 1)
        assert np.all(found.share == 0)
    assert quality.leakage_test(x[..., :10], x[..., :10]).p_value.shape == (2, 3)
    with pytest.raises(ValueError, match="not the same traces"):
        quality.leakage_test(x, x[..., 1:])


def test_complex_samples_count_by_both_parts():
    rng = np.random.default_rng(3)
    s, x = rng.standard_normal((2, 500)) + 1j * rng.standard_normal((2, 500))
    both = [np.concatenate([v.real - v.real.mean(), v.imag - v.imag.mean()]) for v in (s, x)]
    assert quality.snr(s, s + 0.1j) == pytest.approx(10 * np.log10(np.sum(np.abs(s) ** 2) / 5))
    assert quality.snr(s.real, s.real + 1j) == pytest.approx(10 * np.log10(np.mean(s.real**2)))
    assert quality.rmse(s, s + 0.3 - 0.4j) == pytest.approx(0.5)
    assert quality.leakage(s, x) == pytest.approx(quality.leakage(*both))
    assert quality.leakage(s, 1j * s) == pytest.approx(0, abs=1e-12)
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

"""Measures of what a denoise did."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import ROOT
from wavefilt import quality
from wavefilt.benchmarks.quality import records


def test_noise_of_known_power():
    s = np.sqrt(2) * np.sin(np.arange(1000) * 2 * np.pi / 50)
    noise = np.where(np.arange(1000) % 2, 0.1, -0.1)
    x = np.stack([s, s + noise, s + 10 * noise])
    np.testing.assert_allclose(quality.snr(s, x)[1:], [20, 0], atol=1e-9)
    assert quality.snr(s, x)[0] == np.inf
    np.testing.assert_allclose(quality.rmse(s, x), [0, 0.1, 1], atol=1e-12)


def noise(colour, shape, seed):
    """Return stationary Gaussian noise in rows; the gaps are a tenth of each and single samples."""
    rng, n = np.random.default_rng(seed), shape[1]
    if colour == "narrow band":
        amplitude = np.exp(-(((np.fft.rfftfreq(n) - 0.1) / 0.02) ** 2)) + 0.01
        return np.fft.irfft(np.fft.rfft(rng.standard_normal(shape)) * amplitude, n)
    x = records.noise(rng, shape, colour.partition(",")[0])
    if "gaps" in colour:
        x[:, n // 3 : n // 3 + n // 10] = x[:, n // 2 :: n // 4] = np.nan
    return x


def arrivals(rng, samples=4096):
    """Return a trace of forty Ricker wavelets of 8 to 30 Hz at 4 ms."""
    at, frequency = rng.choice(samples, 40) * 0.004, rng.uniform(8, 30, 40)
    phase = (np.pi * frequency[:, None] * (np.arange(samples) * 0.004 - at[:, None])) ** 2
    return rng.standard_normal((1, 40)) @ ((1 - 2 * phase) * np.exp(-phase))


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


def flagged(x, live=None, **options):
    """Of the traces of ``x``, the share whose residual is flagged."""
    options = {"backend": "numba", **options}
    wavelet = options.get("wavelet", "db8")
    found = quality.leakage_test(*wavefilt.denoise(x, return_noise=True, **options), wavelet=wavelet)
    assert found.share.shape == found.p_value.shape == x.shape[:-1]
    return found.flagged[live if live is not None else ...].mean()


def test_the_sample_leaks_where_too_much_is_removed_and_not_at_the_defaults():
    x = np.asarray(wavefilt.read(ROOT / "samples" / "seismic.dat").samples, float)
    live = np.ptp(x, axis=1) > 0
    both = wavefilt.denoise(x[live], return_noise=True)
    assert np.mean(quality.leakage(*both) > 2 / np.sqrt(x.shape[1])) > 0.8  # why there is a test
    assert flagged(x, live) < 0.05
    assert flagged(x, live, transform="modwt") < 0.05
    assert flagged(x, live, rule=3 * x.std()) > 0.8
    assert flagged(x, ~live, rule=3 * x.std()) == 0


@pytest.mark.parametrize("rule", [1e9, "bayes", "universal", "sure", "neighblock"])
@pytest.mark.parametrize("colour", ["white", "pink", "red", "narrow band", "white, gaps"])
def test_noise_alone_is_flagged_once_in_a_hundred_at_most(colour, rule):
    x = noise(colour, (500, 1024), seed=3)
    assert flagged(x, rule=rule) <= 0.02  # 0.01 in the mean: five of 500, and three standard deviations


@pytest.mark.parametrize("wavelet", ["haar", "sym8", "coif5"])
def test_noise_alone_by_other_wavelets_and_lengths(wavelet):
    for n in (2048, 700, 129):
        assert flagged(noise("white", (300, n), seed=4), rule="universal", wavelet=wavelet) <= 0.025


def test_p_values_of_noise_are_not_too_small():
    x = noise("white", (2000, 2048), seed=5)
    p = quality.leakage_test(*wavefilt.denoise(x, rule=1e9, return_noise=True, backend="numba")).p_value
    for limit in (0.1, 0.03, 0.01):
        assert np.mean(p < limit) <= limit + 3 * np.sqrt(limit / 2000)
    assert np.mean(p < 0.1) > 0.01  # nor is everything 1


@pytest.mark.parametrize("kind", [float, complex])
def test_known_leakage_is_found(kind):
    rng = np.random.default_rng(6)
    clean = np.concatenate([arrivals(rng) for _ in range(50)])
    noise = rng.standard_normal(clean.shape) * np.sqrt(np.mean(clean**2, axis=1, keepdims=True)) / 3
    if kind is complex:
        clean, noise = clean * (1 + 1j), noise * (1 + 1j)
    assert quality.leakage_test(clean, noise).flagged.mean() < 0.05
    found = quality.leakage_test(0.5 * clean, noise + 0.5 * clean)  # -6 dB of the signal
    assert found.flagged.mean() > 0.95
    assert np.all((found.share > 0.1) & (found.share < 0.8))
    assert quality.leakage_test(0.99 * clean, noise + 0.01 * clean).flagged.mean() < 0.05  # -40 dB


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

"""Denoising by the windowed f-k transform: the rule written out with Fourier transforms of windows, and gains."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from tests.support.signals import coloured, gain_db, ricker, section
from wavefilt.transforms import fk
from wavefilt.vocabulary import MODES

SHAPES = [(1, 37, 129), (2, 70, 301), (3, 5, 9), (1, 2, 2), (2, 3, 200), (1, 64, 3), (1, 33, 65)]


def gather(traces=128, samples=512, ragged=False, rng=None):
    """Return four hyperbolas and a direct wave; ``ragged`` traces have random time shifts and amplitudes."""
    offset = np.abs(np.arange(traces)[:, None] - 20) * 10.0
    static, scale = 0.0, 1.0
    if ragged:
        static, scale = rng.normal(0, 0.004, (traces, 1)), 1 + 0.25 * rng.standard_normal((traces, 1))

    def wave(arrival, frequency):
        return ricker(samples, (arrival + static) / 0.004, 0.004 * frequency)

    events = [(0.3, 1600, 30, 1.0), (0.7, 1900, 28, 0.8), (1.1, 2200, 25, 0.9), (1.6, 2500, 22, 0.7)]
    clean = 1.2 * wave(offset / 1500 + 0.05, 25)
    for zero, velocity, frequency, amplitude in events:
        clean = clean + amplitude * wave(np.sqrt(zero**2 + (offset / velocity) ** 2), frequency)
    return scale * clean / clean.std()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("window", ["sine32x64", "sine4x6", "sine2x128"])
def test_no_threshold_gives_the_samples_back(rng, shape, window):
    """For any shape, window and mode: the frame is tight."""
    for dtype, bound in (("f8", 1e-9), ("f4", 1e-5)):
        x = rng.standard_normal(shape).astype(dtype)
        y = wavefilt.denoise(x, window, transform="fk", axes=(1, 2), rule=1e-12)
        assert y.dtype == x.dtype
        assert_allclose(y, x, atol=bound)


@pytest.mark.parametrize("mode", MODES)
def test_any_mode(rng, mode):
    clean, noisy = section(rng, (2, 41, 90))
    options = {"transform": "fk", "axes": (1, 2), "mode": mode}
    assert_allclose(wavefilt.denoise(noisy, rule=1e-12, **options), noisy, atol=1e-8)
    assert gain_db(clean, noisy, wavefilt.denoise(noisy, **options)) > 2


@pytest.mark.parametrize("sigma", ["level", ("window", 0, 40)])
def test_offsets_of_traces_are_no_noise(rng, sigma):
    _, noisy = section(rng, (1, 48, 256))
    options = {"transform": "fk", "axes": (1, 2), "sigma": sigma}
    expected = wavefilt.denoise(noisy, **options)
    offsets = 1000 * rng.standard_normal((1, 48, 1))
    assert_allclose(wavefilt.denoise(noisy + offsets, **options) - offsets, expected, atol=0.2 * np.std(noisy))
    unchanged = noisy.astype("f4")
    assert_array_equal(wavefilt.denoise(unchanged, transform="fk", axes=(1, 2), rule=0.0), unchanged)


def test_noise_of_every_frequency(rng):
    x = 2 * rng.standard_normal((4, 256, 512))
    assert wavefilt.estimate_sigma(x, transform="fk", axes=(1, 2), by_band=True).shape == (17 + 33 + 65, 4)
    found = wavefilt.estimate_sigma(x, "sine32x64", transform="fk", axes=(1, 2), by_band=True)
    assert found.shape == (33, 4)
    assert_allclose(found, 2, rtol=0.08)


def shrunk_as_written(x, traces, samples, factor=2.0):
    """Denoise by single windows: compare the mean of |F|² over 3 x 3 neighbours with the noise."""
    taper = np.outer(
        np.sin(np.pi * (np.arange(traces) + 0.5) / traces), np.sin(np.pi * (np.arange(samples) + 0.5) / samples)
    )
    a, b = traces // 2, samples // 2
    ends = [(half, half * (-(-n // half) + 1) - n) for n, half in zip(x.shape, (a, b), strict=True)]
    padded = np.pad(x, ends, "symmetric")
    places = [(i, j) for i in range(0, padded.shape[0] - a, a) for j in range(0, padded.shape[1] - b, b)]
    spectra = {(i, j): np.fft.fft2(padded[i : i + traces, j : j + samples] * taper) for i, j in places}
    inside = [
        np.abs(f)
        for (i, j), f in spectra.items()
        if a <= i <= x.shape[0] - traces + a and b <= j <= x.shape[1] - samples + b
    ]
    noise = np.empty(samples)
    for f in range(b + 1):
        waves = slice(1, a) if f in (0, b) else slice(None)
        noise[f] = noise[-f] = np.quantile([window[waves, f] for window in inside], 0.3) / np.sqrt(-2 * np.log(0.7))
    y = np.zeros_like(padded)
    for (i, j), spectrum in spectra.items():
        power = np.abs(spectrum) ** 2 / (2 * noise**2)
        around = sum(np.roll(power, (p, q), (0, 1)) for p in (-1, 0, 1) for q in (-1, 0, 1)) / 9
        gain = np.maximum(around - factor, 0) / around
        y[i : i + traces, j : j + samples] += np.fft.ifft2(spectrum * gain).real * taper
    return y[a : a + x.shape[0], b : b + x.shape[1]]


@pytest.mark.parametrize(
    ("shape", "window"), [((70, 190), "sine32x64"), ((24, 90), "sine32x64"), ((50, 61), "sine8x10")]
)
def test_the_rule_as_it_is_written(rng, shape, window):
    x = section(rng, shape)[1]
    traces, samples = (int(n) for n in window.removeprefix("sine").split("x"))
    found = wavefilt.denoise(x, window, transform="fk", axes=(0, 1))
    # the quantile is an order statistic, NumPy's lies between two
    assert_allclose(found, shrunk_as_written(x, min(traces, shape[0] // 2 * 2), samples), atol=0.02)


def pink(frequency):
    return frequency**-0.5


@pytest.mark.parametrize("amplitude", [np.ones_like, pink])
def test_gathers_gain_more_than_by_separable_wavelets(rng, amplitude):
    def gained(clean, noisy, **options):
        return gain_db(clean, noisy, wavefilt.denoise(noisy, axes=(0, 1), **options))

    clean = gather()
    noise = 0.6 * coloured(rng, clean.shape, amplitude)
    noisy = clean + noise
    gains = {rule: gained(clean, noisy, transform="fk", rule=rule) for rule in ("js", "sure", "fdr")}
    assert gains["js"] > 13
    assert min(gains.values()) > gained(clean, noisy) + 4
    assert gained(clean[:24], noisy[:24], transform="fk") > 11
    ragged = gather(ragged=True, rng=rng)
    noisy = ragged + noise
    assert gained(ragged, noisy, wavelet="sine16x32", transform="fk") > max(9, gained(ragged, noisy) + 3)


def test_nothing_is_left_of_white_noise_and_all_of_a_clean_section(rng):
    x = rng.standard_normal((64, 400))
    assert np.square(wavefilt.denoise(x, transform="fk", axes=(0, 1))).mean() < 0.06
    clean = gather(64, 400)
    assert_allclose(wavefilt.denoise(clean + 1e-9 * x, transform="fk", axes=(0, 1)), clean, atol=2e-5)


def test_the_ends_are_as_good_as_the_middle(rng):
    """Windows reach beyond the section, where its reflection reverses the dips."""
    traces, samples = np.indices((96, 400))
    clean = sum(np.sin(2 * np.pi * (f * samples + k * traces)) for f, k in ((0.05, 0.1), (0.1, -0.05), (0.08, 0.0)))
    errors = np.zeros(clean.shape)
    for _ in range(4):
        y = wavefilt.denoise(clean + rng.standard_normal(clean.shape), transform="fk", axes=(0, 1))
        errors += np.square(y - clean) / 4
    middle = errors[16:-16, 32:-32].mean()
    for end in (errors[:8], errors[-8:], errors[:, :16], errors[:, -16:]):
        assert end.mean() < min(4 * middle, 0.15)


def test_batches_axes_and_dtypes(rng):
    x = np.stack([section(rng, (40, 150))[1] for _ in range(3)])
    y = wavefilt.denoise(x, transform="fk", axes=(1, 2))
    for own, expected in zip(x, y, strict=True):
        assert_allclose(wavefilt.denoise(own, transform="fk", axes=(0, 1)), expected, atol=1e-12)
    assert_array_equal(wavefilt.denoise(x.transpose(2, 0, 1), transform="fk", axes=(2, 0)), y.transpose(2, 0, 1))
    single = wavefilt.denoise(x.astype("f4"), transform="fk", axes=(1, 2))
    assert single.dtype == np.float32
    assert_allclose(single, y, atol=2e-4)
    assert_allclose(wavefilt.denoise(1e-30 * x, transform="fk", axes=(1, 2)), 1e-30 * y, atol=1e-42)
    together = wavefilt.denoise(x, transform="fk", axes=(1, 2), scope="record")
    assert np.abs(together - y).max() > 1e-3


@pytest.mark.parametrize("amplitude", [np.ones_like, pink])
def test_mixed_windows_are_never_much_worse_than_one(rng, amplitude):
    for ragged in (False, True):
        clean = gather(ragged=ragged, rng=rng)
        noisy = clean + 0.6 * coloured(rng, clean.shape, amplitude)
        mixed, *single = (
            gain_db(clean, noisy, wavefilt.denoise(noisy, wavelet, transform="fk", axes=(0, 1), statics=ragged))
            for wavelet in ("mixed", "sine8x32", "sine32x64", "sine64x128")
        )
        assert mixed > max(single) - 0.3


def test_mixed_windows_with_known_noise_gaps_and_short_sections(rng):
    options = {"transform": "fk", "axes": (0, 1)}
    clean = np.pad(gather(48, 300), [(0, 0), (120, 0)])
    noise = coloured(rng, clean.shape, pink)
    noisy = clean + noise
    plain = gain_db(clean, noisy, wavefilt.denoise(noisy, **options))
    for sigma in (("window", 0, 110), ("before", 110, 80)):
        assert gain_db(clean, noisy, wavefilt.denoise(noisy, sigma=sigma, **options)) > plain - 2
    white = clean + 0.5 * rng.standard_normal(clean.shape)
    assert gain_db(clean, white, wavefilt.denoise(white, sigma=0.5, **options)) > 8
    found = wavefilt.estimate_sigma(
        0.5 * rng.standard_normal((64, 600)), sigma=("window", 0, 150), by_band=True, **options
    )
    assert_allclose(np.median(found), 0.5, rtol=0.05)
    gappy = noisy.copy()
    gappy[5], gappy[9, 40:60] = 2.0, np.nan
    y = wavefilt.denoise(gappy, **options)
    assert_array_equal(np.isnan(y), np.isnan(gappy))
    assert_array_equal(y[5], gappy[5])
    for shape in ((2, 40), (9, 2), (7, 90), (64, 31)):
        x = rng.standard_normal(shape)
        assert np.isfinite(wavefilt.denoise(x, **options)).all()
        assert_array_equal(wavefilt.denoise(0 * x, **options), 0 * x)


@pytest.mark.parametrize("transform", ["dwt", "modwt", "dtcwt"])
@pytest.mark.parametrize("rule", ["bayes", "js"])
def test_noise_windows_of_other_transforms_of_sections(rng, transform, rule):
    """Signal that fills the levels does not raise the noise of a window."""
    clean = np.pad(gather(64, 300), [(0, 0), (130, 0)])
    noisy = clean + 0.3 * rng.standard_normal(clean.shape)
    options = {"transform": transform, "rule": rule, "axes": (0, 1)}
    found = wavefilt.estimate_sigma(noisy, sigma=("window", 0, 120), **options)
    assert_allclose(found, 0.3, rtol=0.1)
    level, window = (wavefilt.denoise(noisy, sigma=s, **options) for s in ("level", ("window", 0, 120)))
    assert gain_db(clean, noisy, window) > gain_db(clean, noisy, level) - 1.5
    batch = wavefilt.denoise(np.stack([noisy, 2 * noisy]), sigma=("window", 0, 120), **{**options, "axes": (1, 2)})
    assert_allclose(batch[1], 2 * window, atol=1e-9)


def test_most_traces_muted_in_the_noise_window_have_the_noise_of_all_samples(rng):
    x = rng.standard_normal((30, 200))
    x[:20, :60] = 0
    for transform in ("dwt", "modwt", "dtcwt", "fk"):
        options = {"transform": transform, "axes": (0, 1)}
        assert_array_equal(wavefilt.denoise(x, sigma=("window", 0, 60), **options), wavefilt.denoise(x, **options))


def test_samples_whose_squares_overflow_in_units_of_the_noise_are_no_noise(rng):
    x = (1e30 * rng.standard_normal((12, 200))).astype("f4")
    assert_allclose(wavefilt.denoise(x, transform="fk", axes=(0, 1), sigma=1.0), x, atol=1e25)


def test_mixed_windows_do_not_depend_on_the_number_of_threads(rng, monkeypatch):
    monkeypatch.setattr(fk, "GRAIN", 1 << 13)
    x = rng.standard_normal((250, 700)).astype("f")
    results = []
    for threads in (1, 2, 5):
        wavefilt.set_num_threads(threads)
        results.append(wavefilt.denoise(x, transform="fk", axes=(0, 1)))
    wavefilt.set_num_threads(None)
    assert_array_equal(results[0], results[1])
    assert_array_equal(results[0], results[2])

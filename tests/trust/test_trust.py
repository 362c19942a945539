"""The trust report: noise alone is not flagged, lost signals are, and every kind of trace gets an answer."""

from __future__ import annotations

import re

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES
from wavefilt import trust


def ricker(samples, at, frequency=0.08):
    square = (np.pi * frequency * (np.arange(samples) - at)) ** 2
    return (1 - 2 * square) * np.exp(-square)


def smooth(rows):
    """Far too much: a running mean."""
    return np.apply_along_axis(lambda x: np.convolve(x, np.ones(31) / 31, "same"), -1, rows)


def denoise(rows):
    return wavefilt.denoise(rows, backend="pywavelets")


@pytest.fixture(scope="module")
def gather():
    """Twelve traces of two arrivals with moveout, clean and with white noise."""
    clean = np.array([8 * ricker(512, 120 + 6 * i) - 6 * ricker(512, 330 + 2 * i, 0.06) for i in range(12)])
    return clean, clean + np.random.default_rng(1).standard_normal(clean.shape)


def test_signal_lost_is_found_where_it_was_lost(gather):
    clean, noisy = gather
    found = trust.report(noisy, smooth(noisy), smooth)
    assert found.verdict == "harmful"
    assert {answer.name: answer.verdict for answer in found.answers}["lateral"] == "signal"
    window = np.unravel_index(np.nanargmax(found.leakage.change), found.leakage.change.shape)[1]
    assert np.abs(clean[:, window * 32 : window * 32 + 64]).max() > 4
    quiet = np.abs(clean).reshape(12, -1, 32).max(axis=2) < 1e-3
    lonely = quiet[:, 1:] & quiet[:, :-1]
    assert not found.harmed[lonely].any()
    assert found.harmed.sum() > 12
    truth = np.sum((smooth(noisy) - clean) ** 2) / np.sum((noisy - clean) ** 2)
    assert found.error_db == pytest.approx(10 * np.log10(truth), abs=1)


def test_a_good_denoise_is_not_harmful(gather):
    clean, noisy = gather
    denoised = denoise(noisy)
    found = trust.report(noisy, denoised, denoise)
    assert found.verdict != "harmful"
    truth = np.sum((denoised - clean) ** 2) / np.sum((noisy - clean) ** 2)
    assert found.error_db == pytest.approx(10 * np.log10(truth), abs=2)


@pytest.mark.parametrize("given", [True, False])
def test_noise_alone_has_no_signal(given):
    flagged = 0
    for seed in range(6):
        noise = np.cumsum(np.random.default_rng(seed).standard_normal((6, 512)), axis=1)  # red
        found = trust.report(noise, denoise(noise), denoise if given else None)
        flagged += found.verdict != "none"
    assert flagged <= 1


def test_noise_goes_through_the_same_denoise(gather):
    _, noisy = gather
    seen = []

    def watched(rows):
        seen.append(rows)
        return denoise(rows)

    gap = np.where(np.arange(512) < 20, np.nan, noisy)
    found = trust.report(1e6 * gap, 1e6 * denoise(gap), watched)
    assert found.leakage.simulated
    assert np.isnan(seen[0][:, :20]).all()
    assert np.std(seen[0][:, 20:]) == pytest.approx(1e6, rel=0.3)  # in the units of the record
    assert not trust.report(noisy, denoise(noisy)).leakage.simulated


def test_a_noise_window_tells_the_noise(gather):
    _, noisy = gather
    everywhere = noisy + 5 * np.sin(0.2 * np.arange(512))
    everywhere[:, :96] = noisy[:, :96]
    least = trust.report(everywhere, 0 * everywhere, noise_window=(0, 96)).leakage
    np.testing.assert_allclose(np.median(least.noise * least.unit**2, axis=0)[:3], 1, rtol=0.4)


@pytest.mark.parametrize("samples", [1, 2, 63, 127])
def test_short_traces_are_not_tested(samples):
    found = trust.report(np.arange(samples) ** 2.0, np.zeros(samples))
    assert found.verdict == "untested"
    assert "not tested" in found.summary()


def test_dead_traces_gaps_and_extremes(gather):
    _, noisy = gather
    x = noisy.copy()
    x[1], x[2, 100:300], x[3] = 5, np.nan, np.nan
    y = np.array([denoise(row[None])[0] for row in x])
    found = trust.report(x, y)
    assert "As they were: 2 of 12 traces, 1 of them dead" in found.answers[-1].found
    assert f"{200 + 512} of {x.size} samples are in gaps" in found.answers[-1].found
    assert np.isnan(found.leakage.p_value[2, 4:8]).all()
    assert np.isnan(found.leakage.p_value[[1, 3]]).all()
    large, tiny = (trust.report(x * unit, y * unit).facts() for unit in (2.0**1000, 2.0**-1000))
    assert large == tiny == found.facts()
    assert trust.report(x, x).facts()["error_db"] == 0


def test_first_breaks_that_move(gather):
    _, noisy = gather
    late = np.roll(noisy, 3, axis=1)
    (answer,) = (answer for answer in trust.report(noisy, late).answers if answer.name == "breaks")
    assert (answer.verdict, answer.word) == ("signal", "moved")
    assert "median shift +3 samples" in answer.found


def test_errors():
    x = np.zeros((2, 200))
    with pytest.raises(TypeError, match="real samples"):
        trust.report(x + 1j, x)
    with pytest.raises(ValueError, match="not the same traces"):
        trust.report(x, x[:1])
    for window in ((0, 201), (-1, 100), (10, 20)):
        with pytest.raises(ValueError, match="noise window"):
            trust.report(x, x, noise_window=window)


def test_large_arrays_are_sampled():
    x = np.random.default_rng(0).standard_normal((300, 256))
    found = trust.report(x, x, samples=64 * 256)
    assert found.noisy.shape == (64, 256)
    assert found.traces.tolist() == [*range(32), *range(268, 300)]
    assert "A sample of 64 of 300 traces" in found.answers[-1].found
    assert (
        "first 16384 of 20000 samples"
        in trust.report(np.zeros(20000), np.zeros(20000), samples=16384).answers[-1].found
    )


def test_recording(tmp_path):
    before = wavefilt.read(SAMPLES / "seismic.dat")
    after = before.denoise(backend="pywavelets")
    found = after.trust(before)
    assert found.leakage.simulated
    assert (found.interval, found.name) == (before.interval, "seismic.dat")
    pytest.importorskip("matplotlib")
    found.write(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert len(page) < 2e6
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert page.count("<img") == 5
    assert found.summary().partition("; ")[2] in page
    assert all(answer.word in page for answer in found.answers[:-1])
    with pytest.raises(FileExistsError):
        found.write(tmp_path / "r.html")
    with pytest.raises(ValueError, match="different traces"):
        after.trust(wavefilt.Recording(np.zeros((2, 9)), (None,) * 2, "npy", None))


def test_recording_of_several_lengths():
    rng = np.random.default_rng(3)
    traces = [rng.standard_normal(n).astype(np.float32) for n in (400, 300, 500)]
    before = wavefilt.Recording(traces, (0.01,) * 3, "npy", None)
    found = before.denoise(backend="pywavelets").trust(before)
    assert np.isnan(found.noisy).sum() == 300
    assert found.verdict == "none"

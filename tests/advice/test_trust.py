"""The trust report: noise alone is not flagged, lost signals are, and every kind of trace gets an answer."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES
from tests.support.signals import coloured, gain_db, ricker
from wavefilt import trust
from wavefilt.noise import RAISED


def smooth(rows):
    """Smooth far too much, by a running mean."""
    return np.apply_along_axis(lambda x: np.convolve(x, np.ones(31) / 31, "same"), -1, rows)


def denoise(rows):
    return wavefilt.denoise(rows, backend="pywavelets")


@pytest.fixture(scope="module")
def gather():
    """Twelve traces of two arrivals with moveout, clean and with white noise."""
    clean = np.array([8 * ricker(512, 120 + 6 * i) - 6 * ricker(512, 330 + 2 * i, 0.06) for i in range(12)])
    return clean, clean + np.random.default_rng(1).standard_normal(clean.shape)


def answer(found, name):
    return next(answer for answer in found.answers if answer.question.name == name)


def test_signal_lost_is_found_where_it_was_lost(gather):
    clean, noisy = gather
    found = trust.report(noisy, smooth(noisy), smooth)
    assert found.verdict == "harmful"
    assert {answer.question.name: answer.verdict for answer in found.answers}["lateral"] == "signal"
    window = np.unravel_index(np.nanargmax(found.effect.change), found.effect.change.shape)[1]
    assert np.abs(clean[:, window * 32 : window * 32 + 64]).max() > 4
    quiet = np.abs(clean).reshape(12, -1, 32).max(axis=2) < 1e-3
    lonely = quiet[:, 1:] & quiet[:, :-1]
    assert not found.effect.harmed[lonely].any()
    assert found.effect.harmed.sum() > 12
    truth = np.sum((smooth(noisy) - clean) ** 2) / np.sum((noisy - clean) ** 2)
    assert found.effect.gain_db == pytest.approx(-10 * np.log10(truth), abs=1)


def test_good_denoising_is_not_harmful(gather):
    clean, noisy = gather
    denoised = denoise(noisy)
    found = trust.report(noisy, denoised, denoise)
    assert found.verdict != "harmful"
    assert found.effect.gain_db == pytest.approx(gain_db(clean, noisy, denoised), abs=2)


@pytest.mark.parametrize("method", [denoise, smooth, np.zeros_like, lambda rows: 0.8 * rows])
@pytest.mark.parametrize("sigma", [1.0, ("window", 0, 96), "global", "level"])
def test_the_true_gain_is_in_the_range(gather, method, sigma):
    clean, noisy = gather
    low, high = trust.report(noisy, method(noisy), method, sigma=sigma).gain_range
    assert low - 0.1 <= gain_db(clean, noisy, method(noisy)) <= high + 0.1
    assert low < high


def test_a_gain_that_would_leave_no_error_has_no_upper_end(gather):
    """The power of the noise is not known as exactly as that."""
    noise = gather[1] - gather[0]
    found = trust.report(noise, 0.1 * noise, lambda rows: 0.1 * rows, sigma=1.0)
    assert "gain +5" in found.summary()
    assert "dB or more" in found.summary()
    gentle = trust.report(noise, 0.8 * noise, lambda rows: 0.8 * rows, sigma=1.0)
    assert "or more" not in gentle.summary()


def test_traces_with_far_more_noise_are_named(gather):
    """The energy of the whole record does not show that their signal is lost."""
    clean, noisy = gather
    common = 4 * np.sin(0.05 * np.arange(512))  # hides the difference in the total power
    x = noisy + common + 4 * np.isin(np.arange(12), [3, 7])[:, None] * (noisy - clean)
    found = trust.report(x, denoise(x), denoise, sigma=("window", 0, 96))
    assert found.noisy_traces.tolist() == [3, 7]
    assert "lost in traces 3, 7, far noisier than the others" in found.summary()
    x[7] = 0
    assert "in trace 3, far noisier" in trust.report(x, denoise(x), denoise, sigma=("window", 0, 96)).summary()
    even = trust.report(noisy, denoise(noisy), denoise)
    assert (even.noisy_traces.size, "far noisier" in even.summary()) == (0, False)
    assert trust.report(np.zeros((3, 200)), np.zeros((3, 200))).facts()["noisy_traces"] == []


@pytest.mark.parametrize("given", [True, False])
def test_noise_alone_has_no_signal(given):
    flagged = 0
    for seed in range(6):
        noise = np.cumsum(np.random.default_rng(seed).standard_normal((6, 512)), axis=1)  # red
        found = trust.report(noise, denoise(noise), denoise if given else None)
        flagged += found.verdict == "harmful" or answer(found, "windows").verdict == "signal"
    assert flagged <= 1


def test_noise_goes_through_the_same_denoise(gather):
    _, noisy = gather
    seen = []

    def watched(rows):
        seen.append(rows)
        return denoise(rows)

    gap = np.where(np.arange(512) < 20, np.nan, noisy)
    trust.report(1e6 * gap, 1e6 * denoise(gap), watched)
    assert np.isnan(seen[0][:, :20]).all()
    assert np.std(seen[0][:, 20:]) == pytest.approx(1e6, rel=0.3)  # in the units of the record


def test_a_noise_window_tells_the_noise(gather):
    _, noisy = gather
    everywhere = noisy + 5 * np.sin(0.2 * np.arange(512))
    everywhere[:, :96] = noisy[:, :96]
    least = trust.report(everywhere, 0 * everywhere, sigma=("window", 0, 96)).effect
    np.testing.assert_allclose(np.median(least.noise * least.unit**2, axis=0)[:3], 1, rtol=0.4)


@pytest.mark.parametrize("samples", [1, 2, 63, 127])
def test_short_traces_are_not_tested(samples):
    assert trust.report(np.arange(samples) ** 2.0, np.zeros(samples)).verdict == "untested"


def test_dead_traces_gaps_and_extremes(gather):
    _, noisy = gather
    x = noisy.copy()
    x[1], x[2, 100:300], x[3] = 5, np.nan, np.nan
    y = np.array([denoise(row[None])[0] for row in x])
    found = trust.report(x, y)
    assert np.isnan(found.effect.p_value[2, 4:8]).all()
    assert np.isnan(found.effect.p_value[[1, 3]]).all()
    large, tiny = (trust.report(x * unit, y * unit).facts() for unit in (2.0**1000, 2.0**-1000))
    same = {name: value for name, value in found.facts().items() if name != "sha256"}
    assert large | same == large
    assert tiny | same == tiny
    assert trust.report(x, x).facts()["gain_db"] == 0


def test_first_breaks_that_move(gather):
    _, noisy = gather
    late = answer(trust.report(noisy, np.roll(noisy, 3, axis=1)), "breaks")
    assert late.verdict == "signal"
    assert "+3 samples" in late.found


def test_wrong_arguments():
    x = np.zeros((2, 200))
    for noisy, denoised, window in ((x + 1j, x, None), (x, x[:1], None), (x, x, (0, 201))):
        with pytest.raises((TypeError, ValueError)):
            trust.report(noisy, denoised, sigma="level" if window is None else ("window", *window))


@pytest.mark.parametrize("wrong", [lambda rows: None, lambda rows: rows[:1], lambda rows: (rows, rows)])
def test_a_function_that_returns_another_shape(wrong):
    x = np.random.default_rng(0).standard_normal((8, 512))
    with pytest.raises(ValueError, match="shape"):
        trust.report(x, wavefilt.denoise(x), wrong)


def test_large_arrays_are_sampled():
    x = np.random.default_rng(0).standard_normal((300, 256))
    found = trust.report(x, x, samples=64 * 256)
    assert found.noisy.shape == (64, 256)
    assert found.traces.tolist() == [*range(32), *range(268, 300)]
    assert "64 of 300" in found.origin()["samples"]
    assert "16384 of 20000" in trust.report(np.zeros(20000), np.zeros(20000), samples=16384).origin()["samples"]


def test_recordings(tmp_path):
    before = wavefilt.read(SAMPLES / "seismic.dat")
    after = before.denoise(backend="pywavelets")
    found = after.trust(before)
    assert (found.interval, found.name) == (before.interval, "seismic.dat")
    with pytest.raises(ValueError, match="traces"):
        after.trust(wavefilt.Recording(np.zeros((2, 9)), (None,) * 2, "npy", None))
    rng = np.random.default_rng(3)
    lengths = wavefilt.Recording([rng.standard_normal(n) for n in (400, 300, 500)], (0.01,) * 3, "npy", None)
    of_lengths = lengths.denoise(backend="pywavelets").trust(lengths)
    assert np.isnan(of_lengths.noisy).sum() == 300
    assert of_lengths.verdict == "harmless"
    pytest.importorskip("matplotlib")
    found.write(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert len(page) < 2e6
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert page.count("<img") == 2
    assert all(answer.word in page for answer in found.answers)
    with pytest.raises(FileExistsError):
        found.write(tmp_path / "r.html")


@pytest.mark.parametrize(("delay", "label"), [(0.0, "time (s)"), (-0.1, "time from the trigger (s)")])
def test_words_on_the_page(gather, delay, label, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    from wavefilt.plotting import figure

    drawn = []
    monkeypatch.setattr(figure, "as_html", lambda one, *_: drawn.append(one) or "")
    found = trust.report(gather[1], denoise(gather[1]), interval=0.001, delay=delay)
    replace(found, statements=("try `preset=gentle`",)).write(tmp_path / "r.html")
    assert "try <code>preset=gentle</code>" in (tmp_path / "r.html").read_text()
    assert [one.axes[0].get_ylabel() for one in drawn] == [label, label]
    unmoved = replace(found, interval=None, shifts=np.full(12, -0.01))
    assert "between +0 samples and +0 samples" in answer(unmoved, "breaks").found


# ---- the noise that the report compares with


def microseisms(frequency):
    """Return an amplitude spectrum that is a thousand times higher at periods above 250 samples."""
    return 1 + 1000 / (1 + (frequency / 0.004) ** 2.5)


def power(found):
    """Return the variance of the noise that a report estimated, by trace, from levels each an octave wide."""
    levels = found.effect.noise.shape[1]
    return found.effect.noise @ 0.5 ** np.array([*range(1, levels), levels - 1]) * found.effect.unit**2


def test_steep_noise_is_noise_and_a_steep_signal_is_not():
    rng = np.random.default_rng(0)
    x = coloured(rng, (1, 4096), microseisms)
    assert power(trust.report(x, x, sigma=("window", 0, 3072))) == pytest.approx(1, rel=0.4)
    steps = 5 * np.repeat(rng.standard_normal((1, 16)), 256, axis=1)  # fill the trace as well
    noisy = steps + rng.standard_normal((1, 4096))
    least = min(found.model.variance * found.unit**2 for found in trust.report(noisy, noisy).effects)
    assert least < 4 < np.var(noisy) / 4


def test_stations_have_their_own_noise_and_a_gather_a_common_one():
    rng = np.random.default_rng(1)
    white, red = (coloured(rng, (4, 1024), lambda f, slope=slope: f**-slope) for slope in (0, 0.7))
    blue = coloured(rng, (4, 1024), lambda f: f)
    found = power(trust.report(*[np.concatenate([white, red, blue])] * 2))
    assert np.median(found[4:8]) > 0.15  # with the slope of the others it would be 0.06 or less
    event = 30 * np.exp(-(((np.arange(1024) - 400) / 250) ** 2)) * np.sin(np.arange(1024) / 3)
    gather = trust.report(*[coloured(rng, (12, 1024), np.ones_like) + event] * 2)
    np.testing.assert_allclose(np.median(power(gather)), RAISED, rtol=0.2)

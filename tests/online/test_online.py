"""`OnlineDenoiser`: the bits of the whole trace however samples come, and running estimates against loops."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as st

import wavefilt
from tests.support.pushing import streamed
from wavefilt.vocabulary import MODES

LOCAL = [mode for mode in MODES if not mode.startswith("period")]
MAD = 0.6744897501960817
UPDATES = 16
"""Number of times that running estimates are renewed within a window."""
LAMBDA, LAMBDA_MEASURED = 2.0, 2.5
"""Factors of the noise power of rule js, for noise that is estimated and given."""


def _samples(n, channels=None, dtype="f8", seed=0):
    rng = np.random.default_rng(seed)
    shape = (n,) if channels is None else (channels, n)
    return (np.sin(np.arange(n) / 9) + rng.standard_normal(shape) * np.linspace(0.3, 1, n)).astype(dtype)


def _assert_same(x, sizes, wavelet, level, rule, whole_rule=None, **options):
    channels = None if x.ndim == 1 else len(x)
    online = wavefilt.OnlineDenoiser(wavelet, level, rule, channels=channels, dtype=x.dtype, **options)
    options = {"shrink": options.get("shrink"), "mode": options.get("mode", "symmetric")}
    sigma = 0.4 if isinstance(rule, str) else "level"
    whole = wavefilt.denoise(
        x,
        wavelet,
        level=level,
        rule=rule if whole_rule is None else whole_rule,
        sigma=sigma,
        backend="pywavelets",
        **options,
    )
    y = streamed(online, x, sizes)
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    assert np.array_equal(y, whole)


@given(st.lists(st.sampled_from([0, 1, 2, 31, 32, 33, 100, 464, 465, 466, 700]), max_size=12))
@settings(max_examples=25, deadline=None)
def test_any_pushes_give_the_whole_trace_bit_for_bit(sizes):
    _assert_same(_samples(1500), sizes, "db8", 5, "universal", noise=0.4, window=1500)


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_any_filter_mode_length_and_dtype(data):
    wavelet = data.draw(st.sampled_from(["haar", "db2", "db8", "bior3.5", "sym4", "coif2"]))
    level = data.draw(st.integers(1, 4))
    n = (pywt.Wavelet(wavelet).dec_len - 1 << level) + data.draw(st.integers(0, 300))
    mode, dtype = data.draw(st.sampled_from(LOCAL)), data.draw(st.sampled_from(["f4", "f8"]))
    sizes = data.draw(st.lists(st.integers(0, 90), max_size=8))
    _assert_same(_samples(n, 2, dtype), sizes, wavelet, level, 0.5, mode=mode)


@pytest.mark.parametrize("shrink", ["soft", "hard", "garrote", "firm"])
@pytest.mark.parametrize("rule", ["minimax", 0.3, [0.1, 0.2, 0.4]])
def test_every_function_and_rule_without_running_estimates(shrink, rule):
    x = _samples(900, 3, "f4")
    numbers = {"noise": 0.4, "window": 900} if isinstance(rule, str) else {}
    _assert_same(x, [7] * 40, "db4", 3, rule, shrink=shrink, **numbers)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rule", ["js", "bayes", "universal"])
@pytest.mark.parametrize(("wavelet", "level"), [("haar", 6), ("sym8", 5), ("bior1.3", 3)])
def test_results_do_not_depend_on_pushes(wavelet, level, dtype, rule):
    """Bit for bit, with the latency of other rules after every push."""
    x, rng = _samples(3000, 2, dtype), np.random.default_rng(1)
    options = {"window": 900, "channels": 2, "dtype": dtype}
    whole = streamed(wavefilt.OnlineDenoiser(wavelet, level, rule, **options), x, [])
    assert whole.dtype == dtype
    for sizes in ([1] * 300, [64] * 50, rng.integers(0, 200, 30).tolist()):
        online = wavefilt.OnlineDenoiser(wavelet, level, rule, **options)
        assert np.array_equal(streamed(online, x, sizes), whole)
        assert np.array_equal(streamed(online, x, [500]), whole)  # a new stream after flush
        assert online.flush().shape == (2, 0)


def test_latency_is_the_least_possible():
    """The last input sample changes the last output sample; a step outputs 8 samples."""
    for wavelet, level, expected in [("db8", 5, 465), ("haar", 3, 7), ("bior3.5", 2, 33)]:
        online = wavefilt.OnlineDenoiser(wavelet, level, 0.0001)
        assert online.latency == expected
    x, due = _samples(64), []
    for change in (0, 1e3):
        x[63] += change
        due.append(wavefilt.OnlineDenoiser("db2", 3, 0.5).push(x))
    assert due[0][-1] != due[1][-1]
    assert np.array_equal(due[0][:-8], due[1][:-8])


@pytest.mark.parametrize("n", [1, 3, 15, 16, 31])
def test_streams_shorter_than_the_filter_or_a_step_come_back(n):
    x = _samples(n)
    assert np.array_equal(streamed(wavefilt.OnlineDenoiser("db8", 5, 9.0), x, [1, 1]), x)


@pytest.mark.parametrize("mode", LOCAL)
@pytest.mark.parametrize(("wavelet", "level"), [("haar", 4), ("db4", 3), ("db8", 5)])
def test_streams_too_short_for_a_batch_of_that_level(wavelet, level, mode):
    bank = pywt.Wavelet(wavelet)
    least = max(bank.dec_len, 1 << level)
    for n in {least, max((bank.dec_len - 1 << level) - 1, least + 1)}:
        x = a = _samples(n)
        details = []
        for _ in range(level):
            a, d = pywt.dwt(a, bank, mode)
            details.append(np.where(np.abs(d) > 0.5, np.sign(d) * (np.abs(d) - 0.5), 0))
        y = streamed(wavefilt.OnlineDenoiser(bank, level, 0.5, mode=mode), x, [5, 9])
        np.testing.assert_allclose(y, _inverse(a, details, bank, mode)[:n], rtol=1e-13, atol=1e-14)


def _inverse(a, details, wavelet, mode="symmetric"):
    for d in reversed(details):
        a = pywt.idwt(a[: len(d)], d, wavelet, mode)
    return a


def _running(x, wavelet, level, window, threshold):
    """Denoise with running thresholds, detail by detail: ``threshold(known details, sigma)``."""
    a, details = x, []
    for j in range(1, level + 1):
        a, d = pywt.dwt(a, wavelet, "symmetric")
        size, shrunk, due, value = max(window >> j, 1), np.empty_like(d), 0, 0.0
        for k in range(len(d)):
            if k == due:
                known = d[max(k + 1 - size, 0) : k + 1]
                value = threshold(known, np.median(np.abs(known)) / 0.6744897501960817)
                due = k + max(len(known) // UPDATES, 1)
            shrunk[k] = np.sign(d[k]) * max(abs(d[k]) - value, 0)
        details.append(shrunk)
    return _inverse(a, details, wavelet)[: len(x)]


def _bayes(known, sigma):
    power = np.mean(known**2)
    if sigma == 0:
        return 0.0
    return sigma**2 / np.sqrt(power - sigma**2) if power > sigma**2 else np.inf


@pytest.mark.parametrize("sizes", [[], [1] * 50, [333, 0, 700]])
@pytest.mark.parametrize(
    ("options", "threshold"),
    [
        ({"rule": "bayes"}, _bayes),
        ({"rule": "bayes", "noise": 0.4}, lambda known, sigma: _bayes(known, 0.4)),
        ({"rule": "universal"}, lambda known, sigma: sigma * np.sqrt(2 * np.log(600))),
    ],
)
def test_running_noise_is_the_median_of_the_window(options, threshold, sizes):
    x = _samples(2500)
    online = wavefilt.OnlineDenoiser("db4", 3, window=600, **options)
    np.testing.assert_allclose(streamed(online, x, sizes), _running(x, "db4", 3, 600, threshold), atol=1e-12)


def with_a_wave(n):
    """Return noise that gets louder, with a wave and an offset."""
    wave = 6 * np.exp(-(((np.arange(n) - 0.6 * n) / 60) ** 2)) * np.sin(np.arange(n) / 4)
    return wave + np.random.default_rng(0).standard_normal(n) * np.linspace(0.5, 2, n) + 30


def js_by_loops(x, wavelet, level, window, mode="symmetric", noise=None):
    """Denoise one trace by rule js with the causal half of each neighbourhood."""
    bank, bands, a = pywt.Wavelet(wavelet), [], x
    for _ in range(level):
        a, d = pywt.dwt(a, wavelet, mode)
        bands.append(d)
    bands.append(a)
    taps, squares = bank.dec_len, np.square(bank.dec_lo)
    late, lag = taps // 2 - 1, round((taps - 1) / 2 - np.arange(taps) @ squares / squares.sum())

    def place(i, j, k):
        if {i, j} == {level - 1, level}:
            return min(k - lag if j == level else k + lag, k)
        return 2 * k - late if j < i else (k + late - 1) // 2  # the last one that is not later

    limits, centres, energies = [], [], []
    for i, w in enumerate(bands):
        size, limit, centre, due = max(window >> min(i + 1, level), 1), np.zeros(len(w)), np.zeros(len(w)), 0
        for k in range(len(w)):
            limit[k], centre[k] = limit[k - 1], centre[k - 1]
            if k == due:
                known = w[max(k + 1 - size, 0) : k + 1]
                centre[k] = np.median(known) if i == level else 0
                if noise is None:
                    limit[k] = np.median(np.abs(known - centre[k])) / MAD * np.sqrt(LAMBDA)
                else:
                    limit[k] = noise[min(i, level - 1)] * np.sqrt(LAMBDA_MEASURED)
                due = k + max(len(known) // UPDATES, 1)
        mean = np.full(len(w), np.nan)
        for k in range(len(w)):
            known = [q for q in range(max(k - 4, 0), k + 1) if limit[q] > 0]
            near, weights = [((w[q] - centre[q]) / limit[q]) ** 2 for q in known], [np.exp((q - k) / 3) for q in known]
            mean[k] = np.average(near, weights=weights) if known else np.nan
        limits.append(limit)
        centres.append(centre)
        energies.append(mean)
    shrunk = []
    for i, w in enumerate(bands):
        found = w.copy()
        for k in np.flatnonzero(limits[i] > 0):
            around = [energies[i][k]] * 2
            for j in (i - 1, i + 1):
                if 0 <= j <= level:
                    around.append(energies[j][min(max(place(i, j, k), 0), len(bands[j]) - 1)])
            gain = max(0, 1 - 1 / np.nanmean(around)) if np.nansum(around) > 0 else 0
            found[k] = centres[i][k] + (w[k] - centres[i][k]) * gain
        shrunk.append(found)
    return _inverse(shrunk[-1], shrunk[:-1], wavelet, mode)[: len(x)]


@pytest.mark.parametrize("wavelet", ["haar", "db2", "sym8", "db8", "coif3", "bior3.5"])
@pytest.mark.parametrize(("level", "mode"), [(1, "symmetric"), (3, "zero"), (5, "reflect")])
def test_js_by_loops(wavelet, level, mode):
    x = with_a_wave(2600)
    online = wavefilt.OnlineDenoiser(wavelet, level, "js", window=700, mode=mode)
    found = streamed(online, x, [100, 1, 33, 0, 640, 7, 64])
    np.testing.assert_allclose(found, js_by_loops(x, wavelet, level, 700, mode), atol=1e-9)


@pytest.mark.parametrize("noise", [1.5, [2.0, 1.0, 0.7]])
def test_js_with_noise_that_is_given(noise):
    x, own = with_a_wave(2000), [1.5] * 3 if noise == 1.5 else noise[::-1]
    online = wavefilt.OnlineDenoiser("sym8", 3, "js", window=500, noise=noise)
    np.testing.assert_allclose(streamed(online, x, [90] * 9), js_by_loops(x, "sym8", 3, 500, noise=own), atol=1e-9)
    kept = streamed(wavefilt.OnlineDenoiser("db4", 3, "js", window=300, noise=0.0), x, [50] * 9)
    np.testing.assert_allclose(kept, x, rtol=1e-12)


@pytest.mark.parametrize("rule", ["js", "bayes"])
def test_channels_have_estimates_of_their_own(rule):
    x = _samples(1500, 2)
    x[1] *= 50
    both = streamed(wavefilt.OnlineDenoiser("db4", 3, rule, window=400, channels=2), x, [90] * 9)
    for channel in (0, 1):
        alone = streamed(wavefilt.OnlineDenoiser("db4", 3, rule, window=400), x[channel], [40] * 9)
        np.testing.assert_allclose(both[channel], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rule", ["js", "bayes"])
def test_dead_channels_come_back_bit_for_bit(rule):
    x = np.random.default_rng(4).standard_normal((3, 900)).astype("f4")
    x[1], x[2, :600] = 3.7, -0.1
    online = wavefilt.OnlineDenoiser("db4", 3, rule, window=256, channels=3, dtype="f4")
    for _ in range(2):  # the second is a new stream
        y = streamed(online, x, [30] * 30)
        assert np.array_equal(y[1], x[1])
        assert np.array_equal(y[2, : 600 - online.latency], x[2, : 600 - online.latency])
        assert not np.array_equal(y[2, 600:], x[2, 600:])
        np.testing.assert_allclose(y[2, :500], x[2, :500], atol=1e-5)


@pytest.mark.parametrize("rule", ["universal", "bayes", "js"])
def test_a_constant_start_does_not_depend_on_the_blocks(rule):
    x = _samples(600, 2)
    x[1, :300] = 5
    online = wavefilt.OnlineDenoiser("db4", 3, rule, window=200, channels=2, mode="zero")
    whole = streamed(online, x, [600])
    for sizes in ([1] * 600, [290, 5, 40, 7]):
        assert np.array_equal(streamed(online, x, sizes), whole)
    assert (whole[1, : 300 - online.latency] == 5).all()


@pytest.mark.parametrize("rule", ["js", "bayes"])
def test_memory_does_not_grow(rule):
    online, x, held = wavefilt.OnlineDenoiser("db4", 3, rule, window=200), _samples(160), []
    tracemalloc.start()
    for _ in range(40):
        online.push(x)
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(held[28:]) < max(held[14:28]) + 4000


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_a_bad_sample_is_named_and_nothing_taken(bad):
    x = _samples(700, 2)
    online = wavefilt.OnlineDenoiser("db4", 3, 0.5, channels=2)
    whole = streamed(online, x, [])
    begun = online.push(x[:, :400])
    part = x[:, 400:].copy()
    part[1, 7] = bad
    with pytest.raises(ValueError, match=r"sample 7 of this push is .* \(channel 1\): .* flush"):
        online.push(part)
    assert np.array_equal(np.hstack([begun, online.push(x[:, 400:]), online.flush()]), whole)


@pytest.mark.parametrize("dtype", ["f4", "i4"])
def test_a_masked_sample_is_a_gap_whatever_lies_under_the_mask(dtype):
    data = np.ones((2, 64), dtype)
    data[1, 10] = 1_000_000
    online = wavefilt.OnlineDenoiser("haar", 2, 1.0, channels=2)
    masked = np.ma.masked_array(data, data > 1)
    for samples in (masked, list(masked)):
        with pytest.raises(ValueError, match=r"sample 10 of this push is nan \(channel 1\): .* flush"):
            online.push(samples)
    np.testing.assert_allclose(online.push(data[:, :10]), np.ones((2, 7)), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"rule": "sure", "window": 99}, "whole trace"),
        ({"rule": "bivariate", "window": 99}, "whole trace"),
        ({"rule": "median"}, "rule"),
        ({"rule": "universal", "noise": 1.0}, "window"),
        ({"rule": "js", "noise": 1.0}, "window"),
        ({"rule": "js", "window": 300, "shrink": "soft"}, "shrink"),
        ({}, "window"),
        ({"window": 1}, "window"),
        ({"window": [5]}, "window"),
        ({"window": True}, "window"),
        ({"rule": [1, 2], "level": 3}, "2 thresholds"),
        ({"noise": [1, 2], "level": 3, "window": 99}, "3 levels"),
        ({"noise": -1.0, "window": 99}, "noise"),
        ({"noise": "global", "window": 99}, "noise"),
        ({"noise": ["a"], "window": 99}, "noise"),
        ({"noise": [[1, 2, 3]], "level": 3, "window": 99}, "noise"),
        ({"level": 0, "window": 99}, "level"),
        ({"level": None, "window": 99}, "level"),
        ({"mode": "periodic", "window": 99}, "mode"),
        ({"dtype": "int16", "window": 99}, "float32"),
        ({"channels": 0, "window": 99}, "channels"),
        ({"channels": 2.5, "window": 99}, "channels"),
        ({"wavelet": "db99", "window": 99}, "wavelet"),
    ],
)
def test_options_that_make_no_sense(options, word):
    with pytest.raises(ValueError, match=word):
        wavefilt.OnlineDenoiser(**options)


def test_whole_numbers_of_any_type():
    online = wavefilt.OnlineDenoiser("haar", np.int64(2), noise=np.float32([1, 2]), window=100.0, channels=2.0)
    assert online.push(np.ones((2, 9))).shape == (2, 6)


def test_pushes_of_another_shape_or_kind():
    online = wavefilt.OnlineDenoiser(rule=0.5, channels=2)
    with pytest.raises(ValueError, match=r"shape \(3, 4\) should have shape \(2, samples\)"):
        online.push(np.ones((3, 4)))
    with pytest.raises(ValueError, match=r"shape \(\) should have shape \(samples,\)"):
        wavefilt.OnlineDenoiser(rule=0.5).push(1.0)
    with pytest.raises(TypeError, match="complex128 are not real"):
        online.push(np.ones((2, 4)) * 1j)
    assert online.push(np.ones((2, 3), np.int16)).shape == (2, 0)

"""Samples denoised as they come: those of the whole trace, however they come, and thresholds that run."""

from __future__ import annotations

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as st

import wavefilt
from tests.support.pushing import streamed
from wavefilt.online.sliding_window import UPDATES
from wavefilt.thresholding.shrinkage import apply
from wavefilt.vocabulary import MODES

LOCAL = [mode for mode in MODES if not mode.startswith("period")]


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


def test_noise_of_each_level_in_numbers():
    sigma, n = [0.1, 0.3, 0.6], 800
    thresholds = [s * np.sqrt(2 * np.log(n)) for s in sigma]
    _assert_same(_samples(n), [100] * 3, "db4", 3, "universal", thresholds, noise=sigma, window=n)


def test_single_samples():
    _assert_same(_samples(300), [1] * 300, "db2", 3, 0.5)


def test_latency_is_the_least_possible():
    """The last sample taken in changes the last one that is due, 8 being what a step makes due."""
    for wavelet, level, expected in [("db8", 5, 465), ("haar", 3, 7), ("bior3.5", 2, 33)]:
        online = wavefilt.OnlineDenoiser(wavelet, level, 0.0001)
        assert online.latency == expected
    x, due = _samples(64), []
    for change in (0, 1e3):
        x[63] += change
        due.append(wavefilt.OnlineDenoiser("db2", 3, 0.5).push(x))
    assert due[0][-1] != due[1][-1]
    assert np.array_equal(due[0][:-8], due[1][:-8])


def test_the_end_begins_anew():
    online = wavefilt.OnlineDenoiser("db4", 3, 0.5)
    x = _samples(700)
    first = streamed(online, x, [50, 200])
    assert np.array_equal(streamed(online, x, [1, 2, 3]), first)
    assert online.flush().shape == (0,)


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
            details.append(apply("soft", d, 0.5))
        for d in reversed(details):
            a = pywt.idwt(a[: len(d)], d, bank, mode)
        y = streamed(wavefilt.OnlineDenoiser(bank, level, 0.5, mode=mode), x, [5, 9])
        assert np.array_equal(y, a[:n])


def test_thresholds_of_zero_leave_every_bit():
    x = _samples(500)
    assert np.array_equal(streamed(wavefilt.OnlineDenoiser("db4", 3, 0), x, [30] * 10), x)


def _running(x, wavelet, level, window, threshold):
    """Denoise with running thresholds written out detail by detail: ``threshold(details known, sigma)``."""
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
    for d in reversed(details):
        a = pywt.idwt(a[: len(d)], d, wavelet, "symmetric")
    return a[: len(x)]


def _bayes(known, sigma):
    power = np.mean(known**2)
    if sigma == 0:
        return 0.0
    return sigma**2 / np.sqrt(power - sigma**2) if power > sigma**2 else np.inf


@pytest.mark.parametrize("sizes", [[], [1] * 50, [333, 0, 700]])
@pytest.mark.parametrize(
    ("rule", "threshold"), [("bayes", _bayes), ("universal", lambda known, sigma: sigma * np.sqrt(2 * np.log(600)))]
)
def test_running_noise_is_the_median_of_the_window(rule, threshold, sizes):
    x = _samples(2500)
    online = wavefilt.OnlineDenoiser("db4", 3, rule, window=600)
    np.testing.assert_allclose(streamed(online, x, sizes), _running(x, "db4", 3, 600, threshold), atol=1e-12)


def test_bayes_with_given_noise_and_running_power():
    x = _samples(2500)
    online = wavefilt.OnlineDenoiser("db4", 3, "bayes", noise=0.4, window=600)
    expected = _running(x, "db4", 3, 600, lambda known, sigma: _bayes(known, 0.4))
    np.testing.assert_allclose(streamed(online, x, [100] * 9), expected, atol=1e-12)


def test_running_noise_follows_the_noise():
    rng = np.random.default_rng(4)
    noise = rng.standard_normal(40000) * np.where(np.arange(40000) < 20000, 0.1, 2)
    online = wavefilt.OnlineDenoiser("db8", 4, "universal", window=2000)
    y = streamed(online, noise, [512] * 60)
    for part in (slice(4000, 19000), slice(24000, 39000)):
        assert np.std(y[part]) < 0.35 * np.std(noise[part])


def test_channels_have_thresholds_of_their_own():
    x = _samples(1500, 2)
    x[1] *= 50
    both = streamed(wavefilt.OnlineDenoiser("db4", 3, window=400, channels=2), x, [90] * 9)
    for channel in (0, 1):
        alone = streamed(wavefilt.OnlineDenoiser("db4", 3, window=400), x[channel], [40] * 9)
        np.testing.assert_allclose(both[channel], alone, rtol=1e-12, atol=1e-12)


def test_memory_does_not_grow():
    online = wavefilt.OnlineDenoiser("db8", 5, window=1000)
    held = []
    for _ in range(60):
        online.push(_samples(640))
        parts = [online._waiting, online._ready, *(s._recent for s in online._shrinkers)]
        parts += [part for there in online._there for part in [there._kept]]
        parts += [part for back in online._back for part in (back._approximations, back._details)]
        held.append(sum(part.size for part in parts))
    assert max(held[20:]) == max(held[40:]) < 4000


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


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_a_masked_sample_is_a_gap_whatever_lies_under_the_mask(dtype):
    x = np.ma.masked_array(np.ones((2, 64), dtype), mask=False)
    x[1, 10] = np.ma.masked
    x.data[1, 10] = 1_000_000
    online = wavefilt.OnlineDenoiser("haar", 2, 1.0, channels=2)
    with pytest.raises(ValueError, match=r"sample 10 of this push is nan \(channel 1\): .* flush"):
        online.push(x)
    np.testing.assert_allclose(online.push(x[:, :10]), np.ones((2, 7)), rtol=1e-12)
    with pytest.raises(ValueError, match="sample 3 of this push is nan"):
        wavefilt.OnlineDenoiser("haar", 2, 1.0).push(x[1, 7:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "sure", "window": 99}, "rule='sure' needs the whole trace; online are universal, minimax, bayes, js"),
        ({"rule": "blockjs", "window": 99}, "rule='blockjs' needs the whole trace"),
        ({"rule": "median"}, "rule='median' is not one of"),
        ({"rule": "universal", "noise": 1.0}, "rule='universal' needs window"),
        ({}, "rule='bayes' needs window"),
        ({"window": 1}, "window=1 must be"),
        ({"rule": [1, 2], "level": 3}, "2 thresholds for 3 levels"),
        ({"noise": [1, 2], "level": 3, "window": 99}, "one for each of the 3 levels"),
        ({"noise": -1.0, "window": 99}, "noise=-1.0 must be"),
        ({"noise": "global", "window": 99}, "noise='global' must be 'running'"),
        ({"level": 0, "window": 99}, "level=0 must be"),
        ({"mode": "periodic", "window": 99}, "mode='periodic' joins the ends"),
        ({"dtype": "int16", "window": 99}, "neither float32 nor float64"),
        ({"channels": 0, "window": 99}, "channels=0 must be"),
        ({"level": None, "window": 99}, "level=None must be a whole number of at least 1"),
        ({"level": -1, "window": 99}, "level=-1 must be a whole number of at least 1"),
        ({"window": "100"}, "window='100' must be a whole number of at least 2"),
        ({"window": [5]}, r"window=\[5\] must be"),
        ({"window": True}, "window=True must be"),
        ({"channels": 2.5, "window": 99}, "channels=2.5 must be a whole number of at least 1"),
        ({"channels": "3", "window": 99}, "channels='3' must be"),
        ({"channels": True, "window": 99}, "channels=True must be"),
        ({"noise": {}, "window": 99}, "noise={} must be"),
        ({"noise": True, "window": 99}, "noise=True must be"),
        ({"noise": ["a"], "window": 99}, r"noise=\['a'\] must be"),
        ({"noise": [[1, 2, 3]], "level": 3, "window": 99}, r"noise=\[\[1, 2, 3\]\] must be"),
        ({"wavelet": "db99", "window": 99}, "unknown wavelet 'db99'"),
    ],
)
def test_what_cannot_be_done_online_is_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        wavefilt.OnlineDenoiser(**arguments)


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


def test_a_dead_channel_of_a_sliding_window_comes_back_bit_for_bit():
    x = np.random.default_rng(4).standard_normal((3, 900)).astype("f4")
    x[1], x[2, :600] = 3.7, -0.1
    online = wavefilt.OnlineDenoiser("db4", 3, window=256, channels=3, dtype="f4")
    y = np.concatenate([*(online.push(part) for part in np.split(x, 30, axis=1)), online.flush()], axis=1)
    assert np.array_equal(y[1], x[1])
    assert np.array_equal(y[2, : 600 - online.latency], x[2, : 600 - online.latency])
    assert not np.array_equal(y[2, 600:], x[2, 600:])
    np.testing.assert_allclose(y[2, :500], x[2, :500], atol=1e-5)
    again = np.concatenate([online.push(x), online.flush()], axis=1)  # a new stream
    assert np.array_equal(again[1], x[1])


def test_a_registered_mode_is_refused():
    from wavefilt.wavelets.boundary import EXTENSIONS

    EXTENSIONS.register("held", EXTENSIONS["constant"])
    try:
        with pytest.raises(
            ValueError, match=r"mode='held' is a registered mode, .*; online are zero, constant, .*smooth"
        ):
            wavefilt.OnlineDenoiser("haar", 1, 0.5, mode="held")
    finally:
        EXTENSIONS.unregister("held")

"""Estimates of noise: by level, from a window, running and in intervals; in samples, seconds, times and picks."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import product

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import run as run_command
from tests.support.checkout import usable_backends
from tests.support.signals import shrunk_details
from wavefilt.vocabulary import RULES

HOSTS = [name for name in usable_backends() if name != "cuda"]
HALF = 4096
QUIET, LOUD = slice(0, HALF), slice(HALF, 2 * HALF)
MAD = 0.6744897501960817


def five_times_louder(rng, rows=4):
    """Return white noise whose second half is five times louder."""
    x = rng.standard_normal((rows, 2 * HALF))
    x[:, LOUD] *= 5
    return x


def rest(x, y, part):
    """Return the root mean square of the denoised noise relative to the noise."""
    return np.sqrt(np.mean(y[:, part] ** 2) / np.mean(x[:, part] ** 2))


# ---- estimates


class TestEstimateSigma:
    @pytest.fixture
    def x(self):
        return np.random.default_rng(2).standard_normal((4, 2048)) * np.array([[1], [2], [5], [10]])

    @pytest.mark.parametrize(
        ("transform", "sigma"),
        [
            *product(["dwt", "modwt", "dtcwt"], ["level", "global", ("window", 100, 900), ("running", 600)]),
            ("wp", "level"),
            ("wp", "global"),
        ],
    )
    def test_white_noise_has_one_number_in_all_bands(self, x, transform, sigma):
        options = {"transform": transform, "sigma": sigma, "level": 3}
        found = wavefilt.estimate_sigma(x, by_band=True, **options)
        assert found.shape[1] == 4
        np.testing.assert_allclose(found, np.repeat([[1, 2, 5, 10]], len(found), axis=0), rtol=0.3)
        np.testing.assert_array_equal(wavefilt.estimate_sigma(x, **options), found[0])

    def test_change_points_may_be_a_list(self, x):
        found = [wavefilt.estimate_sigma(x, sigma=("intervals", points)) for points in ((512,), [512], np.array([512]))]
        np.testing.assert_array_equal(found, found[:1] * 3)
        assert wavefilt.compare(x, sigma=("intervals", [512]), rule="bayes").trials

    def test_shapes_follow_the_axes(self, x):
        assert wavefilt.estimate_sigma(x[0]).shape == ()
        assert wavefilt.estimate_sigma(x.reshape(2, 2, -1)).shape == (2, 2)
        np.testing.assert_array_equal(wavefilt.estimate_sigma(x.T, axis=0), wavefilt.estimate_sigma(x))
        sections = np.random.default_rng(0).standard_normal((3, 64, 128))
        assert wavefilt.estimate_sigma(sections, "db2", axes=(-2, -1)).shape == (3,)
        found = wavefilt.estimate_sigma(sections, "db2", axes=(-2, -1), by_band=True, level=2)
        assert found.shape == (6, 3)
        np.testing.assert_allclose(found, 1, rtol=0.3)

    def test_segments_dead_and_short_traces(self, x):
        for short in (wavefilt.estimate_sigma(x[:, :19]), wavefilt.estimate_sigma(x[:, :5], transform="modwt")):
            np.testing.assert_array_equal(short, np.full(4, np.nan))
        gappy = x.copy()
        gappy[0, 500:600] = np.nan
        gappy[1] = 3
        gappy[2, :] = np.nan
        gappy[3, 10:] = np.nan
        found = wavefilt.estimate_sigma(gappy)
        parts = [wavefilt.estimate_sigma(part) for part in (x[0, :500], x[0, 600:])]
        assert found[0] == pytest.approx(np.sqrt((500 * parts[0] ** 2 + 1448 * parts[1] ** 2) / 1948))
        assert found[1] == 0
        assert np.isnan(found[2:]).all()

    def test_levels_too_coarse_for_a_window_have_the_noise_of_finer_ones_or_their_own_median(self, rng):
        x = np.cumsum(rng.standard_normal((1, 4096)), axis=1)  # coarse levels have far more noise
        options = {"wavelet": "sym8", "level": 6, "rule": "js", "by_band": True}
        medians = wavefilt.estimate_sigma(x, **options)
        found = wavefilt.estimate_sigma(x, sigma=("window", 0, 200), **options)
        np.testing.assert_array_equal(found[4:], medians[4:])
        assert not np.array_equal(found[:3], medians[:3])
        short = {"sigma": ("window", 100, 130), "level": 5, "rule": "universal", "by_band": True}
        for transform, wavelet in (("dwt", "db2"), ("modwt", "db2"), ("dtcwt", None)):
            found = wavefilt.estimate_sigma(rng.standard_normal(1000), wavelet, transform=transform, **short)
            assert found[2:] == pytest.approx(found[2])
            assert found[2] != pytest.approx(found[1])

    def test_wrong_arguments(self, x):
        for wrong, options in ((x * 1j, {}), ("seismic.dat", {}), (x, {"rule": "baies"})):
            with pytest.raises((TypeError, ValueError, OSError)):
                wavefilt.estimate_sigma(wrong, **options)


class TestWindows:
    def test_noise_is_that_of_the_window(self, backend, rng):
        x = rng.standard_normal((2, 8192)) * [[1], [3]]
        x[:, 4000:] *= 20
        for rule, transform in (("universal", "dwt"), ("js", "dwt"), ("js", "modwt")):
            options = {"rule": rule, "transform": transform, "sigma": ("window", 100, 3500), "backend": backend}
            found = wavefilt.estimate_sigma(x, "sym8", by_band=True, level=6, **options)
            assert np.all(np.abs(found[:6] / [1, 3] - 1) < 0.3)
            pooled = wavefilt.estimate_sigma(x, "sym8", scope="record", level=6, **options)
            assert np.ptp(pooled) == 0
        x[0, 5000] = np.nan  # the window is for all segments of its trace
        whole = wavefilt.estimate_sigma(x, "sym8", sigma=("window", 100, 3500), backend=backend)
        assert np.all(np.abs(whole / [1, 3] - 1) < 0.3)

    def test_a_trace_alone_has_the_same_bits_as_among_others(self, backend, rng):
        x, options = rng.standard_normal((40, 600)), {"rule": "js", "sigma": ("window", 0, 300), "backend": backend}
        alone = [wavefilt.denoise(trace, **options) for trace in x]
        assert np.array_equal(wavefilt.denoise(x, **options), alone)

    def test_what_comes_before_a_pick_is_a_window(self, rng):
        x = rng.standard_normal((2, 3000))
        x[:, 1200:] += 10 * np.sin(np.arange(1800) / 4)
        found, expected = (wavefilt.denoise(x, sigma=sigma) for sigma in (("before", 1100, 900), ("window", 200, 1100)))
        assert np.array_equal(found, expected)


# ---- noise that changes along a trace


class TestThresholdsByFormula:
    """Thresholds of one level, computed from how much each remaining coefficient became smaller."""

    @pytest.fixture
    def d(self, rng):
        return rng.standard_normal(1000) * np.linspace(1, 3, 1000) * np.where(rng.random(1000) < 0.1, 30, 1)

    @staticmethod
    def check(d, sigma, wanted):
        y = shrunk_details(d, rule="universal", sigma=sigma)
        left = np.abs(y) > 1e-9
        assert left.sum() > 50
        found = (np.abs(d) - np.abs(y))[left] / np.sqrt(2 * np.log(2 * len(d)))
        np.testing.assert_allclose(found, wanted[left], rtol=1e-9)

    @pytest.mark.parametrize("length", [200, 320, 1500])
    def test_running(self, d, length):
        """Medians of half-overlapping blocks as long as the window, interpolated linearly between their centres."""
        half, count = length // 4, len(d)
        blocks = max(count // half - 1, 1)
        ends = [(b + 2) * half for b in range(blocks - 1)] + [count]
        medians = [np.median(np.abs(d[b * half : end])) / MAD for b, end in enumerate(ends)]
        middles = (np.arange(blocks) + 1) * half - 0.5
        self.check(d, ("running", length), np.interp(np.arange(count), middles, medians))

    def test_intervals(self, d):
        parts = np.split(d, [350, 700])
        wanted = np.concatenate([np.full(len(p), np.median(np.abs(p)) / MAD) for p in parts])
        self.check(d, ("intervals", [700, 1400]), wanted)

    def test_a_short_interval_has_the_noise_around_it(self, d):
        d[350:352] = 100, -100
        y = shrunk_details(d, rule="universal", sigma=("intervals", [700, 704]))
        sigma = np.median(np.abs(d[335:367])) / MAD
        np.testing.assert_allclose(np.abs(y[350:352]), 100 - sigma * np.sqrt(2 * np.log(2000)), rtol=1e-9)


class TestLouderHalf:
    @pytest.mark.parametrize("sigma", [("running", 1024), ("intervals", [HALF])])
    @pytest.mark.parametrize("transform", ["dwt", "modwt"])
    def test_keeps_no_more_noise_than_the_quiet_one(self, backend, rng, transform, sigma):
        x = five_times_louder(rng)
        steady = wavefilt.denoise(x, transform=transform, backend=backend)
        assert rest(x, steady, LOUD) == pytest.approx(0.83, abs=0.03)
        assert rest(x, steady, QUIET) == pytest.approx(0.34, abs=0.04)
        y = wavefilt.denoise(x, transform=transform, sigma=sigma, backend=backend)
        assert rest(x, y, QUIET) < 0.2  # 1/32 of the energy is in the approximation
        assert rest(x, y, LOUD) == pytest.approx(rest(x, y, QUIET), rel=0.1)

    @pytest.mark.parametrize("rule", RULES)
    @pytest.mark.parametrize("name", HOSTS)
    def test_by_every_rule(self, name, rule, rng):
        x = five_times_louder(rng)
        most = {"js": 0.15, "sure": 0.28, "hybrid": 0.25, "bivariate": 0.3}.get(rule, 0.25)
        left = rest(x, wavefilt.denoise(x, rule=rule, sigma=("running", 1024), backend=name), LOUD)
        assert left < most
        if rule not in ("universal", "minimax"):
            assert left < 0.6 * rest(x, wavefilt.denoise(x, rule=rule, backend=name), LOUD)

    def test_the_signal_stays(self, rng):
        """A wave in either half loses no more than in noise that is as loud everywhere.

        Nearer to the step than half a window σ is between the two, and noise of the loud half passes.
        """
        t = np.arange(2 * HALF)
        wave = sum(a * np.exp(-(((t - at) / 60) ** 2)) * np.sin(t / 3) for a, at in ((8, 2000), (40, 6000)))
        x = five_times_louder(rng, 16) + wave
        for rule in ("bayes", "js"):
            y = wavefilt.denoise(x, rule=rule, sigma=("running", 1024))
            for part, away in ((QUIET, slice(0, HALF - 512)), (LOUD, slice(512, HALF))):
                alone = wavefilt.denoise(x[:, part], rule=rule)
                error, steady = (np.mean((v - wave[part])[:, away] ** 2) for v in (y[:, part], alone))
                assert error < 1.35 * steady


class TestSpecialTraces:
    def test_a_stretch_of_zeros_has_the_noise_of_its_neighbours(self, backend, rng):
        """Some recorders fill gaps with zeros."""
        x = rng.standard_normal((2, 6000))
        x[0, 2000:3500] = 0
        for rule in ("bayes", "js"):
            options = {"level": 4, "rule": rule, "sigma": ("running", 500), "backend": backend}
            y = wavefilt.denoise(x, "db4", **options)
            found = wavefilt.estimate_sigma(x, "db4", by_band=True, **options)
            assert np.all((found > 0.6) & (found < 1.2))
            assert np.abs(y[0, 2100:3400]).max() < (1e-9 if rule == "bayes" else 0.2)
            assert rest(x, y, slice(0, 1500)) < 0.35

    def test_a_window_longer_than_the_trace_is_the_whole_trace(self, backend, rng):
        x = rng.standard_normal((3, 1000))
        for rule in ("bayes", "js"):
            steady = wavefilt.denoise(x, "db4", rule=rule, backend=backend)
            for sigma in (("running", 9000), ("intervals", [5000])):
                assert np.allclose(wavefilt.denoise(x, "db4", rule=rule, sigma=sigma, backend=backend), steady)


@pytest.mark.parametrize("sigma", [("running", 700), ("intervals", [900, 2000])])
class TestEveryKind:
    @pytest.mark.parametrize("transform", ["dwt", "modwt"])
    @pytest.mark.parametrize("rule", ["universal", "js"])
    def test_complex_samples(self, rng, sigma, transform, rule):
        """The noise is estimated by the median of the modulus."""
        x = five_times_louder(rng) + 1j * five_times_louder(rng)
        sigma = ("intervals", [HALF]) if isinstance(sigma[1], list) else sigma
        y = wavefilt.denoise(x, rule=rule, sigma=sigma, transform=transform)
        ratios = [np.linalg.norm(y[:, part]) / np.linalg.norm(x[:, part]) for part in (QUIET, LOUD)]
        assert max(ratios) < 0.3
        single = wavefilt.denoise(x.astype("c8"), rule=rule, sigma=sigma, transform=transform)
        assert single.dtype == "c8"
        assert np.abs(single - y).max() < 1e-3

    def test_gaps_cut_a_trace_and_dead_ones_stay(self, backend, rng, sigma):
        x = rng.standard_normal((4, 3000)) * np.exp(np.sin(np.arange(3000) / 400))
        x[0, 1100] = np.nan
        x[1] = 3.5
        x[2, 500:] = np.nan
        for scope in ("trace", "record"):
            for rule in ("bayes", "js"):
                y = wavefilt.denoise(x, "db4", rule=rule, sigma=sigma, scope=scope, backend=backend)
                assert np.array_equal(np.isnan(y), np.isnan(x))
                assert np.array_equal(y[1], x[1])
                assert np.nanstd(y[[0, 2, 3]]) < 0.6 * np.nanstd(x[[0, 2, 3]])
        alone = wavefilt.denoise(x[0, :1100], "db4", sigma=sigma, backend=backend)
        segments = wavefilt.denoise(x, "db4", sigma=sigma, backend=backend)
        assert np.allclose(segments[0, :1100], alone, atol=1e-10)

    def test_change_points_are_samples_of_the_trace_whatever_segment_has_them(self, rng, sigma):
        x = five_times_louder(rng, 1)
        x[0, 100] = np.nan
        y = wavefilt.denoise(x, sigma=("intervals", [HALF]) if sigma[0] == "intervals" else sigma)
        assert rest(x, y, LOUD) < 0.22


# ---- noise told in seconds, times and picks

START = np.datetime64("2026-03-01T12:00:00.25", "ns")


def at(seconds):
    return START + np.timedelta64(round(seconds * 1e9), "ns")


def one_trace(start=START):
    """Return a recording of 30 s whose second half is louder."""
    x = np.random.default_rng(3).standard_normal((1, 3000)) * np.where(np.arange(3000) < 1500, 1, 3)
    return wavefilt.Recording(x, (0.01,), "npy", None, "x.npy", ids=("XX.A",), starts=(start,))


@pytest.mark.parametrize(
    ("sigma", "expected"),
    [
        ("level", "level"),
        (2.5, 2.5),
        (("window", at(0.1), at(5)), ("window", 10, 500)),
        (("seconds", 0, 7.5), ("window", 0, 750)),
        (("before", at(12), 10), ("window", 200, 1200)),
        (("before", 12, 10.0), ("window", 200, 1200)),
        (("before", "2026-03-01T12:00:12.25Z", 10), ("window", 200, 1200)),
        (("before", datetime(2026, 3, 1, 12, 0, 12, 250_000), 10), ("window", 200, 1200)),
        (
            ("before", datetime(2026, 3, 1, 14, 0, 12, 250_000, timezone(timedelta(hours=2))), 10),
            ("window", 200, 1200),
        ),
        (("running", 20), ("running", 2000)),
        (("intervals", [5, at(10)]), ("intervals", (500, 1000))),
        (("intervals", np.array([5.0, 10.0])), ("intervals", (500, 1000))),
        (("intervals", [-3, 5, 99]), ("intervals", (500,))),  # some traces end before
        (("intervals", [99]), ("intervals", (3000,))),
        (("intervals", [5, 1e308]), ("intervals", (500,))),
        (("running", 1e300), ("running", 10**30)),
    ],
)
def test_times_of_a_recording(sigma, expected):
    recording = one_trace()
    (y,) = recording.denoise(rule="universal", sigma=sigma).traces
    assert np.array_equal(y, wavefilt.denoise(recording.traces[0], rule="universal", sigma=expected))


@pytest.mark.parametrize(
    ("sigma", "more", "word"),
    [
        (("seconds", 5, 2), {}, "order"),
        (("seconds", 5, 40), {}, "30 s"),
        (("seconds", 5, 5.02), {}, "4 samples"),
        (("seconds", 5), {}, "seconds"),
        (("before", 4, 10), {}, "first sample"),
        (("before", at(-5), 1), {}, "first sample"),
        (("before", 4, np.nan), {}, "seconds"),
        (("before", 4, np.timedelta64(2, "s")), {}, "seconds"),
        (("before", "noon", 4), {}, "'noon'"),
        (("before", np.datetime64("NaT", "ns"), 4), {}, "time"),
        (("runing", 20), {}, "intervals"),
        (("intervals", 5), {}, "list"),
        (("before", at(3), 2), {"start": None}, "first sample"),
    ],
)
def test_times_that_make_no_sense(sigma, more, word):
    with pytest.raises(ValueError, match=word):
        one_trace(**more).denoise(sigma=sigma)


@pytest.fixture
def recording(rng):
    """Two traces with one wave; the second starts 2 s later and has half the sampling rate."""
    x, y = rng.standard_normal(3000), 3 * rng.standard_normal(1400)
    x[1500:] += 20 * np.sin(np.arange(1500) / 3)
    y[650:] += 60 * np.sin(np.arange(750) / 3)
    return wavefilt.Recording([x, y], (0.01, 0.02), "x", None, "rec", ids=("XX.A", "XX.B"), starts=(START, at(2)))


@pytest.mark.parametrize("rule", ["bayes", "js"])
def test_traces_of_a_recording_have_windows_of_their_own(recording, rule):
    options = {"wavelet": "db8", "transform": "dwt", "level": 5, "rule": rule}
    quiet = recording.denoise(**options, sigma=("before", at(14.5), 9))
    for trace, window, found in zip(recording.traces, ((550, 1450), (175, 625)), quiet.traces, strict=True):
        assert np.array_equal(found, wavefilt.denoise(trace, **options, sigma=("window", *window)))
    rows = {tuple(estimate.segments.rows) for estimate in quiet.outcome.estimates}
    assert rows == {(0,), (1,)}
    with pytest.raises(ValueError, match='scope="record" needs noise at the same samples'):
        recording.denoise(sigma=("before", at(14.5), 9), scope="record")


@pytest.mark.parametrize(
    ("option", "sigma"),
    [
        ("--noise-before 3 2", ("window", 500, 1500)),
        ("--noise-running 1.5", ("running", 750)),
        ("--noise-intervals 1,3", ("intervals", [500, 1500])),
    ],
)
def test_options_of_the_command(tmp_path, rng, capsys, option, sigma):
    x = five_times_louder(rng, 2)[:, HALF - 1500 : HALF + 1500].astype("f4")
    np.save(tmp_path / "x.npy", x)
    assert run_command(capsys, "denoise", tmp_path / "x.npy", "--dt", "0.002", *option.split())[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "x.denoised.npy"), wavefilt.denoise(x, sigma=sigma))

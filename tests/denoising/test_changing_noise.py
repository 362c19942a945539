"""Noise that changes along a trace: running, and in intervals between change points that are given or found."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import usable_backends
from wavefilt import backends
from wavefilt.denoising.pipeline import run
from wavefilt.errors import OptionError
from wavefilt.method import Method
from wavefilt.statistics.change_points import find
from wavefilt.statistics.changing_noise import LEAST, BlockTally, block_medians, curve_of, half_window, in_intervals
from wavefilt.thresholding.rules import MAD_TO_SIGMA
from wavefilt.vocabulary import RULES

HOSTS = [name for name in usable_backends() if name != "cuda"]
HALF = 4096
QUIET, LOUD = slice(0, HALF), slice(HALF, 2 * HALF)


def five_times_louder(rng, rows=4):
    """White noise whose second half is five times louder."""
    x = rng.standard_normal((rows, 2 * HALF))
    x[:, LOUD] *= 5
    return x


def rest(x, y, part):
    """The root mean square that is left of noise, as a share of what it was."""
    return np.sqrt(np.mean(y[:, part] ** 2) / np.mean(x[:, part] ** 2))


class TestLouderHalf:
    @pytest.mark.parametrize("sigma", [("running", 1024), ("intervals", [HALF]), ("intervals", "find")])
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
        y = wavefilt.denoise(x, rule=rule, sigma=("running", 1024), backend=name)
        assert rest(x, y, LOUD) < most
        assert rest(x, y, LOUD) < 0.6 * rest(x, wavefilt.denoise(x, rule=rule, backend=name), LOUD) or rule in (
            "universal",
            "minimax",
        )

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


class TestCurves:
    @pytest.mark.parametrize(("count", "half"), [(1, 16), (17, 16), (40, 16), (64, 16), (79, 16), (1000, 17)])
    def test_are_those_of_the_formula(self, rng, count, half):
        band = rng.standard_normal((2, count)) * np.linspace(1, 3, count)
        blocks = max(count // half - 1, 1)
        ends = [min((b + 2) * half, count) for b in range(blocks)]
        ends[-1] = count
        medians = [np.median(np.abs(band[:, b * half : end]), axis=1) for b, end in enumerate(ends)]
        middles = (np.arange(blocks) + 1) * half - 0.5
        wanted = [np.interp(np.arange(-5, count + 5), middles, MAD_TO_SIGMA * own) for own in np.transpose(medians)]
        found = curve_of(block_medians(band, half), half).at(-5, count + 5, np.dtype("f8"))
        assert np.allclose(found, wanted, rtol=1e-14)

    def test_any_part_of_a_curve_has_its_bits(self, rng):
        band = rng.standard_normal((1, 3000)).astype("f4")
        for curve in (curve_of(block_medians(band, 50), 50), in_intervals(band, np.array([0, 700, 700, 2999]), 32)):
            whole = curve.at(0, 3000, band.dtype)
            for first, last in ((0, 1), (37, 951), (700, 701), (2998, 3000), (650, 2999)):
                assert np.array_equal(curve.at(first, last, band.dtype), whole[:, first:last])

    @pytest.mark.parametrize(("count", "half"), [(5, 16), (33, 16), (1000, 16), (1003, 100), (1099, 100)])
    def test_medians_of_parts_in_any_order(self, rng, count, half):
        band = rng.standard_normal(count).astype("f4")
        cuts = np.unique([0, *rng.integers(0, count, 9).tolist(), count])
        tally = BlockTally(count, half)
        for i in rng.permutation(len(cuts) - 1):
            tally.add(int(cuts[i]), band[cuts[i] : cuts[i + 1]])
        assert np.array_equal(tally.medians, block_medians(band[None], half))

    def test_samples_that_are_all_equal_have_the_noise_of_their_neighbours(self, backend, rng):
        """A stretch of zeros, as some recorders fill gaps with, makes no block without noise, nor a jump in others."""
        x = rng.standard_normal((2, 6000))
        x[0, 2000:3500] = 0
        for rule in ("bayes", "js"):
            method = Method("db4", 4, rule=rule, sigma=("running", 500))
            outcome = run(x, method, backend)
            (found,) = outcome.estimates
            assert np.all((found.sigma > 0.6) & (found.sigma < 1.2))
            assert np.abs(outcome.samples[0, 2100:3400]).max() < (1e-9 if rule == "bayes" else 0.2)
            assert rest(x, outcome.samples, slice(0, 1500)) < 0.35

    def test_a_window_longer_than_the_trace_is_the_whole_trace(self, backend, rng):
        x = rng.standard_normal((3, 1000))
        for rule in ("bayes", "js"):
            steady = wavefilt.denoise(x, "db4", rule=rule, backend=backend)
            assert np.allclose(wavefilt.denoise(x, "db4", rule=rule, sigma=("running", 9000), backend=backend), steady)
            one = wavefilt.denoise(x, "db4", rule=rule, sigma=("intervals", [5000]), backend=backend)
            assert np.allclose(one, steady)

    def test_coarse_levels_have_longer_windows(self):
        assert [half_window(3000, j, 1 << j) for j in (1, 5, 9)] == [750, 46, LEAST // 2]
        assert [half_window(3000, j, 1) for j in (1, 5, 9)] == [1500, 1500, LEAST // 2 << 9]

    def test_noise_in_an_interval_is_that_of_a_trace_of_its_own(self, rng):
        band = five_times_louder(rng)
        curve = in_intervals(band, np.array([HALF]), LEAST)
        for part in (QUIET, LOUD):
            alone = MAD_TO_SIGMA * np.median(np.abs(band[:, part]), axis=1)
            assert np.allclose(curve.at(part.start, part.stop, band.dtype), alone[:, None], rtol=1e-14)
        short = in_intervals(band, np.array([HALF, HALF + 2]), LEAST)
        around = MAD_TO_SIGMA * np.median(np.abs(band[:, HALF - 15 : HALF + 17]), axis=1)
        assert np.allclose(short.at(HALF, HALF + 2, band.dtype), around[:, None])


@pytest.mark.parametrize("sigma", [("running", 700), ("intervals", [900, 2000]), ("intervals", None)])
class TestEveryKind:
    @pytest.mark.parametrize("transform", ["dwt", "modwt"])
    @pytest.mark.parametrize("rule", ["bayes", "js", "universal", "ebayes"])
    def test_backends_agree(self, rng, sigma, transform, rule):
        x = rng.standard_normal((3, 3001)) * np.exp(np.sin(np.arange(3001) / 400))
        options = {"sigma": sigma, "transform": transform, "rule": rule}
        y = wavefilt.denoise(x, backend="pywavelets", **options)
        for name in HOSTS:
            assert np.allclose(wavefilt.denoise(x, backend=name, **options), y, atol=1e-10)
            single = wavefilt.denoise(x.astype("f4"), backend=name, **options)
            assert single.dtype == np.float32
            assert np.abs(single - y).max() < 1e-3

    @pytest.mark.parametrize("transform", ["dwt", "modwt"])
    @pytest.mark.parametrize("rule", ["universal", "js", "ebayes"])
    def test_complex_samples(self, rng, sigma, transform, rule):
        """Noise by the median of the modulus: both parts as noise of their own would be, but for a factor."""
        x = five_times_louder(rng) + 1j * five_times_louder(rng)
        sigma = ("intervals", [HALF]) if isinstance(sigma[1], list) else sigma
        y = wavefilt.denoise(x, rule=rule, sigma=sigma, transform=transform)
        ratios = [np.linalg.norm(y[:, part]) / np.linalg.norm(x[:, part]) for part in (QUIET, LOUD)]
        assert max(ratios) < 0.3
        single = wavefilt.denoise(x.astype("c8"), rule=rule, sigma=sigma, transform=transform)
        assert single.dtype == "c8"
        assert np.abs(single - y).max() < 1e-3

    @pytest.mark.parametrize("rule", ["bayes", "js", "sure"])
    def test_scaling_scales(self, rng, sigma, rule):
        x = five_times_louder(rng)
        y = wavefilt.denoise(x, rule=rule, sigma=sigma)
        assert np.allclose(wavefilt.denoise(1e9 * x, rule=rule, sigma=sigma), 1e9 * y)

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

    def test_kept_levels_spins_detrend_and_blend(self, rng, sigma):
        sigma = ("intervals", [HALF]) if isinstance(sigma[1], list) else sigma
        x = five_times_louder(rng) + 100
        kept = wavefilt.denoise(x, "db4", level=4, keep=2, sigma=sigma, mode="periodization")
        for i in (1, 2):
            before, after = (wavefilt.wavedec(v, "db4", "periodization", 4)[i] for v in (x, kept))
            assert np.allclose(before, after, atol=1e-10)
        spun = wavefilt.denoise(x, sigma=sigma, spins=4, detrend="mean", blend=0.1)
        plain = wavefilt.denoise(x, sigma=sigma, spins=4, detrend="mean")
        assert np.allclose(spun, plain + 0.1 * (x - plain))
        assert rest(x - 100, plain - 100, LOUD) < 0.2

    def test_a_report_has_the_mean_noise(self, rng, sigma):
        x = five_times_louder(rng)
        sigma = ("intervals", [HALF]) if isinstance(sigma[1], list) else sigma
        for scope, transform in (("trace", "dwt"), ("record", "modwt")):
            method = Method(rule="universal", sigma=sigma, scope=scope, transform=transform)
            (found,) = run(x, method, report=True).estimates
            white = method.noise_gains(5)
            assert np.all(np.abs(found.sigma[:3] / white[:3] / 3 - 1) < 0.1)
            n = x.size if scope == "record" else 2 * HALF
            assert np.allclose(found.thresholds, found.sigma * np.sqrt(2 * np.log(n)))


class TestFinding:
    @pytest.mark.parametrize("ratio", [1.6, 3.0, 10.0])
    def test_points_of_synthetic_noise(self, ratio):
        """Within two blocks, 128 details, of where the noise gets louder and quieter again."""
        for seed in range(20):
            d = np.random.default_rng(seed).standard_normal(8192)
            d[2500:5200] *= ratio
            found = find(np.abs(d))
            assert len(found) == 2
            assert np.abs(np.array(found) - [2500, 5200]).max() < (128 if ratio < 2 else 64)

    def test_steady_noise_has_none(self):
        false = [len(find(np.abs(np.random.default_rng(seed).standard_normal(4000)))) for seed in range(200)]
        assert sum(false) <= 2

    @pytest.mark.parametrize("dtype", ["f4", "f8"])
    def test_outliers_and_short_waves_are_no_change(self, rng, dtype):
        d = rng.standard_normal(8192)
        d[rng.integers(0, 8192, 80)] *= 100
        d[4000:4012] += 50
        assert find(np.abs(d).astype(dtype)) == []

    @pytest.mark.parametrize("count", [0, 1, 40, 255])
    def test_too_few_details_have_none(self, rng, count):
        d = rng.standard_normal(count)
        d[count // 2 :] *= 50
        assert find(np.abs(d)) == []

    def test_silence_is_an_interval(self, rng):
        d = rng.standard_normal(4096)
        d[1024:2048] = 0
        assert find(np.abs(d)) == [1024, 2048]
        assert find(np.zeros(4096)) == []

    def test_every_partition_is_tried(self, rng):
        """Against all of two points, the least squares with the penalty."""
        from wavefilt.statistics.change_points import _partition

        for _ in range(20):
            v = rng.standard_normal(24) + np.repeat(rng.normal(0, 3, 3), 8)
            edges = [e for a in range(25) for b in range(a, 25) for e in [tuple(sorted({a, b} - {0, 24}))]]
            costs = {}
            for own in edges:
                parts = np.split(v, own)
                if min(map(len, parts)) >= 3:
                    costs[own] = sum(((p - p.mean()) ** 2).sum() for p in parts) + 9.0 * len(own)
            found = tuple(_partition(v, 3, 9.0))
            if len(found) <= 2:
                assert found == min(costs, key=costs.get)


def test_what_comes_before_a_pick_is_a_window(rng):
    x = rng.standard_normal((2, 3000))
    x[:, 1200:] += 10 * np.sin(np.arange(1800) / 4)
    for rule in ("bayes", "js"):
        y = wavefilt.denoise(x, rule=rule, sigma=("before", 1100, 900))
        assert np.array_equal(y, wavefilt.denoise(x, rule=rule, sigma=("window", 200, 1100)))
    assert Method(sigma=("before", 1100, 900)) == Method(sigma=("window", 200, 1100))


def test_devices_leave_it_to_the_host():
    class Device(type(backends.get("pywavelets"))):
        device = True

    x = np.random.default_rng(0).standard_normal((2, 2000))
    outcome = run(x, Method(sigma=("running", 300)), Device())
    assert not backends.get(outcome.backend).device
    assert np.allclose(outcome.samples, wavefilt.denoise(x, sigma=("running", 300)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sigma": ("running",)}, r'must be \("running", length\), in samples'),
        ({"sigma": ("running", 3)}, "of 3 samples, must have 4 or more"),
        ({"sigma": ("running", 300.5)}, r'must be \("running", length\)'),
        ({"sigma": ("running", "300")}, r'must be \("running", length\)'),
        ({"sigma": ("runing", 300)}, "must be .*running.* or .*intervals"),
        ({"sigma": ()}, "must be .*window"),
        ({"sigma": ["running", 300]}, "must be level, global, a finite number"),
        ({"sigma": ("intervals",)}, "must be .*change points"),
        ({"sigma": ("intervals", [])}, "must be samples above 0 in order"),
        ({"sigma": ("intervals", [300, 200])}, "must be samples above 0 in order"),
        ({"sigma": ("intervals", [0, 200])}, "must be samples above 0 in order"),
        ({"sigma": ("intervals", [1.5])}, "must be samples above 0 in order"),
        ({"sigma": ("intervals", 300)}, "must be samples above 0 in order"),
        ({"sigma": ("intervals", "fnd")}, "must be samples above 0 in order"),
        ({"sigma": ("before", 100, 200)}, "from sample -100 to 100 must have 4 samples or more"),
        ({"sigma": ("before", 100)}, r'must be \("before", pick, length\)'),
        ({"sigma": ("running", 300), "rule": 0.5}, "use one of the rules universal, .*js.*, or leave sigma out"),
        ({"sigma": ("intervals", None), "rule": [0.5, 1.0], "level": 2}, "rule=.* is a threshold in the units"),
        ({"sigma": ("running", 300), "axes": (0, 1)}, "is for traces"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(ValueError, match=words):
        wavefilt.denoise(np.zeros((64, 600)), "haar", **options)


@pytest.mark.parametrize("sigma", [("runing", 300), ("running",), ("window", 1.5, 9), ()])
def test_a_tuple_that_is_no_noise_is_a_wrong_option(sigma):
    with pytest.raises(OptionError, match="must be"):
        wavefilt.denoise(np.zeros(600), "haar", sigma=sigma)

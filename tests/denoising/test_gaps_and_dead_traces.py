"""Gaps, masked samples and dead traces: left out of every estimate, and returned as they are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from tests.support.checkout import usable_backends
from tests.support.signals import gather, noisy_chirp, partly_dead, section

HOSTS = [name for name in usable_backends() if name != "cuda"]


class TestGaps:
    def test_pieces_are_denoised_as_traces_of_their_own(self, backend, rng):
        x = noisy_chirp(rng, samples=1000)[1][0]
        x[400:450] = np.nan
        y = wavefilt.denoise(x, backend=backend)
        assert np.array_equal(np.isnan(y), np.isnan(x))
        rounding = 1e-14 if backend == "cuda" else 0  # there thresholds of whole batches are computed on the device
        for piece in (slice(400), slice(450, None)):
            np.testing.assert_allclose(y[piece], wavefilt.denoise(x[piece], backend=backend), rtol=0, atol=rounding)

    def test_masked_samples_are_gaps_and_keep_their_data(self, backend, rng):
        data = noisy_chirp(rng, traces=2, samples=500)[1]
        x = np.ma.masked_array(data, mask=np.zeros_like(data, bool))
        x[1, 100:130] = np.ma.masked
        y = wavefilt.denoise(x, backend=backend)
        assert isinstance(y, np.ma.MaskedArray)
        assert np.array_equal(y.mask, x.mask)
        assert np.array_equal(y.data[1, 100:130], data[1, 100:130])
        rounding = 1e-14 if backend == "cuda" else 0  # there thresholds of whole batches are computed on the device
        for piece, there in ((data[0], y.data[0]), (data[1, 130:], y.data[1, 130:])):
            np.testing.assert_allclose(there, wavefilt.denoise(piece, backend=backend), rtol=0, atol=rounding)

    @pytest.mark.parametrize("dtype", ["f8", "i8"])
    def test_a_list_of_masked_arrays(self, rng, dtype):
        data = (100 * rng.standard_normal((2, 300))).astype(dtype)
        data[1, 100:130] = 10**6
        x = np.ma.masked_array(data, data == 10**6)
        y, expected = wavefilt.denoise([x[0], x[1]]), wavefilt.denoise(x)
        assert y.dtype == np.float64
        assert np.array_equal(y.mask, x.mask)
        assert np.array_equal(y.filled(0), expected.filled(0))

    def test_all_gap_and_short_pieces(self, backend):
        x = np.array([[np.nan] * 40, [1.0, np.nan, 2.0, 3.0] * 10])
        assert np.array_equal(wavefilt.denoise(x, backend=backend), x, equal_nan=True)

    def test_level_asked_for_is_capped_in_short_pieces(self, backend, rng):
        x = rng.standard_normal(1000)
        x[100] = np.nan
        y = wavefilt.denoise(x, level=6, backend=backend)
        assert np.array_equal(y[:100], wavefilt.denoise(x[:100], level=2, backend=backend))


class TestDeadTraces:
    @pytest.mark.parametrize("value", [-3.7, 1e-30])
    @pytest.mark.parametrize("mode", ["symmetric", "zero", "antisymmetric"])
    @pytest.mark.parametrize(
        "options", [{}, {"transform": "modwt"}, {"transform": "wp"}, {"spins": 3}, {"rule": "blockjs"}, {"rule": 0.5}]
    )
    def test_they_come_back_bit_for_bit(self, backend, rng, value, mode, options):
        for dtype in ("f4", "f8"):
            x = rng.standard_normal((4, 300)).astype(dtype)
            x[1], x[2, :100], x[2, 100], x[3, 99] = value, value, np.nan, x[3, 100]
            y, noise = wavefilt.denoise(x, "db4", mode=mode, backend=backend, return_residual=True, **options)
            assert np.array_equal(y[1], x[1])
            assert np.array_equal(y[2, :100], x[2, :100])  # a segment between gaps too
            assert not noise[1].any()
            assert not np.array_equal(y[0], x[0])
            assert not np.array_equal(y[2, 101:], x[2, 101:])

    def test_traces_without_noise_come_back_bit_for_bit(self, backend, rng):
        x = noisy_chirp(rng, traces=3, samples=600, dtype="f4")[1]
        x[1] = 0
        x[1, ::30] = 7  # sigma is 0, although some samples are not
        y = wavefilt.denoise(x, "db2", backend=backend, rule="universal", sigma="global")
        assert np.array_equal(y[1], x[1])
        assert not np.array_equal(y[0], x[0])
        assert wavefilt.estimate_sigma(x, "db2", sigma="global", backend=backend)[1] == 0


OPTIONS = [
    {"rule": "bayes"},
    {"rule": "universal"},
    {"rule": "universal", "sigma": 0.3},
    {"rule": "sure", "transform": "modwt"},
    {"rule": "bayes", "transform": "modwt"},
    {"rule": "neighblock"},
    {"rule": "js"},
    {"rule": "bayes", "detrend": "line", "blend": 0.1},
    {"rule": "minimax", "sigma": "global", "spins": 3},
    {"rule": "universal", "sigma": ("window", 400, 600)},
]


def with_gaps(x, dead):
    """Return traces with missing samples in live and dead traces, some in segments of equal length."""
    live, gone = np.flatnonzero(~dead), np.flatnonzero(dead)
    x = x.copy()
    x[live[:3], 100:130] = x[gone[:2], 100:130] = x[gone[2], :50] = x[gone[3]] = np.nan
    x[live[4], :90], x[live[4], 90] = 5, np.nan  # a segment of equal samples is not a dead trace
    return x


class TestRecordsWithDeadTraces:
    @pytest.mark.parametrize("options", OPTIONS, ids=str)
    @pytest.mark.parametrize("gaps", [False, True])
    @pytest.mark.parametrize("dtype", ["f4", "f8"])
    def test_live_traces_are_denoised_as_if_they_were_alone(self, backend, rng, options, gaps, dtype):
        x, dead = partly_dead(rng, dtype=dtype)
        x = with_gaps(x, dead) if gaps else x
        options = {"level": 3, "scope": "record", "backend": backend, **options}
        y, noise = wavefilt.denoise(x, "db4", return_residual=True, **options)
        np.testing.assert_array_equal(y[~dead], wavefilt.denoise(x[~dead], "db4", **options))
        np.testing.assert_array_equal(y[dead], x[dead])
        assert not np.array_equal(y[~dead], x[~dead])
        assert not np.nan_to_num(noise[dead]).any()

    @pytest.mark.parametrize("gap", [False, True])
    def test_no_live_trace(self, backend, gap):
        x = np.repeat([[0.0], [3.7], [-1.0]], 400, axis=1)
        x[1, 100:120] = np.nan if gap else x[1, 0]
        for rows in (x, x[:1], x[1]):
            np.testing.assert_array_equal(wavefilt.denoise(rows, scope="record", backend=backend), rows)

    def test_gaps_of_dead_traces_are_no_matter_to_a_noise_window(self, backend, rng):
        x, dead = partly_dead(rng)
        x[np.flatnonzero(dead)[0], 420:430] = np.nan
        options = {"scope": "record", "sigma": ("window", 400, 600), "backend": backend}
        np.testing.assert_array_equal(wavefilt.denoise(x, **options)[~dead], wavefilt.denoise(x[~dead], **options))
        first, *others = np.flatnonzero(~dead)  # a record has the noise of the traces without a gap in the window
        x[first, 420:430] = np.nan
        found, alone = (wavefilt.estimate_sigma(rows, **options) for rows in (x, x[others]))
        np.testing.assert_array_equal(found[others], alone)

    def test_an_infinite_sample_is_named_by_its_trace_among_all(self, backend, rng):
        x, dead = partly_dead(rng)
        for trace in (np.flatnonzero(~dead)[-1], np.flatnonzero(dead)[-1]):
            broken = x.copy()
            broken[trace, 77 if not dead[trace] else slice(None)] = np.inf
            with pytest.raises(wavefilt.errors.NonFiniteSample) as raised:
                wavefilt.denoise(broken, scope="record", backend=backend)
            assert (raised.value.trace, raised.value.sample) == (trace, 0 if dead[trace] else 77)

    def test_a_recording_counts_them(self, rng):
        x, dead = partly_dead(rng)
        recording = wavefilt.Recording(x, (0.004,) * len(x), "npy", None, "a.npy")
        for own in (recording, recording.denoise(scope="record")):
            assert (own.dead, own.live.tolist()) == (15, (~dead).tolist())


DEAD = {
    "one": [17],
    "first and last": [0, 59],
    "several side by side at both ends": [0, 1, 2, 30, 31, 57, 58, 59],
    "all but one": [i for i in range(60) if i != 20],
    "all": list(range(60)),
}


@pytest.mark.parametrize("backend", HOSTS)
class TestSections:
    @pytest.mark.parametrize("value", [0, 3.7, np.nan, "masked"])
    @pytest.mark.parametrize("which", DEAD.values(), ids=DEAD)
    def test_dead_and_missing_traces_stay_and_count_for_nothing(self, backend, rng, which, value):
        """The noise is that of the live traces alone, side by side."""
        _, x = section(rng, dtype="f4")
        x[which] = 5 if value == "masked" else value
        mask = np.isin(np.arange(60), which)[:, None] * np.ones((1, 90))
        given = np.ma.masked_array(x, mask) if value == "masked" else x
        y = wavefilt.denoise(given, "db2", level=2, axes=(0, 1), backend=backend)
        assert np.array_equal(np.ma.getdata(y)[which], x[which], equal_nan=True)
        live = np.setdiff1d(np.arange(60), which)
        assert np.isfinite(np.ma.getdata(y)[live]).all()
        if len(live) > 1:
            assert not np.array_equal(np.ma.getdata(y)[live], x[live])
            assert_allclose(np.ma.getdata(y)[live], x[live], atol=2)  # nothing of the dead traces' offset came in
            options = {"level": 2, "axes": (0, 1), "by_band": True, "backend": backend}
            found, alone = (wavefilt.estimate_sigma(v, "db2", **options) for v in (given, x[live]))
            assert_allclose(found, alone, rtol=1e-6)

    @pytest.mark.parametrize("rule", ["universal", "sure", "fdr", "ebayes", 0.4, [0.3, 0.5]])
    @pytest.mark.parametrize("scope", ["trace", "record"])
    @pytest.mark.parametrize("mode", ["symmetric", "reflect", "periodization"])
    def test_gaps_inside_traces_are_filled_and_come_back(self, backend, rng, rule, scope, mode):
        clean, x = section(rng, (3, 60, 90))
        gap = np.zeros(x.shape, bool)
        gap[0, 12, 30], gap[0, 13, 20:60], gap[0, 40], gap[2, :, 50:53] = True, True, True, True
        broken = np.where(gap, np.nan, x)
        options = {"wavelet": "db2", "level": 2, "rule": rule, "scope": scope, "mode": mode, "axes": (1, 2)}
        y = wavefilt.denoise(broken, **options, backend=backend)
        assert np.array_equal(np.isnan(y), gap)
        expected = wavefilt.denoise(x, **options, backend=backend)
        if scope == "trace":
            assert_allclose(y[1], expected[1], rtol=1e-12)
        assert np.linalg.norm((y - clean)[~gap]) < 1.1 * np.linalg.norm((expected - clean)[~gap])
        masked = np.ma.masked_array(np.where(gap, 1e30, x), gap)
        again = wavefilt.denoise(masked, **options, backend=backend)
        assert np.array_equal(again.mask, gap)
        assert np.array_equal(again.data, np.where(gap, 1e30, y))

    @pytest.mark.parametrize(
        "layout",
        [
            lambda x: (x, (0, 1)),
            lambda x: (x[::-1, ::-1], (0, 1)),
            lambda x: (x.T, (1, 0)),
            lambda x: (np.stack([x, x], axis=1), (0, -1)),
            lambda x: (x * np.exp(0.7j), (0, 1)),
            lambda x: ((1000 * np.nan_to_num(x)).astype("i2"), (0, 1)),
            lambda x: (x.astype(">f4"), (0, 1)),
        ],
        ids=["plain", "turned", "swapped", "batch", "complex", "integers", "big-endian"],
    )
    def test_dead_traces_of_any_array(self, backend, rng, layout):
        _, x = section(rng)
        x[5], x[5, 10:20] = 2, np.nan  # all that is left of a trace is equal
        x[7], x[30], x[31, 5:9] = 0, 3, np.nan
        given, axes = layout(x)
        before = given.copy()
        y = wavefilt.denoise(given, "db2", axes=axes, backend=backend)
        assert np.array_equal(given, before, equal_nan=True)
        last = np.moveaxis(given, axes, (-2, -1))
        dead = np.isnan(last) | (last == last[..., :1]).all(axis=-1)[..., None]
        assert dead.any()
        y = np.moveaxis(y, axes, (-2, -1))
        assert np.array_equal(y[dead], last[dead].astype(y.dtype), equal_nan=True)
        assert not np.array_equal(y[~dead], last[~dead])


@pytest.mark.parametrize("transform", ["dtcwt", "fk"])
def test_gaps_and_dead_traces_of_directional_transforms(rng, transform):
    """Live samples are denoised nearly as well as in the complete section."""
    clean, x = gather(rng, (96, 300))
    gappy = x.copy()
    gappy[10, 50:80], gappy[20], gappy[30], gappy[70:72, 50:250] = np.nan, np.nan, 2.5, np.nan
    y = wavefilt.denoise(gappy, transform=transform, axes=(0, 1))
    gone = np.isnan(gappy) | (gappy == 2.5)
    np.testing.assert_array_equal(y[gone], gappy[gone])
    whole = wavefilt.denoise(x, transform=transform, axes=(0, 1))
    assert np.std((y - clean)[~gone]) < 1.3 * np.std((whole - clean)[~gone])


@pytest.mark.parametrize("live", [0, 1, 2, 3])
@pytest.mark.parametrize("mode", ["symmetric", "reflect"])
def test_few_live_traces(rng, live, mode):
    x = np.zeros((12, 150))
    x[4 : 4 + live] = section(rng, (live, 150))[1]
    x[5, 20:30] = np.nan
    y = wavefilt.denoise(x, transform="fk", axes=(0, 1), mode=mode)
    assert_array_equal(np.isnan(y), np.isnan(x))
    assert_array_equal(y[8:], x[8:])
    assert np.nanvar(y - x) < np.nanvar(x) + 1e-30

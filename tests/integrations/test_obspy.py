"""ObsPy streams denoised: the samples that `wavefilt.denoise` gives, everything else as it was."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt

obspy = pytest.importorskip("obspy")

import wavefilt.obspy  # noqa: E402
from wavefilt.benchmarks.common.implementation import Mismatch  # noqa: E402
from wavefilt.benchmarks.throughput import obspy_streams as study  # noqa: E402


def _trace(samples, station="A", rate=100.0):
    return obspy.Trace(np.asarray(samples), {"network": "XX", "station": station, "sampling_rate": rate})


@pytest.fixture
def stream(rng):
    """Traces of two lengths and several dtypes, one masked, one with NaN, one without samples."""
    x = np.sin(np.arange(1200) / 15) + rng.standard_normal((6, 1200))
    gap = np.ma.MaskedArray(x[3], (np.arange(1200) > 500) & (np.arange(1200) < 540), fill_value=-1)
    holes = x[4].copy()
    holes[[0, 700, 701]] = np.nan
    kinds = [x[0], x[1].astype("f4"), (100 * x[2]).astype("i4"), gap, holes, x[5, :700], np.zeros(0, "i4")]
    return obspy.Stream([_trace(data, f"S{i}") for i, data in enumerate(kinds)])


def _later(trace, seconds):
    trace.stats.starttime += seconds
    return trace


def _same(found, expected):
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(expected))
    np.testing.assert_array_equal(np.ma.getdata(found), np.ma.getdata(expected))


@pytest.mark.parametrize("options", [{}, {"wavelet": "sym4", "rule": "sure", "level": 3, "return_noise": False}])
def test_each_trace_is_denoised_as_its_samples_are(stream, options, backend):
    before = stream.copy()
    quiet = wavefilt.obspy.denoise(stream, backend=backend, **options)
    for old, new in zip(stream, quiet, strict=True):
        expected = wavefilt.denoise(old.data, backend=backend, **options) if len(old.data) else old.data
        _same(new.data, expected)
        assert new.data.flags.c_contiguous
    assert not any(np.shares_memory(a.data, b.data) for a, b in zip(stream, quiet, strict=True))
    for old, kept in zip(before, stream, strict=True):  # the input is as it was
        _same(kept.data, old.data)
        assert kept.stats == old.stats


def test_a_stream_as_a_panel(rng):
    x = (100 * rng.standard_normal((24, 300))).astype("i2")
    x[3] = 0
    stream = obspy.Stream([_trace(row, f"S{i}") for i, row in enumerate(x)])
    stream[5].data = np.ma.MaskedArray(x[5], np.arange(300) < 20)
    stream[7].stats.starttime += 0.004
    quiet, noise = wavefilt.obspy.denoise(stream, "db3", two_dimensional=True, rule="sure", return_noise=True)
    filled = np.ma.array(x, mask=np.zeros(x.shape, bool))
    filled[5, :20] = np.ma.masked
    expected = wavefilt.denoise(filled, "db3", axes=(0, 1), rule="sure")
    for row, trace, removed in zip(expected, quiet, noise, strict=True):
        _same(np.ma.getdata(trace.data)[~np.ma.getmaskarray(row)], np.ma.compressed(row))
        assert "two_dimensional=True" in trace.stats.processing[-1]
        assert removed.data.dtype == trace.data.dtype
    assert np.ma.getmaskarray(quiet[5].data).sum() == 20
    assert wavefilt.obspy.denoise(obspy.Stream(), two_dimensional=True) == obspy.Stream()


@pytest.mark.parametrize("transform", ["dtcwt", "fk"])
def test_a_stream_as_a_panel_by_other_transforms(rng, transform):
    x = rng.standard_normal((24, 300))
    quiet = wavefilt.obspy.denoise(obspy.Stream(map(_trace, x)), transform=transform, two_dimensional=True)
    np.testing.assert_array_equal([t.data for t in quiet], wavefilt.denoise(x, transform=transform, axes=(0, 1)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s[:1].append(_trace(np.ones(50))), "one length, not of 50 to 300"),
        (lambda s: s[:1].append(_trace(np.ones(300), rate=50.0)), "one sampling rate, not of 50 to 100"),
        (lambda s: s[:1].append(_later(_trace(np.ones(300)), 0.006)), "begin together, not from 1970-01-01T00:00:00.0"),
        (lambda s: s[0], "is for a Stream, .* not for one Trace"),
    ],
)
def test_traces_that_are_no_panel(rng, change, words):
    stream = obspy.Stream([_trace(row) for row in rng.standard_normal((3, 300))])
    with pytest.raises(ValueError, match=words):
        wavefilt.obspy.denoise(change(stream), two_dimensional=True)


def test_what_was_removed(stream):
    quiet, noise = wavefilt.obspy.denoise(stream, return_noise=True, backend="pywavelets")
    for old, removed in zip(stream[:6], noise, strict=False):
        _same(removed.data, wavefilt.denoise(old.data, return_noise=True, backend="pywavelets")[1])
    assert noise[0].stats.processing[0].startswith("removed by wavefilt")
    assert [trace.stats.station for trace in noise] == [trace.stats.station for trace in quiet]


def test_a_record_shares_its_thresholds_whatever_the_lengths(stream):
    some = obspy.Stream([stream[0], stream[5], stream[4]])
    rows = np.full((3, 1200), np.nan)
    for row, trace in zip(rows, some, strict=True):
        row[: len(trace)] = trace.data
    expected = wavefilt.denoise(rows, scope="record", backend="pywavelets")
    for row, trace in zip(expected, wavefilt.obspy.denoise(some, scope="record", backend="pywavelets"), strict=True):
        np.testing.assert_array_equal(trace.data, row[: len(trace)])


def test_dead_traces_of_a_record_count_for_nothing(stream):
    options = {"scope": "record", "rule": "universal", "backend": "pywavelets"}
    live, dead = obspy.Stream([stream[0], stream[5]]), [_trace(np.full(n, 3.7), f"D{n}") for n in (900, 1200)]
    expected = wavefilt.obspy.denoise(live, **options)
    found = wavefilt.obspy.denoise(obspy.Stream([dead[0], *live, dead[1]]), **options)
    for trace, same in zip(found, [dead[0], *expected, dead[1]], strict=True):
        _same(trace.data, same.data)


def test_headers_are_kept_and_the_history_grows(stream):
    from obspy.core import inventory

    stream = stream[:3]
    stream.headers_of_the_file = {"line": 7}
    stream[0].stats.response = inventory.response.Response(resource_id="r")
    stream[0].stats.coordinates = {"x": 1.0}
    stream[0].trim(stream[0].stats.starttime + 1)
    quiet = wavefilt.obspy.denoise(stream, "db8", rule="universal", level=4, backend="pywavelets")
    assert quiet.headers_of_the_file == {"line": 7}
    history = quiet[0].stats.pop("processing")
    assert history[:-1] == stream[0].stats.pop("processing")
    assert quiet[0].stats == stream[0].stats
    assert quiet[0].stats.coordinates is not stream[0].stats.coordinates
    assert quiet[0].stats.response == stream[0].stats.response
    version, call = history[-1].split(": ")
    assert version == f"wavefilt {wavefilt.__version__}"
    assert call == (
        "denoise(backend='pywavelets'::keep=0::level=4::mode='symmetric'::rule='universal'::scope='trace'"
        "::shrink='soft'::sigma='level'::spins=1::transform='dwt'::wavelet='db8')"
    )
    assert isinstance(wavefilt.obspy.denoise(stream[0]), obspy.Trace)
    assert len(wavefilt.obspy.denoise(obspy.Stream())) == 0


def test_the_filter_that_obspy_finds(stream):
    stream = stream[:3] + stream[4:]  # ObsPy refuses masked traces in every filter
    before = stream.copy()
    assert stream.filter("wavelet", wavelet="sym8", rule="sure", backend="pywavelets") is stream
    for old, new in zip(before, stream, strict=True):
        if len(old.data):
            _same(new.data, wavefilt.denoise(old.data, "sym8", rule="sure", backend="pywavelets"))
    assert "filter(" in stream[0].stats.processing[-1]
    assert "type='wavelet'" in stream[0].stats.processing[-1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "baies"}, "rule='baies' is not one of universal, .*did you mean 'bayes'"),
        ({"ruel": "bayes"}, "option='ruel' is not one of level, mode, .*did you mean 'rule'"),
        ({"axis": 0}, "option='axis' is not one of level"),
        ({"backend": "cude"}, "backend='cude' is not one of auto"),
    ],
)
def test_words_that_are_not_known(stream, options, words):
    with pytest.raises(ValueError, match=words):
        wavefilt.obspy.denoise(stream, **options)
    old = stream[0].copy()
    with pytest.raises(ValueError, match=words):
        stream[0].filter("wavelet", **options)
    assert stream[0] == old


def test_traces_that_cannot_be_denoised_are_named(stream):
    with pytest.raises(ValueError, match=r"XX.S5..: level=6 is above the maximum of 5 for 700 samples"):
        wavefilt.obspy.denoise(stream, level=6)
    with pytest.raises(ValueError, match=r"XX.S0.., XX.S2.., XX.S3.. and 1 more: level=9 is above"):
        wavefilt.obspy.denoise(stream, level=9)
    stream[4].data[5] = np.inf
    with pytest.raises(ValueError, match=r"XX.S4.. from 1970-01-01T00:00:00.000000Z: infinite value at sample 5 "):
        wavefilt.obspy.denoise(stream)
    with pytest.raises(TypeError, match=r"XX.LOG..: samples of dtype \|S1"):
        wavefilt.obspy.denoise(obspy.Stream([_trace(np.array([b"a", b"b"]), "LOG")]))
    with pytest.raises(TypeError, match="an ObsPy Stream or Trace is needed, not ndarray"):
        wavefilt.obspy.denoise(np.ones(100))


def test_sampling_rates_may_differ_unless_thresholds_are_shared(rng):
    x = rng.standard_normal((2, 500))
    mixed = obspy.Stream([_trace(x[0]), _trace(x[1], rate=50.0)])
    for row, trace in zip(wavefilt.denoise(x), wavefilt.obspy.denoise(mixed), strict=True):
        np.testing.assert_array_equal(trace.data, row)
    with pytest.raises(ValueError, match=r'scope="record" pools traces of one sampling rate, not of 50, 100 Hz'):
        wavefilt.obspy.denoise(mixed, scope="record")


def test_the_measurement_compares_results(monkeypatch):
    row = study.measure(study.Case(4, 400, 2), "pywavelets", 1)
    assert row["error"] < 1e-6
    result = {"environment": {"processor": "p", "threads": 1, "load": 0.0, "obspy": "1", "gpu": None}, "rows": [row]}
    assert study.TABLE(result).rows[0][:2] == ["4 x 400, 2 lengths", "pywavelets"]
    monkeypatch.setattr(wavefilt.obspy, "denoise", lambda stream, **options: stream)
    with pytest.raises(Mismatch, match="differs from the reference"):
        study.measure(study.Case(2, 400), "pywavelets", 1)


class TestNoiseTimes:
    """Windows, picks and change points by UTCDateTime and objects of events, for each trace by its own start."""

    START = obspy.UTCDateTime("2026-03-01T12:00:00.25")

    @pytest.fixture
    def stream(self, rng):
        traces = [_trace(rng.standard_normal(3000) * np.linspace(1, 5, 3000), name) for name in "AB"]
        traces[0].stats.starttime, traces[1].stats.starttime = self.START, self.START + 3
        return obspy.Stream(traces)

    def _picks(self):
        from obspy.core.event import Pick, WaveformStreamID

        at = {"A": (18, 15), "B": (20, 25), "C": (1,)}
        named = {name: WaveformStreamID("XX", name, "", "HHZ") for name in at}
        return [Pick(time=self.START + t, waveform_id=named[name]) for name, own in at.items() for t in own]

    @pytest.mark.parametrize("kind", ["time", "window", "pick", "picks", "event", "catalog", "seconds"])
    def test_each_trace_has_its_window(self, stream, kind):
        from obspy.core.event import Catalog, Event

        picks = self._picks()
        moments = {
            "pick": picks[1],
            "picks": picks,
            "event": Event(picks=picks),
            "catalog": Catalog([Event(picks=picks)]),
        }
        sigma = ("before", moments.get(kind, self.START + 15), 10)
        ends = (1500, 1700) if kind in ("picks", "event", "catalog") else (1500, 1200)
        if kind == "window":
            sigma = ("window", self.START + 5, self.START + 15)
        if kind == "seconds":
            sigma, ends = ("seconds", 2, 12), (1200, 1200)
        quiet = wavefilt.obspy.denoise(stream, sigma=sigma)
        for old, new, end in zip(stream, quiet, ends, strict=True):
            _same(new.data, wavefilt.denoise(old.data, sigma=("window", end - 1000, end)))
            assert f"sigma=('window', {end - 1000}, {end})" in new.stats.processing[0]

    def test_change_points_and_running_noise(self, stream):
        quiet = wavefilt.obspy.denoise(stream, sigma=("intervals", [self.START + 12]))
        for old, new, point in zip(stream, quiet, (1200, 900), strict=True):
            _same(new.data, wavefilt.denoise(old.data, sigma=("intervals", [point])))
        stream[1].stats.sampling_rate = 50
        quiet = wavefilt.obspy.denoise(stream, sigma=("running", 8))
        for old, new, length in zip(stream, quiet, (800, 400), strict=True):
            _same(new.data, wavefilt.denoise(old.data, sigma=("running", length)))

    def test_as_a_filter_of_obspy(self, stream):
        expected = wavefilt.denoise(stream[0].data, sigma=("running", 800))
        _same(wavefilt.obspy.filter_samples(stream[0].data, df=100.0, sigma=("running", 8)), expected)
        with pytest.raises(ValueError, match="the trace: its sampling interval is not known"):
            wavefilt.obspy.filter_samples(stream[0].data, sigma=("running", 8))

    def test_refusals(self, stream):
        picks = self._picks()
        for sigma, words in (
            (("before", picks[2:4], 10), r"XX\.A\.\.: none of the 2 picks is of its station"),
            (("before", self.START + 5, 10), r"XX\.A\.\.: the noise window from -5 s to 5 s begins before the first"),
            (("before", self.START + 15), r"XX\.A\.\.: .* must be \(\"before\", pick, seconds\)"),
        ):
            with pytest.raises(ValueError, match=words):
                wavefilt.obspy.denoise(stream, sigma=sigma)
        with pytest.raises(ValueError, match='scope="record" needs noise at the same samples'):
            wavefilt.obspy.denoise(stream, sigma=("before", self.START + 15, 10), scope="record")

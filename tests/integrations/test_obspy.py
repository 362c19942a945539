"""ObsPy streams denoised: the samples of `wavefilt.denoise`, everything else kept."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt

obspy = pytest.importorskip("obspy")

from obspy.core.event import Event, Pick, WaveformStreamID  # noqa: E402

import wavefilt.obspy  # noqa: E402

START = obspy.UTCDateTime("2026-03-01T12:00:00.25")


def _trace(samples, station="A", rate=100.0, start=START):
    header = {"network": "XX", "station": station, "sampling_rate": rate, "starttime": start}
    return obspy.Trace(np.asarray(samples), header)


@pytest.fixture
def stream(rng):
    """Traces of two lengths and several dtypes, one masked, one with NaN, one without samples."""
    x = np.sin(np.arange(1200) / 15) + rng.standard_normal((6, 1200))
    gap = np.ma.MaskedArray(x[3], (np.arange(1200) > 500) & (np.arange(1200) < 540), fill_value=-1)
    holes = x[4].copy()
    holes[[0, 700, 701]] = np.nan
    kinds = [x[0], x[1].astype("f4"), (100 * x[2]).astype("i4"), gap, holes, x[5, :700], np.zeros(0, "i4")]
    return obspy.Stream([_trace(data, f"S{i}") for i, data in enumerate(kinds)])


def _same(found, expected):
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(expected))
    np.testing.assert_array_equal(np.ma.getdata(found), np.ma.getdata(expected))


@pytest.mark.parametrize("options", [{}, {"wavelet": "sym4", "rule": "sure", "level": 3}], ids=str)
def test_each_trace_has_the_result_of_its_samples(stream, options, backend):
    before = stream.copy()
    quiet, noise = wavefilt.obspy.denoise(stream, backend=backend, return_residual=True, **options)
    for old, new, rest in zip(stream, quiet, noise, strict=True):
        if len(old.data):
            expected = wavefilt.denoise(old.data, backend=backend, return_residual=True, **options)
            _same(new.data, expected[0])
            _same(rest.data, expected[1])
        assert not np.shares_memory(old.data, new.data)
    for old, kept in zip(before, stream, strict=True):
        _same(kept.data, old.data)
        assert kept.stats == old.stats


def test_metadata_are_kept_and_the_history_grows(stream):
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
    assert all(word in history[-1] for word in (wavefilt.__version__, "rule='universal'", "wavelet='db8'", "level=4"))
    assert quiet[0].stats == stream[0].stats
    assert quiet[0].stats.coordinates is not stream[0].stats.coordinates
    assert isinstance(wavefilt.obspy.denoise(stream[0]), obspy.Trace)
    assert len(wavefilt.obspy.denoise(obspy.Stream())) == 0


def test_a_stream_as_a_section(rng):
    x = (100 * rng.standard_normal((24, 300))).astype("i2")
    x[3] = 0
    stream = obspy.Stream([_trace(row, f"S{i}") for i, row in enumerate(x)])
    stream[5].data = np.ma.MaskedArray(x[5], np.arange(300) < 20)
    stream[7].stats.starttime += 0.004
    quiet = wavefilt.obspy.denoise(stream, "db3", two_dimensional=True, rule="sure")
    filled = np.ma.array(x, mask=np.zeros(x.shape, bool))
    filled[5, :20] = np.ma.masked
    expected = wavefilt.denoise(filled, "db3", axes=(0, 1), rule="sure")
    for row, trace in zip(expected, quiet, strict=True):
        _same(np.ma.getdata(trace.data)[~np.ma.getmaskarray(row)], np.ma.compressed(row))
    assert np.ma.getmaskarray(quiet[5].data).sum() == 20
    for transform in ("dtcwt", "fk"):
        quiet = wavefilt.obspy.denoise(obspy.Stream(map(_trace, x)), transform=transform, two_dimensional=True)
        np.testing.assert_array_equal([t.data for t in quiet], wavefilt.denoise(x, transform=transform, axes=(0, 1)))


def test_the_history_of_a_small_section_has_the_wavelet_that_was_used(rng):
    stream = obspy.Stream(map(_trace, rng.standard_normal((20, 300))))
    with pytest.warns(UserWarning, match="db3 is used"):
        quiet = wavefilt.obspy.denoise(stream, two_dimensional=True)
    assert "wavelet='db3'" in quiet[0].stats.processing[-1]


def test_a_stream_without_traces():
    assert wavefilt.estimate_sigma(obspy.Stream()).shape == (0,)
    with pytest.raises(ValueError, match="no trace"):
        wavefilt.compare(obspy.Stream())


def test_traces_that_are_no_section():
    first, other = _trace(np.arange(300.0)), np.ones(300)
    for trace, word in (
        (_trace(np.ones(50)), "length"),
        (_trace(other, rate=50.0), "rate"),
        (_trace(other, start=START + 0.006), "begin"),
    ):
        with pytest.raises(ValueError, match=word):
            wavefilt.obspy.denoise(obspy.Stream([first, trace]), two_dimensional=True)
    with pytest.raises(ValueError, match="Stream"):
        wavefilt.obspy.denoise(first, two_dimensional=True)


def test_a_record_shares_its_thresholds_whatever_the_lengths(stream):
    some, options = obspy.Stream([stream[0], stream[5], stream[4]]), {"scope": "record", "backend": "pywavelets"}
    rows = np.full((3, 1200), np.nan)
    for row, trace in zip(rows, some, strict=True):
        row[: len(trace)] = trace.data
    expected = wavefilt.denoise(rows, **options)
    for row, trace in zip(expected, wavefilt.obspy.denoise(some, **options), strict=True):
        np.testing.assert_array_equal(trace.data, row[: len(trace)])
    live, dead = obspy.Stream([stream[0], stream[5]]), [_trace(np.full(n, 3.7), f"D{n}") for n in (900, 1200)]
    expected = wavefilt.obspy.denoise(live, **options)
    found = wavefilt.obspy.denoise(obspy.Stream([dead[0], *live, dead[1]]), **options)
    for trace, same in zip(found, [dead[0], *expected, dead[1]], strict=True):
        _same(trace.data, same.data)
    stream[0].stats.sampling_rate = 50
    with pytest.raises(ValueError, match="rate"):
        wavefilt.obspy.denoise(stream, scope="record")


def test_the_filter_that_obspy_finds(stream):
    stream = stream[:3] + stream[4:]  # ObsPy refuses masked traces in every filter
    before = stream.copy()
    assert stream.filter("wavelet", wavelet="sym8", rule="sure", backend="pywavelets") is stream
    for old, new in zip(before, stream, strict=True):
        if len(old.data):
            _same(new.data, wavefilt.denoise(old.data, "sym8", rule="sure", backend="pywavelets"))
    assert "type='wavelet'" in stream[0].stats.processing[-1]


@pytest.mark.parametrize("options", [{"rule": "baies"}, {"ruel": "bayes"}, {"axis": 0}, {"backend": "cude"}], ids=str)
def test_unknown_options_are_named(stream, options):
    old = stream[0].copy()
    for call in (wavefilt.obspy.denoise, lambda stream, **options: stream[0].filter("wavelet", **options)):
        with pytest.raises(ValueError, match=next(iter(options))):
            call(stream, **options)
    assert stream[0] == old


def test_traces_that_cannot_be_denoised_are_named(stream):
    with pytest.raises(ValueError, match=r"XX.S5..: .level=6"):
        wavefilt.obspy.denoise(stream, level=6)
    stream[4].data[5] = np.inf
    with pytest.raises(ValueError, match=r"XX.S4.*sample 5 "):
        wavefilt.obspy.denoise(stream)
    with pytest.raises(TypeError, match=r"XX.LOG"):
        wavefilt.obspy.denoise(obspy.Stream([_trace(np.array([b"a", b"b"]), "LOG")]))
    with pytest.raises(TypeError, match="ndarray"):
        wavefilt.obspy.denoise(np.ones(100))


def _picks():
    at = {"A": (18, 15), "B": (20, 25), "C": (1,)}
    return [
        Pick(time=START + t, waveform_id=WaveformStreamID("XX", name, "", "HHZ"))
        for name, times in at.items()
        for t in times
    ]


NOISE = {
    "time": (lambda: ("before", START + 15, 10), ("window", 500, 1500), ("window", 200, 1200)),
    "window": (lambda: ("window", START + 5, START + 15), ("window", 500, 1500), ("window", 200, 1200)),
    "pick of one station": (lambda: ("before", _picks()[1], 10), "pick.time", None),
    "no pick": (lambda: ("before", Event(), 10), "no picks", None),
    "picks": (lambda: ("before", _picks(), 10), ("window", 500, 1500), ("window", 700, 1700)),
    "event": (lambda: ("before", Event(picks=_picks()), 10), ("window", 500, 1500), ("window", 700, 1700)),
    "seconds": (lambda: ("seconds", 2, 12), ("window", 200, 1200), ("window", 200, 1200)),
    "running": (lambda: ("running", 8), ("running", 800), ("running", 800)),
    "intervals": (lambda: ("intervals", [START + 12]), ("intervals", [1200]), ("intervals", [900])),
    "none of the station": (lambda: ("before", _picks()[2:4], 10), "pick", None),
    "before the first sample": (lambda: ("before", START + 5, 10), "first", None),
    "without seconds": (lambda: ("before", START + 15), "before", None),
}


@pytest.mark.parametrize("name", NOISE)
def test_noise_by_times_and_picks_of_each_trace(rng, name):
    sigma, *expected = NOISE[name]
    stream = obspy.Stream([_trace(rng.standard_normal(3000), "A"), _trace(rng.standard_normal(3000), "B", 100)])
    stream[1].stats.starttime = START + 3
    if expected[1] is None:
        with pytest.raises(ValueError, match=expected[0]):
            wavefilt.obspy.denoise(stream, sigma=sigma())
        return
    for old, new, own in zip(stream, wavefilt.obspy.denoise(stream, sigma=sigma()), expected, strict=True):
        _same(new.data, wavefilt.denoise(old.data, sigma=own))
    if expected[0] != expected[1]:
        with pytest.raises(ValueError, match="record"):
            wavefilt.obspy.denoise(stream, sigma=sigma(), scope="record")


def test_noise_before_origins_and_picks_in_headers(rng):
    rows = 0.1 * rng.standard_normal((3, 1500))
    rows[:, 550:] += np.sin(np.arange(950) / 9)
    stream = obspy.Stream([obspy.Trace(row, {"delta": 0.001, "station": f"S{i}"}) for i, row in enumerate(rows)])
    start = stream[0].stats.starttime
    stream[0].stats.sac = {"b": 2.0, "o": 2.1, "a": 2.5}
    stream[1].stats.sh = {"P-ONSET": start + 0.5, "ORIGIN": start - 3}
    y = wavefilt.obspy.denoise(stream)
    for i, sigma in enumerate([("window", 0, 467), ("window", 0, 467), "level"]):
        np.testing.assert_array_equal(y[i].data, wavefilt.denoise(rows[i], sigma=sigma))
    np.testing.assert_array_equal(wavefilt.obspy.denoise(stream, sigma="level")[0].data, wavefilt.denoise(rows[0]))
    date = {"nzyear": 1970, "nzjday": 1, "nzhour": 0, "nzmin": 0, "nzsec": 0, "nzmsec": 0}
    stream[0].stats.sac.update({**date, "a": 0.5, "b": 0})
    stream[2].stats.seg2 = {"DELAY": "-0.5"}
    windows = {0.0: (467, 467), 0.2: (277, 0), 0.6: (0, 0)}  # samples cut off, and the ends of the windows left
    for seconds, ends in windows.items():
        cut = stream.slice(start + seconds) if seconds else stream
        noise = wavefilt.obspy.recording_of(cut).declared_noise
        found = noise.windows if noise else (None,) * 3
        assert tuple(window[2] if window else 0 for window in (found[0], found[2])) == ends
    found = wavefilt.compare(stream[:2], rule=["universal", "bayes"])
    words = "0.467 s before the first arrival (header a) or the first arrival (header P-ONSET)"
    assert (found.model.kind, found.noise) == ("declared", words)

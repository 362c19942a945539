"""What `wavefilt info` says of files: units, live traces, ids, times and gaps, several files."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES, run


@pytest.fixture
def station(tmp_path, monkeypatch, rng):
    """`s.mseed`: one channel with a gap of 2 s and an overlap, another one that begins 1 s later."""
    obspy = pytest.importorskip("obspy")
    monkeypatch.chdir(tmp_path)
    start = obspy.UTCDateTime("2016-12-31T23:59:58.5")
    parts = [("EHZ", 0, 400), ("EHZ", 6, 500), ("EHZ", 10, 300), ("EHN", 1, 600)]
    stream = obspy.Stream()
    for channel, seconds, samples in parts:
        header = {"network": "BW", "station": "FUR", "channel": channel, "delta": 0.01, "starttime": start + seconds}
        stream += obspy.Trace(rng.integers(-900, 900, samples).astype("i4"), header)
    stream.write("s.mseed", format="MSEED")
    return stream


def facts_of(capsys, *arguments):
    code, out, err = run(capsys, "info", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out, parse_constant=pytest.fail)


def test_ids_times_and_gaps_are_those_of_obspy(station, capsys):
    import obspy

    facts = facts_of(capsys, "s.mseed")
    assert [channel["id"] for channel in facts["channels"]] == ["BW.FUR..EHZ", "BW.FUR..EHN"]
    for channel in facts["channels"]:
        traces = station.select(id=channel["id"])
        assert obspy.UTCDateTime(channel["start"]) == min(trace.stats.starttime for trace in traces)
        assert obspy.UTCDateTime(channel["end"]) == max(trace.stats.endtime for trace in traces)
    seconds = [gap["seconds"] for gap in facts["channels"][0]["gaps"]]
    assert seconds == pytest.approx([gap[6] for gap in station.get_gaps()], abs=1e-5) == [2, -1]
    assert (facts["channels"][1]["gaps"], facts["duration_s"]) == ([], 13)
    out = run(capsys, "info", "s.mseed")[1]
    for words in ("2016-12-31T23:59:58.5Z to 2017-01-01T00:00:11.49Z", "2017-01-01T00:00:02.5Z", "1,200 samples"):
        assert words in out


def test_figures_of_the_sample(capsys):
    path = SAMPLES / "seismic.dat"
    facts = facts_of(capsys, path)
    assert (facts["format"], facts["traces"], facts["live_traces"], facts["dead_traces"]) == ("seg2", 24, 23, 1)
    samples = wavefilt.read(path).samples
    assert (facts["minimum"], facts["maximum"]) == (samples.min(), samples.max())
    sigma = wavefilt.estimate_sigma(np.delete(samples, 16, axis=0))
    assert facts["sigma_by_level"][0] == pytest.approx(np.median(sigma), rel=0.2)
    out = run(capsys, "info", path)[1]
    for middle, (low, high) in zip(facts["sigma_by_level"], facts["sigma_range_by_level"], strict=True):
        assert f"sigma {middle:.4g} ({low:.4g} to {high:.4g})" in out
    for words in ("24: 23 live, 1 dead", "0.001 s", "1.024 s", "250 to 500 Hz", "15.62 to 31.25 Hz"):
        assert words in out


@pytest.mark.parametrize("dtype", ["i1", "i2", ">i4", "i8", "u1", "u2", "u8", "f2", "f4", "c8", "c16"])
def test_every_dtype(tmp_path, monkeypatch, capsys, dtype):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(100).reshape(2, 50).astype(dtype))
    facts = facts_of(capsys, "x.npy")
    assert (facts["minimum"], facts["maximum"], facts["gap_samples"], facts["dead_traces"]) == (0, 99, 0, 0)
    assert facts["dtype"] == np.dtype(dtype).name


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_gaps_are_not_examined(tmp_path, monkeypatch, capsys, dtype):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.array([[-3, 1, np.nan] * 9, [0, 0, np.nan] * 9, [np.nan] * 27], dtype))
    facts = facts_of(capsys, "x.npy")
    assert [facts[name] for name in ("minimum", "maximum", "gap_samples", "dead_traces")] == [-3, 1, 45, 1]
    np.save("nothing.npy", np.full((1, 30), np.nan))
    facts = facts_of(capsys, "nothing.npy")
    assert [facts[name] for name in ("minimum", "maximum", "dead_traces")] == [None, None, 0]
    out = run(capsys, "info", "x.npy")[1]
    assert "45 samples" in out
    assert "Hz" not in out  # the interval is unknown


def test_several_files_and_those_that_fail(station, capsys, tmp_path):
    np.save("a.npy", np.arange(100.0))
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY")
    code, out, err = run(capsys, "info", "*.npy", "s.mseed", "--json")
    assert [json.loads(line)["input"] for line in out.splitlines()] == ["a.npy", "s.mseed"]
    assert (code, err.splitlines()[0].startswith("wavefilt: error: bad.npy: ")) == (4, True)
    assert "1 of 3 " in err
    code, out, err = run(capsys, "info", "a.npy", "s.mseed")
    assert (code, err) == (0, "")
    assert out.startswith("a.npy\n")
    assert "\n\ns.mseed\n" in out


def test_a_factor_of_some_traces(tmp_path, capsys):
    path = tmp_path / "x.sgy"
    wavefilt.read(SAMPLES / "seismic.dat").write(path)
    data = bytearray(path.read_bytes())
    data[3600 + 204 : 3600 + 212] = bytes(8)
    path.write_bytes(data)
    code, out, _ = run(capsys, "info", path)
    assert (code, "multiplication" in out) == (0, False)

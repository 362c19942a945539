"""What `wavefilt info` says of files: units, live traces, ids, times and gaps, several files."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.support.checkout import SAMPLES, run
from tests.support.signals import partly_dead
from wavefilt import report


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
    return tmp_path


def test_ids_times_and_gaps(station, capsys):
    code, out, err = run(capsys, "info", "s.mseed")
    assert (code, err) == (0, "")
    lines = [line.strip() for line in out.splitlines()]
    assert "BW.FUR..EHZ          2016-12-31T23:59:58.5Z to 2017-01-01T00:00:11.49Z, 1,200 samples" in lines
    assert "BW.FUR..EHN          2016-12-31T23:59:59.5Z to 2017-01-01T00:00:05.49Z, 600 samples" in lines
    assert "gap of 2 s from 2017-01-01T00:00:02.5Z" in lines
    assert "overlap of 1 s from 2017-01-01T00:00:09.5Z" in lines
    assert "duration   13 s" in lines
    facts = json.loads(run(capsys, "info", "s.mseed", "--json")[1])
    assert [channel["id"] for channel in facts["channels"]] == ["BW.FUR..EHZ", "BW.FUR..EHN"]
    assert [gap["seconds"] for gap in facts["channels"][0]["gaps"]] == [2, -1]
    assert (facts["channels"][1]["gaps"], facts["duration_s"]) == ([], 13)


def test_numbers_have_units_and_say_which_level_is_finest(capsys):
    code, out, err = run(capsys, "info", SAMPLES / "seismic.dat")
    assert (code, err) == (0, "")
    for words in (
        "24: 23 live, 1 dead (constant)",
        "0.001 s",
        "1.024 s",
        "-40.96 to 44.82 (units of the file)",
        "level 1, finest 250 to 500 Hz",
        "level 5         15.62 to 31.25 Hz",
    ):
        assert words in out
    facts = json.loads(run(capsys, "info", SAMPLES / "seismic.dat", "--json")[1])
    middle, (low, high) = facts["sigma_by_level"][0], facts["sigma_range_by_level"][0]
    assert f"sigma {middle:.4g} ({low:.4g} to {high:.4g})" in out


def test_what_is_not_known_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.where(np.arange(60).reshape(2, 30) < 12, np.nan, 3.0))
    code, out, _ = run(capsys, "info", "x.npy")
    assert code == 0
    for words in ("2: 0 live, 2 dead", "interval   unknown", "gaps       12 samples are NaN", "3 to 3 ", "Hz"):
        assert (words in out) is (words != "Hz")
    np.save("short.npy", np.ones(5))
    assert "too short for a level" in run(capsys, "info", "short.npy")[1]


def test_several_files_and_those_that_fail(station, capsys):
    np.save("a.npy", np.arange(100.0))
    (station / "bad.npy").write_bytes(b"\x93NUMPY")
    code, out, err = run(capsys, "info", "*.npy", "s.mseed", "--json")
    assert [json.loads(line)["input"] for line in out.splitlines()] == ["a.npy", "s.mseed"]
    assert (code, err.splitlines()[0].startswith("wavefilt: error: bad.npy: ")) == (4, True)
    assert "1 of 3 files cannot be shown" in err
    code, out, err = run(capsys, "info", "a.npy", "s.mseed")
    assert (code, err) == (0, "")
    assert out.startswith("a.npy\n")
    assert "\n\ns.mseed\n" in out
    assert run(capsys, "info", "bad.npy")[0] == 3
    assert run(capsys, "info")[0] == 2


def test_a_long_list_of_gaps_is_cut(station, capsys):
    import obspy

    parts = [obspy.Trace(np.arange(50, dtype="i4"), {"station": "A", "starttime": i * 60}) for i in range(1, 41)]
    obspy.Stream(parts).write("g.mseed", format="MSEED")
    out = run(capsys, "info", "g.mseed")[1]
    assert out.count("gap of 10 s") == 20
    assert "and 19 more, 190 s of gaps" in out


def test_details_of_a_denoised_file_are_of_live_traces(tmp_path, monkeypatch, capsys, rng):
    traces = np.zeros((24, 300))
    traces[:9] = rng.standard_normal((9, 300)) * np.arange(1, 10)[:, None]
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", traces)
    for options in ([], ["--max-memory", "1GiB"]):
        code, out, err = run(capsys, "denoise", "x.npy", "-v", "--json", "--overwrite", *options)
        assert code == 0
        assert min(json.loads(out)["sigma"]) > 1
        assert "sigma 0" not in err
    code, out, err = run(capsys, "denoise", "x.npy", "-v", "--json", "--overwrite")
    assert "9 of 24 traces are live; of these, median (10 % to 90 %), level 1 the finest:" in err
    facts = json.loads(out)
    assert (facts["live_traces"], facts["dead_traces"]) == (9, 15)
    low, high = facts["thresholds_range"][0]
    assert f"level 1: sigma {facts['sigma'][0]:.4g} (" in err
    assert f"threshold {facts['thresholds'][0]:.4g} ({low:.4g} to {high:.4g})" in err


def test_times_are_those_of_obspy(station):
    import obspy

    import wavefilt

    recording = wavefilt.read("s.mseed")
    stream = obspy.read("s.mseed")
    for channel in report.channels(recording):
        traces = stream.select(id=channel["id"])
        assert obspy.UTCDateTime(channel["start"]) == min(trace.stats.starttime for trace in traces)
        assert obspy.UTCDateTime(channel["end"]) == max(trace.stats.endtime for trace in traces)
    assert [gap[6] for gap in stream.get_gaps()] == pytest.approx([2, -1], abs=1e-5)


def test_a_streamed_file_has_the_figures_of_one_in_memory(tmp_path, monkeypatch, capsys, rng):
    monkeypatch.chdir(tmp_path)
    x, dead = partly_dead(rng, 20_000, "f4")
    np.save("x.npy", x)
    found = []
    for limit in ([], ["--max-memory", "16M"]):
        code, out, err = run(capsys, "denoise", "x.npy", "--json", "-v", "--overwrite", *limit)
        assert code == 0
        found.append(json.loads(out))
        assert re.search(r"  9 of 24 traces (are live|have noise); of these, median", err)
    whole, streamed = found
    assert streamed["noisy_traces"] == whole["live_traces"] == np.count_nonzero(~dead)
    for name in ("sigma", "sigma_range", "thresholds", "thresholds_range"):
        np.testing.assert_allclose(streamed[name], whole[name], rtol=1e-6)

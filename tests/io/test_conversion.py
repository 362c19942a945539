"""Recordings written in another format than the one they came from, read by other libraries."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import wavefilt
from tests.io.test_io import make_seg2, obspy_data
from tests.support.checkout import ROOT, SAMPLES
from tests.support.segy_files import segy_file, su_file
from wavefilt.cli import group
from wavefilt.errors import FormatError
from wavefilt.io import FORMATS

SHOT = SAMPLES / "seismic.dat"


def run(*arguments: object):
    return CliRunner().invoke(group, [str(a) for a in arguments], standalone_mode=False)


def plain(samples, interval=0.002, **more):
    return wavefilt.Recording(samples, (interval,) * len(samples), "raw", None, **more)


def seg2(lines: list[str]) -> bytes:
    """One trace of 64 samples with these strings."""
    return make_seg2([np.arange(64, dtype="<f4").tobytes()], 4, lines=lines)


def test_seg2_to_segy_keeps_what_segy_has_places_for(tmp_path):
    """As segyio reads it."""
    segyio = pytest.importorskip("segyio")
    assert run("convert", SHOT, tmp_path / "x.sgy").exception is None
    recording = wavefilt.read(SHOT)
    with segyio.open(tmp_path / "x.sgy", ignore_geometry=True) as file:
        assert np.array_equal(file.trace.raw[:], recording.samples)
        assert file.bin[segyio.BinField.Interval] == 1000
        assert file.bin[segyio.BinField.MeasurementSystem] == 1
        assert b"11/JUN/2024" in file.text[0]
        header = file.header[3]
        assert (header[segyio.su.gx], header[segyio.su.sx], header[segyio.su.scalco]) == (25000, 0, -1000)
        assert (header[segyio.su.tracf], header[segyio.su.offset]) == (4, 25)
        time = [header[key] for key in (segyio.su.year, segyio.su.day, segyio.su.hour, segyio.su.minute, segyio.su.sec)]
        assert time == [2024, 163, 10, 42, 17]
    again = wavefilt.read(tmp_path / "x.sgy")
    assert (again.format, again.interval) == ("segy", recording.interval)


@pytest.mark.parametrize(
    ("strings", "at", "form", "value"),
    [
        (["RECEIVER_LOCATION 500000.25 4800000.5 12.5"], 80, ">2i", (50000025, 480000050)),
        (["RECEIVER_LOCATION 500000.25 4800000.5 12.5"], 70, ">h", (-100,)),
        (["RECEIVER_LOCATION 1 2 3.5", "SOURCE_LOCATION 4 6 -1"], 36, ">3i", (5, 3500, -1000)),
        (
            ["SHOT_SEQUENCE_NUMBER 17", "CHANNEL_NUMBER 5", "SOURCE_STATION_NUMBER 9", "CDP_NUMBER 3"],
            8,
            ">4i",
            (17, 5, 9, 3),
        ),
        (["DELAY -0.010"], 108, ">h", (-10,)),
        (["DESCALING_FACTOR 2.5E-5"], 204, ">i2h", (250000000, -13, 3)),
    ],
)
def test_headers_of_seg2(tmp_path, strings, at, form, value):
    import struct

    (tmp_path / "x.dat").write_bytes(seg2(["SAMPLE_INTERVAL 0.00025", *strings]))
    wavefilt.read(tmp_path / "x.dat").write(tmp_path / "x.sgy")
    assert struct.unpack_from(form, (tmp_path / "x.sgy").read_bytes(), 3600 + at) == value


@pytest.mark.parametrize("dtype", ["i2", "i4", "f4", "f8", "u1", "u2"])
@pytest.mark.parametrize("interval", [0.004, 0.0000312525, None])
@pytest.mark.parametrize("count", [100, 70_000])
def test_segy_of_any_samples_and_interval(tmp_path, rng, dtype, interval, count):
    samples = (50 + 9 * rng.standard_normal((2, count))).astype(dtype)
    plain(samples, interval).write(tmp_path / "x.sgy")
    again = wavefilt.read(tmp_path / "x.sgy")
    assert np.array_equal(again.samples, samples)
    assert again.interval == (None if interval is None else pytest.approx(interval, rel=1e-12))


@pytest.mark.parametrize("order", "<>")
def test_segy_and_su_keep_each_others_trace_headers(tmp_path, order):
    sgy, su = segy_file(5, order), su_file(order)
    (tmp_path / "x.sgy").write_bytes(sgy)
    (tmp_path / "x.su").write_bytes(su)
    assert run("convert", tmp_path / "x.sgy", tmp_path / "y.su").exception is None
    assert (tmp_path / "y.su").read_bytes() == sgy[3600:]
    assert run("convert", tmp_path / "x.su", tmp_path / "y.sgy").exception is None
    assert (tmp_path / "y.sgy").read_bytes()[3600:] == su


def test_miniseed_and_sac_of_seg2_and_back(tmp_path):
    obspy = pytest.importorskip("obspy")
    recording = wavefilt.read(SHOT)
    recording.write(tmp_path / "x.mseed")
    stream = obspy.read(str(tmp_path / "x.mseed"))
    assert [trace.stats.station for trace in stream][:2] == ["01", "02"]
    assert str(stream[0].stats.starttime) == "2024-06-11T10:42:17.000000Z"
    assert np.array_equal([trace.data for trace in stream], recording.samples)
    one = replace(recording, traces=recording.traces[:1], intervals=recording.intervals[:1])
    one.write(tmp_path / "x.sac")
    again = wavefilt.read(tmp_path / "x.sac")
    assert (again.format, again.interval, again.ids) == ("sac", 0.001, (".1..",))
    assert str(again.starts[0]).startswith("2024-06-11T10:42:17")
    with pytest.raises(FormatError, match="a SAC file holds one trace, not 24"):
        recording.write(tmp_path / "y.sac")


@pytest.mark.parametrize("dtype", ["i2", "i4", "f4", "f8"])
def test_wav_and_npy(tmp_path, rng, dtype):
    from scipy.io import wavfile

    samples = (50 + 9 * rng.standard_normal((3, 400))).astype(dtype)
    plain(samples, 1 / 8000).write(tmp_path / "x.wav")
    rate, content = wavfile.read(tmp_path / "x.wav")
    assert (rate, content.dtype) == (8000, samples.dtype)
    assert np.array_equal(content.T, samples)
    plain(samples).write(tmp_path / "x.npy")
    assert np.array_equal(np.load(tmp_path / "x.npy"), samples)
    with pytest.raises(FormatError, match="whole sampling rates"):
        plain(samples, 0.3).write(tmp_path / "y.wav")
    with pytest.raises(FormatError, match="needs one sampling interval"):
        plain(samples, None).write(tmp_path / "y.wav")


@pytest.mark.parametrize(
    "path",
    [
        "gse2/tests/data/acc.gse",
        "rg16/tests/data/three_chans_six_traces.fcnt",
        "kinemetrics/tests/data/BI008_MEMA-04823.evt",
        "cybershake/tests/data/test.grm",
    ],
)
def test_formats_that_obspy_does_not_write_become_miniseed(tmp_path, path):
    source = obspy_data(*path.split("/"))
    done = run("denoise", source, "-o", tmp_path / "x")
    assert done.exception.exit_code == 2
    assert re.search(r"no writer of \w+; write MiniSEED or SAC, with -o NAME.mseed", str(done.exception))
    before = wavefilt.read(source)
    assert run("convert", source, tmp_path / "x.mseed").exception is None
    after = wavefilt.read(tmp_path / "x.mseed")
    assert sum(map(len, after.traces)) == sum(map(len, before.traces))
    if before.ids:
        assert after.starts[0] == before.starts[0]
        assert {name.replace(" ", "") for name in before.ids} == set(after.ids)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.h5", "a seg2 recording is not written as hdf5; use .npy, .wav, .sgy"),
        ("x.csv", "is not written as ascii"),
        ("x.zarr", "is not written as zarr"),
    ],
)
def test_endings_of_formats_that_are_not_written_are_refused_before_the_run(tmp_path, name, words, monkeypatch):
    monkeypatch.setattr(wavefilt.Recording, "apply", lambda *_: pytest.fail("computed"))
    for verb in (["denoise", SHOT, "-o"], ["convert", SHOT]):
        done = run(*verb, tmp_path / name)
        assert done.exception.exit_code == 2
        assert words in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_names_that_tell_nothing_keep_the_format(tmp_path):
    """As do those that end like the input, whatever it holds."""
    for source, target in (
        ("x.dat", "y.dat"),
        ("x.wav", "y.wav"),
        ("x.dat", "y"),
        ("x.dat", "y.bin"),
        ("x.dat", "y.txt"),
    ):
        (tmp_path / source).write_bytes(SHOT.read_bytes())
        assert run("denoise", tmp_path / source, "-o", tmp_path / target, "--overwrite").exception is None
        assert wavefilt.read(tmp_path / target).format == "seg2"


def test_the_command(tmp_path):
    target = tmp_path / "x.sgy"
    done = run("convert", SHOT, target, "--json")
    facts = json.loads(done.stdout)
    assert (facts["from"], facts["to"], facts["traces"]) == ("seg2", "segy", 24)
    assert run("convert", SHOT, target).exception.exit_code == 2
    assert run("convert", SHOT, target, "--overwrite").exception is None
    assert "segy, 24 traces" in run("convert", SHOT, target, "--overwrite").stdout
    assert run("convert", target, target, "--overwrite").exception.exit_code == 2
    assert run("convert", SHOT, tmp_path / "x.dat").exception.exit_code == 2
    assert run("convert", tmp_path / "nothing", tmp_path / "x.npy").exception.code == 3
    assert run("denoise", target, "-o", tmp_path / "x.npy", "--max-memory", "1GiB").exception.code == 1
    assert np.array_equal(wavefilt.read(target).samples, wavefilt.read(SHOT).samples)


def test_the_table_of_the_documentation():
    text = Path(ROOT / "docs" / "formats.md").read_text()
    rows = re.search(r"<!-- conversions -->\n(.*?)<!-- end -->", text, re.DOTALL)[1].splitlines()[2:]
    formats = [FORMATS[name] for name in FORMATS.where(lambda f: f.convert)]
    assert rows == [f"| {f.name} | {', '.join(f'`{e}`' for e in f.extensions)} | {f.keeps} |" for f in formats]

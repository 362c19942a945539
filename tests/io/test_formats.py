"""Reading and writing every format: samples, headers, byte orders, conversions, and files that are refused."""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import io
import lzma
import pickle
import struct
import sys
import tarfile
import tracemalloc
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from tests.support.checkout import SAMPLES, run
from tests.support.file_bytes import make_seg2, npy, read, segy_file, su_file, written
from tests.support.reader_seeds import cases, samples
from wavefilt import FormatError

SHOT = SAMPLES / "seismic.dat"
ORDERS = "<>"
CASES = cases(320)
STREAMED = ("npy", "raw", "wav", "sac")


@pytest.mark.parametrize("name", CASES)
def test_samples_and_headers_come_back(tmp_path, name):
    """Unaltered ones byte for byte; denoised ones in memory and streamed with the same bytes."""
    case, format = CASES[name], name.split()[0]
    (tmp_path / "x").write_bytes(case.data)
    recording = wavefilt.read(tmp_path / "x", **case.options)
    assert (recording.format, recording.source) == (format, str(tmp_path / "x"))
    assert recording.interval == (case.interval and pytest.approx(case.interval))
    assert_array_equal(recording.samples, case.samples)
    unaltered = written(recording, tmp_path)
    again = case.options if case.exact or format != "raw" else {**case.options, "dtype": "f4"}
    if case.exact:
        assert unaltered == case.data
    else:
        assert_allclose(read(unaltered, **again).samples, case.samples, rtol=1e-7)
    denoised = pickle.loads(pickle.dumps(recording)).denoise("db4", preset="gentle", backend="pywavelets")
    expected = wavefilt.denoise(recording.samples, "db4", backend="pywavelets")
    assert_array_equal(denoised.samples, expected)
    result = written(denoised, tmp_path)
    assert not np.array_equal(expected, case.samples)
    again = case.options if case.samples.dtype.kind in "fc" or format != "raw" else {**case.options, "dtype": "f4"}
    assert_allclose(read(result, **again).samples, expected, rtol=1e-7, atol=case.rounding + 1e-6)
    layout = {key: value for key, value in case.options.items() if key != "dt"}
    if format in STREAMED:
        options = {"preset": "gentle", "backend": "pywavelets", **layout}
        wavefilt.denoise_file(tmp_path / "x", tmp_path / "parts", "db4", **options)
        assert (tmp_path / "parts").read_bytes() == result
    else:
        with pytest.raises(FormatError, match="streamed"):
            wavefilt.denoise_file(tmp_path / "x", tmp_path / "parts", **layout)
        assert not (tmp_path / "parts").exists()


# ---- conversions


TARGETS = {"npy": ".npy", "wav": ".wav", "segy": ".sgy", "su": ".su", "sac": ".sac", "mseed": ".mseed"}
TARGETS |= {"hdf5": ".h5", "ascii": ".csv"}
SOURCES = {name.split()[0]: (case.data, case.options) for name, case in reversed(CASES.items())}
SOURCES |= {"segy": (segy_file(5, count=1), {}), "su": (su_file("<", count=1), {})}


@pytest.mark.parametrize("source", SOURCES)
def test_every_format_becomes_every_other(tmp_path, source):
    pytest.importorskip("obspy")
    data, options = SOURCES[source]
    recording = read(data, **options)
    whole = np.rint(recording.traces[:1]).astype("f4")  # which every format holds
    recording = replace(recording, traces=whole, intervals=(recording.interval or 0.002,))
    for target, ending in ((target, ending) for target, ending in TARGETS.items() if target != source):
        out = tmp_path / f"out{ending}"
        recording.write(out)
        again = wavefilt.read(out)
        assert again.format == target
        assert_array_equal(again.samples, recording.samples)
        assert again.interval == (None if target == "npy" else pytest.approx(recording.interval))
        out.unlink()
    for ending in (".zarr", ".npz", ".foo", ".sgy.gz"):
        if source != ending[1:]:
            with pytest.raises(FormatError, match=r"written|no format"):
                recording.write(tmp_path / f"out{ending}")
    assert not list(tmp_path.iterdir())


def test_the_command_converts(tmp_path, capsys):
    target = tmp_path / "x.sgy"
    assert run(capsys, "convert", SHOT, target)[0] == 0
    assert_array_equal(wavefilt.read(target).samples, wavefilt.read(SHOT).samples)
    nothing = tmp_path / "nothing"
    for code, source, to in ((2, SHOT, target), (2, SHOT, tmp_path / "x.foo"), (3, nothing, tmp_path / "x.npy")):
        assert run(capsys, "convert", source, to)[0] == code
    assert run(capsys, "convert", target, target, "--overwrite")[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["x.sgy"]


def test_seg2_to_segy_as_segyio_reads_it(tmp_path):
    segyio = pytest.importorskip("segyio")
    recording = wavefilt.read(SHOT)
    recording.write(tmp_path / "x.sgy")
    with segyio.open(tmp_path / "x.sgy", ignore_geometry=True) as file:
        assert_array_equal(file.trace.raw[:], recording.samples)
        assert file.bin[segyio.BinField.Interval] == 1000
        assert b"11/JUN/2024" in file.text[0]
        header = file.header[3]
        assert (header[segyio.su.gx], header[segyio.su.sx], header[segyio.su.scalco]) == (25000, 0, -1000)
        assert (header[segyio.su.tracf], header[segyio.su.offset]) == (4, 25)
        time = [header[key] for key in (segyio.su.year, segyio.su.day, segyio.su.hour, segyio.su.minute, segyio.su.sec)]
        assert time == [2024, 163, 10, 42, 17]
    recording.write(tmp_path / "x.su")
    for name in ("x.sgy", "x.su"):
        assert wavefilt.read(tmp_path / name).offsets == recording.offsets == tuple(range(10, 130, 5))


@pytest.mark.parametrize(
    ("strings", "at", "form", "value"),
    [
        (["RECEIVER_LOCATION 500000.25 4800000.5 12.5"], 80, ">2i", (50000025, 480000050)),
        (["RECEIVER_LOCATION 500000.25 4800000.5 12.5"], 70, ">h", (-100,)),
        (["RECEIVER_LOCATION 1 2 3.5", "SOURCE_LOCATION 4 6 -1"], 36, ">3i", (-5, 3500, -1000)),
        (["SHOT_SEQUENCE_NUMBER 17", "CHANNEL_NUMBER 5", "SOURCE_STATION_NUMBER 9", "CDP_NUMBER 3"], 8, ">2i", (17, 5)),
        (["DELAY -0.010"], 108, ">h", (-10,)),
        (["DESCALING_FACTOR 2.5E-5"], 204, ">i2h", (250000000, -13, 3)),
    ],
)
def test_headers_of_seg2_in_segy(tmp_path, strings, at, form, value):
    data = make_seg2([np.arange(64, dtype="<f4").tobytes()], 4, lines=["SAMPLE_INTERVAL 0.00025", *strings])
    segy = written(read(data), tmp_path, "x.sgy")
    assert struct.unpack_from(form, segy, 3600 + at) == value


@pytest.mark.parametrize("dtype", ["i2", "i4", "f4", "f8", "u1", "u2"])
@pytest.mark.parametrize("interval", [0.004, 0.0000312525])
def test_segy_of_any_samples_and_interval(tmp_path, dtype, interval):
    for x in (samples(dtype), samples(dtype, 1, 70_000)):
        again = read(written(wavefilt.Recording(x, (interval,) * len(x), "raw", None), tmp_path, "x.sgy"))
        assert_array_equal(again.samples, x)
        assert again.interval == pytest.approx(interval, rel=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_segy_and_su_keep_each_others_trace_headers(tmp_path, order):
    sgy, su = segy_file(5, order), su_file(order)
    assert written(read(sgy), tmp_path, "y.su") == sgy[3600:]
    assert written(read(su), tmp_path, "y.sgy")[3600:] == su


def test_miniseed_and_sac_of_seg2(tmp_path):
    obspy = pytest.importorskip("obspy")
    recording = wavefilt.read(SHOT)
    recording.write(tmp_path / "x.mseed")
    stream = obspy.read(str(tmp_path / "x.mseed"))
    assert [trace.stats.station for trace in stream][:2] == ["01", "02"]
    assert str(stream[0].stats.starttime) == "2024-06-11T10:42:17.000000Z"
    assert_array_equal([trace.data for trace in stream], recording.samples)
    one = replace(recording, traces=recording.traces[:1], intervals=recording.intervals[:1])
    again = read(written(one, tmp_path, "x.sac"))
    assert (again.format, again.interval, again.ids) == ("sac", 0.001, (".1..",))
    assert str(again.starts[0]).startswith("2024-06-11T10:42:17")


UNTIMED = ("wav", "sgy", "su", "mseed")


@pytest.mark.parametrize(
    ("name", "changes"),
    [("x.sac", {}), ("x.wav", {"intervals": (0.3,) * 24}), *((f"x.{t}", {"intervals": (None,) * 24}) for t in UNTIMED)],
)
def test_what_a_format_cannot_hold_is_an_error(tmp_path, name, changes):
    if name.endswith("mseed"):
        pytest.importorskip("obspy")  # without the warnings of the import
    with pytest.raises(FormatError, match="dt" if None in changes.get("intervals", ()) else None):
        replace(wavefilt.read(SHOT), **changes).write(tmp_path / name)
    assert not list(tmp_path.iterdir())


# ---- headers


def test_headers_are_mappings_with_the_names_of_the_format_and_shared_attributes(tmp_path):
    pytest.importorskip("obspy")
    strings = ["DELAY -0.010", "RECEIVER_LOCATION 1 2 3.5", "SOURCE_LOCATION 4 6 -1", "DESCALING_FACTOR 2.5E-5"]
    data = make_seg2([np.arange(64, dtype="<f4").tobytes()], 4, lines=["SAMPLE_INTERVAL 0.00025", *strings])
    recording = replace(read(data), starts=(np.datetime64("2024-06-11T10:42:17", "ns"),), ids=("A.B..C",))
    assert recording.headers["NOTE"] == "two words"
    assert recording.headers.traces[0]["DELAY"] == "-0.010"
    for suffix, name in (("sgy", "DelayRecordingTime"), ("su", "DelayRecordingTime"), ("sac", "b")):
        again = read(written(recording, tmp_path, f"x.{suffix}"))
        (header,) = again.headers.traces
        assert name in header
        assert str(header.first_sample).startswith("2024-06-11T10:42:1")
        if suffix != "sac":
            assert (header[name], header.delay, header.offset) == (-10, -0.01, -5)
            assert (header.source, header.receiver) == ((4, 6, -1), (1, 2, 3.5))
            assert (header.units, header.factor) == ("mV", pytest.approx(2.5e-5))
    assert read(written(recording, tmp_path, "x.sgy")).headers["Interval"] == 250
    assert "x" not in recording.headers
    with pytest.raises(TypeError):
        recording.headers["NOTE"] = "other"


# ---- SEG-2


def test_every_header_byte_of_seg2_survives_a_change_of_the_sample_code(tmp_path):
    payload = samples("<i2", 1, 64).tobytes()
    data = make_seg2([payload] * 3, 1, pad=2)
    after = written(read(data), tmp_path)
    old, new = (struct.unpack_from("<3I", d, 32) for d in (data, after))
    assert after[:32] == data[:32]
    assert after[44 : new[0]] == data[44 : old[0]]
    for o, n in zip(old, new, strict=True):
        # only the size of the data block and the sample code change in the trace descriptor
        assert after[n : n + 4] == data[o : o + 4]
        assert after[n + 8 : n + 12] == data[o + 8 : o + 12]
        assert after[n + 13 : n + 54] == data[o + 13 : o + 54]
        assert struct.unpack_from("<I", after, n + 4)[0] == 64 * 4


def test_traces_of_different_lengths_in_any_order(tmp_path, capsys):
    payloads = [samples("<f4", 1, n).tobytes() for n in (300, 200, 250)]
    data = bytearray(make_seg2(payloads, 4))
    pointers = struct.unpack_from("<3I", data, 32)
    struct.pack_into("<3I", data, 32, *pointers[::-1])  # the pointers need not follow the file
    recording = read(bytes(data))
    assert [len(t) for t in recording.traces] == [250, 200, 300]
    with pytest.raises(ValueError, match=r"lengths.*\.mseed file"):
        recording.samples  # noqa: B018
    with pytest.raises(ValueError, match="one length"):
        recording.denoise(two_dimensional=True)
    denoised = recording.denoise("db4", preset="gentle")
    for before, after in zip(recording.traces, denoised.traces, strict=True):
        assert_allclose(after, wavefilt.denoise(before, "db4"), rtol=1e-6)
    again = read(written(denoised, tmp_path))
    assert all(np.array_equal(a, b) for a, b in zip(again.traces, denoised.traces, strict=True))


@pytest.mark.parametrize("line", ["SAMPLE_INTERVAL abc", "SAMPLE_INTERVAL 0", "SAMPLE_INTERVAL -1", "OTHER 1"])
def test_a_missing_interval_is_unknown_or_given(line):
    data = make_seg2([np.ones(20, "<f4").tobytes()], 4, lines=(line,))
    assert read(data).interval is None
    assert read(data, dt=0.004).interval == 0.004


def _obspy_data(path: str) -> Path:
    pytest.importorskip("obspy")
    folder, _, name = path.partition("/")
    return Path(importlib.util.find_spec("obspy").origin).parent.joinpath("io", folder, "tests", "data", name)


def _obspy_read(file: object, format: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("obspy").read(file, format=format)


# ---- npy, npz and WAV


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("shape", "axis"), [((50,), None), ((3, 50), None), ((50, 3), 0), ((2, 3, 50), -1)])
def test_npy_keeps_shape_order_and_axis(tmp_path, rng, shape, axis, order):
    x = np.asarray(rng.standard_normal(shape), order=order)
    recording = read(npy(x), axis=axis)
    assert recording.samples.shape[1] == 50
    assert written(recording, tmp_path) == npy(x)
    y = np.load(io.BytesIO(written(recording.denoise("db2"), tmp_path)))
    assert_array_equal(y, wavefilt.denoise(x, "db2", axis=-1 if axis is None else axis))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_keeps_the_other_arrays(tmp_path, rng, save):
    x, stream = rng.standard_normal((3, 64)), io.BytesIO()
    save(stream, data=x, other=np.arange(5))
    out = np.load(io.BytesIO(written(read(stream.getvalue(), component="data").denoise("db2"), tmp_path)))
    assert_array_equal(out["data"], wavefilt.denoise(x, "db2"))
    assert_array_equal(out["other"], np.arange(5))
    stream = io.BytesIO()
    save(stream, note=np.array("one array of numbers"), data=x)
    assert_array_equal(read(stream.getvalue()).samples, x)


def test_a_member_without_the_header_of_an_array_is_not_decompressed():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as member:
        for _ in range(64):
            member.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(FormatError, match="header"):
        read(out.getvalue())
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


SCIPY_WAVES = sorted(Path(importlib.util.find_spec("scipy").origin).parent.glob("io/tests/data/*Hz*.wav"))


@pytest.mark.parametrize("path", SCIPY_WAVES, ids=lambda path: path.stem)
def test_wav_files_of_scipy(tmp_path, path):
    """5 to 64 bits, both byte orders, RF64, other chunks: every byte is kept where nothing is removed."""
    from scipy.io import wavfile

    if any(word in path.name for word in ("early-eof", "incomplete", "ulaw", "inconsistent")):
        with pytest.raises(FormatError):
            wavefilt.read(path)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = wavfile.read(path)[1]
    recording = wavefilt.read(path)
    assert_array_equal(recording.samples, x.reshape(len(x), -1).T.astype("f8") - 128 * (x.dtype == "u1"))
    assert written(recording, tmp_path) == path.read_bytes()
    if "64bit." not in path.name:  # float64 does not have them all
        assert written(recording.denoise(rule=0.0), tmp_path) == path.read_bytes()


# ---- formats that ObsPy reads


@pytest.mark.parametrize("name", ["MSEED", "SAC", "GSE2", "SU", "SLIST", "TSPAIR", "SEGY"])
@pytest.mark.parametrize("dtype", ["i4", "f4"])
def test_files_that_obspy_writes(rng, name, dtype, tmp_path):
    obspy = pytest.importorskip("obspy")
    x = (1000 * np.cumsum(rng.standard_normal(500)) / 20).astype(dtype)
    stored = x.astype("i4") if name == "GSE2" else x.astype("f4") if name in ("SAC", "SU", "SEGY") else x
    header = {"station": "ABC", "delta": 0.01, "channel": "EHZ", "network": "XX"}
    trace = obspy.Trace(stored, header | {"starttime": obspy.UTCDateTime(2020, 1, 1)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace.write(str(tmp_path / "a.dat"), format=name)
    recording = wavefilt.read(tmp_path / "a.dat")
    assert (recording.format, recording.interval) == (name.lower(), pytest.approx(0.01))
    assert_allclose(recording.samples[0], stored, rtol=1e-6)  # text has 7 digits, SEG-Y by ObsPy IBM floats
    denoised = recording.denoise("db4", preset="gentle")
    denoised.write(tmp_path / "b.dat")
    again = wavefilt.read(tmp_path / "b.dat")
    integers = name == "GSE2" or (name == "MSEED" and dtype == "i4")
    assert ("rounded" in " ".join(recording.notes)) == integers
    assert_allclose(again.samples, denoised.samples, atol=0.51 if integers else 1e-3)
    assert (again.interval, again.ids) == (recording.interval, recording.ids)
    if name in ("MSEED", "GSE2", "SLIST", "TSPAIR"):
        assert "ABC" in again.ids[0]


@pytest.mark.parametrize(
    "parts",
    [
        *([(dtype, encoding, 256, order)] for order in ORDERS for dtype, encoding in
          [("i4", "STEIM1"), ("i4", "STEIM2"), ("i4", "INT32"), ("i2", "INT16"), ("f4", "FLOAT32"), ("f8", "FLOAT64")]),
        [("f4", "FLOAT32", 4096, ">"), ("i4", "STEIM2", 512, ">")],
        [("i4", "STEIM2", 4096, "<"), ("i4", "STEIM2", 512, ">")],
        [("i4", "STEIM1", 1024, "<"), ("i2", "INT16", 256, ">"), ("f8", "FLOAT64", 4096, ">")],
    ],
)  # fmt: skip
@pytest.mark.parametrize("two_dimensional", [False, True])
def test_miniseed_keeps_encodings_records_gaps_and_times(tmp_path, rng, parts, two_dimensional):
    obspy = pytest.importorskip("obspy")
    file, traces = io.BytesIO(), []
    for number, (dtype, encoding, records, order) in enumerate(parts):
        x = 1000 * np.sin(np.arange(900) / 9) + 40 * rng.standard_normal(900)
        if encoding == "INT16":  # denoised samples may leave the range
            x = np.where(np.arange(900) % 50 < 25, 32767, -32768)
        one = obspy.Trace(x.astype(dtype)[:400], {"station": f"S{number}", "delta": 0.01})
        two = obspy.Trace(x.astype(dtype)[500:], {**one.stats, "npts": 0, "starttime": one.stats.starttime + 5})
        two.data = two.data[:400]
        obspy.Stream([one, two]).write(file, format="MSEED", encoding=encoding, reclen=records, byteorder=order)
        traces += [one, two]
    recording = read(file.getvalue())
    assert all("samples are rounded when written" in note for note in recording.notes)
    denoised = recording.denoise("db2", preset="gentle", two_dimensional=two_dimensional)
    again = _obspy_read(io.BytesIO(written(denoised, tmp_path)), "MSEED")
    found = [(stats.encoding, stats.record_length, stats.byteorder) for stats in (t.stats.mseed for t in again)]
    assert found == [part[1:] for part in parts for _ in range(2)]
    assert [(t.id, t.stats.starttime) for t in again] == [(t.id, t.stats.starttime) for t in traces]
    for trace, y, old in zip(again, denoised.traces, traces, strict=True):
        assert trace.data.dtype.str[1:] == old.data.dtype.str[1:] or old.data.dtype.itemsize == 2
        limits = (-32768, 32767) if old.data.dtype.itemsize == 2 else (-np.inf, np.inf)
        assert_array_equal(trace.data, np.rint(y.clip(*limits)) if old.data.dtype.kind == "i" else y)
    if not two_dimensional:
        for before, after in zip(recording.traces, denoised.traces, strict=True):
            assert_allclose(after, wavefilt.denoise(before, "db2"), rtol=1e-5, atol=1e-3)


SAC_FILES = ["test.sac", "test.sac.swap", "seism.sac", "test_encode.sac", "null_terminated.sac", "LMOW.BHE.SAC"]
SAC_FILES += ["sample_spacing_rounding_issue.sac", "dis.G.SCZ.__.BHE_short"]


@pytest.mark.parametrize("name", SAC_FILES)
def test_only_the_samples_of_a_sac_file_and_their_statistics_change(name, tmp_path):
    before = _obspy_data(f"sac/{name}").read_bytes()
    recording = read(before).denoise("db1")
    after = written(recording, tmp_path)
    order = "<" if before[304] == 6 else ">"
    stats = _obspy_read(io.BytesIO(before), "SAC")[0].stats
    assert bool(recording.ids) == bool(stats.station)
    if recording.ids and name != "test_encode.sac":
        assert recording.ids == (".".join([stats.network, stats.station, stats.location, stats.channel]),)
        assert abs(recording.starts[0].astype(int) - stats.starttime.ns) < 1000
    samples = np.frombuffer(after, order + "f4", offset=632)
    assert_array_equal(samples, recording.samples[0])
    assert {at // 4 for at in range(0, 632, 4) if before[at : at + 4] != after[at : at + 4]} <= {1, 2, 56}
    for word, value in ((1, samples.min()), (2, samples.max()), (56, samples.mean(dtype="f8"))):
        stored = struct.unpack_from(order + "f", after, 4 * word)[0]
        assert stored == -12345 or stored == pytest.approx(value, rel=1e-6)


OTHERS = {
    "mseed": ["mseed/RJOB.BW.EHZ.D.300806.0000.fullseed"],
    "gse2": ["gse2/boa___00_07a.gse"],
    "gcf": ["gcf/20160603_1955n.gcf"],
    "win": ["win/10030302.00", "win/1070533011_1701260003.win", "win/25112618_ch0000.24bits"],
    "seisan": ["seisan/1996-06-03-1917-52S.TEST__002", "seisan/D1360930.203", "seisan/9701-30-1048-54S.MVO_21_1"],
    "reftek130": ["reftek/065520000_013EE8A0.rt130", "reftek/225051000_00008656"],
    "y": ["y/YAYT_BHZ_20021223.124800"],
    "dmx": ["dmx/131114_090600.dmx"],
    "pdas": ["pdas/p1246001.108"],
    "rg16": ["rg16/three_chans_six_traces.fcnt"],
    "kinemetrics_evt": ["kinemetrics/BI008_MEMA-04823.evt"],
}
WRITTEN_BY_OBSPY = ("mseed", "gse2", "gcf")


@pytest.mark.parametrize(("format", "path"), [(format, path) for format, paths in OTHERS.items() for path in paths])
def test_other_formats_of_obspy(tmp_path, format, path):
    """They are recognised without their names, and written as MiniSEED where ObsPy has no writer."""
    data = _obspy_data(path).read_bytes()
    file = io.BytesIO(data)
    for _ in range(2):  # a decoder of ObsPy swaps bytes in place
        file.seek(0)
        recording = wavefilt.read(file)
    assert recording.format == format
    for trace, expected in zip(recording.traces, _obspy_read(str(_obspy_data(path)), format.upper()), strict=True):
        assert_array_equal(trace, expected.data)
    if format in WRITTEN_BY_OBSPY:
        recording = recording.denoise("db2")
        assert read(written(recording, tmp_path)).format == format
    else:
        with pytest.raises(FormatError, match="MiniSEED"):
            recording.write(tmp_path / "x")
    if format in ("mseed", "gcf", "rg16", "kinemetrics_evt", "y", "pdas"):  # whose codes fit in MiniSEED
        after = read(written(recording, tmp_path, "x.mseed"))
        assert sum(map(len, after.traces)) == sum(map(len, recording.traces))
        assert {name.replace(" ", "") for name in recording.ids} in ({*after.ids}, set())


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", [name for name in CASES if ">" not in name and "raw" not in name])
def test_compressed_files_are_read(tmp_path, name, compress):
    case = CASES[name]
    assert_array_equal(read(compress(case.data), **case.options).samples, case.samples)
    (tmp_path / "x").write_bytes(compress(case.data))
    with pytest.raises(FormatError, match="decompress"):
        wavefilt.denoise_file(tmp_path / "x", tmp_path / "y")


@pytest.mark.parametrize("name", ["GSE2/loc_RJOB20050831023349.z", "GSE1/loc_STAU20031119011659.z"])
def test_a_decoder_that_crashes_takes_nothing_down(name):
    format, _, path = name.partition("/")
    whole = _obspy_data(f"gse2/{path}").read_bytes()
    before, line, after = whole.partition(b"DAT2\n" if format == "GSE2" else b"DAT1\n")
    with pytest.raises(FormatError, match=format):
        read(before + line + b"k" * 100_000 + b"\n" + after)
    assert len(read(whole).samples[0]) > 100


# ---- what is refused


def _archive(kind: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") if kind == "tar" else zipfile.ZipFile(out, "w") as file:
        (file.add if kind == "tar" else file.write)(SHOT, "x.dat")
    return out.getvalue()


def _text_trace() -> bytes:
    file = io.BytesIO()
    obspy = pytest.importorskip("obspy")
    obspy.Trace(np.frombuffer(b"clock locked", "S1"), {"station": "A", "channel": "LOG"}).write(file, format="MSEED")
    return file.getvalue()


REFUSED = {
    "truncated gzip": (lambda: gzip.compress(SHOT.read_bytes())[:-9], "compressed"),
    "damaged bzip2": (lambda: b"BZh" + bytes(9), "compressed"),
    "truncated bzip2": (lambda: bz2.compress(SHOT.read_bytes())[:-9], "compressed"),
    "tar": (lambda: _archive("tar"), "tar xf"),
    "zip": (lambda: _archive("zip"), "zip"),
    "Seismic Handler": (lambda: _obspy_data("sh/QFILE-TEST.QHD").read_bytes(), "QBN"),
    "CSS": (lambda: _obspy_data("css/test_css.wfdisc").read_bytes(), "CSS"),
    "NNSA": (lambda: _obspy_data("css/test_nnsa.wfdisc").read_bytes(), "NNSA"),
    "a trace of text": (_text_trace, "LOG"),
    "a header that claims more": (lambda: _obspy_data("ascii/mseed2ascii_miniseed_record.txt").read_bytes(), "360671"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_names_the_kind_and_what_to_do(kind):
    make, words = REFUSED[kind]
    with pytest.raises(FormatError, match=f"(?s){words}"):
        read(make())


def test_pickles_are_never_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "exploded",))

    for protocol in range(6):
        for options in ({}, {"format": "obspy"}):
            with pytest.raises(FormatError):
                read(pickle.dumps(Bomb(), protocol), **options)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("package", "data", "extra"),
    [("obspy", b"000001D " + bytes(504), "seismic"), ("h5py", b"\x89HDF\r\n\x1a\n" + bytes(88), "formats")],
)
def test_without_a_package_the_error_names_the_extra(tmp_path, monkeypatch, package, data, extra):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(FormatError, match=rf"wavefilt\[{extra}\]"):
        wavefilt.read(tmp_path / "x")


def test_an_unknown_option_or_layout_is_named():
    recording = wavefilt.read(SHOT)
    for options in ({"return_residual": True}, {"rul": "sure"}, {"axes": (0, 1)}):
        with pytest.raises(ValueError, match=next(iter(options))):
            recording.denoise(**options)
    for options in ({"ns": 5}, {"columns": (1,)}, {"dtype": "f4"}):
        with pytest.raises(FormatError, match=next(iter(options))):
            wavefilt.read(SHOT, **options)
    with pytest.raises(ValueError, match="'segy'"):
        wavefilt.read(SHOT, format="seg3")

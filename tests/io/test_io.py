"""Reading and writing: every format comes back with its headers, samples changed and nothing else."""

from __future__ import annotations

import gzip
import importlib.util
import io
import struct
import tracemalloc
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import wavefilt
from tests.support.checkout import FIELD, ROOT, SAMPLES
from wavefilt.cli import group
from wavefilt.errors import FormatError
from wavefilt.io import encode
from wavefilt.io.seg2 import DESCRIPTOR, strings

SAMPLE = SAMPLES / "seismic.dat"


def seg2_text(endian: str, *lines: str) -> bytes:
    texts = [line.encode() + b"\0" for line in lines]
    return b"".join(struct.pack(endian + "H", len(t) + 2) + t for t in texts) + b"\0\0"


def make_seg2(payloads, code, endian="<", samples=None, lines=("SAMPLE_INTERVAL 0.001",), pad=0, tail=b"") -> bytes:
    """A SEG-2 file made here from packed sample blocks, independent of the writer under test."""
    identifier = b"\x55\x3a" if endian == "<" else b"\x3a\x55"
    head = identifier + struct.pack(endian + "3H", 1, 4 * len(payloads) + 8, len(payloads))
    head += bytes([1, 0, 0, 1, 10, 0]) + bytes(18)
    notes = seg2_text(endian, "INSTRUMENT TEST", "NOTE two words")
    start = len(head) + 4 * len(payloads) + 8 + len(notes)
    body, pointers = b"", []
    for payload in payloads:
        text = seg2_text(endian, *lines)
        n = samples if samples is not None else len(payload) // {1: 2, 2: 4, 4: 4, 5: 8}[code]
        pointers.append(start + len(body))
        body += struct.pack(endian + "2H2I", 0x4422, DESCRIPTOR + len(text), len(payload), n)
        body += bytes([code]) + bytes(19) + text + payload + b"\xee" * pad
    return head + struct.pack(f"{endian}{len(pointers)}I", *pointers) + bytes(8) + notes + body + tail


def pack_20_bit(mantissas, exponents, endian="<") -> bytes:
    """Groups of four: one word of exponents, lowest first, and four ones'-complement mantissas."""
    out = b""
    for m, e in zip(np.reshape(mantissas, (-1, 4)), np.reshape(exponents, (-1, 4)), strict=True):
        word = sum(int(x) << (4 * i) for i, x in enumerate(e))
        out += struct.pack(endian + "H4h", word, *(int(x) - (x < 0) for x in m))
    return out


def read_bytes(data: bytes, **layout) -> wavefilt.Recording:
    return wavefilt.read(io.BytesIO(data), **layout)


class TestSeg2:
    @pytest.mark.parametrize("endian", ["<", ">"])
    @pytest.mark.parametrize("code", [1, 2, 4, 5])
    def test_codes_and_byte_orders(self, rng, code, endian):
        dtype = endian + {1: "i2", 2: "i4", 4: "f4", 5: "f8"}[code]
        samples = (1000 * rng.standard_normal((3, 250))).astype(dtype)
        data = make_seg2([row.tobytes() for row in samples], code, endian, pad=6, tail=b"end")
        recording = read_bytes(data)
        assert np.array_equal(recording.samples, samples)
        assert recording.interval == 0.001
        written = encode(recording)
        again = read_bytes(written)
        assert np.array_equal(again.samples, samples)
        assert again.samples.dtype == np.dtype("f8" if code == 5 else "f4")
        assert written.endswith(b"\xee" * 6 + b"end")
        if code >= 4:
            assert written == data

    @pytest.mark.parametrize("endian", ["<", ">"])
    def test_twenty_bit_samples(self, rng, endian):
        mantissas, exponents = rng.integers(-32767, 32767, 400), rng.integers(0, 15, 400)
        data = make_seg2([pack_20_bit(mantissas, exponents, endian)] * 2, 3, endian, samples=400)
        recording = read_bytes(data)
        assert np.array_equal(recording.samples[1], mantissas << exponents)
        again = read_bytes(encode(recording))
        assert_allclose(again.samples[1], (mantissas << exponents), rtol=1e-7)

    def test_every_header_byte_survives(self, rng):
        payload = (100 * rng.standard_normal(64)).astype("<i2").tobytes()
        data = make_seg2([payload] * 3, 1, pad=2)
        written = encode(read_bytes(data))
        old, new = (struct.unpack_from("<3I", d, 32) for d in (data, written))
        assert written[:32] == data[:32]
        assert written[44 : new[0]] == data[44 : old[0]]
        for o, n in zip(old, new, strict=True):
            # of the trace descriptor only the size of the data block and the sample code change
            assert written[n : n + 4] == data[o : o + 4]
            assert written[n + 8 : n + 12] == data[o + 8 : o + 12]
            assert written[n + 13 : n + 54] == data[o + 13 : o + 54]
            assert struct.unpack_from("<I", written, n + 4)[0] == 64 * 4

    def test_options_of_another_name(self):
        recording = wavefilt.read(SAMPLE)
        for options in ({"return_noise": True}, {"rul": "sure"}, {"axes": (0, 1)}):
            with pytest.raises(ValueError, match=f"option='{next(iter(options))}' is not one of .*two_dimensional"):
                recording.denoise(**options)

    def test_traces_of_different_lengths_and_order(self, rng, tmp_path, monkeypatch):
        payloads = [rng.standard_normal(n).astype("<f4").tobytes() for n in (300, 200, 250)]
        data = bytearray(make_seg2(payloads, 4))
        pointers = struct.unpack_from("<3I", data, 32)
        struct.pack_into("<3I", data, 32, *pointers[::-1])  # the pointers need not follow the file
        recording = read_bytes(bytes(data))
        assert [len(t) for t in recording.traces] == [250, 200, 300]
        with pytest.raises(ValueError, match="3 lengths"):
            recording.samples  # noqa: B018
        with pytest.raises(ValueError, match=r"one length, not of 200 to 300 samples; leave two_dimensional=True out"):
            recording.denoise(two_dimensional=True)
        monkeypatch.chdir(tmp_path)
        Path("x.dat").write_bytes(data)
        told = CliRunner().invoke(group, ["denoise", "x.dat", "--two-dimensional", "--dry-run"])
        assert "one length, not of 200 to 300 samples" in str(told.exception)
        denoised = recording.denoise("db4")
        for before, after in zip(recording.traces, denoised.traces, strict=True):
            assert_allclose(after, wavefilt.denoise(before, "db4"), rtol=1e-6)
        again = read_bytes(encode(denoised))
        assert all(np.array_equal(a, b) for a, b in zip(again.traces, denoised.traces, strict=True))

    @pytest.mark.parametrize("line", ["SAMPLE_INTERVAL abc", "SAMPLE_INTERVAL 0", "SAMPLE_INTERVAL -1", "OTHER 1"])
    def test_missing_interval_is_unknown_or_given(self, line):
        data = make_seg2([np.ones(20, "<f4").tobytes()], 4, lines=(line,))
        assert read_bytes(data).interval is None
        assert read_bytes(data, dt=0.004).interval == 0.004

    def test_free_form_that_runs_over_is_tolerated(self):
        text = struct.pack("<H", 24) + b"SAMPLE_INTERVAL 0.0005" + struct.pack("<H", 60000) + b"OYO"
        assert strings(text, "<", 0, len(text)) == {"SAMPLE_INTERVAL": "0.0005"}

    def test_obspy_reads_what_is_written(self, tmp_path, rng):
        obspy = pytest.importorskip("obspy")
        payloads = [(1000 * rng.standard_normal(200)).astype("<i2").tobytes() for _ in range(2)]
        (tmp_path / "a.dat").write_bytes(make_seg2(payloads, 1))
        recording = wavefilt.read(tmp_path / "a.dat").denoise("db3")
        recording.write(tmp_path / "b.dat")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stream = obspy.read(str(tmp_path / "b.dat"), format="SEG2")
        assert_allclose([t.data for t in stream], recording.samples)


SAC_FILES = ["test.sac", "test.sac.swap", "seism.sac", "test_encode.sac", "null_terminated.sac", "LMOW.BHE.SAC"]
SAC_FILES += ["sample_spacing_rounding_issue.sac", "dis.G.SCZ.__.BHE_short"]


def obspy_data(*parts) -> Path:
    pytest.importorskip("obspy")
    return Path(importlib.util.find_spec("obspy").origin).parent.joinpath("io", *parts)


@pytest.mark.parametrize(
    "name", ["20180307_031245000.0.seg2", "20130107_103041000.CET.3c.cont.0.seg2.gz"], ids=["code3", "code2"]
)
def test_seg2_files_of_obspy_agree_with_their_ascii_twins(name, tmp_path):
    path = obspy_data("seg2", "tests", "data", name)
    data = gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_bytes()
    (tmp_path / "field.dat").write_bytes(data)
    recording = wavefilt.read(tmp_path / "field.dat")
    twin = gzip.decompress(path.with_name(name.split(".seg2")[0] + ".DAT.gz").read_bytes())
    (tmp_path / "twin.dat").write_bytes(twin)
    columns = wavefilt.read(tmp_path / "twin.dat")
    factors = []
    for trace, column in zip(recording.samples.astype("f8"), columns.samples, strict=True):
        factors.append(trace @ column / (trace @ trace))  # DESCALING_FACTOR: the twin is in volts
        assert_allclose(trace * factors[-1], column, atol=2e-5 * np.abs(column).max())
    assert np.all(np.array(factors) != 0)
    columns.denoise().write(tmp_path / "out.dat")
    out = (tmp_path / "out.dat").read_bytes()
    assert len(out) == len(twin) or abs(len(out) - len(twin)) < 0.02 * len(twin)
    assert wavefilt.read(tmp_path / "out.dat").samples.shape == columns.samples.shape


@pytest.mark.skipif(not FIELD, reason="WAVEFILT_FIELD_RECORDS names no folder of field records")
@pytest.mark.parametrize("path", FIELD, ids=[path.stem for path in FIELD])
def test_field_records(path, tmp_path):
    recording = wavefilt.read(path)
    assert recording.samples.shape == (24, 1500)
    assert recording.interval == 0.001
    denoised = recording.denoise()
    denoised.write(tmp_path / "out.dat")
    before, after = path.read_bytes(), (tmp_path / "out.dat").read_bytes()
    changed = np.frombuffer(before, "u1") != np.frombuffer(after, "u1")
    for trace in recording.origin.traces:
        changed[trace.data : trace.end] = False
    assert not changed.any()  # every header byte survives: code 4 is written in place
    assert np.array_equal(wavefilt.read(tmp_path / "out.dat").samples, wavefilt.denoise(recording.samples))
    obspy = pytest.importorskip("obspy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = obspy.read(str(tmp_path / "out.dat"), format="SEG2")
    assert np.array_equal([t.data for t in stream], denoised.samples)


class TestRaw:
    @pytest.mark.parametrize("endian", ["little", "big"])
    @pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i4"])
    def test_round_trip(self, rng, dtype, endian):
        code = {"little": "<", "big": ">"}[endian] + dtype
        samples = (100 * rng.standard_normal((3, 40))).astype(code)
        recording = read_bytes(samples.tobytes(), format="raw", dtype=dtype, endian=endian, ns=40, dt=0.002)
        assert np.array_equal(recording.samples, samples)
        assert recording.interval == 0.002
        written = np.frombuffer(encode(recording), code if dtype[0] == "f" else code[0] + "f4")
        assert np.array_equal(written.reshape(3, 40), samples)


class TestNumpy:
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize(("shape", "axis"), [((50,), None), ((3, 50), None), ((50, 3), 0), ((2, 3, 50), -1)])
    def test_npy_keeps_shape_order_and_axis(self, rng, shape, axis, order):
        x = np.asarray(rng.standard_normal(shape), order=order)
        stream = io.BytesIO()
        np.save(stream, x)
        recording = read_bytes(stream.getvalue(), axis=axis)
        assert recording.samples.shape[1] == 50
        assert encode(recording) == stream.getvalue()
        y = np.load(io.BytesIO(encode(recording.denoise("db2"))))
        assert np.array_equal(y, wavefilt.denoise(x, "db2", axis=-1 if axis is None else axis))

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    def test_npz_keeps_the_other_arrays(self, rng, save):
        x, other = rng.standard_normal((3, 64)), np.arange(5)
        stream = io.BytesIO()
        save(stream, data=x, other=other)
        out = np.load(io.BytesIO(encode(read_bytes(stream.getvalue(), component="data").denoise("db2"))))
        assert np.array_equal(out["data"], wavefilt.denoise(x, "db2"))
        assert np.array_equal(out["other"], other)

    def test_integers_become_floats(self):
        stream = io.BytesIO()
        np.save(stream, np.arange(100, dtype="i2"))
        assert np.load(io.BytesIO(encode(read_bytes(stream.getvalue()).denoise("haar")))).dtype == np.float32

    @pytest.mark.parametrize("dtype", ["f2", ">f4", "g"])
    def test_floating_types_and_byte_orders_are_kept(self, rng, dtype):
        stream = io.BytesIO()
        np.save(stream, rng.standard_normal(200).astype(dtype))
        assert np.load(io.BytesIO(encode(read_bytes(stream.getvalue()).denoise()))).dtype == np.dtype(dtype)

    def test_complex(self, rng):
        stream = io.BytesIO()
        x = rng.standard_normal(64) + 1j
        np.save(stream, x)
        assert np.array_equal(np.load(io.BytesIO(encode(read_bytes(stream.getvalue()).denoise()))), wavefilt.denoise(x))


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("channels", [1, 2])
def test_wav(rng, dtype, channels):
    from scipy.io import wavfile

    x = rng.standard_normal((400, channels))
    x = (x if dtype[0] == "f" else 100 + 20 * x).astype(dtype)
    stream = io.BytesIO()
    wavfile.write(stream, 8000, x[:, 0] if channels == 1 else x)
    recording = read_bytes(stream.getvalue())
    assert recording.interval == 1 / 8000
    assert recording.samples.shape == (channels, 400)
    assert np.array_equal(wavfile.read(io.BytesIO(encode(recording)))[1].reshape(400, -1), x)
    rate, y = wavfile.read(io.BytesIO(encode(recording.denoise())))
    assert (rate, y.dtype) == (8000, np.dtype(dtype))
    assert not np.array_equal(y.reshape(400, -1), x)


def wave(tag, width, samples, order="<", before=b"", after=b"", form=b"RIFF"):
    """A file of one channel at 8 kHz, with other chunks."""
    head = struct.pack(order + "2H2I2H", tag, 1, 8000, 8000 * width, width, 8 * width)
    chunks = b"fmt " + struct.pack(order + "I", 16) + head + before + b"data"
    chunks += struct.pack(order + "I", len(samples)) + samples + after
    return (b"RIFX" if order == ">" else form) + struct.pack(order + "I", 4 + len(chunks)) + b"WAVE" + chunks


SCIPY_WAVES = sorted(Path(importlib.util.find_spec("scipy").origin).parent.glob("io/tests/data/*Hz*.wav"))


@pytest.mark.parametrize("path", SCIPY_WAVES, ids=lambda path: path.stem)
def test_wav_files_of_scipy(path):
    """Its numbers, and every byte kept where nothing is removed: 5 to 64 bits, both byte orders, RF64, other chunks."""
    from scipy.io import wavfile

    refused = ("early-eof", "incomplete", "ulaw", "inconsistent")
    if any(word in path.name for word in refused):
        with pytest.raises(FormatError, match=r"WAV|claims"):
            wavefilt.read(path)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = wavfile.read(path)[1]
    recording = wavefilt.read(path)
    assert np.array_equal(recording.samples, x.reshape(len(x), -1).T.astype("f8") - 128 * (x.dtype == "u1"))
    assert encode(recording) == path.read_bytes()
    if "64bit." not in path.name:  # float64 does not have them all
        assert encode(recording.denoise(rule=0.0)) == path.read_bytes()


@pytest.mark.filterwarnings("error")
def test_the_largest_integers_of_64_bits_stay_the_largest():
    x = np.array([2**63 - 1, -(2**63), 5, -7] * 16, "<i8")
    data = wave(1, 8, x.tobytes())
    assert encode(read_bytes(data).denoise("haar", rule=0.0)) == data


def test_wav_keeps_other_chunks():
    data = wave(1, 2, np.arange(100, dtype="<i2").tobytes(), before=b"bext\5\0\0\0hello\0", after=b"LIST\4\0\0\0INFO")
    assert encode(read_bytes(data).denoise("haar", rule=0.0)) == data
    louder = replace(read_bytes(data), traces=read_bytes(data).traces + 1.4)
    assert encode(louder) == data.replace(
        np.arange(100, dtype="<i2").tobytes(), np.arange(1, 101, dtype="<i2").tobytes()
    )


def test_rf64_says_its_length_in_another_chunk():
    x = np.arange(100, dtype="<i2").tobytes()
    data = wave(1, 2, x, form=b"RF64")
    data = data[:12] + b"ds64" + struct.pack("<I3QI", 28, 0, len(x), 100, 0) + data[12:]
    data = data.replace(b"data" + struct.pack("<I", len(x)), b"data" + b"\xff" * 4)
    assert np.array_equal(read_bytes(data).samples[0], np.arange(100))
    assert encode(read_bytes(data)) == data


class TestObsPy:
    @pytest.mark.parametrize("name", ["MSEED", "SAC", "GSE2", "SU", "SLIST", "TSPAIR", "SEGY"])
    @pytest.mark.parametrize("dtype", ["i4", "f4"])
    def test_formats_come_back_as_they_came(self, rng, name, dtype, tmp_path):
        obspy = pytest.importorskip("obspy")
        x = (1000 * np.cumsum(rng.standard_normal(500)) / 20).astype(dtype)
        trace = obspy.Trace(x, {"station": "ABC", "delta": 0.01, "channel": "EHZ", "network": "XX"})
        stored = x.astype("i4") if name == "GSE2" else x.astype("f4") if name in ("SAC", "SU", "SEGY") else x
        trace.data = stored
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trace.write(str(tmp_path / "a.dat"), format=name)
        recording = wavefilt.read(tmp_path / "a.dat")
        assert recording.format == name.lower()
        assert recording.interval == pytest.approx(0.01)
        # text has 7 digits and SEG-Y, as ObsPy writes it, IBM floats
        assert_allclose(recording.samples[0], stored, rtol=1e-6)
        denoised = recording.denoise("db4")
        denoised.write(tmp_path / "b.dat")
        again = wavefilt.read(tmp_path / "b.dat")
        integers = name == "GSE2" or (name == "MSEED" and dtype == "i4")
        assert ("samples are rounded" in " ".join(recording.notes)) == integers
        tolerance = 0.51 if integers else 1e-3
        assert_allclose(again.samples, denoised.samples, atol=tolerance)
        assert again.interval == recording.interval
        if name in ("MSEED", "GSE2", "SLIST", "TSPAIR"):
            assert again.origin.stream[0].stats.station == "ABC"

    @pytest.mark.parametrize(
        ("encoding", "dtype"),
        [("STEIM1", "i4"), ("STEIM2", "i4"), ("INT32", "i4"), ("INT16", "i2"), ("FLOAT32", "f4"), ("FLOAT64", "f8")],
    )
    @pytest.mark.parametrize("order", "<>")
    def test_miniseed_keeps_encoding_records_and_gaps(self, rng, tmp_path, encoding, dtype, order):
        obspy = pytest.importorskip("obspy")
        from obspy.io.mseed.util import get_record_information

        x = 9 * np.sin(np.arange(900) / 9) + 4 * rng.standard_normal(900)
        if encoding == "INT16":  # what is denoised may leave the range
            x = np.where(np.arange(900) % 50 < 25, 32767, -32768)
        x = x.astype(dtype)
        one = obspy.Trace(x[:400], {"station": "A", "delta": 0.01})
        two = obspy.Trace(x[500:], {"station": "A", "delta": 0.01, "starttime": one.stats.starttime + 5})
        obspy.Stream([one, two]).write(
            str(tmp_path / "a"), format="MSEED", encoding=encoding, reclen=256, byteorder=order
        )
        denoised = wavefilt.read(tmp_path / "a").denoise("db2")
        denoised.write(tmp_path / "b")
        before, after = (get_record_information(str(tmp_path / name)) for name in "ab")
        for key in ("encoding", "record_length", "byteorder", "starttime"):
            assert after[key] == before[key]
        stream = obspy.read(str(tmp_path / "b"), format="MSEED")
        assert [trace.stats.starttime for trace in stream] == [one.stats.starttime, two.stats.starttime]
        for trace, y in zip(stream, denoised.traces, strict=True):
            expected = np.rint(y.clip(-32768, 32767) if dtype == "i2" else y) if dtype[0] == "i" else y
            assert np.array_equal(trace.data, expected)

    @pytest.mark.parametrize(
        "parts",
        [
            [("f4", "FLOAT32", 4096, ">"), ("i4", "STEIM2", 512, ">")],
            [("i4", "STEIM2", 4096, "<"), ("i4", "STEIM2", 512, ">")],
            [("f4", "FLOAT32", 512, "<"), ("f8", "FLOAT64", 512, "<")],
            [("i4", "STEIM1", 1024, "<"), ("i2", "INT16", 256, ">"), ("f8", "FLOAT64", 4096, ">")],
        ],
    )
    @pytest.mark.parametrize("two_dimensional", [False, True])
    def test_miniseed_keeps_encoding_and_records_of_every_trace(self, rng, parts, two_dimensional):
        obspy = pytest.importorskip("obspy")
        file = io.BytesIO()
        for number, (dtype, encoding, records, order) in enumerate(parts):
            x = (1000 * np.sin(np.arange(900) / 9) + 40 * rng.standard_normal(900)).astype(dtype)
            trace = obspy.Trace(x, {"station": f"S{number}", "delta": 0.01})
            trace.write(file, format="MSEED", encoding=encoding, reclen=records, byteorder=order)
        recording = read_bytes(file.getvalue())
        denoised = recording.denoise("db2", two_dimensional=two_dimensional)
        again = read_bytes(encode(denoised)).origin.stream
        found = [(stats.encoding, stats.record_length, stats.byteorder) for stats in (t.stats.mseed for t in again)]
        assert found == [part[1:] for part in parts]
        for trace, y, part in zip(again, denoised.traces, parts, strict=True):
            assert np.array_equal(trace.data, np.rint(y) if part[0][0] == "i" else y)
        if not two_dimensional:
            for before, after in zip(recording.traces, denoised.traces, strict=True):
                assert_allclose(after, wavefilt.denoise(before, "db2"), rtol=1e-5, atol=1e-3)

    def test_a_trace_of_text_is_named(self):
        obspy = pytest.importorskip("obspy")
        file = io.BytesIO()
        obspy.Trace(np.arange(900, dtype="i4"), {"station": "A"}).write(file, format="MSEED")
        text = np.frombuffer(b"clock locked", "S1")
        obspy.Trace(text, {"station": "A", "channel": "LOG"}).write(file, format="MSEED")
        with pytest.raises(FormatError, match=r"samples that are not numbers: those of \.A\.\.LOG"):
            read_bytes(file.getvalue())

    @pytest.mark.parametrize("order", "<>")
    def test_sac_keeps_its_byte_order_and_headers(self, rng, tmp_path, order):
        obspy = pytest.importorskip("obspy")
        trace = obspy.Trace(rng.standard_normal(300).astype("f4"), {"station": "A", "sac": {"stla": 47.5, "user3": 8}})
        trace.write(str(tmp_path / "a"), format="SAC", byteorder=order)
        wavefilt.read(tmp_path / "a").denoise("db2").write(tmp_path / "b")
        before, after = ((tmp_path / name).read_bytes() for name in "ab")
        assert len(before) == len(after)
        changed = {i // 4 for i in range(0, 632, 4) if before[i : i + 4] != after[i : i + 4]}
        assert changed <= {1, 2, 56}  # smallest, largest and mean sample

    @pytest.mark.parametrize("name", ["ah1.f", "hrv.lh.zne"])
    def test_a_start_time_that_would_be_lost_is_an_error(self, tmp_path, name):
        """ObsPy writes whole seconds to AH."""
        recording = wavefilt.read(obspy_data("ah", "tests", "data", name))
        start = recording.origin.stream[0].stats.starttime
        assert start.microsecond
        with pytest.raises(FormatError, match=rf"start times .{start}. back; nothing was written"):
            recording.write(tmp_path / "x")
        assert list(tmp_path.iterdir()) == []

    def test_ids_that_would_be_lost_are_an_error(self):
        obspy = pytest.importorskip("obspy")
        from wavefilt.io.obspy.waveforms import written

        trace = obspy.Trace(np.arange(300, dtype="i4"), {"station": "A", "network": "XX", "delta": 0.01})
        with pytest.raises(FormatError, match=r"codes of network, station and channel .XX\.A"):
            written(obspy.Stream([trace]), "SH_ASC")

    @pytest.mark.parametrize("name", SAC_FILES)
    def test_of_a_sac_file_nothing_but_samples_and_what_describes_them_changes(self, name, tmp_path):
        before = obspy_data("sac", "tests", "data", name).read_bytes()
        recording = read_bytes(before).denoise("db1")
        recording.write(tmp_path / "x")
        after = (tmp_path / "x").read_bytes()
        order = "<" if before[304] == 6 else ">"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stats = pytest.importorskip("obspy").read(io.BytesIO(before), format="SAC")[0].stats
        if recording.ids and name != "test_encode.sac":
            assert recording.ids == (".".join([stats.network, stats.station, stats.location, stats.channel]),)
            assert abs(recording.starts[0].astype(int) - stats.starttime.ns) < 1000
        assert bool(recording.ids) == bool(stats.station)
        written = np.frombuffer(after, order + "f4", offset=632)
        assert np.array_equal(written, recording.samples[0])
        changed = {at // 4 for at in range(0, 632, 4) if before[at : at + 4] != after[at : at + 4]}
        assert changed <= {1, 2, 56}
        for word, value in ((1, written.min()), (2, written.max()), (56, written.mean(dtype="f8"))):
            said = struct.unpack_from(order + "f", after, 4 * word)[0]
            assert said == -12345 or said == pytest.approx(value, rel=1e-6)

    def test_a_text_format_only_obspy_knows(self, tmp_path):
        obspy = pytest.importorskip("obspy")
        path = tmp_path / "a.dat"
        trace = obspy.Trace(np.arange(100, dtype="f4"))
        trace.write(str(path), format="SACXY")
        recording = wavefilt.read(path)
        assert recording.origin.format == "SACXY"
        assert np.array_equal(recording.samples[0], trace.data)

    def test_traces_of_different_lengths(self, rng, tmp_path):
        obspy = pytest.importorskip("obspy")
        traces = [obspy.Trace(rng.standard_normal(n).astype("f4"), {"station": f"S{n}"}) for n in (300, 200)]
        obspy.Stream(traces).write(str(tmp_path / "a.mseed"), format="MSEED")
        recording = wavefilt.read(tmp_path / "a.mseed").denoise("db2")
        recording.write(tmp_path / "b.mseed")
        again = wavefilt.read(tmp_path / "b.mseed")
        assert sorted(len(t) for t in again.traces) == [200, 300]

    @pytest.mark.parametrize(
        ("path", "name"),
        [
            ("gse2/tests/data/boa___00_07a.gse", "gse2"),
            ("mseed/tests/data/RJOB.BW.EHZ.D.300806.0000.fullseed", "mseed"),
            ("sac/tests/data/test.sac", "sac"),
        ],
    )
    def test_files_of_obspy_can_be_read_again(self, path, name, tmp_path):
        recording = wavefilt.read(obspy_data(*path.split("/"))).denoise("db2")
        assert recording.format == name
        recording.write(tmp_path / "out")
        again = wavefilt.read(tmp_path / "out")
        for before, after in zip(recording.traces, again.traces, strict=True):
            assert_allclose(after, before, atol=1e-3 if name == "sac" else 0.51, rtol=1e-5)

    def test_a_writer_that_gives_nothing_back_is_an_error(self, tmp_path, monkeypatch):
        recording = wavefilt.read(obspy_data("gcf", "tests", "data", "20160603_1955n.gcf"))
        from wavefilt.io.obspy import waveforms

        for wrong in (lambda data: data[: len(data) // 2], lambda data: bytes(len(data)), lambda data: data[::-1]):
            monkeypatch.setattr(
                waveforms, "_written", lambda *a, wrong=wrong, write=waveforms._written: wrong(write(*a))
            )
            with pytest.raises(wavefilt.FormatError, match="does not give these samples back"):
                recording.denoise().write(tmp_path / "out.gcf")
            monkeypatch.undo()
        assert list(tmp_path.iterdir()) == []

    def test_the_decoder_of_gcf_does_not_change_the_bytes_it_is_given(self, tmp_path):
        """ObsPy's swaps bytes in place, also of what is no GCF: every second reading failed, and writing."""
        path = obspy_data("gcf", "tests", "data", "20160603_1955n.gcf")
        data = path.read_bytes()
        file = io.BytesIO(data)
        for _ in range(3):
            recording = wavefilt.read(file)
            assert recording.format == "gcf"
            file.seek(0)
        assert data == path.read_bytes()
        recording.denoise().write(tmp_path / "out.gcf")
        assert wavefilt.read(tmp_path / "out.gcf").origin.stream[0].id == recording.origin.stream[0].id

    def test_fewer_samples_than_the_header_claims(self):
        path = obspy_data("ascii", "tests", "data", "mseed2ascii_miniseed_record.txt")
        with pytest.raises(wavefilt.FormatError, match="claims 360671 samples and holds 422"):
            wavefilt.read(path)

    @pytest.mark.parametrize(
        ("name", "data"), [("GSE2", "loc_RJOB20050831023349.z"), ("GSE1", "loc_STAU20031119011659.z")]
    )
    def test_a_decoder_that_crashes_takes_nothing_down(self, name, data):
        whole = obspy_data("gse2", "tests", "data", data).read_bytes()
        before, line, after = whole.partition(b"DAT2\n" if name == "GSE2" else b"DAT1\n")
        with pytest.raises(FormatError, match=f"ObsPy cannot read it as {name} .its decoder crashed"):
            read_bytes(before + line + b"k" * 100_000 + b"\n" + after)
        assert len(read_bytes(whole).samples[0]) > 100

    def test_without_obspy_the_error_names_the_extra(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "obspy", None)
        with pytest.raises(wavefilt.FormatError, match=r'pip install "wavefilt\[seismic\]"'):
            read_bytes(b"000001D " + bytes(504))


class TestWriting:
    def test_refuses_to_overwrite(self, tmp_path):
        recording = wavefilt.read(SAMPLE)
        recording.write(tmp_path / "a.dat")
        with pytest.raises(FileExistsError, match="overwrite"):
            recording.write(tmp_path / "a.dat")
        recording.write(tmp_path / "a.dat", overwrite=True)
        assert (tmp_path / "a.dat").read_bytes() == SAMPLE.read_bytes()

    def test_devices_are_written_to_and_folders_refused(self, tmp_path):
        wavefilt.read(SAMPLE).write("/dev/null")
        assert Path("/dev/null").is_char_device()
        with pytest.raises(IsADirectoryError, match="is a folder"):
            wavefilt.read(SAMPLE).write(tmp_path, overwrite=True)

    def test_a_symbolic_link_stays_one(self, tmp_path):
        (tmp_path / "real.dat").write_bytes(b"old")
        (tmp_path / "link.dat").symlink_to("real.dat")
        with pytest.raises(FileExistsError):
            wavefilt.read(SAMPLE).write(tmp_path / "link.dat")
        wavefilt.read(SAMPLE).write(tmp_path / "link.dat", overwrite=True)
        assert (tmp_path / "link.dat").is_symlink()
        assert (tmp_path / "real.dat").read_bytes() == SAMPLE.read_bytes()

    def test_permissions_follow_the_umask(self, tmp_path):
        wavefilt.read(SAMPLE).write(tmp_path / "a.dat")
        (tmp_path / "plain").write_bytes(b"")
        assert (tmp_path / "a.dat").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_a_failed_write_leaves_nothing(self, tmp_path, monkeypatch):
        (tmp_path / "a.dat").write_bytes(b"old")

        def broken(*_):
            raise OSError("disk full")

        monkeypatch.setattr("os.fsync", broken)
        with pytest.raises(OSError, match="disk full"):
            wavefilt.read(SAMPLE).write(tmp_path / "a.dat", overwrite=True)
        assert [p.name for p in tmp_path.iterdir()] == ["a.dat"]
        assert (tmp_path / "a.dat").read_bytes() == b"old"


def test_the_extension_is_not_looked_at(tmp_path):
    (tmp_path / "a.wav").write_bytes(SAMPLE.read_bytes())
    assert wavefilt.read(tmp_path / "a.wav").format == "seg2"


def test_pickles_are_never_loaded(tmp_path):
    import pickle

    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "exploded",))

    for protocol in range(6):
        (tmp_path / "a.dat").write_bytes(pickle.dumps(Bomb(), protocol))
        with pytest.raises(wavefilt.FormatError):
            wavefilt.read(tmp_path / "a.dat")
        with pytest.raises(wavefilt.FormatError):
            wavefilt.read(tmp_path / "a.dat", format="obspy")
    assert not (tmp_path / "exploded").exists()


def assert_read_or_refused(data: bytes) -> None:
    """Either there are traces, or the error is a FormatError with a message."""
    try:
        traces = read_bytes(data).traces
    except wavefilt.FormatError as error:
        traces = [str(error)]
    assert all(len(trace) > 0 for trace in traces)
    assert len(traces) > 0


@given(st.binary(max_size=4000))
def test_random_bytes_give_an_error_or_a_recording(data):
    assert_read_or_refused(data)


@given(st.data())
def test_damaged_seg2_gives_an_error_or_a_recording(data):
    whole = SAMPLE.read_bytes()[:6000]
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, 200))] = data.draw(st.integers(0, 255))
    assert_read_or_refused(bytes(damaged))


def test_a_damaged_table_that_obspy_claims_is_blamed_by_line():
    pytest.importorskip("obspy")
    with pytest.raises(FormatError, match=r"line 23: '.*' has 3 cells .*; ObsPy cannot read it as SACXY"):
        wavefilt.read(ROOT / "tests/support/findings" / "ascii" / "table-that-obspy-claims")


def test_an_unknown_file_without_lines_is_refused_soon_and_in_little_memory(tmp_path):
    """ObsPy's tests of GSE1, SACXY, SLIST and TSPAIR read up to the end of a line: all of a file of zeros."""
    pytest.importorskip("obspy")
    from wavefilt.io.obspy import recognition

    with open(tmp_path / "x", "w+b") as file:
        file.truncate(3 << 30)
        tracemalloc.start()
        try:
            assert recognition.recognised_by_obspy(file) is None
            assert tracemalloc.get_traced_memory()[1] < 32 << 20
        finally:
            tracemalloc.stop()
    read = io.BytesIO.read
    taken = []

    class Counted(io.BytesIO):
        def read(self, size=-1):
            taken.append(size)
            return read(self, size)

    assert recognition.recognised_by_obspy(Counted(bytes(8 << 20))) is None
    assert sum(taken) < 40 * recognition.LONGEST
    assert min(taken) >= 0


@pytest.mark.parametrize("kind", ["sac", "wav i2", "wav u1", "wav 24 bits", "wav f4"])
def test_sac_and_wav_in_parts_are_as_in_memory(tmp_path, rng, kind):
    x = (2000 * rng.standard_normal(5000)).astype("<f4")
    if kind == "sac":
        data = bytearray(struct.pack("<158f", *[-12345.0] * 158))
        struct.pack_into("<f", data, 0, 0.01)
        struct.pack_into("<i8xi", data, 304, 6, 5000)
        struct.pack_into("<i76xi", data, 340, 1, 1)
        data += x.tobytes()
    else:
        stored = {"wav i2": x.astype("<i2"), "wav u1": (x / 99 + 128).astype("u1"), "wav f4": x}
        stored["wav 24 bits"] = x.astype("<i4").view("u1").reshape(-1, 4)[:, :3]
        width = {"wav u1": 1, "wav i2": 2, "wav 24 bits": 3, "wav f4": 4}[kind]
        data = wave(3 if width == 4 else 1, width, stored[kind].tobytes())
    (tmp_path / "x").write_bytes(data)
    recording = wavefilt.read(tmp_path / "x")
    assert recording.format == kind.split()[0]
    recording.denoise("db4", backend="pywavelets").write(tmp_path / "whole")
    wavefilt.denoise_file(tmp_path / "x", tmp_path / "parts", "db4", backend="pywavelets", max_memory="200MiB")
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (tmp_path / "parts").read_bytes() != bytes(data)

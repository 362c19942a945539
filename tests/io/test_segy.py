"""SEG-Y and SU: every byte but the samples is kept, in memory and streamed. Files are made byte by byte."""

from __future__ import annotations

import os
import struct
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import wavefilt
from tests.support.segy_files import DTYPES, revision_2, samples_of, segy_file, su_file
from wavefilt.cli import group
from wavefilt.io import segy
from wavefilt.io.arrays import contiguous
from wavefilt.outofcore import memory_budget, streaming

INTEGERS = {code for code, dtype in DTYPES.items() if code != 1 and dtype[0] != "f"}


def from_ibm(words):
    """The numbers that IBM's 4-byte floats stand for: sign, exponent of 16 plus 64, 24 bits of fraction."""
    words = words.astype(np.uint32).astype(np.int64)
    return np.where(words >> 31, -1.0, 1.0) * (words & 0xFFFFFF) / (1 << 24) * 16.0 ** ((words >> 24 & 127) - 64)


def apart(data, code, endian, ns=300, begin=3600):
    """Headers, and the stored samples."""
    width = int(DTYPES[code][1])
    traces = np.frombuffer(data[begin:], [("header", "V240"), ("samples", endian + DTYPES[code], ns)])
    assert len(data) == begin + len(traces) * (240 + ns * width)
    return data[:begin], traces["header"].tobytes(), traces["samples"]


def streamed(tmp_path, monkeypatch, source, **options):
    """The file by `denoise_file`, in more than one batch."""
    monkeypatch.setattr(memory_budget, "FIXED", 0)
    monkeypatch.setattr(contiguous, "WORKSPACE", 3000)
    batches = []
    run = streaming.run
    monkeypatch.setattr(streaming, "run", lambda x, *rest: batches.append(len(x)) or run(x, *rest))
    wavefilt.denoise_file(
        source, tmp_path / "parts", overwrite=True, max_memory=60_000, backend="pywavelets", **options
    )
    monkeypatch.undo()
    assert len(batches) > 1
    return (tmp_path / "parts").read_bytes()


@pytest.mark.parametrize("code", DTYPES)
@pytest.mark.parametrize("endian", "<>")
def test_every_format_and_byte_order(tmp_path, monkeypatch, code, endian):
    extended = 2 if code == 3 else 0
    begin = 3600 + 3200 * extended
    data = segy_file(code, endian, extended=extended)
    source = tmp_path / "line.sgy"
    source.write_bytes(data)
    recording = wavefilt.read(source)
    head, headers, stored = apart(data, code, endian, begin=begin)
    x = from_ibm(stored).astype("f4") if code == 1 else stored.astype(DTYPES[code])
    assert np.array_equal(recording.traces, x)
    assert recording.traces.dtype == x.dtype
    assert (recording.format, recording.interval) == ("segy", 0.004)
    recording.denoise(backend="pywavelets").write(tmp_path / "whole")
    written = (tmp_path / "whole").read_bytes()
    after, kept, results = apart(written, 5 if code in INTEGERS else code, endian, begin=begin)
    if code in INTEGERS:
        assert struct.unpack_from(endian + "H", after, 3224) == (5,)
        after = after[:3224] + head[3224:3226] + after[3226:]
        assert "sample format code 5" in recording.notes[0]
    assert after == head
    assert kept == headers
    y = wavefilt.denoise(x, backend="pywavelets")
    assert not np.array_equal(x, y)
    if code == 1:
        np.testing.assert_allclose(from_ibm(results), y, rtol=2.0**-20)
    else:
        assert np.array_equal(results, y.astype(results.dtype))
    assert streamed(tmp_path, monkeypatch, source) == written
    assert source.read_bytes() == data
    assert sorted(os.listdir(tmp_path)) == ["line.sgy", "parts", "whole"]


@pytest.mark.parametrize("endian", "<>")
@pytest.mark.parametrize("ns", [300, 257])  # 257 reads the same in both orders
def test_su(tmp_path, monkeypatch, endian, ns):
    data, source = su_file(endian, ns=ns), tmp_path / "line.su"
    source.write_bytes(data)
    recording = wavefilt.read(source)
    assert (recording.format, recording.interval) == ("su", 0.002)
    recording.denoise(backend="pywavelets").write(tmp_path / "whole")
    written = (tmp_path / "whole").read_bytes()
    _, headers, stored = apart(data, 5, endian, ns, 0)
    _, kept, results = apart(written, 5, endian, ns, 0)
    assert kept == headers
    assert np.array_equal(results, wavefilt.denoise(stored.astype("f4"), backend="pywavelets"))
    assert streamed(tmp_path, monkeypatch, source) == written


def test_a_record_that_does_not_fit(tmp_path, monkeypatch):
    """Thresholds of all traces together, found a part at a time."""
    source = tmp_path / "line.sgy"
    source.write_bytes(segy_file(1, count=60, ns=700))
    options = {"rule": "universal", "scope": "record", "backend": "pywavelets"}
    wavefilt.read(source).denoise(**options).write(tmp_path / "whole")
    plan = memory_budget.plan
    monkeypatch.setattr(memory_budget, "_extra", lambda method, level: 1e15)
    for chunk in (600, 5000):  # samples: parts of traces, and seven traces
        monkeypatch.setattr(memory_budget, "plan", lambda *a, n=chunk: replace(plan(*a), chunk=4 * n, buffer=n + 100))
        report = wavefilt.denoise_file(source, tmp_path / "parts", max_memory="1GiB", overwrite=True, **options)
        assert report.passes > 1.9
        assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()


def test_samples_given_to_be_written_stay_as_they_are(tmp_path):
    (tmp_path / "a").write_bytes(segy_file(1))
    denoised = wavefilt.read(tmp_path / "a").denoise()
    before = denoised.traces.copy()
    denoised.write(tmp_path / "b")
    assert np.array_equal(denoised.traces, before)


REVISION_2 = {
    "additional headers": ({("H", 3506): 1}, {"header": 480}),
    "additional headers of 2.0": ({("I", 3506): 1}, {"header": 480, "revision": (2, 0)}),
    "additional headers of 2.0 in two bytes": ({("H", 3506): 2}, {"header": 720, "revision": (2, 0)}),
    "first trace": ({("Q", 3520): 4240}, {"begin": 4240}),
    "extended samples": ({("H", 3220): 0, ("I", 3268): 60}, {}),
    "extended interval": ({("d", 3272): 312.5}, {}),
    "number of traces": ({("Q", 3512): 4}, {}),
    "trailer": ({("i", 3528): 2}, {"trailer": 2}),
    "trailer of unknown length": ({("i", 3528): -1, ("Q", 3512): 4}, {"trailer": 3}),
    "byte order": ({("I", 3296): 0x01020304}, {}),
}


@pytest.mark.parametrize("name", REVISION_2)
@pytest.mark.parametrize("endian", "<>")
@pytest.mark.parametrize("code", [1, 3, 5])
def test_fields_of_revision_2(tmp_path, name, endian, code):
    """Traces of 60 samples with a header of 480 bytes, or another beginning, pass for other traces of revision 1."""
    fields, options = REVISION_2[name]
    data, source = revision_2(fields, code=code, endian=endian, **options), tmp_path / "x.sgy"
    source.write_bytes(data)
    recording, stored = wavefilt.read(source), samples_of(4, 60, code)
    assert recording.format == "segy"
    assert np.array_equal(recording.traces, from_ibm(stored).astype("f4") if code == 1 else stored)
    assert recording.interval == (0.0003125 if name == "extended interval" else 0.004)
    replace(recording, traces=np.zeros_like(recording.traces)).write(tmp_path / "y.sgy")
    wavefilt.denoise_file(source, tmp_path / "z.sgy", rule=1e9, shrink="hard", backend="pywavelets")
    whole = revision_2(fields, code=code, endian=endian, **options)
    silent, width = bytearray(), 4
    header, begin, trailer = options.get("header", 240), options.get("begin", 3600), 3200 * options.get("trailer", 0)
    silent += whole[:begin]
    if code == 3:
        struct.pack_into(endian + "H", silent, 3224, 5)
    trace = header + 60 * int(DTYPES[code][1])
    for at in range(begin, len(whole) - trailer, trace):
        silent += whole[at : at + header] + bytes(60 * width)
    silent += whole[len(whole) - trailer :]
    assert (tmp_path / "y.sgy").read_bytes() == silent
    assert os.path.getsize(tmp_path / "z.sgy") == len(silent)


@pytest.mark.parametrize(
    ("fields", "options", "words"),
    [
        ({("H", 3506): 3}, {}, "3 additional trace headers each .bytes 3507-3510"),
        ({("Q", 3520): 99}, {}, "first trace is said to begin at byte 99 .bytes 3521-3528"),
        ({("Q", 3512): 5}, {}, "not 5 traces .*3513-3520"),
        ({("i", 3528): -1}, {"trailer": 1}, "trailer of unknown length .bytes 3529-3532"),
        ({("I", 3296): 0x02010403}, {}, "byte order constant .bytes 3297-3300"),
        ({("I", 3268): 61}, {}, "traces of 61 samples"),
    ],
)
def test_fields_of_revision_2_that_contradict_the_file_are_named(tmp_path, fields, options, words):
    (tmp_path / "x.sgy").write_bytes(revision_2(fields, **options))
    with pytest.raises(wavefilt.FormatError, match=words):
        wavefilt.read(tmp_path / "x.sgy", format="segy")


def test_text_headers_until_the_last_one(tmp_path):
    """Their number may be -1."""
    data = segy_file(extended=3)
    records = [text.ljust(3200).encode("cp037") for text in ("((SEG: A))", "B", "((SEG: EndText))")]
    data = patched(data[:3600] + b"".join(records) + data[3600 + 9600 :], 3504, ">h", -1)
    (tmp_path / "x.sgy").write_bytes(data)
    assert np.array_equal(wavefilt.read(tmp_path / "x.sgy").traces, samples_of(7, 300, 5))


@pytest.mark.parametrize("endian", "<>")
def test_su_without_an_interval(tmp_path, endian):
    """As segyio's own small.su."""
    traces = [
        bytes(114) + struct.pack(endian + "2H", 300, 0) + bytes(122) + x.astype(endian + "f4").tobytes()
        for x in samples_of(3, 300, 5)
    ]
    (tmp_path / "x.su").write_bytes(b"".join(traces))
    recording = wavefilt.read(tmp_path / "x.su")
    assert (recording.format, recording.interval, recording.samples.shape) == ("su", None, (3, 300))
    assert np.array_equal(recording.traces, samples_of(3, 300, 5))


def patched(data, at, form, *values):
    changed = bytearray(data)
    struct.pack_into(form, changed, at, *values)
    return bytes(changed)


LINE = segy_file(5)
BAD = {
    "cut in a trace": (LINE[:-10], [], "not a whole number of them: the file is truncated"),
    "cut, without text": (segy_file(text=bytes(3200))[:-10], [], "not a whole number of them: the file is truncated"),
    "cut in its headers": (LINE[:1000], ["--format", "segy"], "truncated SEG-Y file: 1000 bytes"),
    "text of its first header alone": (LINE[:3300], [], "truncated SEG-Y file: 3300 bytes"),
    "headers alone": (LINE[:3600], [], "truncated SEG-Y file: 3600 bytes"),
    "another trace length": (patched(LINE, 3220, ">H", 299), [], "traces of 299 samples .* trace header says 300"),
    "no samples": (patched(LINE, 3220, ">H", 0), [], "says 0 samples a trace .* the first trace header says 300"),
    "an unknown code": (
        patched(LINE, 3224, ">H", 77),
        [],
        r"unknown sample format code 77 .*; supported are 1, 2, 3, 5",
    ),
    "fixed point with gain": (patched(LINE, 3224, ">H", 4), [], "format code 4 .32-bit fixed point with gain. are not"),
    "text headers without end": (patched(LINE, 3504, ">h", -1), [], "-1 extended textual headers"),
    "an option without meaning": (LINE, ["--ns", "300"], "--ns has no meaning"),
    "su cut in a trace": (su_file("<")[:-10], ["--format", "su"], "not a whole number of them"),
    "su without samples": (bytes(500), ["--format", "su"], "says 0 samples"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("more", [[], ["--max-memory", "1GiB"]])
def test_bad_files(tmp_path, name, more):
    content, options, words = BAD[name]
    (tmp_path / "x.sgy").write_bytes(content)
    done = CliRunner().invoke(group, ["denoise", str(tmp_path / "x.sgy"), *options, *more], standalone_mode=False)
    if "--ns" in options and more:
        return  # raw needs it, so that the command takes it first
    assert done.exception.code == (2 if "--ns" in options else 3)
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(str(done.exception))
    assert os.listdir(tmp_path) == ["x.sgy"]


def test_a_file_that_shrinks_or_changes(tmp_path, monkeypatch):
    path = tmp_path / "x.sgy"
    write = contiguous.Samples.write
    for change, words in (
        (lambda: os.truncate(path, 20_000), "became shorter while it was read"),
        (lambda: os.utime(path, (1, 1)), "was changed while it was read"),
    ):
        path.write_bytes(segy_file(count=40))
        monkeypatch.setattr(memory_budget, "FIXED", 0)
        monkeypatch.setattr(contiguous.Samples, "write", lambda *a, change=change: (change(), write(*a)))
        with pytest.raises(OSError, match=words):
            wavefilt.denoise_file(path, tmp_path / "y.sgy", max_memory=60_000, backend="pywavelets")
        monkeypatch.undo()
        assert os.listdir(tmp_path) == ["x.sgy"]


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    """Integers become floats, four times as long."""
    (tmp_path / "x.sgy").write_bytes(segy_file(8))
    result = os.path.getsize(tmp_path / "x.sgy") + 3 * 7 * 300

    def full_after(_, file):
        file.truncate(result - 1)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(segy.SegyFile, "copy", full_after)
    with pytest.raises(OSError, match="No space left"):
        wavefilt.denoise_file(tmp_path / "x.sgy", tmp_path / "y.sgy")
    with pytest.raises(OSError, match="No space left"):
        wavefilt.read(tmp_path / "x.sgy").denoise().write(tmp_path / "y.sgy")
    assert os.listdir(tmp_path) == ["x.sgy"]


@pytest.mark.parametrize("endian", ["big", "little"])
def test_ibm_floats_as_segyio_writes_them(tmp_path, endian):
    segyio = pytest.importorskip("segyio")
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((4, 500)) * 10.0 ** rng.integers(-30, 30, (4, 500))).astype("f4")
    x[0, :4] = 0, 1, -1, 16
    spec = segyio.spec()
    spec.format, spec.samples, spec.tracecount, spec.endian = 1, np.arange(500), 4, endian
    for name, samples in (("theirs", x), ("zeros", np.zeros_like(x))):
        with segyio.create(tmp_path / name, spec) as file:
            file.trace[0:4] = samples.copy()
    replace(wavefilt.read(tmp_path / "zeros"), traces=x).write(tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_the_command(tmp_path):
    (tmp_path / "line.sgy").write_bytes(LINE)
    for more, target in (([], "a.sgy"), (["--max-memory", "1GiB"], "b.sgy")):
        arguments = ["denoise", str(tmp_path / "line.sgy"), "-o", str(tmp_path / target), "-j", "2", "--json", *more]
        done = CliRunner().invoke(group, arguments, standalone_mode=False)
        assert done.exception is None
        assert '"interval_s": 0.004' in done.stdout
    assert (tmp_path / "a.sgy").read_bytes() == (tmp_path / "b.sgy").read_bytes()
    assert wavefilt.read(tmp_path / "a.sgy").samples.shape == (7, 300)

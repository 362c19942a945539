"""SEG-Y and SU: every byte but the samples is kept, in memory and streamed. Files are made byte by byte."""

from __future__ import annotations

import os
import struct
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import wavefilt
from tests.support.checkout import run
from tests.support.file_bytes import (
    SEGY_DTYPES,
    from_ibm,
    read,
    revision_2,
    segy_file,
    segy_samples,
    su_file,
    written,
)

INTEGERS = {code for code, dtype in SEGY_DTYPES.items() if code != 1 and dtype[0] != "f"}


def _split(data, code, endian, ns, begin=3600):
    """Return the file header, the trace headers, and the stored samples."""
    width = int(SEGY_DTYPES[code][1])
    traces = np.frombuffer(data[begin:], [("header", "V240"), ("samples", endian + SEGY_DTYPES[code], ns)])
    assert len(data) == begin + len(traces) * (240 + ns * width)
    return data[:begin], traces["header"].tobytes(), traces["samples"]


def _streamed(source, folder, **options) -> bytes:
    """Return the file written by `denoise_file` in several batches."""
    told = []
    fixed = {"preset": "gentle", "sigma": "level", "backend": "pywavelets", "max_memory": "16MiB", "overwrite": True}
    options = {**fixed, **options}
    report = wavefilt.denoise_file(source, folder / "parts", progress=lambda *pair: told.append(pair), **options)
    assert len(told) > 2
    assert report.residual_energy > 0
    return (folder / "parts").read_bytes()


@pytest.mark.parametrize("code", SEGY_DTYPES)
@pytest.mark.parametrize("endian", "<>")
def test_every_sample_format_and_byte_order(tmp_path, code, endian):
    extended, ns = 2 if code == 3 else 0, 700
    begin = 3600 + 3200 * extended
    data = segy_file(code, endian, 400, ns, extended)
    source = tmp_path / "line.sgy"
    source.write_bytes(data)
    recording = wavefilt.read(source)
    head, headers, stored = _split(data, code, endian, ns, begin)
    x = from_ibm(stored).astype("f4") if code == 1 else stored.astype(SEGY_DTYPES[code])
    assert_array_equal(recording.traces, x)
    assert recording.traces.dtype == x.dtype
    assert (recording.format, recording.interval) == ("segy", 0.004)
    result = written(recording.denoise(preset="gentle", sigma="level", backend="pywavelets"), tmp_path)
    after, kept, results = _split(result, 5 if code in INTEGERS else code, endian, ns, begin)
    if code in INTEGERS:
        assert struct.unpack_from(endian + "H", after, 3224) == (5,)
        after = after[:3224] + head[3224:3226] + after[3226:]
        assert "5" in recording.notes[0]
    assert (after, kept) == (head, headers)
    y = wavefilt.denoise(x, backend="pywavelets")
    if code == 1:
        np.testing.assert_allclose(from_ibm(results), y, rtol=2.0**-20)
    else:
        assert_array_equal(results, y.astype(results.dtype))
    assert _streamed(source, tmp_path) == result
    assert source.read_bytes() == data
    assert sorted(os.listdir(tmp_path)) == ["line.sgy", "parts", "written"]


@pytest.mark.parametrize("endian", "<>")
@pytest.mark.parametrize("ns", [700, 257])  # 257 reads the same in both orders
def test_su(tmp_path, endian, ns):
    data, source = su_file(endian, 900, ns), tmp_path / "line.su"
    source.write_bytes(data)
    recording = wavefilt.read(source)
    assert (recording.format, recording.interval) == ("su", 0.002)
    result = written(recording.denoise(preset="gentle", sigma="level", backend="pywavelets"), tmp_path)
    _, headers, stored = _split(data, 5, endian, ns, 0)
    _, kept, results = _split(result, 5, endian, ns, 0)
    assert kept == headers
    assert_array_equal(results, wavefilt.denoise(stored.astype("f4"), backend="pywavelets"))
    assert _streamed(source, tmp_path) == result
    empty = bytes(114) + struct.pack(endian + "2H", ns, 0) + bytes(122)  # a header without an interval
    unknown = read(b"".join(empty + x.astype(endian + "f4").tobytes() for x in segy_samples(3, ns, 5)))
    assert (unknown.format, unknown.interval, unknown.samples.shape) == ("su", None, (3, ns))


def test_the_thresholds_of_a_record_that_does_not_fit(tmp_path):
    source = tmp_path / "line.sgy"
    source.write_bytes(segy_file(1, count=400, ns=5000))
    options = {"rule": "universal", "scope": "record", "backend": "pywavelets"}
    result = written(wavefilt.read(source).denoise(preset="gentle", **options), tmp_path)
    report = wavefilt.denoise_file(source, tmp_path / "parts", preset="gentle", max_memory="46MiB", **options)
    assert report.passes > 1.9
    assert (tmp_path / "parts").read_bytes() == result


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
    whole, source = revision_2(fields, code=code, endian=endian, **options), tmp_path / "x.sgy"
    source.write_bytes(whole)
    recording, stored = wavefilt.read(source), segy_samples(4, 60, code)
    assert recording.format == "segy"
    assert_array_equal(recording.traces, from_ibm(stored).astype("f4") if code == 1 else stored)
    assert recording.interval == (0.0003125 if name == "extended interval" else 0.004)
    header, begin, trailer = options.get("header", 240), options.get("begin", 3600), 3200 * options.get("trailer", 0)
    silent = bytearray(whole[:begin])
    if code == 3:
        struct.pack_into(endian + "H", silent, 3224, 5)
    for at in range(begin, len(whole) - trailer, header + 60 * int(SEGY_DTYPES[code][1])):
        silent += whole[at : at + header] + bytes(60 * 4)
    silent += whole[len(whole) - trailer :]
    assert written(replace(recording, traces=np.zeros_like(recording.traces)), tmp_path) == silent
    wavefilt.denoise_file(source, tmp_path / "z.sgy", rule=1e9, shrink="hard", backend="pywavelets")
    assert os.path.getsize(tmp_path / "z.sgy") == len(silent)


CONTRADICTIONS = {"3507": ("H", 3506, 3), "3521": ("Q", 3520, 99), "3513": ("Q", 3512, 5), "3529": ("i", 3528, -1)}
CONTRADICTIONS |= {"3297": ("I", 3296, 0x02010403), "61 samples": ("I", 3268, 61)}


@pytest.mark.parametrize("place", CONTRADICTIONS)
def test_fields_of_revision_2_that_contradict_the_file_are_named(place):
    form, at, value = CONTRADICTIONS[place]
    with pytest.raises(wavefilt.FormatError, match=place):
        read(revision_2({(form, at): value}, trailer=int(value == -1)), format="segy")


def _patched(data, at, form, *values):
    changed = bytearray(data)
    struct.pack_into(form, changed, at, *values)
    return bytes(changed)


LINE = segy_file(5)
BAD = {
    "cut in a trace": (LINE[:-10], [], "truncated"),
    "cut, without text": (segy_file(text=bytes(3200))[:-10], [], "truncated"),
    "cut in its headers": (LINE[:1000], ["--format", "segy"], "truncated"),
    "headers alone": (LINE[:3600], [], "truncated"),
    "another trace length": (_patched(LINE, 3220, ">H", 299), [], "299"),
    "no samples": (_patched(LINE, 3220, ">H", 0), [], "0 samples"),
    "an unknown code": (_patched(LINE, 3224, ">H", 77), [], "77"),
    "fixed point with gain": (_patched(LINE, 3224, ">H", 4), [], "gain"),
    "text headers without end": (_patched(LINE, 3504, ">h", -1), [], "textual"),
    "su cut in a trace": (su_file("<")[:-10], ["--format", "su"], "whole number"),
    "su without samples": (bytes(500), ["--format", "su"], "0 samples"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("more", [[], ["--max-memory", "1GiB"]])
def test_bad_files(tmp_path, capsys, name, more):
    content, options, word = BAD[name]
    (tmp_path / "x.sgy").write_bytes(content)
    code, _, err = run(capsys, "denoise", tmp_path / "x.sgy", *options, *more)
    assert code == 3
    assert word in err
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
    zeros = wavefilt.read(tmp_path / "zeros")
    assert written(replace(zeros, traces=x), tmp_path) == (tmp_path / "theirs").read_bytes()


@pytest.mark.parametrize(("endian", "code", "count", "ns"), [("<", 5, 400, 20), (">", 16, 400, 21), (">", 1, 3, 9000)])
def test_delays_of_all_traces_are_those_of_their_headers(tmp_path, endian, code, count, ns):
    data = bytearray(segy_file(code, endian, count, ns))
    struct.pack_into(endian + "h104xh", data, 3600 + 108, -7, 0)  # without a scalar
    (tmp_path / "x.sgy").write_bytes(data)
    recording = wavefilt.read(tmp_path / "x.sgy")
    assert recording.delays[0] == -0.007
    assert recording.delays == [header.delay for header in recording.headers.traces]

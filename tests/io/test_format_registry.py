"""A format registered from outside: found by content, named, refused, written back and streamed like any other."""

from __future__ import annotations

import json
import struct
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import wavefilt
from wavefilt.cli import group
from wavefilt.errors import FormatError
from wavefilt.io import FORMATS, Format, Layout, encode, register_format

MARK = b"TOY!"


def toy(x: np.ndarray, note: str = "a note") -> bytes:
    """A mark, the shape, a note of 16 characters, the samples."""
    return MARK + struct.pack("<2I16s", *x.shape, note.encode()) + x.astype("<f4").tobytes()


def decode(data: bytes, layout: Layout) -> wavefilt.Recording:
    layout.only("toy", "dt")
    rows, samples = struct.unpack_from("<2I", data, 4)
    if len(data) != 28 + 4 * rows * samples:
        raise FormatError(f"a toy of {rows} traces is cut short")
    traces = np.frombuffer(data, "<f4", offset=28).reshape(rows, samples)
    return wavefilt.Recording(traces, (layout.dt,) * rows, "toy", data[:28], notes=("toys are not for sale",))


def encode_toy(recording: wavefilt.Recording) -> bytes:
    return recording.origin + recording.samples.astype("<f4").tobytes()


class ToySource:
    """A `wavefilt.io.sources.Source` that keeps the file in memory, which a toy may."""

    format, neighbours, overhead, notes = "toy", 1, 0, ()

    def __init__(self, path: str, layout: Layout) -> None:
        self._recording = decode(Path(path).read_bytes(), layout)
        self.shape, self.dtype = self._recording.samples.shape, np.dtype("f4")
        self.interval = layout.dt

    def read(self, rows, first, out):
        out[:] = self._recording.samples[rows, first : first + out.shape[1]]

    @contextmanager
    def create(self, path, *, overwrite):
        self._result = np.zeros(self.shape, "<f4")
        yield self
        path.write_bytes(self._recording.origin + self._result.tobytes())

    def write(self, rows, first, values):
        self._result[rows, first : first + values.shape[1]] = values

    def check_unchanged(self):
        pass

    def close(self):
        pass


@pytest.fixture(params=[None, ToySource], ids=["whole", "streamed"], autouse=True)
def registered(request):
    """The format, without and with a source to stream from."""

    def recognise(probe):
        return probe.head.startswith(MARK)

    register_format(
        Format(name="toy", decode=decode, encode=encode_toy, recognise=recognise, open_source=request.param)
    )
    yield request.param is not None
    FORMATS.unregister("toy")


@pytest.fixture
def noisy(rng):
    return (50 * np.sin(np.linspace(0, 40, 600)) + 9 * rng.standard_normal((3, 600))).astype("f4")


@pytest.fixture
def path(noisy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.dat").write_bytes(toy(noisy))
    return Path("x.dat")


def run(*arguments: str):
    return CliRunner().invoke(group, list(arguments), standalone_mode=False)


def test_it_is_found_by_content_and_written_back(path, noisy):
    recording = wavefilt.read(path)
    assert (recording.format, recording.source, recording.interval) == ("toy", "x.dat", None)
    assert np.array_equal(recording.samples, noisy)
    assert encode(recording) == path.read_bytes()
    recording.denoise("db4").write("y.dat")
    assert Path("y.dat").read_bytes() == toy(wavefilt.denoise(noisy, "db4"))


def test_it_is_read_by_its_name(path, noisy):
    assert wavefilt.read(path, format="toy", dt=0.002).interval == 0.002
    Path("x.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(FormatError, match=r"x\.npy: "):
        wavefilt.read("x.npy")
    with pytest.raises(ValueError, match=r"format='toi' is not one of .*toy; did you mean 'toy'"):
        wavefilt.read(path, format="toi")
    with pytest.raises(FormatError, match=r"x.dat: ns has no meaning for a file of format toy"):
        wavefilt.read(path, ns=3)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError, match=r"^x.dat: a toy of 3 traces is cut short$"):
        wavefilt.read(path)


@pytest.mark.parametrize("more", [[], ["--format", "toy"]])
def test_the_commands(path, noisy, more):
    done = run("denoise", "x.dat", "-o", "y.dat", "--json", *more)
    assert json.loads(done.stdout)["notes"] == ["toys are not for sale"]
    assert Path("y.dat").read_bytes() == toy(wavefilt.denoise(noisy))
    facts = json.loads(run("info", "x.dat", "--json", *more).stdout)
    assert (facts["format"], facts["traces"], facts["samples"]) == ("toy", 3, 600)


def test_streaming(path, noisy, registered):
    if not registered:
        with pytest.raises(FormatError, match=r"x.dat: only npy, raw, .* are streamed"):
            wavefilt.denoise_file(path, "y.dat")
        return
    wavefilt.denoise_file(path, "y.dat", max_memory="100MB")
    assert Path("y.dat").read_bytes() == toy(wavefilt.denoise(noisy))
    assert run("denoise", "x.dat", "-o", "z.dat", "--max-memory", "100MB").exit_code == 0
    assert Path("z.dat").read_bytes() == Path("y.dat").read_bytes()
    Path("x.txt").write_text("1 2\n")
    with pytest.raises(FormatError, match="toy files are streamed"):
        wavefilt.denoise_file("x.txt", "y.txt")


def test_marks_of_two_formats_are_ambiguous(path):
    register_format(Format(name="game", decode=decode, encode=encode_toy, recognise=lambda probe: probe.size > 28))
    try:
        with pytest.raises(FormatError, match=r"x.dat: could be toy or game; say which with format"):
            wavefilt.read(path)
        assert wavefilt.read(path, format="toy").format == "toy"
    finally:
        FORMATS.unregister("game")


def test_weaker_evidence_counts_where_nothing_is_recognised(path, noisy):
    path.write_bytes(b"\0" + path.read_bytes())
    with pytest.raises(FormatError, match=r"unknown format \(tried .*toy"):
        wavefilt.read(path)

    def shifted(data, layout):
        return decode(data[1:], layout)

    register_format(Format(name="late-toy", decode=shifted, encode=encode_toy, resembles=lambda p: MARK in p.head[:9]))
    try:
        assert np.array_equal(wavefilt.read(path).samples, noisy)
    finally:
        FORMATS.unregister("late-toy")


def test_a_format_of_folders(path, noisy):
    """It is read and written through its source."""
    Path("toys").mkdir()
    Path("toys", "all").write_bytes(toy(noisy))

    class Box(ToySource):
        format = "box"

        def __init__(self, path, layout):
            super().__init__(str(Path(path, "all")), layout)

        @contextmanager
        def create(self, path, *, overwrite):
            path.mkdir()
            with super().create(path / "all", overwrite=overwrite):
                yield self

    holds_all = {"recognise_folder": lambda path: Path(path, "all").exists()}
    with pytest.raises(ValueError, match="format 'box' has no open_source"):
        register_format(Format(name="box", **holds_all))
    register_format(Format(name="box", open_source=Box, **holds_all))
    try:
        recording = wavefilt.read("toys")
        assert (recording.format, recording.source) == ("box", "toys")
        recording.denoise().write("calm")
        assert Path("calm", "all").read_bytes() == toy(wavefilt.denoise(noisy))
        wavefilt.denoise_file("toys", "streamed")
        assert Path("streamed", "all").read_bytes() == Path("calm", "all").read_bytes()
        with pytest.raises(FormatError, match="a box store is a folder of many files"):
            encode(recording)
        with pytest.raises(FormatError, match=r"x.dat: is a file; a box store is a folder"):
            wavefilt.read(path, format="box")
        with pytest.raises(FormatError, match="toys: is a folder, which no toy file is"):
            wavefilt.read("toys", format="toy")
    finally:
        FORMATS.unregister("box")
    with pytest.raises(FormatError, match="toys: is a folder and not a zarr store"):
        wavefilt.read("toys")


def test_what_cannot_be_registered():
    with pytest.raises(ValueError, match="format 'toy' is already registered"):
        register_format(Format(name="toy", decode=decode, encode=encode_toy))
    with pytest.raises(ValueError, match="format 'half' has no decode and encode"):
        register_format(Format(name="half", decode=decode))


def test_recordings_of_other_formats_are_written_in_it_where_it_can(path, noisy):
    FORMATS.unregister("toy")
    written = Format(
        name="toy", decode=decode, encode=encode_toy, extensions=(".toy",), convert=lambda given: toy(given.samples)
    )
    register_format(written)
    np.save("x.npy", noisy)
    assert run("convert", "x.npy", "x.toy").exception is None
    assert Path("x.toy").read_bytes() == toy(noisy)
    assert run("denoise", "x.npy", "-w", "db4", "-o", "y.toy").exception is None
    assert Path("y.toy").read_bytes() == toy(wavefilt.denoise(noisy, "db4"))

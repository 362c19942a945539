"""File formats: what one consists of, the registry that other packages add theirs to, and which one a file has."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, NoReturn, Protocol, cast

from wavefilt.errors import FormatError, Words, options
from wavefilt.io.detection import (
    Check,
    Probe,
    is_zarr,
    looks_like_text,
    sac_order,
    starts_with,
)
from wavefilt.io.layout import Layout
from wavefilt.io.segy_headers import is_segy, is_su, resembles_segy
from wavefilt.registry import Registry, load_extensions

if TYPE_CHECKING:
    from wavefilt.io.sources import Source
    from wavefilt.recording import Recording


def _folders_only(*_: object) -> NoReturn:
    raise FormatError("a folder of many files; name one, not a stream")


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format: how its files are recognised, read, written and streamed.

    Attributes
    ----------
    name : str
        What ``format=`` and ``--format`` take, and `Recording.format` of what is read.
    decode : callable (bytes, Layout) -> Recording
        The recording in a whole file; its ``origin`` is whatever ``encode`` needs. Raises FormatError if the file is
        damaged or does not fit the layout (`Layout.only` refuses options that mean nothing here).
    encode : callable (Recording) -> bytes
        The whole file with the recording's samples, headers as they came. Raises FormatError if it cannot hold them.
    recognise : callable (Probe) -> bool, optional
        Whether a file bears the marks of the format. Files that bear those of two formats are refused as ambiguous.
    resembles : callable (Probe) -> bool, optional
        Weaker evidence, considered in the order of registration where no format is recognised.
    may_be_raw : bool
        Whether raw binary may bear the marks by chance: errors then say how to read a file as raw.
    open_source : callable (str, Layout) -> Source, optional
        Opens a file of this path that is larger than memory, to be read and written in parts.
    recognise_folder : callable (str) -> bool, optional
        For a format whose "files" are folders. They are read and written through ``open_source``, which is then
        needed, and ``decode`` and ``encode`` are not.
    datasets : bool
        Whether a file holds arrays with names, chosen by ``path::dataset``.
    extensions : tuple of str
        Endings of names, as ``".sgy"``, that ask for this format as an output.
    convert : callable (Recording) -> bytes, optional
        A file of this format with the samples of a recording of another one. Raises FormatError if it cannot hold them.
    keeps : str
        What ``convert`` keeps of a recording, for the documentation.
    offsets : callable (Recording) -> tuple of float, optional
        Metres from the source to the receiver of each trace; nothing where the headers do not give them.
    """

    name: str
    decode: Callable[[bytes, Layout], Recording] = _folders_only
    encode: Callable[[Recording], bytes] = _folders_only
    recognise: Check | None = None
    resembles: Check | None = None
    may_be_raw: bool = False
    open_source: Callable[[str, Layout], Source] | None = None
    recognise_folder: Callable[[str], bool] | None = None
    datasets: bool = False
    extensions: tuple[str, ...] = ()
    convert: Callable[[Recording], bytes] | None = None
    keeps: str = ""
    offsets: Callable[[Recording], tuple[float, ...]] | None = None


# ------------------------------------------------------------------------------------------------- the built-in ones


class _Module(Protocol):
    """A module that serves a format or several, imported when it is first needed."""

    def decode(self, data: bytes, layout: Layout, format: str) -> Recording: ...
    def encode(self, recording: Recording) -> bytes: ...
    def convert(self, recording: Recording, format: str) -> bytes: ...
    def offsets(self, recording: Recording) -> tuple[float, ...]: ...
    def open_source(self, file: str | BinaryIO, layout: Layout, format: str) -> Source: ...


def _module(name: str) -> _Module:
    return cast(_Module, import_module(f"wavefilt.io.{name}"))


def _in(module: str, format: Format) -> Format:
    """The format with the functions of a module in `wavefilt.io`."""
    return replace(
        format,
        decode=lambda data, layout: _module(module).decode(data, layout, format.name),
        encode=lambda recording: _module(module).encode(recording),
    )


def _streamed(module: str, format: Format, whole: str = "file_source") -> Format:
    """The format with the sources of a module in `wavefilt.io`, and with functions of another for files in memory."""
    format = replace(format, open_source=lambda file, layout: _module(module).open_source(file, layout, format.name))
    return format if format.recognise_folder else _in(whole, format)


def _converting(module: str, format: Format, keeps: str) -> Format:
    """The format with a function of a module in `wavefilt.io` that writes recordings of other formats."""
    return replace(format, keeps=keeps, convert=lambda recording: _module(module).convert(recording, format.name))


def _placed(module: str, format: Format) -> Format:
    """The format with the function of a module in `wavefilt.io` that finds offsets."""
    return replace(format, offsets=lambda recording: _module(module).offsets(recording))


def _matches(pattern: bytes) -> Check:
    return lambda probe: re.match(pattern, probe.head) is not None


_MSEED, _GSE2 = _matches(rb"\d{6}[DRQM][ \0]|MS\x03"), starts_with(b"WID2")
_WAV = _matches(rb"(?s)(RIF[FX]|RF64).{4}WAVE")
_TSPAIR, _SLIST = _matches(rb"TIMESERIES [^\n]*TSPAIR"), _matches(rb"TIMESERIES [^\n]*SLIST")

_NPY = Format(name="npy", recognise=starts_with(b"\x93NUMPY"), extensions=(".npy",))
_NPZ = Format(name="npz", recognise=starts_with(b"PK\x03\x04", b"PK\x05\x06"), extensions=(".npz",))
_HDF5 = Format(name="hdf5", recognise=starts_with(b"\x89HDF\r\n\x1a\n"), datasets=True, extensions=(".h5", ".hdf5"))
_ZARR = Format(name="zarr", recognise_folder=is_zarr, datasets=True, extensions=(".zarr",))
_SEG2 = Format(
    name="seg2", recognise=starts_with(b"\x55\x3a\x01\x00", b"\x3a\x55\x00\x01"), extensions=(".seg2", ".sg2")
)
_SEGY = Format(name="segy", recognise=is_segy, resembles=resembles_segy, may_be_raw=True, extensions=(".sgy", ".segy"))
_SU = Format(name="su", recognise=is_su, may_be_raw=True, extensions=(".su",))
_SAC = Format(name="sac", recognise=lambda probe: sac_order(probe) is not None, may_be_raw=True, extensions=(".sac",))

_BUILT_IN = (
    _converting("conversion", _streamed("arrays.npy", _NPY, "arrays.npy"), "samples, of traces of one length"),
    _in("arrays.npy", _NPZ),
    _streamed("raw", Format(name="raw")),
    _streamed("arrays.hdf5", _HDF5),
    _streamed("arrays.zarr", _ZARR),
    _converting(
        "conversion",
        _streamed("wav", Format(name="wav", recognise=_WAV, extensions=(".wav",))),
        "samples, sampling rate in whole Hz",
    ),
    _placed("seg2", _in("seg2", _SEG2)),
    _converting(
        "segy_writing",
        _placed("segy", _streamed("segy", _SEGY)),
        "samples (codes 2, 3, 5, 6), sampling interval, times to the second; of SEG-2 also coordinates, elevations, "
        "shot and channel numbers, delay, descaling factor, units and notes; of SU all trace headers",
    ),
    _converting(
        "segy_writing",
        _placed("segy", _streamed("segy", _SU)),
        "as SEG-Y, samples as 32-bit floats; of SEG-Y all trace headers",
    ),
    _in("text.ascii", Format(name="ascii", resembles=lambda probe: looks_like_text(probe.head), extensions=(".csv",))),
    _converting("obspy.conversion", _streamed("sac", _SAC), "as MiniSEED, of one trace, samples as 32-bit floats"),
    _converting(
        "obspy.conversion",
        _in("obspy.waveforms", Format(name="mseed", recognise=_MSEED, extensions=(".mseed", ".miniseed"))),
        "samples, sampling interval, codes of network, station, location and channel, times",
    ),
    _in("obspy.waveforms", Format(name="gse2", recognise=_GSE2, extensions=(".gse", ".gse2"))),
    _in("obspy.waveforms", Format(name="tspair", recognise=_TSPAIR, extensions=(".csv",))),
    _in("obspy.waveforms", Format(name="slist", recognise=_SLIST, extensions=(".csv",))),
    _in("obspy.waveforms", Format(name="obspy")),
)

FORMATS: Registry[Format] = Registry("format", {format.name: format for format in _BUILT_IN})
"""The formats that ``format=`` and ``--format`` name; "obspy" lets ObsPy find out which of its own a file has."""


def named(name: str) -> Format:
    """The format of a recording: one that is registered, or one of ObsPy's others, which go by its names for them."""
    return FORMATS[name] if name in FORMATS else _in("obspy.waveforms", Format(name=name))


AS_RAW = options(format="raw", dtype="f4", endian="little", ns=...)

_READ_BOTH = 'ObsPy reads both and writes one: obspy.read("FILE").write("NAME.mseed", format="MSEED")'


def _is_css(probe: Probe) -> bool:
    """Lines of 283 characters (CSS 3.0) or 287 (NNSA) with a time and a data type at their places."""
    line = probe.head.partition(b"\n")[0].rstrip(b"\r")
    point, kind = {283: (line[26:28], line[143:145]), 287: (line[27:28], line[144:146])}.get(len(line), (b"", b""))
    return b"." in point and re.fullmatch(rb"[stif][248]|[sg][23]|c[0#]", kind) is not None


REFUSED: dict[str, tuple[Check, *tuple[str | Words, ...]]] = {
    "gzip": (
        starts_with(b"\x1f\x8b"),
        "compressed with gzip; decompress it first: ",
        Words("read(gzip.open(FILE))", "gunzip -k FILE, or gunzip -c FILE | wavefilt denoise - -o OUT"),
    ),
    "pickle": (
        _matches(rb"\x80[\x02-\x05][}c\x95(\]]"),
        "a Python pickle, which is never opened because loading one can run any program",
    ),
    "rsf": (
        lambda probe: all(key in probe.head for key in (b"data_format=", b"n1=", b"in=")),
        "a Madagascar header without samples; read the binary file named after in= with ",
        AS_RAW,
    ),
    "bzip2": (starts_with(b"BZh"), "compressed with bzip2; decompress it first: bunzip2 -k FILE"),
    "xz": (starts_with(b"\xfd7zXZ\0"), "compressed with xz; decompress it first: unxz -k FILE"),
    "tar": (lambda probe: probe.head[257:262] == b"ustar", "an archive; unpack it first: tar xf FILE"),
    "css": (_is_css, f"a CSS or NNSA table, whose samples are in other files; {_READ_BOTH}"),
    "q": (starts_with(b"43981 "), f"a Seismic Handler header, whose samples are in a .QBN file; {_READ_BOTH}"),
}
"""Kinds of file that are recognised and not read, with what to do instead."""


LABELS = {"seg2": "SEG-2", "segy": "SEG-Y", "su": "SU", "ascii": "ASCII", "wav": "WAV", "sac": "SAC", "hdf5": "HDF5"}
"""What errors call formats."""


def register_format(format: Format) -> None:
    """Add a format: found by content and by its name, written back, and streamed if it has ``open_source``.

    Raises ValueError for a name that is taken, and for a format that lacks what reading and writing need.
    """
    if format.recognise_folder is not None:
        missing = "open_source" if format.open_source is None else ""
    else:
        missing = "decode and encode" if _folders_only in (format.decode, format.encode) else ""
    if missing:
        raise ValueError(f"format {format.name!r} has no {missing}")
    FORMATS.register(format.name, format)


# ---------------------------------------------------------------------------------------------------- which one it is


def recognised(probe: Probe) -> Format | None:
    """The one format whose marks a file bears, None if it bears none's.

    Raises FormatError for an empty file, one with the marks of several formats, and one of a kind that is not read.
    """
    if probe.size == 0:
        raise FormatError("the file is empty")
    found = _bearing(probe)
    if not found:
        load_extensions()
        found = _bearing(probe)
    refused = [name for name, (check, *_) in REFUSED.items() if check(probe)]
    if len(found) + len(refused) > 1:
        names = [*refused, *(format.name for format in found)]
        raise FormatError(f"could be {' or '.join(names)}; say which with ", options("format"))
    if refused:
        raise FormatError(*REFUSED[refused[0]][1:])
    return found[0] if found else None


def _bearing(probe: Probe) -> list[Format]:
    return [format for format in FORMATS.registered() if format.recognise and format.recognise(probe)]


def resembled(probe: Probe, *, streamed: bool = False) -> Format | None:
    """The first format, of those that can be streamed or of all, that a file of no recognised format may be."""
    for format in FORMATS.registered():
        if format.resembles and (format.open_source or not streamed) and format.resembles(probe):
            return format
    return None


def is_store(path: str) -> bool:
    """Whether a folder is of a format, as a Zarr array or group is."""
    return any(format.recognise_folder and format.recognise_folder(path) for format in FORMATS.registered())


def folder_format(path: str, name: str | None) -> Format:
    """The format of a folder, or the one named. Raises FormatError for a folder that is of no format, or another."""
    if name is not None and FORMATS[name].recognise_folder is None:
        raise FormatError(f"is a folder, which no {name} file is")
    load_extensions()
    for format in FORMATS.registered():
        if format.recognise_folder and name in (None, format.name) and (name or format.recognise_folder(path)):
            return format
    raise FormatError(f"is a folder and not a {' or '.join(FORMATS.where(lambda f: f.recognise_folder))} store")


def naming(path: str, format: str, error: FormatError) -> str:
    """The file as an error begins with it, with the format where the error does not tell."""
    label, told = LABELS.get(format, format), str(error).removeprefix(path).replace("-", "").lower()
    return path if label.replace("-", "").lower() in told else f"{path}: {label}"

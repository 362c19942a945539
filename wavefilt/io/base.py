"""The base class of file formats, the traces and headers of a file, and the list of formats."""

from __future__ import annotations

import errno
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from wavefilt.arrays import Array
from wavefilt.errors import FormatError, LayoutError, OptionError, reason
from wavefilt.vocabulary import check

if TYPE_CHECKING:
    from wavefilt.io.sources import Source

HEAD = 1 << 16
"""Bytes read from the start of a file to recognise its format."""
FOOT = 0.3048
"""Metres."""
MARK = "::"
"""Between a path and the name of an array in the file."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the errors of a full disk."""
COMPRESSED_ENDINGS = (".gz", ".bz2", ".xz")
"""Endings of compressed files, which are read and not written."""


@dataclass(frozen=True)
class Layout:
    """The user's description of a file, with the options of `wavefilt.read`; None if not given.

    Raises ValueError for invalid values.
    """

    dtype: str | None = None
    endian: str | None = None
    ns: int | None = None
    dt: float | None = None
    columns: tuple[int, ...] | None = None
    delimiter: str | None = None
    component: str | None = None
    axis: int | None = None

    def __post_init__(self) -> None:
        if self.dt is not None and not (isinstance(self.dt, (int, float)) and 0 < self.dt < float("inf")):
            raise OptionError(f"`dt` must be a positive number of seconds, not {self.dt!r}")
        if self.ns is not None and not (isinstance(self.ns, int) and self.ns > 0):
            raise OptionError(f"`ns` must be a whole number of samples, at least 1, not {self.ns!r}")
        if self.columns is not None and not isinstance(self.columns, tuple):
            raise TypeError(f"`columns` must be a tuple of whole numbers counted from 1, not {self.columns!r}")

    def only(self, format: str, *used: str) -> None:
        """Raise LayoutError if an option was given that does not apply to this format: none is silently ignored."""
        for option, value in vars(self).items():
            if option not in used and value is not None:
                also = ", and neither does a name after ::" if option == "component" else ""
                raise LayoutError(f"`{option}` does not apply to {format} files{also}")


class Probe:
    """A seekable file whose format is to be recognised: ``file``, its ``size`` and its first 64 KiB, ``head``."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = file.seek(0, 2)
        file.seek(0)
        self.head = file.read(HEAD)

    def unpack(self, format: str, offset: int) -> tuple[Any, ...]:
        """Return the numbers at ``offset``; bytes beyond the end of the file count as zeros."""
        width = struct.calcsize(format)
        return struct.unpack(format, self.bytes(offset, width).ljust(width, b"\0"))

    def bytes(self, offset: int, count: int) -> bytes:
        """Return ``count`` bytes from ``offset``, fewer at the end of the file."""
        self.file.seek(min(offset, self.size))
        return self.file.read(count)


@dataclass(frozen=True, eq=False)
class Headers(Mapping[str, Any]):
    """Headers of a file or of a trace: a read-only mapping with the format's own names, and shared attributes.

    An attribute is None, or an empty tuple, if the file does not give it.

    Attributes
    ----------
    traces : tuple of Headers
        The headers of each trace, if these are the headers of a file.
    delay : float
        Seconds from the trigger to the first sample; negative if the recording began before the trigger.
    onset : tuple of float and str
        Time in seconds after the trigger, and name, of the event before which there is only noise: the trigger, an
        origin time or a first arrival.
    time : numpy.datetime64
        Date and time of the trigger, or of the first sample if there is no delay. Local time unless ``utc``.
    source, receiver : tuple of float
        Coordinates x, y and elevation in ``length_unit``, which is ``"m"``, ``"ft"`` or ``"deg"``.
    offset : float
        Metres from source to receiver, negative for a receiver on the other side of the source.
    units : str
        Unit of the samples after multiplication by ``factor``.
    shot, channel, station, cdp : int
        Numbers of the shot, the channel, the source station and the common depth point.
    """

    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    traces: tuple[Headers, ...] = field(default=(), repr=False)
    delay: float | None = None
    onset: tuple[float, str] | None = None
    time: np.datetime64 | None = None
    utc: bool = False
    source: tuple[float, ...] = ()
    receiver: tuple[float, ...] = ()
    offset: float | None = None
    length_unit: str = "m"
    units: str | None = None
    factor: float | None = None
    shot: int | None = None
    channel: int | None = None
    station: int | None = None
    cdp: int | None = None

    @property
    def first_sample(self) -> np.datetime64 | None:
        """Date and time of the first sample."""
        return None if self.time is None else self.time + np.timedelta64(round(1e9 * (self.delay or 0)), "ns")

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


@dataclass(frozen=True, eq=False)
class Contents:
    """The traces of a file and everything that is needed to write the file again; see `wavefilt.Recording`."""

    traces: Array | Sequence[Array]
    intervals: tuple[float | None, ...]
    format: str
    origin: Any
    source: str = ""
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    starts: tuple[np.datetime64, ...] = ()
    delays: Sequence[float] = ()

    @property
    def samples(self) -> Array:
        """All traces as one array, shape (traces, samples). Raises FormatError if their lengths differ."""
        if isinstance(self.traces, np.ndarray):
            return self.traces
        if len(lengths := {len(trace) for trace in self.traces}) > 1:
            sizes = f"{len(lengths)} lengths ({min(lengths)} to {max(lengths)} samples)"
            raise FormatError(
                f"{self.source}: traces of {sizes} are not one array: use Recording.traces, or write a .mseed file"
            )
        return np.array(self.traces)

    @property
    def interval(self) -> float | None:
        """Sampling interval of all traces in seconds, None if unknown. Raises FormatError if they differ."""
        if len(set(self.intervals)) > 1:
            raise FormatError(
                f"{self.source}: different sampling intervals: use Recording.intervals, or write a .mseed file"
            )
        return self.intervals[0] if self.intervals else None

    @cached_property
    def headers(self) -> Headers:
        """Headers of the file and of each trace, as read-only mappings with the format's own names.

        >>> import wavefilt
        >>> headers = wavefilt.read("samples/seismic.dat").headers
        >>> headers["ACQUISITION_DATE"], headers.traces[0]["SAMPLE_INTERVAL"]
        ('11/JUN/2024', '0.001')
        >>> headers.traces[0].delay, headers.traces[0].receiver
        (0.0, (10.0,))
        """
        return named(self.format).headers(self) if self.origin is not None else Headers()

    @cached_property
    def onsets(self) -> Sequence[tuple[float, str] | None]:
        """`Headers.onset` of each trace; empty if the headers give none."""
        return named(self.format).onsets(self) if self.origin is not None else ()

    @cached_property
    def offsets(self) -> tuple[float, ...]:
        """Metres from the source to the receiver of each trace; empty if the headers do not give them."""
        offsets = [header.offset for header in self.headers.traces]
        if None in offsets or not any(offsets):
            return ()
        return tuple(offset or 0.0 for offset in offsets)


def known_interval(contents: Contents, format: str) -> float:
    """Return the sampling interval of all traces. Raises FormatError if there is none, or several."""
    if contents.interval is None:
        raise FormatError(f"{format} needs the sampling interval in seconds: give `dt`")
    return float(contents.interval)


def moment(year: int, day: int, hour: int, minute: int, second: float) -> np.datetime64:
    """Return a time by the day of the year, from 1."""
    seconds = second + 60 * (minute + 60 * (hour + 24 * (day - 1)))
    return np.datetime64(f"{year:04}-01-01", "ns") + np.timedelta64(round(1000 * seconds), "ms")


class Format:
    """A file format; register an instance of a subclass with `wavefilt.extending.register_format`.

    A subclass defines `read`, `write` and one of `marks`, `recognise` and `resembles`, and other methods if it has the
    feature.
    `read` and `write` are for whole files in memory; `wavefilt.io.sources.StreamedFormat` defines them for formats with
    a `Source`, which can also be read and written in parts.

    Attributes
    ----------
    name : str
        The value of ``format=`` and ``--format``, and of `Recording.format`.
    label : str
        The name of the format in error messages; ``name`` by default.
    marks : bytes
        Pattern of the first bytes of files in this format.
    endings : tuple of str
        Endings of file names, as ``".sgy"``, that ask for this format as output.
    shared_endings : tuple of str
        Endings that other formats use too, as ``".dat"``: they ask for nothing.
    keeps : str
        What `convert` keeps of a recording, for the documentation.
    may_be_raw : bool
        Whether raw binary may be recognised as this format by chance: errors then explain how to read raw binary.
    datasets : bool
        Whether a file holds named arrays, chosen by ``path::dataset``.
    folder : bool
        Whether the "file" is a folder.
    streamed : bool
        Whether `open` is defined.
    seismic : bool
        Whether the files are seismic records, for which denoising has the recipe as defaults, or arrays of any data.
    """

    name: str
    label: str = ""
    marks: bytes = b""
    endings: tuple[str, ...] = ()
    shared_endings: tuple[str, ...] = ()
    keeps: str = ""
    may_be_raw: bool = False
    datasets: bool = False
    folder: bool = False
    streamed: bool = False
    seismic: bool = True

    def recognise(self, probe: Probe) -> bool:
        """Return whether a file has the marks of this format. A file with the marks of two formats is refused."""
        return bool(self.marks) and re.match(self.marks, probe.head) is not None

    def resembles(self, probe: Probe) -> bool:
        """Return whether a file that no format recognises may be of this format; the first such format is taken."""
        return False

    def recognise_folder(self, path: str) -> bool:
        """Return whether a folder is of this format."""
        return False

    def read(self, data: bytes, layout: Layout) -> Contents:
        """Read a whole file. Raises FormatError if it is damaged or does not fit the layout (see `Layout.only`)."""
        raise NotImplementedError

    def write(self, contents: Contents) -> bytes:
        """Return the file that was read with other samples. Raises FormatError if it cannot hold them."""
        raise NotImplementedError

    def convert(self, contents: Contents) -> bytes:
        """Return a new file for traces of another format. Raises FormatError if it cannot hold them."""
        raise NotImplementedError

    @property
    def converts(self) -> bool:
        """Whether `convert` is defined."""
        return type(self).convert is not Format.convert

    def open(self, file: Any, layout: Layout) -> Source:
        """Read and write an open file, or the folder of this name, in parts. Raises FormatError as `read` does."""
        raise NotImplementedError

    def headers(self, contents: Contents) -> Headers:
        """Return the headers of traces that were read by this format."""
        return Headers()

    def onsets(self, contents: Contents) -> Sequence[tuple[float, str] | None]:
        """Return `Headers.onset` of each trace; nothing if there are none."""
        found = [header.onset for header in contents.headers.traces]
        return found if any(found) else ()


FORMATS: dict[str, Format] = {}
"""The formats by name; `wavefilt.io` registers those of this package. Under "obspy", ObsPy recognises its formats."""


def register_format(format: Format) -> None:
    """Add a format: recognised by content and by name, and written back; streamed if it is a `StreamedFormat`.

    Raises ValueError for a name that is taken, or has other characters than letters, digits, hyphens and underscores.
    """
    if not format.name.replace("-", "_").isidentifier():
        raise ValueError(f"format {format.name!r}: a name consists of letters, digits, hyphens and underscores")
    if format.name in FORMATS:
        raise ValueError(f"format {format.name!r} is already registered")
    FORMATS[format.name] = format


def named(name: str) -> Format:
    """Return the format of a recording; a name that is not registered belongs to a format of ObsPy."""
    return FORMATS.get(name) or FORMATS["obspy"]


def checked(name: str) -> Format:
    """Return the format of this name. Raises ValueError, with the known names, if there is none."""
    check("format", name, FORMATS)
    return FORMATS[name]


@contextmanager
def refused(failure: str, kind: type[Exception] = FormatError) -> Iterator[None]:
    """Turn the errors of a library, which damaged files make raise any of many, into this kind.

    Lack of memory and a full disk are not due to the file, and stay as they are.
    """
    try:
        yield
    except (FormatError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        raise kind(f"{failure} ({reason(error)})") from error


def refuse_dataset(target: Path) -> None:
    """Raise ValueError for a result that is named ``path::dataset``."""
    if MARK in target.name:
        raise ValueError(f"{target}: leave {MARK} out; the array keeps its name in the result")

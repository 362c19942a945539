"""Reading and writing files of any format: ``path::dataset``, recognition by content, conversion by name."""

from __future__ import annotations

import io
import os
import re
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from wavefilt.errors import FormatError, LayoutError, reason
from wavefilt.io.atomic import check_destination, write_atomically
from wavefilt.io.base import (
    COMPRESSED_ENDINGS,
    FORMATS,
    MARK,
    Contents,
    Format,
    Layout,
    Probe,
    checked,
    named,
    refuse_dataset,
    refused,
)
from wavefilt.io.obspy import MISSING, ObspyFormat, has_writer, recognised_by_obspy
from wavefilt.io.sources import Source, contents_of

COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\0": "lzma"}
"""Modules that read compressed files, by the first bytes."""
AS_RAW = "If it is raw binary, give `format` raw with `dtype`, `endian` and `ns`"
_READ_BOTH = 'ObsPy reads both and writes one: obspy.read("FILE").write("NAME.mseed", format="MSEED")'
_CSS = rb"((?=.{283}\r?\n)(?=.{26,27}\.).{143}|(?=.{287}\r?\n)(?=.{27}\.).{144})([stif][248]|[sg][23]|c[0#])"
NOT_READ = {
    rb"\x80[\x02-\x05][}c\x95(\]]": "a Python pickle, which is never opened because loading one can run any program",
    rb"(?s)(?=.*data_format=)(?=.*n1=)(?=.*in=)": "a Madagascar header without samples; read the file named after in= "
    f"instead. {AS_RAW}",
    rb"(?s).{257}ustar": "an archive; unpack it first: tar xf FILE",
    _CSS: f"a CSS or NNSA table, whose samples are in other files; {_READ_BOTH}",
    rb"43981 ": f"a Seismic Handler header, whose samples are in a .QBN file; {_READ_BOTH}",
}
"""Patterns at the start of files that are recognised and not read, and what to do with them."""


# ----------------------------------------------------------------------------------------------------------- paths


def split(path: str | bytes | os.PathLike[str]) -> tuple[str, str | None]:
    """Return the file or folder, and the dataset named after ::, if any; an existing file may have :: in its name."""
    name = os.fsdecode(path)
    file, mark, dataset = name.partition(MARK)
    return (name, None) if not mark or os.path.lexists(name) else (file, dataset)


def resolve(path: str | bytes | os.PathLike[str], layout: Layout) -> tuple[str, Layout]:
    """Return the file or folder, and the layout with the dataset that ``path`` names as its component.

    Raises FormatError if both name a dataset, differently.
    """
    file, dataset = split(path)
    if dataset is None:
        return file, layout
    if not dataset.strip("/"):
        raise FormatError(f"{os.fsdecode(path)}: no dataset is named after {MARK}")
    if layout.component not in (None, dataset):
        raise LayoutError(f"{os.fsdecode(path)}: `component={layout.component}` is another dataset")
    return file, replace(layout, component=dataset)


# --------------------------------------------------------------------------------------------------------- reading


def read(path: str | bytes | os.PathLike[str] | BinaryIO, layout: Layout, format: str | None = None) -> Contents:
    """Read the traces of a file or folder, in the format named or in the one recognised; see `wavefilt.read`."""
    if format is not None:
        checked(format)
    if not isinstance(path, (str, bytes, os.PathLike)):
        if not hasattr(path, "read"):
            raise TypeError(f"a path or a binary file is needed, not {type(path).__name__}")
        content = path.read()
        if not isinstance(content, bytes):
            raise TypeError(f"{type(path).__name__} gives text; open the file in binary mode")
        return _read(io.BytesIO(content), str(getattr(path, "name", "-")), format, layout)
    name, layout = resolve(path, layout)
    if os.path.isdir(name):
        return contents_of(open_source(name, layout, format), name)
    with open(name, "rb") as file:
        return _read(file if file.seekable() else io.BytesIO(file.read()), name, format, layout)


def _read(file: BinaryIO, path: str, name: str | None, layout: Layout) -> Contents:
    try:
        probe = Probe(file)
        packed = next((module for mark, module in COMPRESSED.items() if probe.head.startswith(mark)), None)
        if packed and (name != "raw" or path.lower().endswith(COMPRESSED_ENDINGS)):
            probe = Probe(_decompressed(file, packed))
        format = _format_of(probe, name) or _format_of_obspy(probe)
        data = probe.bytes(0, probe.size)
    except FormatError as error:
        raise about(path, error) from error
    try:
        return replace(format.read(data, layout), source=path)
    except FormatError as error:
        # some of ObsPy's formats are text too, which shows only when it is not a plain table
        other = recognised_by_obspy(probe.file) if format.name == "ascii" and name is None else None
        if other is None:
            hint = f". {AS_RAW}" if format.may_be_raw and name is None else ""
            raise about(path, error, format, hint) from error
        try:
            return replace(ObspyFormat(other).read(data, layout), source=path)
        except FormatError as second:  # a damaged table may look like a format of ObsPy's
            raise about(path, FormatError(f"{error}; {second}")) from second


def _decompressed(file: BinaryIO, module: str) -> BinaryIO:
    """Return the content of a file that a module of Python's decompresses. Raises FormatError if it is damaged."""
    file.seek(0)
    with refused("a damaged or truncated compressed file"):
        return io.BytesIO(import_module(module).decompress(file.read()))


def _format_of(probe: Probe, name: str | None, *, streamed: bool = False) -> Format | None:
    """Return the format of this name, or whose marks the file has, or the first (``streamed``) one that it resembles.

    Raises FormatError for a file with the marks of several formats, and for a kind that is not read.
    """
    if probe.size == 0:
        raise FormatError("is a device or another file without a size" if probe.head else "the file is empty")
    if name is not None:
        if checked(name).folder:
            raise FormatError(f"is a file; a {name} store is a folder")
        return FORMATS[name]
    found = [format for format in FORMATS.values() if format.recognise(probe)]
    if len(found) > 1:
        raise FormatError(f"could be {' or '.join(format.name for format in found)}: give `format`")
    refusal = next((what for marks, what in NOT_READ.items() if re.match(marks, probe.head)), None)
    if refusal and not found:
        raise FormatError(refusal)
    formats = (format for format in FORMATS.values() if format.streamed or not streamed)
    return found[0] if found else next((format for format in formats if format.resembles(probe)), None)


def _format_of_obspy(probe: Probe) -> Format:
    """Return the format that ObsPy recognises. Raises FormatError if there is none."""
    name = recognised_by_obspy(probe.file)
    if name is not None:
        return FORMATS.get(name) or ObspyFormat(name)
    marked = (format for format in FORMATS.values() if format.name not in ("raw", "obspy") and not format.folder)
    tried = ", ".join(format.name for format in marked)
    more = "and ObsPy" if find_spec("obspy") else f"but not ObsPy, which is not installed: {MISSING}"
    raise FormatError(f"unknown format (tried {tried} {more}). {AS_RAW}")


def is_store(path: str) -> bool:
    """Return whether a folder is of a format, such as a Zarr array or group."""
    return any(format.folder and format.recognise_folder(path) for format in FORMATS.values())


def folder_format(path: str, name: str | None) -> Format:
    """Return the format of a folder, or the one named. Raises FormatError if the folder is not of it."""
    if name is not None and not checked(name).folder:
        raise FormatError(f"is a folder, and {name} files are not folders")
    folders = [format for format in FORMATS.values() if format.folder]
    for format in folders:
        if format.name == name or (name is None and format.recognise_folder(path)):
            return format
    stores = " or ".join(format.name for format in folders)
    raise FormatError(f"is a folder and not a {stores} store; name the files in it")


def about(path: str, error: FormatError, format: Format | None = None, hint: str = "") -> FormatError:
    """Return the error as one line that begins with the file, and the format if the text does not name it."""
    text = reason(error).removeprefix(f"{path}: ")
    label = (format.label or format.name) if format else ""
    if label.replace("-", "").lower() not in text.replace("-", "").lower():
        text = f"{label}: {text}"
    return type(error)(f"{path}: {text}{hint}")


def open_source(path: str | os.PathLike[str], layout: Layout, format: str | None = None) -> Source:
    """Open a file, or ``path::dataset``, whose traces can be read in parts; raw binary if the layout has a dtype.

    Raises LayoutError for other formats, FormatError for a damaged file, OSError if it cannot be read.
    """
    name, layout = resolve(path, layout)
    with ExitStack() as stack:
        chosen: Format | None = None
        try:
            if os.path.isdir(name):
                return folder_format(name, format).open(name, layout)
            file = stack.enter_context(open(name, "rb"))
            if not file.seekable():
                raise LayoutError("a pipe is not streamed (`max_memory`); write its content to a file first")
            probe, format = Probe(file), format or ("raw" if layout.dtype else None)
            if format != "raw" and probe.head.startswith(tuple(COMPRESSED)):
                raise LayoutError("compressed files are not streamed (`max_memory`); decompress the file first")
            chosen = _format_of(probe, format, streamed=True)
            if chosen is not None and chosen.streamed:
                source = chosen.open(file, layout)
                stack.pop_all()
                return source
            *others, last = (format.name for format in FORMATS.values() if format.streamed)
            only = f"only {', '.join(others)} and {last} files are streamed (`max_memory`)"
            raise LayoutError(f"{only}; convert the file, or denoise it in memory")
        except FormatError as error:
            raise about(name, error, chosen if chosen and chosen.streamed else None) from error


# --------------------------------------------------------------------------------------------------------- writing


def encode(contents: Contents, other: str | None = None) -> bytes:
    """Return the file in the format of the traces, or in another one. Raises FormatError if it cannot hold them."""
    format = named(other or contents.format)
    if other is None and contents.origin is not None:
        return format.write(contents)
    if not format.converts:
        raise FormatError(f"{format.name}: recordings of other formats are not written in this one")
    return format.convert(contents)


def endings() -> list[str]:
    """Return the usual ending of names for each format in which recordings of other formats are written."""
    return [format.endings[0] for format in FORMATS.values() if format.converts]


def other_format(format: str, source: str, target: Path) -> str | None:
    """Return the format that the name of an output asks for; None for the format of the input.

    The format is kept by its own endings, the ending of the input, endings that several formats share (.dat), numbers,
    and no ending. Raises FormatError for other endings, and for a format in which other recordings are not written.
    """
    ending, own = target.suffix.lower(), named(format)
    if ending in COMPRESSED_ENDINGS:
        raise FormatError(f"{target}: compressed files are not written; leave {ending} out")
    before = Path(source.partition(MARK)[0])
    before = before.with_suffix("") if before.suffix.lower() in COMPRESSED_ENDINGS else before
    if ending in (*own.endings, *own.shared_endings, before.suffix.lower()) or not re.search("[a-z]", ending):
        return None
    asked = next((format for format in FORMATS.values() if ending in format.endings), None)
    if asked is not None and asked.converts:
        return asked.name
    if asked is None and any(ending in format.shared_endings for format in FORMATS.values()):
        return None
    what = f"no format has the ending {ending}" if asked is None else f"recordings are not written as {asked.name}"
    raise FormatError(f"{target}: {what}; use {', '.join(endings())}")


def check_output(contents: Contents, path: Path) -> str | None:
    """Return the other format that the name of the output asks for, None for the format of the traces.

    Raises FormatError, before anything is computed, if `write` would find no writer for this name.
    """
    other = other_format(contents.format, contents.source, path)
    if other is None and contents.format not in FORMATS and not has_writer(contents.format):
        ways = "by a name that ends with .mseed or .sac"
        raise FormatError(f"ObsPy has no writer of {contents.format.upper()}; write MiniSEED or SAC, {ways}")
    return other


def check_kept(format: str, source: str, target: Path) -> None:
    """Raise FormatError for a name that asks for another format of a file that is denoised in parts."""
    if (other := other_format(format, source, target)) is not None:
        raise FormatError(f"{target}: a file is written as {other} in memory alone; convert the result afterwards")
    if named(format).datasets:
        refuse_dataset(target)


def write(contents: Contents, path: Path, *, overwrite: bool = False) -> None:
    """Write traces in their format, or in the one that the name of the file asks for: it is complete or absent.

    Raises FileExistsError if ``path`` exists and ``overwrite`` is not set, FormatError if the format cannot hold the
    samples or the name ends with an unknown ending, OSError if it cannot be written, or a folder that was read has
    changed.
    """
    format = named(contents.format)
    if format.datasets:
        refuse_dataset(path)
    other = check_output(contents, path)
    if other is None and format.folder and contents.origin is not None:
        source: Source = contents.origin
        samples = contents.samples
        with source.create(path, overwrite=overwrite) as target:
            target.write(slice(0, len(samples)), 0, samples)
            source.check_unchanged()
        return
    check_destination(path, overwrite=overwrite)
    try:
        data = encode(contents, other)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk, in a temporary file of ObsPy's
        raise
    write_atomically(path, data, overwrite=overwrite)

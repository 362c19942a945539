"""Reading and writing files of any format: ``path::dataset``, recognition by content, conversion by name."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from wavefilt.errors import FormatError, LayoutError, reason
from wavefilt.io.atomic import check_destination, write_atomically
from wavefilt.io.base import (
    AS_RAW,
    COMPRESSED_ENDINGS,
    FORMATS,
    MARK,
    Contents,
    Format,
    Layout,
    Probe,
    about,
    checked,
    folder_format,
    named,
    other_format,
    recognised,
    refuse_dataset,
    resembled,
)
from wavefilt.io.obspy import MISSING, ObspyFormat, has_writer, recognised_by_obspy
from wavefilt.io.sources import Source, contents_of

COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0")
"""First bytes of files compressed by gzip, bzip2 and xz."""


class NotStreamed(FormatError):
    """A file of a format that cannot be read in parts."""


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
        try:
            return contents_of(folder_format(name, format).open(name, layout), name)
        except FormatError as error:
            raise about(name, error) from error
    with open(name, "rb") as file:
        return _read(file if file.seekable() else io.BytesIO(file.read()), name, format, layout)


def _read(file: BinaryIO, path: str, name: str | None, layout: Layout) -> Contents:
    try:
        probe = Probe(file)
        if probe.head.startswith(COMPRESSED) and (name != "raw" or path.lower().endswith(COMPRESSED_ENDINGS)):
            probe = Probe(_decompressed(file, probe.head))
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


def _decompressed(file: BinaryIO, head: bytes) -> BinaryIO:
    """Return the content of a compressed file. Raises FormatError if it is damaged."""
    import bz2
    import gzip
    import lzma
    import zlib

    file.seek(0)
    packed = file.read()
    try:
        if head.startswith(COMPRESSED[0]):
            return io.BytesIO(gzip.decompress(packed))
        return io.BytesIO((bz2 if head.startswith(COMPRESSED[1]) else lzma).decompress(packed))
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise FormatError(f"a damaged or truncated compressed file ({reason(error)})") from error


def _format_of(probe: Probe, name: str | None, *, streamed: bool = False) -> Format | None:
    """Return the format of a file: the one named, or the one recognised by content, of all or of the streamed ones."""
    if probe.size == 0:
        raise FormatError("the file is empty")
    if name is None:
        return recognised(probe) or resembled(probe, streamed=streamed)
    if checked(name).folder:
        raise FormatError(f"is a file; a {name} store is a folder")
    return FORMATS[name]


def _format_of_obspy(probe: Probe) -> Format:
    """Return the format that ObsPy recognises. Raises FormatError if there is none."""
    name = recognised_by_obspy(probe.file)
    if name is not None:
        return FORMATS.get(name) or ObspyFormat(name)
    marked = (format for format in FORMATS.values() if format.name not in ("raw", "obspy") and not format.folder)
    tried = ", ".join(format.name for format in marked)
    more = "and ObsPy" if find_spec("obspy") else f"but not ObsPy, which is not installed: {MISSING}"
    raise FormatError(f"unknown format (tried {tried} {more}). {AS_RAW}")


def open_source(path: str | os.PathLike[str], layout: Layout, format: str | None = None) -> Source:
    """Open a file, or ``path::dataset``, whose traces can be read in parts; raw binary if the layout has a dtype.

    Raises NotStreamed for other formats, FormatError for a damaged file, OSError if it cannot be read.
    """
    name, layout = resolve(path, layout)
    chosen = None
    try:
        if os.path.isdir(name):
            chosen = folder_format(name, format)
        else:
            with open(name, "rb", buffering=0) as file:
                if file.seekable():
                    chosen = _format_of(Probe(file), format or ("raw" if layout.dtype else None), streamed=True)
        if chosen is not None and chosen.streamed:
            return chosen.open(name, layout)
        *others, last = (format.name for format in FORMATS.values() if format.streamed)
        only = f"only {', '.join(others)} and {last} files are streamed (`max_memory`)"
        raise NotStreamed(f"{only}; convert the file, or denoise it in memory")
    except FormatError as error:
        raise about(name, error, chosen if chosen and chosen.streamed else None) from error


# --------------------------------------------------------------------------------------------------------- writing


def encode(contents: Contents) -> bytes:
    """Return the file in the format of the traces. Raises FormatError if it cannot hold them, or is a folder."""
    format = named(contents.format)
    return converted(contents, contents.format) if contents.origin is None else format.write(contents)


def converted(contents: Contents, format: str) -> bytes:
    """Return a file of another format. Raises FormatError if it cannot hold the traces."""
    if not named(format).converts:
        raise FormatError(f"{format}: recordings of other formats are not written in this one")
    return named(format).convert(contents)


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
        data = converted(contents, other) if other else encode(contents)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk, in a temporary file of ObsPy's
        raise
    write_atomically(path, data, overwrite=overwrite)

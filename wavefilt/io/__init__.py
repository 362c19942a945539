"""Reading and writing recordings: one module a format, found by content, never by the name of the file."""

from __future__ import annotations

import io
import os
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from wavefilt.errors import FormatError, reason
from wavefilt.io import detection
from wavefilt.io.layout import Layout
from wavefilt.io.paths import check_alone, folder_of, parted
from wavefilt.recording import Recording
from wavefilt.vocabulary import check

__all__ = ["FORMATS", "Layout", "check_destination", "encode", "read", "replacing", "write", "write_atomically"]


class Format(Protocol):
    """A module that reads and writes one format (or family)."""

    def decode(self, data: bytes, layout: Layout, format: str) -> Recording:
        """The recording in ``data``. Raises FormatError if it is damaged or does not fit ``layout``."""

    def encode(self, recording: Recording) -> bytes:
        """The bytes of the whole file, headers as they came."""


FORMATS: dict[str, str] = {
    "seg2": "seg2", "ascii": "text.reader", "raw": "raw", "npy": "arrays.npy", "npz": "arrays.npy", "wav": "wav",
    "segy": "segy.traces", "su": "segy.traces", "hdf5": "arrays.hdf5", "zarr": "arrays.zarr",
    "mseed": "obspy.waveforms", "sac": "obspy.waveforms", "gse2": "obspy.waveforms", "tspair": "obspy.waveforms",
    "slist": "obspy.waveforms",
    "obspy": "obspy.waveforms",
}  # fmt: skip
"""Format names for ``format=`` and ``--format``, with the module that serves each; "obspy" asks ObsPy which.

Formats that only ObsPy recognises go by its name in lower case, and through the same module.
"""


def _module(format: str) -> Format:
    return cast(Format, import_module(f"wavefilt.io.{FORMATS.get(format, 'obspy.waveforms')}"))


def read(
    path: str | bytes | os.PathLike[str] | BinaryIO,
    *,
    format: str | None = None,
    dtype: str | None = None,
    endian: str | None = None,
    ns: int | None = None,
    dt: float | None = None,
    columns: tuple[int, ...] | None = None,
    delimiter: str | None = None,
    component: str | None = None,
    axis: int | None = None,
) -> Recording:
    """Read traces from a file, in whatever known format it is.

    Parameters
    ----------
    path : str, Path or binary file object
        A local file, or a Zarr folder. Its content decides the format; its name is not looked at. ``path::dataset``
        names the array in an HDF5 file, a Zarr group or an npz, where there are several.
    format : str, optional
        A name of `wavefilt.io.FORMATS`, to read the file as that and nothing else.
    dtype, endian, ns : str, str, int, optional
        Raw binary: ``"f4" "f8" "i2" "i4"``, ``"little" "big"``, samples a trace; all three or the file is refused.
    dt : float, optional
        Sampling interval in seconds, where the format does not record it.
    columns, delimiter : optional
        ASCII: the columns that are traces, counted from 1; the character between cells.
    component, axis : optional
        npz, HDF5, Zarr: the array to denoise. npy, npz, HDF5, Zarr: the axis of the samples, the last by default.

    Returns
    -------
    Recording

    Raises
    ------
    FormatError
        For an empty, damaged, truncated, ambiguous or unknown file, with what was tried and how to read it as raw;
        for an option the format has no use for.
    ValueError
        For an unknown format name, or a layout that makes no sense.
    OSError
        If the file cannot be read.
    """
    layout = Layout(dtype, endian, ns, dt, columns, delimiter, component, axis)
    if format is not None:
        check("format", format, FORMATS)
    if not isinstance(path, (str, bytes, os.PathLike)):
        content = path.read()
        if not isinstance(content, bytes):
            raise TypeError(f"{type(path).__name__} gives text; open the file in binary mode")
        return _read(io.BytesIO(content), str(getattr(path, "name", "-")), format, layout)
    source, layout = parted(path, layout)
    if os.path.isdir(source):
        return _read_folder(source, format, layout)
    with open(source, "rb") as file:
        return _read(file if file.seekable() else io.BytesIO(file.read()), source, format, layout)


def _read_folder(source: str, format: str | None, layout: Layout) -> Recording:
    from wavefilt.io.arrays import zarr

    try:
        folder_of(source, format)
        return replace(zarr.load(source, layout), source=source)
    except FormatError as error:
        raise FormatError(f"{source}: {reason(error).removeprefix(f'{source}: ')}") from error


def _read(file: BinaryIO, source: str, format: str | None, layout: Layout) -> Recording:
    try:
        probe = detection.Probe(file)
        if probe.size == 0:
            raise FormatError("the file is empty")
        if format == "zarr":
            raise FormatError("is a file; a zarr store is a folder")
        chosen = format or _detect(probe, source)
        file.seek(0)
        data = file.read()
        try:
            recording = _module(chosen).decode(data, layout, chosen)
        except FormatError as error:
            if format is not None:
                raise
            if chosen in detection.WITHOUT_MAGIC:
                raise FormatError(f"{reason(error)}. {_raw_hint(source)}") from error
            # some of ObsPy's formats are text too, which shows only when it is no plain table
            other = _obspy_format(file) if chosen == "ascii" else None
            if other is None:
                raise
            try:
                recording = _module(other).decode(data, layout, other)
            except FormatError as second:  # at times a damaged table looks like one of ObsPy's
                raise FormatError(f"{reason(error)}; {reason(second)}") from second
    except FormatError as error:
        raise FormatError(f"{source}: {reason(error)}") from error
    return replace(recording, source=source)


def _obspy_format(file: BinaryIO) -> str | None:
    from wavefilt.io.obspy.waveforms import recognised_by_obspy

    return recognised_by_obspy(file)


def _raw_hint(source: str) -> str:
    return (
        "If it is raw binary, say how it is laid out: "
        f"wavefilt denoise {shlex.quote(source)} --format raw --dtype f4 --endian little --ns SAMPLES_PER_TRACE"
    )


def _detect(probe: detection.Probe, source: str) -> str:
    """The one format of the file. Raises FormatError if there is none, or more than one."""
    from wavefilt.io.text.reader import looks_like_text

    found = detection.recognise(probe)
    if found == ["zip"]:
        found = ["npz"]
    if len(found) > 1:
        raise FormatError(f"could be {' or '.join(found)}; say which with --format")
    if found and found[0] in detection.REFUSED:
        raise FormatError(detection.REFUSED[found[0]])
    if found:
        return found[0]
    if detection.starts_like_seg2(probe):
        return "seg2"
    if detection.starts_like_segy(probe):
        return "segy"
    if looks_like_text(probe.head):
        return "ascii"
    name = _obspy_format(probe.file)
    if name is not None:
        return name
    from wavefilt.io.obspy.waveforms import how_tried

    tried = ", ".join([*detection.CHECKS, "ASCII", how_tried()])
    raise FormatError(f"unknown format (tried {tried}). {_raw_hint(source)}")


def encode(recording: Recording) -> bytes:
    """The recording as a file of its format. Raises FormatError if that cannot hold its samples, or is a folder."""
    if recording.format == "zarr":
        raise FormatError("a zarr store is a folder of many files; name one for the result")
    return _module(recording.format).encode(recording)


def write(recording: Recording, path: Path, *, overwrite: bool = False) -> None:
    """Write a recording in its format, whole or not at all.

    Raises FileExistsError if ``path`` exists and ``overwrite`` is not set, FormatError if the format cannot hold the
    samples, OSError if it cannot be written, or a Zarr store that was read has changed.
    """
    if recording.format in ("hdf5", "zarr"):
        check_alone(path)
    if recording.format == "zarr":
        from wavefilt.io.arrays import zarr

        zarr.save(recording, path, overwrite=overwrite)
        return
    check_destination(path, overwrite=overwrite)
    write_atomically(path, encode(recording), overwrite=overwrite)


def check_destination(path: Path, *, overwrite: bool) -> None:
    """Raise an OSError if `write_atomically` would refuse ``path``."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file")
    if path.is_file() and not overwrite:
        raise FileExistsError(f"{path} exists; use --overwrite (overwrite=True) to replace it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist")


def write_atomically(path: Path, data: bytes, *, overwrite: bool = False) -> None:
    """Write a file that is either whole or not there, whatever interrupts it.

    A symbolic link stays and its target is written; a device or pipe is written to directly. Raises
    FileExistsError if ``path`` is a file and ``overwrite`` is not set.
    """
    check_destination(path, overwrite=overwrite)
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    with replacing(path, overwrite=overwrite) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    """A new file to read and write that takes the place of ``path`` when left without an error, and else goes.

    A symbolic link stays and its target is replaced. Raises FileExistsError if ``path`` is a file and ``overwrite`` is
    not set, ValueError if it is a device or pipe.
    """
    path = Path(os.path.realpath(path))
    check_destination(path, overwrite=overwrite)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no regular file: it cannot be replaced when all is written")
    temporary = path.parent / f".wavefilt-{secrets.token_hex(6)}.tmp"  # same folder, so that renaming is atomic
    try:
        with open(temporary, "x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_destination(path, overwrite=overwrite)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise

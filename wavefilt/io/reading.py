"""Reading a recording from a file of any format that is registered."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from typing import BinaryIO

from wavefilt.errors import FormatError, about
from wavefilt.io.dataset_paths import resolve
from wavefilt.io.detection import Probe
from wavefilt.io.file_source import recording_of
from wavefilt.io.layout import Layout
from wavefilt.io.registry import AS_RAW, FORMATS, REFUSED, Format, folder_format, named, naming, recognised, resembled
from wavefilt.recording import Recording

RAW_HINT = ("If it is raw binary, specify its layout: ", AS_RAW)


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
        A local file, or a Zarr folder. Its content decides the format; its name is ignored. ``path::dataset``
        names the array in an HDF5 file, a Zarr group or an npz, where there are several.
    format : str, optional
        A name of `wavefilt.io.FORMATS`, to read the file as that and nothing else.
    dtype, endian, ns : str, str, int, optional
        Raw binary: ``"f4" "f8" "i2" "i4"``, ``"little" "big"``, samples per trace; all three or the file is refused.
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
        for an option that does not apply to the format.
    ValueError
        For an unknown format name, or an invalid layout.
    OSError
        If the file cannot be read.
    """
    layout = Layout(dtype, endian, ns, dt, columns, delimiter, component, axis)
    if format is not None:
        FORMATS.check(format)
    if not isinstance(path, (str, bytes, os.PathLike)):
        content = path.read()
        if not isinstance(content, bytes):
            raise TypeError(f"{type(path).__name__} gives text; open the file in binary mode")
        return _read(io.BytesIO(content), str(getattr(path, "name", "-")), format, layout)
    source, layout = resolve(path, layout)
    if os.path.isdir(source):
        return _read_folder(source, format, layout)
    with open(source, "rb") as file:
        return _read(file if file.seekable() else io.BytesIO(file.read()), source, format, layout)


def _read_folder(path: str, name: str | None, layout: Layout) -> Recording:
    try:
        format = folder_format(path, name)
        assert format.open_source is not None
        recording = recording_of(format.open_source(path, layout), path)
    except FormatError as error:
        raise about(path, error) from error
    return recording


def _read(file: BinaryIO, path: str, name: str | None, layout: Layout) -> Recording:
    try:
        probe = Probe(file)
        if probe.size == 0:
            raise FormatError("the file is empty")
        if name is not None and FORMATS[name].recognise_folder:
            raise FormatError(f"is a file; a {name} store is a folder")
        format = _detected(probe) if name is None else FORMATS[name]
        file.seek(0)
        data = file.read()
        try:
            recording = format.decode(data, layout)
        except FormatError as error:
            place = naming(path, format.name, error)
            if format.may_be_raw and name is None:
                raise about(place, error, hint=(". ", *RAW_HINT)) from error
            if name is not None:
                raise about(place, error) from error
            # some of ObsPy's formats are text too, which shows only when it is not a plain table
            other = _by_obspy(probe) if format.name == "ascii" else None
            if other is None:
                raise about(place, error) from error
            try:
                recording = other.decode(data, layout)
            except FormatError as second:  # at times a damaged table looks like one of ObsPy's
                raise about(path, error, second) from second
    except FormatError as error:
        raise about(path, error) from error
    return replace(recording, source=path)


def _detected(probe: Probe) -> Format:
    """The format of a file by its content. Raises FormatError if there is none, or more than one."""
    format = recognised(probe) or resembled(probe) or _by_obspy(probe)
    if format is not None:
        return format
    from wavefilt.io.obspy.recognition import how_tried

    tried = [*REFUSED, *FORMATS.where(lambda f: f.recognise or f.resembles), how_tried()]
    raise FormatError(f"unknown format (tried {', '.join(tried)}). ", *RAW_HINT)


def _by_obspy(probe: Probe) -> Format | None:
    from wavefilt.io.obspy.recognition import recognised_by_obspy

    name = recognised_by_obspy(probe.file)
    return None if name is None else named(name)

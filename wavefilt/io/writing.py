"""Writing a recording in the format it was read from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wavefilt.errors import FormatError, Words
from wavefilt.io.atomic import check_destination, write_atomically
from wavefilt.io.dataset_paths import MARK, refuse_dataset
from wavefilt.io.registry import FORMATS, named

if TYPE_CHECKING:
    from wavefilt.io.sources import Source
    from wavefilt.recording import Recording


def encode(recording: Recording) -> bytes:
    """The recording as a file of its format. Raises FormatError if that cannot hold its samples, or is a folder."""
    format = named(recording.format)
    if format.recognise_folder:
        raise FormatError(f"a {format.name} store is a folder of many files; name one for the result")
    return format.encode(recording)


def other_format(format: str, source: str, target: Path) -> str | None:
    """The format that the name of an output asks for; None for the one of the input, or where the name tells nothing.

    A name that ends like that of the input asks for nothing else. Raises FormatError for a format that recordings of
    other formats are not written in.
    """
    suffix = target.suffix.lower()
    asked = FORMATS.where(lambda f: suffix in f.extensions)
    if not asked or format in asked or suffix == Path(source.partition(MARK)[0]).suffix.lower():
        return None
    if suffix == ".csv" and format not in FORMATS:  # text of a format of ObsPy's
        return None
    if FORMATS[asked[0]].convert is None:
        raise FormatError(f"{target}: a {format} recording is not written as {asked[0]}; use {', '.join(endings())}")
    return asked[0]


def endings() -> list[str]:
    """Of each format that recordings of other formats are written in, the usual ending of names."""
    return [FORMATS[name].extensions[0] for name in FORMATS.where(lambda f: f.convert)]


def check_output(recording: Recording, path: Path) -> None:
    """Raise FormatError, before anything is computed, if `write` would find no writer for this name."""
    if other_format(recording.format, recording.source, path) is None and recording.format not in FORMATS:
        from wavefilt.io.obspy.recognition import has_writer

        if not has_writer(recording.format):
            ways = Words("by a name that ends with .mseed or .sac", "with -o NAME.mseed or -o NAME.sac")
            raise FormatError(f"ObsPy has no writer of {recording.format.upper()}; write MiniSEED or SAC, ", ways)


def refuse_conversion(format: str, source: str, target: Path) -> None:
    """Raise FormatError for a name that asks for another format of a file that is denoised in parts."""
    if (other := other_format(format, source, target)) is not None:
        raise FormatError(f"{target}: a file is written as {other} in memory alone; convert the result afterwards")


def converted(recording: Recording, format: str) -> bytes:
    """The recording as a file of another format. Raises FormatError if that has no way to hold it."""
    convert = FORMATS[format].convert
    if convert is None:
        raise FormatError(f"{format}: recordings of other formats are not written in this one")
    return convert(recording)


def write(recording: Recording, path: Path, *, overwrite: bool = False) -> None:
    """Write a recording in its format, or in the one that the name of the file asks for: it is complete or absent.

    Raises FileExistsError if ``path`` exists and ``overwrite`` is not set, FormatError if the format cannot hold the
    samples, OSError if it cannot be written, or a folder that was read has changed.
    """
    format, other = named(recording.format), other_format(recording.format, recording.source, path)
    if format.datasets:
        refuse_dataset(path)
    check_output(recording, path)
    if other is not None:
        check_destination(path, overwrite=overwrite)
        write_atomically(path, converted(recording, other), overwrite=overwrite)
        return
    if format.recognise_folder:
        source: Source = recording.origin
        samples = recording.samples
        with source.create(path, overwrite=overwrite) as target:
            target.write(slice(0, len(samples)), 0, samples)
            source.check_unchanged()
        return
    check_destination(path, overwrite=overwrite)
    write_atomically(path, format.encode(recording), overwrite=overwrite)

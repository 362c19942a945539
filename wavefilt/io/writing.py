"""Writing a recording in the format it was read from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wavefilt.errors import FormatError
from wavefilt.io.atomic import check_destination, write_atomically
from wavefilt.io.dataset_paths import refuse_dataset
from wavefilt.io.registry import named

if TYPE_CHECKING:
    from wavefilt.io.sources import Source
    from wavefilt.recording import Recording


def encode(recording: Recording) -> bytes:
    """The recording as a file of its format. Raises FormatError if that cannot hold its samples, or is a folder."""
    format = named(recording.format)
    if format.recognise_folder:
        raise FormatError(f"a {format.name} store is a folder of many files; name one for the result")
    return format.encode(recording)


def write(recording: Recording, path: Path, *, overwrite: bool = False) -> None:
    """Write a recording in its format: the file is complete or absent.

    Raises FileExistsError if ``path`` exists and ``overwrite`` is not set, FormatError if the format cannot hold the
    samples, OSError if it cannot be written, or a folder that was read has changed.
    """
    format = named(recording.format)
    if format.datasets:
        refuse_dataset(path)
    if format.recognise_folder:
        source: Source = recording.origin
        samples = recording.samples
        with source.create(path, overwrite=overwrite) as target:
            target.write(slice(0, len(samples)), 0, samples)
            source.check_unchanged()
        return
    check_destination(path, overwrite=overwrite)
    write_atomically(path, format.encode(recording), overwrite=overwrite)

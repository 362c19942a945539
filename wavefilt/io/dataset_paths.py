"""Paths as users give them: a file, a folder, or ``path::dataset`` for an array in one of them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from wavefilt.errors import FormatError, LayoutError, options
from wavefilt.io.layout import Layout

MARK = "::"


def split(path: str | bytes | os.PathLike[str]) -> tuple[str, str | None]:
    """The file or folder, and the dataset named in it, if any; an existing file may have :: in its own name."""
    name = os.fsdecode(path)
    file, mark, dataset = name.partition(MARK)
    return (name, None) if not mark or os.path.lexists(name) else (file, dataset)


def resolve(path: str | bytes | os.PathLike[str], layout: Layout) -> tuple[str, Layout]:
    """The file or folder, and the layout with the dataset that ``path`` names as its component.

    Raises FormatError where both name one, differently.
    """
    file, dataset = split(path)
    if dataset is None:
        return file, layout
    if not dataset.strip("/"):
        raise FormatError(f"{os.fsdecode(path)}: no dataset is named after {MARK}")
    if layout.component not in (None, dataset):
        raise LayoutError(f"{os.fsdecode(path)}: ", options(component=layout.component), " is another dataset")
    return file, replace(layout, component=dataset)


def refuse_dataset(target: Path) -> None:
    """Raise ValueError for a result that is named ``path::dataset``."""
    if MARK in target.name:
        raise ValueError(f"{target}: name the file alone; the array keeps its name in it")

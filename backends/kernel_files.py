"""Compiled kernels in files: where they may be kept, and how processes that read and write at once do not harm them.

A kernel has a file of its own, whose name tells all that it depends on.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_MARK = b"wavefilt kernel\n"


def folders(package: Path) -> list[Path]:
    """Return the folders of a package's kernels: NUMBA_CACHE_DIR alone, or its own and the user's cache folder."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen) / "wavefilt"]
    if sys.platform == "win32":
        own = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    else:
        own = "~/Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    found = [package / "__pycache__"]
    with suppress(RuntimeError):  # the user has no home
        found.append(Path(own).expanduser() / "wavefilt")
    return found


@contextmanager
def writable(package: Path) -> Iterator[Path]:
    """Yield the first folder that files can be written to, or a temporary one."""
    for folder in folders(package):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
            yield folder
            return
    with tempfile.TemporaryDirectory(prefix="wavefilt") as name:
        yield Path(name)


def read(name: str, folders: Sequence[Path]) -> bytes | None:
    """Return the contents of a file from the first folder with an undamaged one, or None."""
    for folder in folders:
        with suppress(OSError):
            text = (folder / name).read_bytes()
            check, code = text[len(_MARK) : len(_MARK) + 32], text[len(_MARK) + 32 :]
            if text.startswith(_MARK) and hashlib.sha256(code).digest() == check:
                return code
    return None


def write(name: str, folder: Path, code: bytes) -> None:
    """Write a kernel's file; other processes never see half of it. Raises OSError, on a full disk for example."""
    path = folder / name
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        part.write_bytes(_MARK + hashlib.sha256(code).digest() + code)
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise

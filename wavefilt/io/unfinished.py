"""Results that are not finished: their temporary names, their last step, and what killed runs have left of them."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from wavefilt.errors import OutputExists

NAME = re.compile(r"\.wavefilt-(?P<owner>.+)-(?P<pid>\d+)-(?P<start>\d+)-[0-9a-f]{12}\.tmp")
NEW, OLD = "new", "old"
"""In a temporary folder: the unfinished folder, and a folder with the one that it replaces, under its own name."""
NOREPLACE, EXCHANGE, HERE = 1, 2, -100
"""Flags of Linux's renameat2, and its descriptor for paths of the present folder."""
CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
TRIES, PAUSE = 20, 0.1
"""Attempts to remove a folder that other processes still write to, and seconds between them."""


def temporary(folder: Path) -> Path:
    """A name for an unfinished file or folder, which tells whose it is; those of runs that are gone are removed."""
    recover(folder)
    pid = os.getpid()
    return folder / f".wavefilt-{_owner()}-{pid}-{_start(pid)}-{secrets.token_hex(6)}.tmp"


@cache
def recover(folder: Path) -> None:
    """Remove what killed runs of this machine have left in a folder, once a process, and say so in the log.

    A folder that one of them had moved away, to put another in its place, gets its name back.
    """
    removed = 0
    for name in os.listdir(folder):
        match = NAME.fullmatch(name)
        if match is None or match["owner"] != _owner() or not _is_gone(int(match["pid"]), int(match["start"])):
            continue
        left = folder / name
        for old in (left / OLD).glob("*"):
            if not os.path.lexists(folder / old.name):
                old.rename(folder / old.name)
                _say(f"{folder / old.name}: recovered; a run that was killed had not yet replaced it")
        remove(left)
        removed += 1
    if removed:
        _say(f"{folder}: removed {removed} unfinished result{'s' if removed > 1 else ''} of killed runs")


def _say(message: str) -> None:
    from logging import getLogger

    getLogger("wavefilt").warning("wavefilt: %s", message)


@cache
def _owner() -> str:
    """The machine, and its namespace of process numbers, which differs between containers."""
    try:
        space = re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))
    except OSError:
        space = "0"
    return re.sub(r"[^A-Za-z0-9.]", "_", socket.gethostname())[:64] + "-" + space


def _start(pid: int) -> int:
    """When a process started, in ticks since the system did; 0 where the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[19])


def _is_gone(pid: int, start: int) -> bool:
    if sys.platform == "win32":
        return False  # where signal 0 would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return start != _start(pid)


def rename(new: Path, target: Path, flag: int) -> bool:
    """Rename without replacing, or exchange, in one step. False where the system cannot. Raises OSError."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    if renameat2(HERE, os.fsencode(new), HERE, os.fsencode(target), flag) == 0:
        return True
    code = ctypes.get_errno()
    if code in CANNOT:
        return False
    if code == errno.EEXIST:
        raise OutputExists(target)
    raise OSError(code, os.strerror(code), str(target))


def put_new(new: Path, target: Path) -> None:
    """Give a file or folder its name. Raises OutputExists, never replacing what may have appeared there meanwhile."""
    if not rename(new, target, NOREPLACE):
        if os.path.lexists(target):
            raise OutputExists(target)
        new.rename(target)


def put_folder(new: Path, target: Path, replaceable: Callable[[Path], bool]) -> None:
    """Replace a folder by ``new``, which lies in a temporary folder; the old one is left in there, to be removed.

    Raises FileExistsError for one that is not replaceable.
    """
    if not os.path.lexists(target):
        return put_new(new, target)
    refused = FileExistsError(f"{target} is not what was to be replaced; nothing was written")
    if not replaceable(target):
        raise refused
    if rename(new, target, EXCHANGE):
        if not replaceable(new):  # another one has come there since
            rename(new, target, EXCHANGE)
            raise refused
        return None
    old = new.parent / OLD / target.name
    old.parent.mkdir()
    target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        old.rename(target)
        raise
    return None


def remove(left: Path) -> None:
    """Remove a file, or a folder to which other processes may still write their last files, if it exists."""
    if not left.is_dir():
        left.unlink(missing_ok=True)
        return
    for _ in range(TRIES):
        shutil.rmtree(left, ignore_errors=True)
        if not left.exists():
            return
        time.sleep(PAUSE)

"""How much memory there is."""

from __future__ import annotations

import os
from contextlib import suppress
from math import inf
from pathlib import Path

from wavefilt import limits

MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
"""Where Linux tells of its memory, and of a container's."""


def available() -> float:
    """Bytes that this process may still take: of the system's and its container's, within its limit of addresses."""
    return max(min(_free(), _contained(), limits.left()), 0)


def _free() -> float:
    """Bytes that the system can give; all of the machine's where it does not say, infinity where nothing is known."""
    with suppress(OSError):
        told = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
        if "MemAvailable" in told:
            return 1024 * int(told["MemAvailable"].split()[0])
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return inf


def _contained() -> float:
    """Bytes up to the limit of the container, whose file pages give way; infinity without one."""
    with suppress(OSError, ValueError, KeyError):
        told = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return int((CGROUP / "memory.max").read_text()) - int(told["anon"])
    return inf

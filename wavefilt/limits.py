"""The limit of addresses of a process (ulimit -v): close to it, libraries hang or end the process without an exception.

Imports little: `wavefilt.__main__` needs it before anything else is loaded.
"""

from __future__ import annotations

import os
from contextlib import suppress
from errno import ENOMEM
from math import inf

MIB = 1 << 20
TIGHT = 48 * MIB
"""With fewer bytes left, an error of any kind comes from that."""


def held() -> int:
    """Bytes of addresses that this process has taken; 0 where the system does not say."""
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as numbers:
        return int(numbers.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def left() -> float:
    """Bytes up to the limit; infinity without one."""
    try:
        import resource
    except ImportError:
        return inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return inf if limit == resource.RLIM_INFINITY else limit - held()


def need(count: int) -> None:
    """Raise MemoryError unless so many bytes are left."""
    if left() < count:
        raise MemoryError(f"not enough memory: {count // MIB} MiB are needed within the limit of addresses (ulimit -v)")


def out_of_memory(error: Exception) -> bool:
    """Whether an exception comes from want of memory, which libraries tell in many ways."""
    full = isinstance(error, OSError) and error.errno == ENOMEM
    return full or isinstance(error, MemoryError) or left() < TIGHT

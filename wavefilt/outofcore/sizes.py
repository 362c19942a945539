"""Amounts of memory as people write them: ``"500MB"``, ``"1GiB"``."""

from __future__ import annotations

import math
import re

UNITS = {"": 1, "b": 1, "bytes": 1}
UNITS |= {f"{letter}{word}": base**power for power, letter in enumerate("kmgt", 1)
          for base, words in ((1000, ("b",)), (1024, ("ib", "i", ""))) for word in words}  # fmt: skip
"""Bytes of each unit, in lower case: KB, MB are powers of 1000, KiB, MiB and the letter alone powers of 1024."""


def in_bytes(size: str | int) -> int:
    """Bytes of a size such as 1000, ``"500MB"`` or ``"1.5 GiB"``. Raises ValueError for anything else, or below 1."""
    if isinstance(size, int) and not isinstance(size, bool):
        found = float(size)
    else:
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Z]*)\s*", str(size))
        found = float(match[1]) * UNITS[match[2].lower()] if match and match[2].lower() in UNITS else 0
    if not 1 <= found < math.inf:
        raise ValueError(f"{size!r} is no amount of memory; write it as 500MB or 1GiB")
    return int(found)


def spelled(size: int) -> str:
    """The size in the largest binary unit that it reaches, rounded up to three digits or more."""
    for unit, base in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= base:
            digits = 0 if size >= 100 * base else 1 if size >= 10 * base else 2
            return f"{math.ceil(size * 10**digits / base) / 10**digits:.{digits}f} {unit}"
    return f"{size} bytes"

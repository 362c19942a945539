"""Counts and amounts that a caller gives, checked by name."""

from __future__ import annotations

import math
import operator
from typing import Any


def count(name: str, value: Any, least: int = 0) -> int:
    """A whole number of at least ``least``. Raises ValueError, naming it, for anything else."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
    return number


def amount(name: str, value: Any, least: float = 0) -> float:
    """A finite number of at least ``least``. Raises ValueError, naming it, for anything else."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not least <= number < math.inf:
        raise ValueError(f"{name}={value!r} must be a finite number of at least {least:g}")
    return number

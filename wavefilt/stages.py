"""What takes long in this process at the moment, for those who wait: the command shows it on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

COMPILING = "compiling kernels, once"
_stages: list[tuple[str, float]] = []


def begin(what: str) -> None:
    """A stage within the one before, until `end`."""
    _stages.append((what, time.monotonic()))


def end() -> None:
    """The stage that began last has ended."""
    if _stages:
        _stages.pop()


@contextmanager
def stage(what: str) -> Iterator[None]:
    """A stage that lasts as long as this."""
    begin(what)
    try:
        yield
    finally:
        end()


def current() -> tuple[str, float] | None:
    """The innermost stage, and the seconds since it began."""
    try:
        what, began = _stages[-1]
    except IndexError:
        return None
    return what, time.monotonic() - began

"""Signals that end a program: as exceptions, at once, or after code that must not be left halfway.

Imports little: `wavefilt.__main__` needs it before anything else is loaded.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

STOPPING = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__]
"""Signals that end the command."""

Handler = Callable[[int, FrameType | None], Any]


def leave(signum: int, frame: FrameType | None = None) -> NoReturn:
    """End the process at once with a shell's exit code for this signal."""
    with suppress(OSError):
        os.write(2, b"Interrupted.\n")
    os._exit(128 + signum)


def obey(handler: Handler) -> dict[signal.Signals, Any]:
    """Set the handler of all `STOPPING` signals that the parent does not ignore, as nohup does; return the old ones."""
    obeyed = [signum for signum in STOPPING if signal.getsignal(signum) is not signal.SIG_IGN]
    return {signum: signal.signal(signum, handler) for signum in obeyed}


@contextmanager
def raised() -> Iterator[list[int]]:
    """Context manager: a first signal raises KeyboardInterrupt or SystemExit, a second one ends the process at once.

    Yields a list that holds the signal once it has arrived.
    """
    arrived: list[int] = []

    def stop(signum: int, frame: FrameType | None) -> NoReturn:
        if arrived:
            leave(signum)
        arrived.append(signum)
        if signum == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + signum)

    before = obey(stop) if threading.current_thread() is threading.main_thread() else {}
    try:
        yield arrived
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@contextmanager
def deferred() -> Iterator[None]:
    """Context manager: delay a first signal to the end of the block; a second one is handled immediately.

    For code of other libraries that an exception between any two instructions would leave with a lock taken.
    """
    if threading.current_thread() is not threading.main_thread():  # signal handlers run in the main thread only
        yield
        return
    arrived: list[int] = []
    handlers: dict[int, Handler] = {}

    def keep(signum: int, frame: FrameType | None) -> None:
        arrived.append(signum)
        if len(arrived) > 1:
            handlers[signum](signum, frame)

    for signum in STOPPING:
        handler = signal.getsignal(signum)
        if callable(handler):
            handlers[signum] = handler
            signal.signal(signum, keep)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in arrived:
            handlers[number](number, None)

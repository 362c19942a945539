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


def leave(signum: int, frame: FrameType | None = None) -> NoReturn:
    """End the process at once with a shell's exit code for this signal."""
    with suppress(OSError):
        os.write(2, b"Interrupted.\n")
    os._exit(128 + signum)


def obey(handler: Callable[[int, FrameType | None], Any]) -> dict[signal.Signals, Any]:
    """Set the handler of all `STOPPING` signals that the parent does not ignore, as nohup does; return the old ones.

    Signal handlers run in the main thread only; in another thread nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    obeyed = [signum for signum in STOPPING if signal.getsignal(signum) is not signal.SIG_IGN]
    return {signum: signal.signal(signum, handler) for signum in obeyed}


@contextmanager
def caught(*, deferred: bool = False) -> Iterator[list[int]]:
    """Context manager: a first signal raises KeyboardInterrupt or SystemExit, a second one ends the process at once.

    Yields a list that holds the signal once it has arrived. With ``deferred``, it is raised at the end of the block:
    for code of other libraries that an exception between any two instructions would leave with a lock taken.
    """
    arrived: list[int] = []

    def stop(signum: int, frame: FrameType | None) -> None:
        if arrived:
            leave(signum)
        arrived.append(signum)
        if not deferred:
            raise KeyboardInterrupt if signum == signal.SIGINT else SystemExit(128 + signum)

    before = obey(stop)
    try:
        yield arrived
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
        if deferred and arrived:
            signal.raise_signal(arrived[0])


@contextmanager
def blocked() -> Iterator[None]:
    """Context manager: processes started here begin with `STOPPING` signals blocked; this one gets them afterwards."""
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it would unblock some signals if it started inside
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

"""Signals that end a program: kept back from code that must not be left in the middle, and obeyed in bounded time.

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
from typing import NoReturn, TextIO

STOPPING = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__]
"""Signals that end the command."""

PATIENCE = 10.0
"""Seconds that the command may take to end after a signal."""

_kept_back = 0
_nowhere: TextIO | None = None
"""What takes the traceback that the last resort of `_end_after` writes."""


@contextmanager
def deferred() -> Iterator[None]:
    """In here a first signal that ends the program waits until the end; a second one does not.

    For code of other libraries that an exception between any two instructions would leave with a lock taken.
    """
    global _kept_back
    if threading.current_thread() is not threading.main_thread():  # the only one in which handlers run
        yield
        return
    handlers: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {}
    arrived: list[signal.Signals] = []
    inside = True

    def keep(signum: int, frame: FrameType | None) -> None:
        global _kept_back
        if arrived or not inside:
            handlers[signal.Signals(signum)](signum, frame)
        else:
            arrived.append(signal.Signals(signum))
            _kept_back += 1

    for signum in STOPPING:
        handler = signal.getsignal(signum)
        if callable(handler):
            handlers[signum] = handler
            signal.signal(signum, keep)
    try:
        yield
    finally:
        inside = False
        _kept_back -= len(arrived)
        for signum, handler in handlers.items():
            signal.signal(signum, handler)
        for signum in arrived:
            handlers[signum](signum, None)


def leave(signum: int, frame: FrameType | None = None) -> NoReturn:
    """End the process at once with a shell's exit code for this signal."""
    with suppress(OSError):
        os.write(2, b"Interrupted.\n")
    os._exit(128 + signum)


def _end_after(seconds: float, signum: int) -> None:
    """End the process then, if it has not ended; half as late again where no handler runs, as in code of C."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, lambda *_: leave(signum))
        signal.setitimer(signal.ITIMER_REAL, seconds)
    import faulthandler

    global _nowhere
    _nowhere = open(os.devnull, "w")  # noqa: SIM115
    faulthandler.dump_traceback_later(1.5 * seconds, exit=True, file=_nowhere)


def end_at_once() -> None:
    """Signals end this process from now on, without a traceback: for when there is nothing to clean up."""
    for signum in _obeyed():
        signal.signal(signum, leave)


def _obeyed() -> list[signal.Signals]:
    """Of `STOPPING` what the parent has not told to ignore, as nohup does."""
    return [signum for signum in STOPPING if signal.getsignal(signum) is not signal.SIG_IGN]


@contextmanager
def end_in_time() -> Iterator[None]:
    """In here a first signal raises KeyboardInterrupt or SystemExit, so that temporary files are removed.

    A second one ends the process at once, as do `PATIENCE` seconds.
    """
    first: int | None = None

    def stop(signum: int, frame: FrameType | None) -> NoReturn:
        nonlocal first
        if first is not None or _kept_back:
            leave(signum)
        first = signum
        _end_after(PATIENCE, signum)
        if signum == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + signum)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signum: signal.signal(signum, stop) for signum in _obeyed()}
    try:
        yield
    except Exception:  # also what other code made of the exception raised here
        if first is None:
            raise
        if first == signal.SIGINT:
            raise KeyboardInterrupt from None
        sys.exit(128 + first)
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)

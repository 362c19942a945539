"""What a run is doing, on standard error where that is a terminal: bars, and a line for what has no end to count to.

Both are drawn by a thread of their own, ten times a second at most, however much happens.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from math import inf
from typing import TYPE_CHECKING, Any

from wavefilt import stages
from wavefilt.errors import printable

if TYPE_CHECKING:
    from tqdm import tqdm

INTERVAL = 0.1
"""Seconds between two drawings."""
PATIENCE = 0.3
"""Seconds that a run or a stage may take without being shown."""
_bars: list[tqdm[object]] = []
"""Those that are on the terminal."""


def shown(quiet: bool) -> bool:
    """Whether there is anybody to see it."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def line(quiet: bool) -> Iterator[Callable[[], AbstractContextManager[Any]]]:
    """In here the stage of the run is shown, and its seconds, unless all ends at once or there is a bar.

    Gives a context in which messages do not run into the line.
    """
    if not shown(quiet):
        yield nullcontext
        return
    began, width, lock = time.monotonic(), 0, threading.Lock()

    def draw() -> None:
        nonlocal width
        with lock:
            stage = stages.current()
            seconds = time.monotonic() - began
            if stage is not None and not _bars and seconds > PATIENCE:
                text = f"{printable(stage[0])}, {seconds:.0f} s"
                print(f"\r{text:{width}}", end="", file=sys.stderr, flush=True)
                width = max(width, len(text))

    @contextmanager
    def without() -> Iterator[None]:
        nonlocal width
        with lock:
            if width:
                print("\r" + width * " " + "\r", end="", file=sys.stderr, flush=True)
                width = 0
            yield

    try:
        with _drawing(draw):
            yield without
    finally:
        with without():
            pass


@contextmanager
def bar(name: str = "", **options: Any) -> Iterator[tqdm[object]]:
    """A bar with this name, and with the stage of the run where one lasts."""
    from tqdm import tqdm

    with tqdm(leave=False, mininterval=inf, maxinterval=inf, file=sys.stderr, **options) as drawn:

        def draw() -> None:
            stage = stages.current()
            lasting = [stage[0]] if stage is not None and stage[1] > PATIENCE else []
            drawn.set_description_str(", ".join(map(printable, [*filter(None, [name]), *lasting])))

        _bars.append(drawn)
        try:
            with _drawing(draw):
                yield drawn
        finally:
            _bars.remove(drawn)


@contextmanager
def without(drawn: tqdm[object]) -> Iterator[None]:
    """In here messages do not run into the bar."""
    with drawn.get_lock():
        drawn.clear(nolock=True)
        yield


@contextmanager
def _drawing(draw: Callable[[], None]) -> Iterator[None]:
    """Draw in a thread until this is left, also on an error."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(INTERVAL):
            draw()

    thread = threading.Thread(target=repeat, daemon=True)
    with suppress(RuntimeError):  # no more threads can be started
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()

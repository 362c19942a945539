"""Processes that work on many small files at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from wavefilt.cli.failure import Failure
from wavefilt.interrupts import STOPPING

from .batch_summary import Outcome

GRACE = 3.0
"""Seconds that the other workers have to finish their small files when one was killed."""


def shared(
    files: list[tuple[str, str]], work: Callable[..., Outcome], count: int, add: Callable[[Outcome], bool]
) -> bool:
    """Do the work of every file in so many processes, until ``add`` wants no more: whether it still does.

    Files begun are finished, and added, whatever ends this. Raises what ``work`` does, and Failure if a process dies.
    """
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin) as pool:
        with _signals_blocked():
            waiting = {pool.submit(work, *file) for file in files}
        try:
            for future in as_completed(waiting):
                waiting.discard(future)
                if not add(future.result()):
                    return False
        except BrokenProcessPool as error:
            for child in multiprocessing.active_children():  # the pool's SIGTERM is ignored by them
                child.join(GRACE)
                child.kill()
            hint = "it was killed, perhaps for lack of memory; -j 1 processes one file after another"
            raise Failure(f"a worker process ended: {hint}", 1) from error
        finally:
            pool.shutdown(cancel_futures=True)
            for future in waiting:
                if not future.cancelled() and future.exception() is None:
                    add(future.result())
    return True


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Processes started in here ignore STOPPING from the start; this one receives it on leaving."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """A worker finishes its file whatever signals the terminal sends: it ends when its parent says so, or has ended."""
    from wavefilt import set_num_threads

    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)

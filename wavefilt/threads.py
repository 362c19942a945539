"""The library's own thread pool: how many threads, and ranges of work spread over them.

Work is a function of a range that releases the GIL. The calling thread always works too and never waits for
work that no thread has begun, so calls may come from several threads, or from the pool's own, at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise

ENVIRONMENT = "WAVEFILT_NUM_THREADS"
CHUNKS_PER_THREAD = 6  # enough that a thread slowed down by other processes leaves its share to the rest


class _Pool:
    """Worker threads started on first use; replaced when their number changes, forgotten in a forked child."""

    def __init__(self) -> None:
        self.threads: int | None = None
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._workers = 0

    def submit(self, work: Callable[[], None], workers: int) -> list[Future[None]]:
        """Have up to ``workers`` threads call ``work``; none where no thread can be started any more."""
        with self._lock:
            if self._executor is None or self._workers != workers:
                if self._executor is not None:
                    self._executor.shutdown(wait=False)
                self._executor = ThreadPoolExecutor(workers, "wavefilt")
                self._workers = workers
            try:
                return [self._executor.submit(work) for _ in range(workers)]
            except RuntimeError:  # the interpreter or the machine refuses new threads: the caller does it all
                return []


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def available_cpus() -> int:
    """CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def get_num_threads() -> int:
    """Threads a call may use: `set_num_threads`, else WAVEFILT_NUM_THREADS, else the CPUs this process may run on.

    Raises ValueError if the environment variable is not a whole number of at least 1.
    """
    if _pool.threads is not None:
        return _pool.threads
    text = os.environ.get(ENVIRONMENT, "").strip()
    if not text:
        return available_cpus()
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise ValueError(f"{ENVIRONMENT}={text!r} must be a whole number of at least 1")
    return int(text)


def set_num_threads(threads: int | None) -> None:
    """Use this many threads in the whole process from now on; None goes back to the default.

    Raises ValueError unless ``threads`` is a whole number of at least 1.
    """
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ValueError(f"number of threads {threads!r} must be a whole number of at least 1")
    _pool.threads = threads


def parallel(work: Callable[[int, int], object], count: int, grain: int = 1) -> None:
    """Call ``work(start, stop)`` on ranges of at least ``grain`` that together cover ``range(count)``, once each.

    The ranges run in any order and thread; an exception in one of them is raised here after the others ended.
    """
    shares = count // max(grain, 1)
    threads = get_num_threads() if shares > 1 else 1
    if threads == 1:
        if count:
            work(0, count)
        return
    chunks = min(shares, CHUNKS_PER_THREAD * threads)
    edges = [count * i // chunks for i in range(chunks + 1)]
    pending = pairwise(edges)
    lock = threading.Lock()

    def drain() -> None:
        while True:
            with lock:
                bounds = next(pending, None)
            if bounds is None:
                return
            work(*bounds)

    helpers = _pool.submit(drain, threads - 1)
    try:
        drain()
    finally:
        running = [helper for helper in helpers if not helper.cancel()]
        errors = [helper.exception() for helper in running]
    for error in filter(None, errors):
        raise error

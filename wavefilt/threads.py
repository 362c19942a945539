"""The library's own thread pool: how many threads, and ranges of work spread over them.

Work is a function of a range that releases the GIL. The calling thread always works too and never waits for
work that no thread has begun, so calls may come from several threads, or from the pool's own, at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from queue import SimpleQueue

from wavefilt import interrupts

ENVIRONMENT = "WAVEFILT_NUM_THREADS"
CHUNKS_PER_THREAD = 6  # enough that a thread slowed down by other processes leaves its share to the rest


class _Pool:
    """Worker threads started when first needed; a larger pool replaces a smaller, a forked child starts anew."""

    def __init__(self) -> None:
        self.threads: int | None = None
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._workers = 0

    def submit(self, work: Callable[[], None], workers: int) -> None:
        """Have up to ``workers`` threads call ``work``: as many as can be started."""
        with self._lock, interrupts.deferred():  # one in the middle of an executor leaves its locks taken
            if self._executor is None or self._workers < workers:
                self._release()
                self._executor = ThreadPoolExecutor(workers, "wavefilt")
                self._workers = workers
            try:
                for _ in range(workers):
                    self._executor.submit(work)
            except RuntimeError:  # the interpreter or the machine refuses new threads; those that run empty the queue
                self._release()

    def _release(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None


class _Job:
    """The ranges of one call, handed out to whoever asks, and the helpers that work on them now."""

    def __init__(self, work: Callable[[int, int], object], ranges: Iterator[tuple[int, int]]) -> None:
        self._work = work
        self._ranges = ranges
        self._lock = threading.Lock()  # not a Condition: an interrupt inside of its methods would leave it locked
        self._running = 0
        self._stopped = False
        self._ended: SimpleQueue[None] = SimpleQueue()
        self.errors: list[BaseException] = []

    def drain(self) -> None:
        """Work on ranges until none is left or the job is stopped."""
        while True:
            with self._lock:
                bounds = None if self._stopped else next(self._ranges, None)
            if bounds is None:
                return
            self._work(*bounds)

    def help(self) -> None:
        """`drain` in a thread of the pool."""
        with self._lock:
            if self._stopped:
                return
            self._running += 1
        try:
            self.drain()
        except BaseException as error:
            self._stopped = True
            self.errors.append(error)
        finally:
            with self._lock:
                self._running -= 1
            self._ended.put(None)  # after the count: one put follows wherever a helper is seen running

    def end(self) -> None:
        """Hand out nothing more and wait for the helpers that run; to be called again if interrupted."""
        with self._lock:
            self._stopped = True
        while self._running:
            self._ended.get()
        self._work = _nothing  # helpers may begin late, and must not keep the arrays


def _nothing(begin: int, end: int) -> None:
    """The work of a job that ended."""


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
    return requested() or available_cpus()


def requested() -> int | None:
    """What the user asked for, None if nothing. Raises ValueError as `get_num_threads`."""
    if _pool.threads is not None:
        return _pool.threads
    text = os.environ.get(ENVIRONMENT, "").strip()
    if not text:
        return None
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


def begin(work: Callable[[], None]) -> None:
    """Have a thread of the pool call ``work``, some time, and nobody wait for it; its exceptions are lost."""
    _pool.submit(work, 1)


def worth(shares: int) -> int:
    """Threads that so many shares of work get."""
    return 1 if shares < 2 else min(get_num_threads(), shares)


def parallel(work: Callable[[int, int], object], count: int, grain: int = 1) -> None:
    """Call ``work(start, stop)`` on ranges of at least ``grain`` that together cover ``range(count)``, once each.

    The ranges run in any order and thread. After an exception in one of them, or an interrupt, no further range is
    begun, and it is raised here when no thread works any more: the caller's memory is then its own again.
    Raises ValueError as `get_num_threads` does, whatever the count.
    """
    requested()
    shares = count // max(grain, 1)
    threads = worth(shares)
    if threads == 1:
        if count:
            work(0, count)
        return
    chunks = min(shares, CHUNKS_PER_THREAD * threads)
    job = _Job(work, pairwise([count * i // chunks for i in range(chunks + 1)]))
    raised: BaseException | None = None
    try:
        _pool.submit(job.help, min(threads, chunks) - 1)
        job.drain()
    except BaseException as error:
        raised = error
    while True:
        try:
            job.end()
            break
        except BaseException as error:
            raised = error if raised is None else raised
    if raised is None and job.errors:
        raised = job.errors[0]
    if raised is not None:
        raise raised

"""The library's own thread pool: how many threads, and ranges of work spread over them.

Work is a function of a range that releases the GIL. The calling thread always works too and never waits for
work that no thread has begun, so calls may come from several threads, or from the pool's own, at once.

A signal handler may raise an exception between any two instructions of the main thread. Locks are therefore used in
``with`` statements alone, and threads are started by `_thread`: `threading.Thread.start` and executors would be left
with a lock taken, and the next call would wait for ever.
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import TypeVar, cast

ENVIRONMENT = "WAVEFILT_NUM_THREADS"
CHUNKS_PER_THREAD = 6  # enough that a thread slowed down by other processes leaves its share to the rest
T = TypeVar("T")
PATIENCE = 5.0  # seconds that the interpreter waits for a thread at its end


class _Pool:
    """Worker threads, started when first needed, which serve all later calls; a forked child starts its own."""

    def __init__(self) -> None:
        self.threads: int | None = None
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._workers = 0

    def submit(self, work: Callable[[], None], workers: int) -> None:
        """Have up to ``workers`` threads call ``work``, fewer if no more can be started."""
        with self._lock:
            while self._workers < workers:
                self._workers += 1  # before the start, so that an interrupt between the two leaves no uncounted thread
                try:
                    _thread.start_new_thread(_serve, (self._tasks, self._ended))
                except RuntimeError:  # the interpreter or the machine refuses new threads
                    self._workers -= 1
                    break
            for _ in range(min(workers, self._workers)):
                self._tasks.put(work)

    def end(self) -> None:
        """Let the threads end before the interpreter does."""
        with self._lock:
            workers, self._workers = self._workers, 0
            for _ in range(workers):
                self._tasks.put(None)
        with suppress(Empty):
            for _ in range(workers):
                self._ended.get(timeout=PATIENCE)


def _serve(tasks: SimpleQueue[Callable[[], None] | None], ended: SimpleQueue[None]) -> None:
    """Call one task after the other, in a thread of the pool, until one is None."""
    while True:
        work = tasks.get()
        if work is None:
            break
        with suppress(BaseException):  # nobody waits for it
            work()
        del work  # with the arrays it refers to
    ended.put(None)


class _Job:
    """The ranges of one call, which threads take one after the other, and the helpers that work on them now."""

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
        """Work on ranges in a thread of the pool."""
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
atexit.register(_pool.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


loading = threading.RLock()
"""Held while a backend, its libraries or kernels are loaded. A fork waits for it: locks of other libraries that another
thread holds would stay taken in the child for ever. So does the end of the interpreter, for a while."""
atexit.register(loading.acquire, timeout=PATIENCE)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=loading.acquire, after_in_parent=loading.release, after_in_child=loading.release)


def load(work: Callable[[], T]) -> T:
    """Return ``work()``, which loads a library or kernels, called while `loading` is held.

    Signal handlers run in the main thread, so ``work`` is called in another one: an exception of a handler ends the
    wait for it, and leaves no library half loaded.
    """
    found: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            with loading:
                found.put((work(), None))
        except BaseException as error:
            found.put((None, error))

    if threading.current_thread() is threading.main_thread():
        try:
            _thread.start_new_thread(run, ())
        except RuntimeError:  # no thread can be started
            run()
    else:
        run()
    value, error = found.get()
    if error is not None:
        raise error
    return cast(T, value)


def available_cpus() -> int:
    """Return the number of CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def get_num_threads() -> int:
    """Return the threads a call may use: `set_num_threads`, else WAVEFILT_NUM_THREADS, else the CPUs of this process.

    Raises ValueError if the environment variable is not a whole number of at least 1.
    """
    return requested() or available_cpus()


def requested() -> int | None:
    """Return the number of threads that the user chose, None by default. Raises ValueError as `get_num_threads`."""
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
    """Have a thread of the pool call ``work`` later, without waiting for it; its exceptions are lost."""
    _pool.submit(work, 1)


def worth(shares: int) -> int:
    """Return the number of threads for ``shares`` of work."""
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

"""Threads that run kernels without Python: one call of C hands out all ranges, and no thread waits for the GIL.

By Python's own threads each of a hundred ranges of a launch takes the GIL twice, at 15 us or more where threads are
woken slowly: with sixteen of them a launch took 2.5 ms, whatever it did. A thread of the team waits, for a moment in a
loop, since launches follow each other quickly, and then in the kernel of the system, for the number of the program to
change; it takes a ticket, and then ranges until none is left. A program has several phases: each begins when the one
before it is done, without a return to Python. Linux on x86-64 and ARM; elsewhere, and for calls from several threads at
once, `wavefilt.threads` spreads the work.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
import weakref
from collections.abc import Sequence

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Counts

from . import entries, memory, native

_SYSTEM_CALLS = {"x86_64": (202, 24), "aarch64": (98, 124)}
"""By processor the numbers of the system calls futex and sched_yield."""
SUPPORTED = sys.platform == "linux" and platform.machine() in _SYSTEM_CALLS and sys.maxsize > 1 << 32
FUTEX, GIVE_WAY = _SYSTEM_CALLS.get(platform.machine(), (0, 0))
WAIT, WAKE = 128, 129  # of a futex of this process alone

PAUSES = 1000
"""Turns of the loop in which a single helper waits for the next job: about 50 us on a processor of today."""
PAUSES_OF_MANY = 5000
"""The same of several: sixteen take 0.2 ms to be woken, the Python between two launches 0.05 to 0.25 ms."""
PAUSES_OF_THE_CALLER = 40 * PAUSES
"""Turns in which the caller waits for threads that work, where each has a processor: it would get its own back late."""

# words of 8 bytes in the state; a word that several threads write to has a cache line of its own
SELF, NUMBER, WORKING, SLEEPING, CALLER, MEMBERS, SYSTEM_CALL, PATIENCE, PROGRAM_AT, WORDS = (
    0, 8, 16, 24, 25, 26, 32, 33, 34, 40
)  # fmt: skip
# of a program, and of each of its phases, which follow: with where each thread's own ranges go on
HIGHEST, LIMIT, WORKSPACE, PITCH, PHASES, YIELD, PARTS, PATIENT, HEAD = 0, 8, 9, 10, 11, 12, 13, 14, 16
FIRST, SECOND, RANGES, DONE, NEXT = 0, 3, 6, 8, 16
LINE = memory.LINE // 8
TICKET, WORKERS, WITHDRAWN = 1 << 32, (1 << 32) - 1, -1 << 63
"""The word ``WORKING`` has the tickets left in its upper half and the threads that work in its lower: that a thread
takes a ticket and begins to work is one step, so that the caller, which withdraws the rest, knows for whom to wait. It
is negative once they are withdrawn. A thread that waits for others gives its ticket back before it lets other programs
have its processor, which may keep it for 4 ms: nobody waits for it meanwhile, and it may take a ticket again.
"""

RANGES_EACH = 6  # for each thread, so that one slowed down by other processes leaves its share to the rest
_MOST = 1024
"""Threads of the team at most."""


class _Turn:
    """The right to use the team, as long as this lives: an interrupted call could leave a lock taken."""


class _Team:
    """Threads that run until the process ends; a forked child starts its own."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock, self._turn = threading.Lock(), weakref.ref(_Turn())
        self._state: Counts | None = None
        self._members, self._failed = 0, not SUPPORTED
        self._room = np.empty(0, np.int64), 0
        """Working memory of the kernels, and its address."""

    def take(self, turn: _Turn) -> bool:
        """Return whether the team works for this turn alone, as long as that lives."""
        with self._lock:
            if self._turn() is None:
                self._turn = weakref.ref(turn)
            return self._turn() is turn

    def hire(self, helpers: int) -> int:
        """Start threads if there are fewer than ``helpers``; return how many help, -1 where the system has no team."""
        if (self._state is None or self._members < helpers) and not self._failed:
            try:
                self._start(min(helpers, _MOST))
            except (OSError, RuntimeError, AttributeError):  # no such functions in this system's library
                self._failed = True
        return -1 if self._state is None else min(self._members, helpers)

    def _start(self, helpers: int) -> None:
        library = ctypes.CDLL(None)
        if self._state is None:
            state = memory.aligned([0] * WORDS)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(state))  # threads look at it to the very end
            self._address = memory.address(state)
            state[SELF] = self._address
            state[SYSTEM_CALL] = ctypes.cast(library.syscall, ctypes.c_void_p).value or 0
            if not entries.LAUNCH.versions or not entries.SERVE.versions:
                native.load(entries.TEAM, np.dtype("f8"))
            _, self._launch = next(iter(entries.LAUNCH.versions.values()))
            self._serve, _ = next(iter(entries.SERVE.versions.values()))
            self._state = state  # last: an interrupt before this leaves nothing half done
        serve, identity = ctypes.c_void_p(self._serve), ctypes.c_ulong()
        while self._members < helpers:
            self._members += 1  # before the start, so that an interrupt between the two leaves no uncounted thread
            if library.pthread_create(ctypes.byref(identity), None, serve, ctypes.c_void_p(self._address)):
                self._members -= 1
                self._failed = True  # no more are started
                return
            library.pthread_detach(identity)

    def run(self, program: Program, helpers: int) -> int:
        """Work on all ranges of one job after the other, and return the highest result. Any thread may help."""
        assert self._state is not None
        needed = program.pitch * (self._members + 1) // 8
        if needed > len(self._room[0]):
            room = memory.aligned(np.empty(needed, np.int64))
            self._room = room, memory.address(room)  # in one step, between whose halves no signal handler runs
        words = program.words
        words[:] = program.template
        words[WORKSPACE], words[YIELD] = self._room[1], self._state[SYSTEM_CALL]
        self._state[PATIENCE] = PAUSES_OF_MANY if helpers > 1 else PAUSES
        self._state[PROGRAM_AT] = program.address
        return self._launch(self._address, 0, helpers, 0)


class Job:
    """A kernel over ``count``, cut into ranges; for each range another kernel may run before it, over its own count.

    ``grain`` is the share that is worth a thread. Shares of ``before`` are ``at_once`` at most.
    """

    def __init__(
        self,
        work: native.Work,
        count: int,
        grain: int = 1,
        before: native.Work | None = None,
        before_count: int = 0,
        at_once: int = 1,
    ) -> None:
        self.shares, self._count, self._least = count // max(grain, 1), count, -(-before_count // at_once)
        self.ranges = 1
        self.works = [(before, before_count), (work, count)] if before else [(work, count)]
        self._found, self._limit = [0], LIMITLESS

    def cut(self, helpers: int) -> None:
        """Choose the number of ranges."""
        spread = min(self.shares, RANGES_EACH * (helpers + 1)) if helpers else 1
        self.ranges = max(min(max(spread, self._least), self._count), 1)

    @property
    def words(self) -> list[int]:
        """Return the words of a phase of the program."""
        found = [word for work, count in self.works for word in (work.place, work.block, count)]
        return found + [0] * (6 - len(found)) + [self.ranges] + [0] * (NEXT - 7)

    def run(self, limit: int, helpers: int) -> int:
        """Do the same in Python, and return the highest result."""
        self._limit, self._found = limit, [0]
        if helpers:
            threads.parallel(self, self.ranges)
        else:
            self(0, self.ranges)
        return max(self._found)

    def __call__(self, begin: int, end: int) -> None:
        for i in range(begin, end):
            for work, count in self.works:
                if self._found[-1] < self._limit:
                    found = work(count * i // self.ranges, count * (i + 1) // self.ranges)
                    self._found.append(max(found, self._found[-1]))


LIMITLESS = (1 << 63) - 1


class Program:
    """Jobs to be done one after the other, once or many times, by ``most`` threads at most.

    Once a result reaches the ``limit``, the rest is left out.
    """

    def __init__(self, jobs: Sequence[Job], limit: int = LIMITLESS, most: int = LIMITLESS) -> None:
        self.jobs, self.limit, self._most, self._helpers = jobs, limit, most, -1
        self._shares, self.works = (
            max(1, *(job.shares for job in jobs)),
            [work for job in jobs for work, _ in job.works],
        )
        pages = -(-max(work.workspace for work in self.works) // 4096)
        self.pitch = pages * 4096 + 3 * memory.LINE  # in different sets of the caches

    def run(self, number: int = 0) -> int:
        """Do all jobs, with up to ``number`` threads if given, and return the highest result."""
        helpers = min(number or threads.worth(self._shares), self._shares, self._most) - 1
        if helpers != self._helpers:
            self.cut(helpers)
        turn = _Turn()
        if (helpers or len(self.jobs) > 1) and _team.take(turn):  # one call is quicker than several
            try:
                if (hired := _team.hire(helpers)) >= 0:
                    return _team.run(self, hired)
            finally:
                del turn  # which the frame of an exception would keep
        highest = 0
        for job in self.jobs:
            if highest < self.limit:
                highest = max(highest, job.run(self.limit, helpers))
        return highest

    def cut(self, helpers: int) -> None:
        """Choose the ranges for ``helpers`` threads beside the caller."""
        self._helpers = -1  # if an interrupt ends this, ranges are chosen again
        for job in self.jobs:
            job.cut(helpers)
        patient = PAUSES_OF_THE_CALLER if helpers < threads.available_cpus() else PAUSES
        head = [0] * 8 + [self.limit, 0, self.pitch, len(self.jobs), 0, helpers + 1, patient, 0]
        counters = [0] * (LINE * (helpers + 1))
        self.template = np.array(head + [word for job in self.jobs for word in job.words + counters], np.int64)
        self.words = memory.aligned(self.template)
        self.address, self._helpers = memory.address(self.words), helpers


_team = _Team()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_team.forget)


def parallel(work: native.Work, count: int, grain: int = 1) -> int:
    """Call a kernel as `wavefilt.threads.parallel` does, and return the highest of its results."""
    return run([Job(work, count, grain)]) if count else 0


def run(jobs: Sequence[Job], limit: int = LIMITLESS) -> int:
    """Run a `Program` once, and return its highest result."""
    return Program(jobs, limit).run()

"""Threads that run kernels without Python: one call of C hands out all ranges, and no thread waits for the GIL.

By Python's own threads each of a hundred ranges of a launch takes the GIL twice, at 15 us or more where threads are
woken slowly: with sixteen of them a launch took 2.5 ms, whatever it did. A thread of the team waits, for a moment in a
loop, since launches follow each other quickly, and then in the kernel of the system, for the number of the job to
change; it takes a ticket, and then ranges until none is left. Linux on x86-64 and ARM; elsewhere, and for calls from
several threads at once, `wavefilt.threads` spreads the work.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from functools import cache

import numpy as np
from llvmlite import ir

from wavefilt import interrupts, threads
from wavefilt.arrays import Counts

from . import memory, native

_SYSTEM_CALLS = {
    "x86_64": (202, ("llvm.x86.sse2.pause",)),
    "aarch64": (98, ("llvm.aarch64.hint", 1)),
}
"""By processor the number of the system call futex, and LLVM's name of the instruction for a waiting loop."""
SUPPORTED = sys.platform == "linux" and platform.machine() in _SYSTEM_CALLS and sys.maxsize > 1 << 32

PAUSES = 1000
"""Turns of the loop in which a single helper waits for the next job: about 50 us on a processor of today."""
PAUSES_OF_MANY = 5000
"""The same of several: sixteen take 0.2 ms to be woken, the Python between two launches 0.05 to 0.25 ms."""
RANGES = 6  # for each thread, so that one slowed down by other processes leaves its share to the rest
_WAIT, _WAKE = 128, 129  # of a futex of this process alone

# words of 8 bytes in the state, those that several threads write to on cache lines of their own
_NUMBER, _WORKING, _NEXT, _HIGHEST, _SLEEPING, _CALLER, _JOB, _WORDS = 0, 8, 16, 24, 32, 33, 40, 56
_FIRST, _FIRST_BLOCK, _FIRST_COUNT, _SECOND, _SECOND_BLOCK, _SECOND_COUNT, _RANGES, _LIMIT, _WORKSPACE, _PITCH = range(
    _JOB, _JOB + 10
)
_SYSTEM_CALL, _PATIENCE = _JOB + 10, _JOB + 11
_MOST = 1024
"""Threads of the team at most."""

_I64, _I32 = ir.IntType(64), ir.IntType(32)


class _Program:
    """``launch(state, helpers)``, which the caller calls, and ``serve(state)``, in which each thread of the team is.

    The word ``_WORKING`` has the tickets left in its upper half and those who work in its lower: that a thread takes a
    ticket and begins to work is one step, so that the caller, who withdraws the rest, knows for whom to wait.
    """

    def __init__(self) -> None:
        self.module = ir.Module("team")
        self._futex, (pause, *hint) = _SYSTEM_CALLS[platform.machine()]
        self._pause = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [_I32] * len(hint)), pause)
        self._hint = [ir.Constant(_I32, value) for value in hint]
        drain = self._drain()
        self._add_launch(drain)
        self._add_serve(drain)

    def _begin(self, name: str, parameters: int) -> ir.Function:
        function = ir.Function(self.module, ir.FunctionType(_I64, [_I64] * parameters), name)
        self.builder = ir.IRBuilder(function.append_basic_block())
        return function

    def _place(self, state: ir.Value, word: int) -> ir.Value:
        return self.builder.inttoptr(self._address(state, word), _I64.as_pointer())

    def _address(self, state: ir.Value, word: int) -> ir.Value:
        return self.builder.add(state, _number(8 * word))

    def _read(self, state: ir.Value, word: int) -> ir.Value:
        return self.builder.load(self._place(state, word))

    def _shared(self, state: ir.Value, word: int) -> ir.Value:
        """A word that other threads write to."""
        return self.builder.load_atomic(self._place(state, word), "seq_cst", 8)

    def _change(self, operation: str, state: ir.Value, word: int, value: ir.Value | int) -> ir.Value:
        value = _number(value) if isinstance(value, int) else value
        return self.builder.atomic_rmw(operation, self._place(state, word), value, "seq_cst")

    def _wait(self) -> None:
        self.builder.call(self._pause, self._hint)

    def _system_call(self, state: ir.Value, *arguments: ir.Value | int) -> None:
        kind = ir.FunctionType(_I64, [_I64], var_arg=True).as_pointer()
        values = [_number(one) if isinstance(one, int) else one for one in [*arguments, 0, 0, 0, 0, 0, 0][:7]]
        self.builder.call(self.builder.inttoptr(self._read(state, _SYSTEM_CALL), kind), values)

    def _wake(self, state: ir.Value, most: ir.Value) -> None:
        """Two of those who sleep, who will wake two more each: all at once is the longer for the one who does it."""
        asleep = self.builder.icmp_signed(">", self._shared(state, _SLEEPING), _number(0))
        wanted = self.builder.icmp_signed(">", most, _number(0))
        with self.builder.if_then(self.builder.and_(asleep, wanted)):
            self._system_call(state, self._futex, state, _WAKE, 2)

    def _block(self, name: str) -> ir.Block:
        """A new block, which the code so far goes on to."""
        block = self.builder.append_basic_block(name)
        self.builder.branch(block)
        self.builder.position_at_end(block)
        return block

    def _drain(self) -> ir.Function:
        drain = self._begin("drain", 2)
        (state, ticket), builder = drain.args, self.builder
        own = builder.add(self._read(state, _WORKSPACE), builder.mul(ticket, self._read(state, _PITCH)))
        ranges, more = self._read(state, _RANGES), self._block("more")
        i = self._change("add", state, _NEXT, 1)
        with builder.if_then(builder.icmp_signed(">=", i, ranges)):
            builder.ret(_number(0))
        kernel = ir.FunctionType(_I64, [_I64] * 4).as_pointer()

        def call(word: int) -> ir.Value:
            function, block, count = (self._read(state, word + k) for k in range(3))
            ends = (builder.sdiv(builder.mul(count, one), ranges) for one in (i, builder.add(i, _number(1))))
            return builder.call(builder.inttoptr(function, kernel), [block, own, *ends])

        self._change("max", state, _HIGHEST, call(_FIRST))
        two = builder.icmp_signed("!=", self._read(state, _SECOND), _number(0))
        low = builder.icmp_signed("<", self._shared(state, _HIGHEST), self._read(state, _LIMIT))
        with builder.if_then(builder.and_(two, low)):
            call(_SECOND)
        builder.branch(more)
        return drain

    def _add_launch(self, drain: ir.Function) -> None:
        launch = self._begin("launch", 2)
        (state, helpers), builder = launch.args, self.builder
        for word in (_NEXT, _HIGHEST):
            builder.store(_number(0), self._place(state, word))
        self._change("xchg", state, _WORKING, builder.shl(helpers, _number(32)))
        self._change("add", state, _NUMBER, 1)
        self._wake(state, helpers)
        builder.call(drain, [state, _number(0)])
        self._change("and", state, _WORKING, 0xFFFFFFFF)
        before = builder.block
        finishing = self._block("finishing")
        turn = builder.phi(_I64)
        with builder.if_then(builder.icmp_signed("==", self._shared(state, _WORKING), _number(0))):
            builder.store(_number(0), self._place(state, _CALLER))
            builder.ret(self._read(state, _HIGHEST))
        self._wait()
        with builder.if_then(builder.icmp_signed(">", turn, _number(PAUSES))):
            self._change("xchg", state, _CALLER, 1)
            working = builder.and_(self._shared(state, _WORKING), _number(0xFFFFFFFF))
            with builder.if_then(builder.icmp_signed("!=", working, _number(0))):
                self._system_call(state, self._futex, self._address(state, _WORKING), _WAIT, working)
        turn.add_incoming(_number(0), before)
        turn.add_incoming(builder.add(turn, _number(1)), builder.block)
        builder.branch(finishing)

    def _add_serve(self, drain: ir.Function) -> None:
        serve = self._begin("serve", 1)
        builder = self.builder
        (state,) = serve.args
        seen = builder.alloca(_I64)
        builder.store(_number(0), seen)
        again, waiting = self._block("again"), self._block("waiting")
        pause, sleep, arrived, some, work = map(
            builder.append_basic_block, ("pause", "sleep", "arrived", "some", "work")
        )
        turn, known, patience = builder.phi(_I64), builder.load(seen), self._read(state, _PATIENCE)
        turn.add_incoming(_number(0), again)
        current = self._shared(state, _NUMBER)
        builder.cbranch(builder.icmp_signed("!=", current, known), arrived, pause)
        builder.position_at_end(pause)
        self._wait()
        turn.add_incoming(builder.add(turn, _number(1)), pause)
        builder.cbranch(builder.icmp_signed("<", turn, patience), waiting, sleep)
        builder.position_at_end(sleep)
        self._change("add", state, _SLEEPING, 1)
        expected = builder.zext(builder.trunc(builder.load(seen), _I32), _I64)
        self._system_call(state, self._futex, state, _WAIT, expected)
        self._change("sub", state, _SLEEPING, 1)
        builder.branch(again)
        builder.position_at_end(arrived)
        builder.store(current, seen)
        ticket = self._block("ticket")
        old = self._shared(state, _WORKING)
        left = builder.lshr(old, _number(32))
        builder.cbranch(builder.icmp_signed(">", left, _number(0)), some, again)
        builder.position_at_end(some)
        fewer = builder.add(old, _number(1 - (1 << 32)))
        swapped = builder.cmpxchg(self._place(state, _WORKING), old, fewer, "seq_cst")
        builder.cbranch(builder.extract_value(swapped, 1), work, ticket)
        builder.position_at_end(work)
        self._wake(state, builder.sub(left, _number(1)))
        builder.call(drain, [state, left])
        self._change("sub", state, _WORKING, 1)
        with builder.if_then(builder.icmp_signed("!=", self._shared(state, _CALLER), _number(0))):
            self._system_call(state, self._futex, self._address(state, _WORKING), _WAKE, 1)
        builder.branch(again)


def _number(value: int) -> ir.Constant:
    return ir.Constant(_I64, value)


@cache
def _functions() -> dict[str, int]:
    with interrupts.deferred():
        return native.addresses(str(_Program().module), ("launch", "serve"))


class _Team:
    """Threads that run until the process ends; a forked child starts anew."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.lock = threading.Lock()
        self._state: Counts | None = None
        self._members = 0
        self._failed = not SUPPORTED
        self._room = np.empty(0, np.uint8)

    def hire(self, helpers: int) -> int:
        """Have so many threads, or as many as can be started; how many there are."""
        if self._members < helpers and not self._failed:
            try:
                self._start(min(helpers, _MOST))
            except (OSError, RuntimeError, AttributeError):  # no such functions in this system's library
                self._failed = True
        return min(self._members, helpers)

    def _start(self, helpers: int) -> None:
        library = ctypes.CDLL(None)
        if self._state is None:
            self._state = np.zeros(_WORDS + memory.LINE // 8, np.int64)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._state))  # threads look at it to the very end
            address = memory.address(self._state)
            self._state = self._state[-address % memory.LINE // 8 :]
            self._address = memory.address(self._state)
            self._state[_SYSTEM_CALL] = ctypes.cast(library.syscall, ctypes.c_void_p).value or 0
            self._launch = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 2)(_functions()["launch"])
        serve, identity = ctypes.c_void_p(_functions()["serve"]), ctypes.c_ulong()
        while self._members < helpers:
            if library.pthread_create(ctypes.byref(identity), None, serve, ctypes.c_void_p(self._address)):
                self._failed = True  # to start more: those that run do the work
                return
            library.pthread_detach(identity)
            self._members += 1

    def run(self, job: _Job, helpers: int) -> int:
        """All ranges of a job; the highest result."""
        assert self._state is not None
        pitch = -(-job.workspace // 4096) * 4096 + 3 * memory.LINE  # in different sets of the caches
        needed = pitch * (helpers + 1) + memory.LINE
        if needed > self._room.nbytes:
            self._room = np.empty(needed, np.uint8)
        room = -(-memory.address(self._room) // memory.LINE) * memory.LINE
        self._state[_JOB:_SYSTEM_CALL] = *job.words, job.ranges, job.limit, room, pitch
        self._state[_PATIENCE] = PAUSES_OF_MANY if helpers > 1 else PAUSES
        return int(self._launch(self._address, helpers))


class _Job:
    """A kernel over a count, and maybe another one after it over its own, in ranges that hold equal shares of both.

    The other is left out from where a result of the first has reached the ``limit``.
    """

    def __init__(
        self, ranges: int, first: native.Work, first_count: int, second: native.Work | None, count: int, limit: int
    ) -> None:
        self.ranges, self.limit, self._first, self._second, self._reached = ranges, limit, first, second, False
        self._counts, self.found = (first_count, count), [0]
        works = [first, second] if second else [first]
        self.workspace = max(work.workspace for work in works)

    @property
    def words(self) -> tuple[int, ...]:
        """What the program reads."""
        second = self._second
        other = (second.place, second.block, self._counts[1]) if second else (0, 0, 0)
        return (self._first.place, self._first.block, self._counts[0], *other)

    def __call__(self, begin: int, end: int) -> None:
        """As the program, by Python."""
        for i in range(begin, end):
            (start, stop), (second_start, second_stop) = (
                (count * i // self.ranges, count * (i + 1) // self.ranges) for count in self._counts
            )
            self.found.append(self._first(start, stop))
            if self._second:
                self._reached |= self.found[-1] >= self.limit
                if not self._reached:
                    self._second(second_start, second_stop)


_team = _Team()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_team.forget)


def parallel(work: native.Work, count: int, grain: int = 1) -> int:
    """`wavefilt.threads.parallel` of a kernel; the highest of its results."""
    shares = count // max(grain, 1)
    helpers = threads.worth(shares) - 1
    if not helpers:
        return work(0, count) if count else 0
    return _spread(_Job(min(shares, RANGES * (helpers + 1)), work, count, None, 0, 0), helpers)


def after(
    first: native.Work, first_count: int, limit: int, work: native.Work, count: int, grain: int, at_once: int
) -> int:
    """`parallel`, each share right after ``first`` has gone over the same share of its count; its highest result.

    Shares of ``first`` are ``at_once`` at most. Nothing more is worked on once a result reaches the ``limit``.
    """
    helpers = threads.worth(count // max(grain, 1)) - 1
    ranges = max(-(-first_count // at_once), RANGES * (helpers + 1) if helpers else 1)
    return _spread(_Job(min(ranges, count), first, first_count, work, count, limit), helpers)


def _spread(job: _Job, helpers: int) -> int:
    if helpers and _team.lock.acquire(blocking=False):
        try:
            helpers = _team.hire(helpers)
            if helpers:
                return _team.run(job, helpers)
        finally:
            _team.lock.release()
    if helpers:
        threads.parallel(job, job.ranges)
    else:
        job(0, job.ranges)
    return max(job.found)

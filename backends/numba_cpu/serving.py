"""What the threads of the team run, in LLVM's language, and where the words are that they and Python share."""

from __future__ import annotations

import platform
import sys
from functools import cache

from llvmlite import ir

from wavefilt import threads

from . import memory, native

_SYSTEM_CALLS = {
    "x86_64": (202, 24, ("llvm.x86.sse2.pause",)),
    "aarch64": (98, 124, ("llvm.aarch64.hint", 1)),
}
"""By processor the numbers of the system calls futex and sched_yield, and LLVM's name of the instruction for a waiting
loop."""
SUPPORTED = sys.platform == "linux" and platform.machine() in _SYSTEM_CALLS and sys.maxsize > 1 << 32

PAUSES = 1000
"""Turns of the loop in which a single helper waits for the next job: about 50 us on a processor of today."""
PAUSES_OF_MANY = 5000
"""The same of several: sixteen take 0.2 ms to be woken, the Python between two launches 0.05 to 0.25 ms."""
PAUSES_OF_THE_CALLER = 40 * PAUSES
"""Turns in which the caller waits for threads that work, where each has a processor: it would get its own back late."""
_WAIT, _WAKE = 128, 129  # of a futex of this process alone
WITHDRAWN = -1 << 63

# words of 8 bytes in the state, those that several threads write to on cache lines of their own
NUMBER, WORKING, SLEEPING, CALLER, MEMBERS, SYSTEM_CALL, PATIENCE, PROGRAM_AT, WORDS = 0, 8, 16, 17, 18, 24, 25, 26, 32
# of a program, and of each of its phases, which follow: with where each thread's own ranges go on
HIGHEST, LIMIT, WORKSPACE, PITCH, PHASES, YIELD, PARTS, PATIENT, HEAD = 0, 8, 9, 10, 11, 12, 13, 14, 16
FIRST, FIRST_BLOCK, FIRST_COUNT, SECOND, SECOND_BLOCK, SECOND_COUNT, RANGES = range(7)
DONE, NEXT, LINE = 8, 16, memory.LINE // 8
_I64, _I32 = ir.IntType(64), ir.IntType(32)


class _Program:
    """``launch(state, helpers)``, which the caller calls, and ``serve(state)``, in which each thread of the team is.

    The word ``WORKING`` has the tickets left in its upper half and those who work in its lower: that a thread takes a
    ticket and begins to work is one step, so that the caller, who withdraws the rest, knows for whom to wait. It is
    negative once they are withdrawn. A thread that waits for others gives its ticket back before it lets other programs
    have its processor, who may keep it for 4 ms: nobody waits for it meanwhile, and it may take a ticket again.
    """

    def __init__(self) -> None:
        self.module = ir.Module("team")
        self._futex, self._give_way, (pause, *hint) = _SYSTEM_CALLS[platform.machine()]
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

    def _system_call(self, function: ir.Value, *arguments: ir.Value | int) -> None:
        kind = ir.FunctionType(_I64, [_I64], var_arg=True).as_pointer()
        values = [_number(one) if isinstance(one, int) else one for one in [*arguments, 0, 0, 0, 0, 0, 0][:7]]
        self.builder.call(self.builder.inttoptr(function, kind), values)

    def _of_futex(self, state: ir.Value, *arguments: ir.Value | int) -> None:
        self._system_call(self._read(state, SYSTEM_CALL), self._futex, *arguments)

    def _wake(self, state: ir.Value, most: ir.Value) -> None:
        """Two of those who sleep, who will wake two more each: all at once is the longer for the one who does it."""
        asleep = self.builder.icmp_signed(">", self._shared(state, SLEEPING), _number(0))
        wanted = self.builder.icmp_signed(">", most, _number(0))
        with self.builder.if_then(self.builder.and_(asleep, wanted)):
            self._of_futex(state, state, _WAKE, 2)

    def _block(self, name: str) -> ir.Block:
        """A new block, which the code so far goes on to."""
        block = self.builder.append_basic_block(name)
        self.builder.branch(block)
        self.builder.position_at_end(block)
        return block

    def _drain(self) -> ir.Function:
        """Work on the ranges of one phase after the other, and wait in between for those whom others work on.

        A thread begins with its own share of the ranges, whose data are in its cache from the phase before, and goes on
        with those of the others. It returns 1 if it left while others worked, which the caller, number 0, never does.
        """
        drain = self._begin("drain", 2)
        (program, member), builder = drain.args, self.builder
        zero, one = _number(0), _number(1)
        own = builder.add(self._read(program, WORKSPACE), builder.mul(member, self._read(program, PITCH)))
        parts, begin = self._read(program, PARTS), self._address(program, HEAD)
        size = builder.add(builder.mul(parts, _number(8 * LINE)), _number(8 * NEXT))
        end = builder.add(begin, builder.mul(size, self._read(program, PHASES)))
        before, following = builder.block, self._block("phase")
        phase = builder.phi(_I64)
        phase.add_incoming(begin, before)
        ranges, before = self._read(phase, RANGES), builder.block
        share = self._block("share")
        step, so_far = builder.phi(_I64), builder.phi(_I64)
        step.add_incoming(zero, before)
        so_far.add_incoming(zero, before)
        part = builder.srem(builder.add(member, step), parts)
        first, last = (builder.sdiv(builder.mul(ranges, k), parts) for k in (part, builder.add(part, one)))
        count, counter = builder.sub(last, first), builder.add(phase, builder.mul(part, _number(8 * LINE)))
        before, more = builder.block, self._block("more")
        finished = builder.phi(_I64)
        finished.add_incoming(so_far, before)
        look, take, work, over = map(builder.append_basic_block, ("look", "take", "work", "over"))
        builder.branch(look)
        builder.position_at_end(look)  # first, as taking is slower
        left = builder.icmp_signed("<", self._shared(counter, NEXT), count)
        builder.cbranch(left, take, over)
        builder.position_at_end(take)
        taken = self._change("add", counter, NEXT, 1)
        builder.cbranch(builder.icmp_signed("<", taken, count), work, over)
        builder.position_at_end(work)
        i, kernel = builder.add(first, taken), ir.FunctionType(_I64, [_I64] * 4).as_pointer()

        def call(word: int) -> ir.Value:
            function, block, count = (self._read(phase, word + k) for k in range(3))
            ends = (builder.sdiv(builder.mul(count, place), ranges) for place in (i, builder.add(i, one)))
            return builder.call(builder.inttoptr(function, kernel), [block, own, *ends])

        found = call(FIRST)
        with builder.if_then(builder.icmp_signed(">", found, self._shared(program, HIGHEST))):
            self._change("max", program, HIGHEST, found)
        two = builder.icmp_signed("!=", self._read(phase, SECOND), zero)
        low = builder.icmp_signed("<", self._shared(program, HIGHEST), self._read(program, LIMIT))
        with builder.if_then(builder.and_(two, low)):
            call(SECOND)
        finished.add_incoming(builder.add(finished, one), builder.block)
        builder.branch(more)
        builder.position_at_end(over)
        following_step, all_shares = builder.add(step, one), builder.append_basic_block("all_shares")
        step.add_incoming(following_step, over)
        so_far.add_incoming(finished, over)
        builder.cbranch(builder.icmp_signed("<", following_step, parts), share, all_shares)
        builder.position_at_end(all_shares)
        with builder.if_then(builder.icmp_signed(">", finished, zero)):
            self._change("add", phase, DONE, finished)
        after = builder.add(phase, size)
        with builder.if_then(builder.icmp_signed("==", after, end)):
            builder.ret(zero)
        before, waiting = builder.block, self._block("waiting")
        turn = builder.phi(_I64)
        turn.add_incoming(zero, before)
        done, pause = builder.append_basic_block("done"), builder.append_basic_block("pause")
        builder.cbranch(builder.icmp_signed(">=", self._shared(phase, DONE), ranges), done, pause)
        builder.position_at_end(pause)
        self._wait()
        patience = builder.select(
            builder.icmp_signed("==", member, zero), self._read(program, PATIENT), _number(PAUSES)
        )
        with builder.if_then(builder.icmp_signed(">", turn, patience)):
            with builder.if_then(builder.icmp_signed("!=", member, zero)):
                builder.ret(one)
            # who is waited for may have no processor
            self._system_call(self._read(program, YIELD), self._give_way)
        turn.add_incoming(builder.add(turn, one), builder.block)
        builder.branch(waiting)
        builder.position_at_end(done)
        low = builder.icmp_signed("<", self._shared(program, HIGHEST), self._read(program, LIMIT))
        with builder.if_then(builder.not_(low)):
            builder.ret(zero)
        phase.add_incoming(after, builder.block)
        builder.branch(following)
        return drain

    def _add_launch(self, drain: ir.Function) -> None:
        launch = self._begin("launch", 2)
        (state, helpers), builder = launch.args, self.builder
        self._change("xchg", state, WORKING, builder.shl(helpers, _number(32)))
        self._change("add", state, NUMBER, 1)
        self._wake(state, helpers)
        program = self._read(state, PROGRAM_AT)
        builder.call(drain, [program, _number(0)])
        self._change("or", state, WORKING, WITHDRAWN)  # from now on none is given back
        self._change("and", state, WORKING, WITHDRAWN | 0xFFFFFFFF)
        before = builder.block
        finishing = self._block("finishing")
        turn = builder.phi(_I64)
        working = builder.and_(self._shared(state, WORKING), _number(0xFFFFFFFF))
        with builder.if_then(builder.icmp_signed("==", working, _number(0))):
            builder.store(_number(0), self._place(state, CALLER))
            builder.ret(self._read(program, HIGHEST))
        self._wait()
        with builder.if_then(builder.icmp_signed(">", turn, self._read(program, PATIENT))):
            self._change("xchg", state, CALLER, 1)
            working = builder.and_(self._shared(state, WORKING), _number(0xFFFFFFFF))
            with builder.if_then(builder.icmp_signed("!=", working, _number(0))):
                self._of_futex(state, self._address(state, WORKING), _WAIT, working)
        turn.add_incoming(_number(0), before)
        turn.add_incoming(builder.add(turn, _number(1)), builder.block)
        builder.branch(finishing)

    def _add_serve(self, drain: ir.Function) -> None:
        serve = self._begin("serve", 1)
        builder = self.builder
        (state,) = serve.args
        seen, member = builder.alloca(_I64), builder.add(self._change("add", state, MEMBERS, 1), _number(1))
        builder.store(_number(0), seen)
        again, waiting = self._block("again"), self._block("waiting")
        pause, sleep, arrived, some, work, early = map(
            builder.append_basic_block, ("pause", "sleep", "arrived", "some", "work", "early")
        )
        turn, known, patience = builder.phi(_I64), builder.load(seen), self._read(state, PATIENCE)
        turn.add_incoming(_number(0), again)
        current = self._shared(state, NUMBER)
        builder.cbranch(builder.icmp_signed("!=", current, known), arrived, pause)
        builder.position_at_end(pause)
        self._wait()
        turn.add_incoming(builder.add(turn, _number(1)), pause)
        builder.cbranch(builder.icmp_signed("<", turn, patience), waiting, sleep)
        builder.position_at_end(sleep)
        self._change("add", state, SLEEPING, 1)
        expected = builder.zext(builder.trunc(builder.load(seen), _I32), _I64)
        self._of_futex(state, state, _WAIT, expected)
        self._change("sub", state, SLEEPING, 1)
        builder.branch(again)
        builder.position_at_end(arrived)
        builder.store(current, seen)
        ticket = self._block("ticket")
        old = self._shared(state, WORKING)
        left = builder.ashr(old, _number(32))
        builder.cbranch(builder.icmp_signed(">", left, _number(0)), some, again)
        builder.position_at_end(some)
        fewer = builder.add(old, _number(1 - (1 << 32)))
        swapped = builder.cmpxchg(self._place(state, WORKING), old, fewer, "seq_cst")
        builder.cbranch(builder.extract_value(swapped, 1), work, ticket)
        builder.position_at_end(work)
        self._wake(state, builder.sub(left, _number(1)))
        program = self._read(state, PROGRAM_AT)
        left_early = builder.call(drain, [program, member])
        leaving = self._block("leaving")
        old = self._shared(state, WORKING)
        open_still = builder.and_(
            builder.icmp_signed("!=", left_early, _number(0)), builder.icmp_signed(">=", old, _number(0))
        )
        returned = builder.select(open_still, _number((1 << 32) - 1), _number(-1))
        swapped = builder.cmpxchg(self._place(state, WORKING), old, builder.add(old, returned), "seq_cst")
        gone = builder.append_basic_block("gone")
        builder.cbranch(builder.extract_value(swapped, 1), gone, leaving)
        builder.position_at_end(gone)
        with builder.if_then(builder.icmp_signed("!=", self._shared(state, CALLER), _number(0))):
            self._of_futex(state, self._address(state, WORKING), _WAKE, 1)
        builder.cbranch(open_still, early, again)
        builder.position_at_end(early)
        self._system_call(self._read(state, SYSTEM_CALL), self._give_way)
        builder.branch(ticket)


def _number(value: int) -> ir.Constant:
    return ir.Constant(_I64, value)


@cache
def functions() -> dict[str, int]:
    return threads.load(lambda: native.addresses(str(_Program().module), ("launch", "serve")))

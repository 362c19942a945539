"""The functions that threads run without Python: the team's, and copies to and from a device.

`team` names the words that its threads and Python share. Addresses are integers.
"""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types

from . import team
from .adapter import WORD, Function, instructions, part

_I32 = ir.IntType(32)
_PAUSE = {"x86_64": ("llvm.x86.sse2.pause", []), "aarch64": ("llvm.aarch64.hint", [ir.Constant(_I32, 1)])}
"""LLVM's name of the instruction for a waiting loop."""


def _place(emit, address):
    return emit.builder.inttoptr(address, WORD.as_pointer())


def _integer(*kinds):
    return types.int64(*(types.int64,) * len(kinds))


@instructions(_integer)
def plain(emit, address):
    """Return a word that no other thread changes meanwhile."""
    return emit.builder.load(_place(emit, address))


@instructions(_integer)
def shared(emit, address):
    """Return a word that other threads write to."""
    return emit.builder.load_atomic(_place(emit, address), "seq_cst", 8)


def _change(operation: str) -> Function:
    @instructions(_integer)
    def change(emit, address, value):
        return emit.builder.atomic_rmw(operation, _place(emit, address), value, "seq_cst")

    return change


exchange, add, either, both, highest = map(_change, ("xchg", "add", "or", "and", "max"))
"""f(address, value): change a shared word, and return what it was: replacement, sum, bitwise or and and, maximum."""


@instructions(lambda *kinds: types.boolean(*(types.int64,) * 3))
def swap(emit, address, old, new):
    """Replace a shared word if it is ``old``, and return whether it was."""
    return emit.builder.extract_value(emit.builder.cmpxchg(_place(emit, address), old, new, "seq_cst"), 1)


@instructions()
def pause(emit):
    """Wait for a moment, in a loop."""
    name, values = _PAUSE[platform.machine()]
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    function = emit.builder.module.globals.get(name) or ir.Function(emit.builder.module, kind, name)
    emit.builder.call(function, values)


@instructions(_integer)
def call(emit, function, block, workspace, begin, end):
    """Call a kernel by its address."""
    kind = ir.FunctionType(WORD, [WORD] * 4).as_pointer()
    return emit.builder.call(emit.builder.inttoptr(function, kind), [block, workspace, begin, end])


@instructions(_integer)
def system_call(emit, function, number, a, b, c):
    """Call the function ``syscall`` of the C library, by its address."""
    kind = ir.FunctionType(WORD, [WORD], var_arg=True).as_pointer()
    rest = [ir.Constant(WORD, 0)] * 3
    return emit.builder.call(emit.builder.inttoptr(function, kind), [number, a, b, c, *rest])


@part
def foreign(function, a, b, c, d):
    """Call a function of C by its address; its result is an integer of 32 bits."""
    return call(function, a, b, c, d) & 0xFFFFFFFF


@instructions()
def write_byte(emit, address):
    """Write a 0 to memory, whatever is there."""
    byte = ir.IntType(8)
    emit.builder.store(ir.Constant(byte, 0), emit.builder.inttoptr(address, byte.as_pointer()))


@part
def _word(address, word):
    return plain(address + 8 * word)


@part
def _work(phase, job, workspace, i, ranges):
    """Call one of the two kernels of a phase on the i-th of its ranges."""
    count = _word(phase, job + 2)
    begin, end = count * i // ranges, count * (i + 1) // ranges
    return call(_word(phase, job), _word(phase, job + 1), workspace, begin, end)


@part
def _drain(program, member):
    """Work on the ranges of one phase after the other; before the next phase, wait until all are done.

    A thread begins with its own share of the ranges, whose data are in its cache from the phase before, and continues
    with the shares of others. It returns 1 if it left while others worked, which the caller, number 0, never does.
    """
    workspace = _word(program, team.WORKSPACE) + member * _word(program, team.PITCH)
    parts, limit = _word(program, team.PARTS), _word(program, team.LIMIT)
    size, phase = 8 * (team.NEXT + team.LINE * parts), program + 8 * team.HEAD
    end = phase + size * _word(program, team.PHASES)
    while True:
        ranges, finished = _word(phase, team.RANGES), 0
        for step in range(parts):
            share = (member + step) % parts
            first = ranges * share // parts
            count = ranges * (share + 1) // parts - first
            counter = phase + 8 * (team.NEXT + team.LINE * share)
            while shared(counter) < count:  # first, as taking is slower
                taken = add(counter, 1)
                if taken >= count:
                    break
                found = _work(phase, team.FIRST, workspace, first + taken, ranges)
                if found > shared(program + 8 * team.HIGHEST):
                    highest(program + 8 * team.HIGHEST, found)
                if _word(phase, team.SECOND) != 0 and shared(program + 8 * team.HIGHEST) < limit:
                    _work(phase, team.SECOND, workspace, first + taken, ranges)
                finished += 1
        if finished > 0:
            add(phase + 8 * team.DONE, finished)
        if phase + size == end:
            return 0
        turn, patience = 0, team.PAUSES if member != 0 else _word(program, team.PATIENT)
        while shared(phase + 8 * team.DONE) < ranges:
            pause()
            if turn > patience:
                if member != 0:
                    return 1
                # a thread that others wait for may have no processor
                system_call(_word(program, team.YIELD), team.GIVE_WAY, 0, 0, 0)
            turn += 1
        if shared(program + 8 * team.HIGHEST) >= limit:
            return 0
        phase += size


@part
def _wake(state, most):
    """Wake two sleeping threads, which wake two more each: the caller would take longer to wake all."""
    if shared(state + 8 * team.SLEEPING) > 0 and most > 0:
        system_call(_word(state, team.SYSTEM_CALL), team.FUTEX, state + 8 * team.NUMBER, team.WAKE, 2)


@part
def _sleep(state, word, value):
    """Sleep at a word, if it has this value, until another thread wakes the sleepers there."""
    system_call(_word(state, team.SYSTEM_CALL), team.FUTEX, state + 8 * word, team.WAIT, value)


@part
def launch(state, workspace, helpers, end):
    """Run a program with at most ``helpers`` other threads, and return its highest result: called by Python."""
    exchange(state + 8 * team.WORKING, helpers * team.TICKET)
    add(state + 8 * team.NUMBER, 1)
    _wake(state, helpers)
    program = _word(state, team.PROGRAM_AT)
    _drain(program, 0)
    either(state + 8 * team.WORKING, team.WITHDRAWN)  # from now on no ticket is given back
    both(state + 8 * team.WORKING, team.WITHDRAWN | team.WORKERS)
    turn, patience = 0, _word(program, team.PATIENT)
    while shared(state + 8 * team.WORKING) & team.WORKERS != 0:
        pause()
        if turn > patience:
            exchange(state + 8 * team.CALLER, 1)
            working = shared(state + 8 * team.WORKING) & team.WORKERS
            if working != 0:
                _sleep(state, team.WORKING, working)
        turn += 1
    exchange(state + 8 * team.CALLER, 0)
    return shared(program + 8 * team.HIGHEST)


@part
def _arrive(state, seen):
    """Wait for the number of the program to change, first in a loop and then in the system; return the number."""
    turn, patience = 0, _word(state, team.PATIENCE)
    while shared(state + 8 * team.NUMBER) == seen:
        pause()
        turn += 1
        if turn > patience:
            add(state + 8 * team.SLEEPING, 1)
            system_call(
                _word(state, team.SYSTEM_CALL), team.FUTEX, state + 8 * team.NUMBER, team.WAIT, seen & team.WORKERS
            )
            add(state + 8 * team.SLEEPING, -1)
            turn, patience = 0, _word(state, team.PATIENCE)
    return shared(state + 8 * team.NUMBER)


@part
def _take_part(state, member):
    """Work with a ticket, if one is left. Return whether to look for another, as one was given back."""
    old = shared(state + 8 * team.WORKING)
    while old // team.TICKET > 0:
        if swap(state + 8 * team.WORKING, old, old + 1 - team.TICKET):
            _wake(state, old // team.TICKET - 1)
            left = _drain(_word(state, team.PROGRAM_AT), member) != 0
            while True:
                old = shared(state + 8 * team.WORKING)
                given_back = left and old >= 0
                if swap(state + 8 * team.WORKING, old, old - 1 + (team.TICKET if given_back else 0)):
                    break
            if shared(state + 8 * team.CALLER) != 0:
                system_call(_word(state, team.SYSTEM_CALL), team.FUTEX, state + 8 * team.WORKING, team.WAKE, 1)
            if given_back:
                system_call(_word(state, team.SYSTEM_CALL), team.GIVE_WAY, 0, 0, 0)
            return given_back
        old = shared(state + 8 * team.WORKING)
    return False


@part
def serve(state, workspace, begin, end):
    """Run whatever programs there are until the process ends: started by `pthread_create`."""
    member, seen = add(state + 8 * team.MEMBERS, 1) + 1, 0
    while seen >= 0:  # always
        seen = _arrive(state, seen)
        while _take_part(state, member):
            pass
    return seen


TAKEN, PIECE, TOTAL, HOST, DEVICE, STREAM, CONTEXT, MOVE, COPY, RECORD, SYNCHRONIZE, USE, LANES, FIRST = range(14)
"""Words of a transfer (see `cuda.runtime.transfer`), among them the addresses of functions of four arguments at most;
four words for each part follow."""
PAGE = 4 << 10


@part
def _copy(words, lane, up):
    """Copy pieces until none is left, each after its buffer was sent; two buffers take turns. Return an error, or 0.

    To the device, a piece is copied into the buffer and enqueued; from the device, enqueued, waited for and copied.
    """
    turn = 0
    while True:
        start = add(words[TAKEN], words[PIECE])
        if start >= words[TOTAL]:
            return 0
        size = min(words[PIECE], words[TOTAL] - start)
        buffer, event = words[lane + turn], words[lane + 2 + turn]
        turn = 1 - turn
        here, there = words[HOST] + start, words[DEVICE] + start
        error = foreign(words[SYNCHRONIZE], event, 0, 0, 0)
        if error == 0 and up != 0:
            foreign(words[MOVE], buffer, here, size, 0)
            error = foreign(words[COPY], there, buffer, size, words[STREAM])
        elif error == 0:
            error = foreign(words[COPY], buffer, there, size, words[STREAM])
        if error == 0:
            error = foreign(words[RECORD], event, words[STREAM], 0, 0)
        if error == 0 and up == 0:
            error = foreign(words[SYNCHRONIZE], event, 0, 0, 0)
            foreign(words[MOVE], here, buffer, size, 0)
        if error != 0:
            return error


@part
def transfer(words, up, workspace, begin, end):
    """Do parts ``begin`` to ``end`` of a transfer, to the device if ``up``; return the first error, or 0.

    The first parts are lanes: two pinned buffers, and the events after which they may be used again. The others are
    ranges of host memory, of which a byte of every page is written: pages that hold nothing yet.
    """
    error = foreign(words[USE], words[CONTEXT], 0, 0, 0)
    for i in range(begin, end):
        at = FIRST + 4 * i
        if error == 0 and i < words[LANES]:
            error = _copy(words, at, up)
        elif error == 0:
            page = words[at]
            while page < words[at + 1]:
                write_byte(page)
                page += PAGE
    return error

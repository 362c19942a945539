"""The functions that the threads of the team run: see `team`, which names the words that they and Python share."""

from __future__ import annotations

from . import team
from .adapter import part
from .atomics import add, both, call, either, exchange, highest, pause, plain, shared, swap, system_call


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

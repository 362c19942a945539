"""Copies between host memory and the pinned buffers of a GPU by the threads of the team, without Python.

The words of a job: `wavefilt.backends.cuda.runtime.staging`. C functions are called with four words whatever they take,
of which they ignore the rest, and return an error of 32 bits.
"""

from __future__ import annotations

from .adapter import part
from .atomics import add, call, exchange

(TAKEN, PIECE, TOTAL, HOST, DEVICE, STREAM, CONTEXT, MOVE, COPY, RECORD, SYNCHRONIZE, USE, LANES, HEAD) = range(14)
"""The fields of a job, and their number; four words for each lane follow, then two for each part to be touched."""
PAGE = 4 << 10


@part
def _failed(result):
    return result & 0xFFFFFFFF


@part
def _touch(first, last):
    """Write a word to every page of memory that holds nothing yet."""
    page = (first + 7) // 8 * 8
    while page + 8 <= last:
        exchange(page, 0)
        page += PAGE


@part
def _copy(job, lane, up):
    """Copy pieces until none is left, each once the last transfer of its slot has ended; two slots take turns."""
    first, turn = HEAD + 4 * lane, 0
    while True:
        start = add(job[TAKEN], job[PIECE])
        if start >= job[TOTAL]:
            return 0
        size, slot, event = min(job[PIECE], job[TOTAL] - start), job[first + turn], job[first + 2 + turn]
        here, there, stream, turn = job[HOST] + start, job[DEVICE] + start, job[STREAM], 1 - turn
        error = _failed(call(job[SYNCHRONIZE], event, 0, 0, 0))
        if error == 0 and up:
            call(job[MOVE], slot, here, size, 0)
        if error == 0:
            error = _failed(call(job[COPY], there if up else slot, slot if up else there, size, stream))
        if error == 0:
            error = _failed(call(job[RECORD], event, stream, 0, 0))
        if error == 0 and not up:
            error = _failed(call(job[SYNCHRONIZE], event, 0, 0, 0))
        if error != 0:
            return error
        if not up:
            call(job[MOVE], here, slot, size, 0)


@part
def _run(job, begin, end, up):
    error, lanes = _failed(call(job[USE], job[CONTEXT], 0, 0, 0)), job[LANES]
    for i in range(begin, end):
        if error == 0 and i < lanes:
            error = _copy(job, i, up)
        elif error == 0:
            place = HEAD + 4 * lanes + 2 * (i - lanes)
            _touch(job[place], job[place + 1])
    return error


@part
def send(job, workspace, begin, end):
    """Do the parts of a transfer to the device from one to another; return 0, or the driver's error."""
    return _run(job, begin, end, True)


@part
def fetch(job, workspace, begin, end):
    """Do the parts of a transfer from the device."""
    return _run(job, begin, end, False)

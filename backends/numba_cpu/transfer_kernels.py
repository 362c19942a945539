"""Copies to and from a device by way of pinned buffers, by threads without Python: see `cuda.runtime.transfer`.

The functions of the driver are called by their addresses; each takes four arguments at most, and more do no harm.
"""

from __future__ import annotations

from .adapter import part
from .atomics import add, foreign, write_byte

TAKEN, PIECE, TOTAL, HOST, DEVICE, STREAM, CONTEXT, MOVE, COPY, RECORD, SYNCHRONIZE, USE, LANES, FIRST = range(14)
"""Words of a transfer; four words for each part follow."""
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

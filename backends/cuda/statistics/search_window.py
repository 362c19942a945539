"""A search's window: the fields of its state, and which values lie below or inside."""

from __future__ import annotations

from wavefilt.backends.cuda.runtime.target import device

DONE = -1
LOW, SHIFT, BELOW, NEXT, LISTED, BASE, TICKET, FIELDS = range(8)
"""Fields of a segment's state: window, values below it, whether the next larger value is still wanted, length of the
list of values in the first window, values below all of that list, blocks that have finished the pass."""
NOT_YET = -1  # the list and the values below it are still to be counted


@device
def less(a, b, c, d, bottom):
    """How many of four values lie below ``bottom``."""
    return (
        (1 if abs(a) < bottom else 0) + (1 if abs(b) < bottom else 0)
        + (1 if abs(c) < bottom else 0) + (1 if abs(d) < bottom else 0)
    )  # fmt: skip


@device
def within(a, b, c, d, bottom, top):
    """Which of four values lie between two, as bits."""
    return (
        (1 if bottom <= abs(a) <= top else 0) | (2 if bottom <= abs(b) <= top else 0)
        | (4 if bottom <= abs(c) <= top else 0) | (8 if bottom <= abs(d) <= top else 0)
    )  # fmt: skip


@device
def room(stride):
    """Values that fit in the list of a row whose details take ``stride`` elements: an eighth of them."""
    return stride >> 5 << 2

"""Traces that do not fit in the limit, but in a device's memory: sent there in pieces, denoised, and fetched."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.method import Method
from wavefilt.outofcore.file_rows import check
from wavefilt.outofcore.memory_budget import DeviceResident
from wavefilt.outofcore.prefetch import Ahead, Behind, Energy, Piece
from wavefilt.outofcore.sizes import spelled

Noise = list[tuple[Floats, Floats]]
"""Noise and thresholds (levels, traces) of batches of traces."""


def denoise(
    shape: tuple[int, int],
    plan: DeviceResident,
    method: Method,
    ahead: Ahead,
    behind: Behind,
    energy: Energy,
    fetched: Callable[[int], None],
) -> Noise:
    """Noise and thresholds of every trace, or of the record, denoised on the way through the device.

    ``fetched`` is called with the number of samples that came back. Raises ValueError for a sample that is not finite,
    and for more samples than the device has memory for.
    """
    rows, samples = shape
    each = rows if method.scope == "record" else 1
    batches = [pieces(range(row, row + each), samples, plan.buffer) for row in range(0, rows, each)]
    ahead.expect([[piece] for batch in batches for piece in batch])
    device = plan.device
    x, *ys = (device.host_buffer(plan.buffer, ahead.dtype) for _ in range(3))
    found: Noise = []
    try:
        resident = device.resident((each, samples), ahead.dtype)
        for batch in batches:
            for piece in batch:
                device.send(ahead.take([piece]), resident, _place(piece, batch, samples))
            done = device.denoise(resident, method, plan.level, True)
            if done is None:
                _explain(batch, plan, method, ahead)
            y, measured = done
            assert measured is not None
            for piece in batch:
                size = (piece[0].stop - piece[0].start, piece[2] - piece[1])
                before, after = (buffer[: size[0] * size[1]].reshape(size) for buffer in (x, ys[0]))
                device.fetch(resident, _place(piece, batch, samples), before)
                device.fetch(y, _place(piece, batch, samples), after)
                energy.add(before, after)
                behind.put(piece[0], piece[1], after)
                ys.reverse()  # the other's values are written by now
                fetched(before.size)
            found.append((measured.sigma, measured.thresholds))
    except MemoryError as error:
        raise ValueError(
            f"{spelled(each * samples * ahead.dtype.itemsize)} of samples and their coefficients do not fit in the "
            f"memory of backend={device.name!r}: choose another backend ({error})"
        ) from error
    return found


def pieces(rows: range, samples: int, size: int) -> list[Piece]:
    """Rows in pieces of at most ``size`` samples: some whole rows each, or parts of one."""
    if samples <= size:
        together = size // samples
        return [(slice(a, min(a + together, rows.stop)), 0, samples) for a in rows[::together]]
    return [(slice(row, row + 1), a, min(a + size, samples)) for row in rows for a in range(0, samples, size)]


def _place(piece: Piece, batch: list[Piece], samples: int) -> int:
    """Where a piece begins in its batch, in samples."""
    return int(piece[0].start - batch[0][0].start) * samples + piece[1]


def _explain(batch: list[Piece], plan: DeviceResident, method: Method, ahead: Ahead) -> NoReturn:
    """Raise ValueError for samples that the device found not finite, or that overflowed there."""
    for piece in batch:
        x = ahead.take([piece])
        check(x, [piece], float(np.max(np.abs(x))), plan, method)
    raise ValueError(SQUARES_OVERFLOW)

"""Traces that do not fit in the limit held by a device: sent there piece by piece, denoised, and fetched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.denoising.traces import check_size
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.method import Method
from wavefilt.outofcore.file_rows import refuse
from wavefilt.outofcore.memory_budget import Plan
from wavefilt.outofcore.prefetch import Ahead, Behind, Energy, Piece
from wavefilt.outofcore.sizes import spelled

Told = list[tuple[NDArray[np.float64], NDArray[np.float64]]]


def denoise(
    shape: tuple[int, int], plan: Plan, method: Method, ahead: Ahead, behind: Behind, energy: Energy,
    fetched: Callable[[int], None],
) -> Told:  # fmt: skip
    """Noise and thresholds (levels, traces) of every trace, or of the record, denoised on the way through the device.

    ``fetched`` is told the number of samples that came back. Raises ValueError for a sample that is not finite, and
    for more samples than the device holds.
    """
    rows, samples = shape
    each = rows if method.scope == "record" else 1
    batches = [pieces(range(row, row + each), samples, plan.buffer) for row in range(0, rows, each)]
    ahead.expect([[piece] for batch in batches for piece in batch])
    device: Any = plan.backend
    x, *ys = (device.host_buffer(plan.buffer, ahead.dtype) for _ in range(3))
    told: Told = []
    try:
        held = device.held((each, samples), ahead.dtype)
        for batch in batches:
            for piece in batch:
                device.send(ahead.take([piece]), held, _place(piece, batch, samples))
            done = device.denoise(held, method, plan.level, True)
            if done is None:
                _explain(batch, plan, method, ahead)
            for piece in batch:
                size = (piece[0].stop - piece[0].start, piece[2] - piece[1])
                before, after = (buffer[: size[0] * size[1]].reshape(size) for buffer in (x, ys[0]))
                device.fetch(held, _place(piece, batch, samples), before)
                device.fetch(done[0], _place(piece, batch, samples), after)
                energy.add(before, after)
                behind.put(piece[0], piece[1], after)
                ys.reverse()  # the other's values are written by now
                fetched(before.size)
            told.append((done[1].sigma, done[1].thresholds))
    except MemoryError as error:
        raise ValueError(
            f"{spelled(each * samples * ahead.dtype.itemsize)} of samples and their coefficients do not fit in the "
            f"memory of backend={device.name!r}: choose another backend ({error})"
        ) from error
    return told


def pieces(rows: range, samples: int, size: int) -> list[Piece]:
    """Rows in pieces of at most ``size`` samples: some whole rows each, or parts of one."""
    if samples <= size:
        together = size // samples
        return [(slice(a, min(a + together, rows.stop)), 0, samples) for a in rows[::together]]
    return [(slice(row, row + 1), a, min(a + size, samples)) for row in rows for a in range(0, samples, size)]


def _place(piece: Piece, batch: list[Piece], samples: int) -> int:
    """Where a piece begins in its batch, in samples."""
    return int(piece[0].start - batch[0][0].start) * samples + piece[1]


def _explain(batch: list[Piece], plan: Plan, method: Method, ahead: Ahead) -> None:
    """Raise ValueError for samples that the device found not finite, or that overflowed there."""
    for piece in batch:
        x = ahead.take([piece])
        peak = float(np.max(np.abs(x)))
        if not np.isfinite(peak):
            refuse(x, [piece], plan.whole_spelled)
        check_size(x, peak, plan.level, method)
    raise ValueError(SQUARES_OVERFLOW)

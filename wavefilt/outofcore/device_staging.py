"""Traces that do not fit in the limit, but in a device's memory: sent there in pieces, denoised, and fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NoReturn

import numpy as np

from wavefilt import engine
from wavefilt.arrays import Floats
from wavefilt.chunks import runs
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.options import Options
from wavefilt.outofcore.file_rows import check
from wavefilt.outofcore.memory_budget import DeviceResident
from wavefilt.outofcore.prefetch import Ahead, Behind, Energy, Piece, copied, pieces
from wavefilt.outofcore.sizes import spelled

Noise = list[tuple[Floats, Floats]]
"""Noise and thresholds (levels, traces) of batches of traces."""


def denoise(
    shape: tuple[int, int],
    plan: DeviceResident,
    method: Options,
    ahead: Ahead,
    behind: Behind,
    energy: Energy,
    fetched: Callable[[int], None],
) -> Noise:
    """Noise and thresholds of every trace, or of the record, denoised on the way through the device.

    Dead traces of a record are copied. ``fetched`` is called with the number of samples that came back. Raises
    ValueError for a sample that is not finite, and for more samples than the device has memory for.
    """
    rows, samples = shape
    pooled = method.scope == "record"
    dead = np.array([pooled and engine.constant_row(partial(ahead.read, row), samples) for row in range(rows)], bool)
    groups = [runs(~dead)] if pooled else [[range(row, row + 1)] for row in range(rows)]
    batches = [[piece for run in group for piece in pieces(run, samples, plan.buffer)] for group in groups if group]
    each = int(np.count_nonzero(~dead)) if pooled else 1
    ahead.expect([[piece] for batch in batches for piece in batch])
    device = plan.device
    x, *ys = (device.host_buffer(plan.buffer, ahead.dtype) for _ in range(3))
    found: Noise = []
    try:
        resident = device.resident((each, samples), ahead.dtype) if each else None
        for batch in batches:
            for place, piece in _placed(batch):
                device.send(ahead.take([piece]), resident, place)
            done = device.denoise(resident, method, plan.level, True)
            if done is None:
                _explain(batch, plan, method, ahead)
            y, measured = done
            assert measured is not None
            for place, piece in _placed(batch):
                size = (piece[0].stop - piece[0].start, piece[2] - piece[1])
                before, after = (buffer[: size[0] * size[1]].reshape(size) for buffer in (x, ys[0]))
                device.fetch(resident, place, before)
                device.fetch(y, place, after)
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
    for _, same in copied([piece for run in runs(dead) for piece in pieces(run, samples, plan.buffer)], ahead, behind):
        energy.add(same, same)
        fetched(same.size)
    if dead.all():
        found.append((np.zeros((plan.level, rows)), np.zeros((plan.level, rows))))
    return found


def _placed(batch: list[Piece]) -> Iterator[tuple[int, Piece]]:
    """Pieces with the places where they begin on the device, in samples: side by side."""
    place = 0
    for piece in batch:
        yield place, piece
        place += (piece[0].stop - piece[0].start) * (piece[2] - piece[1])


def _explain(batch: list[Piece], plan: DeviceResident, method: Options, ahead: Ahead) -> NoReturn:
    """Raise ValueError for samples that the device found not finite, or that overflowed there."""
    for piece in batch:
        x = ahead.take([piece])
        check(x, [piece], float(np.max(np.abs(x))), plan, method)
    raise ValueError(SQUARES_OVERFLOW)

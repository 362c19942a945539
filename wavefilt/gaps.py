"""Gaps: runs of NaN or masked samples. A trace is denoised in the pieces between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Piece:
    """Samples ``start`` to ``stop`` of the traces ``rows``: a batch of one length, without gaps."""

    rows: NDArray[np.intp]
    start: int
    stop: int

    @property
    def samples(self) -> int:
        return self.stop - self.start

    def of(self, traces: NDArray[Any]) -> NDArray[Any]:
        """This piece of the traces, C-contiguous; the traces themselves where it is all of them."""
        every = len(self.rows) == len(traces)
        return np.ascontiguousarray(traces[slice(None) if every else self.rows, self.start : self.stop])


def pieces(traces: NDArray[Any]) -> list[Piece]:
    """The pieces without NaN of traces (traces, samples), those of the same place in one batch.

    Raises ValueError, naming the first trace and sample, if there is an infinite value.
    """
    finite = np.isfinite(traces)
    if finite.all():
        return [Piece(np.arange(len(traces)), 0, traces.shape[1])] if traces.size else []
    infinite = np.argwhere(~finite & ~np.isnan(traces))
    if infinite.size:
        trace, sample = infinite[0]
        raise ValueError(
            f"infinite value at trace {trace}, sample {sample} (counted from 0), {len(infinite)} in all; "
            "replace them, or set them to NaN to have them treated as gaps"
        )
    edges = np.diff(np.pad(finite, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    stops = np.nonzero(edges == -1)[1]
    batches: dict[tuple[int, int], list[int]] = {}
    for row, start, stop in zip(rows.tolist(), starts.tolist(), stops.tolist(), strict=True):
        batches.setdefault((start, stop), []).append(row)
    return [Piece(np.array(members), start, stop) for (start, stop), members in batches.items()]

"""Gaps: runs of NaN or masked samples. A trace is denoised in the pieces between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import NonFiniteSample


@dataclass(frozen=True)
class Piece:
    """A batch of runs without gaps, all of ``samples`` samples: run i is in trace ``rows[i]`` from ``starts[i]``."""

    rows: NDArray[np.intp]
    starts: NDArray[np.intp]
    samples: int

    @property
    def places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Index of the batch in the traces."""
        return self.rows[:, None], self.starts[:, None] + np.arange(self.samples)

    def of(self, traces: NDArray[Any]) -> NDArray[Any]:
        """The batch, shape (runs, samples), C-contiguous; the traces themselves where it is all of them."""
        if (len(self.rows), self.samples) == traces.shape:
            return traces
        return np.ascontiguousarray(traces[self.places])


def whole(traces: NDArray[Any]) -> list[Piece]:
    """The one piece of traces (traces, samples) without gaps; none of no traces."""
    rows = len(traces)
    return [Piece(np.arange(rows), np.zeros(rows, np.intp), traces.shape[1])] if traces.size else []


def pieces(traces: NDArray[Any]) -> list[Piece]:
    """The pieces between NaN samples of traces (traces, samples), runs of one length in one batch.

    Raises NonFiniteSample, naming the first, if there is an infinite value.
    """
    infinite = np.argwhere(np.isinf(traces))
    if infinite.size:
        hint = f", {len(infinite)} in all; replace them, or set them to NaN to have them treated as gaps"
        raise NonFiniteSample(*infinite[0], hint)
    edges = np.diff(np.pad(~np.isnan(traces), ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    lengths = np.nonzero(edges == -1)[1] - starts
    alike = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    return [Piece(rows[runs], starts[runs], int(lengths[runs[0]])) for runs in alike]

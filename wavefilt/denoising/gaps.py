"""Gaps: runs of NaN or masked samples. A trace is denoised in the segments between them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Array
from wavefilt.errors import NonFiniteSample

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Segments:
    """A batch of runs without gaps, all of one shape: run i is in trace ``rows[i]`` from sample ``starts[i]`` on.

    The shape is (samples,), or (rows, columns) of panels, which are whole.
    """

    rows: Index
    starts: Index
    shape: tuple[int, ...]

    @property
    def samples(self) -> int:
        """Of one run."""
        return prod(self.shape)

    @property
    def places(self) -> tuple[Index, Index]:
        """Index of the batch in the traces."""
        return self.rows[:, None], self.starts[:, None] + np.arange(self.samples)

    def of(self, x: Array) -> Array:
        """The batch, shape (runs, *shape), C-contiguous; the array itself where it is all of it."""
        return x if (len(self.rows), *self.shape) == x.shape else np.ascontiguousarray(x[self.places])


def whole(x: Array) -> list[Segments]:
    """The one segment of traces or panels (batch, *shape) without gaps; none of an empty batch."""
    rows = len(x)
    return [Segments(np.arange(rows), np.zeros(rows, np.intp), x.shape[1:])] if x.size else []


def segments(traces: Array) -> list[Segments]:
    """The segments between NaN samples of traces (traces, samples), runs of one length in one batch.

    Raises NonFiniteSample, naming the first, if there is an infinite value.
    """
    infinite = np.argwhere(np.isinf(traces))
    if infinite.size:
        hint = f", {len(infinite)} in all; replace them, or set them to NaN to have them treated as gaps"
        trace, sample = infinite[0].tolist()
        raise NonFiniteSample(trace, sample, hint)
    edges = np.diff(np.pad(~np.isnan(traces), ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    lengths = np.nonzero(edges == -1)[1] - starts
    alike = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    return [Segments(rows[runs], starts[runs], (int(lengths[runs[0]]),)) for runs in alike]


def of_panels(panels: Array) -> list[Segments]:
    """Panels (panels, rows, columns) whole. Raises ValueError, naming the first, if samples are missing or infinite."""
    wrong = np.argwhere(~np.isfinite(panels))
    if len(wrong):
        panel, row, column = wrong[0].tolist()
        kind = "infinite value" if np.isinf(panels[panel, row, column]) else "gap (NaN or masked sample)"
        raise ValueError(
            f"{kind} at row {row}, column {column} of section {panel} (counted from 0), {len(wrong)} in all; in two "
            "dimensions every sample is needed: fill them, or denoise the traces, which are split at gaps"
        )
    return whole(panels)

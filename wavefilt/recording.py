"""A recording: traces with their sampling interval, and everything its format needs to be written back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from wavefilt import arrays
from wavefilt.arrays import Array
from wavefilt.backends import Backend
from wavefilt.denoising.options import Options, check_names
from wavefilt.denoising.pipeline import Outcome, run
from wavefilt.errors import OptionError, named
from wavefilt.method import Method, window_of
from wavefilt.vocabulary import Window
from wavefilt.wavelets.filters import WaveletLike


@dataclass(frozen=True)
class Recording:
    """Traces read from a file (`wavefilt.read`).

    Attributes
    ----------
    traces : ndarray (traces, samples), or sequence of 1-D ndarrays
        Samples in the file's own units (counts); a sequence where the traces have lengths of their own.
    intervals : tuple of float or None
        Sampling interval of each trace in seconds, None where the file does not say.
    format : str
        Name of the format, e.g. ``"seg2"``.
    origin : object
        What the format's writer needs to write every header back; opaque to everything else.
    source : str
        Where it was read from.
    notes : tuple of str
        What a user should know about reading or writing this file.
    outcome : Outcome, optional
        How these traces were denoised, if they were.
    """

    traces: Array | Sequence[Array]
    intervals: tuple[float | None, ...]
    format: str
    origin: Any = field(repr=False)
    source: str = ""
    notes: tuple[str, ...] = ()
    outcome: Outcome | None = field(default=None, repr=False)

    @property
    def samples(self) -> Array:
        """All traces as one array, shape (traces, samples). Raises ValueError if their lengths differ."""
        if isinstance(self.traces, np.ndarray):
            return self.traces
        if len(lengths := {len(trace) for trace in self.traces}) > 1:
            sizes = f"{len(lengths)} lengths ({min(lengths)} to {max(lengths)} samples)"
            raise ValueError(f"{self.source}: traces of {sizes} are not an array; use Recording.traces")
        return np.array(self.traces)

    @property
    def interval(self) -> float | None:
        """Sampling interval of all traces in seconds, None if unknown. Raises ValueError if they differ."""
        if len(set(self.intervals)) > 1:
            raise ValueError(f"{self.source}: traces of different sampling intervals; use Recording.intervals")
        return self.intervals[0] if self.intervals else None

    def window(self, start: float, stop: float) -> Window:
        """Seconds from the beginning of every trace as a noise window in samples, for ``sigma`` of `denoise`.

        Raises ValueError unless all traces have one known sampling interval and ``start`` is before ``stop``.
        """
        return window_of(start, stop, self.interval, self.source)

    def less(self, other: Recording) -> Recording:
        """The difference from ``other``, a recording of the same shape: the noise, if that is the denoised one."""
        if isinstance(self.traces, np.ndarray) and isinstance(other.traces, np.ndarray):
            return replace(self, traces=arrays.take(self.traces, -1).rows - other.traces)
        return replace(self, traces=[x.astype(y.dtype) - y for x, y in zip(self.traces, other.traces, strict=True)])

    def denoise(
        self,
        wavelet: WaveletLike = "db8",
        *,
        two_dimensional: bool = False,
        backend: str | Backend = "auto",
        **options: Unpack[Options],
    ) -> Recording:
        """The recording with every trace denoised.

        Options are those of `wavefilt.denoise` about the method (level, mode, rule, shrink, sigma, scope, keep,
        transform, spins), and so are the errors; `less` gives what was removed. ``two_dimensional`` is its
        ``axes=(0, 1)``: all traces, in their order, are one panel. Their lengths must then be the same.
        """
        check_names(options, backend, "two_dimensional")
        return self.apply(Method(wavelet, **options, dimensions=2 if two_dimensional else 1), backend)

    def apply(self, method: Method, backend: str | Backend = "auto", report: bool = False) -> Recording:
        """`denoise` with a `Method`; ``report`` as in `wavefilt.denoising.pipeline.run`.

        Traces of a sequence are returned each in its own dtype of computation. Raises ValueError for two dimensions
        and traces of several lengths.
        """
        if isinstance(self.traces, np.ndarray):
            taken = arrays.take(self.traces, -1)
            outcome = run(taken.rows, method, backend, report)
            return replace(self, traces=taken.restore(outcome.samples), outcome=outcome)
        self.check(method)
        outcome = run(self._rows(), method, backend, report)
        traces = [
            y[: len(x)].astype(arrays.compute_dtype(x.dtype), copy=False)
            for y, x in zip(outcome.samples, self.traces, strict=True)
        ]
        return replace(self, traces=traces, outcome=outcome)

    def check(self, method: Method) -> None:
        """Raise ValueError for traces of several lengths where they should be a panel."""
        lengths = {len(trace) for trace in self.traces}
        if method.dimensions == 2 and len(lengths) > 1:
            sizes = f"not of {min(lengths)} to {max(lengths)} samples"
            why = f"{self.source}: a panel needs traces of one length, {sizes}; leave "
            raise OptionError(why, named(two_dimensional=True), " out")

    def _rows(self) -> Array:
        """Traces of several lengths and dtypes as rows in one dtype of computation; shorter ones end in a gap."""
        dtype = arrays.compute_dtype(np.result_type(*self.traces))
        rows = np.full((len(self.traces), max(map(len, self.traces))), np.nan, dtype)
        for row, trace in zip(rows, self.traces, strict=True):
            row[: len(trace)] = trace
        return rows

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write in the format it was read from, headers kept, by way of a temporary file in the same folder.

        Raises FileExistsError if ``path`` exists and ``overwrite`` is not set, FormatError if the format cannot
        hold these samples, OSError if the file cannot be written. ``path`` is complete or unchanged, never partial.
        """
        from wavefilt.io.writing import write

        write(self, Path(path), overwrite=overwrite)

"""Chosen and the denoised recording that they give; no widgets here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends import Backend, registry
from wavefilt.backends.registry import REFERENCE
from wavefilt.engine import Outcome
from wavefilt.errors import BackendUnavailable
from wavefilt.options import Options, check_names
from wavefilt.recording import Recording
from wavefilt.report import transformed, unchanged

from .source import Source

Chosen = dict[str, Any]
"""Options of `Recording.denoise` by their names; those left out have their defaults."""
LARGE, COMPILED = 1 << 17, "numba"
"""Samples from which a page denoises with compiled kernels, as a change comes after the other."""
FEW = 2
"""Times as many traces as are visible, from which those are denoised first."""
ERRORS = (ValueError, TypeError, BackendUnavailable, MemoryError)
"""What a choice of options may raise: its text tells the user what to do."""


@dataclass(frozen=True)
class Result:
    """What came of the options."""

    source: Source
    options: Chosen
    after: Recording
    seconds: float

    @property
    def outcome(self) -> Outcome:
        assert self.after.outcome is not None
        return self.after.outcome

    @property
    def rows(self) -> Array:
        """The denoised traces, as `Source.rows`."""
        return self.outcome.samples

    def summary(self) -> str:
        """Options, share of the energy that was removed, and time, in a line."""
        before, outcome = self.source.recording, self.outcome
        note = ""
        if not outcome.estimates:
            note = f"; {unchanged(outcome.method, min(transformed(before, outcome.method)))}"
        share = 100 * energy_share(self.source.rows, self.rows)
        method = outcome.method.summary(outcome.level)
        return f"{method}: removed {share:.2g} % of the energy, {1e3 * self.seconds:.0f} ms ({outcome.backend}){note}"


def energy_share(before: Array, after: Array) -> float:
    """Of the samples before, what was removed; 0 of silence. Faster than `wavefilt.report.energy_removed`, by trace."""
    known = np.isfinite(before)
    scale = np.abs(before).max(where=known, initial=0) or 1
    removed, given = (np.where(known, values / scale, 0).ravel() for values in (before - after, before))
    return float(np.vdot(removed, removed).real / (np.vdot(given, given).real or 1))


def backend_for(source: Source, backend: str | Backend) -> str | Backend:
    """In place of "auto" what that chooses in a process of its own; compiled kernels where loading them pays here.

    The lines that are copied then give the same samples to the last bit.
    """
    if backend != "auto":
        return backend
    return COMPILED if source.rows.size >= LARGE else REFERENCE


def denoise(source: Source, options: Mapping[str, Any], backend: str | Backend = "auto") -> Result:
    """Denoise as `Recording.denoise` does. Raises one of `ERRORS`."""
    given, method = _method(options, backend)
    start = time.perf_counter()
    after = source.recording.apply(method, backend, report=True, sigma=given.get("sigma", "level"))
    return Result(source, given, after, time.perf_counter() - start)


def denoise_first(source: Source, options: Chosen, backend: str | Backend, traces: slice) -> Array | None:
    """`Result.rows` with these traces alone denoised, NaN elsewhere; None where that saves little or others matter.

    Raises one of `ERRORS`.
    """
    given, method = _method(options, backend)
    recording, rows = source.recording, source.rows
    few = (traces.stop - traces.start) * FEW <= len(rows) and rows.size >= LARGE
    if not few or method.dimensions == 2 or method.scope == "record" or not isinstance(recording.traces, np.ndarray):
        return None
    own = replace(
        recording,
        traces=recording.traces[traces],
        intervals=recording.intervals[traces],
        ids=recording.ids[traces],
        starts=recording.starts[traces],
    )
    after = np.full(rows.shape, np.nan, rows.dtype)
    after[traces] = own.apply(method, backend, sigma=given.get("sigma", "level")).rows()
    return after


def _method(options: Mapping[str, Any], backend: str | Backend) -> tuple[Chosen, Options]:
    """Chosen that are given, and what they are but for the noise."""
    given = {name: value for name, value in options.items() if value is not None}
    check_names(given, "wavelet", "two_dimensional")
    registry.check_name(backend)
    own = {name: value for name, value in given.items() if name not in ("sigma", "two_dimensional")}
    return given, Options(**own, dimensions=2 if given.get("two_dimensional") else 1)

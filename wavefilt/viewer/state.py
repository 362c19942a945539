"""Options and the denoised recording that they give; no widgets here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wavefilt.arrays import Array
from wavefilt.backends import Backend
from wavefilt.denoising.options import check_names
from wavefilt.denoising.pipeline import Outcome
from wavefilt.errors import BackendUnavailable
from wavefilt.method import Method
from wavefilt.recording import Recording
from wavefilt.report import energy_removed, transformed, unchanged

from .source import Source

Options = dict[str, Any]
"""Options of `Recording.denoise` by their names; those left out have their defaults."""
ERRORS = (ValueError, TypeError, BackendUnavailable, MemoryError)
"""What a choice of options may raise: its text tells the user what to do."""


@dataclass(frozen=True)
class Result:
    """What came of the options."""

    source: Source
    options: Options
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
        """Method, share of the energy that was removed, and time, in a line."""
        before, outcome = self.source.recording, self.outcome
        note = ""
        if not outcome.estimates:
            note = f"; {unchanged(outcome.method, min(transformed(before, outcome.method)))}"
        share = 100 * energy_removed(before, self.after)
        method = outcome.method.summary(outcome.level)
        return f"{method}: removed {share:.2g} % of the energy, {1e3 * self.seconds:.0f} ms ({outcome.backend}){note}"


def denoise(source: Source, options: Mapping[str, Any], backend: str | Backend = "auto") -> Result:
    """Denoise as `Recording.denoise` does. Raises one of `ERRORS`."""
    given = {name: value for name, value in options.items() if value is not None}
    check_names(given, backend, "wavelet", "two_dimensional")
    start = time.perf_counter()
    own = {name: value for name, value in given.items() if name not in ("sigma", "two_dimensional")}
    method = Method(**own, dimensions=2 if given.get("two_dimensional") else 1)
    after = source.recording.apply(method, backend, report=True, sigma=given.get("sigma", "level"))
    return Result(source, given, after, time.perf_counter() - start)

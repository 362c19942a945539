"""What a recording contains and what denoising did, as plain numbers: for summaries, `--json` and the sidecar."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any, TypeAlias

import numpy as np

from wavefilt._version import __version__
from wavefilt.arrays import Array, Floats
from wavefilt.method import Method
from wavefilt.recording import Recording
from wavefilt.wavelets.filters import max_level

Facts: TypeAlias = dict[str, Any]
"""Names and values for JSON."""


def contents(recording: Recording) -> Facts:
    """Format, traces, samples and sampling interval; a list with one entry per trace where they differ."""
    lengths = [len(trace) for trace in recording.traces]
    return {
        "input": recording.source,
        "format": recording.format,
        "traces": len(lengths),
        "samples": lengths[0] if len(set(lengths)) == 1 else lengths,
        "interval_s": recording.intervals[0] if len(set(recording.intervals)) == 1 else list(recording.intervals),
    }


def energies(before: Recording, after: Recording) -> tuple[Floats, float, float]:
    """Σ x² of each trace and Σ (x - y)² of all, in units of the largest magnitude, which is the third; gaps are 0."""
    peak = max((float(np.nanmax(np.abs(finite(x)), initial=0)) for x in before.traces), default=0.0)
    scale = peak or 1.0  # squares of samples of any size stay finite
    squares, removed = np.zeros(len(before.traces)), 0.0
    for i, (x, y) in enumerate(zip(before.traces, after.traces, strict=True)):
        wide = finite(x) / scale
        squares[i] = np.nansum(np.abs(wide) ** 2)
        removed += float(np.nansum(np.abs(wide - np.asarray(y, wide.dtype) / scale) ** 2))
    return squares, removed, peak


def finite(samples: Array) -> Array:
    """The samples in double precision at least, NaN for those that are masked or not finite."""
    values = np.ma.filled(np.ma.asarray(samples).astype(np.result_type(samples, np.float64)), np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def energy_removed(before: Recording, after: Recording) -> float:
    """Σ (x - y)² / Σ x² over all samples outside gaps, between 0 and about 1; 0 for silence."""
    squares, removed, _ = energies(before, after)
    return removed / float(sum(squares) or 1.0)


def describe(before: Recording, after: Recording, seconds: float) -> Facts:
    """Every resolved parameter and the result, ready for JSON.

    ``sigma`` and ``thresholds`` are medians over traces, finest level first, in the units of the samples; in two
    dimensions those of the three bands of each level.
    """
    outcome = after.outcome
    assert outcome is not None
    method = outcome.method
    return {
        **contents(before),
        **resolved(method, outcome.level),
        "sigma": _medians([e.sigma for e in outcome.estimates]),
        "thresholds": _medians([e.thresholds for e in outcome.estimates]),
        "energy_removed": energy_removed(before, after),
        "backend": outcome.backend,
        "seconds": seconds,
        "notes": [*after.notes, *([] if outcome.estimates else [unchanged(method)])],
        "versions": versions(),
    }


def unchanged(method: Method) -> str:
    """The note for samples that are unchanged because there are no levels."""
    if method.level == 0:
        return "unchanged: no levels were asked for"
    if method.dimensions == 2:
        return f"unchanged: too few traces or samples for one level of {method.bank.name} in two dimensions"
    return "unchanged: no trace is long enough for one level"


def resolved(method: Method, level: int) -> Facts:
    """What was asked for, defaults filled in."""
    return {
        "wavelet": method.bank.name,
        "taps": method.bank.dec_len,
        "mode": method.mode,
        "level": level,
        "rule": method.rule if isinstance(method.rule, str) else method.fixed_thresholds,
        "shrink": method.shrink_word,
        "sigma_estimate": method.sigma,
        "scope": method.scope,
        "keep": method.keep,
        "transform": method.transform,
        "spins": method.spins,
        **({"dimensions": 2} if method.dimensions == 2 else {}),
    }


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that the result depends on."""
    pywavelets = metadata.version("PyWavelets")  # pywt.__version__ is an older one in some wheels
    return {"wavefilt": __version__, "numpy": np.__version__, "PyWavelets": pywavelets}


def estimates(after: Recording) -> list[Facts]:
    """Noise and thresholds of every trace (or segment between gaps), finest level first, ready for JSON."""
    assert after.outcome is not None
    return [
        {
            "traces" if after.outcome.method.dimensions == 1 else "sections": e.segments.rows.tolist(),
            "first_samples": e.segments.starts.tolist(),
            "samples": e.segments.samples,
            "sigma": e.sigma.T.tolist(),
            "thresholds": e.thresholds.T.tolist(),
        }
        for e in after.outcome.estimates
    ]


def examine(recording: Recording) -> Facts:
    """What a recording contains, ready for JSON; noise and energy by level, finest first, medians over traces."""
    after = recording.apply(Method(rule=0.0), report=True)
    assert after.outcome is not None
    method, batches = after.outcome.method, after.outcome.estimates
    longest = max(len(trace) for trace in recording.traces)
    known = [_known(trace) for trace in recording.traces]
    facts = contents(recording)
    interval = facts["interval_s"]
    return {
        **facts,
        "dtype": np.result_type(*{trace.dtype for trace in recording.traces}).name,
        "duration_s": longest * interval if isinstance(interval, float) else None,
        "dead_traces": sum(len(trace) > 0 and not trace.any() for trace in known),
        "gap_samples": sum(map(len, recording.traces)) - sum(map(len, known)),
        "minimum": min((float(trace.real.min()) for trace in known if len(trace)), default=None),
        "maximum": max((float(trace.real.max()) for trace in known if len(trace)), default=None),
        "wavelet": method.bank.name,
        "max_level": max_level(longest, method.bank),
        "sigma_by_level": _medians([e.sigma for e in batches]),
        "mean_square_by_level": _medians([e.power for e in batches if e.power is not None]),
        "notes": list(recording.notes),
    }


def _known(trace: Array) -> Array:
    """The samples outside gaps; the trace itself where it has none."""
    gaps = np.ma.filled(np.isnan(trace), True)
    return np.asarray(trace[~gaps] if gaps.any() else trace)


def _medians(batches: list[Floats]) -> list[float]:
    """Median over the traces of all batches (levels, traces) that have the level, finest level first."""
    depth = max(map(len, batches), default=0)
    return [float(np.median(np.concatenate([rows[i] for rows in batches if len(rows) > i]))) for i in range(depth)]

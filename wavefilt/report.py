"""What a denoising did, as plain numbers: for summary lines, `--json` and the sidecar."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from wavefilt import __version__
from wavefilt.denoising import Estimate, Method
from wavefilt.filters import max_level
from wavefilt.recording import Recording


def energy_removed(before: Recording, after: Recording) -> float:
    """Σ (x - y)² / Σ x² over all samples outside gaps, between 0 and about 1; 0 for silence."""
    removed = total = 0.0
    for x, y in zip(before.traces, after.traces, strict=True):
        wide = np.asarray(x, np.result_type(x, np.float64))
        total += float(np.nansum(np.abs(wide) ** 2))
        removed += float(np.nansum(np.abs(wide - y) ** 2))
    return removed / total if total else 0.0


def describe(before: Recording, after: Recording, seconds: float) -> dict[str, Any]:
    """Every resolved parameter and what came of it, ready for JSON.

    ``sigma`` and ``thresholds`` are medians over traces, finest level first, in the units of the samples.
    """
    outcome = after.outcome
    assert outcome is not None
    method = outcome.method
    lengths = {len(trace) for trace in before.traces}
    return {
        "input": before.source,
        "format": before.format,
        "traces": len(before.traces),
        "samples": lengths.pop() if len(lengths) == 1 else [len(trace) for trace in before.traces],
        "interval_s": before.intervals[0] if len(set(before.intervals)) == 1 else list(before.intervals),
        "wavelet": method.bank.name,
        "taps": method.bank.dec_len,
        "mode": method.mode,
        "level": outcome.level,
        "rule": method.rule if isinstance(method.rule, str) else method.fixed_thresholds,
        "shrink": method.shrink_function,
        "sigma_estimate": method.sigma,
        "scope": method.scope,
        "sigma": _medians(outcome.estimates, "sigma"),
        "thresholds": _medians(outcome.estimates, "thresholds"),
        "energy_removed": energy_removed(before, after),
        "backend": outcome.backend,
        "seconds": seconds,
        "notes": list(after.notes),
        "versions": {"wavefilt": __version__, "numpy": np.__version__, "PyWavelets": version("PyWavelets")},
    }


def _medians(estimates: list[Estimate], name: str) -> list[float]:
    """Median over all traces that have the level, finest level first."""
    depth = max((len(e.sigma) for e in estimates), default=0)
    return [
        float(np.median(np.concatenate([getattr(e, name)[i] for e in estimates if len(e.sigma) > i])))
        for i in range(depth)
    ]


def sha256(path: Path) -> str:
    """Digest of a file, so that a sidecar names the very input."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def examine(recording: Recording) -> dict[str, Any]:
    """What a recording holds, ready for JSON; noise and energy by level, finest first, medians over traces."""
    after = recording.apply(Method(rule=0.0), report=True)
    assert after.outcome is not None
    estimates = after.outcome.estimates
    lengths = [len(trace) for trace in recording.traces]
    stacked = np.concatenate([np.ravel(trace) for trace in recording.traces])
    interval = recording.intervals[0]
    uniform = len(set(recording.intervals)) == 1
    return {
        "file": recording.source,
        "format": recording.format,
        "traces": len(lengths),
        "samples": lengths[0] if len(set(lengths)) == 1 else f"{min(lengths)} to {max(lengths)}",
        "dtype": stacked.dtype.name,
        "interval_s": interval if uniform else "differs between traces",
        "duration_s": max(lengths) * interval if uniform and interval else None,
        "dead_traces": sum(not np.any(trace) for trace in recording.traces),
        "gap_samples": int(np.isnan(stacked).sum()),
        "minimum": float(np.nanmin(np.real(stacked))),
        "maximum": float(np.nanmax(np.real(stacked))),
        "wavelet": after.outcome.method.bank.name,
        "max_level": max_level(max(lengths), after.outcome.method.bank),
        "sigma_by_level": _medians(estimates, "sigma"),
        "mean_square_by_level": _medians(estimates, "power"),
        "notes": "; ".join(recording.notes) or "none",
    }

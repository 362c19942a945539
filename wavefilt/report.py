"""The contents of a recording and the results of denoising as plain numbers: for summaries, `--json` and logs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from wavefilt._version import __version__
from wavefilt.arrays import Array, Floats, known
from wavefilt.engine import spread
from wavefilt.options import Options
from wavefilt.wavelets.filters import max_level, with_levels

if TYPE_CHECKING:
    from wavefilt.engine import Estimate, Outcome
    from wavefilt.recording import Recording

SECOND = np.timedelta64(1, "s")

Facts: TypeAlias = dict[str, Any]
"""Names and values for JSON."""


def contents(recording: Recording) -> Facts:
    """Return format, traces, samples, sampling interval and times; a list with one entry per trace if they differ."""
    lengths = [len(trace) for trace in recording.traces]
    return {
        "input": recording.source,
        "format": recording.format,
        "traces": len(lengths),
        "live_traces": int(recording.live.sum()),
        "dead_traces": recording.dead,
        "samples": lengths[0] if len(set(lengths)) == 1 else lengths,
        "interval_s": recording.intervals[0] if len(set(recording.intervals)) == 1 else list(recording.intervals),
        **({"channels": channels(recording)} if recording.starts else {}),
    }


def in_words(recording: Recording) -> list[str]:
    """Return name, format, size, sampling, first sample, and the number of live traces, for people."""
    lengths = [len(trace) for trace in recording.traces]
    sizes = " to ".join(f"{n}" for n in sorted({min(lengths, default=0), max(lengths, default=0)}))
    steps = [f"{dt:g} s" if dt else "unknown" for dt in dict.fromkeys(recording.intervals)]
    return [
        Path(recording.source).name,
        recording.format,
        f"{len(lengths)} trace{'s' * (len(lengths) != 1)} x {sizes} samples",
        f"interval {' or '.join(steps) if len(steps) < 4 else f'{len(steps)} different'}" if steps else "",
        f"from {utc(min(recording.starts))}" if recording.starts else "",
        f"{recording.live.sum()} live",
        f"{recording.dead} dead" if recording.dead else "",
        "denoised" if recording.outcome else "",
    ]


def utc(time: np.datetime64) -> str:
    """Return a time as in ISO 8601, to microseconds, without trailing zeros."""
    rounded = (time + np.timedelta64(500, "ns")).astype("datetime64[us]")
    return f"{str(rounded).rstrip('0').rstrip('.')}Z"


def channels(recording: Recording) -> list[Facts]:
    """Return first and last time of each id, and the gaps between its traces; overlaps are negative."""
    found = []
    for name, parts in recording.by_id.items():
        spans = sorted((recording.starts[i], _due(recording, i)) for i in parts)
        step = min(recording.intervals[i] or 0 for i in parts)
        pauses = [(due, (start - due) / SECOND) for (_, due), (start, _) in pairwise(spans)]
        last = max(_due(recording, i, -1) for i in parts)
        found.append(
            {
                "id": name,
                "start": utc(spans[0][0]),
                "end": utc(last),
                "samples": sum(len(recording.traces[i]) for i in parts),
                "gaps": [{"from": utc(due), "seconds": length} for due, length in pauses if abs(length) > step / 2],
            }
        )
    return found


def _due(recording: Recording, trace: int, after: int = 0) -> np.datetime64:
    """Return the time of the sample that follows a trace, or of the one ``after`` samples later."""
    seconds = (len(recording.traces[trace]) + after) * (recording.intervals[trace] or 0)
    return recording.starts[trace] + np.timedelta64(round(1e9 * seconds), "ns")


def energies(before: Recording, after: Recording) -> tuple[Floats, float, float]:
    """Return Σ x² of each trace and Σ (x - y)² of all, in units of the largest magnitude, and that; gaps count as 0."""
    peak = max((float(np.nanmax(np.abs(finite(x)), initial=0)) for x in before.traces), default=0.0)
    scale = peak or 1.0  # squares of samples of any size stay finite
    squares, residual = np.zeros(len(before.traces)), 0.0
    for i, (x, y) in enumerate(zip(before.traces, after.traces, strict=True)):
        wide = finite(x) / scale
        squares[i] = np.nansum(np.abs(wide) ** 2)
        residual += float(np.nansum(np.abs(wide - np.asarray(y, wide.dtype) / scale) ** 2))
    return squares, residual, peak


def finite(samples: Array) -> Array:
    """Return the samples in at least double precision, with NaN for masked and infinite samples."""
    values = np.ma.filled(np.ma.asarray(samples).astype(np.result_type(samples, np.float64)), np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def residual_energy(before: Recording, after: Recording) -> float:
    """Return the energy of the residual, Σ (x - y)² / Σ x² over all samples outside gaps; 0 for silence."""
    squares, residual, _ = energies(before, after)
    return residual / float(sum(squares) or 1.0)


def describe(before: Recording, after: Recording, seconds: float) -> Facts:
    """Return every resolved option and the result, ready for JSON.

    ``sigma`` and ``thresholds`` are medians over the live traces, finest level first, in the units of the samples;
    their ``_range`` is from the 10th to the 90th percentile. For a section, each level has three bands. With rules that
    shrink the approximation of the last level, ``approximation_sigma`` and ``approximation_threshold`` belong to it.
    """
    outcome = after.outcome
    assert outcome is not None
    method = outcome.options
    return {
        **contents(before),
        **resolved(method, outcome.level),
        **_spread("sigma", "", before, outcome, lambda e: e.sigma),
        **_spread("thresholds", "", before, outcome, lambda e: e.thresholds),
        **_approximation(before, outcome),
        "residual_energy": residual_energy(before, after),
        "backend": outcome.backend,
        "seconds": seconds,
        "notes": [*after.notes, *([] if outcome.estimates else [unchanged(method, min(transformed(before, method)))])],
        "versions": versions(),
    }


def transformed(recording: Recording, method: Options) -> tuple[int, ...]:
    """Return the shape of the largest array that is transformed at once: the longest trace, or the section."""
    longest = max(len(trace) for trace in recording.traces)
    return (len(recording.traces), longest) if method.ndim == 2 else (longest,)


def unchanged(method: Options, samples: int) -> str:
    """Return the note for samples that are unchanged for want of levels, with wavelets that would have some."""
    if method.level == 0:
        return "unchanged: no levels were asked for"
    name, others = method.filters.name, with_levels(samples, method.filters)
    if method.ndim == 2:
        few = f"too few traces or samples for one level of {name} along both axes"
    else:
        few = "no trace is long enough for one level"
    return f"unchanged: {few}{others and f' ({samples}): '}{others}"


def resolved(method: Options, level: int) -> Facts:
    """Return the options, with defaults filled in."""
    return {
        "wavelet": method.filters.name,
        "taps": method.filters.dec_len,
        "mode": method.mode,
        "level": level,
        "rule": method.rule.option,
        "shrink": method.shrink_word,
        "sigma_estimate": method.sigma,
        "scope": method.scope,
        "keep": method.keep,
        "transform": method.transform.word,
        "spins": method.spins,
        **({"ndim": 2} if method.ndim == 2 else {}),
        **({"detrend": method.trend} if method.trend else {}),
        **({"blend": method.blend} if method.blend else {}),
        **({"basis": method.basis} if method.basis else {}),
    }


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that the result depends on."""
    pywavelets = metadata.version("PyWavelets")  # pywt.__version__ is an older one in some wheels
    return {"wavefilt": __version__, "numpy": np.__version__, "PyWavelets": pywavelets}


def examine(recording: Recording) -> Facts:
    """Return the contents of a recording, ready for JSON; noise and energy by level as in `describe`."""
    after = recording.apply(Options(rule=0.0), report=True)
    outcome = after.outcome
    assert outcome is not None
    (longest,) = transformed(recording, outcome.options)
    samples = [known(trace) for trace in recording.traces]
    facts = contents(recording)
    interval = facts["interval_s"]
    seconds = longest * interval if isinstance(interval, float) else None
    if recording.starts:
        last = max(_due(recording, i) for i in range(len(recording.traces)))
        seconds = (last - min(recording.starts)) / SECOND
    return {
        **facts,
        "dtype": np.result_type(*{trace.dtype for trace in recording.traces}).name,
        "duration_s": seconds,
        "gap_samples": sum(map(len, recording.traces)) - sum(map(len, samples)),
        "minimum": min((float(trace.real.min()) for trace in samples if len(trace)), default=None),
        "maximum": max((float(trace.real.max()) for trace in samples if len(trace)), default=None),
        "wavelet": outcome.options.filters.name,
        "max_level": max_level(longest, outcome.options.filters),
        **_spread("sigma", "_by_level", recording, outcome, lambda e: e.sigma),
        **_spread("mean_square", "_by_level", recording, outcome, lambda e: np.asarray(e.power)),
        "notes": list(recording.notes),
    }


def _spread(name: str, suffix: str, recording: Recording, outcome: Outcome, of: Callable[[Estimate], Floats]) -> Facts:
    """Return the median and the 10th and 90th percentile of each level over its live traces, finest level first."""
    live = recording.live if recording.live.any() and outcome.options.ndim == 1 else np.ones_like(recording.live)
    found = [of(estimate)[:, live[estimate.segments.rows]] for estimate in outcome.estimates]
    depth = max(map(len, found), default=0)
    levels = [np.concatenate([rows[i] for rows in found if len(rows) > i]) for i in range(depth)]
    medians, ranges = spread([level for level in levels if level.size])
    return {f"{name}{suffix}": medians, f"{name}_range{suffix}": ranges}


def _approximation(recording: Recording, outcome: Outcome) -> Facts:
    """Return median noise and threshold of the last approximation over live traces; nothing for most rules."""
    found = [
        estimate.approximation[:, recording.live[estimate.segments.rows]]
        for estimate in outcome.estimates
        if estimate.approximation is not None and len(estimate.sigma) == outcome.level
    ]
    numbers = np.concatenate(found, axis=1) if found else np.empty((2, 0))
    if not numbers.size:
        return {}
    sigma, threshold = np.median(numbers, axis=1).tolist()
    return {"approximation_sigma": sigma, "approximation_threshold": threshold}

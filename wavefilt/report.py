"""What a recording contains and what denoising did, as plain numbers: for summaries, `--json` and the sidecar."""

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
    """Format, traces, samples, sampling interval and times; a list with one entry per trace where they differ."""
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
    """A time as in ISO 8601, to microseconds, without zeros at its end."""
    rounded = (time + np.timedelta64(500, "ns")).astype("datetime64[us]")
    return f"{str(rounded).rstrip('0').rstrip('.')}Z"


def channels(recording: Recording) -> list[Facts]:
    """Times of the first and last sample of each id, and the gaps between its traces, negative where two overlap."""
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
    """Time of the sample after the last of a trace, or of one ``after`` that."""
    seconds = (len(recording.traces[trace]) + after) * (recording.intervals[trace] or 0)
    return recording.starts[trace] + np.timedelta64(round(1e9 * seconds), "ns")


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

    ``sigma`` and ``thresholds`` are medians over live traces, finest level first, in the units of the samples; their
    ``_range`` is from the 10th to the 90th percentile. In two dimensions they are of the three bands of each level.
    ``approximation_sigma`` and ``approximation_threshold`` are those of the approximation of the last level, with rules
    that shrink it.
    """
    outcome = after.outcome
    assert outcome is not None
    method = outcome.method
    return {
        **contents(before),
        **resolved(method, outcome.level),
        **_spread("sigma", "", before, outcome, lambda e: e.sigma),
        **_spread("thresholds", "", before, outcome, lambda e: e.thresholds),
        **_approximation(before, outcome),
        "energy_removed": energy_removed(before, after),
        "backend": outcome.backend,
        "seconds": seconds,
        "notes": [*after.notes, *([] if outcome.estimates else [unchanged(method, min(transformed(before, method)))])],
        "versions": versions(),
    }


def transformed(recording: Recording, method: Options) -> tuple[int, ...]:
    """The shape of what is transformed at once: of the longest trace, or of a panel."""
    longest = max(len(trace) for trace in recording.traces)
    return (len(recording.traces), longest) if method.dimensions == 2 else (longest,)


def unchanged(method: Options, samples: int) -> str:
    """The note for samples that are unchanged because there are no levels, with wavelets that would have some."""
    if method.level == 0:
        return "unchanged: no levels were asked for"
    name, others = method.filters.name, with_levels(samples, method.filters)
    if method.dimensions == 2:
        few = f"too few traces or samples for one level of {name} in two dimensions"
    else:
        few = "no trace is long enough for one level"
    return f"unchanged: {few}{others and f' ({samples}): '}{others}"


def resolved(method: Options, level: int) -> Facts:
    """What was asked for, defaults filled in."""
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
        **({"dimensions": 2} if method.dimensions == 2 else {}),
        **({"detrend": method.trend} if method.trend else {}),
        **({"blend": method.blend} if method.blend else {}),
        **({"basis": method.basis} if method.basis else {}),
    }


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that the result depends on."""
    pywavelets = metadata.version("PyWavelets")  # pywt.__version__ is an older one in some wheels
    return {"wavefilt": __version__, "numpy": np.__version__, "PyWavelets": pywavelets}


def estimates(after: Recording) -> list[Facts]:
    """Noise and thresholds of every trace (or segment between gaps), finest level first, ready for JSON.

    ``approximation`` has noise and threshold of the approximation, with rules that shrink it.
    """
    assert after.outcome is not None
    return [
        {
            "traces" if after.outcome.method.dimensions == 1 else "sections": e.segments.rows.tolist(),
            "first_samples": e.segments.starts.tolist(),
            "samples": e.segments.samples,
            "sigma": e.sigma.T.tolist(),
            "thresholds": e.thresholds.T.tolist(),
            **({} if e.approximation is None else {"approximation": e.approximation.T.tolist()}),
        }
        for e in after.outcome.estimates
    ]


def examine(recording: Recording) -> Facts:
    """What a recording contains, ready for JSON; noise and energy by level over live traces, as in `describe`."""
    after = recording.apply(Options(rule=0.0), report=True)
    outcome = after.outcome
    assert outcome is not None
    (longest,) = transformed(recording, outcome.method)
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
        "wavelet": outcome.method.filters.name,
        "max_level": max_level(longest, outcome.method.filters),
        **_spread("sigma", "_by_level", recording, outcome, lambda e: e.sigma),
        **_spread("mean_square", "_by_level", recording, outcome, lambda e: np.asarray(e.power)),
        "notes": list(recording.notes),
    }


def _spread(name: str, suffix: str, recording: Recording, outcome: Outcome, of: Callable[[Estimate], Floats]) -> Facts:
    """Median, and 10th and 90th percentile, of each level over the live traces that have it, finest level first."""
    live = recording.live if recording.live.any() and outcome.method.dimensions == 1 else np.ones_like(recording.live)
    found = [of(estimate)[:, live[estimate.segments.rows]] for estimate in outcome.estimates]
    depth = max(map(len, found), default=0)
    levels = [np.concatenate([rows[i] for rows in found if len(rows) > i]) for i in range(depth)]
    medians, ranges = spread([level for level in levels if level.size])
    return {f"{name}{suffix}": medians, f"{name}_range{suffix}": ranges}


def _approximation(recording: Recording, outcome: Outcome) -> Facts:
    """Median noise and threshold of the approximations of the last level over live traces; none with most rules."""
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

"""The contents of a recording and the results of denoising as plain numbers: for summaries, `--json` and logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from wavefilt._version import __version__
from wavefilt.arrays import Array, Floats, constant, known
from wavefilt.engine import spread
from wavefilt.options import SECOND, NoiseForm, Options
from wavefilt.wavelets.filters import max_level, shorter

if TYPE_CHECKING:
    from wavefilt.engine import Estimate, Outcome
    from wavefilt.recording import DeclaredNoise, Recording

SEARCHED = 1 << 18
"""Most samples in which a quiet window is searched for."""
LITTLE, MUCH = 0.01, 0.5
"""Shares of the residual in the energy of the noise, and in that of the record, below and above which it is stated."""
MAINS, HUM_DB, PERIODS, HUMMING = (50.0, 60.0), 13.0, 25, 48
"""Frequencies of hum in Hz, its height in a spectrum, periods in a trace that are needed, and most traces used."""

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
    """Describe name, format, size, sampling, first sample, and the number of live traces in words."""
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
    return recording.starts[trace] + np.timedelta64(round(1e9 * min(seconds, 4e9)), "ns")  # of damaged headers


class Energies(NamedTuple):
    """Energies of each trace and of the residual of all, in squares of ``unit``, the largest magnitude.

    They are sums of squares about the mean of each trace; gaps count as 0.
    """

    traces: Floats
    residual: float
    unit: float

    @property
    def share(self) -> float:
        """The energy of the residual as a share of that of the traces; 0 for silence."""
        return self.residual / float(self.traces.sum() or 1.0)


def energies(before: Recording, after: Recording) -> Energies:
    """Return the energies of a recording and of what denoising removed."""
    peak = max((float(np.nanmax(np.abs(finite(x)), initial=0)) for x in before.traces), default=0.0)
    scale = peak or 1.0  # squares of samples of any size stay finite
    squares, residual = np.zeros(len(before.traces)), 0.0
    for i, (x, y) in enumerate(zip(before.traces, after.traces, strict=True)):
        wide = finite(x) / scale
        squares[i] = _about_mean(wide)
        residual += _about_mean(wide - np.asarray(y, wide.dtype) / scale)
    return Energies(squares, residual, peak)


def _about_mean(samples: Array) -> float:
    """Return the sum of squares about the mean."""
    samples = known(samples)
    return float(np.sum(np.abs(samples - samples.mean()) ** 2)) if samples.size else 0.0


def finite(samples: Array) -> Array:
    """Return the samples in at least double precision, with NaN for masked and infinite samples."""
    values = np.ma.filled(np.ma.asarray(samples).astype(np.result_type(samples, np.float64)), np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def some(names: Sequence[str]) -> str:
    """Return the first three names, which may have commas in them, and the number of the others."""
    between = "; " if any("," in name for name in names) else ", "
    return between.join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def noise_energy(before: Recording, sigma: NoiseForm, unit: float) -> float:
    """Return the energy of the noise in all traces in squares of ``unit``, by a noise model of some of them."""
    from wavefilt.noise import estimates

    rows = _some_live(before) / unit
    model = estimates(rows, sigma if isinstance(sigma, str | tuple) else sigma / unit)[0]
    energy = float(model.variance @ np.isfinite(rows).sum(axis=1))
    return energy * int(before.live.sum()) / max(len(rows), 1)


def statements(before: Recording, after: Recording, measured: Energies | None = None) -> list[str]:
    """Return warnings about a denoised recording, with options in backticks: little or much was changed, or hum.

    Its energies are computed unless they are given as ``measured``.
    """
    outcome, found = after.outcome, []
    if outcome is None or not outcome.estimates:
        return []
    options = outcome.options
    given = bool(options.rule.values) or not isinstance(options.sigma, str | tuple)  # thresholds or noise in numbers
    window = "" if isinstance(options.sigma, tuple) else ", or give a noise window"
    squares, residual, peak = measured or energies(before, after)
    most = float(squares.sum())
    # estimating the noise takes longer, and is only needed if little was removed; its model is for real samples
    measurable = 0 < residual < LITTLE * most and not before.complex
    noise = noise_energy(before, after.judged_by(before), peak or 1.0) if measurable else 0.0
    if residual < LITTLE * noise or residual == 0 < most:
        little = "nothing was removed"
        if residual:
            share = max(100 * residual / noise, 0.01)
            little = f"almost {little}, {share:.1g} % of the energy of the noise"
        found.append(little + ("" if given else f": try `preset=strong`{window}"))
    if residual > MUCH * most:
        much = f"{100 * residual / most:.0f} % of the variance of the record was removed as noise: check the residual"
        gentler = "; `preset=gentle` removes less" if options.rule.local else ""
        found.append(much + ("" if given else window + gentler))
    interval = before.recipe["interval"]
    if interval and not before.complex and len({len(trace) for trace in before.traces}) == 1:
        lines = hum(before.rows() - after.rows(), interval)
        found += [f"hum at {line:g} Hz in the residual, {level:.0f} dB above its surroundings" for line, level in lines]
    return found


def hum(rows: Array, interval: float) -> list[tuple[float, float]]:
    """Return the lines of `MAINS` in the mean spectrum of traces, with their heights in dB; gaps count as 0."""
    samples = rows.shape[1]
    live = np.flatnonzero(~constant(rows, gaps=True))[:HUMMING]
    duration, found = samples * interval, []
    if duration < PERIODS / MAINS[0] or not len(live):
        return []
    chosen = np.nan_to_num(rows[live].real.astype(np.float64))
    chosen = (chosen - chosen.mean(axis=1, keepdims=True)) / np.abs(chosen).max(axis=1, keepdims=True)
    power = np.mean(np.abs(np.fft.rfft(chosen * np.hanning(samples))) ** 2, axis=0)
    frequency = np.fft.rfftfreq(samples, interval)
    for line in MAINS:
        distance = np.abs(frequency - line)
        near, around = distance <= 1 / duration, (distance > 3 / duration) & (distance < line / 3)
        if line < 0.4 / interval and near.any() and np.count_nonzero(around) >= 8:
            level = 10 * np.log10(power[near].max() / max(float(np.median(power[around])), 1e-300))
            found += [(line, float(level))] if level > HUM_DB else []
    return found


def describe(before: Recording, after: Recording, seconds: float) -> Facts:
    """Return every resolved option and the result, ready for JSON.

    ``sigma`` and ``thresholds`` are medians over the live traces, finest level first, in the units of the samples;
    their ``_range`` is from the 10th to the 90th percentile. For a section, each level has three bands.
    """
    outcome = after.outcome
    assert outcome is not None
    options, statics, measured = outcome.options, outcome.statics, energies(before, after)
    samples = min(transformed(before, options)) if any(known(trace).size for trace in before.traces) else 0
    return {
        **contents(before),
        **resolved(options, outcome.level),
        **_spread("sigma", "", before, outcome, lambda e: e.sigma),
        **_spread("thresholds", "", before, outcome, lambda e: e.thresholds),
        **({name: getattr(statics, name)[0].round(3).tolist() for name in ("shifts", "factors")} if statics else {}),
        **declared(after.noise, options),
        "residual_energy": measured.share,
        "statements": statements(before, after, measured),
        "backend": outcome.backend,
        "seconds": seconds,
        "notes": [
            *after.notes,
            *([] if outcome.estimates else [unchanged(options, samples)]),
        ],
        "versions": versions(),
    }


def declared(noise: DeclaredNoise | None, options: Options) -> Facts:
    """Return the origin of the noise that headers declare, if these options use it."""
    return {"noise": noise.source} if noise and set(noise.sigmas(options)) != {"level"} else {}


def transformed(recording: Recording, options: Options) -> tuple[int, ...]:
    """Return the shape of the largest array that is transformed at once: the longest trace, or the section."""
    longest = max(len(trace) for trace in recording.traces)
    return (len(recording.traces), longest) if options.ndim == 2 else (longest,)


def unchanged(options: Options, samples: int) -> str:
    """Return the note on why a file is unchanged, with a wavelet that would have a level, if any."""
    if options.level == 0:
        return "unchanged: no levels were asked for"
    if not samples:
        return "unchanged: no samples outside gaps"
    name, other, section = options.filters.name, shorter(samples, options.filters, 1), options.ndim == 2
    if options.deepest(*[samples] * options.ndim):
        if section:
            return "unchanged: all samples of the section are equal"
        return f"unchanged: no segment between gaps is long enough for one level of {name}"
    few = f"{'1 sample is' if samples == 1 else f'{samples} samples are'} too few for one level of {name}"
    if section:
        few = f"too few traces or samples for one level of {name} along both axes"
    return f"unchanged: {few}" + (f"; {other} would have one" if other else "")


def resolved(options: Options, level: int) -> Facts:
    """Return the options, with defaults filled in, and the method in words."""
    return {
        "method": options.summary(level),
        "wavelet": options.filters.name,
        "taps": options.filters.dec_len,
        "mode": options.mode,
        "level": level,
        "rule": options.rule.option,
        "shrink": options.shrink_word,
        "sigma_estimate": options.sigma,
        "scope": options.scope,
        "keep": options.keep,
        "transform": options.transform.word,
        "spins": options.spins,
        **({"ndim": 2} if options.ndim == 2 else {}),
        **({"detrend": options.trend} if options.trend else {}),
        **({"blend": options.blend} if options.blend else {}),
        **({"basis": options.basis} if options.basis else {}),
        **({"statics": True} if options.statics else {}),
    }


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that the result depends on."""
    pywavelets = metadata.version("PyWavelets")  # pywt.__version__ is an older one in some wheels
    return {"wavefilt": __version__, "numpy": np.__version__, "PyWavelets": pywavelets}


def field_facts(recording: Recording) -> Facts:
    """Return delay, date, positions and units from the headers of traces; a list if they differ between traces."""
    headers = recording.headers.traces
    if not headers:
        return {}
    first = headers[0]

    def one_or_all(values: Iterable[Any]) -> Any:
        found = list(values)
        return found[0] if all(value == found[0] for value in found) else found

    facts = {
        "delay_s": one_or_all(recording.delays) if recording.delays else first.delay,
        "date": None if first.time is None else utc(first.time) if first.utc else utc(first.time).removesuffix("Z"),
        "source": one_or_all(header.source or None for header in headers),
        "receiver": one_or_all(header.receiver or None for header in headers),
        "length_unit": first.length_unit if first.source or first.receiver else None,
        "units": first.units,
        "factor": one_or_all(header.factor for header in headers),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _some_live(recording: Recording) -> Array:
    """Return evenly spread live traces with at most `SEARCHED` samples, NaN in gaps."""
    rows, live = recording.rows(), np.flatnonzero(recording.live)
    return finite(rows[live[:: -(-len(live) * rows.shape[1] // SEARCHED) or 1]])


def noise_facts(recording: Recording) -> Facts:
    """Return the noise window that headers declare, or else one that is found in some of the traces."""
    from wavefilt.noise import quiet_window, without_flat_parts

    clock, declared = recording.clock(0), recording.declared_noise
    window: tuple[int, int] | None = None
    if declared is not None and declared.common:
        window = declared.common[1:]
    elif declared is None and len(recording.traces) and not recording.complex:
        found = quiet_window(without_flat_parts(_some_live(recording)))
        window = found and (found.start, found.stop)
    timed = window is not None and clock.interval
    return {
        "source": declared.source if declared else "quiet window found" if window else "no quiet window found",
        **({"window_s": [clock.time(edge) for edge in window]} if timed and window else {"window": window}),
    }


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
        **field_facts(recording),
        "noise": noise_facts(recording),
        "notes": list(recording.notes),
    }


def _spread(name: str, suffix: str, recording: Recording, outcome: Outcome, of: Callable[[Estimate], Floats]) -> Facts:
    """Return the median and the 10th and 90th percentile of each level over its live traces, finest level first."""
    live = recording.live if recording.live.any() and outcome.options.ndim == 1 else np.ones_like(recording.live)
    found = [of(estimate)[:, live[estimate.segments.rows]] for estimate in outcome.estimates]
    medians, ranges = spread(found)
    return {f"{name}{suffix}": medians, f"{name}_range{suffix}": ranges}

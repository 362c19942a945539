"""`wavefilt info`."""

from __future__ import annotations

import json

import click

from wavefilt.errors import printable
from wavefilt.report import Facts, examine

from . import Failure, run_errors, tell, usage_errors
from .denoise import spreads
from .files import expanded, read
from .options import INPUT, LAYOUT, chosen, command, layout_of

MOST = 20
"""Channels that are listed."""


@command(
    "info",
    click.Argument(["inputs"], nargs=-1, required=True, type=INPUT, metavar="FILE..."),
    *chosen(LAYOUT, "as_json"),
    example="wavefilt info seismic.dat",
)
def info(inputs: tuple[str, ...], as_json: bool, format: str | None, **layout: object) -> None:
    """Show the contents of files: format, traces, times, positions and gaps, noise and energy by level.

    Amplitudes are in the units of the file. The noise of a level is measured in the noise window that the headers
    declare, otherwise in the whole trace, as the median absolute detail coefficient of the default wavelet divided by
    0.6745; the median and the 10th and 90th percentiles over the live traces are shown. A trace is live if it is not
    constant.
    """
    with usage_errors():
        described = layout_of(layout)
    paths, failures = list(expanded(inputs, results=True)), list[Failure]()
    for i, path in enumerate(paths):
        try:
            with run_errors(path):
                facts = examine(read(path, described, format)) | {"input": path}
                shown = json.dumps(facts, allow_nan=False) if as_json else text(facts)
        except Failure as failure:
            if len(paths) == 1:
                raise
            failures.append(failure)
            tell(f"wavefilt: error: {failure}")
            continue
        blank = "\n" if i and not as_json else ""
        click.echo(f"{blank}{shown}")
    if failures:
        raise Failure(f"{len(failures)} of {len(paths)} files cannot be shown", 4)


def text(facts: Facts) -> str:
    """Return a line for each fact with its unit, the channels of the file, and a table of its levels."""
    empty = facts["traces"] - facts["live_traces"] - facts["dead_traces"]
    counts = {"live": facts["live_traces"], "dead (constant)": facts["dead_traces"], "without samples": empty}
    traces = [f"{count} {name}" for name, count in counts.items() if count or name == "live"]
    amplitudes = "none" if facts["minimum"] is None else f"{facts['minimum']:.4g} to {facts['maximum']:.4g}"
    rows = {
        "format": f"{facts['format']}, {facts['dtype']}",
        "traces": f"{facts['traces']}: {', '.join(traces)}",
        "samples": f"{_range(facts['samples'], ',d')} per trace",
        "interval": _seconds(facts["interval_s"]),
        "duration": _seconds(facts["duration_s"]),
        "amplitudes": f"{amplitudes} (units of the file)",
        **_field(facts),
    }
    if facts["gap_samples"]:
        rows["gaps"] = f"{facts['gap_samples']:,} samples are NaN or masked"
    lines = [facts["input"], *(f"  {name:11}{value}" for name, value in rows.items())]
    channels = facts.get("channels", [])
    for channel in channels[:MOST]:
        lines.append(f"  {channel['id']:20} {channel['start']} to {channel['end']}, {channel['samples']:,} samples")
        for gap in channel["gaps"]:
            kind = "gap" if gap["seconds"] > 0 else "overlap"
            lines.append(f"    {kind} of {abs(gap['seconds']):.6g} s from {gap['from']}")
    if len(channels) > MOST:
        lines.append(f"  and {len(channels) - MOST} more channels; --json lists them all")
    return "\n".join(map(printable, [*lines, *_levels(facts), *(f"  note: {note}" for note in facts["notes"])]))


def _field(facts: Facts) -> dict[str, str]:
    """Return delay, date, positions and units, if the headers give them, and the noise window."""
    rows = {}
    if facts.get("delay_s"):
        event = "origin or reference time" if facts["format"] == "sac" else "trigger"
        rows["delay"] = f"{_seconds(facts['delay_s'])}, the time of the first sample, counted from the {event}"
    if "date" in facts:
        rows["date"] = facts["date"] if facts["date"].endswith("Z") else f"{facts['date']} (local time)"
    for name, plural in (("source", "sources"), ("receiver", "receivers")):
        if place := facts.get(name):
            ends = [place[0], place[-1]] if isinstance(place, list) else [place]
            rows[plural if len(ends) > 1 else name] = f"{' to '.join(map(_place, ends))} {facts['length_unit']}"
    if "units" in facts:
        factors = facts.get("factor") or [None]
        factor = "" if isinstance(factors, list) and None in factors else _range(factors, ".6g")
        rows["units"] = facts["units"] + (f", after multiplication by {factor}" if factor else "")
    noise = facts["noise"]
    words, edges = "{:.4g} to {:.4g} s: ", noise.get("window_s")
    if edges is None:
        words, edges = "sample {} to {}: ", noise["window"]
    return rows | {"noise": (words.format(*edges) if edges else "") + noise["source"]}


def _place(position: tuple[float, ...] | None) -> str:
    """Return coordinates without zeros at the end; several are in parentheses."""
    if position is None:
        return "unknown"
    last = max((i for i, value in enumerate(position) if value), default=0)
    numbers = ", ".join(f"{value:.10g}" for value in position[: last + 1])
    return f"({numbers})" if last else numbers


def _levels(facts: Facts) -> list[str]:
    """Return the table of noise and energy, with the frequencies of each level if they are known."""
    lines = [f"  {facts['wavelet']}, up to level {facts['max_level']}; median (10 % to 90 %) of live traces:"]
    interval = facts["interval_s"]
    columns = [spreads(facts[f"{name}_by_level"], facts[f"{name}_range_by_level"]) for name in ("sigma", "mean_square")]
    for level, (noise, energy) in enumerate(zip(*columns, strict=True), 1):
        name = f"level {level}{', finest' if level == 1 else ''}"
        known = isinstance(interval, float) and interval > 0
        band = f"{0.5 / interval / 2**level:.4g} to {1 / interval / 2**level:.4g} Hz" if known else ""
        band = f"{band:20}" if known else ""
        lines.append(f"    {name:16}{band}sigma {noise:28} mean square {energy}")
    return lines if len(lines) > 1 else [f"  {facts['wavelet']}: too short for one level"]


def _range(value: int | float | list[float], format: str) -> str:
    """Return a value, or the smallest and largest of several."""
    values = value if isinstance(value, list) else [value]
    return " to ".join(f"{v:{format}}" for v in sorted({min(values), max(values)}))


def _seconds(value: float | list[float | None] | None) -> str:
    if value is None or (isinstance(value, list) and None in value):
        return "unknown"
    return f"{_range(value, '.6g')} s"  # type: ignore[arg-type]

"""The messages of `wavefilt denoise` about a file: one line, details, or a JSON object."""

from __future__ import annotations

import json

import click

from wavefilt.cli.failure import tell
from wavefilt.memory import spelled
from wavefilt.transforms import find

from .batch_summary import Facts
from .options import Options


def show(facts: Facts, options: Options, line: bool) -> None:
    """JSON on standard output; the line (if wanted) and details on standard error.

    Notes are details, but those of a file that stays as it was, or is streamed unasked, go with the line.
    """
    if options.as_json:
        click.echo(json.dumps(facts, allow_nan=False))
    line = line and not options.quiet
    if line:
        tell(_intention(facts) if "dry_run" in facts else _line(facts))
    if options.verbose and "dry_run" not in facts:
        tell(*_details(facts))
    if line and "trust" in facts:
        tell(f"  {facts['trust']['summary']}")
    unasked = "max_memory" in facts and not options.max_memory
    if options.verbose or (line and (unasked or facts["level"] == 0)):
        tell(*(f"  note: {note}" for note in facts["notes"]))


def _line(facts: Facts) -> str:
    sigma = sorted(set(facts["sigma"]))
    spread = "..".join(f"{value:.3g}" for value in (sigma if len(sigma) < 3 else [sigma[0], sigma[-1]])) or "unknown"
    return (
        f"{facts['input']} -> {facts['output']}  {_method(facts)}  sigma {spread}  "
        f"removed {100 * facts['energy_removed']:.2g} % energy  {facts['seconds']:.2g} s ({facts['backend']})"
    )


def _intention(facts: Facts) -> str:
    size, lengths = facts["bytes"], facts["samples"]
    samples = f"{min(lengths)} to {max(lengths)}" if isinstance(lengths, list) else lengths
    return (
        f"{facts['input']} -> {facts['output']}  {facts['format']}, {facts['traces']} traces x {samples} samples, "
        f"{spelled(size)}  {_method(facts)}  about {spelled(4 * size)} of memory (dry run)"
    )


def _method(facts: Facts) -> str:
    rule = facts["rule"] if isinstance(facts["rule"], str) else "thresholds"
    transform = "" if facts["transform"] == "dwt" else f"{facts['transform'].upper()} "
    if "dimensions" in facts:
        transform = f"2-D {transform}"
    deep = f"L{facts['level']} " if find(facts["transform"], facts.get("dimensions", 1)).has_levels else ""
    spins = f" {facts['spins']} spins" if facts["spins"] > 1 else ""
    return f"{facts['wavelet']} {transform}{deep}{rule} {facts['shrink']}{spins}"


def _details(facts: Facts) -> list[str]:
    kind = find(facts["transform"], facts.get("dimensions", 1))
    bands = [f" {band}" for band in kind.band_names] if kind.ndim > 1 else [""]
    names = [f"level {i}{band}" for i in range(1, facts["level"] + 1) for band in bands]
    if not kind.has_levels:  # bands are frequencies
        step, own = facts["interval_s"], kind.bands(facts["level"])
        known = isinstance(step, float) and step > 0
        names = [f"{i / (2 * facts['level'] * step):.4g} Hz" if known else own[-1 - i].name for i in range(len(own))]
        names.reverse()
    columns = [
        spreads(facts[name], facts.get(f"{name}_range", [None] * len(facts[name]))) for name in ("sigma", "thresholds")
    ]
    lines = []
    told = "" if kind.ndim > 1 else "; of these, median (10 % to 90 %), level 1 the finest:"
    if names and "noisy_traces" in facts and facts["traces"] > 1:  # of a file that was streamed
        lines = [f"  {facts['noisy_traces']} of {facts['traces']} traces have noise{told}"]
    elif names and "live_traces" in facts and (facts["dead_traces"] or (facts["traces"] > 1 and told)):
        lines = [f"  {facts['live_traces']} of {facts['traces']} traces are live{told}"]
    rows = [*zip(names, *columns, strict=False)]
    if "approximation_sigma" in facts:
        both = (spreads([facts[f"approximation_{name}"]], [None])[0] for name in ("sigma", "threshold"))
        rows.append(("approximation", *both))
    return lines + [f"  {name}: sigma {sigma}, threshold {threshold}" for name, sigma, threshold in rows]


def spreads(medians: list[float], ranges: list[list[float] | None]) -> list[str]:
    """Medians with their ranges, where there are any."""
    texts = []
    for median, limits in zip(medians, ranges, strict=True):
        spread = f" ({limits[0]:.4g} to {limits[1]:.4g})" if limits and limits[0] < limits[1] else ""
        texts.append(f"{median:.4g}{spread}")
    return texts

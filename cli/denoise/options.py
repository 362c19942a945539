"""The options of `wavefilt denoise` once they are parsed."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import click

from wavefilt.io import Layout
from wavefilt.options import NoiseForm
from wavefilt.options import Options as Method
from wavefilt.plotting import PlotOptions

TRANSFORM = ("wavelet", "level", "mode", "transform", "spins", "detrend")
METHOD = (*TRANSFORM, "rule", "shrink", "sigma", "scope", "keep", "blend", "basis")
NOISE = {
    "noise_window": "seconds",
    "noise_before": "before",
    "noise_running": "running",
    "noise_intervals": "intervals",
}
"""Options that tell the noise in seconds, times and picks, and what ``sigma`` is by them."""
LAYOUT = tuple(field.name for field in fields(Layout))
DRAWING = tuple(field.name for field in fields(PlotOptions))


@dataclass(frozen=True)
class Options:
    """Every option by the name of its parameter; those of the method and of the file's layout are together."""

    method: Method
    layout: Layout
    given: dict[str, object]
    """The parameters as they were parsed, for the sidecar."""
    format: str | None
    output: str | None
    out_dir: str | None
    noise: NoiseForm | None
    """By --noise-window and its like, in seconds, times and picks; None where the method has it."""
    two_dimensional: bool
    backend: str
    scheduler: str | None
    fast_math: bool
    devices: str | tuple[int, ...] | None
    max_memory: int | None
    overwrite: bool
    dry_run: bool
    keep_going: bool
    log: str | None
    plot: str | None
    report: str | None
    drawing: PlotOptions
    removed: str | None
    sidecar: bool
    as_json: bool
    verbose: bool
    quiet: bool
    many: bool = False
    """Whether there are several inputs, of which ``report`` has a line each."""

    @classmethod
    def of(cls, parsed: dict[str, Any]) -> Options:
        """From the parameters of the command. Raises UsageError for values, or for two of them, that make no sense."""
        layout = Layout(**{name: parsed[name] for name in LAYOUT})
        dimensions: Literal[1, 2] = 2 if parsed["two_dimensional"] else 1
        method = Method(**{name: parsed[name] for name in METHOD}, dimensions=dimensions)
        rest = {field.name: parsed[field.name] for field in fields(cls) if field.name in parsed}
        given = {**parsed, "wavelet": method.wavelet, "rule": method.rule.option}
        drawing = PlotOptions(**{name: parsed[name] for name in DRAWING})
        options = cls(
            method=method, layout=layout, given=given, noise=noise_of(parsed, method), drawing=drawing, **rest
        )
        options.check()
        return options

    def check(self) -> None:
        for name, given in (("--fast-math", self.fast_math), ("--devices", self.devices)):
            if given and self.backend != "cuda":
                raise click.UsageError(f"{name} is an option of --backend cuda")
        drawn = [name for name in DRAWING if self.given[name] is not None]
        if drawn and not self.plot:
            raise click.UsageError(f"--{drawn[0].replace('_', '-')} is an option of --plot")
        if self.quiet and self.verbose:
            raise click.UsageError("-q and -v contradict each other")


def noise_of(parsed: dict[str, Any], method: Method) -> NoiseForm | None:
    """What one of `NOISE` says. Raises UsageError for two of them, and for what does not go with them."""
    given = [name for name in NOISE if parsed[name] is not None]
    if not given:
        return None
    flags = [f"--{name.replace('_', '-')}" for name in given]
    if method.dimensions == 2:
        raise click.UsageError(f"{flags[0]} is for traces, not for --two-dimensional; leave one out")
    if method.sigma != "level" or len(flags) > 1:
        other = "--sigma" if len(flags) == 1 else flags[1]
        raise click.UsageError(f"{flags[0]} and {other} both tell the noise: give one")
    name, value = given[0], parsed[given[0]]
    found: NoiseForm = (NOISE[name], *value) if isinstance(value, tuple) else (NOISE[name], value)
    if NOISE[name] in ("running", "intervals"):
        replace(method, sigma=("running", 4))  # raises what is said of rules that cannot have it
    return found

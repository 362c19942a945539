"""The options of `wavefilt denoise` once they are parsed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import click

from wavefilt.io import Layout
from wavefilt.method import Method

TRANSFORM = ("wavelet", "level", "mode", "transform", "spins", "detrend")
METHOD = (*TRANSFORM, "rule", "shrink", "sigma", "scope", "keep", "blend")
LAYOUT = tuple(field.name for field in fields(Layout))


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
    noise_window: tuple[float, float] | None
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
    removed: str | None
    sidecar: bool
    as_json: bool
    verbose: bool
    quiet: bool

    @classmethod
    def of(cls, parsed: dict[str, Any]) -> Options:
        """From the parameters of the command. Raises UsageError for values, or for two of them, that make no sense."""
        layout = Layout(**{name: parsed[name] for name in LAYOUT})
        dimensions: Literal[1, 2] = 2 if parsed["two_dimensional"] else 1
        method = Method(**{name: parsed[name] for name in METHOD}, dimensions=dimensions)
        rest = {field.name: parsed[field.name] for field in fields(cls) if field.name in parsed}
        options = cls(method=method, layout=layout, given=parsed, **rest)
        options.check()
        return options

    def check(self) -> None:
        for name, given in (("--fast-math", self.fast_math), ("--devices", self.devices)):
            if given and self.backend != "cuda":
                raise click.UsageError(f"{name} is an option of --backend cuda")
        if self.noise_window and self.two_dimensional:
            raise click.UsageError("--noise-window is for traces, not for --two-dimensional; leave one out")
        if self.noise_window and self.method.sigma != "level":
            raise click.UsageError("--noise-window and --sigma both tell the noise: give one")
        if self.quiet and self.verbose:
            raise click.UsageError("-q and -v contradict each other")

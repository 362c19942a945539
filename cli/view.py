"""`wavefilt view`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from wavefilt.errors import for_command

from .denoise import paths
from .denoise.main import COMPUTING, METHOD, OUTPUT
from .denoise.main import command as denoise
from .denoise.options import METHOD as NAMES
from .denoise.options import Options
from .failure import Failure, run_errors, tell, usage_errors
from .options import INPUT, add
from .reading import LAYOUT, read


@click.command("view", epilog="Example: wavefilt view seismic.dat --rule sure")
@click.argument("input", type=INPUT, metavar="FILE")
@add(OUTPUT[0], *METHOD, COMPUTING[0], *LAYOUT)
@click.option("--overwrite", is_flag=True, help="Let the button Save replace an existing file.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the page; 0 is any that is free.")
@click.option("--no-browser", is_flag=True, help="Print the address of the page, and open no browser.")
def command(input: str, port: int, no_browser: bool, overwrite: bool, **parsed: Any) -> None:
    """Show a file before and after denoising and the residual, on a page with controls for the options.

    Only this machine can open the page, and only by its address, which has a random token. The button Save writes the
    file that `wavefilt denoise` would. Ctrl-C ends it.
    """
    others = dict.fromkeys(str(parameter.name) for parameter in denoise.params)
    with usage_errors():
        options = Options.of({**others, **parsed, "overwrite": True})
        jobs = paths.plan((input,), options)
    if input == "-" or len(jobs) > 1:
        raise click.UsageError("view takes one file")
    try:
        from wavefilt import plotting

        plotting.check_installed()
    except ImportError as error:
        raise Failure(str(error), 1) from error
    from wavefilt.containers import of_file
    from wavefilt.plotting.viewer import Viewer, run
    from wavefilt.plotting.viewer import denoise as denoised

    ((path, target),) = jobs
    recording, _ = read(path, options.layout, options.format)
    given = {name: parsed[name] for name in (*NAMES, "two_dimensional")}
    if options.noise is not None:
        given["sigma"] = options.noise
    with run_errors(path):
        traces = of_file(path, recording, {"format": options.format, **asdict(options.layout)})
        first = denoised(traces, given, options.backend)

    def page() -> Viewer:
        return Viewer(first, output=target, overwrite=overwrite, target=options.output, words=for_command)

    try:
        run(
            page,
            f"{traces.name} - wavefilt",
            port,
            not no_browser,
            lambda address: tell(f"{address}  (Ctrl-C ends it)"),
        )
    except OSError as error:
        raise Failure(f"port {port}: {error.strerror or error}; use another --port, or none", 1) from error

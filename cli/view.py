"""`wavefilt view`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from . import Failure, message, run_errors, tell, usage_errors
from .files import expanded, plan, read
from .options import INPUT, IO, LAYOUT, METHOD, NOISE, OPTIONS, Option, Request, chosen, command


@command(
    "view",
    click.Argument(["input"], type=INPUT, metavar="FILE"),
    *chosen("output", METHOD, NOISE, "backend", LAYOUT, "overwrite"),
    Option("--port", group=IO, type=click.IntRange(0, 65535), default=0, help="Port of the page; 0 is any free port."),
    Option("--no-browser", group=IO, is_flag=True, help="Print the address of the page and open no browser."),
    example="wavefilt view seismic.dat --rule sure",
)  # fmt: skip
def view(input: str, port: int, no_browser: bool, overwrite: bool, **parsed: Any) -> None:
    """Show a file before and after denoising, and the residual, on a page in the browser with controls for all options.

    Only this machine can open the page, at an address that contains a random token. The button Save writes the file
    that `wavefilt denoise` would write. Ctrl-C ends the command.
    """
    with usage_errors():
        request = Request.of({**dict.fromkeys(OPTIONS), **parsed, "overwrite": True})
    if input == "-" or len(expanded((input,), results=request.output is not None)) > 1:
        raise click.UsageError("view takes one file")
    ((path, target),) = plan((input,), request)
    with run_errors("view"):
        from wavefilt import plotting

        plotting.check_installed()
    from wavefilt.containers import of_recording
    from wavefilt.io.files import check_output
    from wavefilt.plotting import viewer

    recording = read(path, request.layout, request.format)
    with usage_errors():
        check_output(recording, Path(target))
    with run_errors(path):
        traces = of_recording(recording)
        first = viewer.denoise(traces, request.given, request.backend, request.preset)

    page = partial(viewer.Viewer, first, output=target, overwrite=overwrite, target=request.output, words=message)
    try:
        viewer.run(
            page,
            f"{traces.name} - wavefilt",
            port,
            not no_browser,
            lambda address: tell(f"{address}  (Ctrl-C ends it)"),
        )
    except OSError as error:
        raise Failure(f"port {port}: {error.strerror or error}; use another --port, or none", 1) from error

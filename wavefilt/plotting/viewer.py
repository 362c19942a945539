"""The viewer: a page with traces before and after denoising and controls for the options, by Panel, and its server."""

from __future__ import annotations

import asyncio
import html
import os
import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import panel as pn
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from panel.io.server import build_applications
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import ErrorHandler

from wavefilt import interrupts
from wavefilt.advice.page import badge, marked
from wavefilt.arrays import Array
from wavefilt.backends import Backend
from wavefilt.backends.registry import REFERENCE, check_name
from wavefilt.containers import Container
from wavefilt.engine import Outcome
from wavefilt.errors import BackendUnavailable
from wavefilt.options import check_names, completed
from wavefilt.recording import Recording
from wavefilt.report import energies, resolved, statements, transformed, unchanged

from .bokeh_figures import PALETTE, DetailFigures, SectionFigures, toolbar
from .controls import WIDE, BandPass, Controls, Look

LARGE, COMPILED = 1 << 17, "numba"
"""Samples from which "auto" means compiled kernels: a page denoises the same samples many times."""
ERRORS = (ValueError, TypeError, BackendUnavailable, MemoryError)
"""Errors of invalid options, whose text is shown to the user."""
JUDGED = 1 << 18
"""Samples of a large recording that the verdict is based on."""
STICKY = {"position": "sticky", "top": "0", "z-index": "9", "background": "white"}
"""The toolbar stays visible while the figures scroll."""
BAD, GOOD = "#b00020", "#00695c"
COPY = "navigator.clipboard.writeText(text.value)"
WRAPPED = [":host { max-width: 100% } .bk-btn { white-space: normal !important }"]
TEXT = ["textarea { font: 12px monospace !important; opacity: 1 !important; -webkit-text-fill-color: #222 !important }"]
HOST = "127.0.0.1"
ROUNDS = 10
"""Times that unfinished tasks are awaited: tasks begin other tasks."""
PAGE = """{% extends base %}
{% block postamble %}
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body { font-family: sans-serif; padding: 4px 8px; overflow-wrap: anywhere }</style>
{% endblock %}
"""


# --------------------------------------------------------------------------------------------------------- results


@dataclass(frozen=True)
class Result:
    """The denoised recording for some options of `Recording.denoise`: those ``given``, and a preset."""

    traces: Container
    given: dict[str, Any]
    preset: str | None
    backend: str | Backend
    after: Recording
    seconds: float

    @property
    def options(self) -> dict[str, Any]:
        """The given options, completed with the preset or the recipe."""
        return completed(self.given, self.preset, **self.traces.recording.recipe)

    @property
    def outcome(self) -> Outcome:
        """How the traces were denoised."""
        assert self.after.outcome is not None
        return self.after.outcome

    def summary(self) -> tuple[str, list[str]]:
        """Return a line with the method, the share of the residual in the energy, and the time; and the statements."""
        before, outcome = self.traces.recording, self.outcome
        measured = energies(before, self.after)
        used = outcome.options.summary(outcome.level)
        note = "" if outcome.estimates else f"; {unchanged(outcome.options, min(transformed(before, outcome.options)))}"
        took = f"{1e3 * self.seconds:.0f} ms ({outcome.backend})"
        line = f"{used}; residual: {100 * measured.share:.2g} % of the energy; {took}{note}"
        return line, statements(before, self.after, measured)

    def named(self) -> dict[str, Any]:
        """Return the options with the backend, unless it is the one that is chosen for few samples."""
        name = self.backend if isinstance(self.backend, str) else self.backend.name
        return {**self.options, **({} if name == REFERENCE else {"backend": name})}


def denoise(
    traces: Container, options: Mapping[str, Any], backend: str | Backend = "auto", preset: str | None = None
) -> Result:
    """Denoise as `Recording.denoise` does. Raises one of `ERRORS`."""
    if not traces.rows.size:
        raise ValueError(f"{traces.recording.source or 'x'}: no samples to view")
    if backend == "auto":  # named, so that the lines to copy give the same samples to the last bit
        backend = COMPILED if traces.rows.size >= LARGE else REFERENCE
    given = {name: value for name, value in options.items() if value is not None}
    check_names(given, "wavelet", "two_dimensional")
    check_name(backend)
    chosen, sigma = traces.recording.options(given, preset)
    start = time.perf_counter()
    after = traces.recording.apply(chosen, backend, report=True, sigma=sigma)
    return Result(traces, given, preset, backend, after, time.perf_counter() - start)


# ------------------------------------------------------------------------------------------------------------ page


class Viewer(pn.viewable.Viewer):  # type: ignore[misc]  # Panel has no types
    """The page of `wavefilt.view`: an output of a notebook, or served.

    Attributes
    ----------
    options : dict
        The current options, as `wavefilt.Recording.denoise` takes them.
    denoised : Recording
        Their result, written by its method `write`.
    """

    def __init__(
        self,
        result: Result,
        *,
        output: str | None = None,
        overwrite: bool = False,
        target: str | None = None,
        words: Callable[[BaseException], str] = str,
    ) -> None:
        """Begin with a result; ``output`` is where it is saved, ``target`` the output that the command names."""
        super().__init__()
        self.traces, self.result, self.words = result.traces, result, words
        self.output, self.overwrite, self.target = output, overwrite, target
        self.controls = Controls(self.traces, result.given, result.preset, self.update)
        self.section = SectionFigures(self.traces, self.controls.drag)
        self.look = Look(self.traces, self.section.display, self._style, self._draw)
        self.details = DetailFigures(self.traces)
        self.trace = pn.widgets.IntInput(
            label="Trace of the spectrograms",
            value=self.details.trace,
            start=0,
            end=len(self.traces.rows) - 1,
            width=200,
        )
        self.trace.param.watch(lambda event: self.details.draw_spectrograms(event.new or 0), "value")
        self.verdict, self.message, self.summary, self.scale, self.answer = (pn.pane.HTML(**WIDE) for _ in range(5))
        self.python, self.command = (
            pn.widgets.TextAreaInput(label=name, disabled=True, rows=2, stylesheets=TEXT, **WIDE)
            for name in ("Python", "Command")
        )
        label = f"Save {os.path.basename(output or '')}"
        self.button = pn.widgets.Button(label=label, color="primary", stylesheets=WRAPPED)
        self.button.on_click(lambda event: self.save())
        self._layout = self._page()
        self._style()
        self._draw()

    def __panel__(self) -> Any:
        return self._layout

    @property
    def options(self) -> dict[str, Any]:
        return self.result.options

    @property
    def denoised(self) -> Recording:
        return self.result.after

    def update(self) -> None:
        """Denoise with the chosen options and draw the result; if they are invalid, show a message and no result."""
        try:
            self.result = denoise(self.traces, self.controls.options, self.result.backend, self.controls.preset)
        except ERRORS as error:
            self._refuse(error)
            return
        self._draw()

    def save(self) -> None:
        """Write the result."""
        assert self.output is not None
        try:
            self.result.after.write(self.output, overwrite=self.overwrite)
        except (OSError, ValueError) as error:
            self._say(self.words(error), BAD)
        else:
            self._say(f"saved {self.output}", GOOD)

    def _assess(self, result: Result) -> None:
        """Show the verdict of the trust report and its answers, unless another result is shown by now."""
        if result is not self.result or self.look.band_pass:
            return
        try:
            report = result.after.trust(self.traces.recording, samples=JUDGED)
        except ERRORS as error:
            self.verdict.object = f"not tested: {html.escape(self.words(error) or 'not enough memory')}"
            return
        rows = "".join(
            f"<li>{html.escape(answer.question.text)} {badge(answer.verdict, answer.word)} "
            f"{html.escape(answer.found)}</li>"
            for answer in report.answers
        )
        summary = report.summary().removeprefix("trust: ").removeprefix(report.answers[0].word).lstrip(";: ")
        style = "<style>.badge { padding: 1px 6px; border-radius: 3px }</style>"
        self.verdict.object = f"{style}{badge(report.verdict)} {html.escape(summary)}"
        self.answer.object = f"{style}<details><summary>Tests of the result</summary><ul>{rows}</ul></details>"

    def _draw(self) -> None:
        """Draw the traces, and after these are sent, the details and the verdict."""
        band_pass, result = self.look.band_pass, self.result
        try:
            rows = band_pass.filtered(self.traces) if band_pass else result.outcome.samples
        except ValueError as error:
            self._refuse(error)
            return
        options, level = result.outcome.options, result.outcome.level
        used = resolved(options, level) | ({} if options.transform.has_levels else {"level": "none"})
        self.controls.describe(used, result.options.keys() - result.given.keys())
        self._say("", "")
        self.verdict.object = "" if band_pass else "testing the result ..."
        self.answer.object = ""
        self.button.disabled = band_pass is not None
        self.section.show(rows, self.controls.used_window)
        named, traces = result.named(), self.traces
        own = f"{traces.imports}\ndenoised = {traces.python(named)}"
        self.python.value = band_pass.python(traces) if band_pass else own
        self.command.value = "" if band_pass else traces.command(named, self.target)
        pn.state.execute(lambda: self._draw_details(result, rows, band_pass), schedule=True)
        pn.state.execute(lambda: self._assess(result), schedule=True)

    def _draw_details(self, result: Result, rows: Array, band_pass: BandPass | None) -> None:
        if result is not self.result:
            return
        name, told = (f"band-pass {band_pass.low:g} to {band_pass.high:g}", []) if band_pass else result.summary()
        notes = "".join(f"<li>{marked(text)}</li>" for text in told)
        self.summary.object = html.escape(name) + (f"<ul>{notes}</ul>" if notes else "")
        with pn.io.hold():
            self.details.show(rows, None if band_pass else result.outcome)

    def _refuse(self, error: BaseException) -> None:
        """Show an error, and nothing of an earlier result."""
        self._say(self.words(error) or "not enough memory", BAD)
        for pane in (self.verdict, self.summary, self.answer):
            pane.object = ""
        self.python.value = self.command.value = ""
        self.button.disabled = True
        self.section.show(None, self.controls.used_window)
        self.details.show(None, None)

    def _style(self) -> None:
        look = self.look
        self.section.style(look.display.value, look.scale.value == "one for all", look.gain.value, look.levelled)
        colors = ", ".join(PALETTE[::32])
        strip = f'<span style="background: linear-gradient(to right, {colors})">{"&emsp;" * 6}</span>'
        strip = f"− {strip} + &ensp;" if self.section.display == "density" else ""
        self.scale.object = f"{strip}{html.escape(self.section.scale_text())}"

    def _say(self, text: str, color: str) -> None:
        self.message.object = f'<div role="alert" style="color: {color}">{html.escape(text)}</div>' if text else ""

    def _page(self) -> Any:
        def flexed(item: Any, basis: str, grow: int = 1) -> Any:
            item.styles = {"flex": f"{grow} 1 {basis}", "min-width": "0"}
            return item

        def in_row(figures: list[Any], basis: str) -> Any:
            return pn.FlexBox(*(flexed(pn.pane.Bokeh(drawn, **WIDE), basis) for drawn in figures), gap="4px")

        def copied(area: Any) -> Any:
            button = pn.widgets.Button(label="Copy", width=60, align="end")
            button.js_on_click(args={"text": area}, code=COPY)
            return pn.Row(area, button, **WIDE)

        recording, interval = self.traces.recording, self.traces.interval
        size = " x ".join(map(str, self.traces.rows.shape)) + " samples"
        facts = f"{size}{f', interval {interval:g} s' if interval else ''}, {html.escape(recording.format)}"
        facts += ", real part shown" * recording.complex
        title = pn.pane.HTML(f"<b>{html.escape(self.traces.name)}</b> &ensp; {facts}", **WIDE)
        heading = pn.FlexBox(flexed(title, "280px"), flexed(self.verdict, "320px", 2), gap="4px")
        first = [
            self.controls.presets,
            flexed(self.controls.selects["rule"], "160px"),
            *([self.button] if self.output else []),
        ]
        chosen = pn.FlexBox(*first, gap="4px", align_items="flex-end")
        drawn = self.section.figures
        details = [self.details.spectra_figure, self.details.levels_figure, *self.details.spectrogram_figures]
        tools = pn.pane.Bokeh(toolbar([*drawn, *details]), styles=STICKY, **WIDE)
        panes = [pn.pane.Bokeh(own, **WIDE) for own in drawn] if self.section.horizontal else [in_row(drawn, "280px")]
        lines = [copied(self.python), *([copied(self.command)] if self.traces.file else [])]
        main = pn.Column(tools, *panes, self.scale, self.summary, self.answer, *lines, **WIDE)
        side = pn.Column(*self.controls.widgets, *self.look.widgets, **WIDE)
        below = pn.FlexBox(flexed(main, "640px", 1000), flexed(side, "250px"), gap="8px", align_items="flex-start")
        curves = in_row(details[:2], "320px")
        images = in_row(self.details.spectrogram_figures, "320px")
        return pn.Column(heading, chosen, self.message, below, curves, self.trace, images, **WIDE)


# ---------------------------------------------------------------------------------------------------------- server


def run(page: Callable[[], Any], title: str, port: int, browser: bool, announce: Callable[[str], None]) -> None:
    """Serve until a signal arrives, which is raised again then; announce the address, and open it in a browser.

    Each tab has a page of its own. Every path begins with a random token, also that of the web socket, which opens only
    for pages of this server. ``port`` 0 is any free port. Raises OSError if the port cannot be used.
    """

    def templated() -> Any:
        template = pn.Template(PAGE)
        template.add_panel("view", page())
        template.add_variable("app_favicon", "data:,")  # none
        return template

    async def serve() -> None:
        listening = socket.create_server((HOST, port))
        listening.setblocking(False)
        host, token = f"{HOST}:{listening.getsockname()[1]}", secrets.token_urlsafe(32)
        application = BokehTornado(
            build_applications(templated, title=title),
            prefix=token,
            extra_websocket_origins=[host],
            default_handler_class=ErrorHandler,  # of all addresses without the token
            default_handler_args={"status_code": 403},
            ico_path="none",
        )
        http = HTTPServer(application)
        http.add_socket(listening)
        server = BaseServer(IOLoop.current(), application, http)
        server.start()
        address = f"http://{host}/{token}/"
        announce(address)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        while not arrived:
            await asyncio.sleep(0.1)
        server.stop(wait=False)
        await http.close_all_connections()
        for _ in range(ROUNDS):  # a loop that ends earlier reports unfinished tasks on standard error
            if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(tasks, timeout=0.1)

    with interrupts.caught(deferred=True) as arrived:  # an exception inside of the loop would keep it from being closed
        asyncio.run(serve())

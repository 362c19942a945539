"""The page: pictures, controls, what gives the result again, and saving it."""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from typing import Any

import panel as pn

from wavefilt.advice.page import badge
from wavefilt.arrays import Array
from wavefilt.backends import Backend
from wavefilt.recording import Recording

from . import lines
from .bandpass import BandPass
from .controls import Controls, Look
from .details import Details
from .figures import PALETTE, Pictures
from .state import ERRORS, Chosen, Result, denoise, denoise_first

WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}
BAD, GOOD = "#b00020", "#00695c"
COPY = "navigator.clipboard.writeText(text.value)"
TEXT = ["textarea { font: 12px monospace !important; opacity: 1 !important; -webkit-text-fill-color: #222 !important }"]


class Viewer(pn.viewable.Viewer):  # type: ignore[misc]  # Panel has no types
    """What `wavefilt.view` returns: a page of its own in a notebook, or served.

    Attributes
    ----------
    options : dict
        What is chosen, as `wavefilt.Recording.denoise` takes it.
    denoised : Recording
        The result, written by its method `write`.
    """

    def __init__(
        self,
        result: Result,
        *,
        output: str | None = None,
        overwrite: bool = False,
        target: str | None = None,
        backend: str | Backend = "auto",
        words: Callable[[BaseException], str] = str,
    ) -> None:
        """Of a first result; ``output`` is where it is saved, ``target`` what the command says of that."""
        super().__init__()
        self.source, self.result, self.backend, self.words = result.source, result, backend, words
        self.output, self.overwrite, self.target = output, overwrite, target
        self.controls = Controls(self.source, result.options, self.update)
        self.pictures = Pictures(self.source, self.controls.drag)
        self.look = Look(self.source, self._style, self._draw, self.pictures.kind)
        self.details = Details(self.source)
        self.trace = pn.widgets.IntInput(
            label="Trace of the spectrograms",
            value=self.details.trace,
            start=0,
            end=len(self.source.rows) - 1,
            width=200,
        )
        self.trace.param.watch(lambda event: self.details.choose(event.new), "value")
        self.message = pn.pane.HTML(**WIDE)
        self.summary = pn.pane.HTML(**WIDE)
        self.scale = pn.pane.HTML(**WIDE)
        self.python, self.command = (
            pn.widgets.TextAreaInput(label=name, disabled=True, rows=rows, stylesheets=TEXT, **WIDE)
            for name, rows in (("Python", 2), ("Command", 2))
        )
        self.question = pn.widgets.Button(label="Is signal in what was removed?")
        self.question.on_click(lambda event: self.assess())
        self.answer = pn.pane.HTML(**WIDE)
        self.button = pn.widgets.Button(label=f"Save {os.path.basename(output or '')}", color="primary", **WIDE)
        self.button.on_click(lambda event: self.save())
        self._layout = self._page()
        self.pictures.draw("before")
        self._draw()

    def __panel__(self) -> Any:
        return self._layout

    @property
    def options(self) -> Chosen:
        return self.result.options

    @property
    def denoised(self) -> Recording:
        return self.result.after

    def update(self) -> None:
        """Denoise as is chosen and draw that, of many traces those first that are visible.

        Where it makes no sense say why, and leave what is drawn.
        """
        try:
            options, visible = self.controls.options, self.pictures.view.traces
            first = None if self.look.band_pass else denoise_first(self.source, options, self.backend, visible)
        except ERRORS as error:
            self._refuse(error)
            return
        if first is None:
            self._denoise()
        else:
            self.pictures.show(first)
            pn.state.execute(lambda: self._denoise(self.result.rows), schedule=True)

    def _denoise(self, drawn: Array | None = None) -> None:
        """All traces; where that fails, draw those again that were ``drawn`` before visible ones took their place."""
        try:
            self.result = denoise(self.source, self.controls.options, self.backend)
        except ERRORS as error:
            self._refuse(error)
            if drawn is not None:
                self.pictures.show(drawn)
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

    def assess(self) -> None:
        """Show what the trust report finds."""
        try:
            found = self.denoised.trust(self.source.recording)
        except ERRORS as error:
            self._refuse(error)
            return
        rows = "".join(
            f"<li>{html.escape(answer.question)} {badge(answer.verdict, answer.word)} {html.escape(answer.found)}</li>"
            for answer in found.answers
        )
        style = "<style>.badge { padding: 1px 6px; border-radius: 3px }</style>"
        self.answer.object = f"{style}<b>{html.escape(found.summary())}</b><ul>{rows}</ul>"

    def _draw(self) -> None:
        """The pictures first; all else when they are on their way."""
        band_pass = self.look.band_pass
        try:
            rows = band_pass.filtered(self.source) if band_pass else self.result.rows
        except ValueError as error:
            self._say(str(error), BAD)
            return
        self._say("", "")
        self.answer.object = ""
        self.question.disabled = band_pass is not None
        self.pictures.show(rows)
        self.pictures.mark(self.controls.samples)
        self._write_lines(band_pass)
        self.button.disabled = band_pass is not None
        pn.state.execute(lambda: self._draw_details(rows, band_pass), schedule=True)

    def _draw_details(self, rows: Any, band_pass: BandPass | None) -> None:
        name = f"band-pass {band_pass.low:g} to {band_pass.high:g}" if band_pass else self.result.summary()
        self.summary.object = html.escape(name)
        with pn.io.hold():
            self.details.show(rows, None if band_pass else self.result.outcome)

    def _style(self) -> None:
        look = self.look
        self.pictures.style(look.kind.value, look.scale.value == "one for all", look.gain.value)
        self._write_scale()

    def _refuse(self, error: Exception) -> None:
        self._say(self.words(error) or "not enough memory", BAD)

    def _say(self, text: str, color: str) -> None:
        self.message.object = f'<div role="alert" style="color: {color}">{html.escape(text)}</div>' if text else ""

    def _write_lines(self, band_pass: BandPass | None) -> None:
        if band_pass:
            self.python.value, self.command.value = band_pass.python(self.source), ""
            return
        self.python.value = lines.python(self.source, self.options, self.backend)
        self.command.value = lines.command(self.source, self.options, self.target, self.backend) or ""

    def _write_scale(self) -> None:
        colors = ", ".join(PALETTE[::32])
        strip = f'<span style="background: linear-gradient(to right, {colors})">{"&emsp;" * 6}</span>'
        strip = f"− {strip} + &ensp;" if self.pictures.kind == "density" else ""
        self.scale.object = f"{strip}{html.escape(self.pictures.scale_text())}"

    def _page(self) -> Any:
        def flexed(item: Any, basis: str, grow: int = 1) -> Any:
            item.styles = {"flex": f"{grow} 1 {basis}", "min-width": "0"}
            return item

        def copied(area: Any) -> Any:
            button = pn.widgets.Button(label="Copy", width=60, align="end")
            button.js_on_click(args={"text": area}, code=COPY)
            return pn.Row(area, button, **WIDE)

        self._write_scale()
        recording, interval = self.source.recording, self.source.interval
        size = " x ".join(map(str, self.source.rows.shape))
        every = f", interval {interval:g} s" if interval else ""
        heading = (
            f"<b>{html.escape(self.source.name)}</b> &ensp; {size} samples{every}, {html.escape(recording.format)}"
        )
        panes = [pn.pane.Bokeh(drawn, **WIDE) for drawn in self.pictures.figures]
        pictures = (
            pn.Column(*panes, **WIDE)
            if self.pictures.horizontal
            else pn.FlexBox(*(flexed(pane, "280px") for pane in panes), gap="4px")
        )
        written = [copied(self.python), *([copied(self.command)] if self.source.file else [])]
        main = pn.Column(
            pn.pane.HTML(heading, **WIDE), self.summary, self.message, pictures, self.scale, *written, **WIDE
        )
        saving = [self.button] if self.output else []
        side = pn.Column(*self.controls.widgets(), *self.look.widgets(), *saving, **WIDE)
        rows = [[self.details.spectra_figure, self.details.levels_figure], self.details.spectrogram_figures]
        details = [
            pn.FlexBox(*(flexed(pn.pane.Bokeh(drawn, **WIDE), "320px") for drawn in row), gap="4px") for row in rows
        ]
        top = pn.FlexBox(flexed(main, "640px", 1000), flexed(side, "250px"), gap="8px", align_items="flex-start")
        return pn.Column(top, self.question, self.answer, details[0], self.trace, details[1], **WIDE)

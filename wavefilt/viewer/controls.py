"""The widgets that choose options, and what is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import panel as pn

from wavefilt import transforms
from wavefilt.thresholding.rules import RULES
from wavefilt.thresholding.shrinkage import FUNCTIONS
from wavefilt.vocabulary import ESTIMATORS, SCOPES
from wavefilt.wavelets.filters import names as wavelets

from .bandpass import BandPass
from .lines import seconds
from .source import Source
from .state import Chosen

DEFAULT, WINDOW = "default", "noise window"
LEVELS = range(1, 13)
SPINS = (1, 2, 4, 8, 16)


class Choice:
    """A list to choose an option from: its values by the labels that are shown."""

    def __init__(self, label: str, values: Iterable[Any], given: Any, names: dict[str, Any]) -> None:
        self.values = {**names, **{str(value): value for value in values}}
        shown = next((name for name, value in self.values.items() if _same(value, given)), None)
        if shown is None:
            shown = str(given)
            self.values[shown] = given
        self.widget = pn.widgets.Select(
            label=label, options=list(self.values), value=shown, sizing_mode="stretch_width"
        )

    @property
    def value(self) -> Any:
        return self.values[self.widget.value]


class Controls:
    """Widgets for the options of `wavefilt.denoise`; options that have none stay as they are given.

    ``changed()`` is called once for each change.
    """

    def __init__(self, source: Source, given: Chosen, changed: Callable[[], None]) -> None:
        self.source, self.given, self.changed = source, given, changed
        self.window: Any = None
        listed: dict[str, tuple[str, Iterable[Any], dict[str, Any]]] = {
            "transform": ("Transform", transforms.words(), {}),
            "wavelet": ("Wavelet", wavelets(), {DEFAULT: None}),
            "level": ("Levels", LEVELS, {"auto": None}),
            "rule": ("Threshold rule", RULES.names(), {DEFAULT: None}),
            "shrink": ("Threshold function", [*FUNCTIONS.names(), *ESTIMATORS], {DEFAULT: None}),
            "sigma": ("Noise σ", (), {"of each level": "level", "of the finest level": "global", WINDOW: WINDOW}),
            "scope": ("Thresholds for each", SCOPES, {}),
            "spins": ("Cycle spinning: shifts", SPINS, {}),
        }
        first = {"transform": "dwt", "sigma": "level", "scope": "trace", "spins": 1}
        given = {**given}
        if isinstance(given.get("sigma"), tuple) and given["sigma"][0] in ("window", "seconds"):
            self.window, given["sigma"] = given["sigma"], WINDOW
        self.choices = {
            name: Choice(label, values, given.get(name, first.get(name)), names)
            for name, (label, values, names) in listed.items()
        }
        panel = bool(given.get("two_dimensional"))
        self.two_dimensional = pn.widgets.Checkbox(label="Two dimensions: traces are a panel", value=panel)
        for widget in [choice.widget for choice in self.choices.values()] + [self.two_dimensional]:
            widget.param.watch(lambda event: self.changed(), "value")

    @property
    def options(self) -> Chosen:
        """Options of `Recording.denoise`. Raises ValueError where a noise window is to be used and there is none."""
        chosen = {name: choice.value for name, choice in self.choices.items()}
        if chosen["sigma"] == WINDOW:
            if self.window is None:
                raise ValueError("no noise window yet: drag one over samples that are noise alone")
            chosen["sigma"] = self.window
        others = {name: value for name, value in self.given.items() if name not in chosen}
        return {**others, **chosen, "two_dimensional": self.two_dimensional.value}

    def drag(self, first: int, last: int) -> None:
        """Take the noise from these samples on, as seconds where the sampling interval is known."""
        interval = self.source.interval
        ends = (seconds(first, interval), seconds(last, interval)) if interval else (first, last)
        self.window = ("seconds" if interval else "window", *ends)
        widget = self.choices["sigma"].widget
        if widget.value == WINDOW:
            self.changed()
        else:
            widget.value = WINDOW

    @property
    def samples(self) -> tuple[int, int] | None:
        """The noise window that is used, in samples."""
        if self.window is None or self.choices["sigma"].value != WINDOW:
            return None
        kind, *ends = self.window
        step = self.source.interval if kind == "seconds" else 1
        first, last = (round(end / step) for end in ends)
        return first, last

    def widgets(self) -> list[Any]:
        return [*(choice.widget for choice in self.choices.values()), self.two_dimensional]


class Look:
    """Widgets for how traces are drawn, and what is shown as denoised."""

    def __init__(self, source: Source, drawing: Callable[[], None], shown: Callable[[], None], kind: str) -> None:
        nyquist = 0.5 / (source.interval or 1)
        unit = "Hz" if source.interval else "cycles per sample"
        wide: dict[str, Any] = {"sizing_mode": "stretch_width"}
        self.kind = pn.widgets.RadioButtonGroup(label="Picture", options=["density", "wiggle"], value=kind, **wide)
        self.scale = pn.widgets.RadioButtonGroup(
            label="Scale", options=["per trace", "one for all"], value="per trace", **wide
        )
        gains = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
        self.gain = pn.widgets.DiscreteSlider(label="Gain", options=gains, value=1.0, **wide)
        self.shown = pn.widgets.RadioButtonGroup(
            label="Shown as after", options=["A: wavelets", "B: band-pass"], value="A: wavelets", **wide
        )
        start = {"step": 0.01 * nyquist, "sizing_mode": "stretch_width", "min_width": 80}
        self.low = pn.widgets.FloatInput(label=f"From ({unit})", value=float(f"{0.02 * nyquist:.2g}"), **start)
        self.high = pn.widgets.FloatInput(label=f"To ({unit})", value=float(f"{0.4 * nyquist:.2g}"), **start)
        for widget in (self.kind, self.scale, self.gain):
            widget.param.watch(lambda event: drawing(), "value_throttled" if widget is self.gain else "value")
        for widget in (self.shown, self.low, self.high):
            widget.param.watch(lambda event: shown(), "value")

    @property
    def band_pass(self) -> BandPass | None:
        """The filter, if its result is shown."""
        if not self.shown.value.startswith("B"):
            return None
        return BandPass(float(self.low.value or 0), float(self.high.value or 0))

    def widgets(self) -> list[Any]:
        heading = [pn.pane.HTML(f"<b>{text}</b>", margin=(6, 10, 0, 10)) for text in ("Picture", "Shown as after")]
        band = pn.Row(self.low, self.high, sizing_mode="stretch_width")
        return [heading[0], self.kind, self.scale, self.gain, heading[1], self.shown, band]


def _same(value: Any, given: Any) -> bool:
    """Equal, and of one kind: 1 is not True; lists are compared as a whole."""
    return type(value) is type(given) and bool(value == given)

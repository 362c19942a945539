"""The widgets of the viewer: options of `wavefilt.denoise`, the display, and a band-pass to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import panel as pn

from wavefilt import transforms
from wavefilt.arrays import Array
from wavefilt.containers import Container
from wavefilt.options import rounded_seconds
from wavefilt.thresholding.rules import RULES
from wavefilt.thresholding.shrinkage import FUNCTIONS
from wavefilt.vocabulary import ESTIMATORS, SCOPES
from wavefilt.wavelets.filters import names as wavelets

WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}
DEFAULT, WINDOW = "default", "noise window"
LEVELS, SPINS = range(1, 13), (1, 2, 4, 8, 16)
GAINS = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
CORNERS = 4
"""Order of the band-pass filter, which ObsPy calls corners."""


@dataclass(frozen=True)
class BandPass:
    """A Butterworth filter between two frequencies in Hz, run forwards and backwards."""

    low: float
    high: float

    def filtered(self, traces: Container) -> Array:
        """Return the filtered rows; gaps are filtered as zeros and stay gaps.

        Raises ValueError for frequencies out of order or beyond the Nyquist frequency, and for traces that are too
        short.
        """
        from scipy import signal

        rate, unit = 1 / (traces.interval or 1), "Hz" if traces.interval else "cycles per sample"
        if not 0 < self.low < self.high < rate / 2:
            raise ValueError(
                f"a band-pass from {self.low:g} to {self.high:g} {unit}: frequencies must rise from above 0 to below "
                f"{rate / 2:g}, the Nyquist frequency"
            )
        rows, sections = traces.rows, signal.butter(CORNERS, (self.low, self.high), "bandpass", fs=rate, output="sos")
        if rows.shape[1] <= (least := 3 * (2 * len(sections) + 1)):
            raise ValueError(f"a band-pass needs more than {least} samples, and there are {rows.shape[1]}")
        filtered = signal.sosfiltfilt(sections, np.nan_to_num(rows)).astype(rows.dtype)
        return np.where(np.isnan(rows), rows, filtered)

    def python(self, traces: Container) -> str:
        """Return the lines of Python that filter the samples."""
        rate = 1 / (traces.interval or 1)
        samples = f"np.nan_to_num({traces.samples})" if np.isnan(traces.rows).any() else traces.samples
        numpy = "import numpy as np\n" if "np." in samples else ""
        return (
            f"{numpy}import scipy.signal\n{traces.imports}\n"
            f'bands = scipy.signal.butter({CORNERS}, {(self.low, self.high)}, "bandpass", fs={rate!r}, output="sos")\n'
            f"filtered = scipy.signal.sosfiltfilt(bands, {samples})"
        )


class Choice:
    """A list to choose the value of an option from, by the labels that are shown."""

    def __init__(self, label: str, values: Iterable[Any], given: Any, labels: dict[str, Any]) -> None:
        self.values = {**labels, **{str(value): value for value in values}}
        shown = next((name for name, value in self.values.items() if _same(value, given)), str(given))
        self.values.setdefault(shown, given)
        self.widget = pn.widgets.Select(label=label, options=list(self.values), value=shown, **WIDE)

    @property
    def value(self) -> Any:
        """The chosen value."""
        return self.values[self.widget.value]


class Controls:
    """Widgets for the options of `wavefilt.denoise`; options without a widget stay as given.

    ``changed()`` is called once for each change.
    """

    def __init__(self, traces: Container, given: dict[str, Any], changed: Callable[[], None]) -> None:
        self.interval, self.given, self.changed = traces.interval, given, changed
        self.window: Any = None
        noise = {"of each level": "level", "of the finest level": "global", WINDOW: WINDOW}
        listed: dict[str, tuple[str, Iterable[Any], dict[str, Any]]] = {
            "transform": ("Transform", transforms.words(), {}),
            "wavelet": ("Wavelet", wavelets(), {DEFAULT: None}),
            "level": ("Levels", LEVELS, {"auto": None}),
            "rule": ("Threshold rule", RULES.names(), {DEFAULT: None}),
            "shrink": ("Threshold function", [*FUNCTIONS.names(), *ESTIMATORS], {DEFAULT: None}),
            "sigma": ("Noise σ", (), noise),
            "scope": ("Thresholds for each", SCOPES, {}),
            "spins": ("Cycle spinning: shifts", SPINS, {}),
        }
        first = {"transform": "dwt", "sigma": "level", "scope": "trace", "spins": 1, **given}
        if isinstance(first["sigma"], tuple) and first["sigma"][0] in ("window", "seconds"):
            self.window, first["sigma"] = first["sigma"], WINDOW
        self.choices = {
            name: Choice(label, values, first.get(name), labels) for name, (label, values, labels) in listed.items()
        }
        section = bool(given.get("two_dimensional"))
        self.section = pn.widgets.Checkbox(label="Section: transform traces together", value=section)
        self.widgets = [*(choice.widget for choice in self.choices.values()), self.section]
        for widget in self.widgets:
            widget.param.watch(lambda event: self.changed(), "value")

    @property
    def options(self) -> dict[str, Any]:
        """Options of `Recording.denoise`. Raises ValueError if a noise window is chosen and there is none."""
        chosen = {name: choice.value for name, choice in self.choices.items()}
        if chosen["sigma"] == WINDOW:
            if self.window is None:
                raise ValueError("no noise window yet: drag one over samples that contain only noise")
            chosen["sigma"] = self.window
        return {**self.given, **chosen, "two_dimensional": self.section.value}

    def drag(self, first: int, last: int) -> None:
        """Take the noise from these samples, as seconds where the sampling interval is known."""
        interval = self.interval
        ends = (rounded_seconds(first, interval), rounded_seconds(last, interval)) if interval else (first, last)
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
        unit, *ends = self.window
        first, last = (round(end / (self.interval if unit == "seconds" else 1)) for end in ends)
        return first, last


class Look:
    """Widgets for the display of traces, and for the choice between the denoised and the filtered traces."""

    def __init__(self, traces: Container, display: str, drawn: Callable[[], None], shown: Callable[[], None]) -> None:
        nyquist, unit = 0.5 / (traces.interval or 1), "Hz" if traces.interval else "cycles per sample"

        def buttons(label: str, *options: str) -> Any:
            return pn.widgets.RadioButtonGroup(label=label, options=list(options), value=options[0], **WIDE)

        def frequency(label: str, share: float) -> Any:
            value = float(f"{share * nyquist:.2g}")
            return pn.widgets.FloatInput(label=label, value=value, step=0.01 * nyquist, min_width=80, **WIDE)

        self.display = buttons("Picture", "density", "wiggle")
        self.display.value = display
        self.scale = buttons("Scale", "per trace", "one for all")
        self.gain = pn.widgets.DiscreteSlider(label="Gain", options=GAINS, value=1.0, **WIDE)
        self.shown = buttons("Shown as after", "A: wavelets", "B: band-pass")
        self.low, self.high = frequency(f"From ({unit})", 0.02), frequency(f"To ({unit})", 0.4)
        for widget in (self.display, self.scale, self.gain):
            widget.param.watch(lambda event: drawn(), "value_throttled" if widget is self.gain else "value")
        for widget in (self.shown, self.low, self.high):
            widget.param.watch(lambda event: shown(), "value")
        heading = [pn.pane.HTML(f"<b>{text}</b>", margin=(6, 10, 0, 10)) for text in ("Picture", "Shown as after")]
        band = pn.Row(self.low, self.high, **WIDE)
        self.widgets = [heading[0], self.display, self.scale, self.gain, heading[1], self.shown, band]

    @property
    def band_pass(self) -> BandPass | None:
        """The filter, if its result is shown."""
        if not self.shown.value.startswith("B"):
            return None
        return BandPass(float(self.low.value or 0), float(self.high.value or 0))


def _same(value: Any, given: Any) -> bool:
    """Return whether two values are equal and of one type: 1 is not True, and lists are compared as a whole."""
    return type(value) is type(given) and bool(value == given)

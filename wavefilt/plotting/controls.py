"""The widgets of the viewer: options of `wavefilt.denoise`, the display, and a band-pass to compare with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import panel as pn

from wavefilt import transforms
from wavefilt.arrays import Array
from wavefilt.containers import Container
from wavefilt.options import PRESETS
from wavefilt.thresholding.rules import RULES
from wavefilt.thresholding.shrinkage import FUNCTIONS
from wavefilt.vocabulary import ESTIMATORS, PANELS, SCOPES
from wavefilt.wavelets.filters import names as wavelets

WIDE: dict[str, Any] = {"sizing_mode": "stretch_width"}
AUTO, WINDOW = "auto", "noise window"
"""Words that stand for None, which Panel cannot show, and for a window in samples."""
RECIPE, DEFAULT = "recipe", "default"
"""Origins of options that are not chosen, for seismic files and for other data."""
CHOSEN_BY_PRESETS = ("rule", "transform", "wavelet", "level", "shrink")
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


class Controls:
    """Widgets for the options of `wavefilt.denoise`; options without a widget stay as given.

    ``changed()`` is called once for each change. ``window`` is the noise window in samples. The first choice of a
    widget leaves its option to the preset, the recipe or the defaults; `describe` shows the value that it then has.
    """

    def __init__(
        self, traces: Container, given: dict[str, Any], preset: str | None, changed: Callable[[], None]
    ) -> None:
        self.given, self.changed, self.quiet = given, changed, False
        self.clock = replace(traces.recording.clock(0), interval=traces.interval)
        self.window: tuple[int, int] | None = None
        self.declared = traces.recording.declared_noise
        noise = {self.declared.source: AUTO} if self.declared else {}
        noise |= {"of each level": "level", "of the finest level": "global", WINDOW: WINDOW}
        listed: dict[str, tuple[str, dict[str, Any]]] = {
            "rule": ("Threshold rule", _labelled(AUTO, *RULES)),
            "transform": ("Transform", _labelled(AUTO, *transforms.words())),
            "wavelet": ("Wavelet", _labelled(AUTO, *wavelets())),
            "level": ("Levels", _labelled(AUTO, *range(1, 13))),
            "shrink": ("Threshold function", _labelled(AUTO, *FUNCTIONS, *ESTIMATORS)),
            "spins": ("Cycle spinning: shifts", _labelled(1, 2, 4, 8, 16)),
            "sigma": ("Noise σ", noise),
            "scope": ("Thresholds for each", _labelled(*SCOPES)),
        }
        first = {"sigma": None, "scope": "trace", "spins": 1, **given}
        if isinstance(first["sigma"], tuple) and first["sigma"][0] in ("window", "seconds"):
            windows: Any = set(traces.recording.sigmas(first["sigma"]))
            if len(windows) == 1:  # the noise stays as given if traces have different windows
                self.window, first["sigma"] = windows.pop()[1:], WINDOW
        self.selects = {}
        for name, (label, values) in listed.items():
            value = first.get(name)
            value = next(iter(values.values())) if value is None else value
            if not any(type(value) is type(known) and bool(value == known) for known in values.values()):
                values[str(value)] = value
            self.selects[name] = pn.widgets.Select(label=label, options=values, value=value, **WIDE)
        self.base = RECIPE if traces.recording.recipe["seismic"] else DEFAULT
        names = [self.base, *(name for name in PRESETS if name != "section" or len(traces.rows) > 1)]
        self.presets = pn.widgets.RadioButtonGroup(
            label="Preset", options=names, value=preset or self.base, color="primary", variant="outline"
        )
        always = preset == "section"
        section = bool(given.get("two_dimensional")) or always
        self.section = pn.widgets.Checkbox(label="Section: transform traces together", value=section, disabled=always)
        for widget in (*self.selects.values(), self.section):
            widget.param.watch(lambda event: self.quiet or self.changed(), "value")
        self.presets.param.watch(lambda event: self._start_anew(), "value")

    @property
    def widgets(self) -> list[Any]:
        """The widgets in groups with headings, without that of the rule."""
        _, *method, sigma, scope = self.selects.values()
        return [heading("Method"), *method, self.section, heading("Noise"), sigma, scope]

    @property
    def preset(self) -> str | None:
        """The chosen preset, None for the recipe or the defaults."""
        return None if self.presets.value == self.base else str(self.presets.value)

    @property
    def options(self) -> dict[str, Any]:
        """Options of `Recording.denoise`. Raises ValueError if a noise window is chosen and there is none."""
        chosen = {name: None if str(select.value) == AUTO else select.value for name, select in self.selects.items()}
        if self.selects["sigma"].value == WINDOW:
            if self.window is None:
                raise ValueError("no noise window yet: drag one over samples that contain only noise")
            timed = self.clock.interval is not None
            chosen["sigma"] = ("seconds", *map(self.clock.time, self.window)) if timed else ("window", *self.window)
        return {**self.given, **chosen, "two_dimensional": self.section.value}

    def describe(self, used: Mapping[str, Any], filled: Collection[str]) -> None:
        """Show the ``used`` values of options that are not chosen; ``filled`` ones come from the preset or recipe."""
        self.quiet = True
        for name in CHOSEN_BY_PRESETS:
            select, value = self.selects[name], used[name]
            origin = self.presets.value if name in filled else DEFAULT
            others = {label: known for label, known in select.options.items() if known != AUTO}
            select.options = {f"{value} ({origin})" if select.value == AUTO else AUTO: AUTO, **others}
        self.quiet = False

    def _start_anew(self) -> None:
        """Leave all options of the method to the preset."""
        self.quiet = True
        for name in CHOSEN_BY_PRESETS:
            self.selects[name].value = AUTO
        self.selects["spins"].value = 1
        self.section.value = self.section.disabled = self.presets.value == "section"
        self.quiet = False
        self.changed()

    def drag(self, first: int, last: int) -> None:
        """Take the noise from these samples."""
        self.window, select = (first, last), self.selects["sigma"]
        if select.value == WINDOW:
            self.changed()
        else:
            select.value = WINDOW

    @property
    def used_window(self) -> tuple[int, int] | None:
        """The noise window, if the noise is taken from it."""
        if self.selects["sigma"].value == AUTO and self.declared and self.declared.common:
            return self.declared.common[1:]
        return self.window if self.selects["sigma"].value == WINDOW else None


def heading(text: str) -> Any:
    """Return a heading of a group of widgets."""
    return pn.pane.HTML(f"<b>{text}</b>", margin=(6, 10, 0, 10))


def _labelled(*values: Any) -> dict[str, Any]:
    return {str(value): value for value in values}


class Look:
    """Widgets for the display of traces, and for the choice between the denoised and the filtered traces."""

    def __init__(self, traces: Container, display: str, drawn: Callable[[], None], shown: Callable[[], None]) -> None:
        nyquist, unit = 0.5 / (traces.interval or 1), "Hz" if traces.interval else "cycles per sample"

        def buttons(label: str, *options: str) -> Any:
            return pn.widgets.RadioButtonGroup(label=label, options=list(options), value=options[0], **WIDE)

        def frequency(label: str, share: float) -> Any:
            value = float(f"{share * nyquist:.2g}")
            return pn.widgets.FloatInput(label=label, value=value, step=0.01 * nyquist, **WIDE)

        self.display = buttons("Picture", "density", "wiggle")
        self.display.value = display
        self.scale = buttons("Scale", "per trace", "one for all")
        self.agc = buttons("AGC", *(("residual", "all", "off") if len(traces.rows) > 1 else ("off",)))
        self.gain = pn.widgets.DiscreteSlider(label="Gain", options=GAINS, value=1.0, **WIDE)
        self.shown = buttons("Shown as after", "A: wavelets", "B: band-pass")
        self.low, self.high = frequency(f"From ({unit})", 0.02), frequency(f"To ({unit})", 0.4)
        for widget in (self.display, self.scale, self.agc, self.gain):
            widget.param.watch(lambda event: drawn(), "value_throttled" if widget is self.gain else "value")
        for widget in (self.shown, self.low, self.high):
            widget.param.watch(lambda event: shown(), "value")
        agc = pn.pane.HTML("Automatic gain control (AGC)", margin=(2, 10, 0, 10))
        picture = [heading("Picture"), self.display, self.scale, agc, self.agc, self.gain]
        self.widgets = picture if len(traces.rows) > 1 else []  # a single trace is drawn in data units
        self.widgets += [heading("Shown as after"), self.shown, self.low, self.high]

    @property
    def levelled(self) -> tuple[str, ...]:
        """The parts with automatic gain control."""
        return {"residual": ("residual",), "all": PANELS[:3]}.get(str(self.agc.value), ())

    @property
    def band_pass(self) -> BandPass | None:
        """The filter, if its result is shown."""
        if not self.shown.value.startswith("B"):
            return None
        return BandPass(float(self.low.value or 0), float(self.high.value or 0))

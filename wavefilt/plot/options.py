"""What a figure shows of a recording, and how: the options of `Recording.plot` and of the command's ``--plot``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.errors import OptionError, options
from wavefilt.vocabulary import DISPLAYS, PANELS, TRACES_BY, Display, TracesBy, check

if TYPE_CHECKING:
    from wavefilt.recording import Recording

QUIETEST = 1e-3
"""The RMS below which automatic gain control does not amplify further, relative to the largest of the trace."""


@dataclass(frozen=True)
class PlotOptions:
    """Options of `Recording.plot`, which describes them. Raises ValueError for a value that makes no sense."""

    panels: str | Sequence[str] | None = None
    gain: str | None = None
    clip: float | None = None
    display: Display | None = None
    traces_by: TracesBy | None = None

    def __post_init__(self) -> None:
        for panel in self.names(True):
            check("panels", panel, PANELS)
        if self.panels is not None and not self.panels:
            raise OptionError(options("panels"), f": name at least one of {', '.join(PANELS)}")
        if self.display is not None:
            check("display", self.display, DISPLAYS)
        if self.traces_by is not None:
            check("traces_by", self.traces_by, TRACES_BY)
        if self.clip is not None and not (isinstance(self.clip, int | float) and 0 < self.clip <= 100):
            raise OptionError(options(clip=self.clip), ": a percentile above 0 and up to 100 is needed")
        self.amplifier()

    def names(self, pair: bool, levels: bool = True) -> list[str]:
        """The panels of a ``pair`` of recordings or of one alone, with or without ``levels``, in their order."""
        if self.panels is not None:
            return self.panels.split(",") if isinstance(self.panels, str) else list(self.panels)
        return [name for name in PANELS if (pair or name not in ("after", "removed")) and (levels or name != "levels")]

    def amplifier(self) -> Gain | None:
        if self.gain is None:
            return None
        found = re.fullmatch(r"(agc|tpow):(\d+\.?\d*|\.\d+)", self.gain) if isinstance(self.gain, str) else None
        if found is None or not 0 < float(found[2]) < math.inf:
            forms = "agc:SECONDS, the window of automatic gain control, nor tpow:N, a power of time"
            raise OptionError(options(gain=self.gain), f" is neither {forms}")
        return Gain(found[1] == "agc", float(found[2]))

    def check(self, recording: Recording, pair: bool) -> None:
        """Raise ValueError for what cannot be drawn of a ``pair`` of recordings like this one, or of it alone."""
        source = f"{recording.source or 'the recording'}"
        if not pair:
            needy = [name for name in self.names(False) if name in ("after", "removed")]
            if needy:
                raise OptionError(options(panels=needy[0]), " needs the denoised recording too: before.plot(after)")
        if self.gain is not None and None in recording.intervals:
            raise OptionError(options(gain=self.gain), f" needs the sampling interval, which {source} lacks: ", DT)
        if self.traces_by == "id" and not recording.ids:
            raise OptionError(options(traces_by="id"), f": {source} has no station ids ({recording.format})")
        if self.traces_by == "offset" and not recording.offsets:
            why = f"{source} has no offsets: its headers ({recording.format}) do not give them"
            raise OptionError(options(traces_by="offset"), f": {why}")


DEFAULT = PlotOptions()
DT = options(dt=...)


@dataclass(frozen=True)
class Gain:
    """Amplification along a trace: automatic gain control in a window of ``value`` seconds, or that power of time."""

    agc: bool
    value: float

    def factors(self, samples: Floats, interval: float) -> Floats:
        """What the samples of a trace, gaps as NaN, are multiplied by; 0 where all of them are 0."""
        if not self.agc:
            powers: Floats = (interval * np.arange(len(samples), dtype=np.float64)) ** self.value
            return powers
        peak = float(np.nanmax(np.abs(samples), initial=0)) or 1.0
        half = max(1, round(self.value / interval / 2))
        ends = np.clip(np.arange(len(samples)) + np.array([[-half], [half + 1]]), 0, len(samples))
        known = np.concatenate([[0], np.cumsum(np.isfinite(samples))])
        energy = np.concatenate([[0.0], np.cumsum(np.nan_to_num(samples / peak) ** 2)])
        first, last = ends
        mean = np.maximum(energy[last] - energy[first], 0) / np.maximum(known[last] - known[first], 1)
        rms = peak * np.sqrt(mean)
        least = QUIETEST * float(rms.max(initial=0))
        factors: Floats = 1 / np.maximum(rms, least) if least > 0 else np.zeros(len(samples))
        return factors

    @property
    def unit(self) -> str:
        """Of samples in data units once they are multiplied."""
        return f"RMS in {self.value:g} s" if self.agc else f"data units × s^{self.value:g}"

    def __str__(self) -> str:
        return f"AGC {self.value:g} s" if self.agc else f"t^{self.value:g}"

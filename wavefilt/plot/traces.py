"""The traces to draw, before, after and removed, decimated where they are many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from wavefilt import vocabulary
from wavefilt.arrays import Array, Floats
from wavefilt.report import SECOND, energies, finite, utc

from .options import DEFAULT

if TYPE_CHECKING:
    from wavefilt.recording import Recording
    from wavefilt.vocabulary import TracesBy

    from .options import Gain, PlotOptions

PANELS, OTHERS = vocabulary.PANELS[:3], vocabulary.PANELS[3:]
"""Panels of samples, and of what is computed of them."""
SEISMOGRAMS, WIGGLES = 16, 60
"""Most rows, in all panels together, that lie horizontally, and most of a panel that are wiggles by default."""
COLUMNS = 900
"""Most columns of an image; of more traces, every k-th is drawn."""
CLIP = {"seismogram": 100.0, "wiggle": 99.5, "density": 99.0}
"""Percentile of a trace's magnitudes that is drawn as 1, by default."""

BINS = 1200
"""Most time intervals drawn per trace, each by its smallest and largest sample."""
POINTS = 64
"""Traces of at most this many samples have each marked by a point."""


@dataclass(frozen=True)
class Pair:
    """One trace before and after, 1-D arrays of one length, its sampling interval (1 if unknown) and first time."""

    before: Array
    after: Array
    interval: float
    start: float = 0.0
    gain: Gain | None = None

    @property
    def stop(self) -> float:
        return self.start + len(self) * self.interval

    def __len__(self) -> int:
        return len(self.before)

    def part(self, panel: str, start: int = 0, stop: int | None = None) -> Floats:
        """Samples ``start`` to ``stop`` of a panel of `PANELS` as real float64, gaps as NaN."""
        if panel == "removed":
            return self.part("before", start, stop) - self.part("after", start, stop)
        return finite((self.before if panel == "before" else self.after)[start:stop]).real

    def amplified(self, panel: str) -> Floats:
        """All samples of a panel; with a gain, which is that of the samples before, less the mean before."""
        samples = self.part(panel)
        if self.gain is None:
            return samples
        before = self.part("before")
        mean = middle(before)
        return (samples - (panel != "removed") * mean) * self.gain.factors(before - mean, self.interval)

    def extremes(self, panel: str, step: int) -> tuple[Floats, Floats]:
        """Smallest and largest of every ``step`` samples, NaN where all of them are in a gap."""
        samples, edges = self.amplified(panel), np.arange(0, len(self), step)
        return np.fmin.reduceat(samples, edges), np.fmax.reduceat(samples, edges)

    def envelope(self, panel: str, bins: int) -> tuple[Floats, Floats]:
        """Times and samples to draw: all of them, or the smallest and largest of each of so many intervals."""
        if len(self) <= 2 * bins:
            return self.start + np.arange(len(self), dtype=np.float64) * self.interval, self.amplified(panel)
        step = math.ceil(len(self) / bins)
        low, high = self.extremes(panel, step)
        middles = (np.arange(len(low), dtype=np.float64) + 0.5) * (step * self.interval)
        return self.start + np.repeat(middles, 2), np.column_stack([low, high]).ravel()


class Gather:
    """The traces before and after, their axes, and the energies that choose and scale what is drawn.

    Of a recording alone, without ``after``, there is one panel. Raises ValueError for recordings of different shapes,
    without samples, or without the headers that the options need.
    """

    def __init__(self, before: Recording, after: Recording | None = None, chosen: PlotOptions = DEFAULT) -> None:
        chosen.check(before, after is not None)
        self.kinds = PANELS if after else PANELS[:1]
        after = after or before
        shapes = [[len(trace) for trace in recording.traces] for recording in (before, after)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"before has {_shape(shapes[0])} and after {_shape(shapes[1])}; they must be the same")
        if not any(shapes[0]):
            raise ValueError(f"{before.source}: no samples to draw")
        names = chosen.names(len(self.kinds) > 1, after.outcome is not None or len(self.kinds) > 1)
        self.panels = [panel for panel in PANELS if panel in names]
        self.others = [panel for panel in OTHERS if panel in names]
        self._before, self._after, self._lengths = before.traces, after.traces, shapes[0]
        # with one unknown interval there is no common time axis: it is in samples then
        timed = all(dt is not None and 0 < dt < math.inf for dt in before.intervals)
        self._intervals = [float(dt or 1) if timed else 1.0 for dt in before.intervals]
        self.day: np.datetime64 | None = None
        self._starts = [0.0] * len(self._lengths)
        self.time_label = "time (s)" if timed else "time (samples)"
        if timed and before.starts:
            self.day, first = min(before.starts).astype("datetime64[D]"), min(before.starts)
            self._starts = [float((start - self.day) / SECOND) for start in before.starts]
            self.time_label = f"UTC, from {utc(first).replace('T', ' ').removesuffix('Z')}"
        self._arrange(before, chosen.traces_by or ("id" if timed and before.starts else "trace"))
        self.gain = chosen.amplifier()
        self.unit = self.gain.unit if self.gain else "data units"
        drawn = len(self) * len(self.panels)
        automatic = "seismogram" if drawn <= SEISMOGRAMS else "wiggle" if len(self) <= WIGGLES else "density"
        self.display: str = chosen.display or automatic
        self.clip, self.percentile = chosen.clip, chosen.clip or CLIP[self.display]
        self.frequency_label = "frequency (Hz)" if timed else "frequency (cycles/sample)"
        self.complex = any(np.iscomplexobj(trace) for trace in before.traces[:1])
        self.start = min(self._starts)
        self.stop = max(self.pair(i).stop for i in range(len(self._lengths)))
        self.energies, removed, self.peak = energies(before, after)
        self.strongest = int(np.argmax(self.energies))
        self.share = removed / (float(self.energies.sum()) or 1.0)

    def _arrange(self, recording: Recording, by: TracesBy) -> None:
        """The traces of each row with its label, where rows lie, and how far apart most of them do."""
        count, self.by = len(self._lengths), by
        if by == "id":
            self._rows, self.labels = list(recording.by_id.values()), list(recording.by_id)
        elif by == "offset":
            self._rows = [[int(i)] for i in np.argsort(recording.offsets, kind="stable")]
            self.labels = [f"{recording.offsets[i]:g} m" for (i,) in self._rows]
        else:
            self._rows, self.labels = [[i] for i in range(count)], [f"trace {i}" for i in range(count)]
        self.places = np.sort(recording.offsets) if by == "offset" else np.arange(len(self._rows), dtype=np.float64)
        self.spacing = spacing(self.places)

    def __len__(self) -> int:
        """Rows that are drawn: a trace each, or all traces of an id."""
        return len(self._rows)

    def pair(self, trace: int) -> Pair:
        return Pair(self._before[trace], self._after[trace], self._intervals[trace], self._starts[trace], self.gain)

    def name(self, trace: int) -> str:
        """The id of a trace, its offset or number; nothing where there is one row."""
        return "" if len(self) == 1 else next(self.labels[i] for i, row in enumerate(self._rows) if trace in row)

    def line(self, row: int, panel: str) -> tuple[Floats, Floats]:
        """Times and samples to draw, NaN between the traces of an id."""
        pairs = [self.pair(trace) for trace in self._rows[row]]
        total, parts = sum(map(len, pairs)) or 1, []
        for pair in pairs:
            parts += [pair.envelope(panel, max(2, BINS * len(pair) // total)), (np.array([np.nan]),) * 2]
        times, samples = (np.concatenate(values) for values in zip(*parts[:-1], strict=True))
        return times, samples

    def column(self, row: int, panel: str) -> Floats:
        """An image column of `BINS` places over the duration: the largest sample by magnitude in each."""
        column, scale = np.full(BINS, np.nan), BINS / (self.stop - self.start)
        for pair in (self.pair(trace) for trace in self._rows[row]):
            low, high = pair.extremes(panel, max(1, math.ceil(len(pair) / BINS)))
            values = np.where(-low > high, low, high)
            first = min(int((pair.start - self.start) * scale), BINS - 1)
            places = min(max(1, round(len(pair) * pair.interval * scale)), BINS - first)
            if values.size:
                column[first : first + places] = values[np.arange(places) * len(values) // places]
        return column

    @cached_property
    def scales(self) -> dict[int, tuple[float, float]]:
        """Mean and amplitude that is drawn as 1, of each row that is drawn: a percentile of its magnitudes before.

        At least a hundredth of the largest, so that an almost silent trace does not look like signal.
        """
        image = self.display == "density"
        rows = range(0, len(self), math.ceil(len(self) / COLUMNS) if image else 1)
        drawn = [self.column(row, "before") if image else self.line(row, "before")[1] for row in rows]
        means = [middle(values) for values in drawn]
        known = [np.abs(values[np.isfinite(values)] - mean) for values, mean in zip(drawn, means, strict=True)]
        scales = [float(np.percentile(values, self.percentile)) if values.size else 0.0 for values in known]
        largest = max(scales) or max((float(values.max()) for values in known if values.size), default=0.0) or 1.0
        return {row: (mean, max(scale, largest / 100)) for row, mean, scale in zip(rows, means, scales, strict=True)}

    @property
    def longest(self) -> int:
        """Samples of the longest trace."""
        return max(self._lengths)

    @property
    def span(self) -> tuple[float, float]:
        """Limits of the time axis, with a margin where single samples are drawn as points."""
        margin = min(self._intervals) / 2 if self.longest <= POINTS else 0.0
        return self.start - margin, self.stop - margin

    def like_strongest(self, most: int) -> list[Pair]:
        """At most about ``most`` traces with signal and sampled like the strongest, evenly spread."""
        interval = self._intervals[self.strongest]
        alike = [i for i in np.flatnonzero(self.energies > 0) if self._intervals[i] == interval]
        return [self.pair(int(i)) for i in alike[:: math.ceil(len(alike) / most) or 1]]


def spacing(places: Floats) -> float:
    """How far apart most neighbours are; 1 of a single place."""
    apart = np.diff(np.unique(places))
    return float(np.median(apart)) if apart.size else 1.0


def _shape(lengths: list[int]) -> str:
    sizes = f"{min(lengths)} to {max(lengths)}" if len(set(lengths)) > 1 else f"{max(lengths, default=0)}"
    return f"{len(lengths)} traces of {sizes} samples"


def middle(values: Floats) -> float:
    """Mean of the samples outside gaps, 0 if there are none."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else 0.0

"""Samples, spectra and levels as they are drawn, by matplotlib figures and by the viewer; no drawing library."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Array, Floats
from wavefilt.errors import OptionError
from wavefilt.options import SECOND
from wavefilt.report import energies, finite, in_words, utc
from wavefilt.vocabulary import DISPLAYS, PANELS, TRACES_BY, Display, TracesBy, check

if TYPE_CHECKING:
    from wavefilt.engine import Estimate
    from wavefilt.recording import Recording

PARTS, OTHERS = PANELS[:3], PANELS[3:]
"""Panels of samples, and panels computed from them."""
COLORS = {"before": "#4d4d4d", "after": "#0072B2", "residual": "#D55E00"}
SIGMA_COLOR, THRESHOLD_COLOR, GAP_COLOR = "#009E73", "#CC79A7", "#d9d9d9"
"""From the palette of Okabe and Ito, which colour-blind readers can distinguish."""
RANGE_DB, FLOOR = 60.0, 1e-12
"""Depth of spectrograms in dB, and the smallest amplitude, relative to the largest."""
AVERAGED = 48
"""Most traces in a mean spectrum."""
SEISMOGRAMS, WIGGLES = 16, 60
"""Most rows in all panels together that are drawn horizontally by default, and most traces drawn as wiggles."""
COLUMNS, BINS, POINTS = 900, 1200, 64
"""Most columns of an image, most time intervals per trace, and most samples that are marked by points."""
CLIP = {"seismogram": 100.0, "wiggle": 99.5, "density": 99.0}
"""Percentile of the magnitudes of a trace that is drawn at full scale, by default."""
FULL_RMS = 3.0
"""Multiple of the RMS that automatic gain control draws at full scale in the viewer."""
QUIETEST = 1e-3
"""Lowest RMS, relative to the largest of a trace, that automatic gain control amplifies to 1."""


# --------------------------------------------------------------------------------------------------------- samples


def extremes(values: Array, every: int, axis: int = -1) -> tuple[Array, Array]:
    """Return the smallest and the largest of each ``every`` values along an axis; NaN where all of them are NaN.

    About ten times as fast as `numpy.ufunc.reduceat`.
    """
    values = np.moveaxis(values, axis, 0)
    low, high = values[::every].copy("K"), values[::every].copy("K")
    for place in range(1, every):
        other = values[place::every]
        np.fmin(low[: len(other)], other, out=low[: len(other)])
        np.fmax(high[: len(other)], other, out=high[: len(other)])
    return np.moveaxis(low, 0, axis), np.moveaxis(high, 0, axis)


def largest(values: Array, every: int, axis: int = -1) -> Array:
    """Return the value of the largest magnitude of each ``every`` values along an axis."""
    low, high = extremes(values, every, axis)
    return np.where(-low > high, low, high)


def envelope(samples: Array, bins: int = BINS) -> tuple[Floats, Array]:
    """Return sample numbers and values to draw: all samples, or the smallest and the largest in at most ``bins`` bins.

    ``samples`` has shape (..., samples).
    """
    count = samples.shape[-1]
    if count <= 2 * bins:
        return np.arange(count, dtype=np.float64), samples
    every = math.ceil(count / bins)
    values = np.stack(extremes(samples, every), axis=-1).reshape(*samples.shape[:-1], -1)
    return np.repeat(np.arange(0, count, every) + (every - 1) / 2, 2), values


def inverse_rms(rows: Array, half: int) -> Array:
    """Return 1 over the RMS of rows in windows of ``half`` samples on both sides; 0 for rows without a sample but 0.

    Parts below `QUIETEST` of the largest RMS count as that, so that they stay small.
    """
    from scipy.ndimage import uniform_filter1d

    known, length = np.isfinite(rows), 2 * half + 1
    peaks = np.abs(np.where(known, rows, 0)).max(axis=1, keepdims=True, initial=0)
    peaks[peaks == 0] = 1
    squares = np.where(known, rows / peaks, 0).astype(np.float64) ** 2
    energy = uniform_filter1d(squares, length, mode="constant")
    share = uniform_filter1d(known.astype(np.float64), length, mode="constant")
    rms = peaks * np.sqrt(np.maximum(energy, 0) / np.maximum(share, 1 / length))
    rms = np.maximum(rms, QUIETEST * rms.max(axis=1, keepdims=True, initial=0))
    return np.asarray(np.divide(1, rms, out=np.zeros(rms.shape), where=rms > 0))


def means_and_scales(rows: Array, percentile: float) -> tuple[Floats, Floats]:
    """Return the mean of each row and the percentile of its magnitudes around the mean; 0 for rows of gaps."""
    if not rows.shape[1]:
        return np.zeros(len(rows)), np.zeros(len(rows))
    rows = np.where(np.isnan(rows).all(axis=1, keepdims=True), 0, rows)
    means = np.nanmean(rows, axis=1)
    return means, np.nanpercentile(np.abs(rows - means[:, None]), percentile, axis=1)


@dataclass(frozen=True)
class Gain:
    """Amplification along a trace: automatic gain control in a window of ``value`` seconds, or that power of time."""

    agc: bool
    value: float

    def factors(self, samples: Floats, interval: float, start: float = 0.0) -> Floats:
        """Return the factor of each sample of a trace that begins at ``start`` seconds; 0 where all samples are 0."""
        if self.agc:
            return np.asarray(inverse_rms(samples[None], max(1, round(self.value / interval / 2)))[0])
        return np.asarray(np.maximum(start + interval * np.arange(len(samples)), 0) ** self.value)

    @property
    def unit(self) -> str:
        """The unit of amplified samples."""
        return f"RMS in {self.value:g} s" if self.agc else f"data units × s^{self.value:g}"

    def __str__(self) -> str:
        return f"AGC {self.value:g} s" if self.agc else f"t^{self.value:g}"


# --------------------------------------------------------------------------------------------- spectra and levels


def amplitudes(before: Array, after: Array, starts: NDArray[np.intp], length: int, peak: float) -> dict[str, Floats]:
    """Return amplitude spectra (windows, frequencies), relative to ``peak``, of windows of each of `PARTS` of a trace.

    The mean of each window is subtracted; gaps and samples beyond the ends are 0. Windows are tapered and padded to
    twice their length.
    """
    transforms = []
    for trace in (before, after):
        wide = np.pad(trace.astype(np.float64) / peak, (length, 2 * length), constant_values=np.nan)
        windows = np.lib.stride_tricks.sliding_window_view(wide, length)[starts + length]
        known = np.isfinite(windows)
        counts = np.maximum(known.sum(axis=1, keepdims=True), 1)
        means = np.where(known, windows, 0).sum(axis=1, keepdims=True) / counts
        centred = np.where(known, windows - means, 0)
        transforms.append(np.fft.rfft(centred * np.hanning(length + 2)[1:-1], 2 * length) / length)
    noisy, clean = transforms
    return {part: np.abs(values) for part, values in zip(PARTS, (noisy, clean, noisy - clean), strict=True)}


def mean_spectra(before: Sequence[Array] | Array, after: Sequence[Array] | Array, peak: float) -> dict[str, Floats]:
    """Return the mean spectrum of each of `PARTS` over traces and at most 32 windows of each, as `decibels`."""
    length = _power_of_two(max(map(len, before)) / 4, 2048)
    sums = dict.fromkeys(PARTS, np.zeros(length + 1))
    for traces in zip(before, after, strict=True):
        starts = np.unique(np.linspace(0, max(0, len(traces[0]) - length), 32).astype(np.intp))
        for part, values in amplitudes(*traces, starts, length, peak).items():
            sums[part] = sums[part] + values.mean(axis=0)
    return decibels({part: total / len(before) for part, total in sums.items()})


def spectrograms(before: Array, after: Array, peak: float) -> dict[str, Floats]:
    """Return spectra (frequencies, times) of each of `PARTS` of a trace at 400 even times at most, as `decibels`."""
    length = _power_of_two(len(before) / 10, 512)
    starts = np.arange(0, len(before), math.ceil(len(before) / 400)) - length // 2
    return decibels({part: values.T for part, values in amplitudes(before, after, starts, length, peak).items()})


def _power_of_two(value: float, most: int) -> int:
    """Return the power of two nearest to ``value``, from 8 to ``most``."""
    return min(most, max(8, int(2 ** round(math.log2(value)))))


def decibels(amplitudes: dict[str, Floats]) -> dict[str, Floats]:
    """Return amplitudes in dB relative to the largest before, at least that of `FLOOR`.

    Where the largest is a rounding error of a constant, all are at `FLOOR`.
    """
    largest = float(amplitudes["before"].max())
    unit = largest if largest > FLOOR else math.inf
    return {part: 20 * np.log10(np.maximum(values / unit, FLOOR)) for part, values in amplitudes.items()}


def noise_and_thresholds(estimates: Sequence[Estimate]) -> Floats:
    """Return the medians of noise and threshold (2, bands) over traces with noise, finest band first; 0 without any."""
    bands = max((len(estimate.sigma) for estimate in estimates), default=0)
    medians = np.zeros((2, bands))
    for band in range(bands):
        pairs = np.hstack([(e.sigma[band], e.thresholds[band]) for e in estimates if len(e.sigma) > band])
        live = pairs.max(axis=0) > 0
        if live.any():
            medians[:, band] = np.median(pairs[:, live], axis=1)
    return medians


def energies_by_level(estimates: Sequence[Estimate], bands: int) -> Floats | None:
    """Return the energies of details and of their noise (2, bands); None if they were not measured."""
    found = np.zeros((2, bands))
    for estimate in estimates:
        if estimate.power is None:
            return None
        counts = estimate.counts[:, None]
        found[0, : len(estimate.sigma)] += (estimate.power * counts).sum(axis=1)
        noise = (estimate.sigma**2 * counts).sum(axis=1)
        found[1, : len(estimate.sigma)] += estimate.analysis.transform.parts * noise
    return found


# --------------------------------------------------------------------------------------------------------- figures


@dataclass(frozen=True)
class PlotOptions:
    """Options of `Recording.plot` and of ``wavefilt denoise --plot``. Raises ValueError for an invalid value.

    Attributes
    ----------
    panels : sequence of str, or names with commas, optional
        Panels to draw: ``"before"``, ``"after"``, ``"residual"``, ``"spectrograms"``, ``"spectra"``, ``"levels"``
        (energies, noise and thresholds); by default all.
    gain : str, optional
        Amplification of the traces before, which all panels of samples share: ``"agc:0.25"``, division by the RMS in a
        moving window of 0.25 s, or ``"tpow:2"``, a power of the time from the trigger or, without a delay in the
        headers, from the first sample of the trace or of its id. Spectra have no gain.
    clip : float, optional
        Percentile of the magnitudes of each trace before that is drawn at full scale; by default 100 for seismograms,
        99.5 for wiggles and 99 for density.
    display : {"seismogram", "wiggle", "density"}, optional
        Lines along a horizontal time axis, by default for at most 16 rows in all panels together; lines with a filled
        side, time downwards, by default for at most 60 traces; an image with a colour bar.
    traces_by : {"trace", "offset", "id"}, optional
        Place traces by number, by offset in metres, or by station id with all traces of an id in one row; by default
        by id if there are ids.
    """

    panels: str | Sequence[str] | None = None
    gain: str | None = None
    clip: float | None = None
    display: Display | None = None
    traces_by: TracesBy | None = None

    def __post_init__(self) -> None:
        for panel in self.names:
            check("panels", panel, PANELS)
        if self.panels is not None and not self.panels:
            raise OptionError(f"`panels` must name at least one of {', '.join(PANELS)}")
        if self.display is not None:
            check("display", self.display, DISPLAYS)
        if self.traces_by is not None:
            check("traces_by", self.traces_by, TRACES_BY)
        if self.clip is not None and not (isinstance(self.clip, int | float) and 0 < self.clip <= 100):
            raise OptionError(f"`clip` must be a percentile above 0 and up to 100, not {self.clip!r}")
        self.amplifier()

    @property
    def names(self) -> list[str]:
        """The names of the panels that are asked for; empty for the default."""
        return self.panels.split(",") if isinstance(self.panels, str) else list(self.panels or ())

    def amplifier(self) -> Gain | None:
        """Return the gain, None without one."""
        if self.gain is None:
            return None
        found = re.fullmatch(r"(agc|tpow):(\d+\.?\d*|\.\d+)", self.gain) if isinstance(self.gain, str) else None
        if found is None or not 0 < float(found[2]) < math.inf:
            raise OptionError(f"`gain` must be agc:SECONDS (a moving window) or tpow:N (a power), not {self.gain!r}")
        return Gain(found[1] == "agc", float(found[2]))

    def check(self, recording: Recording, pair: bool) -> None:
        """Raise ValueError for panels and headers that a ``pair`` of recordings like this, or one alone, lacks."""
        source = recording.source or "the recording"
        for name in self.names:
            if not pair and name in PARTS[1:]:
                raise OptionError(f"`panels`: {name} needs the denoised recording too: before.plot(after)")
        if self.gain is not None and None in recording.intervals:
            raise OptionError(f"`gain={self.gain!r}` needs the sampling interval, which {source} lacks: give `dt`")
        if self.traces_by == "id" and not recording.ids:
            raise OptionError(f"`traces_by='id'`: {source} ({recording.format}) has no station ids")
        if self.traces_by == "offset" and not recording.offsets:
            raise OptionError(f"`traces_by='offset'`: the headers of {source} ({recording.format}) have no offsets")


class DrawnTraces:
    """The traces of a figure before and after, arranged in rows: a trace each, or all traces of a station id.

    Without ``after`` there is one part. Raises ValueError for recordings of different shapes, without samples, or
    without the headers that the options need.
    """

    def __init__(self, before: Recording, after: Recording | None, options: PlotOptions) -> None:
        options.check(before, after is not None)
        self.parts = PARTS if after else PARTS[:1]
        pair, after = after is not None, after or before
        self._lengths, lengths = ([len(trace) for trace in recording.traces] for recording in (before, after))
        if self._lengths != lengths:
            sizes = (in_words(recording)[2] for recording in (before, after))
            raise ValueError(f"before has {' and after '.join(sizes)}; they must be the same")
        if not any(lengths):
            raise ValueError(f"{before.source}: no samples to draw")
        outcome = after.outcome
        statics = outcome is not None and outcome.statics is not None and outcome.statics.found
        offered = {"after": pair, "residual": pair, "levels": pair or outcome is not None, "statics": statics}
        names = options.names or [name for name in PANELS if offered.get(name, True)]
        self.panels = [panel for panel in PARTS if panel in names]
        self.others = [panel for panel in OTHERS if panel in names]
        self._before, self._after = before.traces, after.traces
        # with one unknown interval there is no common time axis: times are then in samples
        timed = all(dt is not None and 0 < dt < math.inf for dt in before.intervals)
        self._intervals = [float(dt or 1) if timed else 1.0 for dt in before.intervals]
        self.day: np.datetime64 | None = None
        self._delays = list(before.delays) if timed and before.delays else [0.0] * len(lengths)
        self._starts = self._delays
        self.time_label = time_label(before) if timed else "time (samples)"
        if timed and before.starts:
            self.day, first = min(before.starts).astype("datetime64[D]"), min(before.starts)
            self._starts = [float((start - self.day) / SECOND) for start in before.starts]
            self.time_label = f"UTC, from {utc(first).replace('T', ' ').removesuffix('Z')}"
        self._arrange(before, options.traces_by or ("id" if timed and before.starts else "trace"))
        if self.day is not None and not before.delays:  # gains count time from the first sample of an id
            for row in before.by_id.values():
                begin = min(self._starts[trace] for trace in row)
                for trace in row:
                    self._delays[trace] = self._starts[trace] - begin
        self.gain = options.amplifier()
        self.unit = self.gain.unit if self.gain else "data units"
        drawn = len(self) * len(self.panels)
        automatic = "seismogram" if drawn <= SEISMOGRAMS else "wiggle" if len(self) <= WIGGLES else "density"
        self.display: str = options.display or automatic
        self.clip, self.percentile = options.clip, options.clip or CLIP[self.display]
        self.frequency_label = "frequency (Hz)" if timed else "frequency (cycles/sample)"
        ends = [self.times(trace) for trace in range(len(lengths))]
        self.start, self.stop = min(start for start, _ in ends), max(stop for _, stop in ends)
        measured = energies(before, after)
        self.energies, self.share, self.peak = measured.traces, measured.share, measured.unit or 1.0
        self.strongest = int(np.argmax(self.energies))

    def _arrange(self, recording: Recording, by: TracesBy) -> None:
        """Set the traces and label of each row, the places of the rows, and the usual distance between them."""
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
        """Return the number of rows."""
        return len(self._rows)

    def times(self, trace: int) -> tuple[float, float]:
        """Return the time of the first sample of a trace, and of the sample after its last."""
        return self._starts[trace], self._starts[trace] + self._lengths[trace] * self._intervals[trace]

    def name(self, trace: int) -> str:
        """Return the id of a trace, its offset or number; nothing where there is one row."""
        return "" if len(self) == 1 else next(self.labels[i] for i, row in enumerate(self._rows) if trace in row)

    def samples(self, trace: int, part: str) -> Floats:
        """Return a trace of one of `PARTS` as real float64, gaps as NaN."""
        if part == "residual":
            return self.samples(trace, "before") - self.samples(trace, "after")
        return finite((self._before if part == "before" else self._after)[trace]).real

    def amplified(self, trace: int, part: str) -> Floats:
        """Return a trace, with a gain without the mean before and with the gain of the samples before."""
        samples = self.samples(trace, part)
        if self.gain is None:
            return samples
        before = self.samples(trace, "before")
        mean = means_and_scales(before[None], 0)[0]
        return (samples - (part != "residual") * mean) * self.gain.factors(
            before - mean, self._intervals[trace], self._delays[trace]
        )

    def line(self, row: int, part: str) -> tuple[Floats, Floats]:
        """Return the times and samples of a row, NaN between the traces of an id."""
        traces = self._rows[row]
        total, parts = sum(self._lengths[trace] for trace in traces) or 1, []
        for trace in traces:
            places, samples = envelope(self.amplified(trace, part), max(2, BINS * self._lengths[trace] // total))
            gap = np.array([np.nan])
            parts += [(self._starts[trace] + places * self._intervals[trace], samples), (gap, gap)]
        times, samples = (np.concatenate(values) for values in zip(*parts[:-1], strict=True))
        return times, samples

    def column(self, row: int, part: str) -> Floats:
        """Return a row at `BINS` times over the duration: the sample of the largest magnitude at each."""
        column, scale = np.full(BINS, np.nan), BINS / (self.stop - self.start)
        for trace in self._rows[row]:
            values = largest(self.amplified(trace, part), max(1, math.ceil(self._lengths[trace] / BINS)))
            start, stop = self.times(trace)
            first = min(int((start - self.start) * scale), BINS - 1)
            places = min(max(1, round((stop - start) * scale)), BINS - first)
            if values.size:
                column[first : first + places] = values[np.arange(places) * len(values) // places]
        return column

    @cached_property
    def scales(self) -> dict[int, tuple[float, float]]:
        """The mean of each drawn row before, and the amplitude at full scale.

        That is at least a hundredth of the largest, so that an almost silent row does not look like signal.
        """
        image = self.display == "density"
        rows = range(0, len(self), math.ceil(len(self) / COLUMNS) if image else 1)
        drawn = [self.column(row, "before") if image else self.line(row, "before")[1] for row in rows]
        means, scales = np.hstack([means_and_scales(values[None], self.percentile) for values in drawn])
        most = scales.max() or max(means_and_scales(values[None], 100)[1][0] for values in drawn) or 1.0
        found = zip(rows, means.tolist(), np.maximum(scales, most / 100).tolist(), strict=True)
        return {row: (mean, scale) for row, mean, scale in found}

    @property
    def longest(self) -> int:
        """Samples of the longest trace."""
        return max(self._lengths)

    @property
    def span(self) -> tuple[float, float]:
        """Limits of the time axis, with a margin where single samples are drawn as points."""
        margin = min(self._intervals) / 2 if self.longest <= POINTS else 0.0
        return self.start - margin, self.stop - margin

    @property
    def nyquist(self) -> float:
        """The Nyquist frequency of the strongest trace."""
        return 0.5 / self._intervals[self.strongest]

    def mean_spectra(self) -> dict[str, Floats] | None:
        """Return the `mean_spectra` of live traces sampled like the strongest; None if there are none."""
        interval = self._intervals[self.strongest]
        alike = [int(i) for i in np.flatnonzero(self.energies > 0) if self._intervals[i] == interval]
        chosen = alike[:: math.ceil(len(alike) / AVERAGED) or 1]
        before, after = ([self.samples(trace, part) for trace in chosen] for part in PARTS[:2])
        return mean_spectra(before, after, self.peak) if chosen else None

    def spectrograms(self) -> dict[str, Floats]:
        """Return the `spectrograms` of the strongest trace."""
        before, after = (self.samples(self.strongest, part) for part in PARTS[:2])
        return spectrograms(before, after, self.peak)


def time_label(recording: Recording) -> str:
    """Return the label of an axis of times in seconds."""
    return "time from the trigger (s)" if recording.delays else "time (s)"


def spacing(places: Floats) -> float:
    """Return the median distance between neighbours; 1 for a single place."""
    apart = np.diff(np.unique(places))
    return float(np.median(apart)) if apart.size else 1.0


# ---------------------------------------------------------------------------------------------------------- viewer

MOST_TRACES, MOST_SAMPLES, MOST_BINS = 500, 1100, 600
"""Most traces and samples of an image in the viewer, and most bins of a line."""
REACH = 1.5
"""Distance in traces that a wiggle reaches at most."""


View = tuple[slice, slice]
"""The visible traces and samples."""


def visible(rows: Array, *ends: tuple[float, float]) -> View:
    """Return the traces and the samples between two places on their axes: at least one of each."""
    slices = []
    for (low, high), count in zip(map(sorted, ends), rows.shape, strict=True):
        first = min(max(math.floor(low), 0), count - 1)
        slices.append(slice(first, max(min(math.ceil(high) + 1, count), first + 1)))
    return slices[0], slices[1]


class SectionImages:
    """Images and wiggles of rows before and after, of the visible part and decimated to the pixels of a screen.

    Without rows ``after``, nothing is drawn but the rows before. The parts in ``levelled`` have automatic gain control
    in windows of ``half`` samples on both sides.
    """

    def __init__(self, rows: Array, half: int) -> None:
        self.before: Array = rows.real
        self.after: Array | None = None
        self.levelled: Sequence[str] = ()
        self.half = half
        # about 1000 samples of each trace are enough for its scale
        sample = self.before[:, :: max(1, rows.shape[1] // 1024)].astype(np.float64)
        self.means, self.peaks = means_and_scales(sample, CLIP["density"])

    def values(self, part: str, traces: slice, samples: slice) -> Array:
        """Return a section of one of `PARTS`, without the mean of each trace before."""
        after = self.before if self.after is None else self.after
        own = (after if part == "after" else self.before)[traces, samples]
        if part == "residual":
            return np.asarray(own - after[traces, samples])
        return np.asarray(own - self.means[traces, None].astype(own.dtype))

    def scaled(self, part: str, traces: slice, samples: slice, together: bool) -> Array:
        """Return a section of one of `PARTS` relative to the scale of each trace, or levelled."""
        if part not in self.levelled:
            return np.asarray(self.values(part, traces, samples) / self.scales(together)[traces, None])
        first = max(samples.start - self.half, 0)  # the window reaches beyond the visible samples
        rows = self.values(part, traces, slice(first, samples.stop + self.half))
        rows = rows * inverse_rms(rows, self.half) / FULL_RMS
        return rows[:, samples.start - first :][:, : samples.stop - samples.start]

    def scales(self, together: bool) -> Floats:
        """Return the amplitude of each trace that is drawn as 1; with ``together`` the largest of all traces."""
        most = self.peaks.max() or 1.0
        return np.full_like(self.peaks, most) if together else np.maximum(self.peaks, most / 100)

    def image(self, part: str, view: View, together: bool) -> tuple[Array, tuple[float, float, float, float]]:
        """Return an image (samples, traces), and its place: first trace and sample, and their number.

        Values are relative to the scale of each trace, or with ``together`` in data units. Where several samples and
        traces share a pixel, the largest magnitude is drawn.
        """
        traces, samples = view
        values = self.scaled(part, traces, samples, together) * (self.scales(True)[0] if together else 1.0)
        across, along = math.ceil(values.shape[0] / MOST_TRACES), math.ceil(values.shape[1] / MOST_SAMPLES)
        values = largest(largest(values, along, 1), across, 0)
        place = (traces.start - 0.5, samples.start - 0.5, float(len(values) * across), float(values.shape[1] * along))
        return np.ascontiguousarray(values.T, np.float32), place

    def wiggles(self, part: str, view: View, together: bool, gain: float = 1.0) -> tuple[tuple[Array, Array], ...]:
        """Return trace and sample numbers of lines, and of the filled areas on their positive side.

        NaN separates traces. ``gain`` multiplies the amplitudes. A single trace is in data units, with its mean, and
        has no area.
        """
        first, last, samples = view[0].start, view[0].stop, view[1]
        traces = slice(first, last, math.ceil((last - first) / WIGGLES))
        alone = len(self.before) == 1
        own = self.values(part, traces, samples) if alone else self.scaled(part, traces, samples, together)
        places, values = envelope(own, MOST_BINS)
        places = places + samples.start
        time = np.append(places, np.nan)
        if alone:
            mean = 0.0 if part == "residual" else self.means[0]
            return (np.append(values[0] + mean, np.nan), time), (np.empty(0), np.empty(0))
        numbers = np.arange(first, last, traces.step, dtype=np.float64)[:, None]
        shifts = traces.step * np.clip(0.7 * gain * values, -REACH, REACH)
        filled = np.hstack([numbers, numbers + np.maximum(np.nan_to_num(shifts), 0), numbers])
        ends = np.concatenate([places[:1], places, places[-1:], [np.nan]])
        count = len(values)
        return (_joined(numbers + shifts), np.tile(time, count)), (_joined(filled), np.tile(ends, count))


def _joined(rows: Array) -> Array:
    """Return all rows as one, NaN after each."""
    return np.hstack([rows, np.full((len(rows), 1), np.nan)]).ravel()

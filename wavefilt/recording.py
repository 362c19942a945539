"""A recording: the traces of a file, to be denoised, plotted and written back."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

import numpy as np
from numpy.typing import NDArray

from wavefilt import arrays, io
from wavefilt.api import run, run_with_noise
from wavefilt.arrays import Array
from wavefilt.backends import Backend, registry
from wavefilt.engine import Outcome
from wavefilt.errors import OptionError
from wavefilt.options import (
    Clock,
    Keywords,
    Noise,
    NoiseForm,
    Options,
    check_names,
    checked,
    common_noise,
    completed,
    to_call,
    to_give,
)
from wavefilt.vocabulary import Display, Preset, TracesBy, Window
from wavefilt.wavelets.filters import WaveletLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wavefilt.advice import TrustReport
    from wavefilt.io.sources import Source

GUARD, GUARD_SAMPLES = 0.05, 8
"""Share of the time before the trigger, and number of samples, at the end of it that are not taken for noise: triggers
and picks may be late, and filters of the instrument reach ahead."""
LIBRARIES = ("obspy", "xarray", "dascore")
"""`Recording.format` for traces from objects of these libraries, for which the recipe is not the default."""
LEAST = 64
"""Fewest samples of a noise window that headers declare; a shorter one is not used."""

Timing = tuple[tuple[float, str] | None, float | None, int, float]
"""`Headers.onset`, sampling interval, number of samples and delay of a trace."""


def read(
    path: str | bytes | os.PathLike[str] | BinaryIO,
    *,
    format: str | None = None,
    dtype: str | None = None,
    endian: str | None = None,
    ns: int | None = None,
    dt: float | None = None,
    columns: tuple[int, ...] | None = None,
    delimiter: str | None = None,
    component: str | None = None,
    axis: int | None = None,
) -> Recording:
    """Read traces from a file in any known format.

    Parameters
    ----------
    path : str, Path or binary file object
        A local file, or a Zarr folder. Its content decides the format; its name is ignored. ``path::dataset``
        names the array in an HDF5 file, a Zarr group or an npz file with several arrays. Files compressed by gzip,
        bzip2 or xz are decompressed in memory.
    format : str, optional
        A name of `wavefilt.io.FORMATS`, to read the file in this format and no other.
    dtype, endian, ns : str, str, int, optional
        Raw binary: ``"f4" "f8" "i2" "i4"``, ``"little" "big"``, samples per trace; all three are needed.
    dt : float, optional
        Sampling interval in seconds, if the file does not record it.
    columns, delimiter : optional
        ASCII: the columns that are traces, counted from 1; the character between cells.
    component, axis : optional
        npz, HDF5, Zarr: the array to denoise. npy, npz, HDF5, Zarr: the axis of the samples, the last by default.

    Returns
    -------
    Recording

    Raises
    ------
    FormatError
        For an empty, damaged, truncated, ambiguous or unknown file, with the formats tried and the way to read it as
        raw binary; for an option that does not apply to the format.
    ValueError
        For an unknown format name, or an invalid layout.
    OSError
        If the file cannot be read.
    """
    layout = io.Layout(dtype, endian, ns, dt, columns, delimiter, component, axis)
    contents = io.read(path, layout, format)
    recording = contents if isinstance(contents, Recording) else Recording(**vars(contents))
    given = {"format": format, **vars(layout)}
    return replace(recording, layout={name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True, eq=False)
class Recording(io.Contents):
    """Traces read from a file (`wavefilt.read`).

    Attributes
    ----------
    traces : ndarray (traces, samples), or sequence of 1-D ndarrays
        Samples in the file's own units (counts); a sequence if the traces have different lengths.
    intervals : tuple of float or None
        Sampling interval of each trace in seconds, None if the file does not give it.
    format : str
        Name of the format, e.g. ``"seg2"``.
    origin : object
        The data from which the format writes every header back; opaque to everything else.
    source : str
        The path of the file.
    notes : tuple of str
        Remarks for the user about reading or writing this file.
    ids : tuple of str
        Station and channel codes of each trace, e.g. ``"BW.FURT..EHZ"``; empty if the format has none. Traces of one
        id are parts of one record.
    starts : tuple of numpy.datetime64
        UTC time of the first sample of each trace, in nanoseconds; empty if the format has none.
    delays : sequence of float
        Seconds from the trigger to the first sample of each trace; empty if all are 0, or the format has none.
    outcome : Outcome, optional
        How these traces were denoised, if they were.
    noise : DeclaredNoise, optional
        The noise windows of the headers, if these traces were denoised without another option ``sigma``.
    sigma : option of `denoise`, optional
        The noise that was given for denoising these traces, in seconds, times and picks.
    layout : dict
        The options of `wavefilt.read` with which the file was read.
    """

    outcome: Outcome | None = None
    noise: DeclaredNoise | None = field(default=None, repr=False)
    sigma: NoiseForm | None = field(default=None, repr=False)
    layout: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def call(self) -> str:
        """Python code that reads the file again; "recording" without a file."""
        options = [f"{name}={value!r}" for name, value in self.layout.items()]
        return (
            f"wavefilt.read({', '.join([repr(self.source), *options])})"
            if self.source not in ("", "-")
            else "recording"
        )

    @cached_property
    def live(self) -> NDArray[np.bool_]:
        """Whether each trace has samples that differ; dead (constant) traces and traces of gaps have none."""
        return np.array([_varies(trace[:64]) or _varies(trace) for trace in self.traces], dtype=bool)

    @property
    def dead(self) -> int:
        """Number of constant traces."""
        return sum(arrays.known(self.traces[int(i)]).size > 0 for i in np.flatnonzero(~self.live))

    @cached_property
    def by_id(self) -> dict[str, list[int]]:
        """The numbers of the traces of each id."""
        return arrays.places(self.ids)

    @property
    def complex(self) -> bool:
        """Whether samples are complex."""
        return any(np.iscomplexobj(trace) for trace in self.traces[:1])

    def __repr__(self) -> str:
        from wavefilt.report import in_words

        return f"<Recording {', '.join(filter(None, in_words(self)))}>"

    def _repr_html_(self) -> str:
        """Return the text and a small picture, for notebooks; without matplotlib, or samples, the text alone."""
        from wavefilt.report import in_words

        source, *others = map(html.escape, in_words(self))
        text = f"<b>{source or 'Recording'}</b>: {', '.join(filter(None, others))}"
        try:
            from wavefilt.plotting.figure import thumbnail

            return f"{text}<br>{thumbnail(self)}"
        except (ImportError, ValueError):
            return text

    def clock(self, trace: int) -> Clock:
        """Return when a trace was sampled."""
        start = self.starts[trace] if self.starts else None
        delay = self.delays[trace] if self.delays else 0.0
        return Clock(self.intervals[trace], start, len(self.traces[trace]), self.source, delay)

    @cached_property
    def noise_by_headers(self) -> DeclaredNoise | None:
        """The noise windows before the trigger, origin or first arrival that the headers give; None without any."""
        if not self.onsets:
            return None
        lengths = list(map(len, self.traces))
        delays = self.delays or (0.0,) * len(lengths)
        return DeclaredNoise.before(list(zip(self.onsets, self.intervals, lengths, delays, strict=True)))

    @cached_property
    def declared_noise(self) -> DeclaredNoise | None:
        """`noise_by_headers`, or None if every trace is muted there."""
        found = self.noise_by_headers
        inside = (x[w[1] : w[2]] for x, w in zip(self.traces, found.windows, strict=True) if w) if found else ()
        return found if any(map(_varies, inside)) else None

    def sigmas(self, sigma: NoiseForm | None, options: Options | None = None) -> list[NoiseForm]:
        """Return the option ``sigma`` of each trace in samples; for None the noise that the headers declare.

        With ``options``, declared noise that they do not support is left out. Raises ValueError if the noise does not
        fit a trace, or if ``options`` are for a record or a section, and it is at different samples of the traces.
        """
        count = len(self.traces)
        if sigma is None and self.declared_noise:
            return self.declared_noise.sigmas(options)
        if not isinstance(sigma, tuple):
            return ["level" if sigma is None else sigma] * count
        # a running window is in samples if no trace has a sampling interval, as in arrays
        in_seconds = sigma[:1] != ("running",) or any(self.intervals)
        found = [self.clock(trace).in_samples(sigma) if in_seconds else sigma for trace in range(count)]
        if options and (options.scope == "record" or options.ndim == 2) and len(set(found)) > 1:
            what = "a section" if options.ndim == 2 else 'scope="record"'
            raise ValueError(f"{self.source}: {what} needs noise at the same samples of all traces")
        return found

    @property
    def recipe(self) -> dict[str, Any]:
        """The properties that decide the options of the recipe: arguments of `wavefilt.options.completed`."""
        intervals = set(self.intervals)
        return {
            "seismic": io.base.named(self.format).seismic and self.format not in LIBRARIES,
            "interval": intervals.pop() if len(intervals) == 1 else None,
            "samples": max(map(len, self.traces), default=0),
        }

    def residual(self, denoised: Recording) -> Recording:
        """Return the difference from the denoised recording, which has the same shape."""
        if isinstance(self.traces, np.ndarray) and isinstance(denoised.traces, np.ndarray):
            return replace(self, traces=arrays.take(self.traces, -1).rows - denoised.traces)
        return replace(self, traces=[x.astype(y.dtype) - y for x, y in zip(self.traces, denoised.traces, strict=True)])

    def denoise(
        self,
        wavelet: WaveletLike | None = None,
        *,
        preset: Preset | None = None,
        two_dimensional: bool = False,
        backend: str | Backend = "auto",
        **options: Unpack[Keywords],
    ) -> Recording:
        """Denoise every trace.

        Options and errors are as for `wavefilt.denoise` (level, mode, rule, shrink, sigma, scope, keep, transform,
        spins, detrend, blend); `residual` returns the difference. ``two_dimensional`` corresponds to ``axes=(0, 1)``:
        all traces, in their order, are one section, and must have the same length.

        For seismic files, options that are not given come from the recipe: rule "js", wavelet "sym8" and the MODWT, or
        for sections the transform "fk". ``preset`` ("gentle", "section", "strong") selects other options. Array files
        (npy, npz, HDF5, Zarr, WAV) have the defaults of `wavefilt.denoise`.

        Without ``sigma``, `declared_noise` is used where the headers declare noise and the options support a noise
        window; ``sigma="level"`` turns it off.

        ``sigma`` takes seconds instead of samples: ``("seconds", start, stop)`` of noise,
        ``("before", pick, seconds)``, ``("running", seconds)`` and ``("intervals", points)``. Times are seconds from
        the trigger, which without a delay in the headers is the first sample of each trace. Picks and points may also
        be dates (`datetime`, `numpy.datetime64`, or text as 2020-01-31T12:30:00) if the recording has the dates of its
        traces; so may the ends of ``("window", start, stop)``, unless they are whole numbers (samples).
        """
        check_names(options, "two_dimensional", "preset")
        registry.check_name(backend)
        given = {**options, "wavelet": wavelet, "two_dimensional": two_dimensional}
        chosen, sigma = self.options(given, preset)
        return self.apply(chosen, backend, sigma=sigma)

    def options(self, given: Mapping[str, Any], preset: str | None = None) -> tuple[Options, NoiseForm | None]:
        """Return the options of `denoise` for these given ones, and ``sigma`` in seconds, times and picks, if given.

        The `Options` themselves have the noise "level". Raises ValueError for invalid options.
        """
        chosen = completed(given, preset, **self.recipe)
        sigma = chosen.pop("sigma", None)
        return checked(chosen), sigma

    def apply(
        self, options: Options, backend: str | Backend = "auto", report: bool = False, sigma: NoiseForm | None = None
    ) -> Recording:
        """Denoise with `Options`; ``report`` as in `wavefilt.api.run`.

        ``sigma``, in seconds, times and picks as in `denoise`, replaces that of the options. Traces of a sequence are
        returned each in its own dtype of computation. Raises ValueError for a section of traces of several lengths.
        """
        self.check(options)
        taken = arrays.take(self.traces, -1) if isinstance(self.traces, np.ndarray) else None
        rows = taken.rows if taken else self.rows()
        noise = self.declared_noise if sigma is None and options.sigma == "level" else None
        sigmas = [] if sigma is None and noise is None else self.sigmas(sigma, options)
        outcome = run_with_noise(rows, options, sigmas, backend, report)
        asked, used, notes = options.filters.name, outcome.options.filters.name, self.notes
        if used != asked:
            notes = (*notes, f"too few traces or samples for one level of {asked}: {used} is used")
        traces: Array | list[Array]
        if taken:
            traces = taken.restore(outcome.samples)
        else:
            pairs = zip(outcome.samples, self.traces, strict=True)
            traces = [y[: len(x)].astype(arrays.compute_dtype(x.dtype), copy=False) for y, x in pairs]
        return replace(self, traces=traces, outcome=outcome, noise=noise, sigma=sigma, notes=notes)

    def check(self, options: Options) -> None:
        """Raise ValueError for a section of traces of several lengths."""
        lengths = {len(trace) for trace in self.traces}
        if options.ndim == 2 and len(lengths) > 1:
            sizes = f"not of {min(lengths)} to {max(lengths)} samples"
            raise OptionError(f"{self.source}: `two_dimensional` needs traces of one length, {sizes}")

    def rows(self) -> Array:
        """Return all traces as one array (traces, samples) in C order: NaN in gaps and after shorter traces."""
        if isinstance(self.traces, np.ndarray):
            return arrays.take(self.traces, -1).rows
        dtype = arrays.compute_dtype(np.result_type(*self.traces))
        rows = np.full((len(self.traces), max(map(len, self.traces))), np.nan, dtype)
        for row, trace in zip(rows, self.traces, strict=True):
            if len(trace):
                row[: len(trace)] = arrays.take(trace, -1).rows[0]
        return rows

    def judged_by(self, noisy: Recording) -> NoiseForm:
        """Return the option ``sigma``, in samples and for all traces, with which this result is tested."""
        # some transforms take no noise window, and their results are tested with it nevertheless
        if self.noise or self.sigma is not None:
            return common_noise(noisy.sigmas(self.sigma))
        return "level" if self.outcome is None else self.outcome.options.sigma

    def trust(self, noisy: Recording, *, call: str = "", samples: int = 1 << 23) -> TrustReport:
        """Test this denoised recording against the noisy one with `wavefilt.trust.report`.

        Simulated noise is denoised with the same options. ``denoised.trust(noisy).write("report.html")`` writes the
        report, which states the options, or the ``call`` or command that is given. Traces of several lengths end in
        gaps. Raises ValueError for recordings of different shapes, and TypeError for complex samples.
        """
        from wavefilt.advice.trust import report
        from wavefilt.report import statements

        if [len(trace) for trace in self.traces] != [len(trace) for trace in noisy.traces]:
            raise ValueError(f"{noisy.source} and {self.source or 'this recording'} have different traces")
        before, after = (one.traces if isinstance(one.traces, np.ndarray) else one.rows() for one in (noisy, self))
        outcome = self.outcome
        options = None if outcome is None else outcome.options
        sigma = self.judged_by(noisy)

        def again(rows: Array) -> Array:
            assert outcome is not None
            own = outcome.options if outcome.options.noise.window is None else outcome.options.with_noise(sigma)
            return run(rows.astype(outcome.samples.dtype), own, outcome.backend).samples

        delays, declared = set(noisy.delays), noisy.declared_noise is not None
        if options is not None and not call:
            given = {each.name: getattr(options, each.name) for each in fields(Options) if each.init}
            given |= {"two_dimensional": given.pop("ndim") == 2, "transform": options.transform.word}
            asked = None if self.noise else self.sigma if self.sigma is not None else options.sigma
            given |= {"sigma": asked} | ({} if callable(given["rule"]) else {"rule": options.rule.option})
            call = f"{noisy.call}.denoise({to_call(to_give(given, **noisy.recipe), declared)})"
        found = report(
            before,
            after,
            None if options is None else again,
            sigma=sigma,
            delay=delays.pop() if len(delays) == 1 else 0.0,
            declared=self.noise.source if self.noise else "",
            interval=self.intervals[0] if len(set(self.intervals)) == 1 else None,
            name=Path(noisy.source).name,
            call=call,
            samples=samples,
        )
        return replace(found, statements=tuple(statements(noisy, self)))

    def plot(
        self,
        after: Recording | None = None,
        *,
        path: str | Path | None = None,
        panels: str | Sequence[str] | None = None,
        gain: str | None = None,
        clip: float | None = None,
        display: Display | None = None,
        traces_by: TracesBy | None = None,
        dpi: float = 120,
        overwrite: bool = False,
    ) -> Figure:
        """Draw the traces; with ``after``, also the denoised traces and the residual, on one amplitude scale.

        ``after`` is the denoised recording. Options are as in `wavefilt.plotting.PlotOptions` and
        ``wavefilt denoise --plot``. The figure is also written to ``path``, if given, which ends in .png, .pdf or .svg.

        Raises ValueError for an invalid option, an unknown extension, and recordings that are empty, of different
        shapes or without the headers that an option needs; ImportError if matplotlib (extra ``plot``) is not installed;
        FileExistsError or OSError if the file exists and ``overwrite`` is not set, or cannot be written.
        """
        from wavefilt.plotting import PlotOptions, figure

        options = PlotOptions(panels, gain, clip, display, traces_by)
        if path is None:
            return figure.draw(self, after, options)
        return figure.plot_denoising(self, after, path, overwrite=overwrite, dpi=dpi, options=options)

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the traces in their original format, with all headers, or in the format of the extension of ``path``.

        Raises FileExistsError if ``path`` exists and ``overwrite`` is not set, FormatError if the format cannot hold
        these samples or the ending is unknown, OSError if the file cannot be written. ``path`` is complete or
        unchanged: a temporary file in the same folder takes its place.
        """
        io.write(self, Path(path), overwrite=overwrite)


@dataclass(frozen=True)
class DeclaredNoise:
    """Noise windows that headers declare: the samples before the trigger, an origin time or a first arrival.

    A window ends before the event, by `GUARD` of its time plus `GUARD_SAMPLES`, and has at least `LEAST` samples.

    Attributes
    ----------
    windows : tuple
        For each trace, its window as the option ``sigma`` in samples, None without one.
    source : str
        The windows in words, e.g. ``"0.467 s before the trigger (header DELAY)"``.
    """

    windows: tuple[Window | None, ...]
    source: str

    @classmethod
    def before(cls, traces: Sequence[Timing]) -> DeclaredNoise | None:
        """Return the noise before the events of traces; None if there is none."""
        found = {timing: _window(*timing) for timing in dict.fromkeys(traces)}  # many traces have the same timing
        used = [(w[2] * interval, onset[1]) for (onset, interval, *_), w in found.items() if w and onset and interval]
        if not used:
            return None
        windows = tuple(found[timing] for timing in traces)
        lengths = " to ".join(dict.fromkeys(f"{length:.4g}" for length in (min(used)[0], max(used)[0])))
        count = len(windows) - windows.count(None)
        some = f", in {count} of {len(windows)} traces" if count < len(windows) else ""
        return cls(windows, f"{lengths} s before {' or '.join(dict.fromkeys(name for _, name in used))}{some}")

    @property
    def common(self) -> Window | None:
        """The window that all traces share."""
        return self.windows[0] if len(set(self.windows)) == 1 else None

    def sigmas(self, options: Options | None = None) -> list[NoiseForm]:
        """Return the option ``sigma`` of each trace: its window if it has one that ``options`` support, or "level"."""
        if options is not None and options.ndim == 2:  # the samples in the windows of all traces
            shared = common_noise([w or "level" for w in self.windows])
            return [shared if supports(options, shared, len(self.windows)) else "level"] * len(self.windows)
        usable = {w for w in set(self.windows) if w and (options is None or supports(options, w, len(self.windows)))}
        found: list[NoiseForm] = [w if w in usable else "level" for w in self.windows]
        together = options is not None and options.scope == "record"
        return ["level"] * len(found) if together and len(set(found)) > 1 else found


def _window(onset: tuple[float, str] | None, interval: float | None, samples: int, delay: float) -> Window | None:
    """Return the noise window of a trace before its event, None if it is too short or unknown."""
    if onset is None or not interval:
        return None
    before = Clock(interval, None, samples, "", delay).sample(onset[0])
    stop = math.floor(before * (1 - GUARD)) - GUARD_SAMPLES
    return ("window", 0, stop) if before <= samples and stop >= LEAST else None


def noise_of_source(
    source: Source, given: Mapping[str, Any], preset: str | None = None, samples: bool = False
) -> tuple[Options, list[NoiseForm], DeclaredNoise | None]:
    """Return the options and the ``sigma`` of each trace with which `Recording.denoise` would denoise a file.

    Only its headers are read. The last element is the noise that they declare, if no other ``sigma`` is given. With
    ``samples``, ``sigma`` is in samples, as for arrays. Raises ValueError for invalid options, and if the noise does
    not fit a trace.
    """
    nothing, intervals = np.broadcast_to(np.float32(0), source.shape), (source.interval,) * source.shape[0]
    more = source.ids, source.starts, source.delays()
    headers = Recording(nothing, intervals, source.format, source, source.name, (), *more)
    options, sigma = headers.options(given, preset)
    noise = headers.noise_by_headers if sigma is None else None
    if noise is not None:
        return options, noise.sigmas(options), noise
    if samples and sigma is not None:
        return options, [Noise.of(sigma).sigma] * len(intervals), None
    return options, headers.sigmas(sigma, options), None


def supports(options: Options, sigma: NoiseForm, traces: int) -> bool:
    """Return whether the noise in a window can be estimated with these options, for sections of ``traces`` traces."""
    try:
        window = replace(options, sigma=sigma).noise.window
    except OptionError:
        return False
    if window is None or (options.rule.local and options.ndim == 1):
        return True
    shape = (traces, window[1] - window[0])[-options.ndim :]
    return options.transform.usual_level(shape, options.fitting(traces, traces).filters) > 0


def _varies(trace: Array) -> bool:
    known = arrays.known(trace)
    return bool(known.size) and not arrays.constant(known[None]).all()

"""A recording: traces with their sampling interval, and everything its format needs to be written back."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wavefilt import arrays
from wavefilt.api import run
from wavefilt.arrays import Array
from wavefilt.backends import Backend, registry
from wavefilt.engine import Outcome
from wavefilt.errors import OptionError, options
from wavefilt.options import Clock, Keywords, NoiseForm, Options, check_names
from wavefilt.report import utc
from wavefilt.vocabulary import Display, TracesBy, Window
from wavefilt.wavelets.filters import WaveletLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wavefilt.advice import TrustReport


@dataclass(frozen=True)
class Recording:
    """Traces read from a file (`wavefilt.read`).

    Attributes
    ----------
    traces : ndarray (traces, samples), or sequence of 1-D ndarrays
        Samples in the file's own units (counts); a sequence where the traces have lengths of their own.
    intervals : tuple of float or None
        Sampling interval of each trace in seconds, None where the file does not say.
    format : str
        Name of the format, e.g. ``"seg2"``.
    origin : object
        What the format's writer needs to write every header back; opaque to everything else.
    source : str
        Where it was read from.
    notes : tuple of str
        What a user should know about reading or writing this file.
    outcome : Outcome, optional
        How these traces were denoised, if they were.
    ids : tuple of str
        Station and channel codes of each trace, e.g. ``"BW.FURT..EHZ"``; empty where the format has none. Traces of one
        id are parts of one record.
    starts : tuple of numpy.datetime64
        UTC time of the first sample of each trace, in nanoseconds; empty where the format has none.
    """

    traces: Array | Sequence[Array]
    intervals: tuple[float | None, ...]
    format: str
    origin: Any
    source: str = ""
    notes: tuple[str, ...] = ()
    outcome: Outcome | None = None
    ids: tuple[str, ...] = ()
    starts: tuple[np.datetime64, ...] = ()

    @property
    def samples(self) -> Array:
        """All traces as one array, shape (traces, samples). Raises ValueError if their lengths differ."""
        if isinstance(self.traces, np.ndarray):
            return self.traces
        if len(lengths := {len(trace) for trace in self.traces}) > 1:
            sizes = f"{len(lengths)} lengths ({min(lengths)} to {max(lengths)} samples)"
            raise ValueError(f"{self.source}: traces of {sizes} are not an array; use Recording.traces")
        return np.array(self.traces)

    @property
    def interval(self) -> float | None:
        """Sampling interval of all traces in seconds, None if unknown. Raises ValueError if they differ."""
        if len(set(self.intervals)) > 1:
            raise ValueError(f"{self.source}: traces of different sampling intervals; use Recording.intervals")
        return self.intervals[0] if self.intervals else None

    @cached_property
    def live(self) -> NDArray[np.bool_]:
        """Which traces have samples that differ. The others are dead (constant), or have no samples outside gaps."""
        return np.array([_varies(trace[:64]) or _varies(trace) for trace in self.traces], dtype=bool)

    @property
    def dead(self) -> int:
        """How many traces are constant."""
        return sum(arrays.known(self.traces[int(i)]).size > 0 for i in np.flatnonzero(~self.live))

    @cached_property
    def by_id(self) -> dict[str, list[int]]:
        """The traces of each id, by their numbers."""
        found: dict[str, list[int]] = {}
        for trace, name in enumerate(self.ids):
            found.setdefault(name, []).append(trace)
        return found

    @cached_property
    def offsets(self) -> tuple[float, ...]:
        """Metres from the source to the receiver of each trace, by the headers of SEG-2, SEG-Y or SU; else empty."""
        from wavefilt.io.registry import named

        find = named(self.format).offsets
        return find(self) if find else ()

    def __repr__(self) -> str:
        return f"<Recording {', '.join(filter(None, self._about()))}>"

    def _repr_html_(self) -> str:
        """The text and a small picture, for notebooks; without matplotlib, or samples, the text alone."""
        source, *facts = map(html.escape, self._about())
        text = f"<b>{source or 'Recording'}</b>: {', '.join(filter(None, facts))}"
        try:
            from wavefilt.plotting.figure import as_html, thumbnail

            return f"{text}<br>{as_html(thumbnail(self))}"
        except (ImportError, ValueError):
            return text

    def _about(self) -> list[str]:
        """Name, format, size, sampling, first sample, and how many traces are live: for people."""
        lengths = [len(trace) for trace in self.traces]
        sizes = " to ".join(f"{n}" for n in sorted({min(lengths, default=0), max(lengths, default=0)}))
        steps = [f"{dt:g} s" if dt else "unknown" for dt in dict.fromkeys(self.intervals)]
        return [
            Path(self.source).name,
            self.format,
            f"{len(lengths)} trace{'s' * (len(lengths) != 1)} x {sizes} samples",
            f"interval {' or '.join(steps) if len(steps) < 4 else f'{len(steps)} different'}" if steps else "",
            f"from {utc(min(self.starts))}" if self.starts else "",
            f"{self.live.sum()} live",
            f"{self.dead} dead" if self.dead else "",
            "denoised" if self.outcome else "",
        ]

    def window(self, start: float, stop: float) -> Window:
        """Seconds from the beginning of every trace as a noise window in samples, for ``sigma`` of `denoise`.

        Raises ValueError unless all traces have one known sampling interval and the window lies in them.
        """
        return Clock(self.interval, None, min(map(len, self.traces), default=0), self.source).window(start, stop)

    def clock(self, trace: int) -> Clock:
        """When a trace was sampled."""
        start = self.starts[trace] if self.starts else None
        return Clock(self.intervals[trace], start, len(self.traces[trace]), self.source)

    def methods(self, method: Options, sigma: NoiseForm) -> list[tuple[Options, list[int]]]:
        """The method with this noise, which may be in seconds, times and picks, and the traces for which it is that.

        A running window is in samples where no trace has a sampling interval, as in arrays. Raises ValueError where
        noise does not fit a trace, or is at several samples of the traces of a record.
        """
        found: dict[NoiseForm, list[int]] = {}
        counted = isinstance(sigma, tuple) and sigma[:1] == ("running",) and not any(self.intervals)
        for trace in range(len(self.traces)):
            own = sigma if counted else self.clock(trace).in_samples(sigma)
            found.setdefault(own, []).append(trace)
        if method.scope == "record" and len(found) > 1:
            raise ValueError(f'{self.source}: scope="record" needs noise at the same samples of all traces: {sigma!r}')
        return [(replace(method, sigma=own), traces) for own, traces in found.items()] or [(method, [])]

    def less(self, other: Recording) -> Recording:
        """The difference from ``other``, a recording of the same shape: the noise, if that is the denoised one."""
        if isinstance(self.traces, np.ndarray) and isinstance(other.traces, np.ndarray):
            return replace(self, traces=arrays.take(self.traces, -1).rows - other.traces)
        return replace(self, traces=[x.astype(y.dtype) - y for x, y in zip(self.traces, other.traces, strict=True)])

    def denoise(
        self,
        wavelet: WaveletLike | None = None,
        *,
        two_dimensional: bool = False,
        backend: str | Backend = "auto",
        **options: Unpack[Keywords],
    ) -> Recording:
        """The recording with every trace denoised.

        Options are those of `wavefilt.denoise` about the method (level, mode, rule, shrink, sigma, scope, keep,
        transform, spins, detrend, blend), and so are the errors; `less` gives what was removed. ``two_dimensional`` is
        its ``axes=(0, 1)``: all traces, in their order, are one panel. Their lengths must then be the same.

        ``sigma`` has seconds instead of samples: ``("seconds", start, stop)`` of noise, ``("before", pick, seconds)``,
        ``("running", seconds)`` and ``("intervals", points)``. Picks and points are seconds from the first sample of
        each trace, or times (`datetime`, `numpy.datetime64`, or text as 2020-01-31T12:30:00) if the recording has the
        times of its traces, as is ``("window", start, stop)``, unless it is of whole numbers, which are samples.
        """
        check_names(options, "two_dimensional")
        registry.check_name(backend)
        others: Keywords = {**options, "sigma": "level"}
        method = Options(wavelet, **others, dimensions=2 if two_dimensional else 1)
        return self.apply(method, backend, sigma=options.get("sigma", "level"))

    def apply(
        self, method: Options, backend: str | Backend = "auto", report: bool = False, sigma: NoiseForm | None = None
    ) -> Recording:
        """`denoise` with a `Options`; ``report`` as in `wavefilt.api.run`.

        ``sigma`` takes the place of the method's, in seconds, times and picks as `denoise` has them. Traces of a
        sequence are returned each in its own dtype of computation. Raises ValueError for two dimensions and traces of
        several lengths.
        """
        methods = [(method, [])] if sigma is None else self.methods(method, sigma)
        if isinstance(self.traces, np.ndarray):
            taken = arrays.take(self.traces, -1)
            outcome = _run_each(taken.rows, methods, backend, report)
            return replace(self, traces=taken.restore(outcome.samples), outcome=outcome)
        self.check(method)
        outcome = _run_each(self.rows(), methods, backend, report)
        traces = [
            y[: len(x)].astype(arrays.compute_dtype(x.dtype), copy=False)
            for y, x in zip(outcome.samples, self.traces, strict=True)
        ]
        return replace(self, traces=traces, outcome=outcome)

    def check(self, method: Options) -> None:
        """Raise ValueError for traces of several lengths where they should be a panel."""
        lengths = {len(trace) for trace in self.traces}
        if method.dimensions == 2 and len(lengths) > 1:
            sizes = f"not of {min(lengths)} to {max(lengths)} samples"
            why = f"{self.source}: a panel needs traces of one length, {sizes}; leave "
            raise OptionError(why, options(two_dimensional=True), " out")

    def rows(self) -> Array:
        """All traces as one array (traces, samples) in C order: NaN in gaps and after shorter traces."""
        if isinstance(self.traces, np.ndarray):
            return arrays.take(self.traces, -1).rows
        dtype = arrays.compute_dtype(np.result_type(*self.traces))
        rows = np.full((len(self.traces), max(map(len, self.traces))), np.nan, dtype)
        for row, trace in zip(rows, self.traces, strict=True):
            if len(trace):
                row[: len(trace)] = arrays.take(trace, -1).rows[0]
        return rows

    @property
    def complex(self) -> bool:
        """Whether samples are complex."""
        return any(np.iscomplexobj(trace) for trace in self.traces[:1])

    def trust(self, noisy: Recording, *, call: str = "", samples: int = 1 << 23, seed: int = 0) -> TrustReport:
        """Test this denoised recording against the noisy one with `wavefilt.trust.report`.

        Simulated noise is denoised with the same options. ``denoised.trust(noisy).write("report.html")`` writes the
        report, which states the options, or the ``call`` or command that is given. Traces of several lengths end in
        gaps. Raises ValueError for recordings of different shapes, and TypeError for complex samples.
        """
        from wavefilt.advice.trust import call_in_python, report

        if [len(trace) for trace in self.traces] != [len(trace) for trace in noisy.traces]:
            raise ValueError(f"{noisy.source} and {self.source or 'this recording'} have different traces")
        before, after = (one.traces if isinstance(one.traces, np.ndarray) else one.rows() for one in (noisy, self))
        options = None if self.outcome is None else self.outcome.method

        def again(rows: Array) -> Array:
            assert self.outcome is not None
            return run(rows.astype(self.outcome.samples.dtype), self.outcome.method, self.outcome.backend).samples

        return report(
            before,
            after,
            None if options is None else again,
            sigma="level" if options is None else options.sigma,
            interval=self.intervals[0] if len(set(self.intervals)) == 1 else None,
            name=Path(noisy.source).name,
            call=call or ("" if options is None else call_in_python(noisy.source, options)),
            samples=samples,
            seed=seed,
        )

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
        """Draw the traces; with ``after``, these traces denoised, also those and the residual, on one amplitude scale.

        The options are those of `wavefilt.plotting.PlotOptions` and of ``wavefilt denoise --plot``. The figure is also
        written to ``path``, if given, which ends in .png, .pdf or .svg.

        Raises ValueError for an invalid option, an unknown extension, and recordings that are empty, of different
        shapes or without the headers that an option needs; ImportError if matplotlib (extra ``plot``) is not installed;
        FileExistsError or OSError if the file exists and ``overwrite`` is not set, or cannot be written.
        """
        from wavefilt.plotting import PlotOptions, figure

        options = PlotOptions(panels, gain, clip, display, traces_by)
        if path is None:
            return figure.draw(self, after, options)
        return figure.save(lambda: figure.draw(self, after, options), path, overwrite, dpi)

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write in the format it was read from, headers kept, by way of a temporary file in the same folder.

        Raises FileExistsError if ``path`` exists and ``overwrite`` is not set, FormatError if the format cannot
        hold these samples, OSError if the file cannot be written. ``path`` is complete or unchanged, never partial.
        """
        from wavefilt.io.writing import write

        write(self, Path(path), overwrite=overwrite)


def _run_each(
    rows: Array, methods: Sequence[tuple[Options, list[int]]], backend: str | Backend, report: bool
) -> Outcome:
    """`run` of the traces of each method; of one alone all of them. The outcome has the method of the first."""
    if len(methods) == 1:
        return run(rows, methods[0][0], backend, report)
    done = [(own, run(rows[own], method, backend, report)) for method, own in methods]
    samples, estimates = np.empty(rows.shape, done[0][1].samples.dtype), []
    for own, outcome in done:
        samples[own] = outcome.samples
        for estimate in outcome.estimates:
            segments = replace(estimate.segments, rows=np.array(own)[estimate.segments.rows])
            estimates.append(replace(estimate, segments=segments))
    return replace(done[0][1], samples=samples, estimates=estimates)


def _varies(trace: Array) -> bool:
    known = arrays.known(trace)
    return bool(known.size) and not arrays.constant(known[None]).all()

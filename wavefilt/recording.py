"""A recording: the traces of a file, to be denoised, plotted and written back."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Unpack

import numpy as np
from numpy.typing import NDArray

from wavefilt import arrays, io
from wavefilt.api import run
from wavefilt.arrays import Array
from wavefilt.backends import Backend, registry
from wavefilt.engine import Outcome
from wavefilt.errors import OptionError
from wavefilt.options import Clock, Keywords, NoiseForm, Options, check_names
from wavefilt.vocabulary import Display, TracesBy
from wavefilt.wavelets.filters import WaveletLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wavefilt.advice import TrustReport


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
    return contents if isinstance(contents, Recording) else Recording(**vars(contents))


@dataclass(frozen=True)
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
    outcome : Outcome, optional
        How these traces were denoised, if they were.
    """

    outcome: Outcome | None = None

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
        found: dict[str, list[int]] = {}
        for trace, name in enumerate(self.ids):
            found.setdefault(name, []).append(trace)
        return found

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
            from wavefilt.plotting.figure import as_html, thumbnail

            return f"{text}<br>{as_html(thumbnail(self))}"
        except (ImportError, ValueError):
            return text

    def clock(self, trace: int) -> Clock:
        """Return when a trace was sampled."""
        start = self.starts[trace] if self.starts else None
        return Clock(self.intervals[trace], start, len(self.traces[trace]), self.source)

    def methods(self, options: Options, sigma: NoiseForm) -> list[tuple[Options, list[int]]]:
        """Return the options with ``sigma`` in samples, and the traces for which they hold.

        A running window is in samples if no trace has a sampling interval, as in arrays. Raises ValueError if the noise
        does not fit a trace, or is at different samples of the traces of a record.
        """
        traces: dict[NoiseForm, list[int]] = {}
        in_seconds = not isinstance(sigma, tuple) or sigma[:1] != ("running",) or any(self.intervals)
        for trace in range(len(self.traces)):
            traces.setdefault(self.clock(trace).in_samples(sigma) if in_seconds else sigma, []).append(trace)
        if options.scope == "record" and len(traces) > 1:
            raise ValueError(f'{self.source}: scope="record" needs noise at the same samples of all traces: {sigma!r}')
        return [(replace(options, sigma=one), rows) for one, rows in traces.items()] or [(options, [])]

    def residual(self, denoised: Recording) -> Recording:
        """Return the difference from the denoised recording, which has the same shape."""
        if isinstance(self.traces, np.ndarray) and isinstance(denoised.traces, np.ndarray):
            return replace(self, traces=arrays.take(self.traces, -1).rows - denoised.traces)
        return replace(self, traces=[x.astype(y.dtype) - y for x, y in zip(self.traces, denoised.traces, strict=True)])

    def denoise(
        self,
        wavelet: WaveletLike | None = None,
        *,
        two_dimensional: bool = False,
        backend: str | Backend = "auto",
        **options: Unpack[Keywords],
    ) -> Recording:
        """Denoise every trace.

        The options are those of `wavefilt.denoise` (level, mode, rule, shrink, sigma, scope, keep, transform, spins,
        detrend, blend), and so are the errors; `residual` gives the difference. ``two_dimensional`` is its
        ``axes=(0, 1)``: all traces, in their order, are one section, and must have the same length.

        ``sigma`` has seconds instead of samples: ``("seconds", start, stop)`` of noise, ``("before", pick, seconds)``,
        ``("running", seconds)`` and ``("intervals", points)``. Picks and points are seconds from the first sample of
        each trace, or times (`datetime`, `numpy.datetime64`, or text as 2020-01-31T12:30:00) if the recording has the
        times of its traces; so are the ends of ``("window", start, stop)``, unless they are whole numbers (samples).
        """
        check_names(options, "two_dimensional")
        registry.check_name(backend)
        others: Keywords = {**options, "sigma": "level"}
        chosen = Options(wavelet, **others, ndim=2 if two_dimensional else 1)
        return self.apply(chosen, backend, sigma=options.get("sigma", "level"))

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
        methods = [(options, [])] if sigma is None else self.methods(options, sigma)
        outcome = _denoised(rows, methods, backend, report)
        if taken:
            return replace(self, traces=taken.restore(outcome.samples), outcome=outcome)
        traces = [
            y[: len(x)].astype(arrays.compute_dtype(x.dtype), copy=False)
            for y, x in zip(outcome.samples, self.traces, strict=True)
        ]
        return replace(self, traces=traces, outcome=outcome)

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
        outcome = self.outcome
        options = None if outcome is None else outcome.options

        def again(rows: Array) -> Array:
            assert outcome is not None
            return run(rows.astype(outcome.samples.dtype), outcome.options, outcome.backend).samples

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
        """Write in the format it was read from, headers kept, or in the format that the ending of ``path`` asks for.

        Raises FileExistsError if ``path`` exists and ``overwrite`` is not set, FormatError if the format cannot hold
        these samples or the ending is unknown, OSError if the file cannot be written. ``path`` is complete or
        unchanged: a temporary file in the same folder takes its place.
        """
        io.write(self, Path(path), overwrite=overwrite)


def _denoised(
    rows: Array, methods: Sequence[tuple[Options, list[int]]], backend: str | Backend, report: bool
) -> Outcome:
    """Denoise the traces of each of the options; of one, all traces. The outcome has the first options."""
    if len(methods) == 1:
        return run(rows, methods[0][0], backend, report)
    outcomes = [(traces, run(rows[traces], options, backend, report)) for options, traces in methods]
    samples, estimates = np.empty(rows.shape, outcomes[0][1].samples.dtype), []
    for traces, outcome in outcomes:
        samples[traces] = outcome.samples
        for estimate in outcome.estimates:
            segments = replace(estimate.segments, rows=np.array(traces)[estimate.segments.rows])
            estimates.append(replace(estimate, segments=segments))
    return replace(outcomes[0][1], samples=samples, found=estimates)


def _varies(trace: Array) -> bool:
    known = arrays.known(trace)
    return bool(known.size) and not arrays.constant(known[None]).all()

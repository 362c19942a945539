"""The traces of the containers that `wavefilt.compare`, `tune`, `estimate_sigma` and `view` accept."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wavefilt import arrays
from wavefilt.arrays import Array, Mask
from wavefilt.backends import registry
from wavefilt.errors import NonFiniteSample
from wavefilt.options import Clock, Noise, NoiseForm, common_noise, to_argv, to_call, to_give
from wavefilt.recording import Recording, read

if TYPE_CHECKING:
    from obspy import Stream, Trace


@dataclass(frozen=True)
class Container:
    """The traces of an object in host memory, and the calls that denoise the object.

    Attributes
    ----------
    rows : ndarray
        Shape (traces, samples), or (sections, traces, samples), in the dtype of computation; NaN in gaps.
    recording : Recording
        All traces, with their sampling intervals, ids and times; the object itself if it is a recording.
    sigmas : tuple
        The option ``sigma`` of each trace or section, in samples.
    shape : tuple of int
        The shape of an array with one number per trace.
    function, arguments : str, tuple of str
        Python code for the function that denoises the object, and its arguments before the options.
    words : tuple of str
        Arguments after the options, for traces and for a section.
    samples, imports : str
        Python code for the samples as an array (traces, samples), and the import that it needs.
    file : tuple of str
        Arguments of `wavefilt denoise` for the file and its layout; empty for objects without a file.
    """

    rows: Array
    recording: Recording
    sigmas: tuple[NoiseForm, ...]
    shape: tuple[int, ...]
    function: str
    arguments: tuple[str, ...] = ()
    words: tuple[str, str] = ("", "")
    samples: str = "x"
    imports: str = "import wavefilt"
    file: tuple[str, ...] = ()

    @property
    def ndim(self) -> Literal[1, 2]:
        """1 for traces, 2 for sections."""
        return 1 if self.rows.ndim == 2 else 2

    @property
    def traces(self) -> Array:
        """All traces, including the traces of sections, shape (traces, samples)."""
        return self.rows.reshape(-1, self.rows.shape[-1])

    @cached_property
    def live(self) -> Mask:
        """Whether the samples of each of the `traces` differ."""
        return ~arrays.constant(self.traces, gaps=True)

    @property
    def interval(self) -> float | None:
        """Seconds between samples; None if traces have no interval, or different ones."""
        intervals = set(self.recording.intervals)
        return intervals.pop() if len(intervals) == 1 else None

    @property
    def name(self) -> str:
        """The name of the file or variable."""
        return os.path.basename(self.recording.source) or "array"

    def checked(self) -> Container:
        """Return the container itself. Raises TypeError for complex samples, and NonFiniteSample for infinite ones."""
        if self.rows.dtype.kind == "c":
            raise TypeError("complex samples have no noise estimate: give their real or imaginary part")
        infinite = np.argwhere(np.isinf(self.traces))
        if len(infinite):
            trace, sample = infinite[0].tolist()
            raise NonFiniteSample(trace, sample, "; replace it, or set it to NaN to have it treated as a gap")
        return self

    def python(self, options: Mapping[str, Any]) -> str:
        """Return the call that denoises with these options, by default as a section if `rows` are sections."""
        section = bool(options.get("two_dimensional", self.ndim == 2))
        options = to_give({**options, "two_dimensional": section}, **self.recording.recipe)
        del options["two_dimensional"]
        if self.function == "wavefilt.denoise" and self.interval and "sigma" in options:  # it takes samples
            options["sigma"] = self.recording.clock(0).in_samples(options["sigma"])
        declared = self.recording.declared_noise is not None
        words = [*self.arguments, to_call(options, declared), self.words[section]]
        return f"{self.function}({', '.join(filter(None, words))})"

    def command(self, options: Mapping[str, Any], target: str | None = None) -> str:
        """Return the command that denoises the file with these options and writes to ``target``; "" for objects."""
        words = ["wavefilt", "denoise", *self.file, *(["-o", target] if target else [])]
        options = to_give({"two_dimensional": self.ndim == 2, **options}, **self.recording.recipe)
        clock = self.recording.clock(0) if self.interval else None
        declared = self.recording.declared_noise is not None
        return shlex.join(words + to_argv(options, clock, declared)) if self.file else ""


def traces_of(
    x: Any,
    sigma: NoiseForm | None = None,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    interval: float | None = None,
) -> Container:
    """Return the traces of an array of any library, a pandas, xarray, DASCore or ObsPy object, a recording or a file.

    Samples are along ``axis``, and sections along ``axes`` with the samples of their traces along the second. In pandas
    objects samples are along the index, in xarray and DASCore objects along "time" or, without it, along ``axis``. For
    streams and recordings, any ``axes`` select a section. ``interval`` is the sampling interval of an array in seconds.

    Raises TypeError and ValueError as `wavefilt.denoise`, and as `wavefilt.read` for a path; ValueError for an
    interval that is not a positive number, or for an object that has its own interval.
    """
    kind = arrays.kind_of(x)
    if axes is not None and axis != -1:
        raise ValueError("give one of `axis` and `axes`")
    if axes is not None and np.shape(axes) != (2,):
        raise ValueError(f"`axes` must be a pair of axes, not {axes!r}")
    if interval is not None:
        if not (isinstance(interval, int | float) and 0 < interval < float("inf")):
            raise ValueError(f"`interval` must be a positive number of seconds, not {interval!r}")
        if kind and not kind.startswith("pandas."):
            raise ValueError(f"`interval` is for arrays; a {kind} has its own")
    if kind == "path":
        x = read(x)
    if isinstance(x, Recording):
        return of_recording(x, axes, x.sigmas(sigma))
    if kind in ("obspy.Stream", "obspy.Trace"):
        return _of_stream(x, sigma, axes)
    if kind in ("xarray.DataArray", "dascore.Patch"):
        return _of_coordinates(x, kind, sigma, axis, axes)
    words = ("" if axis == -1 else f"axis={axis}", f"axes={axes or (-2, -1)}")
    if kind in ("pandas.DataFrame", "pandas.Series"):
        samples, along = arrays.take_pandas(x, axis, axes).original, (0,) if axes is None else axes
        words, python = ("", f"axes={axes or (1, 0)}"), "x.to_numpy().T"
    else:
        arrays.refuse_kinds(x[0] if isinstance(x, list | tuple) and len(x) else x, arrays.INSTEAD)
        samples, along, python = x, (axis,) if axes is None else axes, "x"
    call: dict[str, Any] = {"function": "wavefilt.denoise", "arguments": ("x",), "words": words, "samples": python}
    return _of_array(samples, along, sigma, interval, "npy", **call)


def of_recording(
    recording: Recording,
    axes: tuple[int, int] | None = None,
    sigmas: Sequence[NoiseForm] | None = None,
    **call: Any,
) -> Container:
    """Return the traces of a recording; ``sigmas`` are in samples, by default the noise that the headers declare.

    Raises ValueError for a section of traces of several lengths.
    """
    if axes is not None and len({len(trace) for trace in recording.traces}) > 1:
        raise ValueError(f"{recording.source}: a section needs traces of one length")
    sigmas = recording.sigmas(None) if sigmas is None else sigmas
    rows = recording.rows() if len(recording.traces) else np.empty((0, 1))
    file = [argument(recording.source)] if recording.source else []
    for name, value in recording.layout.items():
        file += [f"--{name}", ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
    own: dict[str, Any] = {"function": f"{recording.call}.denoise", "samples": f"{recording.call}.rows()"}
    own |= {"words": ("", "two_dimensional=True"), "file": tuple(file)}
    if axes is not None:
        rows, sigmas = rows[None], [common_noise(sigmas)]
    return Container(rows, recording, tuple(sigmas), (len(recording.traces),), **{**own, **call})


def argument(path: str) -> str:
    """Return the path as an argument of a command: one that begins with a hyphen would be an option."""
    return f"./{path}" if path.startswith("-") and path != "-" else path


def _of_array(
    x: Any,
    along: tuple[int, ...],
    sigma: NoiseForm | None,
    interval: float | None,
    format: str,
    name: str = "",
    **call: Any,
) -> Container:
    """Return the traces along one axis of an array, or the sections along two."""
    rows, shape = registry.host_rows(x, *along), np.shape(x)
    batch = np.delete(shape, [axis % len(shape) for axis in along]).tolist()
    traces = rows.reshape(-1, rows.shape[-1])
    recording = Recording(traces, (interval,) * len(traces), format, None, name)
    noise = Noise.of(sigma).sigma
    return Container(rows, recording, (noise,) * len(rows), (*batch, *rows.shape[1:-1]), **call)


def _of_coordinates(x: Any, kind: str, sigma: NoiseForm | None, axis: int, axes: tuple[int, int] | None) -> Container:
    """Return the traces of a DataArray or a Patch, with the sampling interval of their coordinate."""
    dims = [*x.dims]
    time = dims[axes[1]] if axes else "time" if "time" in dims else dims[axis]
    others = [dim for dim in dims if dim != time]
    if kind == "dascore.Patch":
        name, samples, values, coordinate = "patch", np.asarray(x.data), "patch.data", x.get_coord(time).values
    else:
        name, samples, values = "x", x.values, "x.values"
        coordinate = x[time].values if time in x.coords else np.array([])
    along = (dims.index(time),) if axes is None else axes
    first = dims[axes[0]] if axes else others[-1] if others else time
    clock = Clock.of_coordinate(coordinate, str(time))
    return _of_array(
        samples,
        along,
        clock.in_samples(sigma),
        clock.interval,
        kind.partition(".")[0],
        str(getattr(x, "name", "") or ""),
        function=f"{name}.wavefilt.denoise",
        words=("" if time == "time" else f"dim={time!r}", f"dim={(time, first)!r}"),
        samples=values if dims.index(time) == len(dims) - 1 else f"np.moveaxis({values}, {dims.index(time)}, -1)",
        imports=f"import wavefilt.{kind.partition('.')[0]}",
    )


def _of_stream(x: Stream | Trace, sigma: NoiseForm | None, axes: tuple[int, int] | None) -> Container:
    from wavefilt.obspy import recording_of, sigmas_of

    recording = recording_of(x)
    return of_recording(
        recording,
        axes,
        sigmas_of(recording, sigma),
        function="wavefilt.obspy.denoise",
        arguments=("stream",),
        samples="[trace.data for trace in stream]",
        imports="import wavefilt.obspy",
    )

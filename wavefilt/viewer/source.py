"""What is viewed: a recording made of any kind of object, and how a program or the command would denoise that."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wavefilt import arrays
from wavefilt.arrays import Array
from wavefilt.recording import Recording

KINDS = "an array (traces, samples), a path, a Recording, an ObsPy Stream or Trace, or an xarray DataArray"


@dataclass(frozen=True)
class Source:
    """A recording, and the words of the lines that denoise it again.

    Attributes
    ----------
    recording : Recording
    function, arguments
        What denoises in Python, ``"wavefilt.denoise"``, and its arguments before the options, ``("x",)``.
    one, two : tuple of str
        Its arguments for traces, and for a panel.
    samples : str
        Python for the samples as an array (traces, samples).
    imports : str
        What Python imports.
    counted : bool
        Whether the function takes noise windows in samples, not in seconds.
    file : tuple of str
        What names the file and its layout for `wavefilt denoise`; empty for what is in no file.
    """

    recording: Recording
    function: str
    samples: str
    arguments: tuple[str, ...] = ()
    one: tuple[str, ...] = ()
    two: tuple[str, ...] = ("two_dimensional=True",)
    imports: str = "import wavefilt"
    counted: bool = False
    file: tuple[str, ...] = ()

    def checked(self) -> Source:
        """Itself. Raises ValueError where there is nothing to view."""
        if not any(map(len, self.recording.traces)):
            raise ValueError(f"{self.recording.source or 'x'}: no samples to view")
        return self

    @cached_property
    def rows(self) -> Array:
        """`Recording.rows`, NaN in gaps and after shorter traces."""
        return self.recording.rows()

    @property
    def interval(self) -> float | None:
        """Seconds between samples; None where traces have none, or not the same."""
        known = set(self.recording.intervals)
        return known.pop() if len(known) == 1 else None

    @property
    def name(self) -> str:
        return os.path.basename(self.recording.source) or "array"


def of(data: Any, interval: float | None = None) -> Source:
    """The source for an object of `KINDS`; ``interval`` is that of arrays, in seconds.

    Raises TypeError for all else, ValueError for an array of no or more than two axes or without samples, an interval
    that is no positive number, or one that is given twice, and as `wavefilt.read` does.
    """
    if interval is not None and not (isinstance(interval, int | float) and 0 < interval < float("inf")):
        raise ValueError(f"interval={interval!r} must be a positive number of seconds")
    kind = "wavefilt.Recording" if isinstance(data, Recording) else arrays.kind_of(data)
    if kind in OWN_INTERVAL:
        if interval is not None:
            raise ValueError(f"interval={interval!r} is for arrays; a {kind} has its own")
        source = OWN_INTERVAL[kind](data)
    elif kind:
        raise TypeError(f"{KINDS} can be viewed, not a {kind}")
    else:
        x = np.ma.asanyarray(data) if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
        if x.ndim not in (1, 2) or not x.size:
            raise ValueError(f"x of shape {x.shape}: samples (samples,) or (traces, samples) are needed")
        source = _of_array(x, interval)
    return source.checked()


def _of_array(x: Array, interval: float | None) -> Source:
    recording = Recording(x if x.ndim == 2 else x[None], (interval,) * (len(x) if x.ndim == 2 else 1), "npy", None)
    return Source(recording, "wavefilt.denoise", "x", ("x",), two=("axes=(-2, -1)",), counted=True)


def of_file(path: str, recording: Recording, layout: dict[str, Any]) -> Source:
    """A recording that was read with options of `wavefilt.read`, which the command calls by the same names."""
    given = {name: value for name, value in layout.items() if value is not None}
    read = ", ".join([repr(path), *(f"{name}={value!r}" for name, value in given.items())])
    words = [path]
    for name, value in given.items():
        words += [f"--{name}", ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
    call = f"wavefilt.read({read})"
    return Source(recording, f"{call}.denoise", f"{call}.samples", file=tuple(words))


def _of_path(path: Any) -> Source:
    from wavefilt.recording import read

    return of_file(os.fsdecode(path), read(path), {})


def _of_recording(recording: Recording) -> Source:
    return Source(recording, "recording.denoise", "recording.samples")


def _of_stream(stream: Any) -> Source:
    traces = [stream] if arrays.kind_of(stream) == "obspy.Trace" else list(stream)
    recording = Recording(
        [trace.data for trace in traces],
        tuple(float(trace.stats.delta) for trace in traces),
        "obspy",
        None,
        ids=tuple(trace.id for trace in traces),
        starts=tuple(np.datetime64(trace.stats.starttime.ns, "ns") for trace in traces),
    )
    samples = "[trace.data for trace in stream]"
    return Source(recording, "wavefilt.obspy.denoise", samples, ("stream",), imports="import wavefilt.obspy")


def _of_xarray(x: Any) -> Source:
    dims = list(x.dims)
    if len(dims) not in (1, 2):
        raise ValueError(f"a DataArray of dimensions {tuple(dims)}: one or two are needed; select with isel() or sel()")
    time = "time" if "time" in dims else dims[-1]
    others = [dim for dim in dims if dim != time]
    samples = x.transpose(*others, time)
    count = x.sizes[others[0]] if others else 1
    interval = None
    if time in x.coords and x.sizes[time] > 1:
        coordinate = x[time].values
        span = coordinate[-1] - coordinate[0]
        seconds = span / np.timedelta64(1, "s") if coordinate.dtype.kind in "mM" else span
        interval = float(seconds) / (len(coordinate) - 1) if seconds > 0 else None
    recording = Recording(np.atleast_2d(samples.values), (interval,) * count, "xarray", None, str(x.name or ""))
    order = f"transpose({', '.join(map(repr, [*others, time]))}).values"
    one = () if time == "time" else (f"dim={time!r}",)
    two = (f"dim={(time, *others)!r}",)
    return Source(recording, "x.wavefilt.denoise", f"x.{order}", (), one, two, "import wavefilt.xarray")


OWN_INTERVAL: dict[str, Callable[[Any], Source]] = {
    "path": _of_path,
    "wavefilt.Recording": _of_recording,
    "obspy.Stream": _of_stream,
    "obspy.Trace": _of_stream,
    "xarray.DataArray": _of_xarray,
}
"""How objects of these kinds are viewed."""

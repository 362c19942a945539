"""What `wavefilt.denoise` and its integrations accept, as rows in host memory with their noise in samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt import arrays
from wavefilt.arrays import Array, Mask
from wavefilt.backends import registry
from wavefilt.errors import NonFiniteSample
from wavefilt.options import Clock, NoiseForm
from wavefilt.recording import Recording

if TYPE_CHECKING:
    from obspy import Stream, Trace


@dataclass(frozen=True)
class Taken:
    """Traces (traces, samples), or with two ``dimensions`` panels (panels, rows, samples), in a dtype of computation.

    NaN are gaps. ``sigmas`` is the option of that name in samples, one for each trace, and for a panel one for all.
    ``call`` is how a user would denoise it, with a place for options; ``shape`` that of a number for each trace.
    """

    rows: Array
    sigmas: tuple[NoiseForm, ...]
    call: str
    shape: tuple[int, ...]
    interval: float | None = None

    @property
    def dimensions(self) -> int:
        return self.rows.ndim - 1

    @property
    def traces(self) -> Array:
        """Every trace, of panels too, shape (traces, samples)."""
        return self.rows.reshape(-1, self.rows.shape[-1])

    @property
    def live(self) -> Mask:
        """Which of the `traces` have samples that differ."""
        return ~arrays.constant(self.traces, gaps=True)


def take(x: Any, sigma: NoiseForm = "level", axis: int = -1, axes: tuple[int, int] | None = None) -> Taken:
    """Arrays of any library, pandas, xarray, DASCore, ObsPy's streams and traces, and recordings.

    Samples are along ``axis``, or panels along both of ``axes``, of which the traces are along the second; those of
    xarray and DASCore along "time" where there is such a dimension, and ``axes`` of a stream or recording only says
    that it is a panel. Raises TypeError for complex samples and what `wavefilt.denoise` refuses, ValueError as it does.
    """
    kind = arrays.kind_of(x)
    if axes is not None and axis != -1:
        raise ValueError(f"axis={axis} and axes={axes} both name what is transformed: give one")
    if kind in ("obspy.Stream", "obspy.Trace"):
        return _of_stream(x, sigma, axes)
    if kind == "wavefilt.Recording":
        sigmas = [x.clock(i).in_samples(sigma) for i in range(len(x.traces))]
        return _of_recording(x, sigmas, axes, f"wavefilt.read({x.source!r}).denoise({{}})")
    if kind == "xarray.DataArray":
        time = "time" if "time" in x.dims else x.dims[axis]
        coordinate = x[time].values if time in x.coords else np.array([])
        along = (x.dims.index(time),) if axes is None else axes
        own = Clock.of_coordinate(coordinate, time).in_samples(sigma)
        return _of_array(x.values, along, own, f"x.wavefilt.denoise({time!r}, {{}})")
    if kind == "dascore.Patch":
        along = (x.dims.index("time"),) if axes is None else axes
        own = Clock.of_coordinate(x.get_coord("time").values, "time").in_samples(sigma)
        return _of_array(np.asarray(x.data), along, own, 'patch.wavefilt.denoise("time", {})')
    named = "" if axis == -1 and axes is None else f", axis={axis}" if axes is None else f", axes={axes}"
    call = f"wavefilt.denoise(x, {{}}{named})"
    if kind in ("pandas.DataFrame", "pandas.Series"):
        return _of_array(
            arrays.take_pandas(x, axis, axes).samples.original, (0,) if axes is None else axes, sigma, call
        )
    arrays.refuse_kinds(x[0] if isinstance(x, list | tuple) and len(x) else x, arrays.INSTEAD)
    return _of_array(x, (axis,) if axes is None else axes, sigma, call)


def _of_array(x: Any, along: tuple[int, ...], sigma: NoiseForm, call: str) -> Taken:
    if np.ndim(along) != 1 or (len(along) != 2 and "axes" in call):
        raise ValueError(f"axes={along!r} must be a pair of axes")
    home: Any = registry.home(x)
    if home is None:
        taken = arrays.take(x, *along)
        rows, shape = taken.rows, taken.original.shape
    else:
        rows, shape = home.to_host(home.take(x, *along).rows), tuple(x.shape)
    batch = np.delete(shape, [axis % len(shape) for axis in along]).tolist()
    return _checked(Taken(rows, (sigma,) * len(rows), call, (*batch, *rows.shape[1:-1])))


def _of_recording(x: Recording, sigmas: Sequence[NoiseForm], axes: tuple[int, int] | None, call: str) -> Taken:
    rows, steps = x.rows(), set(x.intervals)
    if axes is not None:
        if len({len(trace) for trace in x.traces}) > 1:
            raise ValueError(f"{x.source}: a panel needs traces of one length")
        rows, sigmas, call = rows[None], sigmas[:1], call.replace("{}", "{}, two_dimensional=True")
    interval = x.intervals[0] if len(steps) == 1 else None
    return _checked(Taken(rows, tuple(sigmas), call, (len(x.traces),), interval))


def _of_stream(x: Stream | Trace, sigma: NoiseForm, axes: tuple[int, int] | None) -> Taken:
    from obspy import Trace

    from wavefilt.obspy import noise_in_samples

    traces = [trace for trace in ([x] if isinstance(x, Trace) else x) if len(trace.data)]
    steps = tuple(trace.stats.delta for trace in traces)
    rows = [arrays.take(trace.data, -1).rows[0] for trace in traces]
    sigmas = [noise_in_samples(sigma, trace) for trace in traces]
    return _of_recording(Recording(rows, steps, "obspy", None), sigmas, axes, "wavefilt.obspy.denoise(stream, {})")


def _checked(taken: Taken) -> Taken:
    if taken.rows.dtype.kind == "c":
        raise TypeError("noise is estimated here for real samples alone: take x.real or x.imag")
    infinite = np.argwhere(np.isinf(taken.traces))
    if len(infinite):
        trace, sample = infinite[0].tolist()
        raise NonFiniteSample(trace, sample, "; replace it, or set it to NaN to have it treated as a gap")
    return taken

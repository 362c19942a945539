"""Denoising ObsPy's streams and traces, headers kept, and the type "wavelet" for their method ``filter``."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar, Unpack

import numpy as np

from wavefilt.api import denoise as denoise_array
from wavefilt.arrays import Array, Traces, take
from wavefilt.backends import Backend, registry
from wavefilt.errors import NonFiniteSample
from wavefilt.options import Clock, Keywords, NoiseForm, Options, check_names
from wavefilt.recording import Recording
from wavefilt.wavelets.filters import WaveletLike

try:
    from obspy import Stream, Trace, UTCDateTime
    from obspy.core.event import Catalog, Event, Pick
except ImportError as error:
    raise ImportError(f'wavefilt.obspy needs ObsPy ({error}): pip install "wavefilt[seismic]"') from error


Data = TypeVar("Data", Stream, Trace)


def denoise(
    data: Data,
    wavelet: WaveletLike | None = None,
    *,
    two_dimensional: bool = False,
    backend: str | Backend = "auto",
    return_residual: bool = False,
    **options: Unpack[Keywords],
) -> Data | tuple[Data, Data]:
    """A new stream (or trace) with every trace denoised, traces of one length together in one call.

    Samples are those that `wavefilt.denoise` returns: masked samples and NaN are gaps, integers become floats.
    Headers and all other attributes are copied, and a line is added to ``stats.processing``. A trace without samples
    is copied unchanged. With ``scope="record"`` all traces of the stream share their thresholds.

    Parameters
    ----------
    data : obspy.Stream or obspy.Trace
        Never modified.
    wavelet, backend, **options
        Those of `wavefilt.denoise`: level, mode, rule, shrink, sigma, scope, keep, transform, spins, detrend and
        blend. A level None is chosen for each length. ``sigma`` has seconds instead of samples:
        ``("seconds", start, stop)`` of noise from the first sample of each trace, ``("before", pick, seconds)``,
        ``("running", seconds)`` and ``("intervals", points)``. Points, and the ends of ``("window", start, stop)``
        unless they are whole numbers, which are samples, may be UTCDateTime; so may a pick, or it is a Pick, or an
        Event, Catalog or list of Picks, of which each trace has the earliest one of its station.
    two_dimensional : bool
        Denoise the stream as a panel, along both axes: its traces in their order, neighbours beside each other. They
        must have one length and sampling rate, and begin together (to half a sample).
    return_residual : bool
        Return the pair (denoised, removed), the second with the same headers.

    Raises
    ------
    TypeError
        If ``data`` is neither stream nor trace, or a trace has samples that are not numbers.
    ValueError
        For an unknown option or word, and for what `wavefilt.denoise` refuses, with the ids of the traces; for
        ``scope="record"`` with traces of several sampling rates; for a panel of traces that are not alike.
    """
    if not isinstance(data, (Stream, Trace)):
        raise TypeError(f"an ObsPy Stream or Trace is needed, not {type(data).__name__}; wavefilt.denoise takes arrays")
    plain: Keywords = {**options, "sigma": "level"}
    check_names(options, "return_residual", "two_dimensional")
    registry.check_name(backend)
    chosen = Options(wavelet, **plain, dimensions=2 if two_dimensional else 1)
    traces = [data] if isinstance(data, Trace) else list(data)
    taken, quiet, noise, lines = dict[int, Traces](), dict[int, Array](), dict[int, Array](), dict[int, str]()
    for i, trace in enumerate(traces):
        try:
            if len(trace.data):
                taken[i] = take(trace.data, -1)
        except TypeError as error:
            raise TypeError(f"{trace.id}: {error}") from error
    sigmas = {i: noise_in_samples(options.get("sigma", "level"), traces[i]) for i in taken}
    if two_dimensional:
        _check_panel(data)
    for batch in _batches(taken, chosen, traces, sigmas):
        rows = [taken[i].rows[0] for i in batch]
        try:
            own = replace(chosen, sigma=sigmas[batch[0]])
            after = Recording(rows, (None,) * len(rows), "obspy", None).apply(own, backend)
        except ValueError as error:
            raise _explained(error, [traces[i] for i in batch]) from error
        assert after.outcome is not None
        panel = {"two_dimensional": True} if two_dimensional else {}
        line = own.history(after.outcome.level, "::", backend=after.outcome.backend, **panel)
        for i, x, y in zip(batch, rows, after.traces, strict=True):
            lines[i] = line
            quiet[i] = taken[i].restore(y.astype(x.dtype, copy=False))
            if return_residual:
                noise[i] = taken[i].restore(x - y)
    denoised = _copied(data, traces, quiet, lines)
    return (denoised, _copied(data, traces, noise, lines, "removed by ")) if return_residual else denoised


def filter_samples(
    data: Array,
    wavelet: WaveletLike | None = None,
    *,
    df: float = 0,
    backend: str | Backend = "auto",
    **options: Unpack[Keywords],
) -> Array:
    """Denoise the samples of one trace: what ObsPy calls for ``Trace.filter("wavelet", wavelet="db8", ...)``.

    ``df``, the sampling rate that ObsPy passes to every filter, is that of ``sigma`` in seconds, see `denoise`; times
    are not known here. An empty array is returned unchanged. Raises ValueError for an unknown option, and as
    `wavefilt.denoise` does.
    """
    if "sigma" in options:
        clock = Clock(1 / df if df else None, None, len(data), "the trace")
        options = {**options, "sigma": clock.in_samples(options["sigma"])}
    Options.of(wavelet, options)
    registry.check_name(backend)
    denoised: Array = denoise_array(data, wavelet, backend=backend, **options) if len(data) else data
    return denoised


def noise_in_samples(sigma: NoiseForm, trace: Trace) -> NoiseForm:
    """``sigma`` in samples of a trace, with times and picks of ObsPy."""
    if not isinstance(sigma, tuple):
        return sigma
    start = np.datetime64(trace.stats.starttime.ns, "ns")
    try:
        own = sigma[:1] + tuple(_moment(part, trace) for part in sigma[1:])
        return Clock(trace.stats.delta, start, len(trace.data), trace.id).in_samples(own)  # type: ignore[arg-type]
    except ValueError as error:
        raise ValueError(f"{trace.id}: {error}") from error


def _moment(part: object, trace: Trace) -> object:
    """Times of NumPy instead of ObsPy's; of several picks the earliest one of the trace's station."""
    if isinstance(part, UTCDateTime):
        return np.datetime64(part.ns, "ns")
    if isinstance(part, Pick):
        return _moment(part.time, trace)
    if isinstance(part, Catalog):
        part = [pick for event in part for pick in event.picks]
    if isinstance(part, Event):
        part = part.picks
    if not isinstance(part, list | tuple):
        return part
    picks = [pick for pick in part if isinstance(pick, Pick)]
    if len(picks) < len(part) or not part:
        return [_moment(one, trace) for one in part]
    mine = [pick.time for pick in picks if _same_station(pick, trace)]
    if not mine:
        raise ValueError(f"none of the {len(picks)} picks is of its station")
    return _moment(min(mine), trace)


def _same_station(pick: Pick, trace: Trace) -> bool:
    """Whether network and station of a pick, where it names them, are those of a trace."""
    named = pick.waveform_id
    codes = (named.network_code, named.station_code) if named else (None, None)
    own = (trace.stats.network, trace.stats.station)
    return all(not code or code == mine for code, mine in zip(codes, own, strict=True))


def _batches(
    taken: dict[int, Traces], method: Options, traces: Sequence[Trace], sigmas: dict[int, NoiseForm]
) -> list[list[int]]:
    """Which traces are denoised together: all of a panel or record, else those of one length, dtype and noise."""
    if method.dimensions == 2:
        return [list(taken)] if taken else []
    if method.scope == "record":
        rates = sorted({traces[i].stats.sampling_rate for i in taken})
        if len(rates) > 1:
            raise ValueError(
                f'scope="record" pools traces of one sampling rate, not of {", ".join(f"{rate:g}" for rate in rates)} '
                'Hz: select() those of one rate, or use scope="trace"'
            )
        if len(set(sigmas.values())) > 1:
            raise ValueError('scope="record" needs noise at the same samples of all traces: trim() them to one time')
        return [list(taken)] if taken else []
    alike = defaultdict(list)
    for i, trace in taken.items():
        alike[trace.rows.shape[1], trace.rows.dtype, sigmas[i]].append(i)
    return list(alike.values())


def _check_panel(data: Stream | Trace) -> None:
    """Raise ValueError for traces that are no panel."""
    if isinstance(data, Trace):
        raise ValueError("two_dimensional=True is for a Stream, whose traces are a panel, not for one Trace")
    for what, words in (("npts", "length"), ("sampling_rate", "sampling rate")):
        found = sorted({trace.stats[what] for trace in data})
        if len(found) > 1:
            raise ValueError(f"a panel needs traces of one {words}, not of {found[0]:g} to {found[-1]:g}")
    starts = [trace.stats.starttime for trace in data]
    if starts and max(starts) - min(starts) > data[0].stats.delta / 2:
        raise ValueError(f"a panel needs traces that begin together, not from {min(starts)} to {max(starts)}")


def _explained(error: ValueError, traces: Sequence[Trace]) -> ValueError:
    """The error with the ids of its traces instead of their numbers in a batch."""
    if isinstance(error, NonFiniteSample):
        trace = traces[error.trace]
        where = f"{error.kind} at sample {error.sample} (counted from 0)"
        return ValueError(f"{trace.id} from {trace.stats.starttime}: {where}{error.hint}")
    ids = list(dict.fromkeys(trace.id for trace in traces))
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return ValueError(f"{', '.join(ids[:3])}{more}: {error}")


def _copied(
    data: Data, traces: Sequence[Trace], samples: dict[int, Array], lines: dict[int, str], what: str = ""
) -> Data:
    """A deep copy of the stream or trace with these samples instead of its own, and a line more in its history."""
    instead = {id(traces[i].data): y for i, y in samples.items()}  # deepcopy takes these for copies made already
    new = copy.deepcopy(data, instead)
    for i, trace in enumerate([new] if isinstance(data, Trace) else new):
        if i in lines:
            trace.stats.setdefault("processing", []).append(what + lines[i])
    return new

"""Denoise ObsPy streams and traces and keep their headers; also the type "wavelet" of their method ``filter``."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar, Unpack

import numpy as np

from wavefilt.api import denoise as denoise_array
from wavefilt.arrays import Array, Traces, places, take
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
    """Denoise every trace and return a new stream (or trace).

    Samples are those of `wavefilt.denoise`: masked samples and NaN are gaps, and integers become floats. Headers and
    all other attributes are copied, and a line with the version and all options is added to ``stats.processing``. A
    trace without samples is copied unchanged. With ``scope="record"`` all traces of the stream share their thresholds.

    Parameters
    ----------
    data : obspy.Stream or obspy.Trace
        Never modified.
    wavelet, backend, **options
        Options of `wavefilt.denoise`: level, mode, rule, shrink, sigma, scope, keep, transform, spins, detrend and
        blend. A level of None is chosen for each length. ``sigma`` takes seconds instead of samples:
        ``("seconds", start, stop)`` is a noise window in seconds from the first sample of each trace; further forms
        are ``("before", pick, seconds)``, ``("running", seconds)`` and ``("intervals", points)``. Points, and the ends
        of ``("window", start, stop)``, may be UTCDateTime; whole numbers in a window are samples. A pick is a
        UTCDateTime, a Pick, or an Event, Catalog or list of Picks, of which each trace uses the earliest pick of its
        station.
    two_dimensional : bool
        Denoise the stream as a section, along both axes: the traces in their order, neighbours beside each other. They
        must have one length and sampling rate, and begin together (within half a sample).
    return_residual : bool
        Return the pair (denoised, residual), both with all headers.

    Raises
    ------
    TypeError
        If ``data`` is neither stream nor trace, or a trace has samples that are not numbers.
    ValueError
        For an unknown option or value, and as `wavefilt.denoise`, with the ids of the traces; for ``scope="record"``
        with traces of several sampling rates; for a section of traces that differ in length, rate or start.
    """
    if not isinstance(data, (Stream, Trace)):
        raise TypeError(f"an ObsPy Stream or Trace is needed, not {type(data).__name__}; wavefilt.denoise takes arrays")
    plain: Keywords = {**options, "sigma": "level"}
    check_names(options, "return_residual", "two_dimensional")
    registry.check_name(backend)
    chosen = Options(wavelet, **plain, ndim=2 if two_dimensional else 1)
    recording, taken = recording_of(data), list[Traces]()
    traces: Sequence[Trace] = recording.origin
    denoised, residuals, lines = dict[int, Array](), dict[int, Array](), dict[int, str]()
    for trace in traces:
        try:
            taken.append(take(trace.data, -1))
        except TypeError as error:
            raise TypeError(f"{trace.id}: {error}") from error
    sigmas = sigmas_of(recording, options.get("sigma"), chosen)
    if two_dimensional:
        _check_section(data)
    for batch in _batches(taken, chosen, traces, sigmas):
        rows = [taken[i].rows[0] for i in batch]
        try:
            own = replace(chosen, sigma=sigmas[batch[0]])
            after = Recording(rows, (None,) * len(rows), "obspy", None).apply(own, backend)
        except ValueError as error:
            raise _explained(error, [traces[i] for i in batch]) from error
        assert after.outcome is not None
        section = {"two_dimensional": True} if two_dimensional else {}
        for note in after.notes:
            warnings.warn(note, stacklevel=2)
        used = after.outcome
        line = used.options.history(used.level, "::", backend=used.backend, **section)
        for i, x, y in zip(batch, rows, after.traces, strict=True):
            lines[i] = line
            denoised[i] = taken[i].restore(y.astype(x.dtype, copy=False))
            if return_residual:
                residuals[i] = taken[i].restore(x - y)
    new = _copied(data, traces, denoised, lines)
    return (new, _copied(data, traces, residuals, lines, "residual of ")) if return_residual else new


def filter_samples(
    data: Array,
    wavelet: WaveletLike | None = None,
    *,
    df: float = 0,
    backend: str | Backend = "auto",
    **options: Unpack[Keywords],
) -> Array:
    """Denoise the samples of one trace; ObsPy calls this for ``Trace.filter("wavelet", wavelet="db8", ...)``.

    ``df`` is the sampling rate, which ObsPy passes to every filter; ``sigma`` may be in seconds (see `denoise`), but
    not in times. An empty array is returned unchanged. Raises ValueError as `wavefilt.denoise`.
    """
    if "sigma" in options:
        clock = Clock(1 / df if df else None, None, len(data), "the trace")
        options = {**options, "sigma": clock.in_samples(options["sigma"])}
    check_names(options)
    Options(wavelet, **options)
    registry.check_name(backend)
    denoised: Array = denoise_array(data, wavelet, backend=backend, **options) if len(data) else data
    return denoised


def recording_of(data: Stream | Trace) -> Recording:
    """Return a recording of the traces that have samples, which it shares; they are its ``origin``."""
    traces = [trace for trace in ([data] if isinstance(data, Trace) else data) if len(trace.data)]
    return Recording(
        [trace.data for trace in traces],
        tuple(float(trace.stats.delta) for trace in traces),
        "obspy",
        traces,
        ids=tuple(trace.id for trace in traces),
        starts=tuple(np.datetime64(trace.stats.starttime.ns, "ns") for trace in traces),
    )


def sigmas_of(recording: Recording, sigma: NoiseForm | None, options: Options | None = None) -> list[NoiseForm]:
    """Return the option ``sigma`` of each trace in samples, by default the noise before picks and origins in stats."""
    if not isinstance(sigma, tuple):
        return recording.sigmas(sigma, options)
    found = []
    for i, trace in enumerate(recording.origin):
        try:
            own = sigma[:1] + tuple(_moment(part, trace) for part in sigma[1:])
            clock = replace(recording.clock(i), name=trace.id)
            found.append(clock.in_samples(own))  # type: ignore[arg-type]
        except ValueError as error:
            raise ValueError(f"{trace.id}: {error}") from error
    return found


def _moment(part: object, trace: Trace) -> object:
    """Return ObsPy times as NumPy times, and of several picks the earliest one of the trace's station."""
    if isinstance(part, UTCDateTime):
        return np.datetime64(part.ns, "ns")
    if isinstance(part, Pick):
        part = [part]
    if isinstance(part, Catalog | Event):
        part = [pick for event in ([part] if isinstance(part, Event) else part) for pick in event.picks]
        if not part:
            raise ValueError("the event has no picks")
    if not isinstance(part, list | tuple):
        return part
    picks = [pick for pick in part if isinstance(pick, Pick)]
    if len(picks) < len(part) or not part:
        return [_moment(one, trace) for one in part]
    mine = [pick.time for pick in picks if _same_station(pick, trace)]
    if not mine:
        raise ValueError("no pick belongs to its station; give a time, such as pick.time, for all stations")
    return _moment(min(mine), trace)


def _same_station(pick: Pick, trace: Trace) -> bool:
    """Return whether network and station of a pick, if it has them, match a trace."""
    named = pick.waveform_id
    codes = (named.network_code, named.station_code) if named else (None, None)
    own = (trace.stats.network, trace.stats.station)
    return all(not code or code == mine for code, mine in zip(codes, own, strict=True))


def _batches(
    taken: Sequence[Traces], options: Options, traces: Sequence[Trace], sigmas: Sequence[NoiseForm]
) -> list[list[int]]:
    """Return the traces to denoise together: all of a section or record, else all with the same length and noise."""
    if options.ndim == 1 and options.scope == "trace":
        alike = ((own.rows.shape[1], own.rows.dtype, sigma) for own, sigma in zip(taken, sigmas, strict=True))
        return list(places(alike).values())
    if options.ndim == 1:
        rates = sorted({trace.stats.sampling_rate for trace in traces})
        if len(rates) > 1:
            raise ValueError(
                f"`scope=record` pools traces of one sampling rate, not of {', '.join(f'{rate:g}' for rate in rates)} "
                "Hz: select() those of one rate, or use `scope=trace`"
            )
        if len(set(sigmas)) > 1:
            raise ValueError("`scope=record` needs noise at the same samples of all traces: trim() them to one time")
    return [list(range(len(taken)))] if taken else []


def _check_section(data: Stream | Trace) -> None:
    """Raise ValueError for traces that do not form a section."""
    if isinstance(data, Trace):
        raise ValueError("`two_dimensional` is for a Stream, whose traces form a section, not for one Trace")
    for what, words in (("npts", "length"), ("sampling_rate", "sampling rate")):
        found = sorted({trace.stats[what] for trace in data})
        if len(found) > 1:
            raise ValueError(f"a section needs traces of one {words}, not of {found[0]:g} to {found[-1]:g}")
    starts = [trace.stats.starttime for trace in data]
    if starts and max(starts) - min(starts) > data[0].stats.delta / 2:
        raise ValueError(f"a section needs traces that begin together, not from {min(starts)} to {max(starts)}")


def _explained(error: ValueError, traces: Sequence[Trace]) -> ValueError:
    """Return the error with the ids of the traces instead of their numbers in a batch."""
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
    """Return a deep copy of the stream or trace with these samples, and one more line in its processing history."""
    instead = {id(traces[i].data): y for i, y in samples.items()}  # deepcopy uses these as copies that exist already
    new = copy.deepcopy(data, instead)
    for i, trace in enumerate(recording_of(new).origin):
        trace.stats.setdefault("processing", []).append(what + lines[i])
    return new

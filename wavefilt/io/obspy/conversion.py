"""Recordings of any format written as MiniSEED or SAC."""

from __future__ import annotations

import numpy as np

from wavefilt.errors import FormatError
from wavefilt.io import seg2
from wavefilt.io.conversion import stored
from wavefilt.io.obspy.waveforms import Origin, written
from wavefilt.recording import Recording

KINDS = {"MSEED": ("i2", "i4", "f4", "f8"), "SAC": ("f4",)}


def convert(recording: Recording, format: str) -> bytes:
    """The recording in a format of ObsPy's. Raises FormatError where that cannot hold it, or ObsPy is missing."""
    format = format.upper()
    try:
        import obspy
    except ImportError as error:
        raise FormatError(f'{format} needs ObsPy: pip install "wavefilt[seismic]"') from error
    if format == "SAC" and len(recording.traces) > 1:
        raise FormatError(f"a SAC file holds one trace, not {len(recording.traces)}; write MiniSEED (.mseed)")
    if None in recording.intervals:
        raise FormatError(f"{format} needs the sampling interval, in seconds: the option dt gives it")
    traces, origin = obspy.Stream(), recording.origin
    headers = seg2.headers(origin) if recording.format == "seg2" else []
    width = len(str(len(recording.traces)))
    for i, (samples, interval) in enumerate(zip(recording.traces, recording.intervals, strict=True)):
        if np.iscomplexobj(samples):
            raise FormatError(f"{format} holds no complex samples")
        trace = origin.stream[i].copy() if isinstance(origin, Origin) else obspy.Trace()
        trace.data = np.ascontiguousarray(stored(np.asarray(samples), KINDS[format]))
        stats = trace.stats
        stats.pop("mseed", None)
        stats.delta, number = interval, f"{i + 1:0{width}}"[-5:]
        if recording.ids:
            stats.network, stats.station, stats.location, stats.channel = recording.ids[i].split(".")
            stats.starttime = obspy.UTCDateTime(ns=int(recording.starts[i].astype("datetime64[ns]").astype(int)))
        elif headers:
            stats.station = number if headers[i].channel is None else f"{headers[i].channel:0{width}}"[-5:]
            start = headers[i].start
            if start is not None:
                stats.starttime = obspy.UTCDateTime(ns=int(start.astype("datetime64[ns]").astype(int)))
            stats.starttime += headers[i].delay or 0.0
        elif not isinstance(origin, Origin):
            stats.station = number
        traces.append(trace)
    for trace in traces:
        for code in ("network", "station", "location", "channel"):
            trace.stats[code] = trace.stats[code].strip()
    if format == "MSEED" and len({trace.id for trace in traces}) < len(traces):
        traces.merge(method=-1)  # which is what reading does to traces that follow each other
    return written(traces, format)

"""ObsPy's streams and traces denoised with their headers kept, and the type "wavelet" of their method ``filter``."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Traces
from wavefilt.backends import Backend
from wavefilt.denoising import options as plugins
from wavefilt.denoising.traces import denoise as denoise_array
from wavefilt.recording import Recording
from wavefilt.wavelets.filters import WaveletLike

from . import arrays

try:
    from obspy import Stream, Trace
except ImportError as error:
    raise ImportError(f'wavefilt.obspy needs ObsPy ({error}): pip install "wavefilt[seismic]"') from error


def denoise(
    data: Any, wavelet: WaveletLike = "db8", *, backend: str | Backend = "auto", return_noise: bool = False,
    **options: Any,
) -> Any:  # fmt: skip
    """A new stream (or trace) with every trace denoised, traces of one length together in one call.

    Each comes back as `wavefilt.denoise` gives its samples: masked samples and NaN are gaps, integers become floats.
    Headers and all other attributes are copied; ``stats.processing`` has one line more. A trace without samples is
    copied as it is. With ``scope="record"`` the traces of the stream share their thresholds, whatever their lengths.

    Parameters
    ----------
    data : obspy.Stream or obspy.Trace
        Never modified.
    wavelet, backend, **options
        Those of `wavefilt.denoise`: level, mode, rule, shrink, sigma, scope, keep, transform and spins. A level None
        is chosen for each length. A noise window is in samples.
    return_noise : bool
        Return the pair (denoised, removed), the second with the same headers.

    Raises
    ------
    TypeError
        If ``data`` is neither stream nor trace, or a trace has samples that are not numbers.
    ValueError
        For an unknown option or word, and for what `wavefilt.denoise` refuses, with the ids of the traces; for
        ``scope="record"`` with traces of several sampling rates.
    """
    if not isinstance(data, (Stream, Trace)):
        raise TypeError(
            f"a Stream or a Trace of ObsPy is needed, not {type(data).__name__}; wavefilt.denoise has arrays"
        )
    method = plugins.method(wavelet, options, backend, "return_noise")
    traces = [data] if isinstance(data, Trace) else list(data)
    taken = {i: _taken(trace) for i, trace in enumerate(traces) if len(trace.data)}
    quiet, noise = dict[int, NDArray[Any]](), dict[int, NDArray[Any]]()
    lines: dict[int, str] = {}
    for batch in _batches(taken, method.scope, traces):
        rows = [taken[i].rows[0] for i in batch]
        try:
            after = Recording(rows, (None,) * len(rows), "obspy", None).apply(method, backend)
        except ValueError as error:
            raise _explained(error, [traces[i] for i in batch], rows) from error
        assert after.outcome is not None
        line = plugins.entry(method, after.outcome.level, "::", backend=after.outcome.backend)
        for i, x, y in zip(batch, rows, after.traces, strict=True):
            lines[i] = line
            quiet[i] = taken[i].restore(y.astype(x.dtype, copy=False))
            if return_noise:
                noise[i] = taken[i].restore(x - y)
    denoised = _copied(data, traces, quiet, lines)
    return (denoised, _copied(data, traces, noise, lines, "removed by ")) if return_noise else denoised


def filter_samples(
    data: Any, wavelet: WaveletLike = "db8", *, df: float = 0, backend: str | Backend = "auto", **options: Any
) -> Any:
    """The samples of one trace denoised: what ObsPy calls for ``Trace.filter("wavelet", wavelet="db8", ...)``.

    ``df``, the sampling rate that ObsPy passes to every filter, has no influence. No samples are returned as they are.
    Raises ValueError for an option of another name, and as `wavefilt.denoise` does.
    """
    plugins.method(wavelet, options, backend)
    return denoise_array(data, wavelet, backend=backend, **options) if len(data) else data


def _taken(trace: Any) -> Traces:
    try:
        return arrays.take(trace.data, -1)
    except TypeError as error:
        raise TypeError(f"{trace.id}: {error}") from error


def _batches(taken: dict[int, Traces], scope: str, traces: Sequence[Any]) -> list[list[int]]:
    """Which traces are denoised together: all that share thresholds, or those of one length and dtype."""
    if scope == "record":
        rates = sorted({traces[i].stats.sampling_rate for i in taken})
        if len(rates) > 1:
            raise ValueError(
                f'scope="record" pools traces of one sampling rate, not of {", ".join(f"{rate:g}" for rate in rates)} '
                'Hz: select() those of one rate, or use scope="trace"'
            )
        return [list(taken)] if taken else []
    alike = defaultdict(list)
    for i, trace in taken.items():
        alike[trace.rows.shape[1], trace.rows.dtype].append(i)
    return list(alike.values())


def _explained(error: ValueError, traces: Sequence[Any], rows: Sequence[NDArray[Any]]) -> ValueError:
    """The error with the ids of its traces instead of their places in a batch."""
    for trace, row in zip(traces, rows, strict=True):
        infinite = np.flatnonzero(np.isinf(row))
        if infinite.size:
            return ValueError(
                f"{trace.id} from {trace.stats.starttime}: infinite value at sample {infinite[0]} (counted from 0), "
                f"{infinite.size} in all; replace them, or set them to NaN to have them treated as gaps"
            )
    ids = list(dict.fromkeys(trace.id for trace in traces))
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return ValueError(f"{', '.join(ids[:3])}{more}: {error}")


def _copied(
    data: Any, traces: Sequence[Any], samples: dict[int, NDArray[Any]], lines: dict[int, str], what: str = ""
) -> Any:
    """The stream or trace with everything it has copied but its samples, which are new; and its history."""
    instead = {id(traces[i].data): y for i, y in samples.items()}  # deepcopy takes these for copied already
    new = copy.deepcopy(data, instead)
    for i, trace in enumerate([new] if isinstance(data, Trace) else new):
        if i in lines:
            trace.stats.setdefault("processing", []).append(what + lines[i])
    return new

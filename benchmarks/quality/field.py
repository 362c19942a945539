"""Recorded noise: windows of ObsPy's test data that pass fixed criteria. Nothing is chosen by hand."""

from __future__ import annotations

import hashlib
import importlib.util
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import signal

if TYPE_CHECKING:
    from obspy import Trace

Samples = NDArray[np.float64]
LENGTH = 4800
"""Samples of a window."""
SLOWEST, FASTEST = 50.0, 125.0
"""Hz. Slower traces are left out, faster ones are resampled."""
MOST = 4
"""Windows of a channel, so that a channel with hours of data does not dominate."""
LIMITS: dict[str, tuple[float, float]] = {
    "distinct values": (64, np.inf),
    "largest over smallest deviation of ten parts": (1, 3),
    "excess kurtosis": (-1, 2),
    "largest STA/LTA": (0, 4),
    "spectral flatness": (0, 0.8),
}
"""Values of `measures` that a window of stationary noise may have."""


@dataclass(frozen=True)
class Window:
    """Noise at ``rate`` Hz, ``raw`` without a line and ``filtered`` above 1 Hz; a source is a folder and a day."""

    file: str
    channel: str
    source: str
    rate: float
    raw: Samples
    filtered: Samples


def traces() -> Iterator[tuple[str, Trace]]:
    """Yield file names and contiguous traces of ObsPy's test data; nothing without ObsPy."""
    spec = importlib.util.find_spec("obspy")
    if spec is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # raised by modules that ObsPy imports
        import obspy
    folder = Path((spec.submodule_search_locations or [""])[0])
    for path in sorted(path for path in folder.glob("**/tests/data/**/*") if path.is_file()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                stream = obspy.read(path).merge().split()
        except Exception:  # readers raise anything for a file that holds no record
            continue
        for trace in stream:
            if SLOWEST <= trace.stats.sampling_rate <= 1000:
                yield path.relative_to(folder).as_posix().replace("tests/data/", ""), trace


def high_passed(x: Samples, rate: float) -> Samples:
    """Return samples above 1 Hz by a causal filter, which starts up in a reflection before the first sample."""
    lead = min(len(x) - 1, round(10 * rate))
    longer = np.concatenate([2 * x[0] - x[lead:0:-1], x])
    return np.asarray(signal.sosfilt(signal.butter(2, 1.0, "highpass", fs=rate, output="sos"), longer)[lead:])


def resampled(x: Samples, rate: float) -> tuple[Samples, float]:
    """Return samples without their mean at `FASTEST` Hz or less, and their rate."""
    factor = int(np.ceil(rate / FASTEST))
    x = x - x.mean()
    return (x if factor == 1 else np.asarray(signal.resample_poly(x, 1, factor))), rate / factor


def energy_ratio(x: Samples, short: int, long: int, floor: float = 0.0) -> Samples:
    """Return STA/LTA: the mean square of ``short`` samples from each one on over that of the ``long`` before it."""
    total = np.concatenate([[0.0], np.cumsum(x**2)])
    at = np.arange(long, len(x) - short + 1)
    found = np.zeros(len(x))
    after, before = (total[at + short] - total[at]) / short, (total[at] - total[at - long]) / long
    found[at] = (after + floor) / (before + floor + 1e-12 * total[-1] / len(x))
    return found


def measures(recorded: Samples, filtered: Samples, rate: float) -> dict[str, float]:
    """Return the values for `LIMITS`; the first is of the samples as recorded."""
    parts = filtered[: len(filtered) // 10 * 10].reshape(10, -1).std(axis=1)
    frequency, power = signal.welch(filtered, rate, nperseg=min(1024, len(filtered)))
    power = power[frequency >= 1.0]
    values = (
        len(np.unique(recorded)),
        parts.max() / max(parts.min(), 1e-300),
        np.mean((filtered - filtered.mean()) ** 4) / max(filtered.var() ** 2, 1e-300) - 3,
        energy_ratio(filtered, round(rate), round(10 * rate)).max(),
        np.exp(np.mean(np.log(np.maximum(power, 1e-300)))) / max(power.mean(), 1e-300),
    )
    return dict(zip(LIMITS, map(float, values), strict=True))


def faults(found: dict[str, float]) -> list[str]:
    """Return the criteria that a window fails."""
    return [name for name, (low, high) in LIMITS.items() if not low <= found[name] <= high]


@cache
def windows() -> list[Window]:
    """Return the windows of noise; a window with a channel and time, or samples, seen before is left out."""
    found: list[Window] = []
    seen: set[bytes] = set()
    times: dict[str, list[tuple[float, float]]] = {}
    for name, trace in traces():
        rate, data = float(trace.stats.sampling_rate), np.asarray(trace.data, np.float64)
        x, slow = resampled(data, rate)
        filtered, length = high_passed(x, slow), LENGTH * round(rate / slow)
        for i in range(len(data) // length):
            if sum(window.channel == trace.id for window in found) == MOST:
                break
            piece = data[i * length : (i + 1) * length]
            start = trace.stats.starttime + i * length / rate
            begin, end = start.timestamp, start.timestamp + length / rate
            digest, known = hashlib.sha256(piece.tobytes()).digest(), times.setdefault(trace.id, [])
            if digest in seen or any(begin < other_end and other < end for other, other_end in known):
                continue
            seen.add(digest)
            known.append((begin, end))
            part = slice(i * LENGTH, (i + 1) * LENGTH)
            if not faults(measures(piece, filtered[part], slow)):
                source = f"{Path(name).parent.as_posix()} {start.date}"
                found.append(Window(name, trace.id, source, slow, signal.detrend(x[part]), filtered[part]))
    return found


def halves(found: Sequence[Window]) -> list[int]:
    """Return 0 or 1 for each window: sources in turn, those with most energy below 1 Hz first."""
    low: dict[str, list[float]] = {}
    for window in found:
        low.setdefault(window.source, []).append(float(np.log(window.raw.std() / window.filtered.std())))
    ordered = sorted(low, key=lambda source: (-float(np.mean(low[source])), source))
    return [ordered.index(window.source) % 2 for window in found]

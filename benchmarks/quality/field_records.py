"""Real noise and real earthquakes: what in ObsPy's test data, and in a folder of one's own, passes fixed criteria.

Nothing is chosen by hand: every file that ObsPy reads is cut into windows, and `faults` has the reasons against each.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import signal

from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.quality.signals import Samples
from wavefilt.trust.picking import energy_ratio

if TYPE_CHECKING:
    from obspy import Trace

FOLDER = "WAVEFILT_FIELD_RECORDS"
"""The variable that names a folder with more records."""
LENGTH = 4800
"""Samples of a window."""
SLOWEST, FASTEST = 50.0, 125.0
"""Hz. Slower records cannot hold a local earthquake; of faster ones every second or later sample is taken, filtered."""
MOST = 4
"""Windows of a channel, so that one with hours of data does not rule the study."""
HIGH_PASS = 1.0
"""Hz: corner of the Butterworth filter, causal, two poles, that screening and half of the study use."""
LIMITS: dict[str, tuple[float, float]] = {
    "distinct values": (64, np.inf),
    "share of samples at an extreme": (0, 0.005),
    "equal samples in a row": (1, 10),
    "largest over smallest deviation of ten parts": (1, 3),
    "excess kurtosis": (-1, 2),
    "largest STA/LTA": (0, 4),
    "spectral flatness": (0, 0.8),
    "share of the strongest frequency": (0, 0.5),
}
"""What is measured of a window, see `measures`, with the values that it may have."""
EVENT_RATIO = 28.0
"""dB of the strongest 5 s over what came before the onset, of a real earthquake that is taken for clean."""


@dataclass(frozen=True)
class Window:
    """Noise from its ``start``; ``raw`` without a line, ``filtered`` above `HIGH_PASS`, both sampled at ``rate`` Hz.

    Files of one folder that begin on the same day are one ``source``.
    """

    file: str
    channel: str
    source: str
    start: str
    recorded: float
    rate: float
    measures: dict[str, float]
    raw: Samples = field(repr=False)
    filtered: Samples = field(repr=False)

    @property
    def low(self) -> float:
        """Decibels by which the high-pass filter lowers the noise."""
        return float(20 * np.log10(self.raw.std() / self.filtered.std()))

    def row(self) -> Row:
        """For JSON."""
        facts = {"file": self.file, "channel": self.channel, "source": self.source, "start": self.start}
        return facts | {"recorded": self.recorded, "rate": self.rate, "low": self.low, "measures": self.measures}


@dataclass(frozen=True)
class Event:
    """An earthquake above `HIGH_PASS`, which begins ``before`` samples after the first; ``ratio`` in dB."""

    file: str
    channel: str
    rate: float
    ratio: float
    before: int
    samples: Samples = field(repr=False)

    def row(self) -> Row:
        """For JSON."""
        return {"file": self.file, "channel": self.channel, "rate": self.rate, "ratio": self.ratio}


def folders() -> list[Path]:
    """ObsPy's test data as installed, and the folder that the variable `FOLDER` names."""
    found = importlib.util.find_spec("obspy")
    paths = [Path(place) for place in found.submodule_search_locations or ()] if found else []
    return [*paths, *([Path(os.environ[FOLDER])] if os.environ.get(FOLDER) else [])]


def traces(places: Sequence[Path]) -> Iterator[tuple[str, Trace]]:
    """Names of files and their contiguous traces; of ObsPy's own package only what is test data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, of what it imports
        import obspy

    for place in places:
        pattern = "**/tests/data/**/*" if (place / "core" / "stream.py").exists() else "**/*"
        for path in sorted(path for path in place.glob(pattern) if path.is_file()):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    stream = obspy.read(path).merge().split()
            except Exception:  # whatever a reader of a file that holds no record raises
                continue
            name = path.relative_to(place).as_posix().replace("tests/data/", "")
            for trace in stream:
                if SLOWEST <= trace.stats.sampling_rate <= 1000:
                    yield name, trace


def high_passed(x: Samples, rate: float) -> Samples:
    """Above `HIGH_PASS` Hz, causal; what the filter does as it starts happens in a reflection before the samples."""
    lead = min(len(x) - 1, round(10 * rate))
    longer = np.concatenate([2 * x[0] - x[lead:0:-1], x])
    return np.asarray(signal.sosfilt(signal.butter(2, HIGH_PASS, "highpass", fs=rate, output="sos"), longer)[lead:])


def slowed(x: Samples, rate: float) -> tuple[Samples, float]:
    """At most `FASTEST` Hz, without the mean."""
    factor = int(np.ceil(rate / FASTEST))
    x = x - x.mean()
    return (x if factor == 1 else np.asarray(signal.resample_poly(x, 1, factor))), rate / factor


def measures(recorded: Samples, filtered: Samples, rate: float) -> dict[str, float]:
    """What `LIMITS` judges: of the samples as recorded the first three, of the filtered ones the others."""
    changes = np.flatnonzero(np.concatenate([[True], np.diff(recorded) != 0, [True]]))
    parts = filtered[: len(filtered) // 10 * 10].reshape(10, -1).std(axis=1)
    frequency, power = signal.welch(filtered, rate, nperseg=min(1024, len(filtered)))
    power = power[frequency >= HIGH_PASS]
    values = (
        len(np.unique(recorded)),
        max(np.mean(recorded == recorded.max()), np.mean(recorded == recorded.min())),
        np.diff(changes).max(),
        parts.max() / max(parts.min(), 1e-300),
        np.mean((filtered - filtered.mean()) ** 4) / max(filtered.var() ** 2, 1e-300) - 3,
        energy_ratio(filtered, round(rate), round(10 * rate)).max(),
        np.exp(np.mean(np.log(np.maximum(power, 1e-300)))) / max(power.mean(), 1e-300),
        power.max() / max(power.sum(), 1e-300),
    )
    return dict(zip(LIMITS, map(float, values), strict=True))


def faults(found: dict[str, float]) -> list[str]:
    """The criteria that a window fails."""
    return [name for name, (low, high) in LIMITS.items() if not low <= found[name] <= high]


def windows(places: Sequence[Path]) -> tuple[list[Window], Row]:
    """The noise, and how many windows there were, and how many failed each criterion.

    A window whose channel and time, or whose very samples, were seen before is left out.
    """
    found: list[Window] = []
    failed: Counter[str] = Counter()
    seen: set[bytes] = set()
    times: dict[str, list[tuple[float, float]]] = {}
    examined = 0
    for name, trace in traces(places):
        rate = float(trace.stats.sampling_rate)
        data = np.asarray(trace.data, np.float64)
        x, slow = slowed(data, rate)
        filtered, length = high_passed(x, slow), LENGTH * round(rate / slow)
        for i in range(len(data) // length):
            if sum(window.channel == trace.id for window in found) == MOST:
                break
            recorded = data[i * length : (i + 1) * length]
            start = trace.stats.starttime + i * length / rate
            span = (start.timestamp, start.timestamp + length / rate)
            digest = hashlib.sha256(recorded.tobytes()).digest()
            known = times.setdefault(trace.id, [])
            if digest in seen or any(span[0] < end and begin < span[1] for begin, end in known):
                continue
            seen.add(digest)
            known.append(span)
            examined += 1
            part = slice(i * LENGTH, (i + 1) * LENGTH)
            judged = measures(recorded, filtered[part], slow)
            failed.update(faults(judged))
            if not faults(judged):
                source = f"{Path(name).parent.as_posix()} {start.date}"
                where = (name, trace.id, source, str(start)[:19], rate, slow)
                found.append(Window(*where, judged, signal.detrend(x[part]), filtered[part]))
    return found, {"examined": examined, "failed": {name: failed[name] for name in LIMITS}}


def halves(found: Sequence[Window]) -> list[int]:
    """The half, 0 or 1, that each window is of: sources in turn, those ruled by low frequencies first."""
    low: dict[str, list[float]] = {}
    for window in found:
        low.setdefault(window.source, []).append(window.low)
    ordered = sorted(low, key=lambda source: (-float(np.mean(low[source])), source))
    return [ordered.index(window.source) % 2 for window in found]


def events(places: Sequence[Path]) -> list[Event]:
    """Earthquakes with at least 3 s of noise before the onset and 5 s after it, by their `EVENT_RATIO`."""
    found: list[Event] = []
    for name, trace in traces(places):
        recorded = np.asarray(trace.data, np.float64)
        x, rate = slowed(recorded, float(trace.stats.sampling_rate))
        second = round(rate)
        if len(x) < 8 * second or np.ptp(x) == 0:
            continue
        x = high_passed(x, rate)
        onset = int(np.argmax(energy_ratio(x, second // 2, 2 * second)[: -5 * second])) - second // 4
        if onset < 3 * second or {"distinct values", "equal samples in a row"} & {*faults(measures(recorded, x, rate))}:
            continue
        strongest = np.convolve(x[onset:] ** 2, np.ones(5 * second) / (5 * second), "valid").max()
        ratio = float(10 * np.log10(strongest / max(np.mean(x[:onset] ** 2), 1e-300)))
        before = second // 2
        cut = x[onset - before : onset - before + 40 * second]
        cut = cut * signal.windows.tukey(len(cut), 0.05)
        if ratio >= EVENT_RATIO and not any(_alike(cut, event.samples) for event in found):
            found.append(Event(name, trace.id, rate, ratio, before, cut))
    return found


def _alike(a: Samples, b: Samples) -> bool:
    """Whether two events are one, kept in two files."""
    length = min(len(a), len(b))
    return bool(abs(np.corrcoef(a[:length], b[:length])[0, 1]) > 0.95)

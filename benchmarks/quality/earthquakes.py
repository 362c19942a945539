"""Records of an earthquake in real noise: synthetic events and recorded ones, at known signal-to-noise ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import signal

from wavefilt.arrays import Array
from wavefilt.benchmarks.quality.field_records import LENGTH, Event, Window, high_passed
from wavefilt.benchmarks.quality.signals import Samples

RATIOS = (0, 5, 10)
"""dB, the mean power of the event in the signal window over that of the noise in the record."""
FORMS = ("high-passed", "raw")
"""Above 1 Hz, or as recorded without a line."""
NOISE = (0, 1200)
"""Samples that hold noise alone in every record."""
ONSETS = (1300, 1900)
"""Where P arrives, in samples."""
ENERGY = 0.95
"""Share of the event's energy in the signal window, which begins with P."""


@dataclass(frozen=True)
class Records:
    """Records in rows, with ``clean`` what they hold but for noise, P at the sample ``onset``, and the signal's end.

    ``group`` is the number of the noise window, and ``rate`` in Hz.
    """

    x: Samples
    clean: Samples
    onset: Samples
    end: Samples
    rate: Samples
    group: Samples
    ratio: Samples

    def __getitem__(self, rows: Array) -> Records:
        return Records(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def __len__(self) -> int:
        return len(self.x)


def local(rng: np.random.Generator, rate: float, onset: int, samples: int = LENGTH) -> Samples:
    """Velocity of a local earthquake: P and S, each a pulse and a decaying coda, with Brune's spectrum up to fmax.

    s ωc/(s + ωc)² has the corner of the source, 2 to 20 Hz; four poles at 12 to 25 Hz are the site's fmax (Boore 1983).
    Both are causal, so that nothing comes before P. S follows after 1.5 to 7 s with 2 to 4 times the amplitude and a
    coda of 2 to 5 s.
    """
    corner, delay = np.exp(rng.uniform(np.log(2), np.log(20))), rng.uniform(1.5, 7)
    larger, decay, highest = rng.uniform(2, 4), rng.uniform(2, 5), rng.uniform(12, 25)
    t = np.arange(samples) / rate
    source = np.zeros(samples)
    for start, size, coda in ((onset / rate, 1.0, delay), (onset / rate + delay, larger, decay)):
        since = t - t[np.searchsorted(t, start - 1e-9)]
        envelope = np.where(since >= 0, size * np.exp(-np.maximum(since, 0) / coda), 0)
        source += 0.5 * envelope * rng.standard_normal(samples)
        source[np.searchsorted(t, start - 1e-9)] += size * rng.choice([-1, 1]) * np.sqrt(rate / 100)
    omega = 2 * np.pi * min(corner, 0.4 * rate)
    b, a = signal.bilinear([omega, 0], [1, 2 * omega, omega**2], rate)
    site = signal.butter(4, min(highest, 0.45 * rate), fs=rate, output="sos")
    return np.asarray(signal.sosfilt(site, signal.lfilter(b, a, source)))


def _recorded(event: Event, rate: float, onset: int) -> Samples:
    """A real event, sampled at ``rate``."""
    count = round(len(event.samples) * rate / event.rate)
    x = np.asarray(signal.resample(event.samples, count))[: LENGTH - onset + round(event.before * rate / event.rate)]
    clean = np.zeros(LENGTH)
    start = onset - round(event.before * rate / event.rate)
    clean[start : start + len(x)] = x
    return clean


def synthetic(windows: Sequence[Window], form: str, count: int, seed: int = 1) -> Records:
    """``count`` synthetic events at every ratio, the windows in turn; the same events in either form."""
    rng = np.random.default_rng(seed)

    def one() -> Iterator[tuple[int, int, Samples]]:
        for i in range(count):
            onset = int(rng.integers(*ONSETS))
            yield i % len(windows), onset, local(rng, windows[i % len(windows)].rate, onset)

    return _records(windows, form, one())


def real(windows: Sequence[Window], form: str, events: Sequence[Event], count: int, seed: int = 3) -> Records:
    """Each recorded event in ``count`` windows that are drawn, at every ratio."""
    rng = np.random.default_rng(seed)

    def one() -> Iterator[tuple[int, int, Samples]]:
        for event in events:
            for _ in range(count):
                number, onset = int(rng.integers(len(windows))), int(rng.integers(*ONSETS))
                yield number, onset, _recorded(event, windows[number].rate, onset)

    return _records(windows, form, one())


def _records(windows: Sequence[Window], form: str, events: Iterator[tuple[int, int, Samples]]) -> Records:
    rows = []
    for number, onset, clean in events:
        window = windows[number]
        noise = window.raw
        if form == "high-passed":
            noise, clean = window.filtered, high_passed(clean, window.rate)
        energy = np.cumsum(clean**2)
        end = int(np.searchsorted(energy, ENERGY * energy[-1]))
        clean = clean * (noise.std() / np.sqrt(np.mean(clean[onset:end] ** 2)))
        for ratio in RATIOS:
            scaled = clean * 10 ** (ratio / 20)
            rows.append((scaled + noise, scaled, onset, end, window.rate, number, ratio))
    return Records(*(np.array(column) for column in zip(*rows, strict=True)))

"""Sections whose clean samples are known: synthetic ones, ragged and narrow ones, an image, and gathers of the field.

A section is an array (traces, samples). All random parts come from fixed seeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import fft

import wavefilt
from wavefilt.benchmarks.common.environment import version
from wavefilt.benchmarks.quality import records
from wavefilt.benchmarks.quality.field_records import FOLDER, Window
from wavefilt.benchmarks.quality.signals import Samples

TRACES, SAMPLES, INTERVAL = 256, 1024, 0.002
"""Of the models; seconds."""
STATICS, SCATTER = 0.004, 0.25
"""Of ragged sections: standard deviations of the time shift of a trace, in seconds, and of its factor."""
NARROW = slice(100, 124)
"""The 24 traces of narrow sections."""
RATIOS = (0, 10)
"""Signal-to-noise ratios in dB, over all samples."""
SYNTHETIC, RECORDED = ("white", "pink"), "recorded"
"""Kinds of noise."""
LEAST = (16, 512)
"""Traces and samples of a gather of the field, at least; of longer ones the first `SAMPLES` are taken."""


def ricker(arrivals: Samples, frequency: float) -> Samples:
    """A Ricker wavelet of this peak frequency in Hz at the arrival time of each trace, in seconds."""
    square = (np.pi * frequency * (INTERVAL * np.arange(SAMPLES) - arrivals[:, None])) ** 2
    return np.asarray((1 - 2 * square) * np.exp(-square))


def dips() -> Samples:
    """Five plane events that cross, of -2.4 to 3.2 ms a trace."""
    trace = np.arange(TRACES)
    events = ((1.5, -2.4, 1.0, 25), (0.9, -0.8, -0.8, 30), (0.5, 0, 0.9, 28), (0.7, 1.4, 0.7, 35), (1.1, 3.2, -0.9, 22))
    found = np.zeros((TRACES, SAMPLES))
    for at, dip, size, f in events:
        found += size * ricker(np.asarray(at + 1e-3 * dip * trace), f)
    return found


def hyperbolas() -> Samples:
    """Five reflections and a direct wave, at offsets of 0 to 2550 m."""
    offset = 10.0 * np.arange(TRACES)
    events = (
        (0.3, 1600, 1.0, 32),
        (0.6, 1900, -0.8, 30),
        (0.9, 2200, 0.7, 27),
        (1.3, 2500, 0.6, 25),
        (1.7, 2800, 0.5, 22),
    )
    found = 1.2 * ricker(0.04 + offset / 1500, 30)
    return np.asarray(found + sum(size * ricker(np.hypot(at, offset / v), f) for at, v, size, f in events))


def layers() -> Samples:
    """A stack of ten undulating layers across a fault with a throw of 30 ms, and the diffraction of its edge."""
    rng = np.random.default_rng(5)
    trace = np.arange(TRACES)
    found = np.zeros((TRACES, SAMPLES))
    for i, depth in enumerate(np.linspace(0.2, 1.8, 10)):
        bend = 0.03 * np.sin(2 * np.pi * trace / TRACES * rng.uniform(0.5, 1.5) + rng.uniform(0, 2 * np.pi))
        thrown = 0.03 * (trace > 120 + 4 * i)
        found += rng.choice([-1, 1]) * rng.uniform(0.4, 1) * ricker(depth + bend + thrown, rng.uniform(22, 35))
    return found + 0.5 * ricker(np.hypot(0.9, 10.0 * (trace - 135) / 1250), 28)


def shot() -> Samples:
    """The kind of `samples/seismic.dat`: direct wave, refraction, four reflections and a dispersive ground roll."""
    offset = 10 + 3.0 * np.arange(TRACES)
    spread = np.sqrt(offset[0] / offset)[:, None]
    found = 5 * spread**1.5 * ricker(0.03 + offset / 600, 40) + 2 * spread * ricker(0.075 + offset / 1900, 45)
    for at, velocity, size, frequency in (
        (0.3, 900, 1, 40),
        (0.6, 1200, -0.9, 35),
        (1, 1500, 0.8, 30),
        (1.5, 1900, 0.7, 25),
    ):
        found += size * spread**0.6 * ricker(np.hypot(at, offset / velocity), frequency)
    f = fft.rfftfreq(4 * SAMPLES, INTERVAL)
    slowness = 1 / (150 + 250 / (1 + (f / 14) ** 2))
    roll = np.exp(-(((f - 13) / 5) ** 2) - 2j * np.pi * f * (0.1 + offset[:, None] * slowness))
    roll = fft.irfft(roll)[:, :SAMPLES]
    return np.asarray(found + 1.5 * roll / np.abs(roll).max() * spread**0.5)


MODELS = {"dips": dips, "hyperbolas": hyperbolas, "layers": layers, "shot": shot}


def ragged(x: Samples, seed: int = 7) -> Samples:
    """With a time shift (statics) and a factor of its own for each trace."""
    rng = np.random.default_rng(seed)
    shift, factor = STATICS * rng.standard_normal((len(x), 1)), 1 + SCATTER * rng.standard_normal((len(x), 1))
    turn = np.exp(-2j * np.pi * fft.rfftfreq(2 * x.shape[1], INTERVAL) * shift)
    return np.asarray(factor * fft.irfft(turn * fft.rfft(x, 2 * x.shape[1]))[:, : x.shape[1]])


def image() -> Samples:
    """scikit-image's photograph of a cameraman without its mean, 512 x 512; discs and bars where it is missing."""
    if version("scikit-image"):
        from skimage import data

        x = data.camera() / 255
    else:
        down, across = np.ogrid[-1:1:512j, -1:1:512j]
        x = (down**2 + (across - 0.3) ** 2 < 0.2) + 0.6 * (abs(down + across) < 0.15) - 0.4 * (abs(down - 0.5) < 0.1)
    return np.asarray(x - x.mean())


def gathers(folder: Path | None = None) -> dict[str, Samples]:
    """Gathers by file in ``folder``, or in that of the variable `FOLDER`: .npy, and what `wavefilt.read` knows.

    Without lines through the traces. Their own noise counts as signal.
    """
    place = folder or (Path(os.environ[FOLDER]) if os.environ.get(FOLDER) else None)
    found: dict[str, Samples] = {}
    for path in sorted(place.iterdir()) if place else ():
        try:
            x = np.asarray(wavefilt.read(path).samples, np.float64)
        except (OSError, ValueError):
            continue
        if x.ndim == 2 and x.shape[0] >= LEAST[0] and x.shape[1] >= LEAST[1] and np.isfinite(x).all():
            x = x[:TRACES, :SAMPLES]
            found[path.name] = x - x.mean(axis=1, keepdims=True)
    return found


def recorded(windows: Sequence[Window], shape: tuple[int, int], rng: np.random.Generator) -> Samples:
    """A different piece of recorded noise above 1 Hz for each trace, all of one standard deviation."""
    pieces = [w.filtered[i : i + shape[1]] for w in windows for i in range(0, len(w.filtered) - shape[1] + 1, shape[1])]
    chosen = rng.permutation(len(pieces))[np.arange(shape[0]) % len(pieces)]
    return np.array([pieces[i] / pieces[i].std() for i in chosen])


@dataclass(frozen=True)
class Case:
    """A clean section of a group, with noise of a kind at a ratio in dB."""

    group: str
    section: str
    noise: str
    ratio: int
    clean: Samples
    windows: Sequence[Window] = ()

    def draws(self, count: int, seed: int) -> Samples:
        """float32 (draws, traces, samples)."""
        if self.noise != RECORDED:
            found = records.disturbed(self.clean, self.noise, self.ratio, count, seed)
        else:
            rng = np.random.default_rng(seed)
            added = np.array([recorded(self.windows, self.clean.shape, rng) for _ in range(count)])
            added *= np.linalg.norm(self.clean) / np.linalg.norm(added, axis=(1, 2), keepdims=True)
            found = self.clean + added * 10 ** (-self.ratio / 20)
        return found.astype(np.float32)


def cases(windows: Sequence[Window] = (), fields: dict[str, Samples] | None = None) -> Iterator[Case]:
    """Every case of the study, group by group."""
    clean = {name: make() for name, make in MODELS.items()}
    groups = {
        "models": clean,
        "ragged": {name: ragged(x) for name, x in clean.items()},
        "24 traces": {name: x[NARROW] for name, x in clean.items()},
        "image": {"cameraman" if version("scikit-image") else "shapes": image()},
    }
    own = records.gather()
    if own is not None:
        groups["24 traces"]["seismic.dat"] = own[0]
    for group, sections in groups.items():
        for section, x in sections.items():
            for noise in SYNTHETIC:
                for ratio in RATIOS:
                    yield Case(group, section, noise, ratio, x)
    for section, x in (fields or {}).items():
        for ratio in RATIOS:
            yield Case("field", section, RECORDED if windows else "pink", ratio, x, windows)

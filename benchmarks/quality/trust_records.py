"""Synthetic records whose clean samples are known, and denoises of them from gentle to brutal, for the trust report."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from scipy.ndimage import uniform_filter1d

import wavefilt
from wavefilt.benchmarks.quality import field_records, records, signals
from wavefilt.benchmarks.quality.signals import Samples

WINDOW = 64
"""Samples of a window in which harm is looked for."""
QUADRUPLED, DOUBLED = 3.0, 1.0
"""Growth of the error's energy in a window, over the noise's, above which a denoise is harmful, and below which it is
not: by 6 dB and by 3 dB. What lies between is counted apart."""


@dataclass(frozen=True)
class Case:
    """A record (traces, samples), what it holds but for noise, and a denoise of it."""

    signal: str
    noise: str
    decibels: float
    rule: str
    clean: Samples
    noisy: Samples
    denoise: Callable[[Samples], Samples]

    def grown(self, denoised: Samples) -> tuple[float, float]:
        """Growth of the error's energy over the noise's: in the whole record, and in the worst window of a trace."""
        before, after = (self.noisy - self.clean) ** 2, (denoised - self.clean) ** 2
        change = np.add.reduceat(after - before, np.arange(0, before.shape[1], WINDOW), axis=1)
        noise = WINDOW * before.mean(axis=1, keepdims=True)
        return float(change.sum() / before.sum()), float((change / noise).max())


def harmful(total: float, window: float) -> bool | None:
    """Whether a denoise is, by `Case.grown`: the record lost, or an error quadrupled; None where it is in between."""
    if total > 0 or window > QUADRUPLED:
        return True
    return None if window > DOUBLED else False


def arrivals(rng: np.random.Generator, samples: int) -> Samples:
    """A few Ricker wavelets of different frequency, at random times after the first tenth."""
    t = np.arange(samples)
    x = np.zeros(samples)
    for _ in range(rng.integers(2, 12)):
        phase = (np.pi * np.exp(rng.uniform(np.log(0.02), np.log(0.12))) * (t - rng.uniform(0.1, 1) * samples)) ** 2
        x += rng.standard_normal() * (1 - 2 * phase) * np.exp(-phase)
    return x[None]


def earthquake(rng: np.random.Generator, samples: int) -> Samples:
    """P, S and their codas, of noise between two frequencies under an envelope."""
    t = np.arange(samples)
    frequency = np.fft.rfftfreq(samples)
    low = rng.uniform(0.01, 0.05)
    x = np.zeros(samples)
    onset = rng.uniform(0.2, 0.4) * samples
    for start, size in ((onset, 1.0), (onset + rng.uniform(0.08, 0.2) * samples, rng.uniform(2, 4))):
        spectrum = np.fft.rfft(rng.standard_normal(samples))
        spectrum[(frequency < low) | (frequency > low * 5)] = 0
        decay = rng.uniform(0.03, 0.1) * samples
        x += size * np.fft.irfft(spectrum, samples) * np.where(t > start, np.exp(-np.maximum(t - start, 0) / decay), 0)
    return x[None]


def shot(rng: np.random.Generator, samples: int, traces: int = 12) -> Samples:
    """A direct wave and reflections with moveout."""
    t, offset = np.arange(samples), np.arange(traces)
    x = np.zeros((traces, samples))
    events = [(0.05 * samples, rng.uniform(0.01, 0.03) * samples, True)]
    events += [(at * samples, rng.uniform(0.005, 0.02) * samples, False) for at in rng.uniform(0.15, 0.9, 4)]
    for at, slow, direct in events:
        arrival = at + slow * offset if direct else np.hypot(at, slow * offset)
        phase = (np.pi * rng.uniform(0.03, 0.1) * (t - arrival[:, None])) ** 2
        x += (1.5 if direct else rng.uniform(0.4, 1) * rng.choice([-1, 1])) * (1 - 2 * phase) * np.exp(-phase)
    return x


def _donoho(name: str) -> Callable[[np.random.Generator, int], Samples]:
    def made(rng: np.random.Generator, samples: int) -> Samples:
        x = signals.classic(samples)[name]
        return np.asarray(x - x.mean())[None]

    return made


WIDE = ("Blocks", "Bumps", "HeaviSine", "Doppler")
"""Signals that fill a trace."""
SIGNALS: dict[str, tuple[Callable[[np.random.Generator, int], Samples], tuple[int, ...]]] = {
    "arrivals": (arrivals, (1024, 2048, 4096)),
    "earthquake": (earthquake, (2048, 4096)),
    "shot": (shot, (512, 1024)),
    **{name: (_donoho(name), (1024, 2048)) for name in WIDE},
}
SHARES = {"arrivals": 0.3, "earthquake": 0.2, "shot": 0.2, "Blocks": 0.08, "Bumps": 0.08, "HeaviSine": 0.06}
SHARES["Doppler"] = 0.08
"""How often each is drawn."""


def coloured(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Samples:
    """Gaussian noise of standard deviation 1 over the record, each trace of its own, by its spectrum."""
    n = shape[-1]
    white = np.fft.rfft(rng.standard_normal(shape))
    f = np.asarray(np.fft.rfftfreq(n), np.float64)
    f[0] = f[1]
    amplitude = NOISES[kind](f)
    amplitude[0] = 0
    x = np.fft.irfft(white * amplitude, n)
    return np.asarray(x / x.std())


def _microseism(at: float, width: float, floor: float) -> Callable[[Samples], Samples]:
    return lambda f: np.exp(-(np.log(f / at) ** 2) / (2 * width**2)) + floor


NOISES: dict[str, Callable[[Samples], Samples]] = {
    "white": lambda f: np.ones_like(f),
    "pink": lambda f: f**-0.5,
    "microseism": _microseism(0.03, 0.35, 0.1),
    "red": lambda f: np.maximum(f, 0.004) ** -0.8,
    "anti-aliased": lambda f: 1 / np.sqrt(1 + (f / 0.35) ** 12),
    "double microseism": lambda f: _microseism(0.02, 0.25, 0.0)(f) * 0.5 + _microseism(0.045, 0.3, 0.15)(f),
}
TEST_NOISES = ("white", "red", "anti-aliased", "double microseism")
"""Those of the test set; the design set has all."""
SMOOTH = ("white", "pink", "red")
"""Those that signals which fill a trace are in."""
RECORDED, EARTHQUAKE = "recorded", "recorded earthquake"
"""Real noise and real earthquakes, of ObsPy's test data."""


def _rule(**options: Any) -> Callable[[np.random.Generator, Samples], tuple[str, Callable[[Samples], Samples]]]:
    name = ", ".join(f"{key} {value}" for key, value in options.items()) or "defaults"

    def made(rng: np.random.Generator, x: Samples) -> tuple[str, Callable[[Samples], Samples]]:
        return name, lambda rows: np.asarray(wavefilt.denoise(rows, **options))

    return made


def _deepest(samples: int, wavelet: str = "db4") -> int:
    from wavefilt.wavelets.filters import as_wavelet, max_level

    return max_level(samples, as_wavelet(wavelet))


def _deep(
    shrink: Literal["soft", "hard"], rule: Literal["universal", "bayes"] = "universal"
) -> Callable[[np.random.Generator, Samples], tuple[str, Callable[[Samples], Samples]]]:
    def made(rng: np.random.Generator, x: Samples) -> tuple[str, Callable[[Samples], Samples]]:
        level = _deepest(x.shape[-1])
        return f"{rule} {shrink}, every level", lambda rows: np.asarray(
            wavefilt.denoise(rows, "db4", level=level, rule=rule, shrink=shrink)
        )

    return made


def _too_high(rng: np.random.Generator, x: Samples) -> tuple[str, Callable[[Samples], Samples]]:
    factor = float(np.exp(rng.uniform(np.log(1.5), np.log(12))))
    d = wavefilt.wavedec(x, "db8", level=1)[1]
    sigma = factor * float(np.median(np.abs(d))) / 0.6745
    level = int(rng.integers(3, 6))
    return f"sigma {factor:.1f} times too high", lambda rows: np.asarray(
        wavefilt.denoise(rows, sigma=sigma, rule="universal", level=level)
    )


def _removed_levels(rng: np.random.Generator, x: Samples) -> tuple[str, Callable[[Samples], Samples]]:
    level = int(rng.integers(1, 6))
    return f"{level} levels set to 0", lambda rows: np.asarray(wavefilt.denoise(rows, rule=1e30, level=level))


def _running_mean(rng: np.random.Generator, x: Samples) -> tuple[str, Callable[[Samples], Samples]]:
    length = int(rng.choice([3, 5, 9, 17, 33]))
    return f"running mean of {length}", lambda rows: np.asarray(uniform_filter1d(rows, length, axis=-1))


RULES = {
    "bayes": (_rule(), 3),
    "sure": (_rule(rule="sure"), 2),
    "js": (_rule(rule="js"), 2),
    "ebayes": (_rule(rule="ebayes"), 2),
    "neighblock": (_rule(rule="neighblock"), 1),
    "bayes modwt": (_rule(transform="modwt"), 1),
    "universal": (_rule(rule="universal"), 2),
    "universal hard": (_rule(rule="universal", shrink="hard"), 2),
    "deep hard": (_deep("hard"), 2),
    "deep soft": (_deep("soft"), 2),
    "deep bayes": (_deep("soft", "bayes"), 1),
    "too high": (_too_high, 4),
    "levels": (_removed_levels, 3),
    "running mean": (_running_mean, 2),
}


def drawn(rng: np.random.Generator, x: Samples) -> tuple[str, Callable[[Samples], Samples]]:
    """A denoise for these rows, and its name."""
    rules, often = list(RULES), np.array([n for _, n in RULES.values()], float)
    return RULES[str(rng.choice(rules, p=often / often.sum()))][0](rng, x)


@cache
def _recorded(test: bool) -> tuple[list[Samples], list[Samples]]:
    """Windows of real noise and real earthquakes, of ObsPy's test data; none without it.

    The design set has half of the sources and the earthquake that ships with ObsPy. The test set has the other sources,
    and earthquakes at stations whose noise is not in the design set.
    """
    if importlib.util.find_spec("obspy") is None:
        return [], []
    places = field_records.folders()[:1]
    found, _ = field_records.windows(places)
    half = field_records.halves(found)
    noise = [window.raw for window, own in zip(found, half, strict=True) if own == test]
    if not test:
        event = records.earthquake()
        assert event is not None
        return noise, [event[:, :2048]]
    seen = {_station(window.channel) for window, own in zip(found, half, strict=True) if not own}
    events = [event for event in field_records.events(places) if _station(event.channel) not in seen]
    return noise, [event.samples[None, :2048] for event in events if len(event.samples) >= 1024]


def _station(channel: str) -> str:
    """Network and station."""
    return ".".join(channel.split(".")[:2])


def cases(count: int, seed: int, test: bool) -> Iterator[Case]:
    """Records drawn at random, of the design set or of the test set."""
    events = _recorded(test)[1]
    noises = [kind for kind in kinds(test) if not test or kind in (*TEST_NOISES, RECORDED)]
    smooth = [noise for noise in noises if noise in SMOOTH]
    shares = SHARES | ({EARTHQUAKE: 0.1} if events else {})
    names, weights = list(shares), np.array(list(shares.values()))
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        name = str(rng.choice(names, p=weights / weights.sum()))
        noise = str(rng.choice(smooth if name in WIDE else noises))
        if name == EARTHQUAKE:
            clean = events[rng.integers(len(events))]
        else:
            make, lengths = SIGNALS[name]
            clean = make(rng, int(rng.choice(lengths)))
        decibels = float(rng.uniform(0, 20))
        clean = clean / np.sqrt(np.mean(clean**2)) * 10 ** (decibels / 20)
        added = noise_alone(rng, clean.shape, noise, test)
        made, denoise = drawn(rng, clean + added)
        yield Case(name, noise, decibels, made, clean, clean + added, denoise)


def kinds(test: bool) -> list[str]:
    """Of noise, with what is recorded if there is any."""
    return [*NOISES, *([RECORDED] if _recorded(test)[0] else [])]


def noise_alone(rng: np.random.Generator, shape: tuple[int, ...], kind: str, test: bool) -> Samples:
    """Noise of a kind and of standard deviation 1: `coloured`, or in each trace what was recorded somewhere."""
    if kind != RECORDED:
        return coloured(rng, shape, kind)
    windows, samples = _recorded(test)[0], shape[1]
    rows = [windows[i] for i in rng.choice(len(windows), shape[0])]
    starts = [int(rng.integers(len(row) - samples + 1)) for row in rows]
    found = np.array([row[start : start + samples] for row, start in zip(rows, starts, strict=True)])
    found -= found.mean(axis=1, keepdims=True)
    return np.asarray(found / found.std(axis=1, keepdims=True))

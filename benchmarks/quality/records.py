"""Records whose clean samples are known: test functions, traces, earthquakes, shots, sections and an image.

Every draw comes from a fixed seed. `cases_of_signals` and its siblings list the cases of each part of the study.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pywt
from numpy.typing import NDArray
from scipy import fft, signal

import wavefilt
from wavefilt.benchmarks.common.environment import version

if TYPE_CHECKING:
    from obspy import Trace

Samples = NDArray[np.float64]
SAMPLES_FOLDER = Path(__file__).resolve().parents[2] / "samples"


@dataclass(frozen=True)
class Record:
    """A noisy record (traces, samples) and its clean samples.

    ``quiet`` is a noise window, ``sigma`` the standard deviation of white noise, ``onset`` the sample of the P arrival
    and ``end`` the end of the signal, each where the record has one.
    """

    name: str
    group: str
    noise: str
    snr: float | None
    draw: int
    x: Samples
    clean: Samples
    quiet: tuple[int, int] | None = None
    sigma: float | None = None
    onset: int = -1
    end: int = -1
    rate: float = 1.0

    @property
    def declared(self) -> tuple[str, int, int] | float | None:
        """The noise as `denoise` takes it in ``sigma``: a window, a number, or None if neither is known."""
        return ("window", *self.quiet) if self.quiet else self.sigma

    @property
    def about(self) -> dict[str, Any]:
        """The fields of a result row that describe the record."""
        return {"record": self.name, "group": self.group, "noise": self.noise, "snr": self.snr, "draw": self.draw}


@dataclass(frozen=True)
class Case:
    """Records that are measured together, and other records on which parameters of alternatives are tuned."""

    label: str
    records: Sequence[Record]
    tuning: Sequence[Record] = ()


# ---- noise

NOISES: dict[str, Callable[[Samples], Samples]] = {
    "white": lambda f: np.ones_like(f),
    "pink": lambda f: f**-0.5,
    "red": lambda f: np.maximum(f, 0.004) ** -0.8,
    "anti-aliased": lambda f: 1 / np.sqrt(1 + (f / 0.35) ** 12),
    "microseism": lambda f: np.exp(-(np.log(f / 0.03) ** 2) / (2 * 0.35**2)) + 0.1,
}
"""Amplitude by frequency in cycles a sample."""


def noise(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Samples:
    """Return Gaussian noise of a kind in `NOISES`, independent between traces."""
    f = np.asarray(np.fft.rfftfreq(shape[-1]), np.float64)
    spectrum = np.fft.rfft(rng.standard_normal(shape))
    spectrum[..., 1:] *= NOISES[kind](f[1:])
    if kind != "white":
        spectrum[..., 0] = 0
    return np.fft.irfft(spectrum, shape[-1])


def disturbed(clean: Samples, added: Samples, decibels: float) -> Samples:
    """Return the clean record with the noise (draws, traces, samples), scaled to a ratio over all samples."""
    scale = np.linalg.norm(clean) / np.linalg.norm(added, axis=(1, 2), keepdims=True)
    return np.asarray(clean + added * scale * 10 ** (-decibels / 20))


def draws(clean: Samples, kind: str, decibels: float, count: int, seed: int = 2) -> Samples:
    """Return copies of a record (draws, traces, samples), each with its own noise."""
    rng = np.random.default_rng(seed)
    added = [
        field_noise(clean.shape, rng) if kind == "recorded" else noise(rng, clean.shape, kind) for _ in range(count)
    ]
    return disturbed(clean, np.array(added), decibels)


# ---- test functions

FUNCTIONS = ("Blocks", "Bumps", "HeaviSine", "Doppler")
"""The test functions of Donoho and Johnstone (1994), of times from 0 to 1."""


def functions(samples: int) -> dict[str, Samples]:
    """Return the test functions at equidistant times; ``samples`` is a power of two."""
    return {name: np.asarray(pywt.data.demo_signal(name, samples)) for name in FUNCTIONS}


def published() -> dict[str, Samples]:
    """Return three of them at 1024 times, from 0.2 to 0.8, as Xing, Carbonetto and Stephens do (JMLR 22(93) 2021)."""
    made = functions(1024)
    lifted = {name: 0.2 + 0.6 * (f - f.min()) / np.ptp(f) for name, f in made.items() if name != "HeaviSine"}
    return lifted | {"Bumps": (1 + 2.97 / 5 * made["Bumps"]) / 5}


# ---- seismic records

TRACE_SAMPLES, INTERVAL = 4096, 0.004
"""Samples and sampling interval in seconds of `ricker` and `coda`."""
DEAD = 16
"""The dead trace of the sample gather, which is left out."""


def ricker() -> Samples:
    """Return a trace of forty Ricker wavelets of 8 to 30 Hz at random times."""
    rng, t = np.random.default_rng(1), np.arange(TRACE_SAMPLES) * INTERVAL
    x = np.zeros(TRACE_SAMPLES)
    for at, frequency, size in zip(rng.choice(t, 40), rng.uniform(8, 30, 40), rng.standard_normal(40), strict=True):
        phase = (np.pi * frequency * (t - at)) ** 2
        x += size * (1 - 2 * phase) * np.exp(-phase)
    return x[None]


def coda() -> Samples:
    """Return a trace of noise of 2 to 12 Hz under a decaying envelope."""
    spectrum = np.fft.rfft(np.random.default_rng(1).standard_normal(TRACE_SAMPLES))
    frequency, t = np.fft.rfftfreq(TRACE_SAMPLES, INTERVAL), np.arange(TRACE_SAMPLES) * INTERVAL
    spectrum[(frequency < 2) | (frequency > 12)] = 0
    return (np.fft.irfft(spectrum) * np.where(t > 2, np.exp(-np.maximum(t - 2, 0) / 3), 0))[None]


def gather() -> tuple[Samples, Samples] | None:
    """Return the gather of ``samples``, clean and noisy, without its dead trace; None outside a checkout."""
    if not (SAMPLES_FOLDER / "seismic.dat").exists():
        return None
    both = np.load(SAMPLES_FOLDER / "seismic_clean.npy"), wavefilt.read(SAMPLES_FOLDER / "seismic.dat").samples
    clean, noisy = (np.delete(np.asarray(x, np.float64), DEAD, axis=0) for x in both)
    return clean, noisy


@cache
def obspy() -> Any:
    """Return the module, imported without the warnings of what it imports; None if it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("obspy") if version("obspy") else None


def earthquake() -> Samples | None:
    """Return the local earthquake that ships with ObsPy, whose own noise counts as signal; None without ObsPy."""
    x = np.array([trace.data for trace in obspy().read()], np.float64) if obspy() else None
    return None if x is None else x - x.mean(axis=1, keepdims=True)


def cases_of_signals(quick: bool) -> Iterator[Case]:
    """Yield the published signals, Donoho and Johnstone's functions, and seismic records with synthetic noise.

    A record of a function has a draw of the noise in every row. The published ones begin 7 samples late: with that, the
    low-pass filter of ``sym8`` has the alignment of WaveLab, with which they were measured.
    """
    seeds, repeats, count = (20, 30, 1) if quick else (400, 50, 10)
    rows = np.array([np.random.default_rng(seed).standard_normal(1024) for seed in range(seeds)])
    for ratio, (name, f) in product((3, 1), published().items()):
        x = np.roll(f + f.std(ddof=1) / ratio * rows, 7, axis=1)
        yield Case(name, [Record(name, "published", "white", ratio, 0, x, np.roll(np.tile(f, (seeds, 1)), 7, axis=1))])
    rows = np.random.default_rng(1).standard_normal((repeats, 2048))
    for name, f in functions(2048).items():
        f = f * (7 / f.std())
        yield Case(name, [Record(name, "functions", "white", 7, 0, f + rows, np.tile(f, (repeats, 1)))])
    own = gather()
    known = {"gather": own and own[0], "ricker": ricker(), "coda": coda(), "earthquake": earthquake()}
    for (name, clean), kind, snr in product(known.items(), ("white", "pink"), (0, 10)):
        if clean is not None:
            noisy = enumerate(draws(clean, kind, snr, count))
            yield Case(f"{name}, {kind}, {snr} dB", [Record(name, "records", kind, snr, i, x, clean) for i, x in noisy])
    if own is not None:
        yield Case("gather", [Record("gather", "records", "its own", 6, 0, own[1], own[0])])


# ---- recorded noise: windows of ObsPy's test data that pass fixed criteria

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
"""Values that a window of stationary noise may have."""


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
    if obspy() is None:
        return
    folder = Path(obspy().__file__).parent
    for path in sorted(path for path in folder.glob("**/tests/data/**/*") if path.is_file()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                stream = obspy().read(path).merge().split()
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


def energy_ratio(x: Samples, short: int, long: int) -> Samples:
    """Return STA/LTA: the mean square of ``short`` samples from each one on over that of the ``long`` before it."""
    total = np.concatenate([[0.0], np.cumsum(x**2)])
    at = np.arange(long, len(x) - short + 1)
    found = np.zeros(len(x))
    after, before = (total[at + short] - total[at]) / short, (total[at] - total[at - long]) / long
    found[at] = after / (before + 1e-12 * total[-1] / len(x))
    return found


def faults(recorded: Samples, filtered: Samples, rate: float) -> list[str]:
    """Return the criteria in `LIMITS` that a window fails; the first is of the samples as recorded."""
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
    pairs = zip(LIMITS.items(), values, strict=True)
    return [name for (name, (low, high)), value in pairs if not low <= value <= high]


@cache
def field_windows() -> list[Window]:
    """Return the windows of noise; a channel and time, or samples, seen before are left out."""
    found: list[Window] = []
    seen: set[object] = set()
    for name, trace in traces():
        rate, data = float(trace.stats.sampling_rate), np.asarray(trace.data, np.float64)
        x, slow = resampled(data, rate)
        filtered, length = high_passed(x, slow), LENGTH * round(rate / slow)
        for i in range(len(data) // length):
            if sum(window.channel == trace.id for window in found) == MOST:
                break
            piece = data[i * length : (i + 1) * length]
            start = trace.stats.starttime + i * length / rate
            keys = {piece.tobytes(), (trace.id, str(start)[:19])}
            if keys & seen:
                continue
            seen |= keys
            part = slice(i * LENGTH, (i + 1) * LENGTH)
            if not faults(piece, filtered[part], slow):
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


# ---- earthquakes in recorded noise

QUIET = (0, 1200)
"""Samples before the onset in every record of an earthquake."""
RATIOS = (0, 5, 10)
"""dB: mean power in the signal window over the power of the noise."""


def local(rng: np.random.Generator, rate: float, onset: int) -> Samples:
    """Return the velocity of a local earthquake: P and S, each a pulse and a decaying coda.

    The spectrum is Brune's with a corner of 2 to 20 Hz, times four poles at 12 to 25 Hz (fmax, Boore 1983). Both are
    causal, so nothing comes before P. S follows after 1.5 to 7 s with 2 to 4 times the amplitude of P.
    """
    corner_hz, delay = np.exp(rng.uniform(np.log(2), np.log(20))), rng.uniform(1.5, 7)
    larger, decay, highest = rng.uniform(2, 4), rng.uniform(2, 5), rng.uniform(12, 25)
    t = np.arange(LENGTH) / rate
    source = np.zeros(LENGTH)
    for start, size, tail in ((onset / rate, 1.0, delay), (onset / rate + delay, larger, decay)):
        since = t - t[np.searchsorted(t, start - 1e-9)]
        envelope = np.where(since >= 0, size * np.exp(-np.maximum(since, 0) / tail), 0)
        source += 0.5 * envelope * rng.standard_normal(LENGTH)
        source[np.searchsorted(t, start - 1e-9)] += size * rng.choice([-1, 1]) * np.sqrt(rate / 100)
    omega = 2 * np.pi * min(corner_hz, 0.4 * rate)
    b, a = signal.bilinear([omega, 0], [1, 2 * omega, omega**2], rate)
    site = signal.butter(4, min(highest, 0.45 * rate), fs=rate, output="sos")
    return np.asarray(signal.sosfilt(site, signal.lfilter(b, a, source)))


def in_field_noise(group: str, form: str, draw: int, clean: Samples, onset: int, window: Window) -> list[Record]:
    """Return an earthquake in a window of recorded noise at every ratio; the signal ends with 95 % of its energy."""
    noise = window.raw
    if form == "above 1 Hz":
        noise, clean = window.filtered, high_passed(clean, window.rate)
    energy = np.cumsum(clean**2)
    end = int(np.searchsorted(energy, 0.95 * energy[-1]))
    clean = clean * (noise.std() / np.sqrt(np.mean(clean[onset:end] ** 2)))
    found = []
    for ratio in RATIOS:
        scaled = (clean * 10 ** (ratio / 20))[None]
        place: dict[str, Any] = {"quiet": QUIET, "onset": onset, "end": end, "rate": window.rate}
        found.append(Record(window.source, group, form, ratio, draw, scaled + noise, scaled, **place))
    return found


def synthetic(windows: Sequence[Window], form: str, count: int) -> list[Record]:
    """Return synthetic earthquakes at every ratio, in each of the windows in turn; the same events in both forms."""
    rng = np.random.default_rng(1)
    found = []
    for i in range(count):
        window, onset = windows[i % len(windows)], int(rng.integers(1300, 1900))
        clean = local(rng, window.rate, onset)
        found += in_field_noise("earthquakes", form, i, clean, onset, window)
    return found


def cases_of_real_noise(quick: bool) -> Iterator[Case]:
    """Yield synthetic earthquakes in recorded noise, above 1 Hz and raw, for each half of the sources.

    Parameters of alternatives are tuned on earthquakes in noise of the other half.
    """
    count, tuning = (12, 6) if quick else (84, 30)
    windows = field_windows()
    half = dict(zip((window.source for window in windows), halves(windows), strict=True))
    for form in ("above 1 Hz", "raw"):
        found = synthetic(windows, form, count) if windows else []
        for own in (0, 1):
            chosen, others = ([record for record in found if half[record.name] == one] for one in (own, 1 - own))
            if chosen and others:
                yield Case(f"{form}, half {own}", chosen, others[:tuning])


# ---- sections

TRACES, SECTION_SAMPLES, SECTION_INTERVAL = 256, 1024, 0.002
NARROW = slice(100, 124)
"""The traces of narrow sections."""
RAGGED = {"ragged": (0.004, 0.25), "mild": (0.0015, 0.10)}
"""Standard deviations of statics in seconds, and of the factor of a trace."""


def wavelets(arrivals: Samples, frequency: float) -> Samples:
    """Return a Ricker wavelet of this peak frequency in Hz at the arrival time of each trace, in seconds."""
    square = (np.pi * frequency * (SECTION_INTERVAL * np.arange(SECTION_SAMPLES) - arrivals[:, None])) ** 2
    return np.asarray((1 - 2 * square) * np.exp(-square))


def dips() -> Samples:
    """Return five plane events that cross, with dips of -2.4 to 3.2 ms a trace."""
    trace = np.arange(TRACES)
    events = ((1.5, -2.4, 1.0, 25), (0.9, -0.8, -0.8, 30), (0.5, 0, 0.9, 28), (0.7, 1.4, 0.7, 35), (1.1, 3.2, -0.9, 22))
    return np.asarray(sum(size * wavelets(np.asarray(at + 1e-3 * dip * trace), f) for at, dip, size, f in events))


def hyperbolas() -> Samples:
    """Return five reflections and a direct wave, at offsets of 0 to 2550 m."""
    offset = 10.0 * np.arange(TRACES)
    events = (
        (0.3, 1600, 1.0, 32),
        (0.6, 1900, -0.8, 30),
        (0.9, 2200, 0.7, 27),
        (1.3, 2500, 0.6, 25),
        (1.7, 2800, 0.5, 22),
    )
    found = 1.2 * wavelets(0.04 + offset / 1500, 30)
    return np.asarray(found + sum(size * wavelets(np.hypot(at, offset / v), f) for at, v, size, f in events))


def layers() -> Samples:
    """Return ten undulating layers across a fault with a throw of 30 ms, and a diffraction."""
    rng, trace = np.random.default_rng(5), np.arange(TRACES)
    found = np.zeros((TRACES, SECTION_SAMPLES))
    for i, depth in enumerate(np.linspace(0.2, 1.8, 10)):
        bend = 0.03 * np.sin(2 * np.pi * trace / TRACES * rng.uniform(0.5, 1.5) + rng.uniform(0, 2 * np.pi))
        thrown = 0.03 * (trace > 120 + 4 * i)
        found += rng.choice([-1, 1]) * rng.uniform(0.4, 1) * wavelets(depth + bend + thrown, rng.uniform(22, 35))
    return found + 0.5 * wavelets(np.hypot(0.9, 10.0 * (trace - 135) / 1250), 28)


def shot() -> Samples:
    """Return a shot gather: direct wave, refraction, four reflections and dispersive ground roll."""
    offset = 10 + 3.0 * np.arange(TRACES)
    spread = np.sqrt(offset[0] / offset)[:, None]
    found = 5 * spread**1.5 * wavelets(0.03 + offset / 600, 40) + 2 * spread * wavelets(0.075 + offset / 1900, 45)
    for at, velocity, size, f in ((0.3, 900, 1, 40), (0.6, 1200, -0.9, 35), (1, 1500, 0.8, 30), (1.5, 1900, 0.7, 25)):
        found += size * spread**0.6 * wavelets(np.hypot(at, offset / velocity), f)
    f = fft.rfftfreq(4 * SECTION_SAMPLES, SECTION_INTERVAL)
    slowness = 1 / (150 + 250 / (1 + (f / 14) ** 2))
    roll = np.exp(-(((f - 13) / 5) ** 2) - 2j * np.pi * f * (0.1 + offset[:, None] * slowness))
    roll = fft.irfft(roll)[:, :SECTION_SAMPLES]
    return np.asarray(found + 1.5 * roll / np.abs(roll).max() * spread**0.5)


MODELS = {"dips": dips, "hyperbolas": hyperbolas, "layers": layers, "shot": shot}


def ragged(x: Samples, statics: float, scatter: float) -> Samples:
    """Return the section with a random time shift and a random factor for each trace."""
    rng = np.random.default_rng(7)
    shift, factor = statics * rng.standard_normal((len(x), 1)), 1 + scatter * rng.standard_normal((len(x), 1))
    turn = np.exp(-2j * np.pi * fft.rfftfreq(2 * x.shape[1], SECTION_INTERVAL) * shift)
    return np.asarray(factor * fft.irfft(turn * fft.rfft(x, 2 * x.shape[1]))[:, : x.shape[1]])


def field_noise(shape: tuple[int, ...], rng: np.random.Generator) -> Samples:
    """Return a different piece of recorded noise above 1 Hz for each trace, all of one standard deviation."""
    count, noises = shape[1], [window.filtered for window in field_windows()]
    pieces = [x[i : i + count] for x in noises for i in range(0, len(x) - count + 1, count)]
    chosen = rng.permutation(len(pieces))[np.arange(shape[0]) % len(pieces)]
    return np.array([pieces[i] / pieces[i].std() for i in chosen])


def sections(field: Sequence[Path] = ()) -> Iterator[tuple[str, str, Samples]]:
    """Yield group, name and samples of every clean section; the noise of ``field`` records counts as their signal."""
    clean = {name: make() for name, make in MODELS.items()}
    for name, x in clean.items():
        yield "models", name, x
        yield "24 traces", name, x[NARROW]
        for group, (statics, scatter) in RAGGED.items():
            yield group, name, ragged(x, statics, scatter)
    own, photograph = gather(), pywt.data.camera() / 255
    if own is not None:
        yield "24 traces", "seismic.dat", own[0]
    yield "image", "cameraman", photograph - photograph.mean()
    for path in field:
        x = np.asarray(wavefilt.read(path).samples, np.float64)
        yield "field", path.name, x - x.mean(axis=1, keepdims=True)


def cases_of_sections(quick: bool, field: Sequence[Path] = ()) -> Iterator[Case]:
    """Yield every section with white and pink noise at 0 and 10 dB; records of the ``field`` with recorded noise.

    Parameters of alternatives are tuned on another draw, of large sections on a quarter of the traces.
    """
    count = 1 if quick else 2
    for group, name, clean in sections(field):
        if quick:
            clean = clean[:64, 256:512]
        for kind, snr in product(("recorded",) if group == "field" else ("white", "pink"), (0,) if quick else (0, 10)):
            one = Record(name, group, kind, snr, 0, clean, clean)
            drawn: Any = draws(clean, kind, snr, count).astype(np.float32)
            noisy = [replace(one, draw=i, x=x) for i, x in enumerate(drawn)]
            part = slice(len(clean) // (4 if len(clean) >= TRACES else 1))
            tuning: Any = draws(clean, kind, snr, 1, seed=3)[0, part].astype(np.float32)
            yield Case(f"{group} {name}, {kind}, {snr} dB", noisy, [replace(one, x=tuning, clean=clean[part])])


# ---- records for verdicts and ranks

KINDS = ("events", "shots", "sustained", "noise alone")
SUSTAINED = (*FUNCTIONS, "sine")


def of_kind(kind: str, draw: int) -> Record:
    """Return a record of one of the `KINDS`, with noise of standard deviation 1, at 0 to 20 dB.

    Events are in recorded noise. All but the sustained signals have a noise window in front.
    """
    rng = np.random.default_rng([20, KINDS.index(kind), draw])
    if kind == "events":
        window, onset = field_windows()[rng.integers(len(field_windows()))], int(rng.integers(1300, 1900))
        form, clean = ("above 1 Hz", "raw")[draw % 2], local(rng, window.rate, onset)
        found = in_field_noise(kind, form, draw, clean, onset, window)[draw % len(RATIOS)]
        scale = (found.x - found.clean).std()
        return replace(found, x=found.x / scale, clean=found.clean / scale)
    name, colours, quiet, snr = kind, list(NOISES), (0, 240), float(rng.uniform(0, 20))
    if kind == "shots":
        name, first = ("shot", "hyperbolas")[draw % 2], int(rng.integers(TRACES - 24))
        clean = np.pad(MODELS[name]()[first : first + 24, :768], [(0, 0), (256, 0)])
    elif kind == "sustained":
        name, colours = SUSTAINED[draw % len(SUSTAINED)], ["white", "pink", "red"]
        t = np.arange(1, 2049) / 2048
        f = functions(2048)[name] if name in FUNCTIONS else np.sin(2 * np.pi * (rng.uniform(8, 40) * t + rng.uniform()))
        clean = (f - f.mean())[None]
    else:
        clean = np.zeros((1, 2048) if draw % 2 else (12, 512))
    colour = str(rng.choice(colours))
    added = noise(rng, clean.shape, colour)
    clean = clean * 10 ** (snr / 20) / max(np.sqrt(np.mean(clean**2)), 1e-300)
    found = Record(name, kind, colour, snr, draw, clean + added / added.std(), clean)
    return replace(found, quiet=None if kind == "sustained" else quiet, sigma=1.0 if colour == "white" else None)


def cases_of_kinds(quick: bool) -> Iterator[Case]:
    """Yield the records of every kind, for verdicts and for ranks; no events without ObsPy."""
    for kind in KINDS if field_windows() else KINDS[1:]:
        for draw in range(2 if quick else 24):
            yield Case(f"{kind} {draw}", [of_kind(kind, draw)])

"""Seismic records whose clean samples are known, or taken for clean, and noise to put on them."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import wavefilt
from wavefilt.benchmarks.quality.signals import Samples

SAMPLES, INTERVAL = 4096, 0.004
"""Of the two synthetic traces, in samples and seconds."""
FOLDER = Path(__file__).resolve().parents[2] / "samples"
DEAD = 16
"""The gather's trace without samples, which is left out."""


def ricker(rng: np.random.Generator) -> Samples:
    """A trace of forty Ricker wavelets of 8 to 30 Hz at random times, amplitudes of either sign."""
    t = np.arange(SAMPLES) * INTERVAL
    x = np.zeros(SAMPLES)
    for at, frequency, size in zip(rng.choice(t, 40), rng.uniform(8, 30, 40), rng.standard_normal(40), strict=True):
        phase = (np.pi * frequency * (t - at)) ** 2
        x += size * (1 - 2 * phase) * np.exp(-phase)
    return x[None]


def coda(rng: np.random.Generator) -> Samples:
    """A trace of noise of 2 to 12 Hz under a decaying envelope: the tail of a local earthquake."""
    spectrum = np.fft.rfft(rng.standard_normal(SAMPLES))
    frequency = np.fft.rfftfreq(SAMPLES, INTERVAL)
    spectrum[(frequency < 2) | (frequency > 12)] = 0
    t = np.arange(SAMPLES) * INTERVAL
    return (np.fft.irfft(spectrum) * np.where(t > 2, np.exp(-np.maximum(t - 2, 0) / 3), 0))[None]


def noise(rng: np.random.Generator, shape: tuple[int, ...], colour: str) -> Samples:
    """White noise, or pink: power falling as 1/f."""
    spectrum = np.fft.rfft(rng.standard_normal(shape))
    if colour == "pink":
        spectrum[..., 1:] /= np.sqrt(np.arange(1, spectrum.shape[-1]))
        spectrum[..., 0] = 0
    return np.fft.irfft(spectrum, shape[-1])


def disturbed(clean: Samples, colour: str, decibels: float, draws: int, seed: int = 2) -> Samples:
    """``draws`` copies of a record with noise of its own in each, at this signal-to-noise ratio over all its traces."""
    rng = np.random.default_rng(seed)
    added = np.array([noise(rng, clean.shape, colour) for _ in range(draws)])
    added *= np.linalg.norm(clean) / np.linalg.norm(added, axis=(1, 2), keepdims=True)
    return clean + added * 10 ** (-decibels / 20)


def gather() -> tuple[Samples, Samples] | None:
    """The synthetic shot record of `samples`, clean and with the noise it was made with; None outside a checkout."""
    if not (FOLDER / "seismic.dat").exists():
        return None

    def live(x: Any) -> Samples:
        return np.delete(np.asarray(x, np.float64), DEAD, axis=0)

    return live(np.load(FOLDER / "seismic_clean.npy")), live(wavefilt.read(FOLDER / "seismic.dat").samples)


def earthquake() -> Samples | None:
    """The local earthquake that ships with ObsPy, three components without their means; None without ObsPy.

    What noise it holds counts as signal.
    """
    if importlib.util.find_spec("obspy") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, of what it imports
        import obspy

        x: Samples = np.array([trace.data for trace in obspy.read()], np.float64)
    return np.asarray(x - x.mean(axis=1, keepdims=True))


def records() -> dict[str, Samples | None]:
    """Clean records by name, shape (traces, samples); None where one is missing."""
    found = gather()
    made = {"ricker": ricker(np.random.default_rng(1)), "coda": coda(np.random.default_rng(1))}
    return {"gather": None if found is None else found[0], **made, "earthquake": earthquake()}

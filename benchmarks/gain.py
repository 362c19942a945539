"""How many dB each rule gains on white and on coloured noise: python -m wavefilt.benchmarks.gain [FILE.json]."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wavefilt

SAMPLES, DRAWS, INTERVAL = 4096, 10, 0.004
"""Length of a trace, noise draws a case, sampling interval in seconds."""

Samples = NDArray[np.float64]


def wavelets_of_ricker(rng: np.random.Generator) -> Samples:
    """Forty Ricker wavelets of 8 to 30 Hz at random times, amplitudes of either sign."""
    t = np.arange(SAMPLES) * INTERVAL
    x = np.zeros(SAMPLES)
    for at, frequency, size in zip(rng.choice(t, 40), rng.uniform(8, 30, 40), rng.standard_normal(40), strict=True):
        phase = (np.pi * frequency * (t - at)) ** 2
        x += size * (1 - 2 * phase) * np.exp(-phase)
    return x


def coda(rng: np.random.Generator) -> Samples:
    """Noise of 2 to 12 Hz under a decaying envelope: the tail of a local earthquake."""
    spectrum = np.fft.rfft(rng.standard_normal(SAMPLES))
    frequency = np.fft.rfftfreq(SAMPLES, INTERVAL)
    spectrum[(frequency < 2) | (frequency > 12)] = 0
    t = np.arange(SAMPLES) * INTERVAL
    return np.fft.irfft(spectrum) * np.where(t > 2, np.exp(-np.maximum(t - 2, 0) / 3), 0)


def noise(rng: np.random.Generator, colour: str) -> Samples:
    """White noise, or pink: power falling as 1/f."""
    spectrum = np.fft.rfft(rng.standard_normal(SAMPLES))
    if colour == "pink":
        spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
        spectrum[0] = 0
    return np.fft.irfft(spectrum)


SIGNALS = {"ricker": wavelets_of_ricker, "coda": coda}
RULES = ("universal", "minimax", "sure", "bayes")
SIGMAS = ("level", "global")


def run() -> list[dict[str, Any]]:
    """A row for each signal, colour and input SNR: mean gain in dB of each rule and noise estimate."""
    rows = []
    for signal, make in SIGNALS.items():
        clean = make(np.random.default_rng(1))
        for colour in ("white", "pink"):
            for snr in (0, 10):
                rng = np.random.default_rng(2)
                disturbance = np.array([noise(rng, colour) for _ in range(DRAWS)])
                disturbance *= np.linalg.norm(clean) / np.linalg.norm(disturbance, axis=1, keepdims=True)
                noisy = clean + disturbance * 10 ** (-snr / 20)
                gains = {
                    f"{rule}, {sigma}": float(np.mean(_gain(clean, noisy, rule, sigma)))
                    for rule in RULES
                    for sigma in SIGMAS
                }
                rows.append({"signal": signal, "noise": colour, "snr_db": snr, "gain_db": gains})
    return rows


def _gain(clean: Samples, noisy: Samples, rule: Any, sigma: Any) -> Samples:
    denoised = wavefilt.denoise(noisy, rule=rule, sigma=sigma)
    before, after = (np.linalg.norm(x - clean, axis=1) for x in (noisy, denoised))
    return np.asarray(20 * np.log10(before / after))


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    methods = list(rows[0]["gain_db"])
    lines = ["| signal | noise | SNR | " + " | ".join(methods) + " |", "|---|---|---|" + "---|" * len(methods)]
    for row in rows:
        gains = " | ".join(f"{row['gain_db'][method]:+.1f}" for method in methods)
        lines.append(f"| {row['signal']} | {row['noise']} | {row['snr_db']} dB | {gains} |")
    return "\n".join(lines)


if __name__ == "__main__":
    result = run()
    print(table(result))
    for path in sys.argv[1:]:
        with open(path, "w") as file:
            json.dump(result, file, indent=1)

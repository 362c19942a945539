"""How often `wavefilt.quality.leakage_test` flags noise alone, and how often signal that leaked.

``python -m wavefilt.benchmarks.quality.leakage -o FILE`` measures it. Everything comes from fixed seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.optimize import brentq

import wavefilt
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Column, Report, Row, Table
from wavefilt.benchmarks.quality import records
from wavefilt.benchmarks.quality.signals import Samples
from wavefilt.quality import leakage_test

DRAWS, QUICK_DRAWS, LARGEST = 500, 100, 1 << 20
"""Traces of noise, with together no more than so many samples."""
LENGTHS, QUICK_LENGTHS = (256, 1024, 4096), (1024,)
POWERS = {"white": 0.0, "pink": -1.0, "red": -2.0, "blue": 1.0}
"""Exponents of the frequency in the power spectrum."""
BANDS = {"band": 0.05, "narrow band": 0.02}
"""Widths, in cycles a sample, of bands around 0.1; a hundredth of the amplitude lies beyond them."""
GAPS = "white, gaps"
REMOVED: dict[str, dict[str, Any] | None] = {
    "all of it": None,
    "bayes": {},
    "universal": {"rule": "universal"},
    "universal, hard": {"rule": "universal", "shrink": "hard"},
    "sure": {"rule": "sure"},
    "neighblock": {"rule": "neighblock"},
    "ebayes": {"rule": "ebayes"},
    "sure, modwt": {"rule": "sure", "transform": "modwt"},
    "universal, 4 spins": {"rule": "universal", "spins": 4},
    "haar, sure": {"wavelet": "haar", "rule": "sure"},
    "coif3, universal": {"wavelet": "coif3", "rule": "universal"},
}
"""What a denoise removes from noise alone, by its options; the details of all levels where there are none."""
LEAKS = (-30, -20, -15, -10, -5)
"""Energy of what leaked over that of the signal, in dB."""
SAMPLE: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "modwt": {"transform": "modwt"},
    "sure": {"rule": "sure"},
    "ebayes": {"rule": "ebayes"},
    "fdr": {"rule": "fdr"},
    "universal, hard": {"rule": "universal", "shrink": "hard"},
    "universal": {"rule": "universal"},
    "three times the record's standard deviation": {"rule": 3.0},
}


def run(quick: bool = False) -> Row:
    """Shares of traces with a p-value below 1 %."""
    draws, lengths = (QUICK_DRAWS, QUICK_LENGTHS) if quick else (DRAWS, LENGTHS)
    rows = [_alarms(colour, n, draws) for colour in (*POWERS, *BANDS, GAPS) for n in lengths]
    return result("leakage", alarms=rows, power=[*_power(draws // 25)], sample=_sample())


def noise(colour: str, shape: tuple[int, int], seed: int = 1) -> Samples:
    """Rows of stationary Gaussian noise; the gaps are a tenth of each and single samples."""
    x = np.random.default_rng(seed).standard_normal(shape)
    n = shape[1]
    if colour == GAPS:
        x[:, n // 3 : n // 3 + n // 10] = np.nan
        x[:, n // 2 :: n // 4] = np.nan
        return x
    frequency = np.fft.rfftfreq(n)
    frequency[0] = frequency[1]
    if colour in BANDS:
        amplitude = np.exp(-(((frequency - 0.1) / BANDS[colour]) ** 2)) + 0.01
    else:
        amplitude = frequency ** (POWERS[colour] / 2)
    return np.asarray(np.fft.irfft(np.fft.rfft(x) * amplitude, n))


def _alarms(colour: str, samples: int, draws: int) -> Row:
    draws = min(draws, LARGEST // samples)
    x = noise(colour, (draws, samples))
    flagged = {}
    for name, options in REMOVED.items():
        wavelet = (options or {}).get("wavelet", "db8")
        if options is None:
            options = {"rule": 1e9}
        denoised, removed = wavefilt.denoise(x, backend="numba", return_noise=True, **options)
        flagged[name] = float(leakage_test(denoised, removed, wavelet=wavelet).flagged.mean())
    return {"noise": colour, "samples": samples, "draws": draws, "flagged": flagged}


def _thresholded(clean: Samples, amount: float) -> Samples:
    """The clean record without what soft thresholds of that ``amount`` of its largest sample take."""
    return np.asarray(wavefilt.denoise(clean, rule=amount * float(np.abs(clean).max()), backend="numba"))


def _smoothed(clean: Samples, amount: float) -> Samples:
    """The clean record's running mean over up to 64 samples, a mixture of two lengths where it is no whole number."""
    short, part = divmod(1 + 63 * amount, 1)
    one, two = (uniform_filter1d(clean, int(short) + more, axis=-1) for more in (0, 1))
    return np.asarray((1 - part) * one + part * two)


def _power(draws: int) -> Iterator[Row]:
    """Signals of which a known share is removed together with white noise, at two signal-to-noise ratios."""
    for name, clean in records.records().items():
        if clean is None:
            continue
        for how, kept in (("thresholds", _thresholded), ("running mean", _smoothed)):
            for decibels in (0, 10):
                flagged = {}
                for leak in LEAKS:

                    def beyond(amount: float, kept: Any = kept, clean: Samples = clean, leak: int = leak) -> float:
                        return _decibels(clean - kept(clean, amount), clean) - leak

                    if beyond(1.0) < 0:
                        continue
                    lost = clean - kept(clean, brentq(beyond, 1e-6, 1, xtol=1e-6))
                    added = records.disturbed(clean, "white", decibels, draws) - clean
                    flagged[str(leak)] = float(leakage_test(clean - lost, added + lost).flagged.mean())
                yield {"signal": name, "by": how, "snr_db": decibels, "flagged": flagged}


def _decibels(x: Samples, clean: Samples) -> float:
    return float(10 * np.log10(max(np.sum(x**2), 1e-300) / np.sum(clean**2)))


def _sample() -> list[Row]:
    """The shot record of `samples`, by options: traces that are flagged, and the gain."""
    found = records.gather()
    if found is None:
        return []
    clean, x = found
    rows = []
    for name, options in SAMPLE.items():
        if isinstance(options.get("rule"), float):
            options = {"rule": options["rule"] * float(x.std())}
        y, removed = wavefilt.denoise(x, backend="numba", return_noise=True, **options)
        gain = _decibels(x - clean, clean) - _decibels(y - clean, clean)
        test = leakage_test(y, removed)
        rows.append({"options": name, "gain_db": gain, "flagged": int(test.flagged.sum()), "traces": len(x)})
    return rows


def report(result: Row) -> Report:
    """Alarms, power and the sample."""
    alarms: dict[str, Column] = {"noise": "{noise}", "samples": "{samples}", "traces": "{draws}"}
    alarms |= {name: f"{{flagged[{name}]:.1%}}" for name in REMOVED}
    power: dict[str, Column] = {"signal": "{signal}", "lost by": "{by}", "signal to noise": "{snr_db} dB"}
    power |= {f"{leak} dB": f"?{{flagged[{leak}]:.0%}}" for leak in LEAKS}
    sample: dict[str, Column] = {
        "options": "{options}",
        "gain": "{gain_db:+.1f} dB",
        "flagged": "{flagged} of {traces}",
    }
    title = "Traces that are flagged where noise alone was removed, by what removed it"
    return Report(
        [
            Table(title, alarms, "alarms")(result),
            Table("Traces that are flagged, by the energy of the signal that was removed", power, "power")(result),
            Table("The sample record", sample, "sample")(result),
        ]
    )


if __name__ == "__main__":
    main(run, report)

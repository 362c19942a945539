"""Denoising on the CPU, beside the same steps written with PyWavelets: `wavefilt bench cpu`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pywt

import wavefilt
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import different, first_calls, loop, signal, turns
from wavefilt.benchmarks.common.tables import Report, Row, Table, number
from wavefilt.thresholding.rules import MAD_TO_SIGMA

KI, MI = 1 << 10, 1 << 20
HELD = 1 << 29
"""Bytes of the arrays of a loop, but at least three arrays."""
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
UNIVERSAL: Row = {"wavelet": "db8", "level": 8, "rule": "universal", "sigma": "global"}
BAYES: Row = {"wavelet": "db8", "level": 8, "rule": "bayes"}
SECTION: Row = {"wavelet": "db4", "level": 4, "rule": "universal", "sigma": "global", "axes": (0, 1)}


@dataclass(frozen=True)
class Case:
    """An array of a shape, denoised with these options of `wavefilt.denoise`.

    ``where`` is "NumPy", or "device" for an array on the GPU; with ``peer``, a GPU is compared with other libraries.
    """

    name: str
    shape: tuple[int, int]
    options: Row = field(default_factory=lambda: UNIVERSAL)
    dtype: str = "float32"
    where: str = "NumPy"
    peer: bool = False

    def reduced(self, share: int) -> Case:
        """Return the case with fewer traces or samples."""
        rows, samples = self.shape
        shape = (rows // share, samples) if rows > share else (rows, max(samples // share, min(samples, 16 * KI)))
        return replace(self, name=f"{self.name}, reduced", shape=shape, peer=False)

    @property
    def x(self) -> Array:
        x = signal(*self.shape).astype(self.dtype)
        return x[0] if len(x) == 1 else x


CASES = (
    Case("64 Ki", (1, 64 * KI)),
    Case("1 Mi", (1, MI)),
    Case("16 Mi", (1, 16 * MI)),
    Case("64 Mi", (1, 64 * MI)),
    Case("24 x 1024, bayes", (24, KI), BAYES | {"level": 5}),
    Case("4096 x 4096", (4096, 4096)),
    Case("16 Mi, bayes", (1, 16 * MI), BAYES),
    Case("4096 x 4096, bayes", (4096, 4096), BAYES),
    Case("1 Mi, js", (1, MI), BAYES | {"rule": "js"}),
    Case("16 Mi, js", (1, 16 * MI), BAYES | {"rule": "js"}),
    Case("16 Mi, float64", (1, 16 * MI), dtype="float64"),
    Case("16 Mi, coif5", (1, 16 * MI), UNIVERSAL | {"wavelet": "coif5"}),
    Case("1 Mi, MODWT", (1, MI), UNIVERSAL | {"transform": "modwt", "mode": "periodic"}),
    Case("256 x 4096, MODWT", (256, 4096), UNIVERSAL | {"transform": "modwt", "mode": "periodic"}),
    Case("4096 x 4096, two axes", (4096, 4096), SECTION),
)
QUICK_SHARE = 32
FIRST: Mapping[str, tuple[str, Row]] = {
    "float32": ("float32", {"wavelet": "db4"}),
    "another wavelet": ("float32", {"wavelet": "db8"}),
    "float64": ("float64", {"wavelet": "db8"}),
}
"""Calls of a new process, one after the other."""


def pywavelets(options: Row) -> Callable[[Array], Array] | None:
    """Return the function that a user of PyWavelets writes for these options; None for other rules."""
    if options.get("axes"):
        return partial(_wavedec2, **options)
    if options.get("transform") == "modwt":
        return partial(_swt, **options)
    return partial(by_wavedec, **options) if options["rule"] in ("universal", "bayes") else None


def by_wavedec(x: Array, wavelet: str, level: int, rule: str, sigma: str = "level") -> Array:
    """Denoise by wavedec, medians, soft thresholds and waverec."""
    coefficients = pywt.wavedec(x, wavelet, "symmetric", level)
    details = coefficients[:0:-1]
    medians = [np.median(np.abs(d), axis=-1, keepdims=True) for d in details[: level if sigma == "level" else 1]]
    sigmas = [MAD_TO_SIGMA * m for m in medians] * (level // len(medians))
    for i, (d, noise) in enumerate(zip(details, sigmas, strict=True)):
        if rule == "universal":
            t = noise * np.sqrt(2 * np.log(x.shape[-1]))
        else:
            power = np.mean(d**2, axis=-1, keepdims=True, dtype=np.float64)
            with np.errstate(divide="ignore"):
                t = np.fmin(noise**2 / np.sqrt(np.maximum(power - noise**2, 0)), 2 * np.sqrt(power * d.shape[-1]))
        coefficients[level - i] = pywt.threshold(d, t.astype(d.dtype), "soft")
    return np.asarray(pywt.waverec(coefficients, wavelet, "symmetric"))


def _swt(x: Array, wavelet: str, level: int, **options: object) -> Array:
    """Denoise by swt, the median of the finest details, universal soft thresholds and iswt."""
    coefficients = pywt.swt(x, wavelet, level, trim_approx=True, norm=True)
    finest = MAD_TO_SIGMA * np.median(np.abs(coefficients[-1]), axis=-1, keepdims=True)
    for i in range(1, level + 1):  # the standard deviation of white noise falls by sqrt 2 per level
        value = finest * np.sqrt(2 * np.log(x.shape[-1]) / 2 ** (level - i))
        coefficients[i] = pywt.threshold(coefficients[i], value.astype(x.dtype), "soft")
    return np.asarray(pywt.iswt(coefficients, wavelet, norm=True))


def _wavedec2(x: Array, wavelet: str, level: int, **options: object) -> Array:
    """Denoise by wavedec2, the median of the finest diagonal details, universal soft thresholds and waverec2."""
    coefficients = pywt.wavedec2(x, wavelet, level=level)
    noise = MAD_TO_SIGMA * np.median(np.abs(coefficients[-1][-1]))
    value = x.dtype.type(noise * np.sqrt(2 * np.log(x.size)))
    coefficients[1:] = [tuple(pywt.threshold(band, value, "soft") for band in bands) for bands in coefficients[1:]]
    return np.asarray(pywt.waverec2(coefficients, wavelet)[: x.shape[0], : x.shape[1]])


def run(quick: bool = False, repeats: int = 7) -> Row:
    """Measure every case; ``quick`` takes smaller arrays, few repeats and no first calls.

    Raises Mismatch if a result differs from that of PyWavelets.
    """
    cases = [case.reduced(QUICK_SHARE) for case in CASES] if quick else CASES
    if not quick:
        np.ones(2 * HELD, np.uint8)  # a virtual machine gets memory from its host when it is first written
    rows = [_measured(case, min(repeats, 2) if quick else repeats) for case in cases]
    first = [] if quick else first_calls("numba", FIRST)
    return result("cpu", quick=quick, repeats=repeats, rows=rows, first=first)


def _measured(case: Case, repeats: int) -> Row:
    """Compare both libraries, then time them with different arrays, and with one array in turn."""
    x = case.x
    calls: dict[str, Callable[[Array], Array]] = {"numba": partial(wavefilt.denoise, backend="numba", **case.options)}
    peer = pywavelets(case.options)
    if peer is not None:
        calls["pywavelets"] = peer
    expected = np.asarray(peer(x)) if peer else wavefilt.denoise(x, backend="pywavelets", **case.options)
    row: Row = {"name": case.name, "shape": case.shape, "dtype": case.dtype, "options": case.options}
    row["error"] = agreement(calls["numba"](x), expected, TOLERANCE[case.dtype], case.name)
    repeats = max(repeats, min(50, 32 * MI // x.size)) if repeats > 2 else repeats
    arrays = different(x, HELD, repeats, 3)
    row["different"] = {name: loop(call, arrays) for name, call in calls.items()}
    row["same"] = turns({name: partial(call, x) for name, call in calls.items()}, repeats)
    return row


def _ratio(which: str) -> Callable[[Row], str]:
    def ratio(row: Row) -> str:
        times: Any = row.get(which, {})
        return number(times["pywavelets"]["median"] / times["numba"]["median"]) if "pywavelets" in times else "-"

    return ratio


TIMES = Table(
    "Denoising on the CPU, ms (quartiles in brackets): {environment[threads]} threads; different arrays whose results "
    "are kept, and the same array again",
    {
        "float32 samples": "{name}",
        "different arrays|wavefilt": "?{different[numba]:quartiles}",
        "|PyWavelets": "?{different[pywavelets]:quartiles}",
        "|ratio": _ratio("different"),
        "same array|wavefilt": "?{same[numba]:quartiles}",
        "|PyWavelets#same": "?{same[pywavelets]:quartiles}",
        "|ratio#same": _ratio("same"),
    },
)
FIRST_CALLS = Table(
    "First calls of a new process, seconds",
    {"calls in this order": "{name}", "kernels not compiled": "{empty:.2f}", "compiled and cached": "{cached:.3f}"},
    "first",
)


def report(found: Row) -> Report:
    """Return the tables of `run`."""
    return Report([TIMES(found), *([FIRST_CALLS(found)] if found["first"] else [])])

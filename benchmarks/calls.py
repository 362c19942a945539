"""Denoising as a user meets it, beside other libraries: `wavefilt bench cpu`, `wavefilt bench cuda`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pywt

import wavefilt
from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.columns import agreement, release, unavailable
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import different, loop, signal, turns, walls
from wavefilt.benchmarks.common.tables import Column, Report, Row, number, sheet
from wavefilt.errors import BackendUnavailable
from wavefilt.thresholding.rules import MAD_TO_SIGMA

KI, MI = 1 << 10, 1 << 20
CPU, DEVICE, NUMPY = "CPU", "device", "NumPy"
"""Where a case is measured: on the CPU, and on the GPU with an array that is there, or with one of NumPy."""
REPEATS, MOST_ON_CPU = 25, 50
QUICK_REPEATS = {"numba": 2, "cuda": 5}
TOLERANCE = {("numba", "float32"): 1e-5, ("numba", "float64"): 1e-12, ("cuda", "float32"): 2e-5}
UNIVERSAL: Row = {"wavelet": "db8", "level": 8, "rule": "universal", "sigma": "global"}
BAYES: Row = {"wavelet": "db8", "level": 8, "rule": "bayes"}
JS: Row = BAYES | {"rule": "js"}
MODWT: Row = UNIVERSAL | {"transform": "modwt", "mode": "periodic"}
SECTION: Row = {"wavelet": "db4", "level": 4, "rule": "universal", "sigma": "global", "axes": (0, 1)}
DTCWT: Row = {"axes": (0, 1), "level": 4, "transform": "dtcwt"}


@dataclass(frozen=True)
class Case:
    """An array of a shape, denoised with these options of `wavefilt.denoise`, where ``at`` says."""

    name: str
    shape: tuple[int, int]
    options: Row
    at: tuple[str, ...] = (CPU,)
    dtype: str = "float32"

    def reduced(self, share: int) -> Case:
        """Return the case with fewer traces or samples."""
        rows, samples = self.shape
        shape = (rows // share, samples) if rows > share else (rows, max(samples // share, min(samples, 16 * KI)))
        return replace(self, name=f"{self.name}, reduced", shape=shape)

    @property
    def x(self) -> Array:
        x = signal(*self.shape).astype(self.dtype)
        return x[0] if len(x) == 1 else x


CASES = (
    Case("universal, 64 Ki", (1, 64 * KI), UNIVERSAL),
    Case("universal, 1 Mi", (1, MI), UNIVERSAL),
    Case("universal, 16 Mi", (1, 16 * MI), UNIVERSAL),
    Case("universal, 64 Mi", (1, 64 * MI), UNIVERSAL, (CPU, DEVICE, NUMPY)),
    Case("universal, db4, 64 Mi", (1, 64 * MI), UNIVERSAL | {"wavelet": "db4"}, (DEVICE,)),
    Case("universal, coif5, 16 Mi", (1, 16 * MI), UNIVERSAL | {"wavelet": "coif5"}),
    Case("universal, float64, 16 Mi", (1, 16 * MI), UNIVERSAL, dtype="float64"),
    Case("universal, 4096 x 4096", (4096, 4096), UNIVERSAL),
    Case("universal, 4096 x 16384", (4096, 16384), UNIVERSAL, (DEVICE,)),
    Case("bayes, 64 Ki", (1, 64 * KI), BAYES, (DEVICE,)),
    Case("bayes, 256 Ki", (1, 256 * KI), BAYES, (NUMPY,)),
    Case("bayes, 1 Mi", (1, MI), BAYES, (DEVICE, NUMPY)),
    Case("bayes, 4 Mi", (1, 4 * MI), BAYES, (NUMPY,)),
    Case("bayes, 16 Mi", (1, 16 * MI), BAYES, (CPU, NUMPY)),
    Case("bayes, 64 Mi", (1, 64 * MI), BAYES, (DEVICE, NUMPY)),
    Case("bayes, 24 x 1024", (24, KI), BAYES | {"level": 5}, (CPU, DEVICE)),
    Case("bayes, 4096 x 4096", (4096, 4096), BAYES),
    Case("js, 1 Mi", (1, MI), JS),
    Case("js, 16 Mi", (1, 16 * MI), JS),
    Case("js, 64 Mi", (1, 64 * MI), JS, (DEVICE,)),
    Case("universal, MODWT, 1 Mi", (1, MI), MODWT),
    Case("universal, MODWT, 16 Mi", (1, 16 * MI), UNIVERSAL | {"transform": "modwt"}, (DEVICE,)),
    Case("universal, MODWT, 256 x 4096", (256, 4096), MODWT),
    Case("universal, two axes, 4096 x 4096", (4096, 4096), SECTION),
    Case("universal, two axes, 8192 x 8192", (8192, 8192), SECTION, (DEVICE,)),
    Case("js, dtcwt, two axes, 8192 x 8192", (8192, 8192), DTCWT, (DEVICE,)),
)
QUICK_SHARE = 32
METHOD = "whole calls for different arrays, each once and with its result kept, and for the same array again"


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


def torch_with_ptwt(device: str) -> Any:
    """Return torch. Raises BackendUnavailable unless ptwt is installed too and the device is there."""
    try:
        import ptwt  # noqa: F401
        import torch
    except ImportError as error:
        raise BackendUnavailable(f"ptwt is not installed ({error}): pip install ptwt torch") from error
    if device == "cuda" and not torch.cuda.is_available():
        raise BackendUnavailable("torch sees no GPU")
    torch.backends.cudnn.allow_tf32 = False  # its 10 bits of mantissa would not pass the comparison
    return torch


def by_ptwt(x: Any, wavelet: str, level: int) -> Any:
    """Denoise as a user of ptwt does, and wait for the result."""
    import ptwt
    import torch

    coefficients = ptwt.wavedec(x, wavelet, mode="symmetric", level=level)
    t = coefficients[-1].abs().median() * MAD_TO_SIGMA * float(np.sqrt(2 * np.log(x.shape[-1])))
    details = [torch.sign(d) * torch.clamp(d.abs() - t, min=0) for d in coefficients[1:]]
    y = ptwt.waverec([coefficients[0], *details], wavelet)
    if x.is_cuda:
        torch.cuda.synchronize()
    return y


def run(backend: str, quick: bool = False, repeats: int = REPEATS) -> Row:
    """Measure every case of a backend; ``quick`` takes smaller arrays and few repeats.

    Raises BackendUnavailable without a GPU, and Mismatch if a result differs from that of the reference: PyWavelets on
    the CPU, the CPU for the GPU.
    """
    backends.get(backend)
    gpu = backend == "cuda"
    if not gpu and not quick:
        np.ones(1 << 30, np.uint8)  # a virtual machine gets memory from its host when it is first written
    rows = []
    for where in (DEVICE, NUMPY) if gpu else (CPU,):
        for case in CASES:
            if where in case.at:
                wanted = case.reduced(QUICK_SHARE) if quick else case
                row = _measured(wanted, backend, where, min(repeats, QUICK_REPEATS[backend]) if quick else repeats)
                peer = gpu and not quick and case.shape == (1, 64 * MI) and case.options["rule"] == "universal"
                rows.append(row | ({"others": _others(case, where, repeats)} if peer else {}))
                release()
    return result("cuda" if gpu else "cpu", method=METHOD, quick=quick, repeats=repeats, rows=rows)


def _measured(case: Case, backend: str, where: str, repeats: int) -> Row:
    """Compare a case with its reference, then time it with different arrays, and with one array again and again."""
    host, peer = case.x, pywavelets(case.options)
    make: Callable[[Array], Any] = np.asarray
    if where == DEVICE:
        from wavefilt.backends.cuda.runtime.target import cuda

        make = cuda.to_device
    x = make(host)
    call: Callable[..., Any] = partial(wavefilt.denoise, backend=backend, **case.options)
    if where == CPU and peer:
        expected = np.asarray(peer(host))
    else:
        expected = np.asarray(wavefilt.denoise(host, backend="pywavelets" if where == CPU else "numba", **case.options))
    row: Row = {"name": case.name, "shape": case.shape, "dtype": case.dtype, "where": where, "options": case.options}
    y = call(x)
    y = y.copy_to_host() if where == DEVICE else y
    row["error"] = agreement(y, expected, TOLERANCE[backend, case.dtype], case.name)
    del expected, y
    if where == CPU:
        calls = {"numba": call} | ({"pywavelets": peer} if peer else {})
        repeats = max(repeats, min(MOST_ON_CPU, 32 * MI // x.size)) if repeats > QUICK_REPEATS[backend] else repeats
        arrays = different(x, 1 << 29, repeats, 3)
        row["different"] = {name: loop(one, arrays) for name, one in calls.items()}
        return row | {"same": turns({name: partial(one, x) for name, one in calls.items()}, repeats)}
    row["different"] = loop(call, [make(one) for one in different(host, 1 << 30, max(repeats, 40), 4)])
    row["same"] = walls(partial(call, x), repeats)
    return row


def _others(case: Case, where: str, repeats: int) -> dict[str, float]:
    """Return the milliseconds of the other libraries: PyWavelets for NumPy arrays, ptwt for those on the GPU."""
    if where == NUMPY:
        return {"PyWavelets": walls(partial(by_wavedec, case.x, **case.options), 1, 0)["median"]}
    if unavailable(partial(torch_with_ptwt, "cuda")):
        return {}
    x = torch_with_ptwt("cuda").as_tensor(case.x, device="cuda")
    return {"ptwt": walls(partial(by_ptwt, x, case.options["wavelet"], case.options["level"]), repeats)["median"]}


def _ratio(which: str) -> Callable[[Row], str]:
    def ratio(row: Row) -> str:
        times: Any = row.get(which, {})
        return number(times["pywavelets"]["median"] / times["numba"]["median"]) if "pywavelets" in times else "-"

    return ratio


CPU_TIMES: dict[str, Column] = {
    "float32 samples": "{name}",
    "different arrays|wavefilt": "?{different[numba]:quartiles}",
    "|PyWavelets": "?{different[pywavelets]:quartiles}",
    "|ratio": _ratio("different"),
    "same array|wavefilt": "?{same[numba]:quartiles}",
    "|PyWavelets#same": "?{same[pywavelets]:quartiles}",
    "|ratio#same": _ratio("same"),
}
GPU_TIMES: dict[str, Column] = {
    "float32 samples": "{name}",
    "arrays": "{where}",
    "different|arrays": "?{different:quartiles}",
    "same|array": "?{same:quartiles}",
    "PyWavelets|1 core": "?{others[PyWavelets]:n}",
    "ptwt|same GPU": "?{others[ptwt]:n}",
}


def report(found: Row) -> Report:
    """Return the table of `run`."""
    if found["study"] == "cpu":
        title = f"Denoising on the CPU, ms (quartiles in brackets): {found['environment']['threads']} threads; "
        title += "different arrays whose results are kept, and the same array again"
        return Report([sheet(title, CPU_TIMES, found["rows"])])
    title = f"Denoising on the GPU, ms (quartiles in brackets): {found['method']}"
    notes = ["Arrays on the GPU are those of numba-cuda; results are compared with those of the CPU first."]
    return Report([sheet(title, GPU_TIMES, found["rows"])], notes)

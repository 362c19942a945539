"""The wavelet kernels with blocks of 32 to 1024 threads, as the paper behind the SKE model varied them.

Every output is compared before it is timed. `wavefilt bench blocks -o FILE` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pywt

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.backends.cuda.work_counts import transforms
from wavefilt.benchmarks.common.columns import labels, place
from wavefilt.benchmarks.common.comparison import MODELS, calibration
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import Mismatch, agreement, unavailable
from wavefilt.benchmarks.common.tables import Report, Row, Sheet, Table, size, spread
from wavefilt.benchmarks.ske.cases import Case
from wavefilt.ske.calibrated import Launch
from wavefilt.ske.calibration import Calibration
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import DWT

SAMPLES, TILE, LEVEL = 1 << 26, 4096, 8
BLOCKS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
WAVELETS = ("db4", "db8")
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Kernel:
    """The launch of a transform that computes the finest levels."""

    transform: str
    wavelet: str

    @property
    def name(self) -> str:
        return f"{self.transform}_{self.wavelet}"

    def launch(self, samples: int, block: int, tile: int) -> Launch:
        """Return its operation counts for the SKE model."""
        problem = transforms.Problem(pywt.Wavelet(self.wavelet).dec_len, samples, level=LEVEL, tile=tile, threads=block)
        first = transforms.Problem(problem.taps, samples, level=problem.fused[0], tile=tile, threads=block)
        (only,) = (transforms.forward if self.transform == "forward" else transforms.inverse)(first)
        return only


KERNELS = tuple(Kernel(transform, wavelet) for transform in ("forward", "inverse") for wavelet in WAVELETS)
Step = tuple[Kernel, int]


def run(
    samples: int = SAMPLES,
    blocks: Sequence[int] = BLOCKS,
    repeats: int = 30,
    device: str | None = None,
    tile: int = TILE,
    progress: Callable[[list[Step]], Iterable[Step]] = iter,
) -> Row:
    """Return the milliseconds of each kernel with each block, measured on a GPU and estimated, as a table for JSON.

    Raises Mismatch if an output differs from that of the CPU backend, ValueError or OSError for an unknown calibration.
    """
    missing = unavailable(partial(backends.get, "cuda"))
    chosen, reason = calibration(device, missing)
    of: dict[int, Row] = {block: {"block": block, "times": {}, "skipped": {}, "estimates": {}} for block in blocks}
    for kernel, block in progress([] if missing else [(kernel, block) for kernel in KERNELS for block in blocks]):
        try:
            of[block]["times"][kernel.name] = _measured(kernel, samples, block, tile, repeats)
        except Mismatch:
            raise
        except Exception as error:  # a block that the compiler or the driver refuses
            of[block]["skipped"][kernel.name] = f"{type(error).__name__}: {error}".splitlines()[0]
    if chosen is not None:
        for block, row in of.items():
            row["estimates"] = {k.name: _estimates(k.launch(samples, block, tile), chosen) for k in KERNELS}
    columns = {
        k.name: {
            "heads": (k.transform, k.wavelet),
            "what": f"the finest levels of the {k.transform} transform by {k.wavelet}",
            "missing": missing,
            "tolerance": TOLERANCE,
            "compared with": "backend numba",
        }
        for k in KERNELS
    }
    return result(
        "blocks",
        unit="ms",
        samples=samples,
        method=f"{samples} samples in one trace, tiles of {tile}; median of {repeats} graphs of 20 launches",
        columns=columns,
        estimates={"calibration": chosen and chosen.name, "missing": reason},
        rows=[*of.values()],
        choices=choices([*of.values()]),
    )


def _estimates(launch: Launch, device: Calibration) -> dict[str, float | None]:
    """Return the estimate of each model; None if a limit of the device forbids the launch."""
    found: dict[str, float | None] = {}
    for name, model in MODELS.items():
        try:
            found[name] = 1e3 * model(launch, device)
        except ValueError:
            found[name] = None
    return found


def choices(rows: Sequence[Row]) -> dict[str, Row]:
    """Return for every kernel the fastest block, the choice of each model, and its time relative to the fastest."""
    found: dict[str, Row] = {}
    for kernel in KERNELS:
        times = {row["block"]: row["times"][kernel.name]["median"] for row in rows if kernel.name in row["times"]}
        entry: Row = {"fastest": min(times, key=times.__getitem__) if times else None}
        for model in MODELS:
            all_of = {row["block"]: row["estimates"].get(kernel.name, {}).get(model) for row in rows}
            known = {block: value for block, value in all_of.items() if value is not None}
            block = min(known, key=known.__getitem__) if known else None
            regret = times[block] / min(times.values()) if block in times else None
            entry[model] = {"block": block, "regret": regret}
        found[kernel.name] = entry
    return found


def _measured(kernel: Kernel, samples: int, block: int, tile: int, repeats: int) -> dict[str, float]:
    """Compare the kernel with the CPU backend, then time it."""
    from wavefilt.benchmarks.common.gpu_timing import measured
    from wavefilt.benchmarks.ske.measure import prepare

    ready = prepare(Case(kernel.transform, kernel.wavelet, block, samples, tile=tile))
    try:
        coefficients, y = _expected(kernel.wavelet, samples, ready.plan.shape.level)
        ready.work(ready.plan.own_stream())
        ready.plan.own_stream().synchronize()
        if kernel.transform == "forward":
            pairs = [(a.copy_to_host(), b) for a, b in zip(ready.plan.coefficients(), coefficients, strict=True)]
        else:
            pairs = [(ready.y.copy_to_host()[None], y)]
        what = f"{kernel.name} with blocks of {block} threads"
        error = max(agreement(ours, theirs, TOLERANCE, what) for ours, theirs in pairs)
        return measured(ready.work, repeats=repeats).milliseconds | {"repeats": repeats, "error": error}
    finally:
        ready.plan.release()


@lru_cache(maxsize=1)
def _expected(wavelet: str, samples: int, level: int) -> tuple[tuple[Array, ...], Array]:
    """Return the coefficients of the same samples by the CPU, and their inverse with the same thresholds."""
    from wavefilt.benchmarks.ske.measure import THRESHOLD, noise

    backend, x = backends.get("numba"), noise(samples)[None]
    pyramid = backend.decompose(x, DWT.analysis(pywt.Wavelet(wavelet), "symmetric", level))
    shrinkage = Shrinkage("soft", np.full((level, 1), THRESHOLD))
    return pyramid.coefficients, backend.reconstruct(pyramid, shrinkage)


def report(found: Row) -> Report:
    return Report([*sheets(found)], notes(found))


def sheets(found: Row) -> Iterator[Sheet]:
    """Yield microseconds by block for each kernel, then the choices."""
    for name, label in labels(found).items():
        rows = [_in_microseconds(row, name) for row in found["rows"]]
        measured = any("measured" in row for row in rows)
        columns = {"threads|of a block": "{block}"} | ({"measured|us": "?{measured}"} if measured else {})
        for model in MODELS:
            if any(model in row["estimates"] for row in rows):
                columns[f"SKE|{model}"] = f"?{{estimates[{model}]:n}}"
                columns |= {f"|error#{model}": f"?{{errors[{model}]:+.0%}}"} if measured else {}
        if len(columns) > 1:
            yield Table(f"{label}, {size(found['samples'])} samples: microseconds", columns)({"rows": rows})
    if any(entry["calibrated"]["block"] or entry["fastest"] for entry in found["choices"].values()):
        yield CHOICES({"rows": [{"label": labels(found)[name], **entry} for name, entry in found["choices"].items()]})


def _in_microseconds(row: Row, name: str) -> Row:
    """Return a kernel's time with a block, if it was measured, and its estimates with their errors."""
    known = {model: 1e3 * value for model, value in row["estimates"].get(name, {}).items() if value is not None}
    found: Row = {"block": row["block"], "estimates": known}
    times = row["times"].get(name)
    if times is not None:
        taken = 1e3 * times["median"]
        found["measured"] = f"{taken:.1f} ±{spread(times):.1%}"
        found["errors"] = {model: value / taken - 1 for model, value in known.items()}
    return found


CHOICES = Table(
    "Choice of the block size; regret is its time over the shortest time",
    {
        "|kernel": "{label}",
        "fastest|block": "?{fastest}",
        "SKE calibrated|would choose": "?{calibrated[block]}",
        "|regret#calibrated": "?{calibrated[regret]:.3f}",
        "SKE classic|would choose": "?{classic[block]}",
        "|regret#classic": "?{classic[regret]:.3f}",
    },
)


def notes(found: Row) -> list[str]:
    """Return notes: where and how it was measured, and what was left out and why."""
    label, why_not = labels(found), found["estimates"]["missing"]
    missing = next(iter(found["columns"].values()))["missing"]
    worst = max((t["error"] for row in found["rows"] for t in row["times"].values()), default=0.0)
    return [
        place(found),
        f"{found['method']}.",
        f"Not measured: {missing}."
        if missing
        else f"Compared with backend numba before they were timed; largest difference {worst:.0e} of the norm.",
        f"No estimates: {why_not}."
        if why_not
        else f"Estimates for {found['estimates']['calibration']}, from counts alone.",
        *(
            f"Skipped: {label[name]}, {row['block']} threads: {why}."
            for row in found["rows"]
            for name, why in row["skipped"].items()
        ),
    ]

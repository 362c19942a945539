"""The wavelet kernels with blocks of 32 to 1024 threads, as the paper behind the SKE model varied them.

Every output is compared before it is timed. `wavefilt bench blocks -o FILE` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product

import numpy as np
import pywt

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.columns import estimated, labels, not_run, place
from wavefilt.benchmarks.common.comparison import MODELS, calibration
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import Mismatch, agreement, unavailable
from wavefilt.benchmarks.common.tables import Report, Row, Table, size, spread
from wavefilt.benchmarks.ske import counts
from wavefilt.benchmarks.ske.cases import Case
from wavefilt.ske.calibrated import Launch
from wavefilt.ske.devices import Calibration
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
        problem = counts.Problem(pywt.Wavelet(self.wavelet).dec_len, samples, level=LEVEL, tile=tile, threads=block)
        first = counts.Problem(problem.taps, samples, level=problem.fused[0], tile=tile, threads=block)
        (only,) = (counts.forward if self.transform == "forward" else counts.inverse)(first)
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
    """Return microseconds by kernel and block, the choices, and notes."""
    measured = any(row["times"] for row in found["rows"])
    columns = {"kernel": "{label}", "threads": "{block}"} | ({"measured": "?{measured}"} if measured else {})
    for model in MODELS if found["estimates"]["calibration"] else ():
        columns[f"SKE|{model}"] = f"?{{{model}:.1f}}"
        columns |= {f"|error#{model}": f"?{{{model} error:+.0%}}"} if measured else {}
    title = f"{size(found['samples'])} samples by threads of a block, microseconds"
    times = Table(title, columns)({"rows": [*_lines(found)]})
    label = labels(found)
    chosen = CHOICES({"rows": [{"label": label[name], **entry} for name, entry in found["choices"].items()]})
    return Report([times, chosen], notes(found))


def _lines(found: Row) -> Iterator[Row]:
    """Yield the times and estimates of every kernel with every block, with the errors of the estimates."""
    for (name, label), row in product(labels(found).items(), found["rows"]):
        times, line = row["times"].get(name), {"label": label, "block": row["block"]}
        if times is not None:
            line["measured"] = f"{1e3 * times['median']:.1f} ±{spread(times):.1%}"
        for model, value in row["estimates"].get(name, {}).items():
            if value is not None:
                line[model] = 1e3 * value
                line |= {f"{model} error": value / times["median"] - 1} if times else {}
        yield line


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
    label, worst = labels(found), max((t["error"] for row in found["rows"] for t in row["times"].values()), default=0)
    lines = [place(found), f"{found['method']}.", *not_run(found), estimated(found)]
    lines += [f"Compared with backend numba first; largest difference {worst:.0e} of the norm."] if worst else []
    for row in found["rows"]:
        lines += [f"Skipped: {label[name]}, {row['block']} threads: {why}." for name, why in row["skipped"].items()]
    return lines

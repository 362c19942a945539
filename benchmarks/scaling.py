"""The scaling study: one denoising run at the sizes of a thesis of 2010, by every library that can do it here.

Each output is compared before it is timed. `wavefilt bench scaling -o FILE` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pywt

import wavefilt
from wavefilt import backends, threads
from wavefilt.arrays import Array
from wavefilt.benchmarks.calls import by_ptwt, by_wavedec, torch_with_ptwt
from wavefilt.benchmarks.common import columns as common
from wavefilt.benchmarks.common.columns import Implementation, Prepared
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import different, gpu_time, loop, signal
from wavefilt.benchmarks.common.tables import Column, Report, Row, Sheet, sheet, size
from wavefilt.benchmarks.ske.counts import denoise
from wavefilt.benchmarks.ske.estimate import problem as estimated_problem
from wavefilt.options import Options

from . import gsl

LEVEL = 8
OPTIONS: Row = {"level": LEVEL, "rule": "universal", "sigma": "global"}
KEPT = 1 << 30
"""Bytes of the arrays of a loop, but at least five arrays."""
REFERENCE = "wavefilt.denoise, backend pywavelets, "
SYMMETRIC, PERIODIC = f"{REFERENCE}float32, symmetric ends", f"{REFERENCE}float64, periodic ends"


@dataclass(frozen=True)
class Problem:
    """One float32 trace, denoised by the universal soft threshold with noise by the MAD of the finest level."""

    wavelet: str
    samples: int

    def __str__(self) -> str:
        return f"{self.wavelet}, {self.samples} samples"

    @cached_property
    def taps(self) -> int:
        return int(pywt.Wavelet(self.wavelet).dec_len)

    @cached_property
    def x(self) -> Array:
        row: Array = signal(1, self.samples)[0]
        return row

    def denoised(self, x: Any, backend: str = "auto", **options: Any) -> Any:
        """Denoise as a user of this library does."""
        return wavefilt.denoise(x, self.wavelet, backend=backend, **OPTIONS, **options)

    def expected(self, oracle: str) -> Array:
        """Return the result of this library's reference backend."""
        if oracle == SYMMETRIC:
            return np.asarray(self.denoised(self.x, "pywavelets"))
        shift = gsl.aligned(self.taps, LEVEL)
        rolled = np.roll(self.x.astype(np.float64), -shift)
        return np.roll(self.denoised(rolled, "pywavelets", mode="periodization"), shift)


def _gsl(problem: Problem) -> Prepared:
    transform = gsl.Daubechies(problem.wavelet, problem.samples)
    return Prepared(partial(transform.denoise, problem.x, LEVEL))


def _pywavelets(problem: Problem) -> Prepared:
    return Prepared(partial(by_wavedec, problem.x, problem.wavelet, **OPTIONS))


def _same(backend: str, problem: Problem) -> Prepared:
    return Prepared(partial(problem.denoised, problem.x, backend))


def _one_core(problem: Problem) -> Prepared:
    """Prepare calls on one thread, as GSL and PyWavelets run."""

    def call() -> Array:
        threads.set_num_threads(1)
        try:
            return np.asarray(problem.denoised(problem.x, "numba"))
        finally:
            threads.set_num_threads(None)

    return Prepared(call)


def _kept(backend: str, problem: Problem) -> Prepared:
    """Prepare a user's loop: different arrays, whose results are kept."""
    call = partial(problem.denoised, backend=backend)

    def clock(repeats: int, warm: int) -> dict[str, float]:
        return loop(call, different(problem.x, KEPT, repeats), warm)

    return Prepared(partial(call, problem.x), clock=clock)


def _ptwt(device: str, problem: Problem) -> Prepared:
    x = torch_with_ptwt(device).as_tensor(problem.x, device=device)
    return Prepared(partial(by_ptwt, x, problem.wavelet, LEVEL), lambda y: np.asarray(y.cpu().reshape(-1)))


def _pinned(problem: Problem) -> Prepared:
    from wavefilt.backends.cuda.runtime.target import cuda

    x, out = (cuda.pinned_array(problem.samples, np.float32) for _ in range(2))
    x[:] = problem.x
    return Prepared(partial(problem.denoised, x, "cuda", out=out))


def _resident(several: bool, problem: Problem) -> Prepared:
    """Prepare arrays in device memory: one again and again, or ``several`` once each, with the results kept."""
    from wavefilt.backends.cuda.runtime.target import cuda

    x, free = cuda.to_device(problem.x), cuda.current_context().get_memory_info().free

    def clock(repeats: int, warm: int) -> dict[str, float]:
        count = max(min(repeats, free // (4 * problem.x.nbytes)), 2)
        return loop(problem.denoised, [cuda.to_device(problem.x) for _ in range(count)], warm)

    return Prepared(partial(problem.denoised, x), lambda y: y.copy_to_host(), clock if several else None)


def _kernels(problem: Problem) -> Prepared:
    """Prepare the launches of a denoising run alone, without Python between them."""
    from wavefilt.backends.cuda.denoiser import Denoiser
    from wavefilt.backends.cuda.dwt.plan import DwtPlan
    from wavefilt.backends.cuda.options import KernelOptions
    from wavefilt.backends.cuda.plan import Shape

    options = Options(problem.wavelet, **OPTIONS)
    plan = DwtPlan(Shape.of(options.analysis(LEVEL), "float32", 1, (problem.samples,)), KernelOptions())
    return common.on_device(problem.x, Denoiser(plan, options, False).run)


def _one(
    name: str, heads: tuple[str, str], what: str, prepare: Callable[[Problem], Prepared], device: str = "cpu"
) -> Implementation:
    """Describe an implementation with symmetric ends, whose name begins with the backend or library it requires."""
    required = name.partition("_")[0]
    require = partial(torch_with_ptwt, device) if required == "ptwt" else partial(backends.get, required)
    return Implementation(name, heads, what, prepare, require, SYMMETRIC)


_IN_GSL = "gsl_wavelet_transform in float64, periodic ends, from a float32 array"
_KEPT = "the same, different arrays in turn, their results kept"
_ON_GPU = "the same on the GPU, the data resident there"
IMPLEMENTATIONS = (
    Implementation("gsl", ("GSL", "1 core"), _IN_GSL, _gsl, gsl.load, PERIODIC, 1e-10),
    _one("pywavelets", ("PyWavelets", "1 core"), "wavedec, NumPy's median, threshold, waverec", _pywavelets),
    _one("numba_one", ("numba", "1 core"), "wavefilt.denoise, backend numba, one thread", _one_core),
    _one("numba", ("numba", "all cores"), "wavefilt.denoise, backend numba", partial(_same, "numba")),
    _one("numba_kept", ("numba", "kept"), _KEPT, partial(_kept, "numba")),
    _one("ptwt_cpu", ("ptwt", "CPU"), "wavedec, median, waverec of ptwt, all cores", partial(_ptwt, "cpu")),
    _one("ptwt_gpu", ("ptwt", "GPU"), _ON_GPU, partial(_ptwt, "cuda"), "cuda"),
    _one("cuda", ("CUDA", "pageable"), "wavefilt.denoise, from and to NumPy arrays", partial(_same, "cuda")),
    _one("cuda_kept", ("CUDA", "kept"), _KEPT, partial(_kept, "cuda")),
    _one("cuda_pinned", ("CUDA", "pinned"), "the same from and to pinned arrays", _pinned),
    _one("cuda_resident", ("CUDA", "resident"), "the same in device memory, each once", partial(_resident, True)),
    _one("cuda_again", ("CUDA", "again"), "one array there again and again", partial(_resident, False)),
    _one("cuda_kernels", ("CUDA", "kernels"), "the kernels alone, by the GPU's events", _kernels),
)


KI, MI = 1 << 10, 1 << 20
_CPU = (12, 26, 81, 159, 319, 677, 1401, 2855, 5964, 11979, 31802)
_GPU = (67, 67, 61, 73, 85, 97, 133, 209, 355, 638, 1350)
DOCUMENT = {64 * KI << i: times for i, times in enumerate(zip(_CPU, _GPU, strict=True))}
"""Milliseconds of 2010 on a Core 2 Duo E2200 and a GeForce 9800 GT, including transfers; `db4`."""
WAVELETS = ("db4", "db8")
QUICK = (64 * KI, 256 * KI, MI)
REPEATS, BUDGET, QUICK_BUDGET = 25, 3.0, 0.1
"""Most runs of a column at one size, and the seconds they may take."""
Step = tuple[str, int, Implementation]
"""Wavelet, samples, implementation."""


def run(
    sizes: Sequence[int] = tuple(DOCUMENT),
    wavelets: Sequence[str] = WAVELETS,
    repeats: int = REPEATS,
    budget: float = BUDGET,
    device: str | None = None,
    progress: Callable[[list[Step]], Iterable[Step]] = iter,
    keep: Callable[[Row], None] = lambda result: None,
) -> Row:
    """Return the milliseconds of every implementation at every size, as a table for JSON.

    ``device`` is the calibration for the estimates, as `wavefilt ske estimate` takes it; by default that of this
    GPU. ``progress`` shows the steps in turn; ``keep`` is given the table after each of its rows.

    Raises Mismatch if an output differs from the reference, ValueError or OSError for an unknown calibration.
    """
    running, chosen, facts = common.opened(IMPLEMENTATIONS, device)
    no_gpu = facts["columns"]["cuda"]["missing"]
    found = result(
        "scaling",
        unit="ms",
        method=f"{LEVEL} levels, universal soft threshold, noise by the MAD of the finest level",
        **facts,
        rows=[],
    )
    found["most repeats"] = repeats
    steps = [(wavelet, samples, i) for wavelet in wavelets for samples in sizes for i in running]
    for (wavelet, samples), group in groupby(progress(steps), key=itemgetter(0, 1)):
        problem = Problem(wavelet, samples)
        times, skipped = common.measured(problem, map(itemgetter(2), group), repeats, budget)
        row: Row = {"wavelet": wavelet, "taps": problem.taps, "samples": samples}
        row |= {"times": times, "skipped": skipped}
        if not no_gpu:
            row["floors"] = _floors(samples, repeats)
        if chosen is not None:
            launches = denoise(estimated_problem(wavelet, samples, level=LEVEL))
            row["estimates"] = common.estimates(launches, chosen)
        found["rows"].append(row | derived(row))
        keep(found)
    return found


def _floors(samples: int, repeats: int) -> dict[str, float]:
    """Time the transfers of pinned samples, and 12 bytes a sample (read, read again, write) at a copy's bandwidth."""
    from wavefilt.backends.cuda.runtime.target import cuda

    host = cuda.pinned_array(samples, "float32")
    x, y = (cuda.device_array(samples, "float32") for _ in range(2))
    work = {
        "up": lambda stream: x.copy_to_device(host, stream=stream),
        "down": lambda stream: x.copy_to_host(host, stream=stream),
        "copy": lambda stream: y.copy_to_device(x, stream=stream),
    }
    times = {name: gpu_time(copy, 4, repeats)["median"] for name, copy in work.items()}
    return times | {"transfer": times["up"] + times["down"], "memory": 12 / 8 * times["copy"]}


def derived(row: Row) -> Row:
    """Return the ratios of the measured times, the errors of the estimates, and the times of 2010."""
    medians = {name: times["median"] for name, times in row["times"].items()}
    bases = [base for base in ("pywavelets", "gsl") if base in medians]
    ratios = {base: {name: medians[base] / other for name, other in medians.items() if name != base} for base in bases}
    found: Row = {"ratios": ratios}
    if "estimates" in row and "cuda_kernels" in medians:
        found["estimate errors"] = {k: v / medians["cuda_kernels"] - 1 for k, v in row["estimates"].items()}
    if row["samples"] in DOCUMENT and row["wavelet"] == "db4":
        cpu, gpu = DOCUMENT[row["samples"]]
        found["document"] = {"cpu": cpu, "gpu": gpu, "ratio": cpu / gpu}
    return found


FIRST: dict[str, Column] = {"|samples": "{samples:size}"}
LIMITS: tuple[tuple[str, dict[str, Column]], ...] = (
    ("estimates", {"SKE|calibrated": "?{estimates[calibrated]:n}", "|error#1": "?{estimate errors[calibrated]:+.0%}"}),
    ("estimates", {"SKE|classic": "?{estimates[classic]:n}", "|error#2": "?{estimate errors[classic]:+.0%}"}),
    ("floors", {"lower bound:|12n bytes": "?{floors[memory]:n}", "kernels|over it": "?{over[memory]:.2f}"}),
    ("floors", {"lower bound:|transfers": "?{floors[transfer]:n}", "pinned|over it": "?{over[transfer]:.2f}"}),
)
"""Columns of estimates and lower bounds, by the section of a row that they need."""


def report(result: Row) -> Report:
    notes = common.notes(result, at=lambda row: f"{row['wavelet']}, {size(row['samples'])}")
    return Report([*sheets(result)], notes)


def sheets(result: Row) -> Iterator[Sheet]:
    """Yield tables of times and limits for each wavelet, and that of 2010."""
    heads = {name: "|".join(column["heads"]) for name, column in result["columns"].items()}
    for (wavelet, taps), group in groupby(result["rows"], key=lambda row: (row["wavelet"], row["taps"])):
        rows = [row | {"over": _over(row)} for row in group]
        names = [name for name in heads if any(name in row["times"] for row in rows)]
        about = f"{wavelet} ({taps} taps)"
        columns = FIRST | {heads[name]: f"?{{times[{name}]:spread}}" for name in names}
        yield sheet(f"{about}: run time in ms, ± half the interquartile range", columns, rows)
        limits = [more for section, more in LIMITS if any(section in row for row in rows)]
        if limits:
            columns = FIRST | {head: column for more in limits for head, column in more.items()}
            yield sheet(f"{about}: estimates and lower bounds of the CUDA columns, ms", columns, rows)
        if any("document" in row for row in rows):
            yield _document(about, [row for row in rows if "document" in row], names)


def _over(row: Row) -> dict[str, float]:
    """Return how many times longer than its lower bound a time is."""
    floors, times = row.get("floors", {}), row["times"]
    compared = {"memory": "cuda_kernels", "transfer": "cuda_pinned"}
    return {k: times[name]["median"] / floors[k] for k, name in compared.items() if k in floors and name in times}


def _document(about: str, rows: list[Row], names: list[str]) -> Sheet:
    """Return the table of 2010 and now: the sequential CPU, the GPU with its transfers, and their ratio."""
    cpu, label = ("gsl", "GSL") if "gsl" in names else ("pywavelets", "PyWavelets")
    columns = FIRST | {"CPU|2010": "{document[cpu]}", "GPU|2010": "{document[gpu]}"}
    columns["ratio|2010"] = "{document[ratio]:.2f}"
    here = {name: head for name, head in ((cpu, label), ("cuda", "CUDA")) if name in names}
    columns |= {f"{head}|now": f"?{{times[{name}][median]:n}}" for name, head in here.items()}
    columns |= {"ratio|now": f"?{{ratios[{cpu}][cuda]:n}}"} if len(here) == 2 else {}
    title = f"{about}: the thesis of 2010 (GSL on a Core 2 Duo E2200, GeForce 9800 GT, with transfers), ms"
    return sheet(title, columns, rows)

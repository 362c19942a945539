"""Two dimensions on the GPU, data there already: python -m wavefilt.benchmarks.gpu.panels [--quick] [--json FILE]."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Any

import wavefilt
from wavefilt import backends
from wavefilt.benchmarks.common.command import alone
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.common.measuring import difference, events, walls
from wavefilt.benchmarks.common.tables import Sheet, number
from wavefilt.benchmarks.cpu.panels import TOLERANCE, WAVELET, Case, noisy
from wavefilt.denoising.panels import SectionMethod

REPEATS, LEAST = 25, 3
CASES = (Case(8192, 8192), Case(4096, 4096), Case(1024, 1024), Case(240, 4096))
QUICK = (Case(512, 512),)
TARGET = 1.0
"""Milliseconds in which the first case should be done."""


def run(cases: Sequence[Case] = CASES, repeats: int = REPEATS) -> dict[str, Any]:
    """Milliseconds of GPU time of whole denoises and of their parts. Raises Mismatch for a wrong result."""
    rows = [_measure(backends.get("cuda"), case, repeats) for case in cases]
    return {"study": "sections on a GPU", "date": date.today().isoformat(), "environment": environment(),
            "wavelet": WAVELET, "repeats": repeats, "rows": rows}  # fmt: skip


def _measure(backend: Any, case: Case, repeats: int) -> dict[str, Any]:
    from wavefilt.backends.cuda.runtime.target import cuda

    host, level = noisy(case), case.level
    method = SectionMethod(WAVELET, level, rule="universal", sigma="global")
    x = cuda.to_device(host.reshape(1, *host.shape))  # numba-cuda walks an axis added by None element by element
    out = cuda.device_array_like(x)
    call = partial(backend.denoise2, x, method, level, out=out)
    call()
    on_cpu = partial(wavefilt.denoise, host, WAVELET, level=level, rule="universal", sigma="global", axes=(0, 1),
                     backend="numba")  # fmt: skip
    error = difference(out.copy_to_host()[0], on_cpu())
    if not error <= TOLERANCE:
        raise Mismatch(f"{case.name}: differs from the CPU by {error:.1e}")
    plan, _, denoiser = backend._prepared(x, method, level, False)
    source, target = x.reshape(-1), out.reshape(-1)
    work = {
        "denoise": lambda on: denoiser.run(source, target, True, True, on),
        "forward": lambda on: plan.forward(source, on),
        "first forward": lambda on: plan.forward_launch(1, source, on),
        "first inverse": lambda on: plan.inverse_launch(1, target, True, "soft", denoiser._thresholds, on),
        "inverse": lambda on: plan.inverse(target, True, "soft", denoiser._thresholds, on),
        "copy": lambda on: target.copy_to_device(source, stream=on),
    }
    times = {name: events(one, repeats) for name, one in work.items()}
    backend._plans.give_back(plan)
    times["numba"] = walls(on_cpu, LEAST, 1)
    backend.clear()
    return {"rows": case.rows, "columns": case.columns, "level": level, "error": error, **times,
            "share": floor(times["copy"]["median"], level) / times["denoise"]["median"]}  # fmt: skip


def floor(copy: float, level: int) -> float:
    """Time of the least traffic: samples and coefficients read and written once by each level of both transforms."""
    return 2 * copy * sum(0.25**j for j in range(level))


def table(result: dict[str, Any]) -> Sheet:
    """One row a case; GPU times in milliseconds."""
    heads: list[Sequence[str]] = [("section,", "levels"), ("denoise", "ms"), ("share of", "copy speed"),
             ("forward", "ms"), ("inverse", "ms"), ("first level", "both, ms"), ("numba", "CPU, ms")]  # fmt: skip
    rows = []
    for row in result["rows"]:
        both = " + ".join(number(row[f"first {name}"]["median"]) for name in ("forward", "inverse"))
        times = [number(row[name]["median"]) for name in ("forward", "inverse")]
        rows.append([f"{row['rows']} x {row['columns']}, {row['level']}", number(row["denoise"]["median"]),
                     f"{row['share']:.0%}", *times, both, number(row["numba"]["median"])])  # fmt: skip
    where = result["environment"]
    title = (
        f"Universal soft thresholds, {result['wavelet']}, float32, samples in device memory: {where['gpu']}; numba: "
        f"{where['threads']} threads"
    )
    return Sheet(title, heads, rows)


if __name__ == "__main__":
    alone(lambda quick: run(QUICK if quick else CASES), lambda result: table(result).text(120))

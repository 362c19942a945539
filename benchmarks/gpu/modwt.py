"""MODWT denoising on the GPU, data resident there: python -m wavefilt.benchmarks.gpu.modwt [--json FILE]."""

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
from wavefilt.benchmarks.common.measuring import difference, events, signal, walls
from wavefilt.benchmarks.common.tables import Sheet, number, size
from wavefilt.method import Method

LEVEL, REPEATS, TOLERANCE = 8, 25, 1e-5
CASES = ((1, 1 << 16), (1, 1 << 20), (1, 1 << 24), (1, 1 << 26), (4096, 1 << 14))
"""Traces and samples."""
RULES: dict[Any, Any] = {"universal": "global", "bayes": "level"}
"""With the noise of what levels."""
TARGET = ((1, 1 << 20), "universal", 1.0)
"""A case with the milliseconds to stay below."""


def run(cases: Any = CASES, repeats: int = REPEATS) -> dict[str, Any]:
    """Milliseconds of whole calls and of both transforms by the GPU's clock. Raises Mismatch for a wrong result."""
    from wavefilt.backends.cuda.runtime.target import cuda

    backend: Any = backends.get("cuda")
    rows = []
    for traces, samples in cases:
        host = signal(traces, samples)
        x = cuda.to_device(host)
        out = cuda.device_array_like(x)
        row: dict[str, Any] = {"traces": traces, "samples": samples, "level": LEVEL}
        for rule, sigma in RULES.items():
            method = Method("db8", LEVEL, "symmetric", rule, sigma=sigma, transform="modwt")
            call = partial(backend.denoise, x, method, LEVEL, out=out)
            call()
            some = slice(0, min(traces, 16))  # rows are independent, and the CPU takes its time
            expected = wavefilt.denoise(
                host[some], "db8", level=LEVEL, rule=rule, sigma=sigma, transform="modwt", backend="numba",
            )  # fmt: skip
            error = difference(out.copy_to_host()[some], expected)
            if not error <= TOLERANCE:
                raise Mismatch(f"{rule}, {traces} x {samples}: differs from the CPU by {error:.1e}")
            row[rule] = walls(partial(_finished, call), repeats) | {"error": error}
        rows.append(row | _kernels(backend, x, out, repeats))
        backend.clear()
    return {"study": "modwt on a GPU", "date": date.today().isoformat(), "environment": environment(), "rows": rows}


def _kernels(backend: Any, x: Any, out: Any, repeats: int) -> dict[str, Any]:
    """Both transforms by the GPU's clock, and the memory that their plan takes."""
    plan = backend.decompose(x, Method("db8").bank, "symmetric", LEVEL, "modwt").plan
    source, target = x.reshape(-1), out.reshape(-1)
    return {
        "forward": events(lambda on: plan.forward(source, on), repeats),
        "inverse": events(lambda on: plan.inverse(target, "keep", None, on), repeats),
        "bytes": plan.bytes,
    }


def _finished(call: Any) -> None:
    from wavefilt.backends.cuda.runtime.target import cuda

    call()
    cuda.synchronize()


def table(result: dict[str, Any]) -> Sheet:
    """One row a case; times in milliseconds, memory in units of the samples."""
    first: Sequence[str] = ("", "samples")
    heads = [first, *((rule, "ms") for rule in RULES), ("forward", "kernels"), ("inverse", "kernels"),
             ("memory,", "inputs")]  # fmt: skip
    rows = []
    for row in result["rows"]:
        name = size(row["samples"]) if row["traces"] == 1 else f"{row['traces']} x {size(row['samples'])}"
        times = [number(row[key]["median"]) for key in (*RULES, "forward", "inverse")]
        rows.append([name, *times, f"{row['bytes'] / (4 * row['traces'] * row['samples']):.1f}"])
    return Sheet(f"MODWT denoise on the GPU, db8, {LEVEL} levels, float32: {result['environment']['gpu']}", heads, rows)


if __name__ == "__main__":
    alone(lambda quick: run(), lambda result: table(result).text(120))

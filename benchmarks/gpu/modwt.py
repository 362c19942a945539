"""MODWT denoising on the GPU, data resident there: python -m wavefilt.benchmarks.gpu.modwt [-o FILE]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from wavefilt import backends
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import events, signal
from wavefilt.benchmarks.common.tables import Row, Table
from wavefilt.benchmarks.gpu.whole_calls import shape_of, timed
from wavefilt.method import Method
from wavefilt.vocabulary import Rule, Sigma

LEVEL, REPEATS = 8, 25
CASES = ((1, 1 << 16), (1, 1 << 20), (1, 1 << 24), (1, 1 << 26), (4096, 1 << 14))
"""Traces and samples."""
RULES: dict[Rule, Sigma] = {"universal": "global", "bayes": "level"}
"""With the noise of what levels."""


def run(cases: Sequence[tuple[int, int]] = CASES, repeats: int = REPEATS) -> Row:
    """Milliseconds of whole calls and of both transforms by the GPU's clock. Raises Mismatch for a wrong result."""
    from wavefilt.backends.cuda.runtime.target import cuda

    backend: Any = backends.get("cuda")
    rows = []
    for traces, samples in cases:
        host = signal(traces, samples)
        x = cuda.to_device(host)
        out = cuda.device_array_like(x)
        row: Row = {"traces": traces, "samples": samples, "level": LEVEL}
        for rule, sigma in RULES.items():
            options: Row = {"wavelet": "db8", "level": LEVEL, "rule": rule, "sigma": sigma, "transform": "modwt"}
            row[rule] = timed(backend, host, x, out, options, repeats)
        plan = backend.decompose(x, Method(**options).analysis(LEVEL)).plan
        row["forward"] = events(partial(plan.forward, x.reshape(-1)), repeats)
        row["inverse"] = events(partial(plan.inverse, out.reshape(-1)), repeats)
        rows.append(row | {"bytes": plan.bytes})
        backend.clear()
    return result("modwt on a GPU", rows=rows)


def _rows(found: Row) -> Iterator[Row]:
    for row in found["rows"]:
        yield {**row, "name": shape_of(row), "memory": row["bytes"] / (4 * row["traces"] * row["samples"])}


TABLE = Table(
    f"MODWT denoising on the GPU, db8, {LEVEL} levels, float32: {{environment[gpu]}}",
    {
        "|samples": "{name}",
        "universal|ms": "{universal[median]:n}",
        "bayes|ms": "{bayes[median]:n}",
        "forward|kernels": "{forward[median]:n}",
        "inverse|kernels": "{inverse[median]:n}",
        "memory,|inputs": "{memory:.1f}",
    },
    _rows,
)


if __name__ == "__main__":
    main(lambda quick: run(CASES[:2] if quick else CASES), TABLE)

"""Rule js beside bayes on the GPU, data resident there: python -m wavefilt.benchmarks.gpu.local_shrinkage [-o FILE]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from wavefilt import backends
from wavefilt.backends.cuda.runtime.interfaces import Stream
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.measuring import events, signal
from wavefilt.benchmarks.common.tables import Row, Table
from wavefilt.benchmarks.gpu.whole_calls import shape_of, timed
from wavefilt.method import Method

LEVEL, REPEATS = 6, 25
CASES = ((24, 1 << 10), (1, 1 << 20), (1, 1 << 24), (1, 1 << 26), (4096, 1 << 14))
"""Traces and samples."""
MOST = {"dwt": 2.0, "modwt": 5.0}
"""Times that of bayes, to stay below."""


def run(cases: Sequence[tuple[int, int]] = CASES, repeats: int = REPEATS) -> Row:
    """Milliseconds by the GPU's clock and of whole calls. Raises Mismatch for a wrong result."""
    from wavefilt.backends.cuda.runtime.target import cuda

    backend: Any = backends.get("cuda")
    rows = []
    for traces, samples in cases:
        host = signal(traces, samples)
        x = cuda.to_device(host)
        out = cuda.device_array_like(x)
        for transform, most in MOST.items():
            row: Row = {"traces": traces, "samples": samples, "transform": transform, "limit": most}
            for rule in ("bayes", "js"):
                options: Row = {"wavelet": "sym8", "level": LEVEL, "mode": "reflect", "rule": rule}
                options["transform"] = transform
                row[rule] = timed(backend, host, x, out, options, repeats)
                row[rule]["device"] = _launches(backend, Method(**options), x, out, repeats)
                backend.clear()
            rows.append(row)
    return result("js on a GPU", rows=rows)


def _launches(backend: Any, method: Method, x: Any, out: Any, repeats: int) -> dict[str, dict[str, float]]:
    """GPU time of a denoise, and of what js does beside other rules."""
    from wavefilt.backends.cuda.denoiser import Denoiser
    from wavefilt.backends.cuda.plan import Shape
    from wavefilt.backends.cuda.plans import FAMILIES

    rows, samples = x.shape
    shape = Shape.of(method.analysis(LEVEL), "float32", rows, (samples,))
    plan = FAMILIES[shape.transform](shape, backend._options)
    denoiser, source, target = Denoiser(plan, method, False), x.reshape(-1), out.reshape(-1)
    found = {"all": events(partial(denoiser.run, source, target), repeats)}
    if denoiser._trends is not None:
        trends, grids, thresholds = denoiser._trends, denoiser._grids, denoiser._thresholds

        def fit(stream: Stream) -> None:
            trends.removed(source, stream)

        def shrink(stream: Stream) -> None:
            plan.shrunk_together(grids, thresholds, stream)

        found["trend"], found["shrink"] = events(fit, repeats), events(shrink, repeats)
    plan.release()
    return found


def _rows(found: Row) -> Iterator[Row]:
    for row in found["rows"]:
        times = {name: times["median"] for name, times in row["js"]["device"].items()}
        bayes = row["bayes"]["device"]["all"]["median"]
        ratio = times["all"] / bayes
        reached = "yes" if ratio <= row["limit"] else "no"
        yield {
            **row,
            **times,
            "name": f"{row['transform']}, {shape_of(row)}",
            "by": bayes,
            "ratio": ratio,
            "reached": reached,
        }


TABLE = Table(
    f"Rule js on the GPU, sym8, {LEVEL} levels, float32, ms of GPU time: {{environment[gpu]}}",
    {
        "|transform, samples": "{name}",
        "|bayes": "{by:n}",
        "|js": "{all:n}",
        "means,|ms": "{trend:n}",
        "all bands shrunk,|ms": "{shrink:n}",
        "js/bayes,|times": "{ratio:.2f}",
        "|target": "{limit:g}",
        "|reached": "{reached}",
    },
    _rows,
)


if __name__ == "__main__":
    main(lambda quick: run(CASES[:2] if quick else CASES), TABLE)

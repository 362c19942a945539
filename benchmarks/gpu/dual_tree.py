"""Dual-tree wavelets on the GPU, data resident there: python -m wavefilt.benchmarks.gpu.dual_tree [-o FILE]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import wavefilt
from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import events, signal
from wavefilt.benchmarks.common.tables import Row, Table, size
from wavefilt.method import Method

REPEATS, TOLERANCE = 20, 2e-5
COMPARED = 1 << 21
"""Samples up to which the CPU computes what results are compared with; for others it is the GPU in float64."""


@dataclass(frozen=True)
class Case:
    """Float32 samples of a shape, one trace or panel, and the milliseconds of rule js to stay below."""

    shape: tuple[int, ...]
    level: int
    most: float | None = None

    @property
    def name(self) -> str:
        return " x ".join(map(str, self.shape)) if len(self.shape) > 1 else size(self.shape[0])


CASES = (
    Case((1024, 1024), 4),
    Case((240, 4096), 4),
    Case((8192, 8192), 4, 4.0),
    Case((1 << 20,), 6),
    Case((1 << 26,), 6, 1.2),
)
QUICK = CASES[:2]


def run(cases: Sequence[Case] = CASES, repeats: int = REPEATS) -> Row:
    """Milliseconds of GPU time of whole denoises and of their parts. Raises Mismatch for a wrong result."""
    rows = [_measure(backends.get("cuda"), case, rule, repeats) for case in cases for rule in ("js", "bayes")]
    return result("dual tree on a GPU", repeats=repeats, rows=rows)


def _measure(backend: Any, case: Case, rule: str, repeats: int) -> Row:
    from wavefilt.backends.cuda.denoiser import key_of
    from wavefilt.backends.cuda.dual_tree.shrinking import GAINS
    from wavefilt.backends.cuda.plan import Shape, Shrinking
    from wavefilt.backends.cuda.requests import Asked
    from wavefilt.backends.cuda.runtime.target import cuda

    options: Row = {"transform": "dtcwt", "level": case.level, "rule": rule}
    host = signal(case.shape[0] if len(case.shape) > 1 else 1, case.shape[-1]).reshape(1, *case.shape)
    method = Method(dimensions=2 if len(case.shape) > 1 else 1, **options)
    x = cuda.to_device(host)
    out = cuda.device_array_like(x)
    backend.denoise(x, method, case.level, out=out)
    error = agreement(out.copy_to_host(), _expected(backend, host, method, options), TOLERANCE, case.name)
    asked = Asked(Shape.of(method.analysis(case.level), "float32", 1, case.shape), key_of(method, False))
    plan, denoiser = backend._prepared(asked, method, False, 0)
    source, target, thresholds = x.reshape(-1), out.reshape(-1), denoiser._thresholds
    panels, gains, soft = len(case.shape) > 1, plan.gains, Shrinking("soft", thresholds)
    by = soft
    if rule == "js" or panels:
        by = Shrinking(GAINS, details=gains, approximation=None if panels else gains)
    work: dict[str, Callable[[Any], None]] = {
        "denoise": lambda on: denoiser.run(source, target, on),
        "forward": lambda on: plan.forward(source, on),
        "first forward": lambda on: plan.forward_launch(0, source, on),
        "measure": lambda on: denoiser.found.run(denoiser._medians, denoiser._energy, on, denoiser.quick),
        "inverse": lambda on: plan.inverse(target, on, by),
        "first inverse": lambda on: plan.inverse_launch(0, target, on, by),
        "copy": lambda on: target.copy_to_device(source, stream=on),
    }
    if rule == "js":
        work["gains"] = lambda on: plan.shrunk_together(denoiser._grids, thresholds, on)
    elif panels:
        work["gains"] = lambda on: plan.weighed(soft, on)
    times = {name: events(one, repeats) for name, one in work.items()}
    backend._plans.give_back(plan)
    backend.clear()
    return {"name": case.name, "level": case.level, "rule": rule, "most": case.most, "error": error, **times}


def _expected(backend: Any, host: Array, method: Method, options: Row) -> Array:
    if host.size > COMPARED:
        from wavefilt.backends.cuda.runtime.target import cuda

        x = cuda.to_device(host.astype("f8"))
        found = backend.denoise(x, method, options["level"], out=cuda.device_array_like(x))[0].copy_to_host()
        backend.clear()
        return found  # type: ignore[no-any-return]
    axes: Row = {"axes": (1, 2)} if host.ndim == 3 else {}
    return wavefilt.denoise(host, backend="pywavelets", **axes, **options)  # type: ignore[no-any-return]


def _rows(found: Row) -> Iterator[Row]:
    for row in found["rows"]:
        least = row["most"] if row["rule"] == "js" else None
        reached = "" if least is None else "yes" if row["denoise"]["median"] <= least else "no"
        gains = f"{row['gains']['median']:.3g}" if "gains" in row else ""
        yield {**row, "limit": "" if least is None else f"{least:g}", "reached": reached, "shrink": gains}


TABLE = Table(
    "Dual-tree wavelets near_sym_b,qshift_b, float32, samples in device memory, ms of GPU time: {environment[gpu]}",
    {
        "samples,|levels": "{name}, {level}",
        "|rule": "{rule}",
        "|denoise": "{denoise[median]:n}",
        "|target": "{limit}",
        "|reached": "{reached}",
        "|forward": "{forward[median]:n}",
        "first launch|both ways": "{first forward[median]:n} + {first inverse[median]:n}",
        "noise,|energy": "{measure[median]:n}",
        "|gains": "{shrink}",
        "|inverse": "{inverse[median]:n}",
        "|copy": "{copy[median]:n}",
    },
    _rows,
)


if __name__ == "__main__":
    main(lambda quick: run(QUICK if quick else CASES), TABLE)

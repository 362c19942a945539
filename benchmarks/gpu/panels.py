"""Two dimensions on the GPU, data there already: python -m wavefilt.benchmarks.gpu.panels [--quick] [-o FILE]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from wavefilt import backends
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import events, walls
from wavefilt.benchmarks.common.tables import Row, Table
from wavefilt.benchmarks.cpu.panels import TOLERANCE, WAVELET, Case, noisy, own_denoise
from wavefilt.method import Method

REPEATS, LEAST = 25, 3
CASES = (Case(8192, 8192), Case(4096, 4096), Case(1024, 1024), Case(240, 4096))
QUICK = (Case(512, 512),)


def run(cases: Sequence[Case] = CASES, repeats: int = REPEATS) -> Row:
    """Milliseconds of GPU time of whole denoises and of their parts. Raises Mismatch for a wrong result."""
    rows = [_measure(backends.get("cuda"), case, repeats) for case in cases]
    return result("sections on a GPU", wavelet=WAVELET, repeats=repeats, rows=rows)


def _measure(backend: Any, case: Case, repeats: int) -> Row:
    from wavefilt.backends.cuda.denoiser import key_of
    from wavefilt.backends.cuda.plan import Shape, Shrinking
    from wavefilt.backends.cuda.requests import Asked
    from wavefilt.backends.cuda.runtime.target import cuda

    host, level = noisy(case), case.level
    method = Method(WAVELET, level, dimensions=2, rule="universal", sigma="global")
    x = cuda.to_device(host.reshape(1, *host.shape))  # numba-cuda walks an axis added by None element by element
    out = cuda.device_array_like(x)
    call = partial(backend.denoise, x, method, level, out=out)
    call()
    on_cpu = partial(own_denoise, host, level)
    error = agreement(out.copy_to_host()[0], on_cpu(), TOLERANCE, case.name)
    asked = Asked(Shape.of(method.analysis(level), "float32", 1, tuple(host.shape)), key_of(method, False))
    plan, denoiser = backend._prepared(asked, method, False, 0)
    source, target, soft = x.reshape(-1), out.reshape(-1), Shrinking("soft", denoiser._thresholds)
    work: dict[str, Callable[[Any], None]] = {
        "denoise": lambda on: denoiser.run(source, target, on),
        "forward": partial(plan.forward, source),
        "first forward": partial(plan.forward_launch, 0, source),
        "first inverse": lambda on: plan.inverse_launch(0, target, on, soft),
        "inverse": lambda on: plan.inverse(target, on, soft),
        "copy": lambda on: target.copy_to_device(source, stream=on),
    }
    times = {name: events(one, repeats) for name, one in work.items()}
    backend._plans.give_back(plan)
    times["numba"] = walls(on_cpu, LEAST, 1)
    backend.clear()
    share = floor(times["copy"]["median"], level) / times["denoise"]["median"]
    return {"rows": case.rows, "columns": case.columns, "level": level, "error": error, **times, "share": share}


def floor(copy: float, level: int) -> float:
    """Time of the least traffic: samples and coefficients read and written once by each level of both transforms."""
    return 2 * copy * sum(0.25**j for j in range(level))


TABLE = Table(
    "Universal soft thresholds, {wavelet}, float32, samples in device memory: {environment[gpu]}; numba: "
    "{environment[threads]} threads",
    {
        "panel,|levels": "{rows} x {columns}, {level}",
        "denoise|ms": "{denoise[median]:n}",
        "share of|copy speed": "{share:.0%}",
        "forward|ms": "{forward[median]:n}",
        "inverse|ms": "{inverse[median]:n}",
        "first level|both, ms": "{first forward[median]:n} + {first inverse[median]:n}",
        "numba|CPU, ms": "{numba[median]:n}",
    },
)


if __name__ == "__main__":
    main(lambda quick: run(QUICK if quick else CASES), TABLE)

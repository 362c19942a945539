"""The SKE model of CUDA kernels."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from .commands import command, split
from .running import Cases, area, sweep


@area
def ske() -> Cases:
    """Estimates of kernels."""
    from wavefilt import ske

    def kernel(number: int) -> Any:
        counts = {name: i + number for i, name in enumerate(ske.INSTRUCTIONS)}
        work = ske.computation(counts), ske.communication(dict.fromkeys(ske.MEMORIES, number), number)
        return ske.Kernel(*work, barriers=number, registers=10 * number, shared=8 * number)

    for name in ("CAPABILITIES", "DEVICES", "INSTRUCTIONS", "MEMORIES"):
        yield name, partial(getattr, ske, name)
    resident = partial(sweep, "occupancy", ske.occupancy, device=[*ske.CAPABILITIES, "9.1"])
    yield from resident(threads=[0, 32, 100, 1024, 2048], registers=[0, 40, 255], shared=[0, 5000, 60_000])
    two = {n: kernel(n) for n in (1, 5)}
    hidings = ["product", "separate", "swapped"]
    estimates = partial(sweep, "estimate", ske.estimate, kernel=two, device=[*ske.DEVICES, "G80"])
    yield from estimates(threads=[32, 96, 256, 2000], blocks=[1, 4096], hiding=hidings, correction=[None, 1, 2, 3])
    yield from sweep("constraints", ske.constraints, kernel=two, device=ske.DEVICES, threads=[64, 4096], blocks=[1, 9])
    yield from sweep("optimise", ske.optimise, kernel=two, device=ske.DEVICES, grid=[(640, 480), (5, 3), (1000, 1)])
    yield from sweep("shapes", ske.shapes, kernel=two, device=ske.DEVICES, grid=[(640, 480), (5, 3)])
    shared = partial(ske.threads_by_shared, shared=1156)
    yield from sweep("shared", shared, device=ske.DEVICES, mode=["per_sm", "total"])
    problems = itertools.product(("4Ki", "1Mi", "64Mi"), ("haar", "db4", "db8", "coif3"), (1, 16))
    lines = [f"estimate --samples {n} -w {w} --rows {r} --device h200 -o e.json" for n, w, r in problems]
    lines += [f"tune --samples {n} --device h200 --no-measure -o t.json" for n in ("64Ki", "16Mi")]
    corrections = ("", "--correction 1", "--correction 2")
    lines += [f"reproduce --hiding {h} {c} -o r.json" for h in hidings for c in corrections]
    lines += split("""
        estimate --samples 1Mi --block 128 --tile 2048 --level 3 --device h200 | estimate --samples 1Mi --device v1
        | occupancy --device 9.0 --threads 256 --registers 40 | occupancy --device G80 --threads 64 --json | tune
        | occupancy --device 8.6 --threads 2048 | estimate --samples 5x --device h200 | reproduce --plot r.png""")
    to = "-o" if hasattr(ske, "DataSheet") else "--json"  # that of 0.1.0
    yield from ((f"command/{line}", partial(command, f"ske {line}".replace(" -o ", f" {to} "))) for line in lines)

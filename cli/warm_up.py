"""`wavefilt backends` and `wavefilt warm-up`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import click

from . import Failure, message, progress
from .options import as_json

if TYPE_CHECKING:
    from wavefilt.backends.numba_cpu.processes import Task

COMPILED = ("numba", "cuda")
DTYPES = ("float32", "float64")
CALLS: dict[str, list[dict[str, Any]]] = {"numba": [], "cuda": [{}]}
"""Options of `denoise` that compile the kernels of the defaults; for numba, the kernels are listed instead."""
ALL_CALLS: dict[str, list[dict[str, Any]]] = {
    "numba": [{"rule": "js"}],
    "cuda": [
        {},
        {"rule": "universal"},
        {"rule": "sure"},
        {"rule": "js"},
        {"transform": "modwt"},
        {"rule": "js", "transform": "modwt"},
        {"axes": (-2, -1)},
    ],
}
"""Options of `denoise` that compile all kernels."""


@click.command("backends")
@as_json
def backends(as_json: bool) -> None:
    """List the backends: which can run here, and what the others need."""
    from wavefilt import backends

    state = {name: (not isinstance(line, Exception), str(line)) for name, line in backends.available().items()}
    if as_json:
        click.echo(json.dumps({name: {"usable": usable, "detail": line} for name, (usable, line) in state.items()}))
        return
    for name, (usable, line) in state.items():
        click.echo(f"{name:12} {'usable' if usable else 'missing':8} {line}")


@click.command("warm-up", epilog="Example, in a Dockerfile: RUN wavefilt warm-up --all")
@click.option(
    "--backend",
    type=click.Choice([*COMPILED, "all"]),
    default="numba",
    help="Backend of the kernels; all: every backend that can run here.",
)
@click.option(
    "--dtype", "dtypes", type=click.Choice(DTYPES), multiple=True, help="Type of samples; repeatable. [default: both]"
)
@click.option("--all", "everything", is_flag=True, help="All transforms and rules, not only the defaults of denoise.")
@as_json
def warm_up(backend: str, dtypes: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Compile the kernels now, so that no later run has to: on a new machine, or in a container image.

    They are stored in a cache on disk: next to the package if that folder can be written to, otherwise in the cache
    folder of the user, or in the folder that NUMBA_CACHE_DIR names. Kernels are compiled for this processor; another
    one compiles its own. For a GPU, the kernels of the wavelet db8 are compiled.
    """
    from wavefilt.errors import BackendUnavailable

    chosen = tuple(dict.fromkeys(dtypes)) or DTYPES
    results = {}
    for name in COMPILED if backend == "all" else (backend,):
        try:
            results[name] = _compiled(name, chosen, everything)
        except BackendUnavailable as error:
            if backend != "all":
                raise Failure(message(error), 5) from error
    if not results:
        raise Failure("no backend that compiles kernels can run here; see wavefilt backends", 5)
    if as_json:
        click.echo(json.dumps(results))
        return
    for name, facts in results.items():
        before = (
            f"{facts['compiled_before']} of them compiled before" if facts["compiled_before"] else "all compiled now"
        )
        click.echo(f"{name}: {facts['steps']} steps, {before}; {facts['seconds']:.1f} s")


def _compiled(backend: str, dtypes: tuple[str, ...], everything: bool) -> dict[str, float]:
    """Compile kernels; return the number of steps, the number of kernels compiled before, and the seconds.

    Raises BackendUnavailable if the backend cannot run here.
    """
    import numpy as np

    from wavefilt import backends, denoise

    backends.get(backend)
    calls = [(options, dtype) for options in (ALL_CALLS if everything else CALLS)[backend] for dtype in dtypes]
    kernels: list[Task] = []
    if backend == "numba":
        from wavefilt.backends.numba_cpu import entries

        kernels = [
            (kernel, np.dtype(dtype))
            for kernel in (entries.ALL if everything else (*entries.TRANSFORMS["dwt"], *entries.LONG))
            for dtype in dtypes
        ]
    count, start, before = len(kernels) + len(calls), time.perf_counter(), 0
    with progress.bar(backend, total=count) if progress.shown() else nullcontext() as bar:

        def advance(done: int) -> None:
            if bar is not None:
                bar.update(done - bar.n)

        if kernels:
            before = _compile_for_cpu(kernels, advance)
        if backend == "cuda":
            _compile_for_gpu([options for options, dtype in calls if dtype == dtypes[0]], dtypes, advance)
        for done, (options, dtype) in enumerate(calls, len(kernels)):
            advance(done)
            denoise(np.random.default_rng(0).standard_normal((64, 512)).astype(dtype), backend=backend, **options)
        advance(count)
    return {"steps": count, "compiled_before": before, "seconds": time.perf_counter() - start}


def _compile_for_cpu(kernels: list[Task], advance: Callable[[int], None]) -> int:
    """Compile kernels in several processes; return how many had been compiled before."""
    from wavefilt.backends.numba_cpu import native

    missing = [task for task in kernels if not native.cached(task)]
    before = len(kernels) - len(missing)
    native.compiled(missing, lambda done: advance(before + done))
    return before


def _compile_for_gpu(calls: list[dict[str, Any]], dtypes: tuple[str, ...], advance: Callable[[int], None]) -> None:
    """Compile the kernels of calls in several processes; if that fails, the calls compile them."""
    from wavefilt.backends.cuda import warming

    methods = [{"ndim": 2} if "axes" in options else options for options in calls]
    with suppress(RuntimeError, OSError):
        warming.warm_up(methods, list(dtypes), advance=lambda: advance(0))

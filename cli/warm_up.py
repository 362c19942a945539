"""`wavefilt warm-up`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from . import progress
from .failure import Failure
from .options import as_json

if TYPE_CHECKING:
    from tqdm import tqdm

    from wavefilt.backends.numba_cpu.processes import Task

Options: TypeAlias = dict[str, Any]
BACKENDS = ("numba", "cuda")
DTYPES = ("float32", "float64")
CALLS: dict[str, list[Options]] = {"numba": [], "cuda": [{}]}
"""Options of `denoise` by which a backend compiles what the defaults need; numba has a list of kernels instead."""
ALL_CALLS: dict[str, list[Options]] = {
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
"""The same for everything."""


@dataclass(frozen=True)
class Plan:
    """What a backend compiles: kernels of numba, and calls of `denoise` with their dtypes."""

    backend: str
    kernels: list[Task]
    calls: list[tuple[Options, str]]

    @property
    def size(self) -> int:
        return len(self.kernels) + len(self.calls)


def plan(backend: str, dtypes: tuple[str, ...], everything: bool) -> Plan:
    """Kernels and calls for these dtypes. Raises BackendUnavailable if the backend cannot run here."""
    import numpy as np

    from wavefilt import backends

    backends.get(backend)
    kernels: list[Task] = []
    if backend == "numba":
        from wavefilt.backends.numba_cpu import entries

        chosen = entries.ALL if everything else (*entries.TRANSFORMS["dwt"], *entries.LONG)
        kernels = [(kernel, np.dtype(dtype)) for kernel in chosen for dtype in dtypes]
    options = (ALL_CALLS if everything else CALLS)[backend]
    return Plan(backend, kernels, [(own, dtype) for own in options for dtype in dtypes])


def compile_kernels(of: Plan, advance: Callable[[int], None]) -> dict[str, float]:
    """How many steps of the plan were done, how many of the kernels had been compiled before, and the seconds."""
    import numpy as np

    from wavefilt import denoise

    began, before = time.perf_counter(), 0
    if of.kernels:
        from wavefilt.backends.numba_cpu import native

        missing = [task for task in of.kernels if not native.cached(task)]
        before = len(of.kernels) - len(missing)
        native.compiled(missing, lambda done: advance(before + done))
    if of.backend == "cuda":
        from wavefilt.backends.cuda import warming

        dtypes = list(dict.fromkeys(dtype for _, dtype in of.calls))
        methods = [{"dimensions": 2} if "axes" in own else own for own, dtype in of.calls if dtype == dtypes[0]]
        with suppress(RuntimeError, OSError):  # several processes compile, the calls load; if not, these compile
            warming.warm_up(methods, dtypes, advance=lambda: advance(0))
    for done, (options, dtype) in enumerate(of.calls, len(of.kernels)):
        advance(done)
        denoise(np.random.default_rng(0).standard_normal((64, 512)).astype(dtype), backend=of.backend, **options)
    advance(of.size)
    return {"steps": of.size, "compiled_before": before, "seconds": time.perf_counter() - began}


@click.command("warm-up", epilog="Example, in a Dockerfile: RUN wavefilt warm-up --all")
@click.option(
    "--backend",
    type=click.Choice([*BACKENDS, "all"]),
    default="numba",
    help="Whose kernels; all: of those that run here.",
)
@click.option(
    "--dtype", "dtypes", type=click.Choice(DTYPES), multiple=True, help="Of the samples; repeatable. [default: both]"
)
@click.option("--all", "everything", is_flag=True, help="All transforms and rules, not only the defaults of denoise.")
@as_json
def command(backend: str, dtypes: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Compile the kernels now, so that no later run has to: on a new machine, or in a container image.

    They go to the cache on disk: next to the package where that can be written to, else in the cache folder of the
    user, or where NUMBA_CACHE_DIR says. Kernels suit this processor; of another one they are compiled again. On a GPU,
    the kernels of the filter db8.
    """
    from wavefilt.errors import BackendUnavailable, for_command

    plans = []
    for name in BACKENDS if backend == "all" else (backend,):
        try:
            plans.append(plan(name, tuple(dict.fromkeys(dtypes)) or DTYPES, everything))
        except BackendUnavailable as error:
            if backend != "all":
                raise Failure(for_command(error), 5) from error
    if not plans:
        raise Failure("no backend that compiles kernels can run here; see wavefilt backends", 5)
    results = {}
    for each in plans:
        shown = progress.shown(quiet=False)
        with progress.bar(each.backend, total=each.size) if shown else nullcontext() as bar:
            results[each.backend] = compile_kernels(each, lambda done, bar=bar: _draw(bar, done))  # type: ignore[misc]
    if as_json:
        click.echo(json.dumps(results))
        return
    for name, found in results.items():
        before = (
            f"{found['compiled_before']} of them compiled before" if found["compiled_before"] else "all compiled now"
        )
        click.echo(f"{name}: {found['steps']} steps, {before}; {found['seconds']:.1f} s")


def _draw(bar: tqdm[object] | None, done: int) -> None:
    if bar is not None:
        bar.update(done - bar.n)

"""`wavefilt backends` and `wavefilt warm-up`."""

from __future__ import annotations

import json
import time
from itertools import product
from typing import Any

import click

from . import Failure, run_errors
from .options import as_json
from .progress import bar

COMPILED = ("numba", "cuda")
DTYPES = ("float32", "float64")
ON_A_GPU: list[dict[str, Any]] = [
    {},
    {"rule": "universal"},
    {"rule": "sure"},
    {"rule": "js"},
    {"transform": "modwt"},
    {"rule": "js", "transform": "modwt"},
    {"ndim": 2},
]
"""Options that compile all kernels for a GPU; the first ones are the defaults."""
SHAPES_ON_A_GPU: dict[int, list[tuple[int, ...]]] = {
    1: [(1, 1 << 16), (1, 1 << 20), (1, 1 << 24), (24, 1024), (240, 1 << 13), (64, 1 << 14), (4096, 1 << 14)],
    2: [(1, 512, 512)],
}
"""Arrays of traces and of sections whose kernels have blocks and tiles of all sizes that are chosen."""


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
@click.option("--all", "everything", is_flag=True, help="All transforms and rules, not only the defaults.")
def warm_up(backend: str, everything: bool) -> None:
    """Compile the kernels now, so that no later run has to: on a new machine, or in a container image.

    They are stored in a cache on disk: next to the package if that folder can be written to, otherwise in the cache
    folder of the user, or in the folder that NUMBA_CACHE_DIR names. Kernels are compiled for this processor; another
    one compiles its own. For a GPU, the kernels of the wavelet db8 are compiled.
    """
    from wavefilt import backends

    names = [backend]
    if backend == "all":
        names = [name for name, line in backends.available().items() if name in COMPILED and isinstance(line, str)]
    if not names:
        raise Failure("no backend that compiles kernels can run here; see wavefilt backends", 5)
    for name in names:
        start = time.perf_counter()
        with run_errors("warm-up"):
            backends.get(name)
            done = _for_cpu(everything) if name == "numba" else _for_gpu(everything)
        click.echo(f"{name}: {done}, {time.perf_counter() - start:.1f} s")


def _for_cpu(everything: bool) -> str:
    """Compile kernels in several processes; return how many were compiled now and before."""
    import numpy as np

    from wavefilt.backends.numba_cpu import entries, native

    usual = (*entries.TRANSFORMS["dwt"], *entries.TRANSFORMS["modwt"], *entries.LONG)
    kernels = entries.ALL if everything else usual
    tasks = [(kernel, np.dtype(dtype)) for kernel, dtype in product(dict.fromkeys(kernels), DTYPES)]
    missing = [task for task in tasks if not native.cached(task)]
    with bar("numba", total=len(missing)) as drawn:
        native.compiled(missing, lambda done: drawn.update(done - drawn.n) and None)
    if not all(map(native.cached, missing)):
        raise Failure("warm-up: the kernels cannot be stored: no cache folder is writable and has room", 1)
    return f"{len(missing)} kernels compiled, {len(tasks) - len(missing)} compiled before"


def _for_gpu(everything: bool) -> str:
    """Compile the kernels that `denoise` launches on the current GPU; they go to the cache on disk."""
    import numpy as np

    from wavefilt.backends.cuda import Cuda
    from wavefilt.options import Options

    backend = Cuda()
    for given, dtype in product(ON_A_GPU if everything else ON_A_GPU[:1], DTYPES):
        options = Options(**given)
        for shape in SHAPES_ON_A_GPU[options.ndim]:
            backend.denoise(np.zeros(shape, dtype), options, options.level_for(*shape[1:]))
    backend.clear()
    return "kernels compiled"

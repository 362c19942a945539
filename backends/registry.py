"""The registry of backends: names, what is available here, and the choice of ``backend="auto"``.

A backend's module is imported when it is first asked for, never with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, cast

from wavefilt import stages, threads
from wavefilt.arrays import on_gpu
from wavefilt.backends.crossover import cuda_crossover, numba_crossover
from wavefilt.backends.interface import Backend, DeviceBackend, accelerates
from wavefilt.errors import BackendUnavailable
from wavefilt.registry import Registry
from wavefilt.transforms import Analysis
from wavefilt.vocabulary import check

REFERENCE = "pywavelets"


def _pywavelets() -> Backend:
    from wavefilt.backends.reference.backend import PyWavelets

    return PyWavelets()


def _numba() -> Backend:
    try:
        return threads.load(lambda: import_module("wavefilt.backends.numba_cpu")).NumbaCPU()  # type: ignore[no-any-return]
    except ImportError as error:
        raise BackendUnavailable(f"backend 'numba' needs numba ({error}): pip install numba") from error


def _cuda(**options: Any) -> Backend:
    with stages.stage("starting the GPU"):
        from wavefilt.backends.cuda import Cuda, Several

        return Several(**options) if "devices" in options else Cuda(**options)


BACKENDS: Registry[Callable[..., Backend]] = Registry(
    "backend", {REFERENCE: _pywavelets, "numba": _numba, "cuda": _cuda}
)
"""What makes each backend, the reference first: called with its own options, it raises BackendUnavailable."""


def names() -> list[str]:
    """Names of the backends that may be asked for, the reference first."""
    return BACKENDS.names()


def check_name(backend: object) -> None:
    """Raise ValueError unless this is "auto", the name of a backend, or a backend itself."""
    if isinstance(backend, str) and backend != "auto" and backend not in BACKENDS:
        check("backend", backend, ["auto", *names()])


def get(name: str, **options: Any) -> Backend:
    """The backend of this name; ``options`` are its own, for "cuda" ``fastmath=True`` and ``devices="all"`` or numbers.

    Raises ValueError for an unknown name or GPU, and BackendUnavailable, with what to install, for a backend that
    cannot run.
    """
    BACKENDS.check(name)
    return _made(name, **{key: tuple(value) if isinstance(value, list) else value for key, value in options.items()})


@cache
def _made(name: str, **options: Any) -> Backend:
    return BACKENDS[name](**options)


def name_of(backend: str | Backend) -> str | None:
    """The name by which `get` gives this backend for arrays in host memory; None for other objects."""
    if isinstance(backend, str):
        return backend
    if backend.device or backend.name not in BACKENDS:
        return None
    with suppress(BackendUnavailable):
        return backend.name if get(backend.name) is backend else None
    return None


def home(x: Any) -> DeviceBackend | None:
    """The backend on whose device an array lives; None for host memory.

    Raises BackendUnavailable if that backend cannot run here.
    """
    return cast(DeviceBackend, _made("cuda")) if on_gpu(x) else None


def available() -> dict[str, str | BackendUnavailable]:
    """For each backend, one line describing it, or the error that says why it cannot run here."""
    state: dict[str, str | BackendUnavailable] = {}
    for name in names():
        try:
            state[name] = get(name).describe()
        except BackendUnavailable as error:
            state[name] = error
    return state


def choose(
    backend: str | Backend,
    dtype: str,
    shape: tuple[int, ...],
    analysis: Analysis,
    denoising: bool = False,
    on_host: bool = False,
) -> Backend:
    """The backend for a batch of this shape (batch, *shape) and dtype, and this transform.

    One named by the user (or given as an object) is never replaced by another, but where it does not compute the
    dtype, transform or mode, which only the reference does. ``"auto"`` takes the fastest one for this shape: see
    `numba_crossover`, and `cuda_crossover`, which is about ``denoising`` whole traces, not about coefficients that
    would have to come back. Where only backends in host memory do what is needed, ``on_host``, one with memory of its
    own is replaced by the fastest of them.
    """
    if on_host and backend != "auto" and (get(backend) if isinstance(backend, str) else backend).device:
        backend = "auto"
    if not isinstance(backend, str):
        return backend if accelerates(backend, dtype, analysis) else get(REFERENCE)
    check_name(backend)
    if backend != "auto":
        chosen = get(backend)
        return chosen if accelerates(chosen, dtype, analysis) else get(REFERENCE)
    for name, faster in (
        ("cuda", denoising and not on_host and cuda_crossover.faster(shape, analysis, dtype)),
        ("numba", numba_crossover.faster(shape, analysis, dtype)),
    ):
        if faster:
            with suppress(BackendUnavailable, MemoryError):
                chosen = get(name)
                if accelerates(chosen, dtype, analysis) and (name != "numba" or _ready(shape, analysis, dtype)):
                    return chosen
    return get(REFERENCE)


def _ready(shape: tuple[int, ...], analysis: Analysis, dtype: str) -> bool:
    """Whether numba's kernels are compiled, or worth the seconds that this takes."""
    from wavefilt.backends.numba_cpu import backend as numba_cpu

    name = analysis.transform.name
    if not (numba_crossover.worth_compiling(shape, analysis, dtype) or numba_cpu.compiled(name, dtype)):
        return False
    numba_cpu.load(name, dtype)  # here, where the next backend is tried if this fails
    return True

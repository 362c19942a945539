"""The backends by name, those available here, and the choice of ``backend="auto"``.

A backend's module is imported when the backend is first used, never with the package.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, cast

from wavefilt import threads
from wavefilt.arrays import on_gpu
from wavefilt.backends.crossover import cuda_crossover, numba_crossover
from wavefilt.backends.interface import Backend, DeviceBackend, accelerates
from wavefilt.errors import BackendUnavailable
from wavefilt.transforms import Analysis
from wavefilt.vocabulary import check

logger = logging.getLogger(__name__)
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
    logger.info("starting the GPU")
    from wavefilt.backends.cuda import Cuda, Several

    return Several(**options) if "devices" in options else Cuda(**options)


BACKENDS: dict[str, Callable[..., Backend]] = {REFERENCE: _pywavelets, "numba": _numba, "cuda": _cuda}
"""The function that makes each backend from its own options, or raises BackendUnavailable; the reference is first."""


def names() -> list[str]:
    """Return the names of all backends, the reference first."""
    return list(BACKENDS)


def check_name(backend: object) -> None:
    """Raise ValueError unless this is "auto", the name of a backend, or a backend object."""
    if isinstance(backend, str) and backend != "auto":
        check("backend", backend, ["auto", *BACKENDS])


def get(name: str, **options: Any) -> Backend:
    """Return the backend of this name with its own ``options``: "cuda" has ``fastmath`` and ``devices``.

    Raises ValueError for an unknown name or GPU, and BackendUnavailable, with the package to install, for a backend
    that cannot run.
    """
    if name not in BACKENDS:
        check("backend", name, BACKENDS)
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    return _made(BACKENDS[name], **values)


@cache
def _made(make: Callable[..., Backend], **options: Any) -> Backend:
    return make(**options)


def name_of(backend: str | Backend) -> str | None:
    """Return the name with which `get` returns this backend for arrays in host memory; None for other objects."""
    if isinstance(backend, str):
        return backend
    if backend.device or backend.name not in BACKENDS:
        return None
    with suppress(BackendUnavailable):
        return backend.name if get(backend.name) is backend else None
    return None


def home(x: Any) -> DeviceBackend | None:
    """Return the backend of the device that holds an array; None for host memory.

    Raises BackendUnavailable if that backend cannot run here.
    """
    return cast(DeviceBackend, get("cuda")) if on_gpu(x) else None


def available() -> dict[str, str | BackendUnavailable]:
    """Return one line describing each backend, or the error that says why it cannot run here."""
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
    """Return the backend for a batch of this shape (batch, *shape) and dtype, and this transform.

    A backend that the user named, or gave as an object, is replaced only where it does not support the dtype, transform
    or mode, by the reference. ``"auto"`` selects the fastest backend for this shape: see `numba_crossover`, and
    `cuda_crossover`, which applies to ``denoising`` whole traces only. With ``on_host`` a backend with memory of its
    own is replaced by the fastest one in host memory.
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
    """Return whether numba's kernels are compiled, or worth the seconds to compile them."""
    from wavefilt.backends.numba_cpu import backend as numba_cpu

    name = analysis.transform.name
    if not (numba_crossover.worth_compiling(shape, analysis, dtype) or numba_cpu.compiled(name, dtype)):
        return False
    numba_cpu.load(name, dtype)  # here, where the next backend is tried if this fails
    return True

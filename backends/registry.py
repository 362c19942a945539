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
from wavefilt.arrays import Array, on_gpu, take
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


@cache
def _announce_search() -> None:
    """Say once that a GPU is being looked for, which may take seconds."""
    logger.info("looking for a GPU")


def _cuda(**options: Any) -> Backend:
    _announce_search()
    from wavefilt.backends.cuda import Cuda, Several

    return Several(**options) if "devices" in options else Cuda(**options)


BACKENDS: dict[str, Callable[..., Backend]] = {REFERENCE: _pywavelets, "numba": _numba, "cuda": _cuda}
"""The function that makes each backend from its own options, or raises BackendUnavailable; the reference is first."""


def names() -> list[str]:
    """Return the names of all backends, the reference first."""
    return list(BACKENDS)


def check_name(backend: object) -> None:
    """Raise ValueError for an unknown name, and TypeError for an object that is no backend."""
    if not isinstance(backend, str):
        if not hasattr(backend, "decompose"):
            raise TypeError(f"`backend` must be a name or a backend, not {backend!r}")
    elif backend != "auto":
        check("backend", backend, ["auto", *BACKENDS])


def get(name: str, **options: Any) -> Backend:
    """Return the backend of this name with its own ``options``: "cuda" has ``padding``, ``fastmath`` and ``devices``.

    Raises ValueError for an unknown name or GPU, TypeError for another option, and BackendUnavailable, with the package
    to install, for a backend that cannot run.
    """
    if name not in BACKENDS:
        check("backend", name, BACKENDS)
    if not options:
        return _made(BACKENDS[name])
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    return _made(BACKENDS[name], **values)


@cache
def _made(make: Callable[..., Backend], **options: Any) -> Backend:
    return make(**options)


def home(x: Any) -> DeviceBackend | None:
    """Return the backend of the device that holds an array; None for host memory.

    Raises BackendUnavailable if that backend cannot run here.
    """
    return cast(DeviceBackend, get("cuda")) if on_gpu(x) else None


def host_rows(x: Any, *axes: int) -> Array:
    """Return an array of any library as rows in host memory: see `wavefilt.arrays.take`."""
    device = home(x)
    return take(x, *axes).rows if device is None else device.to_host(device.take(x, *axes).rows)


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
    or mode: by the reference, and a backend with memory of its own by the fastest one in host memory. The latter is
    also replaced with ``on_host``. ``"auto"`` selects the fastest backend for this shape: see `numba_crossover`, and
    `cuda_crossover`, which applies to ``denoising`` whole traces only.
    """
    if isinstance(backend, str):
        if backend == "auto":
            return _fastest(dtype, shape, analysis, denoising and not on_host)
        if backend not in BACKENDS:
            check_name(backend)  # whose message names "auto" too
        backend = get(backend)
    else:
        check_name(backend)
    if accelerates(backend, dtype, analysis) and not (on_host and backend.device):
        return backend
    return _fastest(dtype, shape, analysis, False) if backend.device else get(REFERENCE)


def _fastest(dtype: str, shape: tuple[int, ...], analysis: Analysis, on_device: bool) -> Backend:
    """Return the backend that ``"auto"`` selects, which computes on a device only if ``on_device``."""
    if on_device and cuda_crossover.faster(shape, analysis, dtype):
        with suppress(BackendUnavailable, MemoryError):
            cuda = get("cuda")
            if accelerates(cuda, dtype, analysis):
                return cuda
    if numba_crossover.faster(shape, analysis, dtype):
        try:
            numba = get("numba")
            if accelerates(numba, dtype, analysis) and _ready(shape, analysis, dtype):
                return numba
        except (BackendUnavailable, MemoryError):
            pass
    return get(REFERENCE)


@cache
def _suggest_warm_up() -> None:
    """Say once that kernels can be compiled ahead."""
    logger.warning("`wavefilt warm-up`, run once, compiles kernels that make such a call seconds faster")


def _ready(shape: tuple[int, ...], analysis: Analysis, dtype: str) -> bool:
    """Return whether numba's kernels are compiled, or worth the seconds to compile them."""
    if numba_crossover.in_use(analysis, dtype):
        return True
    from wavefilt.backends.numba_cpu import backend as numba_cpu

    name = analysis.transform.name
    if not (numba_crossover.worth_compiling(shape, analysis) or numba_cpu.compiled(name, dtype)):
        if numba_crossover.slow(shape, analysis):
            _suggest_warm_up()
        return False
    numba_cpu.load(name, dtype)  # here, where the next backend is tried if this fails
    return True

"""The registry of backends: names, what is available here, and the choice of ``backend="auto"``.

A backend's module is imported when it is first asked for, never with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from math import prod
from typing import Any, cast

from wavefilt.backends.crossover import cuda_crossover, numba_crossover
from wavefilt.errors import BackendUnavailable
from wavefilt.statistics.interface import Measured, Statistics
from wavefilt.vocabulary import check

from .interface import Backend, Backend2, DeviceBackend, Pyramid, Pyramid2

__all__ = ["Backend", "Backend2", "DeviceBackend", "Measured", "Pyramid", "Pyramid2", "Statistics", "available",
           "choose", "choose2", "get", "home", "names", "on_gpu"]  # fmt: skip

DLPACK_CUDA = 2
"""DLPack's number for memory of a CUDA device."""


def _pywavelets() -> Backend:
    from wavefilt.backends.reference.backend import PyWavelets

    return PyWavelets()


def _numba() -> Backend:
    try:
        from .numba_cpu import NumbaCPU
    except ImportError as error:
        raise BackendUnavailable(f"backend 'numba' needs numba ({error}): pip install numba") from error
    return NumbaCPU()


def _cuda(**options: Any) -> Backend:
    from .cuda import Cuda, Several

    return Several(**options) if "devices" in options else Cuda(**options)


_LOADERS: dict[str, Callable[..., Backend]] = {"pywavelets": _pywavelets, "numba": _numba, "cuda": _cuda}


def names() -> list[str]:
    """Names of the backends that may be asked for, the reference first."""
    return list(_LOADERS)


def get(name: str, **options: Any) -> Backend:
    """The backend of this name; ``options`` are its own, for "cuda" ``fastmath=True`` and ``devices="all"`` or numbers.

    Raises ValueError for an unknown name or GPU, and BackendUnavailable, with what to install, for a backend that
    cannot run.
    """
    check("backend", name, names())
    return _made(name, **{key: tuple(value) if isinstance(value, list) else value for key, value in options.items()})


@cache
def _made(name: str, **options: Any) -> Backend:
    return _LOADERS[name](**options)


def on_gpu(x: Any) -> bool:
    """Whether an array lives in the memory of a CUDA device."""
    found = hasattr(x, "__cuda_array_interface__")
    if not found and hasattr(x, "__dlpack_device__"):
        found = x.__dlpack_device__()[0] == DLPACK_CUDA
    return found


def home(x: Any) -> DeviceBackend | None:
    """The backend on whose device an array lives; None for host memory.

    Raises BackendUnavailable if that backend cannot run here.
    """
    return cast(DeviceBackend, get("cuda")) if on_gpu(x) else None


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
    name: str | Backend, dtype: str, shape: tuple[int, ...], taps: int, denoising: bool = False, modwt: int = 0
) -> Backend:
    """The backend for ``name`` (or ``"auto"``), traces (rows, samples) of this dtype, and a filter of so many taps.

    ``modwt`` is the number of levels if it is a MODWT that is wanted, for which "auto" knows the CPU alone.

    A backend named by the user (or given as an object) is never replaced by another, but for complex samples, which
    only the reference computes. ``"auto"`` takes the fastest one for this shape: see `numba_crossover`, and
    `cuda_crossover`, which is about ``denoising`` whole traces, not about coefficients that would have to come back.
    """
    if not isinstance(name, str):
        return name if dtype in name.dtypes else get("pywavelets")
    check("backend", name, ["auto", *names()])
    if name != "auto":
        chosen = get(name)
        return chosen if dtype in chosen.dtypes else get("pywavelets")
    rows, samples = shape
    if denoising and not modwt and cuda_crossover.faster(rows * samples, taps, dtype):
        with suppress(BackendUnavailable):
            return get("cuda")
    if modwt:
        faster = numba_crossover.faster_modwt(rows * samples, taps, modwt, dtype)
    else:
        faster = numba_crossover.faster(rows, samples, taps, dtype)
    if dtype in ("float32", "float64") and faster:
        with suppress(BackendUnavailable):
            return get("numba")
    return get("pywavelets")


def choose2(name: str | Backend, dtype: str, shape: tuple[int, ...], taps: int) -> Backend2:
    """The backend for ``name`` (or ``"auto"``), sections (sections, rows, columns) and transforms of both axes.

    As `choose`. Raises ValueError for a backend that has no such transforms; "auto" takes none of these.
    """
    if name == "auto":
        chosen = get("pywavelets")
        if dtype in ("float32", "float64") and numba_crossover.faster2(prod(shape), taps, dtype):
            with suppress(BackendUnavailable):
                chosen = get("numba")
    else:
        chosen = choose(name, dtype, (shape[0] * shape[1], shape[2]), taps)
    if not hasattr(chosen, "decompose2"):
        raise ValueError(
            f"backend {chosen.name!r} does not transform two axes; use backend='auto', 'cuda', 'numba' or 'pywavelets'"
        )
    return cast(Backend2, chosen)

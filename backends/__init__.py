"""The registry of backends: names, what is available here, and the choice of ``backend="auto"``.

A backend's module is imported when it is first asked for, never with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache

from wavefilt.errors import BackendUnavailable
from wavefilt.vocabulary import check

from .interface import Backend, Pyramid, Statistics
from .numba_crossover import faster

__all__ = ["Backend", "Pyramid", "Statistics", "available", "choose", "get", "names"]


def _pywavelets() -> Backend:
    from .pywavelets import PyWavelets

    return PyWavelets()


def _numba() -> Backend:
    try:
        from .numba_cpu import NumbaCPU
    except ImportError as error:
        raise BackendUnavailable(f"backend 'numba' needs numba ({error}): pip install numba") from error
    return NumbaCPU()


def _cuda() -> Backend:
    raise BackendUnavailable(
        "backend 'cuda' is not part of this release yet; use --backend auto (backend=\"auto\") for the CPU"
    )


_LOADERS: dict[str, Callable[[], Backend]] = {"pywavelets": _pywavelets, "numba": _numba, "cuda": _cuda}


def names() -> list[str]:
    """Names of the backends that may be asked for, the reference first."""
    return list(_LOADERS)


@cache
def get(name: str) -> Backend:
    """The backend of this name.

    Raises ValueError for an unknown name and BackendUnavailable, with what to install, for one that cannot run.
    """
    check("backend", name, names())
    return _LOADERS[name]()


def available() -> dict[str, str | BackendUnavailable]:
    """For each backend, one line describing it, or the error that says why it cannot run here."""
    state: dict[str, str | BackendUnavailable] = {}
    for name in names():
        try:
            state[name] = get(name).describe()
        except BackendUnavailable as error:
            state[name] = error
    return state


def choose(name: str, dtype: str, size: int, taps: int) -> Backend:
    """The backend for ``name`` (or ``"auto"``), ``size`` samples in all of this dtype, and a filter of so many taps.

    A backend named by the user is never replaced by another, but for complex samples, which only the reference
    computes. ``"auto"`` takes the fastest one for this size: see `numba_crossover`.
    """
    check("backend", name, ["auto", *names()])
    chosen = get(_fastest(size, taps) if name == "auto" else name)
    return chosen if dtype in chosen.dtypes else get("pywavelets")


def _fastest(size: int, taps: int) -> str:
    if faster(size, taps):
        with suppress(BackendUnavailable):
            return get("numba").name
    return "pywavelets"

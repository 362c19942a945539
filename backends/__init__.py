"""The registry of backends: names, what is available here, and the choice of ``backend="auto"``.

A backend's module is imported when it is first asked for, never with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from wavefilt.errors import BackendUnavailable
from wavefilt.vocabulary import check

from .interface import Backend, Pyramid, Statistics

__all__ = ["Backend", "Pyramid", "Statistics", "available", "choose", "get", "names"]


def _pywavelets() -> Backend:
    from .pywavelets import PyWavelets

    return PyWavelets()


def _cuda() -> Backend:
    raise BackendUnavailable(
        "backend 'cuda' is not part of this release yet; use --backend auto (backend=\"auto\") for the CPU"
    )


_LOADERS: dict[str, Callable[[], Backend]] = {"pywavelets": _pywavelets, "cuda": _cuda}


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


def choose(name: str, dtype: str) -> Backend:
    """The backend for ``name`` (or ``"auto"``) and data of this dtype.

    A backend named by the user is never replaced by another; ``"auto"`` takes what is fastest for the data.
    """
    if name != "auto":
        check("backend", name, ["auto", *names()])
        return get(name)
    return get("pywavelets")

"""Denoising arrays that live on a GPU, and lists of them on several, where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from wavefilt.arrays import Array, dtype_name
from wavefilt.backends import registry
from wavefilt.backends.interface import Backend, DeviceBackend, Taken, accelerates
from wavefilt.denoising.pipeline import run
from wavefilt.options import Options
from wavefilt.registry import Registry


def denoise(
    x: Any,
    method: Options,
    axes: tuple[int, ...],
    backend: str | Backend,
    return_noise: bool,
    wait: bool,
    out: Array | None,
) -> Any:
    """`wavefilt.denoise` of an array on a GPU, along an axis or two, as an array of its kind there."""
    home = registry.home(x)
    assert home is not None
    name = backend if isinstance(backend, str) else backend.name
    if name not in ("auto", home.name):
        raise TypeError(f"{type(x).__name__} lives on a GPU: copy it to the host for backend={backend!r}")
    chosen: Any = home if isinstance(backend, str) else backend
    y = None if return_noise or out is not None else chosen.at_once(x, method, axes, wait)
    if y is not None:
        return y
    taken = home.take(x, *axes)
    into = None if out is None else taken.rows_of(out)
    rows = _rows(taken.rows, method, chosen, wait, into)
    found = _given_back(taken, rows, chosen, return_noise)
    if out is None:
        return found
    if rows is not into:
        out[:] = found[0] if return_noise else found
    return (out, found[1]) if return_noise else out


def denoise_each(
    parts: Sequence[Any], method: Options, axis: int, backend: Any, return_noise: bool, wait: bool
) -> list[Any]:
    """`wavefilt.denoise` of arrays on GPUs, all at once if they are on several; a list of results.

    Raises ValueError for thresholds that all of them would have to share.
    """
    if method.scope == "record":
        raise ValueError("scope='record' needs one array: every array of a list on GPUs has thresholds of its own")
    several: Any = registry.get("cuda", devices="all") if isinstance(backend, str) else backend
    taken = [several.take(part, axis) for part in parts]
    levels = [method.level_for(one.rows.shape[1]) for one in taken]
    at_once = (
        method.plain
        and not method.blend
        and not method.host_only
        and all(levels)
        and all(len(one.rows) for one in taken)
    )
    found = [None] * len(parts)
    if at_once:
        found = several.each([one.rows for one in taken], method, levels, wait=wait)
    results = []
    for one, rows in zip(taken, found, strict=True):
        with several.on_device_of(one.rows):
            rows = _rows(one.rows, method, several, wait) if rows is None else rows
            results.append(_given_back(one, rows, several, return_noise))
    return results


def _given_back(taken: Taken, rows: Any, backend: DeviceBackend, return_noise: bool) -> Any:
    """As the caller's kind and shape, with what was removed if that is wanted."""
    if not return_noise:
        return taken.restore(rows)
    removed = backend.to_device(backend.to_host(taken.rows) - backend.to_host(rows), taken.rows)
    return taken.restore(rows), taken.restore(removed)


@lru_cache(maxsize=1024)
def _way(changes: int, method: Options, shape: tuple[int, ...], dtype: str, backend: Backend) -> tuple[int, bool]:
    """Levels for a batch of this shape, and whether the device denoises it without the host."""
    level = method.level_for(*shape[1:])
    known = accelerates(backend, dtype, method.analysis(level))
    once = method if method.trend else replace(method, spins=1)  # a trend is removed before the samples are shifted
    return level, known and level > 0 and shape[0] > 0 and once.plain and not method.blend and not method.host_only


def _rows(x: Any, method: Options, backend: DeviceBackend, wait: bool = True, out: Array | None = None) -> Any:
    """A batch on a device denoised there, in ``out`` where the device does it all.

    By way of the host where it has gaps, or a record dead traces, which are cut out there, and for what the device does
    not compute.
    """
    way = _way if method.known else _way.__wrapped__
    level, there = way(Registry.changes, method, tuple(x.shape), dtype_name(x.dtype), backend)  # type: ignore[arg-type]
    if there:
        if method.spins > 1:
            y = backend.spun(x, method, level)
        else:
            done = backend.denoise(x, method, level, False, out, wait=wait)
            y = None if done is None else done[0]
        if y is not None:
            return y
    return backend.to_device(run(backend.to_host(x), method, backend).samples, x)

"""NumPy arrays in a user's loop: python -m wavefilt.benchmarks.gpu.host_loops [--search] [--set NAME=VALUE] [-o FILE].

Different arrays whose results are kept, the same array again with its result dropped, one ``out=``, and pinned input;
on the GPU and on the CPU beside it. Then where the time goes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from unittest.mock import patch

import click
import numpy as np

import wavefilt
from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.command import Results, with_results
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.common.measuring import different, events, loop, signal
from wavefilt.benchmarks.common.tables import Report, Row, Table, size
from wavefilt.method import Method

if TYPE_CHECKING:
    from wavefilt.backends.cuda import Cuda

P = ParamSpec("P")
R = TypeVar("R")
SIZES = [1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26]
BYTES = 3 << 29
"""Of the arrays of a loop, and of their results."""
MEMORY = 10 << 30
"""Bytes that are used once before anything is timed."""
LEAST = 5
"""Calls of a loop."""
VARIANTS: dict[str, Sequence[int]] = {
    "THREADS": (4, 6, 12),
    "PIECE": (1 << 19, 1 << 21),
    "SMALLEST": (1 << 18,),
    "PIECES": (1, 4),
    "SHARE": (1 << 19, 1 << 21),
    "TOUCHING": (4,),
    "SPARE": (0, 1 << 28),
    "SEVERAL": (1 << 20,),
    "LEAST": (1 << 18, 1 << 21),
    "TOGETHER": (0, 1 << 23),
    "SLOT": (1 << 19, 1 << 21),
}
"""Values of the constants of transfers to be tried beside those in use, one at a time."""


def run(
    sizes: Sequence[int] = SIZES, constants: dict[str, int] | None = None, search: bool = False, cpu: bool = True
) -> Row:
    """Milliseconds by size; with ``search`` also by the constants of transfers. Raises Mismatch for a wrong result."""
    _use(constants or {})
    np.ones(MEMORY, np.uint8)  # a virtual machine gets its memory when it is first used, at 3 GB/s
    arrays = {n: different(signal(1, n)[0], BYTES) for n in sizes}
    rows = []
    for n in sizes:
        rows.append(_size(n, arrays[n], cpu))
        print(rows[-1], file=sys.stderr, flush=True)
    found = result("loops over NumPy arrays", constants=_constants(), huge_pages=_huge_pages(), rows=rows)
    if search:
        base = _constants()
        tries: list[dict[str, int]] = [{}]
        tries += [{name: value} for name, values in VARIANTS.items() for value in values if value != base[name]]
        found["search"] = [_variant(one, base, arrays) for one in [*tries, {}]]
        _use(base)
    return found


def _constants() -> dict[str, int]:
    from wavefilt.backends.cuda.runtime import transfer

    known = {**vars(transfer), **vars(transfer.Ring), **vars(transfer.Results)}
    return {name: known[name] for name in VARIANTS}


def _use(constants: dict[str, int]) -> None:
    """Let transfers of new backends work with these."""
    from wavefilt.backends.cuda.runtime import transfer

    for name, value in constants.items():
        owner = next(one for one in (transfer, transfer.Ring, transfer.Results) if name in vars(one))
        setattr(owner, name, value)


def _backend() -> Cuda:
    from wavefilt.backends.cuda import Cuda
    from wavefilt.backends.cuda.runtime.transfer import Ring

    backend = Cuda()
    backend.ring = Ring(_constants()["THREADS"])
    return backend


def _huge_pages() -> str | None:
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as lines:
            return lines.read().strip()
    except OSError:
        return None


def _size(n: int, arrays: Sequence[Array], cpu: bool) -> Row:
    from wavefilt.backends.cuda.runtime.target import cuda

    backend, same, numba = _backend(), [arrays[0]] * len(arrays), backends.get("numba")
    on_gpu = partial(wavefilt.denoise, backend=backend)
    expected, error = wavefilt.denoise(arrays[0], backend=numba), 0.0
    pinned = cuda.pinned_array(n, arrays[0].dtype)
    pinned[:] = arrays[0]
    out = np.zeros(n, arrays[0].dtype)
    level = Method().level_for(n)
    direct = partial(on_gpu, out=out)
    for _ in range(3):
        for y in (on_gpu(arrays[0]), on_gpu(pinned), direct(arrays[0])):
            error = max(error, float(np.max(np.abs(y - expected)) / np.max(np.abs(expected))))
    if not error < 1e-5:
        raise Mismatch(f"{n} samples: {error} from backend numba")
    row: Row = {"samples": n, "arrays": len(arrays), "error": error}
    backend.clear()
    row["kept"] = loop(on_gpu, arrays, True)
    row["dropped"] = loop(on_gpu, arrays, False)
    row["same"] = loop(on_gpu, same, False)
    row["out"] = loop(direct, same, False)
    row["pinned"] = loop(on_gpu, [pinned] * len(arrays), False)
    if cpu:
        few = max(min(len(arrays), 12), LEAST)
        row["numba kept"] = loop(partial(wavefilt.denoise, backend=numba), arrays[:few], True)
        row["numba same"] = loop(partial(wavefilt.denoise, backend=numba), same[:few], False)
    row["parts"] = _parts(backend, arrays, level)
    return row


def _parts(backend: Cuda, arrays: Sequence[Array], level: int) -> Row:
    """Milliseconds of what a call consists of, inside of it, and each alone."""
    from cuda.bindings import driver

    from wavefilt.backends.cuda.denoiser import Denoiser, key_of
    from wavefilt.backends.cuda.plan import Shape
    from wavefilt.backends.cuda.requests import Asked
    from wavefilt.backends.cuda.runtime import interop, transfer
    from wavefilt.backends.cuda.runtime.graph import checked, handle
    from wavefilt.backends.cuda.runtime.target import cuda

    x = arrays[0]
    found: Row = {}
    inside: list[tuple[str, object, str, Callable[..., object]]] = [
        ("upload", backend.ring, "upload", backend.ring.upload),
        ("download", backend.ring, "download", backend.ring.download),
        ("launch", Denoiser, "replay", Denoiser.replay),
        ("lend", backend._results, "lend", backend._results.lend),
        ("denoise", backend, "denoise", backend.denoise),
    ]
    for name, own in (("kept", arrays), ("same", [x] * 30)):
        backend.clear()
        spent: dict[str, list[float]] = {part: [] for part, *_ in inside}
        with ExitStack() as stack:
            for part, owner, method, work in inside:
                stack.enter_context(patch.object(owner, method, _timed(work, spent[part])))
            whole = loop(partial(wavefilt.denoise, backend=backend), own, name == "kept")["median"]
        found[name] = {part: float(np.median(times)) for part, times in spent.items() if times}
        found[name] |= {"python": whole - found[name]["denoise"], "whole": whole}
    usual = Method()
    asked = Asked(Shape.of(usual.analysis(level), str(x.dtype), 1, x.shape), key_of(usual, False))
    plan, denoiser = backend._prepared(asked, usual, False, -1)
    stream = plan.stream
    source, target = plan.buffer("x", x.size), plan.buffer("y", x.size)
    locked = cuda.pinned_array(x.size, x.dtype)
    locked[:] = x
    address, place, number = interop.address(source), locked.ctypes.data, handle(stream)
    y, block = np.zeros_like(x), transfer._Block(x.nbytes)
    block.touch()

    def alone(work: Callable[[], object]) -> float:
        times = []
        for _ in range(9):
            start = time.perf_counter()
            work()
            stream.synchronize()
            times.append(1e3 * (time.perf_counter() - start))
        return float(np.median(times))

    one: Row = {"gpu": events(partial(denoiser.run, source, target), 9)["median"]}
    one["to device"] = alone(lambda: checked(driver.cuMemcpyHtoDAsync(address, place, x.nbytes, number)))
    one["to host"] = alone(lambda: checked(driver.cuMemcpyDtoHAsync(place, address, x.nbytes, number)))
    one["upload"] = alone(partial(backend.ring.upload, x, source, stream))
    one["download, touched"] = alone(partial(backend.ring.download, target, y, stream))
    start = time.perf_counter()
    block.pin()
    one["pinning"] = 1e3 * (time.perf_counter() - start)
    start = time.perf_counter()
    del block
    one["pinning and freeing"] = one["pinning"] + 1e3 * (time.perf_counter() - start)
    one["copy"] = alone(lambda: np.copyto(locked, x))

    def registered() -> None:
        """What staging could be replaced by: the caller's memory page-locked for one transfer."""
        checked(driver.cuMemHostRegister(x.ctypes.data, x.nbytes, 0))
        checked(driver.cuMemcpyHtoDAsync(address, x.ctypes.data, x.nbytes, number))
        stream.synchronize()
        checked(driver.cuMemHostUnregister(x.ctypes.data))

    one["upload, registered"] = alone(registered)
    found["alone"] = one
    backend._plans.give_back(plan)
    backend.clear()
    return found


def _timed(work: Callable[P, R], times: list[float]) -> Callable[P, R]:
    def timed(*arguments: P.args, **named: P.kwargs) -> R:
        start = time.perf_counter()
        try:
            return work(*arguments, **named)
        finally:
            times.append(1e3 * (time.perf_counter() - start))

    return timed


def _variant(changed: dict[str, int], base: dict[str, int], arrays: dict[int, list[Array]]) -> Row:
    """Medians with some constants changed, by size: results kept, and the same array again."""
    _use(base | changed)
    backend = _backend()
    call, found = partial(wavefilt.denoise, backend=backend), dict[str, list[float]]()
    for n, own in arrays.items():
        few = own[: max(LEAST, min(len(own), (1 << 28) // own[0].nbytes))]
        found[str(n)] = [loop(call, few, True)["median"], loop(call, [own[0]] * max(len(few), 10), False)["median"]]
        backend.clear()
    print(changed, found, file=sys.stderr, flush=True)
    return {"variant": changed, "times": found}


TABLE = Table(
    "A call in a loop over NumPy arrays, ms: {environment[gpu]}, {environment[cores]} cores",
    {
        "samples": "{samples:size}",
        "different,|kept": "{kept[median]:n}",
        "different,|dropped": "{dropped[median]:n}",
        "the same|again": "{same[median]:n}",
        "out=": "{out[median]:n}",
        "pinned": "{pinned[median]:n}",
        "numba,|kept": "?{numba kept[median]:n}",
        "numba,|again": "?{numba same[median]:n}",
    },
    "rows",
)


def report(found: Row) -> Report:
    """Loops, and as notes what each consists of and what other constants give."""
    return Report([TABLE(found)], [*_notes(found)])


def _notes(found: Row) -> Iterator[str]:
    yield f"{found['constants']}, huge pages {found['huge_pages']}"
    for row in found["rows"]:
        for name, parts in row["parts"].items():
            yield f"{size(row['samples'])} {name}: " + ", ".join(f"{part} {ms:.3f}" for part, ms in parts.items())
    for one in found.get("search", []):
        times = ", ".join(f"{size(int(n))} {a:.3f}/{b:.3f}" for n, (a, b) in one["times"].items())
        yield f"{one['variant'] or 'as it is'}: {times}"


@click.command()
@click.option("--search", is_flag=True, help="Try other constants of transfers too, one at a time.")
@click.option("--no-cpu", is_flag=True, help="Leave the CPU backend out.")
@click.option("--largest", type=int, default=1 << 26, help="Samples of the largest array.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help=f"A constant: {', '.join(VARIANTS)}.")
@with_results
def main(search: bool, no_cpu: bool, largest: int, changes: Sequence[str], results: Results) -> None:
    constants = {name: int(value) for name, _, value in (change.partition("=") for change in changes)}
    results.report(run([n for n in SIZES if n <= largest], constants, search, not no_cpu), report)


if __name__ == "__main__":
    main()

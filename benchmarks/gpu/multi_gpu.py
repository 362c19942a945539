"""One GPU beside several of one host: ``python -m wavefilt.benchmarks.gpu.multi_gpu [-o FILE]``.

A batch resident on the GPUs, the same batch from pageable and from pinned NumPy arrays, and one long trace, split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.common.measuring import signal, turns, walls
from wavefilt.benchmarks.common.tables import Report, Row, Table
from wavefilt.method import Method

ROWS, SAMPLES, LEVEL = 4, 1 << 26, 8
METHOD = Method("db8", LEVEL, rule="universal", sigma="global")
HEADS = {"resident": "resident", "numpy": "from NumPy", "pinned": "from pinned", "long": "one trace, split"}


def run(rows: int = ROWS, samples: int = SAMPLES, repeats: int = 15) -> Row:
    """Milliseconds by number of GPUs, 1, 2, 4, ... up to all. Raises Mismatch if a result is not that of one GPU."""
    from wavefilt.backends.cuda.runtime.target import cuda

    there = len(cuda.gpus)
    counts = [1 << i for i in range(there.bit_length()) if 1 << i <= there]
    x = signal(rows, samples)
    pinned = cuda.pinned_array(x.shape, x.dtype)
    pinned[:] = x
    one: Any = backends.get("cuda")
    expected = one.denoise(x, METHOD, LEVEL)[0]
    line = x.reshape(1, -1)
    long = one.denoise(line, METHOD, LEVEL)[0]
    found: dict[int, Row] = {count: {"resident": _resident(x, count, expected, repeats)} for count in counts}
    using: dict[int, Any] = {n: one if n == 1 else backends.get("cuda", devices=list(range(n))) for n in counts}
    for name, data, right in (("numpy", x, expected), ("pinned", pinned, expected), ("long", line, long)):
        calls: dict[int, Callable[[], tuple[Array, object]]] = {}
        for count in counts:
            work = using[count].split if name == "long" and count > 1 else using[count].denoise
            calls[count] = partial(work, data, METHOD, LEVEL)
            for _ in range(3):
                _same(calls[count]()[0], right, f"{name}, {count} GPUs")
        for count, times in turns(calls, repeats).items():
            found[count][name] = times
    facts = {"batch": [rows, samples], "method": "db8, 8 levels, universal, noise of the finest level"}
    gpus = [{"count": count} | times for count, times in found.items()]
    return result("several GPUs", unit="ms", **facts, gpus=gpus) | {"host copy, GB/s": _host_copy(x)}


def _resident(x: Array, count: int, expected: Array, repeats: int) -> dict[str, float]:
    """A batch that lies on the GPUs, a part on each."""
    from wavefilt.backends.cuda.runtime.target import cuda

    parts, outs = [], []
    for i, rows in enumerate(np.array_split(x, count)):
        with cuda.gpus[i]:
            parts.append(cuda.to_device(rows))
            outs.append(cuda.device_array_like(parts[-1]))
    several: Any = backends.get("cuda", devices=list(range(count)))
    call = partial(several.each, parts, METHOD, [LEVEL] * count, outs)
    for _ in range(3):
        call()
    result = []
    for i, out in enumerate(outs):
        with cuda.gpus[i]:
            result.append(out.copy_to_host())
    _same(np.concatenate(result), expected, f"resident, {count} GPUs")
    return walls(call, 4 * repeats, 10)


def _same(y: Array, expected: Array, what: str) -> None:
    if not np.array_equal(y, expected):
        raise Mismatch(f"{what}: not what one GPU gives, {np.abs(y - expected).max()} apart")


def _host_copy(x: Array, repeats: int = 5) -> float:
    """Read and written by as many threads as transfers have: what all GPUs' transfers from NumPy share."""
    from wavefilt.backends.cuda.runtime.transfer import THREADS

    y = np.zeros_like(x)
    parts = [np.array_split(whole.reshape(-1), 4 * THREADS) for whole in (y, x)]
    with ThreadPoolExecutor(4 * THREADS) as pool:
        taken = walls(lambda: list(pool.map(np.copyto, *parts)), repeats, 1)["median"]
    return 2 * x.nbytes / (1e6 * taken)


def _rows(found: Row) -> Iterator[Row]:
    """With how many times as fast as one GPU."""
    first = found["gpus"][0]
    for row in found["gpus"]:
        yield {**row, "ratios": {name: first[name]["median"] / row[name]["median"] for name in HEADS}}


COLUMNS = {"|GPUs": "{count}"}
for _name, _head in HEADS.items():
    COLUMNS |= {f"{_head}|ms": f"{{{_name}[median]:n}}", f"times one|GPU#{_name}": f"{{ratios[{_name}]:.2f}}"}
TABLE = Table("{batch[0]} x {batch[1]} float32, {method}: {environment[gpu]}", COLUMNS, _rows)


def report(found: Row) -> Report:
    """Milliseconds, how many times as fast as one GPU, and the memory traffic that all transfers share."""
    size = 4e-9 * found["batch"][0] * found["batch"][1]
    last = found["gpus"][-1]
    rate = {name: 1e3 * factor * size / last[name]["median"] for name, factor in (("numpy", 5), ("pinned", 2))}
    note = (
        f"Threads copy host memory at {found['host copy, GB/s']:.0f} GB/s, reading and writing counted. With "
        f"{last['count']} GPUs a pinned batch and its result are {rate['pinned']:.0f} GB/s of that memory's traffic. "
        "A pageable batch is read, copied to pinned memory (which is read and written for that), read by a GPU, and "
        f"its result written: {rate['numpy']:.0f} GB/s. More GPUs find no more of it."
    )
    return Report([TABLE(found)], [note])


if __name__ == "__main__":
    main(lambda quick: run(), report)

"""A user's loop: different arrays whose results are kept, and the same array, with other work between the calls.

Between two calls the garbage is collected and more memory is read than the caches hold. The two sides alternate.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np

from wavefilt.arrays import Array
from wavefilt.benchmarks.common.measuring import summary
from wavefilt.benchmarks.common.tables import Row, Table

EVICTED = 1 << 28
"""Bytes read between two calls: more than the caches of the processors of today hold."""
HELD = 1 << 29
"""Bytes of different arrays, and as many of results, at most."""

Side = Callable[[Array], Array]


def measure(name: str, shape: tuple[int, int], dtype: str, sides: dict[str, Side], repeats: int) -> Row:
    """Seconds of each side for different arrays with the results kept, and for the same array."""
    rng = np.random.default_rng(7)
    count = max(min(HELD // (shape[0] * shape[1] * np.dtype(dtype).itemsize), repeats), 2)
    arrays = [rng.standard_normal(shape, dtype="float32").astype(dtype) for _ in range(count)]
    cold = np.zeros(EVICTED, np.uint8)
    row: Row = {"name": name, "arrays": count}
    # a virtual machine gets memory from its host when it is touched for the first time, which takes ten times as long
    np.ones(3 * HELD, np.uint8)
    for key, inputs in (("different", arrays), ("same", [arrays[0]] * count)):
        for call in sides.values():
            call(arrays[0])
        times: dict[str, list[float]] = {side: [] for side in sides}
        kept: list[Array] = []
        for turn, x in enumerate(inputs):
            for side in list(sides)[:: 1 - 2 * (turn % 2)]:
                cold.max()
                gc.collect()
                start = time.perf_counter()
                y = sides[side](x)
                times[side].append(time.perf_counter() - start)
                if key == "different":
                    kept.append(y)
                del y
        row[key] = {side: summary(seconds) for side, seconds in times.items()}
    return row


def ratio(times: Row) -> float:
    """How many times as fast as PyWavelets."""
    return float(times["pywavelets"]["median"] / times["numba"]["median"])


TABLE = Table(
    "A user's loop, with cold caches and a garbage collection between the calls (quartiles in brackets)",
    {
        "case": "{name}",
        "different arrays,|results kept, ms": "{different[numba]:quartiles in ms}",
        "PyWavelets|ms": "{different[pywavelets]:quartiles in ms}",
        "ratio": lambda row: f"{ratio(row['different']):.1f}",
        "same array|ms": "{same[numba]:quartiles in ms}",
        "PyWavelets|ms#same": "{same[pywavelets]:quartiles in ms}",
        "ratio#same": lambda row: f"{ratio(row['same']):.1f}",
    },
    "loops",
)

"""The processor that kernels are compiled for, and the key by which the cache knows them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import numpy as np
from llvmlite import binding

from wavefilt import vocabulary
from wavefilt.arrays import DType
from wavefilt.thresholding import rules, shrinkage
from wavefilt.wavelets import boundary

_found = find_spec("numba")
if _found is None:
    raise ModuleNotFoundError("No module named 'numba'", name="numba")
_NUMBA = Path(str(_found.origin))
_HOST = binding.get_host_cpu_features()
VECTOR_BYTES = 64 if _HOST.get("avx512f") else 32 if _HOST.get("avx") else 16
WIDTH = 4
"""Vectors computed together: with two sums each they hide the latency of a multiply-add and fit the registers."""

GROUP_BYTES = WIDTH * VECTOR_BYTES
HALF = GROUP_BYTES // 2
"""Bytes of the smaller groups for the rest of a row after whole groups."""


def kinds(parameters: str, dtype: DType) -> list[tuple[DType, int]]:
    """Return dtype and dimensions of each parameter of a `Kernel`; a number has 0 dimensions."""
    dtypes: dict[str, DType] = {
        "i": np.dtype("i8"),
        "u": np.dtype("u4"),
        "d": np.dtype("f8"),
        "B": np.dtype(f"i{dtype.itemsize}"),
        "T": dtype,
    }
    return [(dtypes[one[0]], one.count(",") + 1 if "[" in one else 0) for one in parameters.split()]


def _sources() -> Iterator[Path]:
    """Yield the files that kernels depend on; numba's version is in one, and its metadata takes 30 ms to read."""
    yield from sorted(Path(__file__).parent.rglob("*.py"))
    yield from (Path(str(module.__file__)) for module in (boundary, rules, shrinkage, vocabulary))
    yield _NUMBA.with_name("_version.py")


@cache
def key() -> str:
    """Return a hash of all that machine code depends on: sources, versions and the processor."""
    text = hashlib.sha256(llvmlite.__version__.encode())
    for path in _sources():
        with suppress(OSError):  # an installation without sources does not change
            text.update(path.read_bytes())
    flags = "".join(name for name, there in sorted(_HOST.items()) if there)
    own = {name: os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")}
    text.update(repr((binding.get_host_cpu_name(), flags, own)).encode())
    return text.hexdigest()[:20]

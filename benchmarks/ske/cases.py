"""What the validation of the SKE model measures: the cases, split by kernel into a fit set and a held-out test set.

The split was written before anything was measured: parameters are fitted to microbenchmarks and to the forward
kernel with the two shortest filters, and tested on everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

KIBI, MEBI = 1 << 10, 1 << 20
LEVEL = 8
BLOCKS = (32, 64, 128, 256, 512, 1024)
SIZES = (32 * KIBI, 256 * KIBI, 4 * MEBI, 64 * MEBI)
FIT_SIZES = (64 * KIBI, MEBI, 16 * MEBI)


@dataclass(frozen=True)
class Case:
    """``kernel`` on ``rows`` rows of ``samples`` float32: blocks of ``threads`` threads, tiles of ``tile`` samples.

    ``kernel`` is "forward" or "inverse", the one launch that does the finest levels; "energy", the sums of squares,
    "median", the exact median of the finest level, or "denoise", all of one: of these the sum of the launches is
    measured and predicted.
    """

    kernel: str
    wavelet: str
    threads: int
    samples: int
    rows: int = 1
    tile: int = 4096
    fit: bool = False


def cases() -> Iterator[Case]:
    """All of them, those that share a compiled kernel one after the other."""
    for wavelet in ("haar", "db4"):
        for threads in (64, 256, 1024):
            for n in FIT_SIZES:
                yield Case("forward", wavelet, threads, n, fit=True)
    for kernel, others in {"forward": ("sym8", "coif3"), "inverse": ("haar", "db4", "coif3")}.items():
        for threads in BLOCKS:
            for n in SIZES:
                yield Case(kernel, "db8", threads, n)
            if threads == 256:
                yield Case(kernel, "db8", threads, 16 * KIBI, rows=4096)
                yield Case(kernel, "db8", threads, MEBI, rows=24)
        for wavelet in others:
            for threads in (128, 256):
                for n in SIZES:
                    yield Case(kernel, wavelet, threads, n)
        for tile in (1024, 2048):
            for n in SIZES:
                yield Case(kernel, "db8", 256, n, tile=tile)
    for kernel in ("energy", "median", "denoise"):
        for n in SIZES:
            yield Case(kernel, "db8", 256, n)


def quick() -> Iterator[Case]:
    """A few, for a first look."""
    for case in cases():
        if case.threads == 256 and case.wavelet in ("haar", "db8") and case.tile == 4096:
            yield case

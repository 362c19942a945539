"""What the SKE model is fitted to and judged by: cases, split by kernel.

Parameters are fitted to microbenchmarks and to the forward kernel with the two shortest filters (`fit_cases`). The
others of `cases` are for development: they were looked at while the model was changed. `blind` and `choices` are what
it is judged by: written, like the model, before the first of them was measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from wavefilt.benchmarks.common.tables import Row

KIBI, MEBI = 1 << 10, 1 << 20
LEVEL = 8
BLOCKS = (32, 64, 128, 256, 512, 1024)
SIZES = (32 * KIBI, 256 * KIBI, 4 * MEBI, 64 * MEBI)
FIT_SIZES = (64 * KIBI, MEBI, 16 * MEBI)


@dataclass(frozen=True)
class Case:
    """``kernel`` on ``rows`` traces of ``samples``: blocks of ``threads`` threads, tiles of ``tile`` samples.

    ``kernel`` is "forward" or "inverse", one ``launch`` of the transform, counted from the finest levels; "energy", the
    sums of squares, "median", the exact median of the finest level, or "denoise", all of one: of these every launch is
    measured and predicted. Of transform "dwt2" rows are panels of ``samples`` x ``columns``. Without a ``level`` it is
    the levels of the finest launch alone.
    """

    kernel: str
    wavelet: str
    threads: int
    samples: int
    rows: int = 1
    tile: int = 4096
    fit: bool = False
    transform: str = "dwt"
    columns: int = 0
    level: int = 0
    launch: int = 0
    dtype: str = "float32"
    mode: str = "symmetric"
    function: str = "soft"

    @staticmethod
    def of(row: Row) -> Case:
        """That of a measured row."""
        return Case(**{field.name: row[field.name] for field in fields(Case) if field.name in row})

    @property
    def single(self) -> bool:
        """Whether it is one launch of a transform."""
        return self.kernel in ("forward", "inverse")

    @property
    def size(self) -> tuple[int, ...]:
        """Of a row."""
        return (self.samples, self.columns) if self.columns else (self.samples,)

    @property
    def what(self) -> str:
        """The kernel, the wavelet, and all but sizes that is not usual about it."""
        usual = {f.name: f.default for f in fields(self)}
        changed = [
            str(getattr(self, name))
            for name in ("transform", "dtype", "mode", "function")
            if getattr(self, name) != usual[name]
        ]
        return " ".join([self.kernel, self.wavelet, *changed, *(["odd length"] if self.samples % 2 else [])])


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


FIT_BLOCKS, FIT_TILES = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024), (1024, 2048, 4096)


def fit_cases() -> Iterator[Case]:
    """What the parameters are fitted to: the forward launch with the two shortest filters over sizes, blocks, tiles."""
    for wavelet, threads, tile in itertools.product(("haar", "db4"), FIT_BLOCKS, FIT_TILES):
        for i in range(7):
            yield Case("forward", wavelet, threads, MEBI << i, tile=tile, fit=True)


BLIND_SIZES = (MEBI, 4 * MEBI, 16 * MEBI, 64 * MEBI)
PANELS = ((1, 4096, 4096), (16, 1024, 1024), (1, 6001, 8000))
"""Panels, their rows and columns."""


def blind() -> Iterator[Case]:
    """What the model is judged by: kernels that it was neither fitted to nor developed with."""
    for wavelet, threads, n in itertools.product(("db6", "coif2", "sym20"), (128, 256, 512), BLIND_SIZES):
        yield Case("inverse", wavelet, threads, n)
    for kernel, n in itertools.product(("forward", "inverse"), BLIND_SIZES):
        usual = Case(kernel, "db6", 256, n)
        yield replace(usual, dtype="float64", tile=2048)
        yield replace(usual, mode="periodization")
        yield replace(usual, wavelet="coif2", samples=5 * n // 4 + 3)
    for n in BLIND_SIZES:
        yield Case("inverse", "db6", 256, n, function="garrote")
        for kernel in ("energy", "median", "denoise"):
            yield Case(kernel, "db6", 256, n)
        yield Case("denoise", "coif2", 128, n)
    for wavelet, (panels, rows, columns) in itertools.product(("db2", "db6"), PANELS):
        for kernel, launch in itertools.product(("forward", "inverse"), (0, 1)):
            yield Case(kernel, wavelet, 256, rows, panels, transform="dwt2", columns=columns, level=4, launch=launch)
    for wavelet, kernel, n in itertools.product(("haar", "db4", "coif2"), ("forward", "inverse"), BLIND_SIZES[:3]):
        yield Case(kernel, wavelet, 256, n, transform="modwt", mode="periodic", level=6)


def choices() -> Iterator[Case]:
    """All blocks and tiles of kernels outside the fit set: how good is the choice that the model makes?"""
    for kernel, wavelet in (("inverse", "db6"), ("forward", "coif2"), ("inverse", "haar"), ("inverse", "sym20")):
        for threads, tile, n in itertools.product(FIT_BLOCKS, FIT_TILES, (4 * MEBI, 64 * MEBI)):
            yield Case(kernel, wavelet, threads, n, tile=tile)


def quick() -> Iterator[Case]:
    """A few, for a first look."""
    for case in cases():
        if case.threads == 256 and case.wavelet in ("haar", "db8") and case.tile == 4096:
            yield case

"""Launches that the calibrated SKE model is fitted to, as sizes alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
import pywt

from wavefilt.benchmarks.common.tables import Row
from wavefilt.ske.calibrated import Launch

from .counts import Problem, forward, inverse

LEVEL = 8
MEBI = 1 << 20


@dataclass(frozen=True)
class Case:
    """The launch of a transform ("forward" or "inverse") that computes the finest levels.

    ``rows`` traces of ``samples`` samples, blocks of ``threads`` threads and tiles of ``tile`` samples.
    """

    kernel: str
    wavelet: str
    threads: int
    samples: int
    rows: int = 1
    tile: int = 4096
    dtype: str = "float32"
    mode: str = "symmetric"
    function: str = "soft"

    @staticmethod
    def of(row: Row) -> Case:
        """Return the case of a measured row."""
        return Case(**{field.name: row[field.name] for field in fields(Case) if field.name in row})

    @property
    def problem(self) -> Problem:
        """The transform, as deep as its finest launch goes."""
        taps, itemsize = pywt.Wavelet(self.wavelet).dec_len, np.dtype(self.dtype).itemsize
        periodized = self.mode == "periodization"
        whole = Problem(taps, self.samples, self.rows, LEVEL, periodized, itemsize, self.tile, self.threads)
        return replace(whole, level=whole.fused[0])

    def counted(self) -> Launch:
        """Return the operation counts of the launch."""
        if self.kernel == "forward":
            return forward(self.problem)[0]
        return inverse(self.problem, self.function)[-1]


THREADS, TILES = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024), (1024, 2048, 4096)


def fit_cases() -> Iterator[Case]:
    """Return the forward launch with the two shortest filters, for 10 block sizes, 3 tiles and 7 sizes."""
    for wavelet, threads, tile in itertools.product(("haar", "db4"), THREADS, TILES):
        for i in range(7):
            yield Case("forward", wavelet, threads, MEBI << i, tile=tile)

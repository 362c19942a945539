"""A 5x5 Laplace filter on an RGB image, of a course of 2017 on heterogeneous computing, by CPU and GPU.

Each output is compared, exactly, before it is timed. `wavefilt bench laplace 2d -o FILE` runs it.

The GPU kernels are data here, with their operation counts for the SKE model: instructions of an average warp, read from
the source and from SASS for sm_90, and wavefronts of L1 and shared memory, from the addresses of every lane in images
whose rows are a multiple of 128 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import ndimage

from wavefilt import backends, threads
from wavefilt.benchmarks.common import columns
from wavefilt.benchmarks.common.columns import COPY, Implementation, Prepared, Progress, on_device
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Column, Report, Row
from wavefilt.ske.calibrated import Launch

RADIUS, CHANNELS = 2, 3
SIDE = 2 * RADIUS + 1
"""Pixels of a side of the filter, whose weights are all -1, that of the centre 24."""
BORDER = RADIUS * CHANNELS
"""Bytes of a row that the filter needs on each side."""
CHUNK, ROWS = 16, 16
"""Bytes of a row, and rows, of a thread of the last variant."""
ALIGNMENT = 128
"""Bytes that its rows are a multiple of, so that a warp reads four whole cache lines at a time."""

READS = CHANNELS * SIDE**2
"""Reads, and additions, of a thread that makes a pixel."""
WAITING = {
    "global": {"global": 1, "l1": 2},
    "tile": {"global": 1, "shared": 2},
    "wide": {"global": ROWS + 2 * RADIUS},
}
"""Loads that wait for each other, by the variant's memory."""


@dataclass(frozen=True)
class Variant:
    """A kernel with ``block`` threads across and down; a thread computes a pixel, or `CHUNK` bytes of `ROWS` rows.

    A ``tile`` holds the block's pixels and their neighbours as numbers of type ``held``, and each of its rows ends
    with ``padding`` unused numbers; bytes are added as integers.
    """

    name: str
    heads: tuple[str, str]
    what: str
    instructions: Mapping[str, float] = field(hash=False)
    """Those of an average warp; accesses and conversions are "other"."""
    memory: Literal["global", "tile", "wide"] = "tile"
    block: tuple[int, int] = (16, 16)
    held: Literal["uint8", "float32"] = "uint8"
    padding: int = 0
    read: float = 7.5
    """Bytes that an SM reads per pixel, in sectors, if its cache keeps the reads of a block."""
    registers: int = 32
    """Registers of a thread, compiled for sm_90; a test compares them with the compiler's."""

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1]

    @property
    def tile(self) -> tuple[int, int]:
        """Used numbers of a row of the tile, and rows."""
        return CHANNELS * self.block[0] + 2 * BORDER, self.block[1] + 2 * RADIUS

    @property
    def pitch(self) -> int:
        """Numbers from one row of the tile to the next."""
        return self.tile[0] + self.padding

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        return self.pitch * self.tile[1] * np.dtype(self.held).itemsize if self.memory == "tile" else 0

    def grid(self, width: int, height: int) -> tuple[int, int]:
        """Return the blocks across and down an image."""
        columns, rows = (pitch(width) // CHUNK, -(-height // ROWS)) if self.memory == "wide" else (width, height)
        return -(-columns // self.block[0]), -(-rows // self.block[1])

    def launch(self, width: int, height: int) -> Launch:
        """Return the operation counts of the kernel over an image, for the SKE model."""
        across, down = self.grid(width, height)
        pixels = (pitch(width) / CHANNELS if self.memory == "wide" else width) * height
        moved = pixels * self.read, pixels * CHANNELS, 2 * CHANNELS * pixels
        work = self.instructions, WAITING[self.memory], int(self.memory == "tile"), *moved
        return Launch(self.name, across * down, self.threads, *work, registers=self.registers, shared=self.shared)


def pitch(width: int) -> int:
    """Return the bytes from one aligned row to the next, as cudaMallocPitch lays them out."""
    return -(-CHANNELS * width // ALIGNMENT) * ALIGNMENT


_FLOAT = "bytes converted to float once, as the tile is written"
_PADDED = "a float tile, its rows 20 words longer so that two share no bank"
_WIDE = f"no tile: 16 aligned bytes and {ROWS} rows a thread, running column sums"
_READ = "each of the 25 pixels read from global memory"
_TILE = "20x20 pixels in shared memory, integer arithmetic"
_BYTES = {"int": 165, "other": 87.5, "wavefront": 95.375}
_FLOATS = {"int": 127.5, "fma": READS + CHANNELS, "other": 95.25}
_GLOBAL, _RUNNING = {"int": 114.5, "other": 81, "wavefront": 218.1}, {"int": 4526, "other": 137, "wavefront": 618}
_CONFLICTS, _NONE = _FLOATS | {"wavefront": 170.375}, _FLOATS | {"wavefront": 97.5}
_float = partial(Variant, held="float32")
VARIANTS = (
    Variant("gpu_global", ("GPU", "global"), _READ, _GLOBAL, "global", registers=40),
    Variant("gpu_tile", ("GPU", "byte tile"), _TILE, _BYTES),
    _float("gpu_float", ("GPU", "float tile"), _FLOAT, _CONFLICTS),
    _float("gpu_padded", ("GPU", "padded tile"), _PADDED, _NONE, padding=20),
    Variant(  # a block reads 64 rows and 4 more of 512 bytes and a sector on either side
        "gpu_wide", ("GPU", "wide"), _WIDE, _RUNNING, "wide", (32, 4), read=68 * 576 / (64 * 512 / 3), registers=48
    ),
)

Image = NDArray[np.uint8]
"""(height, width, 3): rows one after the other, red, green and blue of a pixel together."""
MADE = "made from a seed"
SIZE, QUICK_SIZE = (4992, 3744), (640, 480)
"""Width and height, the first as in 2017."""
LONGEST, LARGEST = (1 << 16) - 1, (1 << 31) - 1
"""Most pixels of a side, as in JPEG, and most bytes of an image, which the kernels count in 32 bits."""
REPEATS, BUDGET, QUICK_BUDGET = 25, 3.0, 0.1
"""Most runs of an implementation, and the seconds they may take."""
SCIPY = "scipy.ndimage.correlate in int32"
AREA = SIDE * SIDE
GRAIN = 1 << 16
"""Least bytes of a thread."""
WEIGHTS = np.full((SIDE, SIDE, 1), -1, np.int32)
WEIGHTS[RADIUS, RADIUS] = SIDE**2 - 1


def made(width: int, height: int, seed: int = 17) -> Image:
    """Make an image of weak noise, whose filtered values fill the range of bytes and exceed it at both ends.

    Raises ValueError unless the kernels can count its bytes.
    """
    if not (0 < width <= LONGEST and 0 < height <= LONGEST and pitch(width) * height <= LARGEST):
        raise ValueError(f"{width}x{height} is no size of an image of 1 to {LONGEST} pixels a side and at most 2 GiB")
    return np.random.default_rng(seed).integers(112, 144, (height, width, CHANNELS), np.uint8)


class Problem:
    """An image (height, width, 3) to be filtered; beyond its edges are zeros, and results are clamped to 0..255."""

    def __init__(self, x: Image) -> None:
        self.x = x
        self.height, self.width, _ = x.shape
        self.samples = self.height * self.width

    def __str__(self) -> str:
        return f"5x5 Laplace filter, {self.width}x{self.height} RGB pixels"

    @cached_property
    def bordered(self) -> Image:
        return np.pad(self.x, ((RADIUS, RADIUS), (RADIUS, RADIUS), (0, 0)))

    def expected(self, oracle: str) -> Image:
        if oracle == COPY:
            return self.x
        sums = ndimage.correlate(self.x.astype(np.int32), WEIGHTS, mode="constant")
        return np.asarray(np.clip(sums, 0, 255, out=sums), np.uint8)


@njit(error_model="numpy", nogil=True, cache=True)  # type: ignore[untyped-decorator]  # numba has no types
def plain(bordered: Any, y: Any, start: int, stop: int) -> None:
    """The sum of 25 pixels after the other. Both are (height, width, 3), x with two pixels of zeros on every side."""
    width = y.shape[1]
    for row in range(start, stop):
        for column in range(width):
            for channel in range(CHANNELS):
                total = np.int32(0)
                for i in range(SIDE):
                    for j in range(SIDE):
                        total = np.int32(total + bordered[row + i, column + j, channel])
                centre = bordered[row + RADIUS, column + RADIUS, channel]
                value = np.int32(AREA * centre - total)
                y[row, column, channel] = min(max(value, np.int32(0)), np.int32(255))


def _host(kernel: Callable[..., object], spread: bool, problem: Problem) -> Prepared:
    """Prepare ``kernel(problem, y, start, stop)`` of all rows in this thread, or ``spread`` over all threads."""
    y = np.empty_like(problem.x)
    work, grain = partial(kernel, problem, y), max(GRAIN // y[0].size, 1)

    def call() -> Image:
        if spread:
            threads.parallel(work, problem.height, grain)
        else:
            work(0, problem.height)
        return y

    return Prepared(call)


def _plain(problem: Problem, y: Image, start: int, stop: int) -> None:
    plain(problem.bordered, y, start, stop)


def _copied(problem: Problem, y: Image, start: int, stop: int) -> None:
    np.copyto(y[start:stop], problem.x[start:stop])


def on_gpu(variant: Variant | None, problem: Problem) -> Prepared:
    """Prepare a kernel, or a copy if it is None, on data in device memory."""
    used, wide = CHANNELS * problem.width, variant is not None and variant.memory == "wide"
    rows = problem.x.reshape(problem.height, used)
    if wide:  # as cudaMallocPitch lays rows out; the zeros behind them serve as the border
        rows = np.pad(rows, ((0, 0), (0, pitch(problem.width) - used)))
    x = rows.reshape(-1).view(np.uint32 if wide else np.uint8)

    def host(result: Any) -> Image:
        image: Image = result.copy_to_host().view(np.uint8).reshape(problem.height, -1)[:, :used]
        return image.reshape(problem.x.shape)

    if variant is None:
        return on_device(x, None, host)
    from wavefilt.benchmarks.laplace.image_kernels import kernel

    launched, grid = kernel(variant), variant.grid(problem.width, problem.height)
    sizes = np.int32(x.size // problem.height), np.int32(problem.height)
    return on_device(x, lambda x, y, stream: launched[grid, variant.block, stream](x, y, *sizes), host)


_cpu = partial(Implementation, oracle=SCIPY, tolerance=0)
_cuda = partial(_cpu, require=partial(backends.get, "cuda"))
_PLAIN = "the 25 pixels one after the other, zeros around the image"
_SPREAD = "the same, rows spread over threads"
IMPLEMENTATIONS = (
    _cpu("plain", ("plain", "1 core"), _PLAIN, partial(_host, _plain, False)),
    _cpu("threads", ("plain", "all cores"), _SPREAD, partial(_host, _plain, True)),
    *(_cuda(v.name, v.heads, v.what, partial(on_gpu, v)) for v in VARIANTS),
)
_COPIED = "the image copied, rows spread over threads"
COPIES = (
    _cpu("host_copy", ("CPU", "copy"), _COPIED, partial(_host, _copied, True), oracle=COPY),
    _cuda("gpu_copy", ("GPU", "copy"), "the image copied in device memory", partial(on_gpu, None), oracle=COPY),
)
"""A filter reads and writes each byte at least once."""


def run(
    problem: Problem,
    repeats: int = REPEATS,
    budget: float = BUDGET,
    device: str | None = None,
    progress: Progress = iter,
) -> Row:
    """Return times in milliseconds of every implementation, as a table for JSON: see `columns.compare`."""
    counted = {v.name: v.launch(problem.width, problem.height) for v in VARIANTS}
    how = ("plain", "median", repeats, budget, device, progress)  # ratios are to the plain loop, of medians
    row, facts = columns.compare(problem, (*IMPLEMENTATIONS, *COPIES), CHANNELS, counted, *how)
    row |= {"image": MADE, "width": problem.width, "height": problem.height}
    row["megapixels a second"] = {k: 1e-3 * row["samples"] / times["median"] for k, times in row["times"].items()}
    method = "5x5 Laplace filter (all -1, centre 24) on interleaved RGB bytes, zeros beyond edges, clamped to 0..255; "
    method += f"median and quartiles of up to {repeats} runs in {budget:g} s; {columns.GPU_TIME}"
    return result("laplace2d", unit="ms", method=method, **facts, rows=[row])


TIMES: dict[str, Column] = {
    "|5x5 Laplace": "{label}",
    "|ms": "?{times:spread}",
    "megapixels|a second": "?{megapixels a second:n}",
    "times|plain": "?{ratios:n}",
    "share of|a copy": "?{shares:.0%}",
}


def report(result: Row) -> Report:
    """Return times, ratios, and estimates if there are any."""
    (row,) = result["rows"]
    title = f"5x5 Laplace filter, {row['width']}x{row['height']} RGB pixels, image {row['image']}; ± is half the "
    title += "interquartile range"
    return columns.report(result, title, TIMES)

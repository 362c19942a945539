"""The kernels of the GPU backend as they are launched, of every family, for compilation without a GPU.

To be imported in a process where `wavefilt.backends.cuda.runtime.rehearsal` has begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pywt
from numba import types

from wavefilt.backends.cuda import trend
from wavefilt.backends.cuda.dual_tree import (
    gains,
    panels_analysis,
    panels_synthesis,
    traces_analysis,
    traces_synthesis,
)
from wavefilt.backends.cuda.dual_tree.filters import Level
from wavefilt.backends.cuda.dual_tree.panels_plan import DualTreePanelPlan, synthesis_threads
from wavefilt.backends.cuda.dual_tree.tiles import MOST_LEVELS, Fused
from wavefilt.backends.cuda.dwt import cycle_spinning, local_shrinkage, one_block
from wavefilt.backends.cuda.dwt.forward import forward
from wavefilt.backends.cuda.dwt.inverse import inverse
from wavefilt.backends.cuda.dwt.plan import MOST_TAPS_SEARCHED
from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES, Filter, FusedLevels, at_once, launches
from wavefilt.backends.cuda.dwt2 import forward as panels_forward
from wavefilt.backends.cuda.dwt2 import inverse as panels_inverse
from wavefilt.backends.cuda.dwt2 import plan as panels_plan
from wavefilt.backends.cuda.dwt2.columns import PanelLevel
from wavefilt.backends.cuda.modwt import kernels as modwt_kernels
from wavefilt.backends.cuda.modwt import local_shrinkage as modwt_local_shrinkage
from wavefilt.backends.cuda.modwt import tiling
from wavefilt.backends.cuda.options import SHAPES
from wavefilt.backends.cuda.plan import NoiseOf
from wavefilt.backends.cuda.statistics import details, lists, sampling, scanning, selection, short_rows, sorting
from wavefilt.backends.cuda.thresholding import choosing
from wavefilt.backends.cuda.thresholding import kernels as shrinking
from wavefilt.transforms import DWT
from wavefilt.transforms.dtcwt import axis_grids
from wavefilt.wavelets.dual_tree import DualTree

size, table, yes = types.int64, types.Array(types.int32, 1, "C"), types.boolean
i, d = types.Array(types.int64, 1, "C"), types.Array(types.float64, 1, "C")
"""Types of arguments that do not depend on that of samples."""


@dataclass(frozen=True)
class Compiled:
    """A kernel, the types of its ``arguments``, and the ``threads`` of its blocks."""

    name: str
    kernel: Any
    arguments: tuple[Any, ...]
    threads: int = 256


def every(dtype: str) -> Iterator[Compiled]:
    """Of samples of a type, "float32" or "float64"."""
    yield from _dwt(dtype)
    if dtype == "float32":
        yield from _rows()
    yield from _statistics(dtype)
    yield from _modwt_and_panels(dtype)
    yield from _shrinkage(dtype)
    yield from _dual_tree(dtype)


def _samples(dtype: str) -> Any:
    return types.Array(getattr(types, dtype), 1, "C")


def _dwt(dtype: str) -> Iterator[Compiled]:
    a = _samples(dtype)
    tile = fixed = TILE_BYTES // (4 if dtype == "float32" else 8)
    cases: list[tuple[str, tuple[str, ...], tuple[bool, ...], int, int]] = [
        ("haar", ("hard", "garrote", "firm", "keep"), (False,), 256, tile),
        ("db8", ("soft",), (False, True), 256, tile),
        ("sym20", ("soft",), (False,), 256, tile),
        ("coif17", ("soft",), (dtype == "float64",), 256, tile),
    ]
    if dtype == "float32":
        names = {8: "db4", 16: "db8"}
        shapes = dict.fromkeys((names[most], threads, own) for (_, most), *_, threads, own in SHAPES)
        cases += [(name, ("soft",), (False,), threads, own) for name, threads, own in shapes]
    for name, functions, modes, threads, tile in cases:
        lo, hi, rec_lo, rec_hi = (tuple(f) for f in pywt.Wavelet(name).filter_bank)
        fused = {(p, launches(Filter(len(lo), p), 8, tile)[0]) for p in modes}
        fused |= {(p, 5) for p in modes if at_once(Filter(len(lo), p), 5, tile, 4 if dtype == "float32" else 8, 1)}
        for periodized, levels in sorted(fused):
            each = types.UniTuple(size, levels)
            arguments = (a, size, yes, a, each, each, a, table, size, size, size, size, i, i, a, size, a)
            analysis = FusedLevels(lo, hi, periodized, dtype, levels, tile, threads)
            synthesis = FusedLevels(rec_lo, rec_hi, periodized, dtype, levels, tile, threads)
            searched = len(lo) <= MOST_TAPS_SEARCHED
            if not searched or (threads, tile) == (256, fixed):
                kernel = forward(analysis, False)
                yield Compiled(f"forward-{name}-{periodized}-{threads}x{tile}x{levels}", kernel, arguments, threads)
            if searched:
                kernel = forward(analysis, False, True)
                yield Compiled(
                    f"forward-{name}-{periodized}-{threads}x{tile}x{levels}-searching", kernel, arguments, threads
                )
            back = (a, a, each, each, a, size, a, size, yes, size, size, size, table, a, table, yes, a)
            for function in functions:
                kernel = inverse(synthesis, function, False)
                yield Compiled(
                    f"inverse-{name}-{periodized}-{function}-{threads}x{tile}x{levels}", kernel, back, threads
                )
            if name == "db8":
                kernel = forward(analysis, False, False, True)
                yield Compiled(
                    f"forward-{name}-{periodized}-{threads}x{tile}x{levels}-centred", kernel, arguments, threads
                )
                kernel = inverse(synthesis, "keep", False, True)
                yield Compiled(
                    f"inverse-{name}-{periodized}-keep-{threads}x{tile}x{levels}-centred", kernel, back, threads
                )


def _rows() -> Iterator[Compiled]:
    a = _samples("float32")
    how = types.UniTuple(size, 3)
    arguments = (a, yes, a, yes, size, size, size, table, table, d, how, types.float64, table)
    for name, threads in (("db8", 128), ("db4", 128), ("sym8", 256), ("db8", 512), ("sym16", 512)):
        lo, hi, rec_lo, rec_hi = (tuple(f) for f in pywt.Wavelet(name).filter_bank)
        of = one_block.RowFilters(lo, hi, rec_lo, rec_hi, "float32", threads)
        yield Compiled(f"rows-{name}-{threads}", one_block.denoising(of, "soft"), arguments, threads)


def _statistics(dtype: str) -> Iterator[Compiled]:
    a, k = _samples(dtype), types.Array(types.int32 if dtype == "float32" else types.int64, 1, "C")
    drawn, how = selection.drawn(dtype), types.Tuple((size, yes, yes, yes))
    searches = {
        short_rows.whole(dtype, 512, short_rows.ROOMS[1]): (a, k, i, size, size, size, size, yes, k, d),
        sampling.sample(dtype, drawn, 256): (k, i, size, size, k, size, i, i, i, k),
        sampling.draw(dtype, 16, drawn, 256): (a, size, size, a, k, i, i, i, k),
        scanning.scan(dtype, selection.STAGE, 256): (a, k, i, size, size, size, size, how, i, i, i, a, k, k, d, d),
        lists.settle(dtype, 256): (k, i, size, size, size, size, i, i, i, k, k),
        lists.finish(dtype, 256, selection.CLOSE): (k, i, size, size, size, i, i, yes, k, k),
        scanning.narrow(dtype, 256): (i, i, i, k, k, size),
        scanning.gather(256): (d, i, size, size, size, size, yes, d),
    }
    for kernel, arguments in searches.items():
        name = kernel.py_func.__name__
        yield Compiled(name, kernel, arguments, 512 if name == "whole" else 256)
    signatures = {
        "pack": (k, size, size, size, size, k, size, size, yes),
        "pad": (k, size, size, size),
        "near": (k, size, size),
        "far": (k, size, size, size, size),
        "sums": (a, size, size, d, d),
        "accumulate": (d, size, size),
        "pick": (d, i, a, size, size, d, size, d),
    }
    kernels = sorting.kernels(dtype, 256, sorting.SPAN)
    for name, arguments in signatures.items():
        yield Compiled(name, kernels[name], arguments)
    for rule in ("linear", "fixed", "bayes"):
        kernel = choosing.choose(rule, "level", dtype, 256, NoiseOf())
        arguments = (a, size, a, d, d, d, types.float64, size, size, size, i, size, d, a, table, table)
        yield Compiled(f"choose-{rule}", kernel, arguments)
    yield Compiled("modwt-extend", modwt_kernels.extend("smooth", dtype, 256), (a, *[size] * 5, a, size, size, table))
    yield Compiled("mean", cycle_spinning.mean(dtype, 256), (a, size, size, size, a, size, size))
    yield Compiled("leave", shrinking.leaving(dtype, 256), (a, a, size, size, table))
    yield Compiled("mark", shrinking.marking(dtype, 256), (a, size, size, table, size, size, size))


def _modwt_and_panels(dtype: str) -> Iterator[Compiled]:
    a = _samples(dtype)
    place, threads = types.UniTuple(size, 4), tiling.threads_for(dtype, 256)
    for name, circular, start_level in (("db8", False, 0), ("db4", True, 4)):
        lo, hi, rec_lo, rec_hi = (tuple(f) for f in pywt.Wavelet(name).filter_bank)
        one = tiling.launches(len(lo), 2, start_level, dtype, threads)[0]
        each = types.UniTuple(place, one.last)
        kernel = modwt_kernels.analysis(lo, hi, circular, not start_level, dtype, one.forward)
        yield Compiled(
            f"modwt-analysis-{name}", kernel, (a, place, yes, a, *[size] * 6, a, each, a, place, table), threads
        )
        kernel = modwt_kernels.synthesis(rec_lo, rec_hi, circular, dtype, one.inverse, "soft")
        yield Compiled(f"modwt-synthesis-{name}", kernel, (a, place, a, each, a, *[size] * 5, a, place, yes), threads)
    height, short = panels_plan.TILE_BYTES // (4 if dtype == "float32" else 8) // 256, types.int32
    pair, shorts, bands = types.UniTuple(size, 2), types.UniTuple(short, 3), (a, types.UniTuple(size, 4))
    tiles = types.UniTuple(short, 2)
    panels = (("db4", True, False, "soft"), ("db4", False, True, "soft"), ("db8", False, False, "firm"))
    for name, several, periodized, function in panels:
        lo, hi, rec_lo, rec_hi = (tuple(f) for f in pywt.Wavelet(name).filter_bank)
        axes, extends = (periodized, periodized), (several, several)
        kernel = panels_forward.forward(PanelLevel((lo, hi), (lo, hi), axes, extends, dtype, height, 256), False)
        arguments: tuple[Any, ...] = (a, pair, shorts, *bands, shorts, size, tiles, table, pair)
        yield Compiled(f"panels-forward-{name}-{periodized}", kernel, arguments)
        back = (rec_lo, rec_hi)
        kernel = panels_inverse.inverse(PanelLevel(back, back, axes, extends, dtype, height, 256), function, False)
        arguments = (*bands, shorts, size, size, tiles, a, size, a, pair, shorts, yes, table, yes)
        yield Compiled(f"panels-inverse-{name}-{periodized}-{function}", kernel, arguments)


def _shrinkage(dtype: str) -> Iterator[Compiled]:
    a = _samples(dtype)
    for name, mode, level in (("sym8", "reflect", 6), ("db8", "periodization", 12), ("coif17", "zero", 4)):
        analysis = DWT.analysis(pywt.Wavelet(name), mode, level)
        for part, one in enumerate(local_shrinkage.launches(DWT.grids(analysis, (1 << 24,)), dtype, 256, 1)):
            each = types.UniTuple(size, len(one.bands))
            kernel = local_shrinkage.shrinking(one.tile)
            yield Compiled(f"local-{name}-{mode}-{part}", kernel, (a, a, each, each, each, a, size, size))
    for periodic in (False, True):
        kernel = modwt_local_shrinkage.shrinking(dtype, 256, periodic)
        yield Compiled(f"local-modwt{'-periodic' if periodic else ''}", kernel, (a, a, i, size, a, size, size, size))
    yield Compiled("trend-fit", trend.fit(dtype, 256, True), (a, size, size, yes, size, d))
    yield Compiled("trend-settle", trend.settle(dtype, 256, True), (d, size, size, size, d, a))
    for name, restoring in (("remove", False), ("restore", True)):
        kernel = trend.change(dtype, 256, True, restoring)
        yield Compiled(f"trend-{name}", kernel, (a, a, *[size] * 4, yes, d, table))
    for kernel in (details.counting_above(dtype, 256), details.counting_bins(dtype, 256, 512)):
        yield Compiled(kernel.py_func.__name__, kernel, (a, size, size, size, size, d, size, i))
    yield Compiled("block", shrinking.block(dtype, 256), (a, a, size, size, size, size, d, size, size))
    for prior, estimator in (("ebayes", "median"), ("ebayes-cauchy", "mean")):
        kernel = shrinking.posterior(dtype, prior, estimator, 256)
        yield Compiled(f"posterior-{prior}-{estimator}", kernel, (a, a, size, size, size, size, d, d, d))


def _dual_tree(dtype: str) -> Iterator[Compiled]:
    a = _samples(dtype)
    two, three = types.UniTuple(size, 2), types.UniTuple(size, 3)
    for tree in (DualTree(), DualTree("antonini", "qshift_d"), DualTree("legall", "qshift_06")):
        bank = [tuple(map(float, taps)) for taps in tree.filter_bank]
        ahead = [Level.of(bank, j, dtype, 256, False) for j in range(MOST_LEVELS)]
        back = [Level.of(bank, j, dtype, synthesis_threads(dtype, 256), True) for j in range(2)]
        for j in range(2):
            arguments: tuple[Any, ...] = (a, three, two, two, two, size, a, three, a, a, three, two)
            yield Compiled(
                f"dual-panels-analysis-{tree.name}-{j}", panels_analysis.analysis(ahead[j], False), arguments
            )
            arguments = (a, three, a, three, two, a, two, size, a, three, two, two, yes, table, yes)
            for weighed in (False, True):
                kernel = panels_synthesis.synthesis(back[j], weighed, False)
                yield Compiled(
                    f"dual-panels-synthesis-{tree.name}-{j}-{weighed}", kernel, arguments, 2 * back[j].threads
                )
        tile, levels = TILE_BYTES // (4 if dtype == "float32" else 8), types.UniTuple(types.Tuple((size, size, two)), 4)
        of = Fused(tuple(ahead), tile)
        kernel = traces_analysis.analysis(of, True, True, False)
        yield Compiled(f"dual-traces-analysis-{tree.name}", kernel, (a, two, yes, size, levels, a, a, a, two, a))
        of = Fused(tuple(Level.of(bank, j, dtype, 256, True) for j in range(MOST_LEVELS)), tile)
        arguments = (a, two, size, a, a, levels, a, size, a, two, yes, size, a, table, yes)
        for function in ("gains", "soft"):
            kernel = traces_synthesis.synthesis(of, function, function == "gains", True, False)
            yield Compiled(f"dual-traces-synthesis-{tree.name}-{function}", kernel, arguments)
    for width in (1, 4):
        kernel = gains.of_panels(dtype, 256, width)
        yield Compiled(f"dual-gains-panels-{width}", kernel, (a, a, three, two, a, two, size, size))
    levels = axis_grids(4, 1 << 20)
    one = local_shrinkage.launches((*levels, levels[-1]), dtype, 256, 4, 2)[0]
    places = types.UniTuple(size, len(one.bands))
    yield Compiled("dual-gains-traces", local_shrinkage.shrinking(one.tile), (a, a, *[places] * 3, a, size, size))
    yield Compiled("dual-gains-firm", gains.pointwise("firm", dtype, 256), (a, a, i, a, size, size, size))
    yield Compiled("dual-magnitudes", gains.measuring(dtype, 256), (a, a, size))
    kernel = choosing.choose("bayes", "level", dtype, 256, DualTreePanelPlan.noise)
    yield Compiled(
        "choose-dual", kernel, (a, size, a, d, d, d, types.float64, size, size, size, i, size, d, a, table, table)
    )

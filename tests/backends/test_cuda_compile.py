"""Kernels of the GPU backend compiled for sm_90 without a GPU: no double precision by accident, nothing spilled."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import pywt

from tests.support.checkout import ROOT

MODULE = "tests.backends.test_cuda_compile"


def _ptxas() -> str | None:
    """That of the wheel: one of the system may not know the compiler's version of PTX."""
    spec = find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for found in sorted(Path(folder).glob("*/bin/ptxas")):
            return str(found)
    return None


@pytest.fixture(scope="module", params=["float32", "float64"])
def compiled(request, tmp_path_factory):
    """PTX of every kernel of this dtype, by name."""
    if find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    # in its own process: the suite turns warnings of libraries into errors
    subprocess.run([sys.executable, "-m", MODULE, request.param, str(folder)], check=True, timeout=600, cwd=ROOT)
    return request.param, sorted(folder.glob("*.ptx"))


@pytest.mark.sm_90
def test_numpy_without_row_stack():
    """NumPy 2.5 has none, and deprecates what numba-cuda does when it is imported."""
    pytest.importorskip("numba_cuda")
    code = (
        "import numpy; vars(numpy).pop('row_stack', None)\n"
        "import wavefilt.backends.cuda.runtime.target, numba.cuda.np.arrayobj\n"
        "assert 'row_stack' not in vars(numpy)"
    )
    subprocess.run([sys.executable, "-W", "error::DeprecationWarning", "-c", code], check=True, timeout=60, cwd=ROOT)


DOUBLE = (
    "whole",
    "scan",
    "gather",
    "sums",
    "accumulate",
    "pick",
    "choose-linear",
    "choose-fixed",
    "choose-bayes",
    "exceeding",
    "histogram",
    "block",
    "posterior-ebayes-median",
    "posterior-ebayes-cauchy-mean",
)
"""Kernels that sum squares, compare with thresholds of float64 or make them, in float64 whatever the samples are."""


def test_kernels_of_float32_use_no_double_precision(compiled):
    dtype, files = compiled
    assert len([path for path in files if path.stem.startswith(("forward", "inverse"))]) >= 9
    assert {path.stem for path in files} >= set(DOUBLE)
    if dtype == "float32":
        assert not [path.stem for path in files if path.stem not in DOUBLE and ".f64" in path.read_text()]


def test_nothing_is_spilled_and_shared_memory_is_small(compiled):
    ptxas = _ptxas()
    if ptxas is None:
        pytest.skip("ptxas is not installed (wheel nvidia-cuda-nvcc)")
    for path in compiled[1]:
        limit = re.search(r"-(\d+)$", path.stem)  # of registers
        command = [ptxas, "-arch=sm_90", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
        command += [f"-maxrregcount={limit[1]}"] if limit else []
        report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        spilled = int(re.search(r"(\d+) bytes spill stores", report)[1])
        # one register of the search with the compiler of CUDA 13.5, none before; 48 registers would cost more
        assert spilled <= (4 if "-searching-" in path.stem else 0), path.stem
        shared = re.search(r"(\d+) bytes smem", report)
        assert shared is None or int(shared[1]) <= 48 << 10, path.stem


def _compile(dtype: str, folder: Path) -> None:
    from numba import types
    from numba.cuda import dispatcher

    # device functions ask the driver, which need not be there, what to compile for
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))  # type: ignore[attr-defined]

    from wavefilt.backends.cuda.dwt import cycle_spinning
    from wavefilt.backends.cuda.dwt.forward import forward
    from wavefilt.backends.cuda.dwt.inverse import inverse
    from wavefilt.backends.cuda.dwt.plan import MOST_TAPS_SEARCHED
    from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES, Filter, FusedLevels, launches
    from wavefilt.backends.cuda.dwt2 import forward as panels_forward
    from wavefilt.backends.cuda.dwt2 import inverse as panels_inverse
    from wavefilt.backends.cuda.dwt2.columns import PanelLevel
    from wavefilt.backends.cuda.modwt import kernels as modwt_kernels
    from wavefilt.backends.cuda.modwt import tiling
    from wavefilt.backends.cuda.options import SHAPES
    from wavefilt.backends.cuda.runtime.target import cuda, registers_for
    from wavefilt.backends.cuda.statistics import details, sampling, scanning, selection, short_rows, sorting
    from wavefilt.backends.cuda.thresholding import choosing
    from wavefilt.backends.cuda.thresholding import kernels as shrinking

    real, key, size = getattr(types, dtype), types.int32 if dtype == "float32" else types.int64, types.int64
    a, k, i, d = (types.Array(t, 1, "C") for t in (real, key, types.int64, types.float64))
    table, yes = types.Array(types.int32, 1, "C"), types.boolean

    def write(name: str, kernel: object, arguments: tuple[object, ...]) -> None:
        ptx, _ = cuda.compile_ptx(kernel.py_func, arguments, cc=(9, 0))  # type: ignore[attr-defined]
        (folder / f"{name}.ptx").write_text(ptx)

    tile = fixed = TILE_BYTES // (4 if dtype == "float32" else 8)
    cases = [
        ("haar", ("hard", "garrote", "firm", "keep"), (False,), 256, tile),
        ("db8", ("soft",), (False, True), 256, tile),
        ("sym20", ("soft",), (False,), 256, tile),
        ("coif17", ("soft",), (dtype == "float64",), 256, tile),
    ]
    if dtype == "float32":
        cases += [({8: "db4", 16: "db8"}[taps], ("soft",), (False,), *shape) for taps, _, _, *shape in SHAPES]
    for name, functions, modes, threads, tile in cases:
        lo, hi, rec_lo, rec_hi = (tuple(f) for f in pywt.Wavelet(name).filter_bank)
        for periodized in modes:
            limit = registers_for(dtype, len(lo), periodized)
            levels = launches(Filter(len(lo), periodized), 8, tile)[0]
            each = types.UniTuple(size, levels)
            arguments = (a, size, yes, a, each, each, a, table, size, size, size, size, i, a, size)
            analysis = FusedLevels(lo, hi, periodized, dtype, levels, tile, threads)
            synthesis = FusedLevels(rec_lo, rec_hi, periodized, dtype, levels, tile, threads)
            searched = len(lo) <= MOST_TAPS_SEARCHED
            if not searched or (threads, tile) == (256, fixed):
                kernel = forward(analysis, False)
                write(f"forward-{name}-{periodized}-{threads}x{tile}", kernel, arguments)
            if searched:
                kernel = forward(analysis, False, True)
                write(f"forward-{name}-{periodized}-{threads}x{tile}-searching-{limit}", kernel, arguments)
            for function in functions:
                limit = registers_for(dtype, len(lo), periodized, function)
                kernel = inverse(synthesis, function, False)
                write(
                    f"inverse-{name}-{periodized}-{function}-{threads}x{tile}-{limit}",
                    kernel,
                    (a, a, each, each, a, size, a, size, yes, size, size, size, table, a, table, yes),
                )
    drawn, how = selection.drawn(dtype), types.Tuple((size, yes, yes, yes))
    searches = {
        short_rows.whole(dtype, 256): (a, k, i, size, size, size, size, yes, k, d),
        sampling.sample(dtype, drawn, 256): (k, i, size, i, k),
        sampling.draw(dtype, 16, drawn, 256): (a, size, size, a, a, k, i, k),
        scanning.scan(dtype, selection.STAGE, 256): (a, k, i, size, size, size, size, how, i, i, i, a, k, k, d),
        scanning.settle(dtype, 256): (k, i, size, size, size, size, i, i, i, k, k),
        scanning.narrow(dtype, 256): (i, i, i, k, k),
        scanning.gather(256): (d, i, size, size, size, size, yes, d),
    }
    for kernel, arguments in searches.items():
        write(kernel.py_func.__name__, kernel, arguments)
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
        write(name, kernels[name], arguments)
    for rule in ("linear", "fixed", "bayes"):
        kernel = choosing.choose(rule, "level", dtype, 256)
        arguments = (a, size, a, d, d, d, types.float64, size, size, size, i, size, d, a, table, table)
        write(f"choose-{rule}", kernel, arguments)
    write("modwt-extend", modwt_kernels.extend("smooth", dtype, 256), (a, *[size] * 5, a, size, size, table))
    write("mean", cycle_spinning.mean(dtype, 256), (a, size, size, size, a, size, size))
    write("leave", shrinking.leaving(dtype, 256), (a, a, size, size, table))
    write("mark", shrinking.marking(dtype, 256), (a, size, size, table, size, size, size))
    place, threads = types.UniTuple(size, 4), tiling.threads_for(dtype, 256)
    for name, circular, start_level in (("db8", False, 0), ("db4", True, 4)):
        lo, hi, rec_lo, rec_hi = (tuple(f) for f in pywt.Wavelet(name).filter_bank)
        one = tiling.launches(len(lo), 2, start_level, dtype, threads)[0]
        each = types.UniTuple(place, one.last)
        kernel = modwt_kernels.analysis(lo, hi, circular, not start_level, dtype, one.forward)
        limit = modwt_kernels.registers(dtype, len(lo))
        write(
            f"modwt-analysis-{name}" + (f"-{limit}" if limit else ""),
            kernel,
            (a, place, yes, a, *[size] * 6, a, each, a, place, table),
        )
        kernel = modwt_kernels.synthesis(rec_lo, rec_hi, circular, dtype, one.inverse, "soft")
        write(f"modwt-synthesis-{name}", kernel, (a, place, a, each, a, *[size] * 5, a, place, yes))
    height, short = tile // 256, types.int32
    pair, shorts, bands = types.UniTuple(size, 2), types.UniTuple(short, 3), (a, types.UniTuple(size, 4))
    tiles = types.UniTuple(short, 2)
    panels = (("db4", True, False, "soft"), ("db4", False, True, "soft"), ("db8", False, False, "firm"))
    for name, several, periodized, function in panels:
        lo, hi, rec_lo, rec_hi = (tuple(f) for f in pywt.Wavelet(name).filter_bank)
        axes, extends = (periodized, periodized), (several, several)
        kernel = panels_forward.forward(PanelLevel((lo, hi), (lo, hi), axes, extends, dtype, height, 256), False)
        arguments = (a, pair, shorts, *bands, shorts, size, tiles, table, pair)
        limit = panels_forward.registers(dtype, len(lo))
        write(f"panels-forward-{name}-{periodized}" + (f"-{limit}" if limit else ""), kernel, arguments)
        back = (rec_lo, rec_hi)
        kernel = panels_inverse.inverse(PanelLevel(back, back, axes, extends, dtype, height, 256), function, False)
        arguments = (*bands, shorts, size, size, tiles, a, size, a, pair, shorts, yes, table, yes)
        limit = panels_inverse.registers(dtype, len(lo), periodized, function)
        write(f"panels-inverse-{name}-{periodized}-{function}" + (f"-{limit}" if limit else ""), kernel, arguments)
    for kernel in (details.counting_above(dtype, 256), details.counting_bins(dtype, 256, 512)):
        write(kernel.py_func.__name__, kernel, (a, size, size, size, size, d, size, i))
    write("block", shrinking.block(dtype, 256), (a, a, size, size, size, size, d, size, size))
    for prior, estimator in (("ebayes", "median"), ("ebayes-cauchy", "mean")):
        kernel = shrinking.posterior(dtype, prior, estimator, 256)
        write(f"posterior-{prior}-{estimator}", kernel, (a, a, size, size, size, size, d, d, d))


if __name__ == "__main__":
    _compile(sys.argv[1], Path(sys.argv[2]))

"""Kernels of the GPU backend compiled without a GPU, as they are for one: no double precision by accident, no spills.

Those of float32 for sm_90, those of a denoise by the default filter for float64 and other GPUs, and all for all with
``-m sm_all``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
import pywt

from tests.support.checkout import ROOT
from wavefilt.benchmarks.gpu import first_call
from wavefilt.threads import available_cpus

MODULE = "tests.backends.test_cuda_compile"


def _ptxas() -> str | None:
    """That of the wheel: one of the system may not know the compiler's version of PTX."""
    spec = find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for found in sorted(Path(folder).glob("*/bin/ptxas")):
            return str(found)
    return None


GPUS = [(7, 5, ""), (8, 0, ""), (8, 6, ""), (8, 9, ""), (9, 0, "a"), (10, 0, "a"), (12, 0, "a")]
"""Compute capabilities as numba names them to the linker."""
EVERYWHERE = (
    r"forward-db8-False-256x\d+x4-searching",
    r"inverse-db8-False-soft-256x\d+x4",
    "draw$",
    "settle$",
    "choose-linear$",
)
"""Names of the kernels that are compiled for all of them, and for both types."""
PARTS = ("every second", "the others")
"""Of the kernels of float32, compiled side by side."""


def _compiled(dtype: str, tmp_path_factory, which: str) -> list[Path]:
    """PTX of kernels of this dtype after optimization at link time."""
    if find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    folder = tmp_path_factory.mktemp(dtype)
    # in its own process: there is a GPU in it that is not there, and the suite turns warnings of libraries into errors
    command = [sys.executable, "-m", MODULE, dtype, str(folder), which]
    subprocess.run(command, check=True, timeout=3600, cwd=ROOT, env=os.environ | {"NUMBA_CACHE_DIR": str(folder)})
    return sorted(folder.glob("*.ptx"))


@pytest.fixture(scope="module", params=[*(("float32", part) for part in PARTS), ("float64", "default")], ids=" ".join)
def compiled(request, tmp_path_factory):
    dtype, which = request.param
    return dtype, _compiled(dtype, tmp_path_factory, which), which


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


@pytest.mark.sm_90
def test_places_are_not_negative(tmp_path):
    """An access whose index is a thread's place computes one address, and does not compare the place with 0."""
    pytest.importorskip("numba_cuda")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, "-c", PLACES]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, cwd=ROOT, env=environment, check=False)
    assert done.stdout == "False\nTrue\n", done.stderr[-3000:]


PLACES = """
from wavefilt.backends.cuda.runtime import rehearsal
rehearsal.begin((9, 0))
from numba import types
from wavefilt.backends.cuda.runtime import compiler
from wavefilt.backends.cuda.runtime.target import cuda

def code():
    @compiler.kernel()
    def place(x):
        x[cuda.threadIdx.x] = 1

    compiled = place.compile.code((types.Array(types.float32, 1, "C"),))
    return compiled._codelibrary.get_lto_ptx((9, 0, "a"))

print("setp" in code() or "shr.s" in code())
compiler.not_negative = lambda code: code
print("setp" in code() or "shr.s" in code())
"""


TAPS = """
import os, re, sys
from contextlib import nullcontext
from wavefilt.backends.cuda.runtime import rehearsal
rehearsal.begin((9, 0))
import pywt
from numba import types
from wavefilt import stages
from wavefilt.backends.cuda.dwt import tiling
from wavefilt.backends.cuda.dwt.inverse import inverse
from wavefilt.backends.cuda.runtime import compiler

i, a, t, yes = types.int64, *(types.Array(x, 1, "C") for x in (types.float32, types.int32)), types.boolean
each, plain, made = types.UniTuple(i, 1), compiler._Kernel, []

def counted(*arguments, **options):
    made.append(stages.current()[0])
    return plain(*arguments, **options)

def code(name):
    lo, hi = pywt.Wavelet(name).filter_bank[2:]
    kernel = inverse(tiling.FusedLevels(tuple(lo), tuple(hi), False, "float32", 1, 256, 64), "soft", False)
    compiled = kernel.compile((a, a, each, each, a, i, a, i, yes, i, i, i, t, a, t, yes, a))
    ptx = compiled._codelibrary.get_lto_ptx((9, 0, "a"))
    return re.sub(r"_(Z|cudapy_smem_)\\w+|//.*", "", ptx)

compiler._Kernel = counted
db4, sym4 = code("db4"), code("sym4")
assert made == [stages.COMPILING], made
assert db4 != sym4
inverse.cache_clear()
assert code("db4") == db4 and len(made) == 1
compiler.quick, tiling.numbered = nullcontext, lambda *filters: filters
os.environ["NUMBA_CACHE_DIR"] += "/other"
for cached in vars(sys.modules[inverse.__module__]).values():
    if hasattr(cached, "cache_clear"):
        cached.cache_clear()
assert code("sym4") == sym4 and len(made) == 2
print("done")
"""


@pytest.mark.sm_90
def test_one_compilation_for_all_filters_of_a_length(tmp_path):
    """The code is that of the taps themselves, by numba's compiler as it is; it comes from the cache the next time."""
    pytest.importorskip("numba_cuda")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, "-W", "error", "-c", TAPS]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, cwd=ROOT, env=environment, check=False)
    assert done.stdout == "done\n", done.stderr[-3000:]


WARM = """
from wavefilt.backends.cuda import warming
from wavefilt.backends.cuda.runtime import compiler
options = {"wavelet": "haar", "rule": "universal", "level": 1}
warming.SHAPES[1] = [(1, (1 << 16,))]
warming.warm_up([options], ["float32"], (9, 0))
compiler._Kernel = None
import json
launches = warming.needed(json.dumps([options]), ["float32"], (9, 0))
assert {"forward_kernel", "inverse_kernel", "choose_kernel"} <= {kernel.py_func.__name__ for kernel, _ in launches}
for kernel, types in launches:
    assert kernel.compile(types)
print(len(launches))
"""


@pytest.mark.sm_90
def test_warm_up_without_a_gpu(tmp_path):
    """Kernels compiled by other processes are found in the cache; nothing is compiled again."""
    pytest.importorskip("numba_cuda")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "WAVEFILT_NUM_THREADS": "2"}
    run = [sys.executable, "-c", WARM]
    done = subprocess.run(run, capture_output=True, text=True, timeout=600, cwd=ROOT, env=environment, check=False)
    assert int(done.stdout or 0) > 3, done.stderr[-3000:]


RELEASED = """
import os, re, sys
from pathlib import Path
from wavefilt.backends.cuda import releasing, warming
from wavefilt.backends.cuda.runtime import compiler, stored

def code(kernel, types):
    ptx = kernel.overloads[types]._codelibrary.get_lto_ptx((9, 0, "a"))
    return re.sub(r"_(Z|cudapy_smem_)\\w+|//.*", "", ptx)

stored.RELEASED, own, launches = Path(sys.argv[1]), compiler._Kernel, []
warming.SHAPES[1] = [(1, (1 << 16,))]
haar, db1 = ('[{"wavelet": "%s", "rule": "universal", "level": 1}]' % name for name in ("haar", "bior1.1"))
for taps, kernels in releasing.compiled((haar, "float32", False)).items():
    assert stored.write(taps, kernels) > 0
launches = [launch for launch in warming.needed(db1, ["float32"], (9, 0)) if launch[0].compile.taps]
compiler._Kernel = None
compiler.together(launches)
released = [code(*launch) for launch in launches]
stored._released.cache_clear()
for path in stored.RELEASED.iterdir():
    path.write_bytes(path.read_bytes()[:-40])
for kernel, types in launches:
    kernel.overloads.clear()
    assert kernel.compile.ready(types)
    assert kernel.compile._released.load(types) is None
compiler._Kernel, os.environ["NUMBA_CACHE_DIR"] = own, sys.argv[1]
for kernel, types in launches:
    kernel.overloads.clear()
    assert not kernel.compile.ready(types)
compiler.together(launches)
assert released == [code(*launch) for launch in launches]
print(len(launches))
"""


@pytest.mark.sm_90
def test_kernels_of_a_release(tmp_path):
    """They give the code that numba gives, are kept in the cache as others, and a damaged file is as none."""
    pytest.importorskip("numba_cuda")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    run = [sys.executable, "-c", RELEASED, str(tmp_path / "released")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=600, cwd=ROOT, env=environment, check=False)
    assert int(done.stdout or 0) > 1, done.stderr[-3000:]


@pytest.mark.sm_90
def test_what_first_calls_compile():
    pytest.importorskip("numba_cuda")
    options = {"wavelet": "haar", "rule": "universal", "level": 1}
    found = first_call.run({"first": options, "again": options})
    first, again = found["rows"]
    assert first["kernels"] == again["kernels"] != []
    assert first["front_end_seconds"] > 0 == again["front_end_seconds"]
    assert [row[0] for row in first_call.TABLE(found).rows] == ["first", "again"]


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
    "choose-dual",
    "exceeding",
    "histogram",
    "block",
    "posterior-ebayes-median",
    "posterior-ebayes-cauchy-mean",
    "trend-fit",
    "trend-settle",
    "trend-remove",
    "trend-restore",
)
"""Kernels that sum squares or samples, compare with thresholds of float64 or make them, in float64 whatever those are.
"""


def _name(path: Path) -> str:
    return path.stem.partition(".")[0]


def check(dtype: str, files: list[Path], which: str = "all") -> None:
    """No float64 where all is float32, nothing in local memory, and shared memory that every GPU has."""
    assert len(files) >= {"all": 110 * len(GPUS), "default": len(EVERYWHERE)}.get(which, 55)
    if which == "all":
        local = {"local-sym8-reflect-0", "local-db8-periodization-1", "local-modwt", "local-modwt-periodic"}
        assert {_name(path) for path in files} >= {*DOUBLE, *local, "dual-gains-panels-4", "dual-gains-traces"}
    if dtype == "float32":
        assert not [path.stem for path in files if _name(path) not in DOUBLE and ".f64" in path.read_text()]
    ptxas = _ptxas()
    if ptxas is None:
        pytest.skip("ptxas is not installed (wheel nvidia-cuda-nvcc)")

    def numbers(path: Path) -> str:
        _, gpu, limit = path.stem.split(".")
        command = [ptxas, f"-arch={gpu}", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
        command += [f"-maxrregcount={limit}"] if limit != "0" else []
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr

    with ThreadPoolExecutor(available_cpus()) as pool:
        for path, report in zip(files, pool.map(numbers, files), strict=True):
            assert re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", report).groups() == ("0", "0"), (
                path.stem
            )
            shared = re.search(r"(\d+) bytes smem", report)
            assert shared is None or int(shared[1]) <= 48 << 10, path.stem


def test_no_double_precision_no_spills_little_shared_memory(compiled):
    check(*compiled)
    dtype, files, _ = compiled
    assert len({path.stem.split(".")[1] for path in files}) == (len(GPUS) if dtype == "float32" else 1)


@pytest.mark.sm_all
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kernel_for_every_gpu(dtype, tmp_path_factory):
    check(dtype, _compiled(dtype, tmp_path_factory, "all"))


def _compile(dtype: str, folder: Path, which: str) -> None:
    from wavefilt.backends.cuda.runtime import rehearsal

    rehearsal.begin((9, 0))
    from numba import types

    from wavefilt.backends.cuda import trend
    from wavefilt.backends.cuda.dwt import cycle_spinning, local_shrinkage
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

    real, key, size = getattr(types, dtype), types.int32 if dtype == "float32" else types.int64, types.int64
    a, k, i, d = (types.Array(t, 1, "C") for t in (real, key, types.int64, types.float64))
    table, yes = types.Array(types.int32, 1, "C"), types.boolean

    numbers = count()

    def write(name: str, kernel: object, arguments: tuple[object, ...]) -> None:
        default = any(re.match(each, name) for each in EVERYWHERE)
        if (which in PARTS and next(numbers) % 2 != PARTS.index(which)) or (which == "default" and not default):
            return
        library = kernel.compile.code(arguments)._codelibrary  # type: ignore[attr-defined]
        everywhere = which == "all" or (dtype == "float32" and default)
        for gpu in GPUS if everywhere else [(9, 0, "a")]:
            library._max_registers = kernel.compile.limit(gpu[:2])  # type: ignore[attr-defined]
            limit = library._max_registers or 0
            (folder / f"{name}.sm_{gpu[0]}{gpu[1]}{gpu[2]}.{limit}.ptx").write_text(
                library.get_lto_ptx(gpu).strip("\0")
            )

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
        fused = {(p, launches(Filter(len(lo), p), 8, tile)[0]) for p in modes}
        fused |= {(p, 5) for p in modes if at_once(Filter(len(lo), p), 5, tile, 4 if dtype == "float32" else 8, 1)}
        for periodized, levels in sorted(fused):
            each = types.UniTuple(size, levels)
            arguments = (a, size, yes, a, each, each, a, table, size, size, size, size, i, a, size, a)
            analysis = FusedLevels(lo, hi, periodized, dtype, levels, tile, threads)
            synthesis = FusedLevels(rec_lo, rec_hi, periodized, dtype, levels, tile, threads)
            searched = len(lo) <= MOST_TAPS_SEARCHED
            if not searched or (threads, tile) == (256, fixed):
                kernel = forward(analysis, False)
                write(f"forward-{name}-{periodized}-{threads}x{tile}x{levels}", kernel, arguments)
            if searched:
                kernel = forward(analysis, False, True)
                write(f"forward-{name}-{periodized}-{threads}x{tile}x{levels}-searching", kernel, arguments)
            back = (a, a, each, each, a, size, a, size, yes, size, size, size, table, a, table, yes, a)
            for function in functions:
                kernel = inverse(synthesis, function, False)
                write(f"inverse-{name}-{periodized}-{function}-{threads}x{tile}x{levels}", kernel, back)
            if name == "db8":
                kernel = forward(analysis, False, False, True)
                write(f"forward-{name}-{periodized}-{threads}x{tile}x{levels}-centred", kernel, arguments)
                kernel = inverse(synthesis, "keep", False, True)
                write(f"inverse-{name}-{periodized}-keep-{threads}x{tile}x{levels}-centred", kernel, back)
    drawn, how = selection.drawn(dtype), types.Tuple((size, yes, yes, yes))
    searches = {
        short_rows.whole(dtype, 512, short_rows.ROOMS[1]): (a, k, i, size, size, size, size, yes, k, d),
        sampling.sample(dtype, drawn, 256): (k, i, size, i, k),
        sampling.draw(dtype, 16, drawn, 256): (a, size, size, a, a, k, i, k),
        scanning.scan(dtype, selection.STAGE, 256): (a, k, i, size, size, size, size, how, i, i, i, a, k, k, d, d),
        lists.settle(dtype, 256): (k, i, size, size, size, size, i, i, i, k, k),
        lists.finish(dtype, 256, selection.CLOSE): (k, i, size, size, size, i, k, k),
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
        kernel = choosing.choose(rule, "level", dtype, 256, NoiseOf())
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
        write(f"modwt-analysis-{name}", kernel, (a, place, yes, a, *[size] * 6, a, each, a, place, table))
        kernel = modwt_kernels.synthesis(rec_lo, rec_hi, circular, dtype, one.inverse, "soft")
        write(f"modwt-synthesis-{name}", kernel, (a, place, a, each, a, *[size] * 5, a, place, yes))
    height, short = panels_plan.TILE_BYTES // (4 if dtype == "float32" else 8) // 256, types.int32
    pair, shorts, bands = types.UniTuple(size, 2), types.UniTuple(short, 3), (a, types.UniTuple(size, 4))
    tiles = types.UniTuple(short, 2)
    panels = (("db4", True, False, "soft"), ("db4", False, True, "soft"), ("db8", False, False, "firm"))
    for name, several, periodized, function in panels:
        lo, hi, rec_lo, rec_hi = (tuple(f) for f in pywt.Wavelet(name).filter_bank)
        axes, extends = (periodized, periodized), (several, several)
        kernel = panels_forward.forward(PanelLevel((lo, hi), (lo, hi), axes, extends, dtype, height, 256), False)
        arguments = (a, pair, shorts, *bands, shorts, size, tiles, table, pair)
        write(f"panels-forward-{name}-{periodized}", kernel, arguments)
        back = (rec_lo, rec_hi)
        kernel = panels_inverse.inverse(PanelLevel(back, back, axes, extends, dtype, height, 256), function, False)
        arguments = (*bands, shorts, size, size, tiles, a, size, a, pair, shorts, yes, table, yes)
        write(f"panels-inverse-{name}-{periodized}-{function}", kernel, arguments)
    for name, mode, level in (("sym8", "reflect", 6), ("db8", "periodization", 12), ("coif17", "zero", 4)):
        analysis = DWT.analysis(pywt.Wavelet(name), mode, level)
        for part, one in enumerate(local_shrinkage.launches(DWT.grids(analysis, (1 << 24,)), dtype, 256, 1)):
            each = types.UniTuple(size, len(one.bands))
            kernel = local_shrinkage.shrinking(one.tile)
            write(f"local-{name}-{mode}-{part}", kernel, (a, a, each, each, each, a, size, size))
    for periodic in (False, True):
        kernel = modwt_local_shrinkage.shrinking(dtype, 256, periodic)
        write(f"local-modwt{'-periodic' if periodic else ''}", kernel, (a, a, i, size, a, size, size, size))
    write("trend-fit", trend.fit(dtype, 256, True), (a, size, size, yes, size, d))
    write("trend-settle", trend.settle(dtype, 256, True), (d, size, size, size, d, a))
    for name, restoring in (("remove", False), ("restore", True)):
        kernel = trend.change(dtype, 256, True, restoring)
        write(f"trend-{name}", kernel, (a, a, *[size] * 4, yes, d, table))
    for kernel in (details.counting_above(dtype, 256), details.counting_bins(dtype, 256, 512)):
        write(kernel.py_func.__name__, kernel, (a, size, size, size, size, d, size, i))
    write("block", shrinking.block(dtype, 256), (a, a, size, size, size, size, d, size, size))
    for prior, estimator in (("ebayes", "median"), ("ebayes-cauchy", "mean")):
        kernel = shrinking.posterior(dtype, prior, estimator, 256)
        write(f"posterior-{prior}-{estimator}", kernel, (a, a, size, size, size, size, d, d, d))
    _compile_dual_tree(dtype, write)


def _compile_dual_tree(dtype: str, write: Callable[[str, object, tuple[object, ...]], None]) -> None:
    from numba import types

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
    from wavefilt.backends.cuda.dwt import local_shrinkage
    from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES
    from wavefilt.backends.cuda.thresholding import choosing
    from wavefilt.transforms.dtcwt import axis_grids
    from wavefilt.wavelets.dual_tree import DualTree

    real, size = getattr(types, dtype), types.int64
    a, i, d = (types.Array(t, 1, "C") for t in (real, types.int64, types.float64))
    table, yes = types.Array(types.int32, 1, "C"), types.boolean
    two, three = types.UniTuple(size, 2), types.UniTuple(size, 3)
    for tree in (DualTree(), DualTree("antonini", "qshift_d"), DualTree("legall", "qshift_06")):
        ahead = [Level.of(tree.filter_bank, j, dtype, 256, False) for j in range(MOST_LEVELS)]
        back = [Level.of(tree.filter_bank, j, dtype, synthesis_threads(dtype, 256), True) for j in range(2)]
        for j in range(2):
            arguments = (a, three, two, two, two, size, a, three, a, a, three, two)
            write(f"dual-panels-analysis-{tree.name}-{j}", panels_analysis.analysis(ahead[j], False), arguments)
            arguments = (a, three, a, three, two, a, two, size, a, three, two, two, yes, table, yes)
            for weighed in (False, True):
                kernel = panels_synthesis.synthesis(back[j], weighed, False)
                write(f"dual-panels-synthesis-{tree.name}-{j}-{weighed}", kernel, arguments)
        tile, levels = TILE_BYTES // (4 if dtype == "float32" else 8), types.UniTuple(types.Tuple((size, size, two)), 4)
        of = Fused(tuple(ahead), tile)
        kernel = traces_analysis.analysis(of, True, True, False)
        write(f"dual-traces-analysis-{tree.name}", kernel, (a, two, yes, size, levels, a, a, a, two, a))
        of = Fused(tuple(Level.of(tree.filter_bank, j, dtype, 256, True) for j in range(MOST_LEVELS)), tile)
        arguments = (a, two, size, a, a, levels, a, size, a, two, yes, size, a, table, yes)
        for function in ("gains", "soft"):
            kernel = traces_synthesis.synthesis(of, function, function == "gains", True, False)
            write(f"dual-traces-synthesis-{tree.name}-{function}", kernel, arguments)
    for width in (1, 4):
        kernel = gains.of_panels(dtype, 256, width)
        write(f"dual-gains-panels-{width}", kernel, (a, a, three, two, a, two, size, size))
    levels = axis_grids(4, 1 << 20)
    one = local_shrinkage.launches((*levels, levels[-1]), dtype, 256, 4, 2)[0]
    places = types.UniTuple(size, len(one.bands))
    write("dual-gains-traces", local_shrinkage.shrinking(one.tile), (a, a, *[places] * 3, a, size, size))
    write("dual-gains-firm", gains.pointwise("firm", dtype, 256), (a, a, i, a, size, size, size))
    write("dual-magnitudes", gains.measuring(dtype, 256), (a, a, size))
    kernel = choosing.choose("bayes", "level", dtype, 256, DualTreePanelPlan.noise)
    write("choose-dual", kernel, (a, size, a, d, d, d, types.float64, size, size, size, i, size, d, a, table, table))


if __name__ == "__main__":
    _compile(sys.argv[1], Path(sys.argv[2]), sys.argv[3])

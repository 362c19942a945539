"""Kernels of the GPU backend compiled without a GPU: no unintended double precision, no spills.

The ordinary suite compiles one kernel of each family. ``-m sm_90`` compiles all for float32 and sm_90, and those of
the default options for float64 and other GPUs; ``-m sm_all`` compiles every kernel for every GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from wavefilt.benchmarks.ske import compiled as kernels

PARTS = ("every second", "the others")
"""Of the kernels of float32, compiled side by side."""


def _compiled(dtype: str, tmp_path_factory, which: str) -> list[Path]:
    """PTX of kernels of this dtype after optimization at link time."""
    if find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    folder = tmp_path_factory.mktemp(dtype)
    # in its own process: there is a GPU in it that is not there, and the suite turns warnings of libraries into errors
    part = (PARTS.index(which), len(PARTS)) if which in PARTS else ()
    command = kernels.command(folder, dtype, "sm_90" if which in PARTS else which, *part)
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
compiler.quick, tiling.numbered = lambda *_: nullcontext(), lambda *filters: filters
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


FAMILIES = """
import json
from wavefilt.backends.cuda import warming
options = {"wavelet": "haar", "level": 1, "rule": 0.5}
methods = [options, {**options, "transform": "modwt"}, {**options, "dimensions": 2}]
methods.append({**options, "wavelet": "legall,qshift_06", "transform": "dtcwt"})
warming.SHAPES.update({1: [(1, (1 << 16,))], 2: [(1, (64, 64))]})
launches = warming.needed(json.dumps(methods), ["float32"], (9, 0))
of_family = {kernel.py_func.__module__.split(".")[3]: (kernel, types) for kernel, types in launches}
for family, (kernel, types) in of_family.items():
    assert kernel.compile(types)
    print(family)
"""


def test_a_kernel_of_each_family_compiles(tmp_path):
    pytest.importorskip("numba_cuda")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, "-c", FAMILIES]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, cwd=ROOT, env=environment, check=False)
    assert {"dwt", "modwt", "dwt2", "dual_tree"} <= set(done.stdout.split()), done.stderr[-3000:]


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
    "rows-db8-128",
    "rows-db4-128",
    "rows-sym8-256",
    "rows-db8-512",
    "rows-sym16-512",
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


SPILLING = ("dual-panels-analysis", "rows-", "whole")
"""Kernels whose registers are limited for an H200: on other GPUs some take local memory (docs/compiled_kernels.md)."""


def _name(path: Path) -> str:
    return path.stem.partition(".")[0]


def check(dtype: str, files: list[Path], which: str = "all") -> None:
    """No float64 where all is float32, nothing in local memory, and shared memory that every GPU has."""
    assert len(files) >= {"all": 110 * len(kernels.GPUS), "default": len(kernels.DEFAULT)}.get(which, 55)
    if which == "all":
        local = {"local-sym8-reflect-0", "local-db8-periodization-1", "local-modwt", "local-modwt-periodic"}
        assert {_name(path) for path in files} >= {*DOUBLE, *local, "dual-gains-panels-4", "dual-gains-traces"}
    if dtype == "float32":
        assert not [path.stem for path in files if _name(path) not in DOUBLE and ".f64" in path.read_text()]
    ptxas = kernels.ptxas()
    if ptxas is None:
        pytest.skip("ptxas is not installed (wheel nvidia-cuda-nvcc)")
    for row in kernels.every_assembled(files, ptxas):
        allowed = row["kernel"].startswith(SPILLING) and row["gpu"] != "9.0"
        assert (row["stack"], row["spilled"]) == (0, 0) or allowed, row
        assert row["shared"] <= 48 << 10, row
        assert row["blocks"] >= 1, row


@pytest.mark.sm_90
def test_no_double_precision_no_spills_little_shared_memory(compiled):
    check(*compiled)
    dtype, files, _ = compiled
    assert len({path.stem.split(".")[1] for path in files}) == (len(kernels.GPUS) if dtype == "float32" else 1)


@pytest.mark.sm_all
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kernel_for_every_gpu(dtype, tmp_path_factory):
    check(dtype, _compiled(dtype, tmp_path_factory, "all"))

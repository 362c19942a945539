"""Kernels of the GPU backend compiled without a GPU: no unintended double precision, no spills.

The ordinary suite compiles one kernel of each family. ``-m sm_90`` compiles what `denoise` launches by the options in
METHODS for float32 and sm_90, and by the default ones for float64; ``-m sm_all`` compiles both dtypes for every GPU.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.checkout import ROOT
from tests.support.ptx import ptxas

METHODS = {
    "default": {},
    "one block": {"rule": "universal", "sigma": "global"},
    "modwt": {"transform": "modwt", "wavelet": "db4", "level": 4},
    "js": {"rule": "js", "level": 6},
    "section": {"ndim": 2, "wavelet": "db4", "rule": "universal"},
    "dual tree of sections": {"transform": "dtcwt", "rule": "js", "ndim": 2},
    "empirical Bayes": {"rule": "ebayes", "scope": "record"},
}
HOPPER = (9, 0, "a")
GPUS = [(7, 5, ""), (8, 0, ""), (8, 6, ""), (8, 9, ""), HOPPER, (10, 0, "a"), (12, 0, "a")]
"""Compute capabilities as numba names them to the linker."""


def python(code, folder, *arguments, timeout=600):
    """Run a program of its own: its driver is replaced for good, and libraries may warn. Return its output."""
    pytest.importorskip("numba_cuda")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "WAVEFILT_NUM_THREADS": "2"}
    run = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=timeout, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


FAMILIES = """
import json
from tests.support import rehearsal
options = {"wavelet": "haar", "level": 1, "rule": 0.5}
methods = [options, {**options, "transform": "modwt"}, {**options, "ndim": 2}]
methods.append({**options, "wavelet": "legall,qshift_06", "transform": "dtcwt", "ndim": 2})
rehearsal.SHAPES.update({1: [(1, (1 << 16,))], 2: [(1, (64, 64))]})
launches = rehearsal.needed(json.dumps(methods), ["float32"], (9, 0))
of_family = {kernel.py_func.__module__.split(".")[3]: (kernel, types) for kernel, types in launches}
for family, (kernel, types) in of_family.items():
    assert kernel.compile(types)
    print(family)
"""


def test_a_kernel_of_each_family_compiles(tmp_path):
    assert {"dwt", "modwt", "sections"} <= set(python(FAMILIES, tmp_path).split())


NO_ROW_STACK = """
import warnings; warnings.simplefilter("error", DeprecationWarning)
import numpy; vars(numpy).pop("row_stack", None)
import wavefilt.backends.cuda.runtime.target, numba.cuda.np.arrayobj
print("row_stack" in vars(numpy))
"""


@pytest.mark.sm_90
def test_numpy_without_row_stack(tmp_path):
    """NumPy 2.5 has none, and deprecates what numba-cuda does when it is imported."""
    assert python(NO_ROW_STACK, tmp_path) == "False\n"


HIDDEN = """
import sys
sys.modules[sys.argv[1]] = None
import numpy, wavefilt
from wavefilt import backends
x = numpy.random.default_rng(0).standard_normal(200)
assert wavefilt.denoise(x, level=2).shape == x.shape
print(type(backends.available()["cuda"]).__name__)
"""


@pytest.mark.parametrize("module", ["numba.core.caching", "numba.core.targetconfig", "numba.cuda.core.compiler_lock"])
def test_a_numba_without_a_module_that_is_used(tmp_path, module):
    """Backend "auto" denoises, and the GPU backend says why it is not available."""
    assert python(HIDDEN, tmp_path, module) == "BackendUnavailable\n"


PTX = """
import json, sys
from pathlib import Path
from tests.support import rehearsal
from wavefilt.backends.cuda.runtime.compiler import linked
folder, dtype, methods, gpus, options = sys.argv[1:]
rehearsal.SHAPES.update({1: [(24, (1024,)), (1, (1 << 20,))], 2: [(1, (512, 512))]})
for number, (kernel, types) in enumerate(rehearsal.needed(methods, [dtype], (9, 0), **json.loads(options))):
    library = kernel.code(types)._codelibrary
    module = kernel.py_func.__module__.partition("cuda.")[2].replace(".", "-")
    for major, minor, suffix in json.loads(gpus):
        limit = kernel.limit((major, minor))
        name = f"{module}-{kernel.py_func.__name__}-{number}.sm_{major}{minor}{suffix}.{limit or 0}.ptx"
        ptx = linked(library, (major, minor, suffix), limit, kernel.fast, "ptx")
        Path(folder, name).write_text(ptx.decode().strip("\\0"))
"""
SINGLE = re.compile(r"dwt-kernels|sections-dwt2|modwt-|sections-dual_tree-dual_tree")
"""Kernels that use nothing but float32 for samples of float32; others sum squares or compare in float64."""
SPILLING = re.compile(r"sections-dual_tree-dual_tree_analysis|dwt-one_block|statistics-")
"""Kernels whose registers are limited for an H200: on other GPUs some take local memory."""
FEW_REGISTERS = {
    r"modwt-modwt_kernel-\d+\.sm_90a\.64": (8, 4),
    r"dwt-one_block-denoise_rows-\d+\.sm_90a\.64": (16, 12),
}
"""Bytes of the stack frame and bytes spilled, at most.

Rows of one block spill 12 bytes without padding.
"""


def compiled(folder, dtype, methods, gpus, **options):
    """Return the files of PTX of all kernels."""
    python(PTX, folder, folder, dtype, json.dumps(methods), json.dumps(gpus), json.dumps(options), timeout=3600)
    return sorted(folder.glob("*.ptx"))


def check(folder, dtype, methods, gpus, **options):
    """Assert no float64 where all is float32, nothing in local memory, and shared memory that every GPU has."""
    files = compiled(folder, dtype, methods, gpus, **options)
    assert len(files) >= 4 * len(gpus)
    if dtype == "float32":
        assert not [path.stem for path in files if SINGLE.match(path.stem) and ".f64" in path.read_text()]
    assembler = ptxas()
    if assembler is None:
        pytest.skip("ptxas is not installed (wheel nvidia-cuda-nvcc)")

    def report(path):
        _, gpu, limit = path.stem.split(".")
        limited = [f"-maxrregcount={limit}"] if limit != "0" else []
        run = [assembler, f"-arch={gpu}", "-v", str(path), "-o", str(path.with_suffix(".cubin")), *limited]
        return subprocess.run(run, capture_output=True, text=True, check=True).stderr

    with ThreadPoolExecutor(2) as pool:
        for path, text in zip(files, pool.map(report, files), strict=True):
            stack, spilled = (int(re.search(rf"(\d+) bytes {what}", text)[1]) for what in ("stack", "spill stores"))
            most = next((most for name, most in FEW_REGISTERS.items() if re.match(name, path.stem)), (0, 0))
            elsewhere = SPILLING.match(path.stem) and ".sm_90a" not in path.name
            assert (stack <= most[0] and spilled <= most[1]) or elsewhere, (path.name, stack, spilled)
            assert sum(map(int, re.findall(r"(\d+) bytes smem", text))) <= 48 << 10, path.name


@pytest.mark.sm_90
@pytest.mark.parametrize("name", METHODS)
def test_kernels_of_float32_for_hopper(tmp_path, name):
    check(tmp_path, "float32", [METHODS[name]], [HOPPER])


@pytest.mark.sm_90
@pytest.mark.parametrize("options", [{"padding": False}, {"fastmath": True}], ids=str)
@pytest.mark.parametrize("name", ["default", "one block"])
def test_kernels_with_other_options_for_hopper(tmp_path, name, options):
    check(tmp_path, "float32", [METHODS[name]], [HOPPER], **options)


PRECISE = re.compile(r"\b(div\.rn|sqrt\.rn|(add|mul|sub|fma\.rn|setp\.\w+))\.f32")


@pytest.mark.sm_90
@pytest.mark.parametrize("name", ["default", "modwt", "dual tree of sections", "section", "empirical Bayes"])
def test_fast_math_reaches_every_kernel(tmp_path, name):
    """Subnormals are flushed, divisions and roots are approximate, except where a search compares by assembly."""
    methods = [
        {**METHODS[name], **({} if name in ("dual tree of sections", "empirical Bayes") else {"shrink": "garrote"})}
    ]
    files = compiled(tmp_path, "float32", methods, [HOPPER], fastmath=True)
    for path in (path for path in files if not re.search("-(scan|whole)-", path.name)):
        assert not PRECISE.search(path.read_text()), path.name


@pytest.mark.sm_90
def test_kernels_of_float64_for_hopper(tmp_path):
    check(tmp_path, "float64", [METHODS["default"]], [HOPPER])


@pytest.mark.sm_all
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kernel_for_every_gpu(tmp_path, dtype):
    check(tmp_path, dtype, list(METHODS.values()), GPUS)

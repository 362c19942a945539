"""Test the measurements in numba's CUDA simulator, and the operation counts against compiled kernels.

Both need a process of their own: the simulator is chosen before numba is imported, and no device is present.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.checkout import ROOT
from tests.support.ptx import listing
from tests.support.simulation import SIMULATED, inside
from wavefilt.benchmarks.ske import counts


@inside
@pytest.mark.filterwarnings("ignore:.*overflow")
def test_microbenchmarks():
    from wavefilt.benchmarks.ske import calibration
    from wavefilt.ske.devices import Calibration

    found = calibration.constants()
    assert Calibration.from_json(found.to_json()) == found
    assert min(*(o.latency for o in found.operations.values()), *found.latency.values()) > 0
    assert len(found.reads) == len(found.writes) == 2


@inside
def test_cases_are_measured_and_failures_kept():
    from wavefilt.benchmarks.ske import measure
    from wavefilt.benchmarks.ske.fit import Case

    wavelets = {"haar": "forward", "db2": "inverse", "no wavelet": "forward"}
    cases = [Case(k, w, 8, 300, tile=128) for w, k in wavelets.items()]
    cases[:0] = [Case("one block", "haar", 0, 300, 2, 0), Case("search", "haar", 0, 300, 2, 0)]
    rows = list(measure.rows(cases, repeats=1, launches=1))
    assert [row["seconds"] > 0 for row in rows[:-1]] == [True] * 4
    assert "no wavelet" in rows[-1]["error"]
    assert json.loads(json.dumps(rows)) == rows


@inside
def test_constants_of_the_counts_are_those_of_the_kernels():
    from wavefilt.backends.cuda.dwt import kernels, one_block
    from wavefilt.backends.cuda.options import KernelOptions
    from wavefilt.backends.cuda.statistics import selection

    for module, names in {
        selection: ("BINS", "PARTS", "CLOSE", "SAMPLERS", "BLOCKS"),
        one_block: ("ROUNDS", "MOST_TAPS", "MOST_LEVELS", "MOST_SAMPLES"),
        kernels: ("PAIRS",),
    }.items():
        for name in names:
            assert getattr(counts, name) == getattr(module, name), name
    options = KernelOptions()
    assert (options.select, options.scan, options.row_threads(1 << 20)) == (counts.SELECT, counts.SCAN, counts.ROW)
    assert (options.sample, options.chunk, options.whole) == (counts.DRAWN_BYTES, counts.CHUNK, counts.WHOLE)
    assert (options.one_block, options.few, one_block.REGISTERS) == (counts.THREADS, counts.FEW, counts.ROW_REGISTERS)
    for samples in (1 << 20, 40_000_000, 1 << 26, 1 << 28):
        problem = counts.Problem(8, samples, level=4)
        assert counts._drawn(problem) == selection.drawn("float32", problem.lengths[1], options), samples


def test_counts_equal_those_of_the_compiled_kernels(tmp_path):
    """Multiply-adds and barriers exactly, all instructions of PTX within a fifth.

    The listing counts the checks of eight samples twice in the inverse: those of aligned and of unaligned stores.
    """
    if SIMULATED or find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    command = [sys.executable, "-m", "tests.ske.test_ske_measurements", str(tmp_path)]
    subprocess.run(command, check=True, timeout=600, cwd=ROOT)
    problem = counts.Problem(8, 1 << 24, level=4)
    for name in ("forward", "inverse"):
        tiling, block = getattr(counts, f"{name}_tiling"), getattr(counts, f"{name}_block")
        declared = block(problem, tiling(problem.filter, 4096, 4), longest=True)
        found = listing((tmp_path / f"{name}.ptx").read_text()).count()
        assert found["fma"] - (8 if name == "inverse" else 0) == declared.instructions["fma"], name
        assert found["barrier"] == declared.barriers, name
        total = sum(n for kind, n in declared.instructions.items() if kind != "wavefront")
        assert sum(found.values()) == pytest.approx(total, rel=0.2), name
    chain = listing((tmp_path / "chain.ptx").read_text())
    assert chain.blocks[min(chain.loops[0])].counts()["fma"] == 64


def _compile(folder: Path) -> None:
    from numba import types
    from numba.cuda import dispatcher

    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))  # type: ignore[attr-defined]
    import pywt

    from wavefilt.backends.cuda.dwt.kernels import Bands, Extent, Probes, Rows, Unchanged, forward, inverse
    from wavefilt.backends.cuda.dwt.tiling import FusedLevels
    from wavefilt.backends.cuda.runtime.interfaces import Build
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.ske.calibration import chain

    n, yes, four = types.int64, types.boolean, types.UniTuple(types.int64, 4)
    f, i, t = (types.Array(kind, 1, "C") for kind in (types.float32, n, types.int32))

    def group(kind, *own):
        return types.NamedUniTuple(own[0], len(own), kind) if len({*own}) == 1 else types.NamedTuple(own, kind)

    lo, hi, rec_lo, rec_hi = (tuple(taps) for taps in pywt.Wavelet("db4").filter_bank)
    shape = False, Build("float32", 256), 4, 4096
    rows, bands, extent = group(Rows, f, n, yes), group(Bands, f, four, four, f), group(Extent, n, n, n, n)
    for name, kernel, arguments in (
        ("chain", chain("fma"), (f, n, i, f)),
        ("forward", forward(FusedLevels(lo, hi, *shape)), (rows, bands, extent, t, group(Probes, n, n), t)),
        (
            "inverse",
            inverse(FusedLevels(rec_lo, rec_hi, *shape), "soft"),
            (bands, f, rows, extent, group(Unchanged, f, t, yes), t),
        ),
    ):
        ptx, _ = cuda.compile_ptx(kernel.py_func, arguments, cc=(9, 0))
        (folder / f"{name}.ptx").write_text(ptx)


if __name__ == "__main__":
    _compile(Path(sys.argv[1]))

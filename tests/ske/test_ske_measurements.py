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
from tests.support.simulation import SIMULATED, inside, shipped
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
    rows = list(measure.rows([Case(k, w, 8, 300, tile=128) for w, k in wavelets.items()], repeats=1, launches=1))
    assert [row["seconds"] > 0 for row in rows[:-1]] == [True, True]
    assert "no wavelet" in rows[-1]["error"]
    assert json.loads(json.dumps(rows)) == rows


@inside
def test_constants_of_the_counts_are_those_of_the_kernels():
    from wavefilt.backends.cuda.dwt import inverse, one_block, plan
    from wavefilt.backends.cuda.statistics import selection, short_rows

    for module, names in {
        selection: ("BINS", "PARTS", "CLOSE", "DRAWN_AHEAD", "SAMPLERS"),
        one_block: ("ROUNDS", "THREADS", "MOST_TAPS", "MOST_LEVELS", "MOST_SAMPLES"),
        plan: ("MOST_TAPS_SEARCHED",),
        inverse: ("PAIRS",),
    }.items():
        for name in names:
            assert getattr(counts, name) == shipped(module, name), name
    assert (shipped(short_rows, "ROOMS")[0], shipped(short_rows, "DRAWN")) == (counts.ROW_ROOM, counts.ROW_DRAWN)
    options = plan.KernelOptions()
    assert (options.select, options.row_threads(1 << 20)) == (counts.SELECT, counts.ROW)


def test_counts_equal_those_of_the_compiled_kernels(tmp_path):
    """Multiply-adds and barriers exactly, all instructions of PTX within a fifth."""
    if SIMULATED or find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    command = [sys.executable, "-m", "tests.ske.test_ske_measurements", str(tmp_path)]
    subprocess.run(command, check=True, timeout=600, cwd=ROOT)
    problem = counts.Problem(8, 1 << 24, level=4)
    for name in ("forward", "inverse"):
        tiling, block = getattr(counts, f"{name}_tiling"), getattr(counts, f"{name}_block")
        declared = block(problem, tiling(problem.filter, 4096, 4), longest=True)
        found = listing((tmp_path / f"{name}.ptx").read_text()).count()
        # a remainder that the finest level of the inverse does not have, but that is compiled
        never = counts.synthesis_cost(problem.filter, counts.PAIRS)[0] + 8 if name == "inverse" else 0
        assert found["fma"] == declared.instructions["fma"] + never, name
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

    from wavefilt.backends.cuda.dwt.forward import forward
    from wavefilt.backends.cuda.dwt.inverse import inverse
    from wavefilt.backends.cuda.dwt.tiling import FusedLevels
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.ske.calibration import chain

    n, yes, four = types.int64, types.boolean, types.UniTuple(types.int64, 4)
    f, i, t = (types.Array(kind, 1, "C") for kind in (types.float32, n, types.int32))
    lo, hi, rec_lo, rec_hi = (tuple(taps) for taps in pywt.Wavelet("db4").filter_bank)
    shape = False, "float32", 4, 4096, 256
    ahead = f, n, yes, f, four, four, f, t, n, n, n, n, i, i, f, n, f
    back = f, f, four, four, f, n, f, n, yes, n, n, n, t, f, t, yes, f
    for name, kernel, arguments in (
        ("chain", chain("fma"), (f, n, i, f)),
        ("forward", forward(FusedLevels(lo, hi, *shape), False), ahead),
        ("inverse", inverse(FusedLevels(rec_lo, rec_hi, *shape), "soft", False), back),
    ):
        ptx, _ = cuda.compile_ptx(kernel.py_func, arguments, cc=(9, 0))
        (folder / f"{name}.ptx").write_text(ptx)


if __name__ == "__main__":
    _compile(Path(sys.argv[1]))

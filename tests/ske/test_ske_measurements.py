"""The microbenchmarks, the validation and the declared counts: in numba's CUDA simulator, and compiled for sm_90.

Both want a process of their own: the simulator is chosen before numba is imported, and a compiler has no device.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.checkout import ROOT
from tests.support.simulation import SIMULATED, inside
from wavefilt.benchmarks.ske.compiled import ptxas as _ptxas

MODULE = "tests.ske.test_ske_measurements"


@pytest.fixture(scope="module")
def simulator():
    from wavefilt.backends.cuda.statistics import selection

    selection.WHOLE, selection.CHUNK, selection.SAMPLE, selection.STAGE = 250, 128, 256, 32


@pytest.fixture
def device(tmp_path):
    """A file with a calibration of no device."""
    from tests.ske.test_ske_calibrated import DEVICE

    path = tmp_path / "imaginary.json"
    path.write_text(DEVICE.to_json())
    return path


@inside
@pytest.mark.filterwarnings("ignore:.*overflow")
def test_every_microbenchmark_runs(simulator):
    from wavefilt.benchmarks.ske import calibration
    from wavefilt.ske.calibration import Calibration

    found = calibration.constants()
    assert Calibration.from_json(found.to_json()) == found
    assert min(o.latency for o in found.operations.values()) > 0
    assert set(found.latency) == {"l1", "shared", "l2", "dram"}
    assert all(value >= 0 for value in found.measured["spread"].values())


@inside
def test_a_pointer_chase_visits_every_line(simulator):
    import numpy as np

    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.ske.microkernels import kernels

    following = cuda.to_device(np.zeros(64 * 4, np.uint32))
    kernels().ring[2, 8](following, 64, 4)
    host, place, seen = following.copy_to_host(), 0, set()
    for _ in range(64):
        place = int(host[place])
        seen.add(place)
    assert len(seen) == 64


@inside
def test_cases_are_measured_and_failures_kept(simulator):
    from wavefilt.benchmarks.ske import cases as ske_cases
    from wavefilt.benchmarks.ske import measure

    tiny = [
        ske_cases.Case("forward", "haar", 8, 300, tile=128, fit=True),
        ske_cases.Case("inverse", "db2", 8, 300, tile=128),
        ske_cases.Case("energy", "db2", 8, 500, tile=128),
    ]
    broken = ske_cases.Case("forward", "no wavelet", 8, 300)
    rows = list(measure.rows([*tiny, broken], repeats=1, launches=1))
    assert [row["seconds"] > 0 for row in rows[:-1]] == [True] * len(tiny)
    assert "no wavelet" in rows[-1]["error"]
    assert json.loads(json.dumps(rows)) == rows


@inside
def test_fit_and_test_sets_share_no_kernel():
    from wavefilt.benchmarks.ske.cases import cases

    every = list(cases())
    fit, test = ({(c.kernel, c.wavelet) for c in every if c.fit == wanted} for wanted in (True, False))
    assert fit
    assert test
    assert not fit & test
    assert len(set(every)) == len(every)


@inside
def test_validation_recovers_what_rows_were_made_with(device, monkeypatch):
    from dataclasses import asdict

    from wavefilt.benchmarks.ske import cases as ske_cases
    from wavefilt.benchmarks.ske import fit as ske_fit
    from wavefilt.benchmarks.ske import validation
    from wavefilt.ske import calibration

    theta = dict(zip(ske_fit.PARTS, (1.5, 0.9, 1.1, 0.8, 1.1, 0.9, 1.2, 0.1, 1.3), strict=True))
    known = replace(calibration.load(str(device)), theta=theta)
    rows = []
    for case in [*ske_cases.cases()][::2]:
        row = asdict(case) | {"launches": [], "spread": 0.01}
        rows.append(row | {"seconds": ske_fit.predicted(ske_fit.launches(row), known)})
    result = {"device": {"name": known.name}, "rows": [*rows, {"error": "x"}]}
    monkeypatch.setattr(ske_fit, "SPRINGS", 0 * ske_fit.SPRINGS)
    made = [(ske_fit.launches(row), row["seconds"]) for row in rows]
    assert ske_fit.parameters(made, known).theta == pytest.approx(theta, rel=0.02)
    text = validation.report(result, replace(ske_fit.fitted(rows, known), theta=theta)).markdown()
    assert "| SKE calibrated, at least 10 us |" in text
    assert "Regret: median 1.000, worst 1.000" in text
    assert "Of three: median 1.000, worst 1.000" in text


@inside
def test_launches_are_judged_one_by_one():
    from dataclasses import asdict

    from wavefilt.benchmarks.ske import cases as ske_cases
    from wavefilt.benchmarks.ske import fit as ske_fit
    from wavefilt.benchmarks.ske import validation
    from wavefilt.ske import calibration

    known = calibration.load("h200")
    row = asdict(ske_cases.Case("denoise", "db4", 256, 1 << 24)) | {"launches": [], "spread": 0.01, "seconds": 1.0}
    made = ske_fit.launches(row)
    times = [ske_fit.predicted([launch], known) for launch in made]
    times[1], times[-1] = 2 * times[1], times[-1] / 2  # errors that a sum would hide
    row["launches"] = [{"seconds": time} for time in times]
    v = validation.Validation([row], known)
    assert [one.family for one in v.items][:2] == ["denoise: draw", "denoise: forward 1-4 searching"]
    assert v.errors() == pytest.approx([0.0, -0.5, *[0.0] * (len(made) - 3), 1.0])
    row["launches"][0]["seconds"] = -1e-9  # a difference of times that noise has made useless
    assert [one.family for one in validation.Validation([row], known).items] == ["denoise db4"]


def test_a_blind_result_is_judged_by_the_predictions_that_were_frozen():
    """Those in the file, whatever the counts are today; another calibration predicts again."""
    from wavefilt.benchmarks.ske import validation
    from wavefilt.ske import calibration

    known = calibration.load("h200")
    result = json.loads((ROOT / "benchmarks/results/ske_blind_h200.json").read_text())
    lines = validation.report(result, known).text().splitlines()
    assert any(line.split()[-5:] == ["131", "16.6%", "12.0%", "54.8%", "-13.7%"] for line in lines)
    assert "Rank correlation of launches of at least 10 μs: 0.947" in "\n".join(lines)
    assert validation.stored(result, replace(known, clock=1e9)) == ()
    row = next(row for row in result["rows"] if row["kernel"] == "median")
    row["launches"][0]["predicted"][0] = 3.0
    frozen, again = (list(validation.judged(row, known, models)) for models in (result["models"], ()))
    assert frozen[0].predicted[validation.CALIBRATED] == 3.0
    assert [one.family for one in frozen] == [one.family for one in again]
    assert 0 < again[0].predicted[validation.CALIBRATED] < 1e-3


@inside
def test_blind_cases_share_no_kernel_with_what_the_model_was_made_with():
    from wavefilt.benchmarks.ske import cases as ske_cases
    from wavefilt.benchmarks.ske import fit as ske_fit

    blind, choices, fitted = list(ske_cases.blind()), list(ske_cases.choices()), list(ske_cases.fit_cases())
    assert [len(set(each)) for each in (blind, choices)] == [len(blind), len(choices)]
    assert not {case.what for case in blind} & {case.what for case in [*fitted, *ske_cases.cases()]}
    assert not {case.what for case in choices} & {case.what for case in fitted}
    assert all(ske_fit.counted(case) for case in blind)


@inside
def test_bandwidths_of_tiles(device):
    from wavefilt.benchmarks.ske import fit as ske_fit
    from wavefilt.ske import calibration

    rows = [
        {"what": "streams", "stream": stream, "footprint": size, "buffers": 1, "seconds": 1e-6 + size / rate}
        for stream, rate in {"1:1": 4e12, "read": 5e12, "write": 3e12}.items()
        for size in (1e7, 2e7, 2e8)
    ]
    found = ske_fit.with_tiles(calibration.load(str(device)), rows)
    assert found.bandwidth == ((1e6, 8e12), (2e8, pytest.approx(4e12)))
    assert found.reads == ((2e7, pytest.approx(5e12)), (2e8, pytest.approx(5e12)))
    assert found.writes[-1] == (2e8, pytest.approx(3e12))


@inside
def test_declared_constants_are_those_of_the_kernels():
    import numpy as np
    import pywt

    from wavefilt.backends.cuda.dwt import inverse, one_block, plan
    from wavefilt.backends.cuda.dwt2 import columns
    from wavefilt.backends.cuda.dwt2 import plan as panels_plan
    from wavefilt.backends.cuda.plan import Shape
    from wavefilt.backends.cuda.statistics import selection, short_rows
    from wavefilt.backends.cuda.work_counts import one_block as alone
    from wavefilt.backends.cuda.work_counts import panels, statistics
    from wavefilt.backends.cuda.work_counts import transforms as declared
    from wavefilt.transforms import DWT2

    assert (statistics.BINS, statistics.PARTS, statistics.BLOCKS, statistics.CLOSE) == (
        selection.BINS,
        selection.PARTS,
        selection.BLOCKS,
        selection.CLOSE,
    )
    assert (statistics.DRAWN_AHEAD, statistics.SAMPLERS) == (selection.DRAWN_AHEAD, selection.SAMPLERS)
    assert (short_rows.ROOMS[0], short_rows.DRAWN) == (statistics.ROW_ROOM, statistics.ROW_DRAWN)
    assert statistics.MOST_TAPS_SEARCHED == plan.MOST_TAPS_SEARCHED
    for name in ("ROUNDS", "THREADS", "MOST_TAPS", "MOST_LEVELS", "MOST_SAMPLES", "REGISTERS", "SLACK", "BINS"):
        assert getattr(alone, name) == getattr(one_block, name), name
    assert [alone.threads_for(declared.Problem(16, 1 << 14, rows)) for rows in (2000, 4096)] == [512, None]
    assert declared.PAIRS == inverse.PAIRS
    assert (panels.STEP, panels.TAPS_A_TURN) == (columns.STEP, panels_plan.TAPS_A_TURN)
    assert panels_plan.BLOCKS in (panels.BLOCKS, 2)  # few in the simulator once its tests of panels are there
    for taps, dtype in ((4, "float32"), (12, "float32"), (40, "float64")):
        cut = panels.Panels(taps, 500, 700, itemsize=np.dtype(dtype).itemsize).cut
        bank = ((0.0,) * taps,) * 2
        level = columns.PanelLevel(bank, bank, (False,) * 2, (False,) * 2, dtype, cut.height, cut.threads)
        assert (cut.forward_width, cut.inverse_width) == (level.forward_width, level.inverse_width)
        options = plan.Options(threads=256, tile=0)
        shape = Shape.of(DWT2.analysis(pywt.Wavelet("db2"), "symmetric", 1), dtype, 1, (50, 70))
        planned = panels_plan.PanelPlan(shape, options)
        cut = panels.Panels(4, 50, 70, itemsize=np.dtype(dtype).itemsize).cut
        assert (cut.height, cut.threads) == (planned._height, planned._threads)
    options = plan.Options()
    assert options == plan.Options(select=statistics.SELECT, scan=statistics.SCAN)
    assert options.row_threads(1 << 20) == statistics.ROW


@inside
def test_commands(device, tmp_path, capsys):
    from tests.support.checkout import run

    path = tmp_path / "e.json"
    code, out, err = run(capsys, "ske", "estimate", "--samples", "64Mi", "--device", device, "-o", path)
    assert (code, err) == (0, "")
    launches = json.loads(path.read_text())
    assert [one["name"].split()[0] for one in launches] == [
        "draw",
        "forward",
        "finish",
        "forward",
        "choose",
        "inverse",
        "inverse",
    ]
    assert out.splitlines()[-1].split()[0] == "whole"
    whole = float(out.splitlines()[-1].split()[1])
    assert whole == pytest.approx(1e6 * sum(one["seconds"] for one in launches), abs=0.01)
    code, out, _ = run(capsys, "ske", "tune", "--samples", "1Mi", "--device", device)
    assert code == 0
    times = [float(line.split()[2]) for line in out.splitlines()[3:]]
    assert times == sorted(times)
    assert len(times) > 6
    code, _, err = run(capsys, "ske", "tune", "--samples", "1Mi", "--device", device, "--measure")
    assert code == 2
    assert "is of NVIDIA Imaginary, not of simulator" in err


@inside
def test_validate_saves_the_calibration_fitted_to_rows_measured_before(tmp_path, capsys):
    from tests.support.checkout import run
    from wavefilt.benchmarks.ske import fit
    from wavefilt.ske import calibration

    rows, shipped = ROOT / "benchmarks/results/ske_h200.json", ROOT / "wavefilt/ske/devices/h200.json"
    path = tmp_path / "fitted.json"
    blank = replace(calibration.load(str(shipped)), theta={}, hiding={}, fit={})
    (tmp_path / "blank.json").write_text(blank.to_json())
    arguments = ["ske", "validate", "--rows", rows, "--device", tmp_path / "blank.json"]
    code, out, _ = run(capsys, *arguments, "--calibration", path)
    assert code == 0
    saved = calibration.load(str(path))
    assert saved == fit.fitted(json.loads(rows.read_text())["rows"], blank)
    assert saved.theta
    assert f"theta: start {saved.theta['start']:.3g}, " in out
    code, out, err = run(capsys, *arguments, "--calibration", tmp_path / "nowhere" / "x.json")
    assert (code, out) == (2, "")
    assert "does not exist" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["estimate", "--samples", "64Qi", "--device", "h200"], 2, "64Qi"),
        (["estimate", "--samples", "0", "--device", "h200"], 2, "no size"),
        (["calibrate"], 2, "-o, or print it with --json"),
    ],
)
def test_mistakes(arguments, code, words, capsys):
    from tests.support.checkout import run

    found, out, err = run(capsys, "ske", *arguments)
    assert (found, out) == (code, "")
    assert words in err


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """PTX of the microbenchmarks and of two transforms, by name."""
    if SIMULATED or find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    folder = tmp_path_factory.mktemp("ptx")
    subprocess.run([sys.executable, "-m", MODULE, str(folder)], check=True, timeout=600, cwd=ROOT)
    return {path.stem: path for path in folder.glob("*.ptx")}


def test_chains_are_neither_shortened_nor_spilled(compiled):
    from wavefilt.benchmarks.ske.microkernels import UNROLLED
    from wavefilt.ske.instructions import listing

    chains = {"fma": "fma", "fma64": "fma64", "int mul": "int mul"}
    for name, kind in chains.items():
        found = listing(compiled[f"chain {name}"].read_text())
        (loop,) = found.loops
        assert found.of(found.blocks[min(loop)])[kind] == UNROLLED
    ptxas = _ptxas()
    for name, path in compiled.items():
        assert ".f64" not in path.read_text() or "64" in name
        if ptxas is not None:
            command = [ptxas, "-arch=sm_90", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
            report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
            assert " 0 bytes spill stores" in report


def test_declared_counts_are_those_of_the_compiled_kernels(compiled):
    """Multiply-adds, accesses and barriers exactly; all instructions, of PTX, within a fifth."""
    from wavefilt.backends.cuda.dwt.tiling import forward_tiling, inverse_tiling
    from wavefilt.backends.cuda.work_counts import transforms as counts
    from wavefilt.ske.instructions import listing

    problem = counts.Problem(8, 1 << 24, level=4)
    for name, tiling, tile in (
        ("forward", forward_tiling, counts.forward_block),
        ("inverse", inverse_tiling, counts.inverse_block),
    ):
        declared = tile(problem, tiling(problem.filter, 4096, 4), longest=True)
        found = listing(compiled[name].read_text()).count()
        # the inverse's finest level leaves no remainder, which is compiled all the same
        never = counts.synthesis_cost(problem.filter, counts.PAIRS)[0] + 8 if name == "inverse" else 0
        assert found["fma"] == declared.instructions["fma"] + never, name
        assert found["barrier"] == declared.barriers, name
        total = sum(n for kind, n in declared.instructions.items() if kind != "wavefront")
        assert sum(found.values()) == pytest.approx(total, rel=0.2), name


def test_counts_of_a_filter_of_eight_taps_are_those_made_by_hand(compiled):
    """y[i] = sum of eight literal taps times x[i + k], without a loop."""
    from wavefilt.ske.instructions import listing

    found = listing(compiled["eight taps"].read_text())
    assert found.kind == "PTX"
    counts = found.count()
    assert (counts["fma"], counts["global load"], counts["global store"]) == (8, 8, 1)
    assert found.bytes() == {"global load": 32, "global store": 4}
    # for each of nine accesses: negative or not, what to add then, the sum, times four, plus the address
    assert counts["int"] == pytest.approx(9 * 5, rel=0.2)
    assert "fma64" not in counts


def _compile(folder: Path) -> None:
    from numba import types
    from numba.cuda import dispatcher

    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))  # type: ignore[attr-defined]

    import numpy as np
    import pywt

    from wavefilt.backends.cuda.dwt.forward import forward
    from wavefilt.backends.cuda.dwt.inverse import inverse
    from wavefilt.backends.cuda.dwt.tiling import FusedLevels
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.ske.microkernels import OPERATIONS, chain, kernels

    size, real, word = types.int64, types.float32, types.uint32
    f, i, u, t = (types.Array(kind, 1, "C") for kind in (real, size, word, types.int32))

    def write(name: str, kernel: object, arguments: tuple[object, ...]) -> None:
        ptx, _ = cuda.compile_ptx(kernel.py_func, arguments, cc=(9, 0))  # type: ignore[attr-defined]
        (folder / f"{name}.ptx").write_text(ptx)

    signatures = {
        "empty": (),
        "spin": (size,),
        "ring": (u, size, size),
        "chase": (u, size, size, size, i, u),
        "chase_shared": (size, i, u),
        "read_shared": (size, i, f),
        "scale": (f, f, size, real),
        "copy": (f, f, size, size),
        "strided": (f, size, real, f),
        "barriers": (size, i),
    }
    for name, arguments in signatures.items():
        write(name, getattr(kernels(), name), arguments)
    for operation, (number, _) in OPERATIONS.items():
        values = types.Array(getattr(types, number), 1, "C")
        write(f"chain {operation}", chain(operation), (values, size, i, values))
    lo, hi, rec_lo, rec_hi = (tuple(taps) for taps in pywt.Wavelet("db4").filter_bank)
    a, b, c, d, e, g, h, j = map(np.float32, lo)

    @cuda.jit
    def eight_taps(x, y):
        i = cuda.threadIdx.x
        y[i] = (
            x[i] * a
            + x[i + 1] * b
            + x[i + 2] * c
            + x[i + 3] * d
            + x[i + 4] * e
            + x[i + 5] * g
            + x[i + 6] * h
            + x[i + 7] * j
        )

    write("eight taps", eight_taps, (f, f))
    each, yes = types.UniTuple(size, 4), types.boolean
    write(
        "forward",
        forward(FusedLevels(lo, hi, False, "float32", 4, 4096, 256), False),
        (f, size, yes, f, each, each, f, t, size, size, size, size, i, i, f, size, f),
    )
    write(
        "inverse",
        inverse(FusedLevels(rec_lo, rec_hi, False, "float32", 4, 4096, 256), "soft", False),
        (f, f, each, each, f, size, f, size, yes, size, size, size, t, f, t, yes, f),
    )


if __name__ == "__main__":
    _compile(Path(sys.argv[1]))

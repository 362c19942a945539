"""The 1-D Laplace study: at tiny sizes, its kernels in numba's CUDA simulator, and compiled for sm_90.

The simulator is chosen before numba is imported, and a compiler has no device: both want a process of their own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.checkout import ROOT, run
from tests.support.simulation import SIMULATED, inside, outside
from wavefilt.benchmarks.common import measuring
from wavefilt.benchmarks.common.comparison import derived
from wavefilt.benchmarks.common.implementation import Mismatch, missing
from wavefilt.benchmarks.laplace1d import cases, study
from wavefilt.benchmarks.laplace1d.cases import COPIES, IMPLEMENTATIONS, Problem
from wavefilt.benchmarks.laplace1d.counts import REGISTERS, launches
from wavefilt.benchmarks.ske.compiled import ptxas as _ptxas

MODULE = "tests.benchmarks.test_laplace1d"
KERNELS = ("naive", "readonly", "shared", "barrier")
TINY = 4096


def laplace(x):
    """By one formula for every sample."""
    n = len(x)
    return np.array([float(x[(i + 1) % n]) - 2 * float(x[i]) + float(x[i - 1]) for i in range(n)])


@pytest.fixture(scope="module")
def result():
    return study.run(TINY, repeats=7, budget=0.05, device="h200" if missing(COPIES[1]) else None)


@outside
def test_every_column_has_times_or_says_why(result):
    (row,) = result["rows"]
    for one in (*IMPLEMENTATIONS, *COPIES):
        column = result["columns"][one.name]
        assert bool(column["missing"]) != (one.name in row["times"])
        if one.name in row["times"]:
            assert 1 <= row["times"][one.name]["repeats"] <= 7
            assert row["times"][one.name]["error"] <= one.tolerance
    assert row["bytes"] == 8 * TINY
    assert json.loads(json.dumps(result))["study"] == "laplace1d"


@outside
def test_ratios_and_shares_are_of_the_means(result):
    (row,) = result["rows"]
    means = {name: times["mean"] for name, times in row["times"].items()}
    assert row["ratios"]["numpy"] == means["loop"] / means["numpy"]
    assert row["shares"]["numpy"] == means["host_copy"] / means["numpy"]
    assert row["copy"]["host_copy"] == pytest.approx(8 * TINY / (1e-3 * means["host_copy"]) / 1e9)
    assert ("gpu_copy" in row["copy"]) == ("gpu_copy" in means)
    assert measuring.summary([1.0, 2.0, 6.0]) == {"median": 2.0, "low": 1.5, "high": 4.0, "mean": 3.0}


@outside
def test_estimates_need_no_gpu(result):
    if result["columns"]["gpu_copy"]["missing"] is None:
        pytest.skip("a GPU is here, and is estimated itself")
    assert result["estimates"] == {"calibration": "NVIDIA H200", "missing": None}
    (row,) = result["rows"]
    assert set(row["estimates"]) == {f"gpu_{name}" for name in KERNELS}
    assert row["estimate errors"] == {}
    lines = {cells[0]: cells for cells in study.report(result).sheets[0].rows}
    heads = [" ".join(head).strip() for head in study.report(result).sheets[0].heads]
    for model in ("calibrated", "classic"):
        value = float(lines["GPU shared"][heads.index(f"SKE {model}")])
        assert value == pytest.approx(row["estimates"]["gpu_shared"][model], rel=0.01)
        assert value > 0
        assert lines["NumPy 1 core"][heads.index(f"SKE {model}")] == "-"
    assert lines["GPU shared"][1:7] == ["-"] * 6


@outside
def test_an_estimate_has_its_error_and_the_document_its_place():
    times = {
        name: {"mean": mean, "median": mean, "low": mean, "high": mean, "repeats": 503, "error": 4e-8}
        for name, mean in {"loop": 2.0, "gpu_shared": 0.01, "gpu_copy": 0.008}.items()
    }
    row = {"samples": 1 << 20, "times": times, "skipped": {"python": "ran out of memory"}, "bytes": 8 << 20}
    row["estimates"] = {"gpu_shared": {"calibrated": 0.012, "classic": 0.005}}
    row |= derived(row, "loop", "mean") | {"document": study.document()}
    columns = {n: {"heads": ("of", n), "what": "x", "missing": None} for n in ("python", "loop", "gpu_shared")}
    found = {"columns": columns, "rows": [row], "method": "m", "date": "d", "estimates": {"calibration": "c"}}
    found["environment"] = {"processor": "p", "cores": 1, "gpu": "g"}
    assert study.report(found).sheets[0].rows == [
        ["of python", *["-"] * 12],
        ["of loop", "2.00", "2.00 ±0%", "503", "1.00", "-", "4e-08", "-", "-", "-", "-", "5.62", "1.0"],
        [
            "of gpu_shared",
            "0.0100",
            "0.0100 ±0%",
            "503",
            "200",
            "80.0%",
            "4e-08",
            "0.0120",
            "+20%",
            "0.00500",
            "-50%",
            "0.166",
            "33.9",
        ],
    ]
    assert "Skipped: of python: ran out of memory." in study.report(found).notes


@outside
@pytest.mark.parametrize("width", [80, 200])
def test_the_table_keeps_to_the_width(result, width):
    text = study.report(result).text(width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for one in (*IMPLEMENTATIONS, *COPIES):
        assert f"{one.label}: {one.what}" in words
        assert (missing(one) or "") in words
    assert "2008" not in text  # that was at another size
    assert study.report(result).markdown().count("\n| ") == len(IMPLEMENTATIONS) + len(COPIES) + 2


@outside
@pytest.mark.parametrize("n", [2, 3, 4, 7, 50])
def test_host_loops_at_any_length(n, monkeypatch):
    monkeypatch.setattr(cases, "GRAIN", 3)  # so that there are pieces
    problem = Problem(n)
    assert np.array_equal(problem.expected(""), laplace(problem.x))
    for one in IMPLEMENTATIONS:
        if not one.device and not missing(one):
            y = one.prepare(problem).call()
            assert y.dtype == np.float32
            np.testing.assert_allclose(y, laplace(problem.x), rtol=0, atol=1e-6)


@outside
def test_a_wrong_result_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(Problem, "expected", lambda self, oracle: self.x)
    with pytest.raises(Mismatch, match=r"Python loop, 1-D Laplace operator, 4096 samples: differs from"):
        study.run(TINY, repeats=1)
    code, out, err = run(capsys, "bench", "laplace1d", "--samples", TINY)
    assert (code, out) == (1, "")
    assert "wavefilt: error: Python loop" in err


@outside
def test_what_does_not_fit_is_skipped():
    (row,) = study.run(1 << 50, repeats=1)["rows"]
    assert row["times"] == {}
    assert "GiB of memory" in row["skipped"]["loop"]


@outside
def test_command_without_a_gpu(tmp_path, capsys):
    path = tmp_path / "laplace1d.json"
    options = ("--repeats", "3", "--quick", "-o", path)
    code, out, err = run(capsys, "bench", "laplace1d", "--samples", "4Ki", *options)
    assert (code, err) == (0, "")
    assert "compiled loop" in out
    assert json.loads(path.read_text())["rows"][0]["samples"] == 4096


@outside
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--samples", "1"], "at least 2"),
        (["--samples", "few"], "no size"),
        (["--repeats", "0"], "repeats"),
        (["--device", "abacus"], "abacus"),
        (["--device", "none.json"], "none.json"),
        (["--fast"], "--fast"),
    ],
)
def test_mistakes(arguments, words, capsys):
    code, out, err = run(capsys, "bench", "laplace1d", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


@outside
def test_the_cases_need_no_cuda():
    code = "import sys; from wavefilt.benchmarks.laplace1d import cases, counts; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "wavefilt.benchmarks.laplace1d.cases" in loaded
    assert not {"numba.cuda", "numba_cuda", "wavefilt.backends.cuda.runtime.target"} & set(loaded)


@inside
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_at_the_edges_of_blocks(name):
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.laplace1d.kernels import kernels, launch

    block = 8
    for n in (1, 2, 7, 8, 9, 16, 17, 31):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        y = cuda.to_device(np.full(n, np.nan, np.float32))
        launch(name, cuda.to_device(x), y, block=block)
        np.testing.assert_allclose(y.copy_to_host(), laplace(x), rtol=0, atol=2e-6)
        if n in (1, 17):
            y = cuda.to_device(np.full(n, np.nan, np.float32))
            getattr(kernels(block, True), name)[3, block](cuda.to_device(x), y)
            np.testing.assert_allclose(y.copy_to_host(), laplace(x), rtol=0, atol=2e-6)


@inside
def test_implementations_launch_their_kernels():
    problem = Problem(300)
    for one in (*IMPLEMENTATIONS, COPIES[1]):
        if one.device:
            prepared = one.prepare(problem)
            y = prepared.host(prepared.call())
            assert measuring.difference(y, problem.expected(one.oracle)) <= one.tolerance


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """PTX of every kernel, by name; "wide" are those that count in 64 bits."""
    if SIMULATED or find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    folder = tmp_path_factory.mktemp("ptx")
    subprocess.run([sys.executable, "-m", MODULE, str(folder)], check=True, timeout=600, cwd=ROOT)
    return {path.stem: path for path in folder.glob("*.ptx")}


def test_kernels_load_as_they_say(compiled):
    assert len(compiled) == 2 * len(KERNELS)
    for name, path in compiled.items():
        ptx = path.read_text()
        assert ".f64" not in ptx
        cached = name.startswith(("readonly", "barrier"))
        assert len(re.findall(r"\bld\.global\.nc\.f32\b", ptx)) == (3 if cached else 0), name
        assert len(re.findall(r"\bld\.global\.f32\b", ptx)) == (0 if cached else 3), name
        if name.startswith("barrier"):  # it waits for the loads: the predicate that it reduces is made of them
            loads, rest = ptx[: ptx.rindex("ld.global.nc")], ptx[ptx.rindex("ld.global.nc") :]
            assert not re.search(r"(add|sub|fma\.rn)\.f32", loads)
            assert re.search(r"setp\.\w+\.f32.*bar(rier)?(\.cta)?\.red\.or\.pred.*sub\.f32.*st\.global", rest, re.S)


def test_nothing_is_spilled(compiled):
    ptxas = _ptxas()
    if ptxas is None:
        pytest.skip("ptxas is not installed (wheel nvidia-cuda-nvcc)")
    for name, path in compiled.items():
        command = [ptxas, "-arch=sm_90", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        assert " 0 bytes spill stores" in report, name
        if "wide" not in name:
            declared = launches(1 << 20)[name]
            shared = re.search(r"(\d+) bytes smem", report)
            assert int(shared[1] if shared else 0) == declared.shared, name
            assert int(re.search(r"Used (\d+) registers", report)[1]) <= REGISTERS, name


def test_declared_counts_are_those_of_the_compiled_kernels(compiled):
    """Arithmetic, accesses and barriers exactly; all instructions, of PTX, within a fifth."""
    from wavefilt.benchmarks.laplace1d.counts import ACCESSES
    from wavefilt.ske.instructions import listing

    for name, declared in launches(1 << 20).items():
        found = listing(compiled[name].read_text()).count()
        assert found["fma"] == declared.instructions["fma"], name
        assert found.get("barrier", 0) == declared.barriers, name
        assert found["global load"] + found["global store"] == ACCESSES, name
        assert found.get("shared load", 0) + found.get("shared store", 0) == (6 if declared.shared else 0), name
        total = sum(n for kind, n in declared.instructions.items() if kind != "wavefront") + declared.barriers
        assert sum(found.values()) == pytest.approx(total, rel=0.2), name


def _compile(folder: Path) -> None:
    from numba import types
    from numba.cuda import dispatcher

    # device functions ask the driver, which need not be there, what to compile for
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))  # type: ignore[attr-defined]

    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.laplace1d.kernels import kernels

    row = types.Array(types.float32, 1, "C")
    for wide in (False, True):
        for name, kernel in vars(kernels(wide=wide)).items():
            ptx, _ = cuda.compile_ptx(kernel.py_func, (row, row), cc=(9, 0))
            (folder / f"{name}{' wide' if wide else ''}.ptx").write_text(ptx)


if __name__ == "__main__":
    _compile(Path(sys.argv[1]))

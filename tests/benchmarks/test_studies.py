"""The commands that measure, at small sizes: scaling, CPU, CUDA, blocks."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.support.checkout import run
from tests.support.simulation import inside, outside
from wavefilt.benchmarks import blocks, calls, gsl
from wavefilt.benchmarks import scaling as study
from wavefilt.benchmarks.common.columns import Mismatch, unavailable
from wavefilt.benchmarks.common.measuring import difference
from wavefilt.benchmarks.laplace import images, rows
from wavefilt.benchmarks.scaling import IMPLEMENTATIONS, Problem

TINY = 4096
PROBLEMS = {
    "denoise, db8": (Problem("db8", TINY), IMPLEMENTATIONS),
    "laplace, 1-D": (rows.Problem(TINY), rows.IMPLEMENTATIONS),
    "laplace, 2-D": (images.Problem(images.made(74, 56)), images.IMPLEMENTATIONS),
}
NO_GPU = bool(unavailable(rows.COPIES[1].require))


def saved(capsys, tmp_path, *arguments):
    """Run a command of `wavefilt bench`; return its JSON and its text."""
    path = tmp_path / "result.json"
    code, out, err = run(capsys, "bench", *arguments, "-o", path, "--allow-dirty")
    assert (code, err) == (0, "")
    return json.loads(path.read_text()), out


@outside
@pytest.mark.parametrize(
    ("problem", "one"),
    [
        pytest.param(problem, one, id=f"{name}: {one.name}", marks=[pytest.mark.gpu] if "GPU" in one.heads else [])
        for name, (problem, implementations) in PROBLEMS.items()
        for one in implementations
    ],
)
def test_implementations_compute_the_same(problem, one):
    if reason := unavailable(one.require):
        pytest.skip(reason)
    prepared, expected = one.prepare(problem), problem.expected(one.oracle)
    for _ in range(2):
        y = prepared.host(prepared.call())
        assert y.shape == expected.shape
        assert difference(y, expected) <= one.tolerance
    assert difference(y, problem.x) > 0.05


@outside
def test_scaling_has_times_or_says_why(tmp_path, capsys):
    options = ("--quick", "-w", "db4", "--most", "64Ki", "--repeats", "2")
    result, out = saved(capsys, tmp_path, "scaling", *options)
    (row,) = result["rows"]
    for name, column in result["columns"].items():
        assert bool(column["missing"]) != (name in row["times"])
        assert column["missing"] is None or column["missing"] in " ".join(out.split())
    assert ("floors" in row) == (not result["columns"]["cuda"]["missing"])
    assert row["estimates"]["calibrated"] > 0  # without a GPU, for another
    medians = {name: times["median"] for name, times in row["times"].items()}
    assert row["ratios"]["pywavelets"]["numba"] == medians["pywavelets"] / medians["numba"]


@outside
def test_estimates_and_lower_bounds_are_beside_their_columns():
    medians = {"gsl": 4.0, "pywavelets": 2.0, "cuda": 0.5, "cuda_pinned": 0.4, "cuda_kernels": 0.2}
    times = {name: {"median": m, "low": m, "high": m, "repeats": 1, "error": 0.0} for name, m in medians.items()}
    row = {"wavelet": "db4", "taps": 8, "samples": 131072, "times": times, "skipped": {}}
    row |= {"estimates": {"calibrated": 0.25, "classic": 1.0}, "floors": {"transfer": 0.1, "memory": 0.05}}
    columns = {one.name: {"heads": one.heads} for one in IMPLEMENTATIONS}
    sheets = [*study.sheets({"columns": columns, "rows": [row | study.derived(row)]})]
    limits, document = (next(s for s in sheets if words in s.title) for words in ("lower bounds", "2010"))
    assert limits.rows == [["128 Ki", "0.250", "+25%", "1.00", "+400%", "0.0500", "4.00", "0.100", "4.00"]]
    assert document.rows == [["128 Ki", "26", "67", "0.39", "4.00", "0.500", "8.00"]]


@outside
def test_wrong_results_are_errors_and_lack_of_memory_is_noted(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Problem, "expected", lambda self, oracle: self.x)
        with pytest.raises(Mismatch, match="65536 samples"):
            study.run((1 << 16,), ("db4",), repeats=1)

    def full(problem):
        raise MemoryError

    monkeypatch.setattr(study, "IMPLEMENTATIONS", [replace(one, prepare=full) for one in IMPLEMENTATIONS])
    kept = []
    result = study.run((1 << 16, 1 << 17), ("db4",), repeats=1, keep=lambda result: kept.append(len(result["rows"])))
    assert kept == [1, 2]  # saved after each row
    assert result["rows"][0]["times"] == {}
    assert "memory" in result["rows"][0]["skipped"]["numba"]
    assert "Skipped: numba all cores" in study.report(result).markdown()


@pytest.mark.skipif(gsl.version() is None, reason="libgsl is not installed")
def test_gsl_wants_its_own_wavelets_and_powers_of_two():
    for wavelet, samples in (("db4", 100), ("sym8", 64)):
        with pytest.raises(ValueError, match="GSL"):
            gsl.Daubechies(wavelet, samples)
    x = np.random.default_rng(1).standard_normal(64)
    assert np.allclose(gsl.Daubechies("db4", 64).denoise(x, 0), x, atol=1e-12)


@outside
def test_cpu_measures_every_case_beside_pywavelets(tmp_path, capsys, monkeypatch):
    result, out = saved(capsys, tmp_path, "cpu", "--quick")
    for row in result["rows"]:
        libraries = {"numba"} if row["options"]["rule"] == "js" else {"numba", "pywavelets"}
        for loops in ("different", "same"):
            assert row[loops].keys() == libraries
            assert all(0 < t["low"] <= t["median"] <= t["high"] for t in row[loops].values())
        assert row["error"] < calls.TOLERANCE["numba", row["dtype"]]
    assert "universal, two axes, 4096 x 4096" in out
    monkeypatch.setattr(calls, "pywavelets", lambda options: lambda x: 2 * x)
    with pytest.raises(Mismatch, match="64 Ki"):
        calls.run("numba", quick=True)


@outside
@pytest.mark.gpu
@pytest.mark.whole_gpu
def test_cuda_measures_every_case_or_needs_a_gpu(tmp_path, capsys):
    if NO_GPU:
        code, out, err = run(capsys, "bench", "cuda", "--quick")
        assert (code, out) == (5, "")
        assert "cuda" in err
        return
    result, _ = saved(capsys, tmp_path, "cuda", "--quick", "--repeats", "1")
    assert len(result["rows"]) == sum(len(set(case.at) - {"CPU"}) for case in calls.CASES)
    for row in result["rows"]:
        assert {"different", "same"} <= row.keys()


@inside
def test_every_block_is_compared_and_timed(monkeypatch):
    monkeypatch.setattr(blocks, "KERNELS", (blocks.KERNELS[0], blocks.KERNELS[2]))
    result = blocks.run(300, (8, 12), repeats=1, tile=128)
    for row in result["rows"]:
        assert set(row["times"]) == {"forward_db4", "inverse_db4"}
        assert all(0 < t["error"] < 1e-6 and t["median"] > 0 for t in row["times"].values())
    assert "| threads | forward db4 measured |" in blocks.report(result).markdown()
    monkeypatch.setattr(blocks, "KERNELS", (replace(blocks.KERNELS[0], tolerance=1e-12),))
    with pytest.raises(Mismatch, match="forward db4"):
        blocks.run(300, (8,), repeats=1, tile=128)


@outside
def test_blocks_are_estimated_without_a_gpu(tmp_path, capsys):
    result, _ = saved(capsys, tmp_path, "blocks", "--device", "h200")
    assert [row["block"] for row in result["rows"]] == list(blocks.BLOCKS)
    for name, entry in result["choices"].items():
        estimates = {row["block"]: row["estimates"][name]["calibrated"] for row in result["rows"]}
        assert estimates[entry["calibrated"]["block"]] == min(estimates.values())


@outside
def test_regret_is_the_time_of_the_choice():
    def row(block, measured, calibrated):
        times = {k.name: {"median": measured} for k in blocks.KERNELS}
        estimates = {k.name: {"calibrated": calibrated, "classic": None} for k in blocks.KERNELS}
        return {"block": block, "times": times, "estimates": estimates}

    (found, *_) = blocks.choices([row(32, 3.0, 2.0), row(64, 2.0, 2.5), row(128, 4.0, 9.0)]).values()
    assert found["fastest"] == 64
    assert found["calibrated"] == {"block": 32, "regret": 1.5}
    assert found["classic"] == {"block": None, "regret": None}


@outside
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("blocks --device x", "h200"),
        ("scaling --most 1Ki", "64Ki"),
        ("laplace 2d --size 65535 65535", "2 GiB"),
    ],
)
def test_mistakes(arguments, words, capsys):
    code, out, err = run(capsys, "bench", *arguments.split())
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err

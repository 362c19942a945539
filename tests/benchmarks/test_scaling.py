"""The scaling study at tiny sizes: every implementation computes the same, and what cannot run says why."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from tests.support.checkout import run as run_command
from wavefilt.benchmarks.common import implementation
from wavefilt.benchmarks.scaling import gsl, report, study
from wavefilt.benchmarks.scaling.implementations import IMPLEMENTATIONS, Problem

TINY = 4096


def runs(one):
    return implementation.missing(one) is None


def row(samples, **medians):
    times = {name: {"median": m, "low": m, "high": m, "repeats": 1, "error": 0.0} for name, m in medians.items()}
    found = {"wavelet": "db4", "taps": 8, "samples": samples, "times": times, "skipped": {}}
    return found | study._derived(found)


@pytest.fixture(scope="module")
def result():
    return study.run((TINY, 2 * TINY), ("db4",), repeats=3, budget=0.01)


def test_every_column_has_times_or_says_why(result):
    for one in IMPLEMENTATIONS:
        column = result["columns"][one.name]
        assert bool(column["missing"]) != runs(one)
        for entry in result["rows"]:
            assert (one.name in entry["times"]) == runs(one)
    assert all(bool(result["floors"]["missing"]) != ("floors" in entry) for entry in result["rows"])
    assert all(entry["estimates"]["calibrated"] > 0 for entry in result["rows"])  # without a GPU, for another
    assert json.loads(json.dumps(result))["unit"] == "ms"


@pytest.mark.gpu
def test_the_gpu_is_timed_by_its_own_clock(result):
    if result["columns"]["cuda"]["missing"]:
        pytest.skip(result["columns"]["cuda"]["missing"])
    for entry in result["rows"]:
        assert 0 < entry["times"]["cuda_kernels"]["median"] < entry["times"]["cuda"]["median"]
        assert 0 < entry["floors"]["memory"] < entry["floors"]["transfer"]


def test_ratios_are_of_the_medians(result):
    for entry in result["rows"]:
        medians = {name: times["median"] for name, times in entry["times"].items()}
        assert entry["ratios"]["pywavelets"]["numba"] == medians["pywavelets"] / medians["numba"]


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_keeps_to_the_width(result, width):
    text = report.report(result).text(width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    assert "4 Ki" in words
    for column in result["columns"].values():
        assert column["missing"] is None or column["missing"] in words


def test_the_list_has_a_line_for_every_column(result):
    lines = list(csv.DictReader(io.StringIO(report.to_csv(result))))
    for one in IMPLEMENTATIONS:
        own = [line for line in lines if line["column"] == one.name]
        assert [int(line["samples"]) for line in own] == [TINY, 2 * TINY]
        assert all(bool(line["ms"]) != bool(line["note"]) for line in own)


def test_a_wrong_result_is_an_error(monkeypatch):
    monkeypatch.setattr(Problem, "expected", lambda self, oracle: self.x)
    with pytest.raises(implementation.Mismatch, match=r"db4, 4096 samples: differs from the reference by"):
        study.run((TINY,), ("db4",), repeats=1)


def test_what_does_not_fit_is_skipped(monkeypatch):
    monkeypatch.setattr(implementation, "free_memory", lambda: 64 << 10)
    result = study.run((TINY,), ("db4",), repeats=1)
    assert result["rows"][0]["times"] == {}
    assert result["rows"][0]["skipped"]["numba"].endswith("GiB of memory, 0.0 are free")
    assert "Skipped: numba all cores, db4, 4 Ki: needs" in " ".join(report.report(result).text().split())


def test_crossover_is_the_last_change():
    rows = [
        row(1, numba=2, pywavelets=1),
        row(2, numba=1, pywavelets=2),
        row(4, numba=3, pywavelets=2),
        row(8, numba=1, pywavelets=2),
        row(16, numba=1, pywavelets=2),
    ]
    (found,) = study.crossovers(rows)
    assert (found["from"], found["always"]) == (8, False)
    assert study.crossovers(rows[1:2])[0] == {**found, "from": 2, "always": True}
    assert study.crossovers(rows[:3])[0]["from"] is None


def test_the_document_is_beside_its_wavelet():
    assert row(64 << 20, pywavelets=1)["document"] == {"cpu": 31802, "gpu": 1350, "ratio": 31802 / 1350}
    assert len(study.DOCUMENT) == 11


def test_estimates_and_floors_are_shown():
    rows = [row(n, gsl=4.0, pywavelets=2.0, cuda=0.5, cuda_pinned=0.4, cuda_kernels=0.2) for n in (65536, 131072)]
    for entry in rows:
        entry |= {"estimates": {"calibrated": 0.25, "classic": 1.0}, "floors": {"transfer": 0.1, "memory": 0.05}}
        entry |= study._derived(entry)
    tables = {sheet.title: sheet for sheet in report.sheets(result_of(rows))}
    limits = next(sheet for title, sheet in tables.items() if "lower bounds" in title)
    assert limits.rows[0] == ["64 Ki", "0.250", "+25%", "1.00", "+400%", "0.0500", "4.00", "0.100", "4.00"]
    then = next(sheet for title, sheet in tables.items() if "2010" in title)
    assert then.rows[1] == ["128 Ki", "26", "67", "0.39", "4.00", "0.500", "8.00"]


def result_of(rows):
    return {"columns": {i.name: {"heads": i.heads} for i in IMPLEMENTATIONS}, "rows": rows}


@pytest.mark.skipif(gsl.version() is None, reason="libgsl is not installed")
def test_gsl_wants_its_own_wavelets_and_powers_of_two():
    with pytest.raises(ValueError, match="powers of two, not 100"):
        gsl.Daubechies("db4", 100)
    with pytest.raises(ValueError, match="sym8"):
        gsl.Daubechies("sym8", 64)
    x = np.random.default_rng(1).standard_normal(64)
    assert np.allclose(gsl.Daubechies("db4", 64).denoise(x, 0), x, atol=1e-12)


def test_command_writes_everything_it_is_asked_for(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    files = {name: tmp_path / f"scaling.{name}" for name in ("json", "csv")}
    options = ("--quick", "-w", "db4", "--most", "64Ki", "--repeats", "1", "--plot", tmp_path / "figures")
    code, out, err = run_command(capsys, "bench", "scaling", *options, "-o", files["json"], "--csv", files["csv"])
    assert code == 0, err
    assert "PyWavelets" in out
    assert [entry["samples"] for entry in json.loads(files["json"].read_text())["rows"]] == [65536]
    assert files["csv"].read_text().startswith("wavelet,taps,samples,column")
    for name in ("scaling_times.png", "scaling_speedup.png"):
        assert (tmp_path / "figures" / name).read_bytes().startswith(b"\x89PNG")


def test_command_refuses_what_it_cannot_measure(capsys):
    assert "the smallest is 64Ki" in run_command(capsys, "bench", "scaling", "--most", "1Ki")[2]

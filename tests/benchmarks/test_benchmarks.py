"""The measurements run, at small sizes, and the documentation shows what they gave."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.checkout import ROOT
from wavefilt.benchmarks import documents, values
from wavefilt.benchmarks.cpu import calls, crossover, denoise, startup
from wavefilt.transforms import DWT2, MODWT


@pytest.mark.parametrize("path", documents.documents(), ids=lambda path: path.name)
def test_documents_show_the_measured_tables(path):
    assert documents.updated(path.read_text()) == path.read_text()


def test_every_table_has_its_place():
    text = "".join(path.read_text() for path in documents.documents())
    assert all(f"<!-- {name} -->\n{table}\n<!-- end -->" in text for name, table in documents.tables().items())


@pytest.mark.parametrize("path", documents.documents(), ids=lambda path: path.name)
def test_no_value_ends_a_paragraph(path):
    assert not any(line.startswith("<!-- value") for line in path.read_text().splitlines())


def test_an_empty_place_is_filled_and_what_follows_stays():
    name, table = next(iter(documents.tables().items()))
    filled = documents.updated(f"before\n<!-- {name} -->\n<!-- end -->\nafter\n")
    assert filled == f"before\n<!-- {name} -->\n{table}\n<!-- end -->\nafter\n"


def test_a_value_is_written_into_its_sentence():
    filled = documents.updated("takes <!-- value cuda_h200.json: device-time device, bayes, db8 -->0<!-- end --> ms,\n")
    assert filled == "takes <!-- value cuda_h200.json: device-time device, bayes, db8 -->0.55<!-- end --> ms,\n"


@pytest.mark.parametrize("marker", ["cpu.json: age", "gpu.json: speedup", "cpu.json: speedup denoise 17 Mi", "cpu"])
def test_an_unknown_value_is_an_error_that_says_what_there_is(marker):
    with pytest.raises(ValueError, match="there are"):
        values.value(marker)


def test_check_names_stale_documents_and_writes_nothing(tmp_path, monkeypatch, capsys):
    stale, right = tmp_path / "stale.md", tmp_path / "right.md"
    stale.write_text("<!-- value cpu.json: speedup denoise 1 Mi -->99<!-- end -->")
    right.write_text("<!-- value cpu.json: speedup denoise 1 Mi -->11<!-- end -->")
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    monkeypatch.setattr(documents, "documents", lambda: [stale, right])
    assert documents.main(["--check"]) == 1
    assert capsys.readouterr().out == "stale.md\n"
    assert "99" in stale.read_text()
    assert documents.main([]) == 0
    assert documents.main(["--check"]) == 0
    assert stale.read_text() == right.read_text()


def test_an_installed_package_has_no_documents_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="run this in a checkout of wavefilt"):
        documents.main([])


def test_calls_of_two_checkouts_are_measured_in_turn(monkeypatch):
    monkeypatch.setattr(calls, "BACKENDS", ("pywavelets",))
    result = calls.run(ROOT, rounds=1)
    names = [*(f"{case} pywavelets, us" for case in calls.CASES), *(f"{name}, ms" for name in calls.COMMANDS)]
    assert list(result) == names
    assert all(row["ratio"] == row["this"] / row["other"] > 0 for row in result.values())


def test_startup_measures_every_command():
    result = startup.run(repeats=1)
    assert list(result) == list(startup.COMMANDS)
    assert all(entry["seconds"] > 0 for entry in result.values())


def test_first_calls_run_in_processes_of_their_own():
    assert all(seconds > 0 for seconds in denoise._start(denoise.FIRST_CALLS[:1]).values())
    for transform, shape in ((DWT2, (1, 64, 64)), (MODWT, (1, 1024))):
        assert crossover.first_use(transform, "db4", np.ones(shape, "f4"), 2, 1024, 1)["first"] > 0


def test_cpu_study_in_small():
    case = denoise.Case("tiny", 4096, 1.0, traces=2, level=3)
    result = denoise._measure(case, repeats=1)
    assert result["error"] < 1e-5
    assert result["ratio"] == result["pywavelets"]["median"] / result["numba"]["median"]

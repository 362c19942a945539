"""The measurements run, at small sizes, and the documentation shows what they gave."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import wavefilt
from tests.support.checkout import ROOT
from wavefilt import threads
from wavefilt.benchmarks import documents, values
from wavefilt.benchmarks.cpu import by_threads, calls, crossover, denoise, loops, phases, startup
from wavefilt.benchmarks.report import plots
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
    case = "device, bayes, db8"
    rows = json.loads((ROOT / "benchmarks" / "results" / "cuda_h200.json").read_text())["cases"]
    (median,) = (row["device"]["median"] for row in rows if row["name"] == case)
    filled = documents.updated(f"takes <!-- value cuda_h200.json: device-time {case} -->0<!-- end --> ms,\n")
    assert filled == f"takes <!-- value cuda_h200.json: device-time {case} -->{median:.2f}<!-- end --> ms,\n"


def test_values_of_picks_and_gains_in_real_noise():
    result = json.loads((ROOT / "benchmarks" / "results" / "real_noise.json").read_text())
    (row,) = (r for r in result["gains"] if (r["form"], r["method"]) == ("raw", "js, modwt, window"))
    assert values.value("real_noise.json: over raw; js, modwt, window") == f"{row['over']:.1f}"
    silent = [r for r in result["picks"] if (r["picker"], r["method"]) == ("AIC", "js, window")]
    shares = {row["floor"]: f"{100 * row['outliers']['5 dB']:.0f}" for row in silent}
    assert values.value("real_noise.json: outliers AIC; js, window; 5 dB") == shares[True]
    assert values.value("real_noise.json: outliers AIC; js, window; 5 dB; no floor") == shares[False]


@pytest.mark.parametrize("marker", ["cpu.json: age", "gpu.json: speedup", "cpu.json: speedup denoise 17 Mi", "cpu"])
def test_an_unknown_value_is_an_error_that_says_what_there_is(marker):
    with pytest.raises(ValueError, match="there are"):
        values.value(marker)


def test_check_names_stale_documents_and_writes_nothing(tmp_path, monkeypatch, capsys):
    stale, right = tmp_path / "stale.md", tmp_path / "right.md"
    stale.write_text("<!-- value cpu.json: speedup denoise 1 Mi -->99<!-- end -->")
    right.write_text(
        f"<!-- value cpu.json: speedup denoise 1 Mi -->{values.value('cpu.json: speedup denoise 1 Mi')}<!-- end -->"
    )
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


def test_first_calls_of_whole_processes(monkeypatch):
    monkeypatch.setattr(startup, "FIRST_CALL", "import os; os.environ['NUMBA_CACHE_DIR'], {dtype!r}, {backend!r}")
    found = startup.first_calls(repeats=1)
    assert list(found) == ["numpy alone", "pywavelets", "cached", "empty cache"]
    assert all(seconds["seconds"] > 0 and seconds["cpu_seconds"] > 0 for seconds in found.values())


def test_first_calls_run_in_processes_of_their_own():
    assert all(seconds > 0 for seconds in denoise._start(denoise.FIRST_CALLS[:1]).values())
    for transform, shape in ((DWT2, (1, 64, 64)), (MODWT, (1, 1024))):
        assert crossover.first_use(transform, "db4", np.ones(shape, "f4"), 2, 1024, 1)["first"] > 0


def test_a_users_loop_in_small():
    kept = []
    row = loops.measure("tiny", (1, 600), "float32", {"pywavelets": np.copy, "numba": lambda x: kept.append(x) or x}, 3)
    assert row["arrays"] == 3
    assert len({x.tobytes() for x in kept}) == 3  # different arrays
    assert all(times["median"] > 0 for key in ("different", "same") for times in row[key].values())
    assert len(loops.TABLE({"loops": [row]}).rows) == 1


def test_run_times_by_threads_in_small(monkeypatch):
    before, used = threads.get_num_threads(), []
    monkeypatch.setattr(by_threads, "CASES", {"64 Ki": ((1, 3000), {}), "1 Mi": ((2, 3000), {"level": 2})})
    monkeypatch.setattr(by_threads, "COPIED", 1 << 24)
    monkeypatch.setattr(wavefilt, "denoise", lambda *_, **__: used.append(threads.get_num_threads()))
    result = by_threads.run([1, 3], 2, True, iter)
    found = [(row["name"], row["threads"]) for row in result["rows"]]
    assert found == [("64 Ki", 1), ("64 Ki", 3), ("1 Mi", 1), ("1 Mi", 3)]
    assert set(used) == {1, 3}
    assert threads.get_num_threads() == before
    for row in result["rows"]:
        assert row["efficiency"] == pytest.approx(row["speedup"] / row["threads"])
    assert documents.kind_of(json.loads(json.dumps(result)))[1].report is by_threads.report
    report = by_threads.report(result)
    assert len(report.sheets[0].rows) == 4
    assert "GB/s" in report.notes[1]
    (plot,) = plots.threads(result | {"rows": [row for row in result["rows"] if row["shape"][0] == 1]})
    assert [line.label for line in plot.panels[0].lines][:2] == ["1 thread", "3 threads"]


def test_phases_of_a_call(monkeypatch):
    monkeypatch.setattr(phases, "CASES", {"tiny": (2, 4000)})
    rates = dict.fromkeys(("touch", "fill", "read", "copy"), 1.0)
    monkeypatch.setattr(phases, "machine", lambda count: {"threads": count, "wake": 1e-5} | rates)
    before = threads.get_num_threads()
    result = phases.run([1], 1, ["tiny"])
    threads.set_num_threads(before)
    (row,) = result["rows"]
    kernels = [phase["kernel"] for phase in row["phases"]]
    assert kernels == ["forward", "short_rows", "choose", "inverse", "end"]
    assert sum(phase["before"] + phase["wall"] for phase in row["phases"]) < 10 * row["traced"]
    assert "short_rows" in phases.text(result)


def test_wrong_arguments_of_phases():
    for wrong in (["1,x"], ["1", "0"], ["1", "2", "65Ki"]):
        done = CliRunner().invoke(phases.main, wrong)
        assert done.exit_code == 2
        assert "Invalid value" in done.output
    assert "number of threads" in " ".join(CliRunner().invoke(phases.main, ["--help"]).output.split())


def test_whole_calls_of_two_checkouts_by_threads(monkeypatch):
    monkeypatch.setattr(phases, "CASES", {"tiny": (1, 4000)})
    result = calls.by_threads(ROOT, [1, 2], ["tiny"], seconds=0)
    assert list(result) == [f"tiny, {n} threads, {kind}" for n in (1, 2) for kind in ("ms", "CPU ms")]
    assert all(row["other"] > 0 and row["this"] > 0 for row in result.values())


def test_numbers_of_threads():
    assert by_threads.counts("4,1,2,2") == [1, 2, 4]
    for text in ("", "1,", "0", "two", "1.5", "-1"):
        with pytest.raises(ValueError, match="whole numbers of at least 1"):
            by_threads.counts(text)


def test_cpu_study_in_small():
    case = denoise.Case("tiny", 4096, 1.0, traces=2, level=3)
    result = denoise._measure(case, repeats=1)
    assert result["error"] < 1e-5
    assert result["ratio"] == result["pywavelets"]["median"] / result["numba"]["median"]

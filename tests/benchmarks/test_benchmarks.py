"""The measurements run, at small sizes, and the documentation shows what they gave."""

from __future__ import annotations

import pytest

from wavefilt.benchmarks import documents
from wavefilt.benchmarks.cpu import denoise, startup


@pytest.mark.parametrize("path", documents.documents(), ids=lambda path: path.name)
def test_documents_show_the_measured_tables(path):
    assert documents.updated(path.read_text()) == path.read_text()


def test_every_table_has_its_place():
    text = "".join(path.read_text() for path in documents.documents())
    assert all(f"<!-- {name} -->\n{table}\n<!-- end -->" in text for name, table in documents.tables().items())


def test_an_empty_place_is_filled_and_what_follows_stays():
    name, table = next(iter(documents.tables().items()))
    filled = documents.updated(f"before\n<!-- {name} -->\n<!-- end -->\nafter\n")
    assert filled == f"before\n<!-- {name} -->\n{table}\n<!-- end -->\nafter\n"


def test_startup_measures_every_command():
    result = startup.run(repeats=1)
    assert list(result) == list(startup.COMMANDS)
    assert all(entry["seconds"] > 0 for entry in result.values())


def test_cpu_study_in_small():
    case = denoise.Case("tiny", 4096, 1.0, traces=2, level=3)
    result = denoise._measure(case, repeats=1)
    assert result["error"] < 1e-5
    assert result["ratio"] == result["pywavelets"]["median"] / result["numba"]["median"]

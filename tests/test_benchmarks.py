"""The measurements run, at small sizes, and the documentation shows what they gave."""

from __future__ import annotations

import json

import pytest
from conftest import ROOT

from wavefilt.benchmarks import gain, startup


def test_gain_table_in_the_documentation_is_the_measured_one():
    rows = json.loads((ROOT / "benchmarks" / "results" / "gain.json").read_text())
    assert gain.table(rows) in (ROOT / "docs" / "gain.md").read_text()


def test_gain_can_be_measured_again(monkeypatch):
    committed = json.loads((ROOT / "benchmarks" / "results" / "gain.json").read_text())
    rows = gain.run()
    assert [row["signal"] for row in rows] == [row["signal"] for row in committed]
    for row, before in zip(rows, committed, strict=True):
        assert row["gain_db"] == pytest.approx(before["gain_db"], abs=0.05)
        assert row["gain_db"]["bayes, level"] > 0


def test_startup_measures_every_command():
    result = startup.run(repeats=1)
    assert list(result) == list(startup.COMMANDS)
    assert all(entry["seconds"] > 0 for entry in result.values())

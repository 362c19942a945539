"""Tables of the results in pages."""

from __future__ import annotations

import json

from tests.support.simulation import outside
from wavefilt.benchmarks import documents

pytestmark = outside
ENVIRONMENT = {"date": "2026-01-02", "commit": "0123456789abcdef", "processor": "a processor", "cores": 16}
ENVIRONMENT |= {"gpu": "a GPU, 140 GiB"}


def test_every_result_of_this_package_becomes_tables():
    known = documents.tables(documents.TABLES)
    assert {name.partition(":")[0] for name in known} == documents.TABLES.keys()
    for text in known.values():
        assert "\n| --- |" in text
        assert text.splitlines()[-1].startswith("*Measured 20")


def test_check_finds_stale_pages_and_tables_without_a_page(tmp_path):
    pages = [tmp_path / "a.md", tmp_path / "b.md"]
    pages[0].write_text("<!-- table one -->\nold\n<!-- end -->")
    pages[1].write_text("<!-- table two -->\nnow\n<!-- end -->")
    stale, homeless = documents.checked(pages, {"one": "new", "two": "now", "three": "none"})
    assert stale == {pages[0]: "<!-- table one -->\nnew\n<!-- end -->"}
    assert homeless == ["three"]


def test_the_command_checks_and_writes(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    (tmp_path / "cpu.json").write_text(json.dumps({"environment": ENVIRONMENT}))
    page.write_text("<!-- table cpu -->\n<!-- end -->\n")
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    monkeypatch.setattr(documents, "pages", lambda: [page])
    monkeypatch.setattr(documents, "TABLES", {"cpu": lambda result: {"": "| 1 |"}})
    monkeypatch.setattr(documents, "RESULTS", tmp_path)
    assert documents.main(["--check"]) == 1
    assert capsys.readouterr().out == "page.md\n"
    assert documents.main([]) == 0
    assert documents.main(["--check"]) == 0
    last = "*Measured 2026-01-02 at commit 0123456: a GPU, a processor, 16 cores.*"
    assert page.read_text() == f"<!-- table cpu -->\n| 1 |\n\n{last}\n<!-- end -->\n"
    page.write_text("<!-- table other -->\n<!-- end -->\n")
    assert documents.main(["--check"]) == 1
    assert "other" in capsys.readouterr().err


def test_provenance_names_other_dates():
    line = documents.provenance({"environment": ENVIRONMENT, "remark": "Two rows are older"})
    assert line.endswith("16 cores. Two rows are older.*")

"""`wavefilt denoise --report`, and what -v says of it."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from tests.support.checkout import SAMPLES, needs, run

pytestmark = needs("matplotlib")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with two records."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLES / "seismic.dat", "a.dat")
    shutil.copy(SAMPLES / "seismic.dat", "b.dat")
    return tmp_path


def test_a_report_of_one_file(here, capsys):
    code, out, err = run(capsys, "denoise", "a.dat", "--report", "r.html", "--json", "--backend", "pywavelets")
    assert code == 0
    facts = json.loads(out)["trust"]
    assert facts["summary"] in err
    page = (here / "r.html").read_text()
    assert page.count("<img") == 5
    assert facts["summary"].partition("; ")[2] in page
    before = (here / "r.html").read_bytes()
    code, _, err = run(capsys, "denoise", "a.dat", "-o", "c.dat", "--report", "r.html")
    assert (code, "r.html exists" in err) == (2, True)
    assert not (here / "c.dat").exists()
    assert (here / "r.html").read_bytes() == before


def test_a_report_of_several_files_is_a_table(here, capsys):
    code, _, err = run(capsys, "denoise", "a.dat", "b.dat", "--report", "r.html", "--backend", "pywavelets")
    assert (code, "trust: 2 " in err) == (0, True)
    page = (here / "r.html").read_text()
    assert page.count("<tr>") == 3
    assert "a.dat" in page
    assert "<img" not in page


def test_verbose_tells_in_a_line(here, capsys):
    _, _, err = run(capsys, "denoise", "a.dat", "-v", "--backend", "pywavelets")
    assert err.count("  trust: ") == 1
    np.save("z.npy", np.random.default_rng(0).standard_normal(300) * 1j)
    code, _, err = run(capsys, "denoise", "z.npy", "-v", "--backend", "pywavelets")
    assert (code, "trust" in err) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["z.npy"], 1, "real samples"),
        (["a.dat", "--max-memory", "1GiB"], 2, "--report does not go with --max-memory"),
        (["a.dat", "-o", "r.html"], 2, "same file"),
    ],
)
def test_refused_before_anything_is_written(here, capsys, arguments, code, word):
    np.save("z.npy", np.zeros(300) * 1j)
    found, _, err = run(capsys, "denoise", *arguments, "--report", "r.html")
    assert (found, word in err) == (code, True)
    assert not [path for path in here.iterdir() if path.name in ("r.html", "z.denoised.npy", "a.denoised.dat")]

"""How `wavefilt view` fails: one line, and the exit codes of the other commands."""

from __future__ import annotations

import socket
import sys

import pytest

from tests.support.checkout import ROOT, run

SAMPLE = str(ROOT / "samples" / "seismic.dat")


def ended(capsys, *words):
    """Exit code, and the lines on standard error."""
    code, _, said = run(capsys, "view", "--no-browser", *words)
    return code, said.splitlines()


def test_without_panel_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "panel", None)
    code, lines = ended(capsys, SAMPLE)
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith("wavefilt: error: viewing needs Panel")
    assert lines[0].endswith('pip install "wavefilt[view]"')


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["no.dat"], 3, "no.dat: No such file"),
        ([ROOT / "docs" / "images" / "report.png"], 3, "unknown format"),
        (["-"], 2, "view takes one file"),
        ([SAMPLE, "-o", SAMPLE], 2, "is the input"),
        ([SAMPLE, "--level", "12"], 1, "--level 12 is above the maximum"),
        ([SAMPLE, "--rule", "shure"], 2, "did you mean 'sure'"),
        ([SAMPLE, "--transform", "fk"], 2, "is for panels"),
        ([SAMPLE, "--port", "70000"], 2, "70000"),
    ],
)
def test_what_cannot_be_shown_is_one_line(capsys, words, code, said):
    pytest.importorskip("panel")
    found, lines = ended(capsys, *words)
    assert found == code
    assert said in lines[0]
    assert lines[1:] in ([], ["See wavefilt view --help"])


def test_a_port_in_use_is_one_line(capsys):
    pytest.importorskip("panel")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, lines = ended(capsys, SAMPLE, "--port", port)
    assert (code, len(lines)) == (1, 1)
    assert f"port {port}" in lines[0]
    assert "in use" in lines[0]

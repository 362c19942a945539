"""`wavefilt ske`, its documentation, and what it imports."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest

from tests.package.test_package import HEAVY, python
from tests.support.checkout import ROOT, needs, run

REFERENCE = json.loads((ROOT / "tests/ske/ske_reference.json").read_text())


def test_reproduce_prints_and_saves(tmp_path, capsys):
    path = tmp_path / "r.json"
    code, out, err = run(capsys, "ske", "reproduce", "-o", path)
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines() if line.startswith("32x")}
    assert len(lines) == 18
    assert lines["32x4"].split() == ["32x4", "16", "64", "38.502", "minimum", "25.772", "minimum", "78.028", "minimum"]
    for block, kind in {"32x11": "high", "32x12": "low", "32x13": "high"}.items():
        assert lines[block].count(kind) == 3
    for claim in ("minimum at 32x4", "high at 32x11", "low at 32x12", "high at 32x13"):
        assert f"  {claim:<15}  resize yes, rgb2gray yes, smooth yes" in out
    assert "high at 32x15    resize NO" in out
    assert "425, 637, 297" in out
    assert "420, 630, 294" in out
    saved = json.loads(path.read_text())
    assert (saved["nb"], saved["nw"]) == (REFERENCE["nb"], REFERENCE["nw"])
    for name, expected in REFERENCE["seconds"]["product"].items():
        assert list(saved["kernels"][name]) == [str(h) for h in REFERENCE["h"]]
        assert list(saved["kernels"][name].values()) == pytest.approx(expected, rel=1e-9)


def test_reproduce_says_where_a_reading_fails(tmp_path, capsys):
    path = tmp_path / "r.json"
    code, out, _ = run(capsys, "ske", "reproduce", "--hiding", "separate", "--correction", "2", "-o", path)
    assert code == 0
    assert "minimum at 32x4  resize NO" in out
    expected = REFERENCE["seconds"]["separate, correction 2"]["smooth"]
    saved = json.loads(path.read_text())
    assert list(saved["kernels"]["smooth"].values()) == pytest.approx(expected, rel=1e-9)
    assert (saved["hiding"], saved["correction"]) == ("separate", 2)
    assert saved["claims"]["minimum at 32x4"] == {"resize": False, "rgb2gray": False, "smooth": False}


def test_reproduce_draws(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    from wavefilt.ske import figure, reproduction

    for name, start in {"a.png": b"\x89PNG", "a.pdf": b"%PDF", "a.svg": b"<?xml"}.items():
        assert run(capsys, "ske", "reproduce", "--plot", tmp_path / name)[0] == 0
        assert (tmp_path / name).read_bytes().startswith(start)
    result = reproduction.reproduce()
    axes = {axes.get_label(): axes for axes in figure.draw(result).axes}
    line = next(line for line in axes["times"].lines if line.get_label() == "resize")
    assert line.get_ydata() == pytest.approx([1e6 * t for t in REFERENCE["seconds"]["product"]["resize"][:16]])
    assert [bar.get_height() for bar in axes["active"].patches] == REFERENCE["nw"]


def test_occupancy(capsys):
    arguments = ["ske", "occupancy", "--device", "G80", "--threads", "64", "--registers", "8", "--shared", "256"]
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert out.splitlines()[0] == "8 blocks, 16 of 24 warps (67%), limited by BlockMaxInSM"
    facts = json.loads(run(capsys, *arguments, "--json")[1])
    assert (facts["blocks"], facts["warps"], facts["limit"]) == (8, 16, "BlockMaxInSM")
    assert facts["limits"]["MaxSharedMemory"] == 64


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["occupancy", "--device", "9.0", "--threads", "2048"], "ThreadMaxInBlock: 2048 threads"),
        (["occupancy", "--device", "9.0", "--threads", "1024", "--registers", "80"], "RegistersFilesInSM"),
        (["occupancy", "--device", "GTX760", "--threads", "32"], "did you mean 'GTX670'"),
        (["occupancy", "--device", "9.0", "--threads", "32", "--shared", "-4"], "shared=-4"),
        (["occupancy", "--device", "9.0"], "--threads"),
        (["reproduce", "--hiding", "both"], "--hiding"),
        (["reproduce", "--correction", "3"], "--correction"),
        (["reproduce", "--plot", "x.docx"], "docx"),
        (["reproduce", "-o", "nowhere/x.json"], "does not exist"),
        pytest.param(
            ["reproduce", "-o", "x.json", "--plot", "nowhere/x.png"], "does not exist", marks=needs("matplotlib")
        ),
    ],
)
def test_mistakes_give_no_number(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "ske", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


ROWS = ROOT / "benchmarks/results/ske_h200.json"
"""Measured on an H200."""


def test_estimates_without_a_gpu_are_for_the_device_that_is_named(capsys, monkeypatch):
    from wavefilt.errors import BackendUnavailable

    class Device:
        @staticmethod
        def current():
            raise BackendUnavailable("no GPU")

    monkeypatch.setitem(sys.modules, "wavefilt.benchmarks.ske.calibration", SimpleNamespace(Device=Device))
    code, out, err = run(capsys, "ske", "estimate", "--samples", "1Mi", "--json")
    assert code == 0
    assert err == "No GPU here: for NVIDIA H200; --device takes others.\n"
    known = run(capsys, "ske", "estimate", "--samples", "1Mi", "--json", "--device", "h200")
    assert known == (0, out, "")


def test_a_kernel_is_explained_beside_its_measured_time(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    options = ["--samples", "64Mi", "--block", "256", "--tile", "4096", "--device", "h200", "--validation", ROWS]
    code, out, _ = run(capsys, "ske", "explain", "denoise", *options, "--json")
    found = json.loads(out)
    assert code == 0
    of = {"kernel": "denoise", "wavelet": "db8", "threads": 256, "samples": 64 << 20, "rows": 1, "tile": 4096}
    (row,) = [row for row in json.loads(ROWS.read_text())["rows"] if of.items() <= row.items()]
    assert found["measured"] == row["seconds"]
    assert found["estimate"] == pytest.approx(sum(sum(one["parts"].values()) for one in found["launches"]))
    code, out, _ = run(capsys, "ske", "explain", "denoise", *options, "--plot", tmp_path / "parts.png")
    assert (tmp_path / "parts.png").read_bytes().startswith(b"\x89PNG")
    error = found["estimate"] / found["measured"] - 1
    assert out.splitlines()[-1].endswith(f"estimated {1e6 * found['estimate']:.2f} us ({error:+.1%})")


def test_the_bars_are_the_parts():
    pytest.importorskip("matplotlib")
    from wavefilt.benchmarks.ske import estimate, explanation
    from wavefilt.ske import calibration

    of, device = estimate.problem("db4", 1 << 22, block=256, tile=4096), calibration.load("h200")
    found = explanation.explained("median", "db4", of, device, None, False)
    bars = explanation.draw(found).axes[0].patches
    drawn = sum(bar.get_width() for bar in bars)
    assert drawn == pytest.approx(2e6 * found.seconds)  # the launches, and the whole
    assert found.comparison.startswith("not measured")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "backward", "--samples", "1Mi"], "backward"),
        (["explain", "forward", "--samples", "100", "--device", "h200"], "level"),
        (["explain", "forward", "--samples", "3Mi", "--device", "h200", "--validation", ROWS], "no row has"),
        (["explain", "forward", "--samples", "3Mi", "--device", "h200", "--plot", "x.docx"], "docx"),
    ],
)
def test_what_cannot_be_explained(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "ske", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("action", ["import wavefilt.ske", "import wavefilt.ske.figure, wavefilt.cli.ske.main"])
def test_heavy_packages_are_not_imported(action):
    result = python(f"{action}\nimport sys\nprint([m for m in {HEAVY} if m in sys.modules])")
    assert result.stdout.strip() == "[]", result.stderr


def test_the_documentation_is_honest():
    text = " ".join((ROOT / "docs" / "ske.md").read_text().split())
    assert "The paper reports a mean error above 24 %." in text
    assert "20 %" not in text
    for number in range(1, 18):
        assert f"({number})" in text
    for word in (
        "stated",
        "implied",
        "reconstructed",
        "contradicts itself in five places",
        *(f" {n}. " for n in range(1, 6)),
    ):
        assert word in text

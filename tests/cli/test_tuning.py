"""`wavefilt compare` and `wavefilt tune`: what they print, and that what they print runs."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.support.checkout import SAMPLES, run
from wavefilt.thresholding.rules import RULES

RECORD = SAMPLES / "seismic.dat"


def test_compare(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, err = run(capsys, "compare", RECORD, "--plot", tmp_path / "a.png")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line for line in lines if " dB " in line] == lines[1 : 1 + len(RULES.names())]
    assert lines[-1].startswith(f"best: wavefilt denoise {RECORD} --rule ")
    assert (tmp_path / "a.png").stat().st_size > 10_000
    code, _, err = run(capsys, "compare", RECORD, "--plot", tmp_path / "a.png")
    assert code == 2
    assert "--overwrite" in err


def test_compare_as_json_and_its_command_runs(capsys, tmp_path):
    options = ["--rule", "bayes", "--rule", "sure", "--level", "4", "--noise-window", "0.8", "1.0"]
    code, out, _ = run(capsys, "compare", RECORD, *options, "--json")
    facts = json.loads(out)
    assert code == 0
    assert {trial["name"] for trial in facts["trials"]} == {"bayes", "sure"}
    assert (facts["traces"], facts["live_traces"], facts["noise"]) == (23, 23, "of the window")
    assert facts["trials"][0]["gain_db"] >= facts["trials"][1]["gain_db"]
    words = shlex.split(facts["command"])
    assert words[:3] == ["wavefilt", "denoise", str(RECORD)]
    assert "--noise-window 0.8 1.0" in facts["command"]
    code, out, _ = run(capsys, *words[1:], "-o", tmp_path / "a.dat", "--json")
    assert (code, json.loads(out)["level"]) == (0, 4)


def test_tune_prints_a_command_that_runs(capsys, tmp_path):
    code, out, err = run(capsys, "tune", RECORD, "--seconds", "0.3")
    assert (code, err) == (0, "")
    command, python, *notes = out.splitlines()
    assert python.startswith("wavefilt.read(")
    assert all(note.startswith("note: ") for note in notes)
    code, _, _ = run(capsys, *shlex.split(command)[1:], "-o", tmp_path / "a.dat")
    assert code == 0
    facts = json.loads(run(capsys, "tune", RECORD, "--seconds", "0.01", "--json")[1])
    assert facts["complete"] is False
    assert facts["command"].startswith("wavefilt denoise ")


def test_layout_options_are_in_the_command(capsys, tmp_path):
    raw = tmp_path / "a.raw"
    raw.write_bytes(bytes(range(256)) * 16)
    layout = ["--format", "raw", "--dtype", "i2", "--endian", "little", "--ns", "512"]
    facts = json.loads(run(capsys, "compare", raw, *layout, "--rule", "bayes", "--json")[1])
    assert facts["command"].endswith("--format raw --dtype i2 --endian little --ns 512")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["compare", "missing.dat"], 3, "No such file"),
        (["compare", RECORD, "--rule", "baies"], 2, "did you mean 'bayes'"),
        (["compare", RECORD, "--rule", "js", "--shrink", "hard"], 2, "--rule js shrinks"),
        (["compare", RECORD, "--plot", "a.gif"], 2, ".png"),
        (["compare", RECORD, "--level", "40"], 1, "above the maximum"),
        (["compare", RECORD, "--noise-window", "0", "9"], 1, "does not lie in the traces"),
        (["compare", RECORD, "--noise-window", "0", "1", "--sigma", "3"], 2, "both tell the noise"),
        (["tune", RECORD, "--seconds", "0"], 2, "--seconds"),
        (["tune", RECORD, "--backend", "cudda"], 2, "did you mean 'cuda'"),
        (["tune"], 2, "FILE"),
    ],
)
def test_errors(capsys, arguments, code, words):
    found, out, err = run(capsys, *arguments)
    assert (found, out) == (code, "")
    assert words in err
    assert "Traceback" not in err


def test_damaged_files(capsys, tmp_path):
    damaged = tmp_path / "a.dat"
    damaged.write_bytes(RECORD.read_bytes()[:3000])
    for command in ("compare", "tune"):
        code, _, err = run(capsys, command, damaged)
        assert code == 3
        assert str(damaged) in err

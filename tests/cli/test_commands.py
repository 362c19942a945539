"""The other commands: compare, tune, warm-up, lists, JSON output and files, help, and completion in shells."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES, run, run_cli

RECORD = SAMPLES / "seismic.dat"


def test_compare(capsys):
    code, out, err = run(capsys, "compare", RECORD)
    assert (code, err) == (0, "")
    gains = [float(gain) for gain in re.findall(r"([\d.-]+) dB ", out)]
    assert len(gains) >= 8
    assert "  js, sym8, modwt  " in out
    assert "[default: db8;" in run(capsys, "compare", "--help")[1]
    assert out.splitlines()[-1].startswith(f"best, but undecided: wavefilt denoise {RECORD}")


def test_the_command_of_compare_runs(capsys, tmp_path):
    options = ["--rule", "bayes", "--rule", "sure", "--level", "4", "--noise-window", "0.8", "1.0"]
    code, out, _ = run(capsys, "compare", RECORD, *options, "--json")
    facts = json.loads(out)
    assert code == 0
    assert {trial["name"] for trial in facts["trials"]} == {"bayes", "sure"}
    assert (facts["traces"], facts["live_traces"]) == (23, 23)
    assert facts["trials"][0]["gain_db"] >= facts["trials"][1]["gain_db"]
    words = shlex.split(facts["command"])
    assert words[:3] == ["wavefilt", "denoise", str(RECORD)]
    assert "--noise-window 0.8 1.0" in facts["command"]
    code, out, _ = run(capsys, *words[1:], "-o", tmp_path / "a.dat", "--json")
    assert (code, json.loads(out)["level"]) == (0, 4)


def test_the_lines_of_tune_run(capsys, tmp_path):
    code, out, err = run(capsys, "tune", RECORD, "--seconds", "0.3")
    assert (code, err) == (0, "")
    python, command = (line.partition(": ")[2] for line in out.splitlines()[-2:])
    assert run(capsys, *shlex.split(command)[1:], "-o", tmp_path / "a.dat")[0] == 0
    names = {"wavefilt": wavefilt}
    exec(f"found = {python}", names)
    np.testing.assert_array_equal(names["found"].samples, wavefilt.read(tmp_path / "a.dat").samples)
    facts = json.loads(run(capsys, "tune", RECORD, "--seconds", "0.01", "--json")[1])
    assert facts["complete"] is False
    assert facts["command"].startswith("wavefilt denoise ")


def test_the_file_and_options_of_its_layout_are_in_the_command(capsys, tmp_path, monkeypatch):
    raw = tmp_path / "a.raw"
    raw.write_bytes(bytes(range(256)) * 16)
    layout = ["--format", "raw", "--dtype", "i2", "--endian", "little", "--ns", "512"]
    facts = json.loads(run(capsys, "compare", raw, *layout, "--rule", "bayes", "--json")[1])
    assert f" {' '.join(layout)} " in facts["command"]
    monkeypatch.chdir(tmp_path)
    raw.rename("-a.raw")
    assert "denoise ./-a.raw" in run(capsys, "compare", *layout, "--rule", "bayes", "--", "-a.raw")[1]


def test_warm_up_compiles_once(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    found = []
    for backend in ("numba", "all"):
        done = run_cli("warm-up", "--backend", backend, env=environment)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(b"numba: ")
        found.append([int(number) for number in re.findall(rb"(\d+) [kc]", done.stdout)])
    (compiled, _), (again, before) = found
    assert compiled > 0
    assert (again, before) == (0, sum(found[0]))
    assert run_cli("warm-up", "--backend", "cuda", env=environment).returncode == 5


def test_warm_up_fails_if_the_kernels_cannot_be_stored(tmp_path):
    (tmp_path / "file").touch()
    done = run_cli("warm-up", env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file")})
    assert done.returncode == 1
    assert b"warm-up: the kernels cannot be stored" in done.stderr


def test_wavelets_backends_and_version(capsys):
    rows = {row["name"]: row for row in json.loads(run(capsys, "wavelets", "--json")[1])}
    assert len(rows) == 106
    assert rows["db8"]["taps"] == 16
    assert len(run(capsys, "wavelets", "sym")[1].splitlines()) == 20
    assert "qshift_b" in run(capsys, "wavelets")[1]
    state = json.loads(run(capsys, "backends", "--json")[1])
    assert state["pywavelets"]["usable"] is True
    assert list(state) == wavefilt.backends.names()
    assert "pywavelets" in run(capsys, "backends")[1]
    assert wavefilt.__version__ in run(capsys, "--version")[1]


COMMANDS = ["", "denoise", "convert", "compare", "tune", "view", "info", "wavelets", "backends", "warm-up", "bench"]


@pytest.mark.parametrize("command", [*COMMANDS, "bench scaling", "ske", "ske estimate", "ske occupancy"])
def test_help(command, capsys):
    """A command that writes a file by ``-o`` can replace it, and JSON is never the name of a file."""
    code, out, _ = run(capsys, *command.split(), "--help")
    assert code == 0
    assert out.startswith(f"Usage: wavefilt {command}".rstrip())
    assert len(re.findall(r"^  -", out, re.MULTILINE)) <= 13
    if f"wavefilt {command} --help-all" in out:
        assert len(re.findall(r"^  -", out, re.MULTILINE)) <= 12
        code, everything, _ = run(capsys, *command.split(), "--help-all")
        options = re.findall(r"^  -.*", everything, re.MULTILINE)
        assert (code, f"all {len(options)} options" in out) == (0, True)
        out = everything
    if "-o, --output" in out:
        assert "--overwrite" in out
    assert not re.search(r"--json [A-Z]", out)


def test_convert_takes_both_forms(tmp_path, capsys):
    targets = [tmp_path / "a.sgy", tmp_path / "b.sgy"]
    assert run(capsys, "convert", RECORD, targets[0])[0] == run(capsys, "convert", RECORD, "-o", targets[1])[0] == 0
    assert targets[0].read_bytes() == targets[1].read_bytes()


def test_every_option_has_a_flag_in_messages():
    from wavefilt.cli import as_flags, options

    assert as_flags("`max_memory=5`, `two_dimensional` and `axes`, not `x`") == (
        "--max-memory 5, --two-dimensional and --two-dimensional, not `x`"
    )
    assert {option.group for option in options.TABLE} == set(options.GROUPS)


def test_results_as_text_as_json_and_in_a_file(tmp_path, capsys):
    """Of commands that measure or estimate; a checkout with changes writes results only if that is allowed."""
    path, estimate = tmp_path / "r.json", ["ske", "estimate", "--samples", "64Ki", "--device", "h200"]
    changed = ["--allow-dirty"] * ("--allow-dirty" in run(capsys, *estimate, "--help")[1])
    code, text, err = run(capsys, *estimate, *changed, "-o", path)
    assert (code, err) == (0, "")
    code, out, err = run(capsys, *estimate, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads(path.read_text())
    assert text not in ("", out)
    path.write_text("kept")
    code, out, err = run(capsys, *estimate, *changed, "-o", path)
    assert (code, out, path.read_text(), str(path) in err) == (2, "", "kept", True)
    assert run(capsys, *estimate, *changed, "-o", path, "--overwrite")[0] == 0
    assert json.loads(path.read_text())


COMPLETED = {
    "de": "denoise",
    "denoise sei": "<file>",
    "denoise -o out": "<file>",
    "denoise --out-dir ?": "<dir>",
    "denoise --log ?": "<file>",
    "denoise -w sym1": "sym10 sym11 sym12 sym13 sym14 sym15 sym16 sym17 sym18 sym19",
    "denoise --rule eb": "ebayes ebayes-cauchy",
    "denoise --mode p": "periodic periodization",
    "denoise --backend ?": "auto pywavelets numba cuda",
    "denoise --sigma g": "global",
    "denoise --level a": "auto",
    "denoise --devices ?": "all",
    "denoise --format se": "seg2 segy",
    "denoise --dtype f": "f4 f8",
    "denoise --dt ?": "",
    "wavelets s": "sym",
    "ske estimate -w db3": "db3 db30 db31 db32 db33 db34 db35 db36 db37 db38",
    "ske estimate --device ./mine": "<file>",
    "ske occupancy --device GTX4": "GTX480",
    "bench scaling -w db1": "db10",
}


@pytest.mark.parametrize("line", COMPLETED)
def test_completions(line, capsys, monkeypatch):
    """Ask as zsh does, which gets a type, a value and a help text for each; ? is an empty last word."""
    words = ["" if word == "?" else word for word in f"wavefilt {line}".split()]
    monkeypatch.setenv("_WAVEFILT_COMPLETE", "zsh_complete")
    monkeypatch.setenv("COMP_WORDS", shlex.join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    code, out, _ = run(capsys)
    lines = out.split("\n") if out.strip() else []
    found = [value if kind == "plain" else f"<{kind}>" for kind, value in zip(lines[::3], lines[1::3], strict=False)]
    assert (code, sorted(found)) == (0, sorted(COMPLETED[line].split()))


BASH = """
    source <(_WAVEFILT_COMPLETE=bash_source wavefilt)
    for line in "wavefilt denoise --mode p" "wavefilt denoise sei"; do
        read -ra COMP_WORDS <<< "$line"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
        compopt() { echo "files:" "$@"; }
        _wavefilt_completion wavefilt
        echo "${COMPREPLY[@]}"
    done
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_script_for_bash(tmp_path):
    command = tmp_path / "wavefilt"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wavefilt "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-c", BASH], env=environment, capture_output=True, text=True, timeout=100)
    for words in ("periodic", "periodization", "files: -o default"):
        assert words in done.stdout, done.stderr

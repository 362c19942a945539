"""Where results go: `--json` on standard output, `-o` into a file that is not replaced unasked; errors in one style."""

from __future__ import annotations

import json

import click
import pytest

from tests.support.checkout import run
from wavefilt.cli import group


def leaves(command, path=()):
    """Every command that is no group, by its words."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        yield from leaves(command.get_command(context, name), (*path, name))


COMMANDS = {" ".join(path): command for path, command in leaves(group)}
SKE = ["ske", "estimate", "--samples", "64Ki", "--device", "h200"]


def test_json_is_a_flag_and_output_a_file_everywhere():
    for name, command in COMMANDS.items():
        options = {word: param for param in command.params for word in param.opts}
        if "--json" in options:
            assert options["--json"].is_flag, name
        if "--output" in options:
            assert {"-o", "--overwrite"} <= options.keys(), name
        if name.startswith(("bench", "ske")) and name not in ("bench report", "ske occupancy"):
            assert {"--json", "--output"} <= options.keys(), name


@pytest.mark.parametrize("arguments", [SKE, [*SKE, "--rank"], ["ske", "devices"]])
def test_results_as_text_as_json_and_in_a_file(tmp_path, capsys, arguments):
    path = tmp_path / "r.json"
    code, text, err = run(capsys, *arguments, "-o", path)
    assert (code, err) == (0, "")
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err, json.loads(out)) == (0, "", json.loads(path.read_text()))
    assert text not in ("", out)
    path.write_text("kept")
    code, out, err = run(capsys, *arguments, "-o", path)
    assert (code, out, path.read_text()) == (2, "", "kept")
    assert f"{path} exists; use --overwrite to replace it" in err
    assert run(capsys, *arguments, "-o", path, "--overwrite")[0] == 0
    assert json.loads(path.read_text())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["denoise", "x.npy", "--wavlet", "db4"], "No such option"),
        (["denoise", "x.npy", "--mode", "mirror"], "--mode mirror is not one of "),
        (["denoise", "x.npy", "--keep", "-1"], "Invalid value for '--keep': -1 is not in the range x>=0."),
        (["denoise", "none.npy"], "none.npy: No such file or directory"),
        (["ske", "estimate", "--samples", "many"], "Invalid value for '--samples': 'many' is no size such as 65536"),
        (["wavelets", "dv"], "'dv' is no family of wavelets, which are bior, coif, db, dmey, haar, rbio, sym"),
        (["bench", "blocks", "-o", "no/where.json"], "the folder no does not exist"),
    ],
)
def test_errors_have_one_style(tmp_path, monkeypatch, capsys, arguments, line):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (3 if "none.npy" in arguments else 2, "")
    first, *more = err.splitlines()
    assert first.startswith(f"wavefilt: error: {line}")
    assert more in ([], [f"See wavefilt {' '.join(arguments[: 1 + (arguments[0] in ('ske', 'bench'))])} --help"])

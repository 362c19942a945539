"""Errors in the words of Python and of the command."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import wavefilt
from wavefilt.errors import FormatError, LayoutError, OptionError, OutputExists, about, for_command, options, reason


@pytest.mark.parametrize(
    ("words", "python", "command"),
    [
        (options("two_dimensional"), "two_dimensional", "--two-dimensional"),
        (options(overwrite=True), "overwrite=True", "--overwrite"),
        (options(format="raw", ns=...), "format='raw', ns=...", "--format raw --ns ..."),
        (options(columns=(2, 3), delimiter=" "), "columns=(2, 3), delimiter=' '", "--columns 2,3 --delimiter ' '"),
        (options("dt", level=None), "dt, level=None", "--dt --level None"),
    ],
)
def test_options_in_both_words(words, python, command):
    for kind in (OptionError, FormatError, LayoutError):
        error = kind("give ", words, " here")
        for same in (error, pickle.loads(pickle.dumps(error))):
            assert (str(same), for_command(same)) == (f"give {python} here", f"give {command} here")


def test_the_place_and_the_kind_are_kept():
    error = about("a.dat", LayoutError("a.dat: missing ", options("ns")), FormatError("nor\x1b this"), hint=("!",))
    assert isinstance(error, LayoutError)
    assert str(error) == "a.dat: missing ns; nor\\x1b this!"
    assert for_command(error) == "a.dat: missing --ns; nor\\x1b this!"


def test_an_output_that_exists(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones(9))
    with pytest.raises(FileExistsError, match="exists; use overwrite=True to replace it") as raised:
        wavefilt.read(path).write(path)
    assert raised.value.path == path
    assert for_command(pickle.loads(pickle.dumps(raised.value))) == f"{path} exists; use --overwrite to replace it"
    assert isinstance(raised.value, OutputExists)


def test_python_names_no_options_of_the_command(tmp_path):
    (tmp_path / "x.bin").write_bytes(bytes(range(250)) * 9)
    (tmp_path / "x.txt").write_text("1,5\n2,7\n")
    cases = [("x.bin", {}), ("x.bin", {"format": "raw"}), ("x.bin", {"format": "raw", "dtype": "f3", "endian": "big"})]
    for name, layout in [*cases, ("x.txt", {}), ("x.txt", {"ns": 4}), ("x.txt", {"delimiter": "|"})]:
        with pytest.raises(FormatError) as raised:
            wavefilt.read(tmp_path / name, **layout)
        assert "--" not in str(raised.value)
        assert "--" in for_command(raised.value)


def test_the_reason_of_an_error_is_the_same_each_time():
    objects = [object() for _ in range(2)]
    assert len({reason(ValueError(f"malformed node {thing}")) for thing in objects}) == 1

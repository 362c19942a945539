"""Errors carry their data, also to another process, and name options by their Python names."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import wavefilt
from wavefilt.errors import NonFiniteSample


def test_errors_keep_their_data_when_they_are_pickled(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.where(np.arange(90) == 7, np.inf, 1.0))
    with pytest.raises(FileExistsError) as exists:
        wavefilt.read(path).write(path)
    with pytest.raises(NonFiniteSample) as infinite:
        wavefilt.denoise(np.load(path))
    with pytest.raises(wavefilt.FormatError) as unknown:
        wavefilt.read(path, format="wav")
    for error in (exists.value, infinite.value, unknown.value):
        same = pickle.loads(pickle.dumps(error))
        assert (type(same), str(same)) == (type(error), str(error))
    assert pickle.loads(pickle.dumps(exists.value)).path == path
    same = pickle.loads(pickle.dumps(infinite.value))
    assert (same.trace, same.sample) == (0, 7)


@pytest.mark.parametrize(
    ("content", "layout", "option"),
    [
        (bytes(range(250)) * 9, {}, "format"),
        (bytes(range(250)) * 9, {"format": "raw"}, "dtype"),
        (b"1,5\n2,7\n", {}, "delimiter"),
        (b"1,5\n2,7\n", {"ns": 4}, "ns"),
    ],
)
def test_python_names_options_as_python_spells_them(tmp_path, content, layout, option):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(wavefilt.FormatError, match=option) as raised:
        wavefilt.read(tmp_path / "x", **layout)
    assert "--" not in str(raised.value)
    assert str(raised.value).isprintable()

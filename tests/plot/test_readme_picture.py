"""The picture of the README is what its command draws."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest

from tests.support.checkout import ROOT, SAMPLES, run

pytest.importorskip("matplotlib")
image = pytest.importorskip("PIL.Image")

PICTURE = "docs/images/denoised_gather.png"
BLOCK = 8
"""Pixels of the squares that are compared by their means, larger than the differences between fonts' renderings."""
MOST = 12
"""Most of 255 by which the 99th percentile of the blocks may differ."""


def blocks(path):
    """Means of the squares of a picture, shape (rows, columns, 3)."""
    with image.open(path) as opened:
        pixels = np.asarray(opened.convert("RGB"), np.float64)
    rows, columns = (size // BLOCK for size in pixels.shape[:2])
    return pixels[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


def difference(path, other):
    """What the pictures differ by where they differ most, but for a hundredth; they must have one size."""
    one, two = blocks(path), blocks(other)
    assert one.shape == two.shape
    return float(np.percentile(np.abs(one - two).max(axis=-1), 99))


def generated(folder, capsys, *more):
    """What the command of `samples/README.md` draws, in another folder."""
    (line,) = re.findall(rf"^wavefilt (.*{PICTURE}.*)$", (SAMPLES / "README.md").read_text(), re.MULTILINE)
    words = shlex.split(line)
    places = {PICTURE: folder / "picture.png", "samples/seismic.dat": SAMPLES / "seismic.dat"}
    places["denoised.dat"] = folder / "denoised.dat"
    assert places.keys() <= set(words)
    code, _, err = run(capsys, *[places.get(word, word) for word in words], *more)
    assert code == 0, err
    return folder / "picture.png"


def test_the_picture_is_what_the_command_draws(tmp_path, capsys):
    assert f"]({PICTURE})" in (ROOT / "README.md").read_text()
    assert difference(ROOT / PICTURE, generated(tmp_path, capsys)) < MOST


def test_another_result_or_picture_is_told_apart(tmp_path, capsys):
    for option in (["--rule", "minimax"], ["--clip", "95"]):
        assert difference(ROOT / PICTURE, generated(tmp_path, capsys, *option)) > 1.5 * MOST

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
"""Largest difference, of 255, of the 99th percentile of the squares."""


def squares(path):
    """Return the means of the squares of a picture, shape (rows, columns, 3)."""
    with image.open(path) as opened:
        pixels = np.asarray(opened.convert("RGB"), np.float64)
    rows, columns = (size // BLOCK for size in pixels.shape[:2])
    return pixels[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


@pytest.mark.parametrize("options", [[], ["--clip", "95"]])
def test_the_picture_is_what_the_command_draws(tmp_path, capsys, options):
    """Other options give a picture that is told apart."""
    assert f"]({PICTURE})" in (ROOT / "README.md").read_text()
    (line,) = re.findall(rf"^wavefilt (.*{PICTURE}.*)$", (SAMPLES / "README.md").read_text(), re.MULTILINE)
    words = line.replace(PICTURE, f"{tmp_path}/picture.png").replace("samples/", f"{SAMPLES}/")
    assert run(capsys, *shlex.split(words), "-o", tmp_path / "denoised.dat", *options)[0] == 0
    expected, drawn = squares(ROOT / PICTURE), squares(tmp_path / "picture.png")
    assert expected.shape == drawn.shape
    difference = np.percentile(np.abs(expected - drawn).max(axis=-1), 99)
    assert difference > 1.5 * MOST if options else difference < MOST

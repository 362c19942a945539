"""Colours that lie beside each other stay apart for readers who lack a kind of cone."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb

from tests.support.checkout import SAMPLES
from wavefilt import read

VISION = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
"""Linear RGB as it is seen; Machado, Oliveira and Fernandes (2009), IEEE Trans. Vis. Comput. Graph. 15, 1291-1298."""
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
"""Of linear sRGB, IEC 61966-2-1."""
APART = 15
"""Least distance in CIELAB, of which about 2.3 is just noticeable."""


@pytest.fixture(scope="module")
def panels():
    """Return the panels of a figure of the sample record."""
    before = read(SAMPLES / "seismic.dat")
    return {axes.get_label(): axes for axes in before.plot(before.denoise()).axes}


def lab(colours, vision):
    """Return the CIELAB values of sRGB colours between 0 and 1 as they are seen."""
    colours = np.asarray(colours)
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(VISION[vision]), 0, 1)
    ratio = seen @ XYZ.T / XYZ.sum(axis=1)
    x, y, z = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def distances(colours, vision):
    seen = lab([to_rgb(colour) for colour in colours], vision)
    return [float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)]


@pytest.mark.parametrize("vision", VISION)
def test_colours_of_a_panel_stay_apart(panels, vision):
    for name, count in (("spectra", 3), ("thresholds", 2)):
        colours = [line.get_color() for line in panels[name].lines]
        assert len(colours) == count
        assert min(distances(colours, vision)) > APART

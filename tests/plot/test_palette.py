"""Colours that lie beside each other stay apart for readers who lack a kind of cone."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib import colormaps
from matplotlib.colors import to_rgb

from wavefilt.benchmarks.report.figures import PALETTE
from wavefilt.plot import appearance

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


def lab(colours, vision):
    """CIELAB of sRGB colours between 0 and 1 as they are seen."""
    colours = np.asarray(colours)
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(VISION[vision]), 0, 1)
    ratio = seen @ XYZ.T / XYZ.sum(axis=1)
    x, y, z = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def distances(names, vision):
    found = dict(zip(names, lab([to_rgb(name) for name in names], vision), strict=True))
    return {pair: float(np.linalg.norm(found[pair[0]] - found[pair[1]])) for pair in combinations(names, 2)}


@pytest.mark.parametrize("vision", VISION)
def test_colours_of_a_panel_stay_apart(vision):
    """Those of traces and spectra, and those of levels: bars and two lines."""
    panels = [appearance.COLORS.values(), (appearance.COLORS["before"], appearance.SIGMA_COLOR)]
    panels += [(appearance.SIGMA_COLOR, appearance.THRESHOLD_COLOR)]
    for colours in panels:
        for pair, distance in distances(list(colours), vision).items():
            assert distance > APART, pair


@pytest.mark.parametrize("vision", VISION)
def test_colours_of_the_measurements_stay_apart(vision):
    colours = [color for name, color in PALETTE.items() if name not in ("black", "slate", "gray", "silver")]
    for pair, distance in distances(colours, vision).items():
        assert distance > APART, pair


def test_what_the_bound_excludes():
    """matplotlib's own red and green, which differ for most readers."""
    pair = ("#d62728", "#2ca02c")
    assert distances(pair, "deuteranopia")[pair] < APART < distances(pair, "all cones")[pair]


@pytest.mark.parametrize("vision", VISION)
def test_colour_maps_are_ordered_by_lightness(vision):
    """Of power throughout; of amplitudes from the middle outwards, with ends that differ in colour."""
    at = np.linspace(0, 1, 33)
    power, density = (lab(colormaps[name](at)[:, :3], vision) for name in (appearance.POWER, appearance.DENSITY))
    assert (np.diff(power[:, 0]) > 0.5).all()
    assert (np.diff(density[:17, 0]) > 0).all()
    assert (np.diff(density[16:, 0]) < 0).all()
    assert np.linalg.norm(density[4] - density[-5]) > 3 * APART

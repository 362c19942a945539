"""What is drawn of traces: images and lines of the visible part."""

from __future__ import annotations

import numpy as np
import pytest

from wavefilt.viewer.panels import COLUMNS, POINTS, ROWS, WIGGLES, Panels, View


@pytest.fixture
def panels():
    x = np.random.default_rng(0).standard_normal((5, 300)) + 7
    found = Panels(x)
    found.show(x / 2)
    return found


WHOLE = View(0, 5, 0, 300)


def test_an_image_has_the_samples_in_the_units_of_the_data(panels):
    x = panels.before
    mean = x.mean(axis=1, keepdims=True)
    for panel, values in (("before", x - mean), ("after", x / 2 - mean), ("removed", x / 2)):
        image = panels.image(panel, WHOLE, together=True)
        np.testing.assert_allclose(image["image"][0], values.T, rtol=1e-6, atol=1e-6)
        assert [image[name] for name in ("x", "y", "dw", "dh")] == [[-0.5], [-0.5], [5], [300]]


def test_traces_are_scaled_by_their_own_percentile_or_by_the_largest(panels):
    x = panels.before
    own = np.percentile(np.abs(x - x.mean(axis=1, keepdims=True)), 99, axis=1)
    np.testing.assert_allclose(panels.scales(False), own, rtol=0.05)
    np.testing.assert_allclose(panels.scales(True), panels.scales(False).max())
    image = panels.image("removed", WHOLE, together=False)["image"][0]
    np.testing.assert_allclose(image * panels.scales(False), (x / 2).T, rtol=1e-6)


def test_a_silent_trace_is_not_blown_up():
    x = np.random.default_rng(1).standard_normal((2, 100)) * [[1000.0], [1e-9]]
    assert np.ptp(Panels(x).image("before", View(0, 2, 0, 100), False)["image"][0][:, 1]) < 1e-9


def test_a_large_image_keeps_the_largest_samples():
    x = np.zeros((COLUMNS * 2 - 1, ROWS * 3 + 1), np.float32)
    x[10, 1000], x[13, 2001], x[-1, -1] = -5, 4, 3
    x[20:22, :8] = np.nan
    panels = Panels(x)
    image = panels.image("before", View(0, *x.shape[:1], 0, x.shape[1]), True)
    found = image["image"][0]
    assert found.shape == (-(-x.shape[1] // 4), COLUMNS)
    np.testing.assert_allclose([found[250, 5], found[500, 6], found[-1, -1]], [-5, 4, 3], rtol=0.01)
    assert np.isnan(found).sum() == np.isnan(found[:2, 10]).sum() == 2
    own = panels.image("before", View(0, *x.shape[:1], 0, x.shape[1]), False)["image"][0]
    np.testing.assert_allclose([own[250, 5], own[-1, -1]], [-5, 3] / panels.scales(False)[[10, -1]], rtol=0.01)
    part = panels.image("before", View(10, 11, 1000, 1001), True)
    assert part["image"][0].shape == (1, 1)
    assert part["image"][0] == pytest.approx(-5, rel=0.01)
    assert (part["x"], part["y"]) == ([9.5], [999.5])


def test_a_view_is_what_touches_the_axes():
    rows = np.zeros((10, 100))
    assert View.of(rows, (-1, 9.5), (120, -3)) == View(0, 10, 0, 100)
    assert View.of(rows, (2.5, 3.2), (10.0, 20.0)) == View(2, 5, 10, 21)
    assert View.of(rows, (40, 50), (300, 400)) == View(9, 10, 99, 100)


def test_lines_are_samples_beside_their_trace(panels):
    line, area = panels.wiggles("removed", WHOLE, together=True)
    traces = line["trace"].reshape(5, 301)
    assert np.isnan(traces[:, -1]).all()
    shifts = np.clip(0.7 * panels.before / 2 / panels.scales(True)[0], -1.5, 1.5)
    np.testing.assert_allclose(traces[:, :-1] - np.arange(5)[:, None], shifts)
    np.testing.assert_array_equal(line["sample"][:300], np.arange(300))
    assert (area["trace"].reshape(5, -1)[:, :-1] >= np.arange(5)[:, None]).all()
    louder, _ = panels.wiggles("removed", WHOLE, together=True, gain=0.5)
    np.testing.assert_allclose(louder["trace"][0], 0.5 * shifts[0, 0])


def test_many_long_traces_are_decimated_by_their_extremes():
    x = np.zeros((3 * WIGGLES, 10 * POINTS))
    x[0, 777] = 3
    line, _ = Panels(x).wiggles("before", View(0, len(x), 0, x.shape[1]), True)
    assert len(line["trace"]) < WIGGLES * (POINTS + 5)
    assert np.nanmax(line["trace"][: POINTS // 2]) > 2


def test_one_trace_is_in_the_units_of_the_data():
    x = np.random.default_rng(2).standard_normal((1, 50)) + 100
    line, area = Panels(x).wiggles("before", View(0, 1, 0, 50), True)
    np.testing.assert_allclose(line["trace"][:-1], x[0])
    assert not len(area["trace"])


@pytest.mark.parametrize("x", [np.full((2, 40), np.nan), np.zeros((2, 40))])
def test_gaps_and_silence_can_be_drawn(x):
    panels, view = Panels(x), View(0, 2, 0, 40)
    np.testing.assert_array_equal(panels.image("before", view, False)["image"][0], x.T)
    panels.wiggles("before", view, False)

"""`wavefilt view` as a user meets it: the command, its page in a headless browser, two tabs, saving, and Ctrl-C."""

from __future__ import annotations

import re
import signal

import numpy as np
import pytest

pytest.importorskip("panel")

import wavefilt
from tests.support import browser
from tests.support.checkout import ROOT, run
from tests.support.viewing import Tab, serving

pytestmark = pytest.mark.skipif(browser.program() is None, reason="there is no Chromium")

CHOSEN = [
    ("Wavelet", "sym5", "wavelet='sym5'", {"wavelet": "sym5"}),
    ("Levels", "3", "level=3", {"level": 3}),
    ("Threshold rule", "sure", "rule='sure'", {"rule": "sure"}),
    ("Threshold function", "hard", "shrink='hard'", {"shrink": "hard"}),
    ("Noise σ", "of the finest level", "sigma='global'", {"sigma": "global"}),
    ("Thresholds for each", "record", "scope='record'", {"scope": "record"}),
    ("Cycle spinning: shifts", "2", "spins=2", {"spins": 2}),
    ("Cycle spinning: shifts", "1", "scope='record')", {"spins": 1}),
    ("Transform", "modwt", "transform='modwt'", {"transform": "modwt"}),
]


def less_mean(rows, before):
    return rows - before.mean(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("view")
    (path / "shot.dat").write_bytes((ROOT / "samples" / "seismic.dat").read_bytes())
    return path


@pytest.fixture(scope="module")
def served(folder):
    with serving(folder / "shot.dat") as (process, address):
        yield process, address


@pytest.fixture(scope="module")
def tab(folder, served):
    with browser.browser(folder) as page:
        yield Tab(page, served[1])


def test_every_control_changes_the_picture_as_denoise_does(folder, tab):
    recording = wavefilt.read(folder / "shot.dat")
    before = recording.samples.astype(np.float32)
    tab.press("one for all")
    tab.until_image("removed", "Math.max(...values) > 6")
    np.testing.assert_allclose(tab.image("before"), less_mean(before, before), rtol=1e-4, atol=1e-3)
    options = {}
    for label, value, words, option in CHOSEN:
        tab.choose(label, value)
        tab.says(words)
        options |= option
    expected = recording.denoise(**options).samples
    tab.until_image("removed", f"Math.abs(values[0] - {(before - expected).flat[0]}) < 1e-3")
    np.testing.assert_allclose(tab.image("after"), less_mean(expected, before), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(tab.image("removed"), before - expected, rtol=1e-4, atol=1e-3)
    tab.tick()
    tab.says("two_dimensional=True")
    removed = before - recording.denoise(**options, two_dimensional=True).samples
    tab.until_image("removed", f"Math.abs(values[0] - {removed.flat[0]}) < 1e-3")
    np.testing.assert_allclose(tab.image("removed"), removed, rtol=1e-4, atol=1e-3)
    tab.tick()
    tab.page.until("!labelled('textarea', 'Python').value.includes('two_dim')")
    tab.until_image("removed", f"Math.abs(values[0] - {(before - expected).flat[0]}) < 1e-3")


def test_a_level_too_high_is_said_and_the_picture_stays(tab):
    before = tab.image("after")
    tab.choose("Levels", "12")
    tab.page.until("alerts().includes('above the maximum')")
    np.testing.assert_array_equal(tab.image("after"), before)
    tab.choose("Levels", "3")
    tab.page.until("!alerts()")


def test_a_noise_window_is_dragged(folder, tab):
    tab.drag_window(0.1, 0.3)
    tab.says("sigma=('seconds'")
    first, last = map(float, re.search(r"\('seconds', ([\d.]+), ([\d.]+)\)", tab.text("Python")).groups())
    assert first == pytest.approx(0.1024, abs=0.01)
    assert last == pytest.approx(0.3072, abs=0.01)
    assert f"--noise-window {first} {last}" in tab.text("Command")


def test_the_band_pass_beside_it(tab):
    wavelets = tab.image("after")
    tab.press("B: band-pass")
    tab.says("sosfiltfilt")
    tab.until_image("after", f"Math.abs(values[0] - {wavelets.T.flat[0]}) > 0.1")
    tab.press("A: wavelets")
    tab.says("denoise(")
    tab.until_image("after", f"Math.abs(values[0] - {wavelets.T.flat[0]}) < 1e-4")
    np.testing.assert_array_equal(tab.image("after"), wavelets)


def test_lines_in_place_of_an_image(tab):
    points, images = "(model('line-after').data.x[0] ?? []).length", "model('image-after').data.image.length"
    tab.press("wiggle")
    tab.page.until(f"{points} > 20000 && !{images}")
    assert tab.page.run(points) > 20000
    assert tab.page.run(images) == 0
    tab.press("density")
    tab.page.until(f"{images} && !{points}")
    assert (tab.page.run(points), tab.page.run(images)) == (0, 1)


def test_two_tabs_do_not_disturb_each_other(served, tab):
    other = Tab(tab.page.tab(), served[1])
    assert other.text("Python").endswith(".denoise()")
    other.choose("Wavelet", "db2")
    other.says("wavelet='db2'")
    assert "wavelet='sym5'" in tab.text("Python")
    assert other.page.errors == []


def test_save_writes_what_the_command_on_the_page_writes(folder, tab, capsys):
    words = tab.text("Command").split()
    assert words[:3] == ["wavefilt", "denoise", str(folder / "shot.dat")]
    tab.press("Save shot.denoised.dat")
    tab.page.until("alerts().includes('saved')")
    written = (folder / "shot.denoised.dat").read_bytes()
    expected = folder / "expected.dat"
    assert run(capsys, *words[1:], "-o", expected)[0] == 0
    assert expected.read_bytes() == written
    tab.press("Save shot.denoised.dat")
    tab.page.until("alerts().includes('--overwrite')")
    assert {path.name for path in folder.glob("*.dat")} == {"shot.dat", "shot.denoised.dat", "expected.dat"}


def test_a_wrong_token_shows_nothing_and_no_request_leaves_the_page(served, tab):
    assert tab.page.errors == []
    page = tab.page.tab()
    page.open(served[1][:-5] + "wrong/")
    assert "403" in page.run("document.documentElement.textContent")
    assert page.run("window.Bokeh") is None


def test_interrupting_ends_it(served, tab):
    process, _ = served
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    rest = process.stderr.read()
    assert rest.strip().endswith("Interrupted.")
    assert "Traceback" not in rest

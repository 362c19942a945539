"""`wavefilt view` as a user meets it: the command, who is served, its page in a headless browser, and Ctrl-C."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import socket

import numpy as np
import pytest

pytest.importorskip("panel")

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

import wavefilt
from tests.plotting.test_viewer import less_mean
from tests.support.browser import Tab, browser, program, serving
from tests.support.checkout import SAMPLES, run, run_cli

CHROMIUM = pytest.mark.skipif(program() is None, reason="there is no Chromium")
CHOSEN = [
    ("Wavelet", "db2", "wavelet='db2'", {"wavelet": "db2"}),
    ("Levels", "3", "level=3", {"level": 3}),
    ("Noise σ", "of the finest level", "sigma='global'", {"sigma": "global"}),
    ("Transform", "dwt", "transform='dwt'", {"transform": "dwt"}),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("view")
    (path / "shot.dat").write_bytes((SAMPLES / "seismic.dat").read_bytes())
    return path


@pytest.fixture(scope="module")
def served(folder):
    with serving(folder / "shot.dat") as (process, address):
        yield process, address


@pytest.fixture(scope="module")
def tab(folder, served):
    with browser(folder) as page:
        yield Tab(page, served[1])


# --------------------------------------------------------------------------------------------------- who is served


async def code(url, **headers):
    try:
        return (await AsyncHTTPClient().fetch(HTTPRequest(url, headers=headers, follow_redirects=False))).code
    except HTTPClientError as error:
        return error.code


async def opened(url, **headers):
    """Return the code with which a socket is refused; 101 if it is opened."""
    request = HTTPRequest(url.replace("http:", "ws:"), headers=headers)
    try:
        connection = await websocket_connect(request, subprotocols=["bokeh", "x.y"])
    except HTTPClientError as error:
        return error.code
    connection.close()
    return 101


def test_all_without_the_token_is_refused(served):
    root, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)([\w-]{43})/", served[1]).groups()
    wrong = "x" * 43
    others = ["", wrong, token[:-1], token.upper(), "static/js/bokeh.min.js", "metadata", "autoload.js", "ws"]
    others += [f"{wrong}/{path}" for path in ("", "static/js/bokeh.min.js", "metadata", "components/os/path/x/y")]
    port = root.split(":")[2].strip("/")

    async def work():
        assert await code(served[1]) == 200
        assert await code(f"{served[1]}static/js/bokeh.min.js") == 200
        for path in [*others, f"..%2F{token}"]:
            assert await code(root + path) == 403, path
        for path in (f"{served[1]}../../../etc/passwd", f"{served[1]}static/..%2f..%2f..%2fetc/passwd"):
            assert await code(path) in (403, 404)
        for path in ("ws", f"{wrong}/ws"):
            assert await opened(root + path, Origin=root[:-1]) == 403
        for origin in ("http://evil.example", f"http://localhost:{port}", "http://127.0.0.1:1", "null"):
            assert await opened(f"{served[1]}ws", Origin=origin) == 403
        assert await opened(f"{served[1]}ws", Origin=root[:-1]) == 101
        with pytest.raises(OSError):  # noqa: PT011
            await asyncio.open_connection("127.0.0.2", int(port))

    asyncio.run(work())


def test_a_port_in_use_is_one_line(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended, _, err = run(capsys, "view", "--no-browser", SAMPLES / "seismic.dat", "--port", port)
    assert (ended, len(err.splitlines()), str(port) in err) == (1, 1, True)


# --------------------------------------------------------------------------------------------------- in the browser


@CHROMIUM
def test_every_control_changes_the_picture_as_denoise_does(folder, tab):
    recording = wavefilt.read(folder / "shot.dat")
    before = recording.samples.astype(np.float32)
    tab.press("density")
    tab.page.until("model('image-residual').data.image.length")
    tab.press("off")
    tab.press("one for all")
    residual = before - recording.denoise().samples
    tab.until_image("residual", f"Math.abs(values[0] - {residual.flat[0]}) < 1e-3")
    np.testing.assert_allclose(tab.image("before"), less_mean(before, before), rtol=1e-4, atol=1e-3)
    options = {}
    for label, value, words, option in CHOSEN:
        tab.choose(label, value)
        tab.says(words)
        options |= option
    expected = recording.denoise(**options).samples
    tab.until_image("residual", f"Math.abs(values[0] - {(before - expected).flat[0]}) < 1e-3")
    np.testing.assert_allclose(tab.image("after"), less_mean(expected, before), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(tab.image("residual"), before - expected, rtol=1e-4, atol=1e-3)
    tab.tick()
    tab.says("two_dimensional=True")
    residual = before - recording.denoise(**options, two_dimensional=True).samples
    tab.until_image("residual", f"Math.abs(values[0] - {residual.flat[0]}) < 1e-3")
    np.testing.assert_allclose(tab.image("residual"), residual, rtol=1e-4, atol=1e-3)
    tab.tick()
    tab.page.until("!labelled('textarea', 'Python').value.includes('two_dim')")
    tab.until_image("residual", f"Math.abs(values[0] - {(before - expected).flat[0]}) < 1e-3")


@CHROMIUM
def test_a_message_a_noise_window_a_band_pass_and_lines(tab):
    tab.choose("Levels", "12")
    tab.page.until("alerts().includes('12')")
    tab.page.until("!model('image-after').data.image.length")
    tab.choose("Levels", "3")
    tab.page.until("!alerts()")
    tab.drag(0.1, 0.3)
    tab.says("sigma=('seconds'")
    first, last = map(float, re.search(r"\('seconds', ([\d.]+), ([\d.]+)\)", tab.text("Python")).groups())
    assert (first, last) == pytest.approx((0.1024, 0.3072), abs=0.01)
    assert f"--noise-window {first} {last}" in tab.text("Command")
    wavelets = tab.image("after")
    tab.press("B: band-pass")
    tab.says("sosfiltfilt")
    tab.until_image("after", f"Math.abs(values[0] - {wavelets.T.flat[0]}) > 0.1")
    tab.press("A: wavelets")
    tab.says("denoise(")
    tab.until_image("after", f"Math.abs(values[0] - {wavelets.T.flat[0]}) < 1e-4")
    np.testing.assert_array_equal(tab.image("after"), wavelets)
    tab.press("wiggle")
    tab.page.until("model('line-after').data.x[0]?.length > 20000 && !model('image-after').data.image.length")
    tab.press("density")
    tab.page.until("model('image-after').data.image.length")


@CHROMIUM
def test_two_tabs_and_saving(folder, served, tab):
    """Tabs do not disturb each other, and Save writes what the command on the page writes, to the last bit."""
    tab.choose("Wavelet", "sym6")
    tab.says("wavelet='sym6'")
    other = Tab(tab.page.tab(), served[1])
    assert other.text("Python").endswith(".denoise()")
    other.choose("Wavelet", "db2")
    other.says("wavelet='db2'")
    assert other.page.errors == []
    assert "wavelet='sym6'" in tab.text("Python")
    words = shlex.split(tab.text("Command"))
    assert words[:3] == ["wavefilt", "denoise", str(folder / "shot.dat")]
    tab.press("Save shot.denoised.dat")
    tab.page.until("alerts().includes('saved')")
    written = (folder / "shot.denoised.dat").read_bytes()
    expected = folder / "expected.dat"
    assert run_cli(*words[1:], "-o", expected).returncode == 0
    assert expected.read_bytes() == written
    assert {path.name for path in folder.glob("*.dat")} == {"shot.dat", "shot.denoised.dat", "expected.dat"}


@CHROMIUM
def test_a_large_section_with_a_long_name_at_the_width_of_a_phone(folder, tab):
    """What is zoomed is drawn in finer detail, and options of the layout are in the lines."""
    path = folder / f"{'x' * 200}.npy"
    x = np.random.default_rng(0).standard_normal((5000, 40)).astype("f4")
    np.save(path, x)
    with serving(path, "--axis", "0", "--format", "npy", "--dt", "0.002", "-l", "2") as (_, address):
        phone = Tab(tab.page.tab(), address, 390, 844)
        assert phone.page.run("document.documentElement.scrollWidth") <= 390
        words = shlex.split(phone.text("Command"))
        assert words[:3] == ["wavefilt", "denoise", str(path)]
        assert {"--axis", "--format", "--dt", "--level"} <= set(words)
        top = "getBoundingClientRect().top"
        assert phone.page.run(f"labelled('select', 'Threshold rule').{top} < all(document, 'canvas')[0].{top}")
        phone.press("density")
        phone.page.until("model('image-after').data.image.length")
        phone.press("one for all")
        assert phone.image("after").shape == (40, 1000)
        phone.drag(0.1, 0.2, "BoxZoomTool", "BoxSelectTool")
        phone.page.until("shown('image-after').shape[0] < 900")
        zoomed, first = phone.image("before"), round(phone.page.run("model('image-before').data.x[0]") + 0.5)
        assert 10 <= len(zoomed) < 40
        shown, trace = zoomed[20 - first], x[:, 20]
        start = int(np.argmax(np.correlate(trace, shown, "valid")))
        part = trace[start : start + len(shown)]
        assert 300 < start < 700
        np.testing.assert_allclose(shown - shown.mean(), part - part.mean(), atol=1e-3)
        phone.choose("Threshold rule", "sure")
        phone.says("rule='sure'")
        assert phone.page.errors == []


@CHROMIUM
def test_a_wrong_token_shows_nothing_and_no_request_leaves_the_page(served, tab):
    assert tab.page.errors == []
    page = tab.page.tab()
    page.open(served[1][:-5] + "wrong/")
    assert "403" in page.run("document.documentElement.textContent")
    assert page.run("window.Bokeh") is None


def test_interrupting_ends_it(folder):
    with serving(folder / "shot.dat") as (process, address):
        assert asyncio.run(code(address)) == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        rest = process.stderr.read()
    assert rest.strip().endswith("Interrupted.")
    assert "Traceback" not in rest

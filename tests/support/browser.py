"""A headless Chromium, controlled through two pipes by the DevTools protocol, and the page of `wavefilt view` in it.

``python -m tests.support.browser [FOLDER]`` saves pictures of the page; docs/images/view.png is view-desktop.png.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tests.support.checkout import ROOT

NAMES = ("chromium", "chromium-browser", "google-chrome")
OFF = ("gpu", "dev-shm-usage", "quic", "background-networking", "component-update", "sync")
OPTIONS = ["--headless", "--no-sandbox", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe"]
OPTIONS += [f"--disable-{name}" for name in OFF]
SECONDS = 60
"""Longest wait for an answer, however busy the machine is."""


def program() -> str | None:
    """Return the browser of this machine, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser(folder: Path):
    """Context manager: a `Page` without a document; profile and pipes lie in the ``folder``."""
    there, back = folder / "there", folder / "back"
    os.mkfifo(there)
    os.mkfifo(back)
    # the browser reads commands from descriptor 3 and answers on 4
    start = ["sh", "-c", 'exec "$@" 3<"$0/there" 4>"$0/back"', folder]
    command = [*start, program(), *OPTIONS, f"--user-data-dir={folder / 'profile'}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with open(there, "wb", buffering=0) as commands, open(back, "rb", buffering=0) as answers:
            page = Page(commands, answers)
            yield page
            page.say("Browser.close")
            process.wait(SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


class Page:
    """A tab; `say` sends a command of the DevTools protocol and returns the answer."""

    def __init__(self, commands, answers, buffer: bytearray | None = None) -> None:
        self.commands, self.answers, self.number, self.session = commands, answers, 0, None
        self.buffer = bytearray() if buffer is None else buffer
        self.errors: list[str] = []
        self.allowed = ["file:", "data:"]
        target = self.say("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.say("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.say(f"{domain}.enable")

    def tab(self) -> Page:
        """Open another tab of this browser; the two are used one after the other."""
        return Page(self.commands, self.answers, self.buffer)

    def say(self, method: str, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self.session
        self.commands.write(json.dumps(message).encode() + b"\0")
        return self._until(lambda found: found.get("id") == self.number)["result"]

    def open(self, address: str, width: int = 1280, height: int = 900) -> None:
        """Load a page, on a screen with these pixels; below a width of 600 it is a phone's."""
        self.allowed += [address, address.replace("http:", "ws:"), "blob:"]
        phone = width < 600
        size = {"width": width, "height": height, "deviceScaleFactor": 1 + phone}
        self.say("Emulation.setDeviceMetricsOverride", mobile=phone, **size)
        self.say("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.say("Page.navigate", url=address)
        self._until(lambda found: found.get("method") == "Page.loadEventFired" and found["sessionId"] == self.session)

    def until(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true."""
        end = time.monotonic() + SECONDS
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(f"not true in {SECONDS} s: {condition}")
            time.sleep(0.02)

    def run(self, script: str):
        """Return the value of an expression of JavaScript, of a promise when it is kept."""
        found = self.say("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"]["exception"].get("description"))
        return found["result"].get("value")

    def drag(self, start: tuple[float, float], stop: tuple[float, float]) -> None:
        """Move the mouse with its button pressed."""
        for kind, (x, y) in (("mousePressed", start), ("mouseMoved", stop), ("mouseReleased", stop)):
            self.say("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def picture(self, path: Path) -> None:
        """Save the whole page as PNG."""
        path.write_bytes(base64.b64decode(self.say("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def _until(self, wanted):
        """Return the next message that is wanted; collect errors that the page reports meanwhile."""
        end = time.monotonic() + SECONDS
        while True:
            while b"\0" in self.buffer:
                message, _, rest = self.buffer.partition(b"\0")
                self.buffer[:] = rest
                found = json.loads(message)
                if "error" in found:
                    raise RuntimeError(found["error"])
                self._note(found)
                if wanted(found):
                    return found
            if not select.select([self.answers], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError(f"no answer of the browser in {SECONDS} s")
            data = os.read(self.answers.fileno(), 1 << 16)
            if not data:
                raise RuntimeError("the browser ended")
            self.buffer += data

    def _note(self, found) -> None:
        if found.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(json.dumps(found["params"]))
        if found.get("method") == "Network.requestWillBeSent":
            self.errors += [
                url for url in [found["params"]["request"]["url"]] if not url.startswith(tuple(self.allowed))
            ]


SCRIPT = """
window.all = (root, selector) => {
    const found = [...root.querySelectorAll(selector)];
    for (const e of root.querySelectorAll('*')) if (e.shadowRoot) found.push(...all(e.shadowRoot, selector));
    return found;
};
window.labelled = (kind, text) => all(document, 'label')
    .filter(label => label.textContent.trim() === text)
    .map(label => label.parentElement.querySelector(kind)).find(Boolean);
window.model = name => Bokeh.documents[0].get_model_by_name(name);
window.shown = name => { const i = model(name).data.image[0]; return {shape: i.shape, values: Array.from(i)}; };
window.alerts = () => all(document, '[role=alert]').map(e => e.textContent).join();
"""
READY = "window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle"


@contextmanager
def serving(*words: object, folder: Path = ROOT):
    """Context manager: the process of `wavefilt view` and the address that it prints; interrupted at the end."""
    command = [sys.executable, "-u", "-m", "wavefilt", "view", "--no-browser", *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    try:
        lines = [process.stderr.readline()]
        while lines[-1] and not lines[-1].startswith("http"):  # kernels may be compiled first
            lines.append(process.stderr.readline())
        if not lines[-1]:
            raise RuntimeError("".join(lines))
        yield process, lines[-1].split()[0]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(30)
        process.stderr.close()


class Tab:
    """A tab with the page of `wavefilt view`, used by the texts on it."""

    def __init__(self, page: Page, address: str, width: int = 1440, height: int = 900) -> None:
        self.page = page
        page.open(address, width, height)
        page.run(SCRIPT)
        page.until(READY)
        page.until("all(document, 'canvas').length >= 8 && labelled('select', 'Levels')")

    def choose(self, label: str, value: str) -> None:
        """Choose from a list."""
        self.page.run(
            f"(e => {{ e.value = {value!r}; for (const t of ['input', 'change']) e.dispatchEvent(new Event(t)) }})"
            f"(labelled('select', {label!r}))"
        )

    def press(self, text: str) -> None:
        """Press a button."""
        self.page.run(f"all(document, 'button').find(b => b.textContent.trim() === {text!r}).click()")

    def tick(self) -> None:
        """Tick the box for two dimensions."""
        self.page.run("all(document, 'input[type=checkbox]')[0].click()")

    def says(self, words: str) -> None:
        """Wait until the line of Python has these words."""
        self.page.until(f"labelled('textarea', 'Python').value.includes({words!r})")

    def text(self, label: str) -> str:
        return self.page.run(f"labelled('textarea', {label!r}).value")

    def image(self, panel: str) -> np.ndarray:
        """Return the samples of a picture (traces, samples)."""
        found = self.page.run(f"shown('image-{panel}')")
        return np.array(found["values"], np.float32).reshape(found["shape"]).T

    def until_image(self, panel: str, condition: str) -> None:
        """Wait until this is true of the ``values`` of a picture."""
        self.page.until(f"(values => {condition})(shown('image-{panel}').values)")

    def drag(self, first: float, last: float, tool: str = "BoxSelectTool", other: str = "BoxZoomTool") -> None:
        """Drag a tool, by default that for the noise window, over the first picture between shares of its height."""
        self.page.run(
            "(tools => { const named = name => tools.find(t => t.type === name);"
            f"named('{other}').active = false; named('{tool}').active = true }})(model('before').toolbar.tools)"
        )
        x, y, width, height = self.page.run(
            "(view => { view.el.scrollIntoView(); const b = view.frame.bbox;"
            "const r = view.canvas_view.el.getBoundingClientRect();"
            "return [r.left + b.left, r.top + b.top, b.width, b.height] })"
            "(Bokeh.index.find_one_by_id(model('before').id))"
        )
        self.page.drag((x + width / 4, y + first * height), (x + width * 3 / 4, y + last * height))


def screenshots(folder: Path) -> None:
    """Save the page of the sample record at desktop and phone width, with a palette of 256 colours."""
    from PIL import Image  # of matplotlib, which other tests do without

    place, served = tempfile.TemporaryDirectory(), serving("seismic.dat", folder=ROOT / "samples")
    with place as profile, served as (_, address), browser(Path(profile)) as page:
        for name, width, height in (("desktop", 1440, 900), ("phone", 390, 844)):
            Tab(page, address, width, height)
            page.run("new Promise(done => setTimeout(done, 1500))")
            path = folder / f"view-{name}.png"
            page.picture(path)
            Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path)


if __name__ == "__main__":
    screenshots(Path(sys.argv[1] if len(sys.argv) > 1 else "."))

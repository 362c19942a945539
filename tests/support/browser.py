"""A headless Chromium for tests, controlled through two pipes by the DevTools protocol, without another package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

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

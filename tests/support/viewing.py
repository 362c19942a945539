"""The page of `wavefilt view` in a browser. ``python -m tests.support.viewing [FOLDER]`` saves its pictures.

docs/images/view.png is view-desktop.png.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tests.support.browser import Page, browser
from tests.support.checkout import ROOT

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
    command = [sys.executable, "-m", "wavefilt", "view", "--no-browser", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder)
    try:
        line = process.stderr.readline()
        if not line.startswith("http"):
            raise RuntimeError(line + process.stderr.read())
        yield process, line.split()[0]
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

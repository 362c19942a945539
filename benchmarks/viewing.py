"""Time of `wavefilt view` from a change to what it draws: ``python -m wavefilt.benchmarks.viewing``.

In this process to the messages for the browser; in a headless Chromium, if there is one, to the pixels.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from wavefilt.benchmarks.common import environment
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.measuring import signal, summary
from wavefilt.benchmarks.common.tables import Report, Row, Table

SIZES = ((24, 1024, 200), (1000, 4096, 1000))
"""Traces, samples, and the milliseconds within which a change should be drawn."""
CHANGES = {
    "rule": ("sure", "default"),
    "wavelet": ("sym4", "default"),
    "level": ("3", "auto"),
    "shrink": ("hard", "default"),
    "sigma": ("of the finest level", "of each level"),
    "transform": ("modwt", "dwt"),
    "transform, dtcwt": ("dtcwt", "dwt"),
}
"""Lists, and two values that are chosen in turn; it is the first that is timed."""
LOOKS = {
    "wiggles": ("press", "wiggle", "density", "area"),
    "gain": ("slide", "ArrowRight", "ArrowLeft", ""),
    "zoom": ("zoom", 0.25, 1, "image"),
}
"""What changes the pictures alone: the action of the page, what it is done with there and back, and the data that come.

Only the zoom of what was not sent in every sample brings data.
"""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
WINDOW = "1440,900"
LONGEST = 600
"""Seconds to wait for a browser."""
SCRIPT = """
const all = (root, selector) => [
    ...root.querySelectorAll(selector),
    ...[...root.querySelectorAll('*')].flatMap(e => e.shadowRoot ? all(e.shadowRoot, selector) : []),
];
const list = text => all(document, 'label').filter(label => label.textContent.trim() === text)
    .map(label => label.parentElement.querySelector('select')).find(Boolean);
const model = name => Bokeh.documents[0].get_model_by_name(name);
const frame = () => new Promise(requestAnimationFrame);
const arrived = new Set(), painted = new Set();
for (const [name, drawn] of Object.entries(figures)) {
    model(name).properties.data.change.connect(() => arrived.add(name));
    Bokeh.index.find_one_by_id(drawn.id).repainted.connect(() => arrived.has(name) && painted.add(name));
}
const until = async names => {
    while (!names.every(name => painted.has(name))) await frame();
    await frame();
    return performance.now();
};
const choose = (value, label) => {
    const element = list(label);
    element.value = value;
    for (const kind of ['input', 'change']) element.dispatchEvent(new Event(kind));
};
const press = text => all(document, '.bk-btn').find(button => button.textContent.trim() === text).click();
const slide = key => all(document, '.noUi-handle')[0].dispatchEvent(new KeyboardEvent('keydown', {key}));
const time = Object.values(figures)[0].y_range, whole = time.start;
const zoom = part => {
    time.start = part * whole;
    Bokeh.index.find_one_by_id(Object.values(figures)[0].id).trigger_ranges_update_event();
};
const actions = {choose, press, slide, zoom};
const measured = async (action, value, label, seen, sent) => {
    const start = performance.now(), times = [];
    arrived.clear();
    painted.clear();
    if (!sent) seen.flat().forEach(name => arrived.add(name));
    actions[action](value, label);
    for (const names of seen) times.push(await until(names) - start);
    await new Promise(done => setTimeout(done, 100));
    return times;
};
(async () => {
    while (!changes.every(([name, action, value, other, label]) => action !== 'choose' || list(label))) await frame();
    const found = {};
    for (const [name, action, value, other, label, seen, sent] of changes) {
        found[name] = [];
        for (let i = 0; i < repeats; i++) {
            found[name].push(await measured(action, value, label, seen, sent));
            await measured(action, other, label, seen, sent);
        }
    }
    answer.value = JSON.stringify(found);
})().catch(error => { answer.value = JSON.stringify(String(error)) });
"""
"""Changes what a user can, and waits until the figures of all data have been painted; a frame later it is seen."""
TABLE = Table(
    "ms from a change to the messages for the browser, medians, and to the pixels, median (quartiles): "
    "{environment[processor]}, {environment[cores]} cores, load of other work {environment[load]:.1f}",
    {
        "traces x|samples": "{traces} x {samples}",
        "change": "{change}",
        "denoised": "?{denoised[median]:.0f}",
        "pictures|sent": "?{pictures[median]:.0f}",
        "all|sent": "?{all[median]:.0f}",
        "MB": "?{megabytes:.1f}",
        "pictures|seen": "?{pixels:quartiles}",
        "all|seen": "?{pixels_of_all:quartiles}",
        "limit": "{limit}",
    },
)


def run(quick: bool) -> Row:
    """Every change of every size, several times."""
    rows, begun = list[Row](), environment.result("viewing")  # whose load is that before
    repeats, browsed = 1 if quick else 7, ["rule", *LOOKS] if quick else [*CHANGES, *LOOKS]
    for traces, samples, limit in SIZES[:1] if quick else SIZES:
        seen = _seen(traces, samples, browsed, repeats)
        size = {"traces": traces, "samples": samples, "limit": limit}
        for row in _sent(traces, samples, repeats):
            rows.append({**size, **row, **seen.get(row["change"], {})})
        rows += [{**size, "change": name, **seen[name]} for name in LOOKS if name in seen]
    return {**begun, "rows": rows}


def _sent(traces: int, samples: int, repeats: int) -> list[Row]:
    from bokeh.document import Document
    from bokeh.document.events import ColumnDataChangedEvent, DocumentChangedEvent
    from bokeh.protocol import Protocol

    import wavefilt

    viewer, document = wavefilt.view(signal(traces, samples), interval=0.001), Document()
    viewer.__panel__().server_doc(document)
    last, sent = viewer.pictures.images["removed"], list[float]()
    drawn = 0.0

    def send(event: DocumentChangedEvent) -> None:
        nonlocal drawn
        message = Protocol().create("PATCH-DOC", [event])
        sent.append(len(message.content_json) + sum(memoryview(buffer.data).nbytes for buffer in message.buffers))
        if isinstance(event, ColumnDataChangedEvent) and event.model is last:
            drawn = time.perf_counter()

    document.on_change(send)
    rows = []
    for change, (value, other) in CHANGES.items():
        widget = viewer.controls.choices[change.split(",")[0]].widget
        times: dict[str, list[float]] = {"denoised": [], "pictures": [], "all": []}
        for _ in range(repeats + 1):
            widget.value = other
            sent.clear()
            begin = time.perf_counter()
            widget.value = value
            end = time.perf_counter()
            for name, seconds in zip(times, (viewer.result.seconds, drawn - begin, end - begin), strict=True):
                times[name].append(1e3 * seconds)
        widget.value = other
        kept = {name: summary(values[1:]) for name, values in times.items()}  # the first compiles
        rows.append({"change": change, "megabytes": sum(sent) / 1e6, **kept})
    return rows


def _seen(traces: int, samples: int, changes: Sequence[str], repeats: int) -> dict[str, Row]:
    """Of each change the milliseconds to the pixels of the pictures, and of all; none without a browser."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        return {}
    from wavefilt.viewer import server

    with server.event_loop() as loop:
        times = loop.run_until_complete(_measured(program, traces, samples, changes, repeats))
    if not isinstance(times, dict):
        raise RuntimeError(f"{program} did not measure the page: {times}")
    names = "pixels", "pixels_of_all"
    return {
        change: {name: summary(list(values)) for name, values in zip(names, zip(*own[1:], strict=True), strict=False)}
        for change, own in times.items()
    }


async def _measured(program: str, traces: int, samples: int, changes: Sequence[str], repeats: int) -> Any:
    """What a browser answers that is shown the page. Raises TimeoutError if it does not."""
    from wavefilt.viewer import server

    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with (
        server.serving(lambda: _page(traces, samples, changes, repeats + 1, answer.set_result), "measured") as address,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        command = [program, *OPTIONS, f"--user-data-dir={profile}", f"--window-size={WINDOW}", address]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return json.loads(await asyncio.wait_for(answer, LONGEST))
        finally:
            browser.terminate()
            browser.wait()


def _page(traces: int, samples: int, changes: Sequence[str], repeats: int, answered: Callable[[str], None]) -> Any:
    """The viewer, which changes itself in the browser and tells the times."""
    import panel as pn
    from bokeh.models import CustomJS, TextInput

    import wavefilt
    from wavefilt.viewer.panels import COLUMNS, PANELS, ROWS

    viewer, answer = wavefilt.view(signal(traces, samples), interval=0.001), TextInput(visible=False)
    answer.on_change("value", lambda name, old, new: answered(new))
    changing = PANELS[1:]  # that before stays
    pictures = {f"image-{name}": drawn for name, drawn in zip(changing, viewer.pictures.figures[1:], strict=True)}
    last = viewer.details.spectrogram_figures[1:]
    areas = {name.replace("image", "area"): drawn for name, drawn in pictures.items()}
    spectrograms = {f"spectrogram-{name}": drawn for name, drawn in zip(changing, last, strict=True)}

    def change(name: str) -> tuple[object, ...]:
        if name in CHANGES:
            label = viewer.controls.choices[name.split(",")[0]].widget.label
            return (name, "choose", *CHANGES[name], label, [list(pictures), [*pictures, *spectrograms]], True)
        action, there, back, data = LOOKS[name]
        sent = bool(data) and (action != "zoom" or traces > COLUMNS or samples > ROWS)
        return name, action, there, back, "", [list(areas if data == "area" else pictures)], sent

    arguments = {
        "figures": pictures | areas | spectrograms,
        "changes": [change(name) for name in changes],
        "repeats": repeats,
        "answer": answer,
    }
    pn.state.curdoc.js_on_event("document_ready", CustomJS(args=arguments, code=SCRIPT))
    return pn.Column(viewer, pn.pane.Bokeh(answer))


def report(result: Row) -> Report:
    """The table of a result."""
    note = "Seen: painted in a headless Chromium on the same machine, which has no GPU and shares its processor."
    return Report([TABLE(result)], [note])


if __name__ == "__main__":
    main(run, report)

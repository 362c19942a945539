"""Time of `wavefilt view` from a change to the messages that draw it: ``python -m wavefilt.benchmarks.viewing``."""

from __future__ import annotations

import time

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
TABLE = Table(
    "ms from a change to the messages for the browser",
    {
        "traces x|samples": "{traces} x {samples}",
        "change": "{change}",
        "denoised": "{denoised[median]:.0f}",
        "pictures|sent": "{pictures[median]:.0f}",
        "all|sent": "{all[median]:.0f}",
        "MB": "{megabytes:.1f}",
        "limit": "{limit}",
    },
)


def run(quick: bool) -> Row:
    """Every change of every size, several times."""
    sizes = SIZES[:1] if quick else SIZES
    rows = [row for size in sizes for row in _changes(*size, repeats=1 if quick else 7)]
    return environment.result("viewing", rows=rows)


def _changes(traces: int, samples: int, limit: int, repeats: int) -> list[Row]:
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
        size = {"traces": traces, "samples": samples, "limit": limit, "megabytes": sum(sent) / 1e6}
        widget.value = other
        kept = {name: summary(values[1:]) for name, values in times.items()}  # the first compiles
        rows.append({"change": change, **size, **kept})
    return rows


def report(result: Row) -> Report:
    """The table of a result."""
    return Report([TABLE(result)], ["A browser on the same machine draws the pictures after that."])


if __name__ == "__main__":
    main(run, report)

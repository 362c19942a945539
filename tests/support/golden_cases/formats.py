"""File formats and figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from .commands import command, flags
from .files import Written, contents, files
from .running import Cases, Command, area, sweep


@area
def formats() -> Cases:
    """Every format of files: read, told about, denoised and written."""
    import wavefilt

    def read(make: Callable[[], Written]) -> Any:
        source, layout = make()
        recording = wavefilt.read(source, **layout)
        told = [getattr(recording, name) for name in ("format", "intervals", "source", "notes", "traces")]
        quiet = recording.denoise("db4", rule="sure", backend="pywavelets")
        quiet.write(target := f"out{Path(source.partition('::')[0]).suffix}")
        return told, contents(target), quiet.less(recording).traces, repr(quiet)

    def line(make: Callable[[], Written], verb: str, options: str) -> Command:
        source, layout = make()
        return command([verb, source, *flags(layout), *options.split()])

    yield from sweep("read", read, make=files())
    yield from sweep("info", partial(line, verb="info"), make=files(), options=["", "--json"])
    more = {"plain": "-v", "removed": "--json --rule sure --removed r.x"}
    more["section"] = "--two-dimensional -w haar --sidecar"
    yield from sweep("denoise", partial(line, verb="denoise"), make=files(), options=more)


@area
def plot() -> Cases:
    """Figures: the same data give the same file."""
    import wavefilt
    from wavefilt import plot

    def draw(make: Callable[[], Written], kind: str, **options: Any) -> Any:
        source, layout = make()
        before = wavefilt.read(source, **layout)
        after = before.denoise(backend="pywavelets", **options)
        plot.plot_denoising(before, after, f"p.{kind}", dpi=60)
        return contents(f"p.{kind}")

    def labels(make: Callable[[], Written]) -> Any:
        before = wavefilt.read(make()[0])
        return [(axes.get_label(), axes.get_title()) for axes in plot.draw(before, before.denoise()).axes]

    some = {name: files()[name] for name in ("ascii-column", "npy-c8", "ascii-gaps")}
    yield from sweep("draw", draw, make=some, kind=["png"], rule=["bayes", 7.5])
    yield from sweep("kind", draw, make={"npy": files()["npy-f4"]}, kind=["pdf", "svg", "gif"])
    yield from sweep("section", draw, make=some, kind=["png"], two_dimensional=[True], wavelet=["haar"])
    yield from sweep("labels", labels, make={name: files()[name] for name in ("npy-f4", "npz")})
    yield from sweep("type", plot.file_type, path=["a.png", "b/c.PDF", "d", "e.jpg"])

"""The command line, run in this process, with its help; file formats, figures, and the SKE model."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .files import Written, contents, files, names_in, npy, put
from .inputs import MODES, NAMED, SAMPLES, SCOPES, SHRINKS, TRANSFORMS, traces
from .running import Cases, Command, area, described, digest, label, sweep


def command(line: str | list[str], stdin: bytes = b"", prepare: Callable[[], Any] = lambda: None) -> Command:
    """`wavefilt LINE` in this process, and the files that are new after it."""
    from wavefilt.cli import main

    prepare()
    before = names_in(".")
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8", write_through=True) for data in (stdin, b"", b"")]
    code, old, sys.stdin = 0, sys.stdin, streams[0]
    try:
        with contextlib.redirect_stdout(streams[1]), contextlib.redirect_stderr(streams[2]):
            main(shlex.split(line) if isinstance(line, str) else line)
    except SystemExit as left:
        code = int(left.code or 0)
    finally:
        sys.stdin = old
    out, err = (stream.buffer.getvalue() for stream in streams[1:])
    new = {name: contents(name) for name in names_in(".") if name not in before}
    return Command(code, out if b"\0" in out else out.decode(errors="replace"), err.decode(), new)


def flags(layout: dict[str, Any]) -> list[str]:
    """The layout as options of the command."""
    values = {key: label(value) for key, value in layout.items()}
    return [word for key, value in values.items() for word in (f"--{key}", value)]


def split(lines: str) -> list[str]:
    """What stands between bars."""
    return [" ".join(line.split()) for line in lines.split("|")]


def survey() -> None:
    """Files to run the command on."""
    for name in ("seismic.dat", "survey/a.dat", "survey/line 2/b.dat"):
        put(name, (SAMPLES / "seismic.dat").read_bytes())
    put("survey/bad.dat", b"")
    npy(traces((3, 400), "i2"))


@area
def cli(backend: str) -> Cases:
    """`wavefilt denoise`, its options."""
    options = [f"--rule {r}" for r in [*NAMED, "0.5", "2,1,0.5"]] + [f"--mode {mode} -w sym5 -l 3" for mode in MODES]
    options += [f"--rule {r} --shrink {s}" for r in ("bayes", "ebayes", "blockjs", "1.5") for s in SHRINKS[1:]]
    options += [f"--transform {t} --scope {s}" for t in TRANSFORMS for s in SCOPES]
    options += split("""
        --rule 2,1,0.5 -l 3 | --keep 2 | --spins 3 | --noise-window 0 0.1 | --sigma global | --sigma 0.9 | -l 0 | -l 99
        | --two-dimensional | --two-dimensional --rule fdr -w db3 --json | -o out.dat --removed r.dat -q | --sidecar
        | --json -v | --dry-run | --dry-run --json | --log log.jsonl | -j 1 --overwrite | --noise-window 0.5 9
        | --max-memory 1GiB | --rule js --detrend line --blend 0.2 --sidecar -v | -o - | --wavelet gaus1""")
    for option in options:
        yield option, partial(command, f"denoise seismic.dat --backend {backend} {option}", prepare=survey)
    batches = split("""
        'survey/**/*.dat' --out-dir clean --log log.jsonl | 'survey/**/*.dat' x.npy --out-dir clean --fail-fast
        | survey/a.dat x.npy seismic.dat -v | survey/a.dat x.npy --json -q | 'survey/*/*.dat' --dry-run""")
    for line in batches:
        yield f"batch/{line}", partial(command, f"denoise --backend {backend} {line}", prepare=survey)

    def hundreds() -> None:
        for i in range(270):
            put(f"many/{i:03}.npy", b"")
            np.save(f"many/{i:03}.npy", traces((2, 100), seed=i))

    def many() -> Any:
        done = command(f"denoise 'many/*.npy' --backend {backend} --out-dir clean -j 2", prepare=hundreds)
        return done._replace(files=digest(json.dumps(described(done.files), sort_keys=True).encode()))

    yield "batch/270 files in 2 processes", many


@area
def commands() -> Cases:
    """The other commands, pipes, and a process of its own."""

    def process(*arguments: str) -> Command:
        survey()
        done = subprocess.run([sys.executable, "-m", "wavefilt", *arguments], capture_output=True, check=False)
        return Command(done.returncode, done.stdout.decode(), done.stderr.decode(), contents("."))

    lines = split("""
        wavelets | wavelets db | wavelets sym --json | wavelets dv | --version | backends --json | info | | deniose
        | denoise x.npy --plot p.png -q
        | denoise x.npy --max-memory 1GiB --plot p.png""")
    yield from ((f"line/{line}", partial(command, line, prepare=survey)) for line in lines)
    data = (SAMPLES / "seismic.dat").read_bytes()
    for line in ("denoise - -q", "denoise - -o out.dat --sidecar", "denoise - --json", "denoise - -", "info -"):
        yield f"pipe/{line}", partial(command, line, data)
    for words in (["--version"], ["denoise", "seismic.dat"], ["info", "x.npy"], ["denoise", "nowhere.dat"]):
        yield f"process/{' '.join(words)}", partial(process, *words)


@area
def help() -> Cases:
    """The help of every command."""
    lines = split("""| denoise | info | wavelets | backends | bench | bench blocks | bench cpu | bench cuda
        | bench laplace | bench scaling | ske | ske calibrate | ske estimate | ske occupancy""")
    yield from ((line or "wavefilt", partial(command, f"{line} --help")) for line in lines)


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
    from wavefilt.plotting import PlotOptions, figure, plot_denoising

    def draw(make: Callable[[], Written], kind: str, **options: Any) -> Any:
        source, layout = make()
        before = wavefilt.read(source, **layout)
        after = before.denoise(backend="pywavelets", **options)
        plot_denoising(before, after, f"p.{kind}", dpi=60)
        return contents(f"p.{kind}")

    def labels(make: Callable[[], Written]) -> Any:
        before = wavefilt.read(make()[0])
        drawn = figure.draw(before, before.denoise(), PlotOptions())
        return [(axes.get_label(), axes.get_title()) for axes in drawn.axes]

    some = {name: files()[name] for name in ("ascii-column", "npy-c8", "ascii-gaps")}
    yield from sweep("draw", draw, make=some, kind=["png"], rule=["bayes", 7.5])
    yield from sweep("kind", draw, make={"npy": files()["npy-f4"]}, kind=["pdf", "svg", "gif"])
    yield from sweep("section", draw, make=some, kind=["png"], two_dimensional=[True], wavelet=["haar"])
    yield from sweep("labels", labels, make={name: files()[name] for name in ("npy-f4", "npz")})
    yield from sweep("type", figure.file_type, path=["a.png", "b/c.PDF", "d", "e.jpg"])


@area
def ske() -> Cases:
    """Estimates of kernels."""
    from wavefilt import ske

    def kernel(number: int) -> Any:
        counts = {name: i + number for i, name in enumerate(ske.INSTRUCTIONS)}
        work = ske.computation(counts), ske.communication(dict.fromkeys(ske.MEMORIES, number), number)
        return ske.Kernel(*work, barriers=number, registers=10 * number, shared=8 * number)

    for name in ("CAPABILITIES", "DEVICES", "INSTRUCTIONS", "MEMORIES"):
        yield name, partial(getattr, ske, name)
    resident = partial(sweep, "occupancy", ske.occupancy, device=[*ske.CAPABILITIES, "9.1"])
    yield from resident(threads=[0, 32, 100, 1024, 2048], registers=[0, 40, 255], shared=[0, 5000, 60_000])
    two = {n: kernel(n) for n in (1, 5)}
    hidings = ["product", "separate", "swapped"]
    estimates = partial(sweep, "estimate", ske.estimate, kernel=two, device=[*ske.DEVICES, "G80"])
    yield from estimates(threads=[32, 96, 256, 2000], blocks=[1, 4096], hiding=hidings, correction=[None, 1, 2, 3])
    yield from sweep("constraints", ske.constraints, kernel=two, device=ske.DEVICES, threads=[64, 4096], blocks=[1, 9])
    yield from sweep("optimise", ske.optimise, kernel=two, device=ske.DEVICES, grid=[(640, 480), (5, 3), (1000, 1)])
    yield from sweep("shapes", ske.shapes, kernel=two, device=ske.DEVICES, grid=[(640, 480), (5, 3)])
    shared = partial(ske.threads_by_shared, shared=1156)
    yield from sweep("shared", shared, device=ske.DEVICES, mode=["per_sm", "total"])
    problems = itertools.product(("4Ki", "1Mi", "64Mi"), ("haar", "db4", "db8", "coif3"), (1, 16))
    lines = [f"estimate --samples {n} -w {w} --rows {r} --device h200 -o e.json" for n, w, r in problems]
    lines += split("""
        estimate --samples 1Mi --block 128 --tile 2048 --level 3 --device h200 | estimate --samples 1Mi --device v1
        | occupancy --device 9.0 --threads 256 --registers 40 | occupancy --device G80 --threads 64 --json
        | occupancy --device 8.6 --threads 2048 | estimate --samples 5x --device h200""")
    yield from ((f"command/{line}", partial(command, f"ske {line}")) for line in lines)

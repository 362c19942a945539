"""The command line, run in this process: every command, its options and its help."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .files import contents, names_in, npy, put
from .inputs import MODES, NAMED, SAMPLES, SCOPES, SHRINKS, TRANSFORMS, traces
from .running import Cases, Command, area, described, digest, label


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
        done = subprocess.run([sys.executable, "-m", "wavefilt.cli", *arguments], capture_output=True, check=False)
        return Command(done.returncode, done.stdout.decode(), done.stderr.decode(), contents("."))

    lines = split("""
        wavelets | wavelets db | wavelets sym --json | wavelets dv | --version | backends --json | info | | deniose
        | denoise x.npy --plot p.png -q | denoise x.npy --scheduler here
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
    lines = ["", "denoise", "info", "wavelets", "backends", "bench", "ske"]
    lines += [f"bench {n}" for n in split("blocks | cpu | cuda | laplace1d | laplace2d | quality | report | scaling")]
    lines += [f"ske {n}" for n in split("calibrate | estimate | occupancy | reproduce | tune | validate")]
    yield from ((line or "wavefilt", partial(command, f"{line} --help")) for line in lines)

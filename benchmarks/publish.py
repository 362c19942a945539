"""Measure every result that the documentation shows, each by its own command in a process of its own.

``python -m wavefilt.benchmarks.publish FOLDER --device gpu`` runs the studies of the GPU (about 38 minutes on an H200),
``--device cpu`` the studies for two cores; names of studies select some. A study that would not end within
``--minutes`` is left out and listed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import click


class Study(NamedTuple):
    """A command without the file of its result, the minutes it takes, and where it runs."""

    command: str
    minutes: float
    device: str = "gpu"


STUDIES = {
    "scaling_h200": Study("bench scaling -o", 22),
    "cuda_h200": Study("bench cuda -o", 3.5),
    "cuda_layouts_h200": Study("bench cuda --layouts -o", 6.5),
    "blocks_h200": Study("bench blocks -o", 2.7),
    "laplace1d_h200": Study("bench laplace 1d -o", 0.3),
    "laplace2d_h200": Study("bench laplace 2d -o", 0.6),
    "ske_fit_h200": Study("ske calibrate -o {folder}/h200.json --rows", 3),
    "scaling_cpu": Study("bench scaling --most 8Mi -o", 3, "cpu"),
    "cpu": Study("bench cpu -o", 4, "cpu"),
}
QUALITY = {"signals": 1, "trust": 9, "ranking": 30, "sections": 20, "real_noise": 2}
"""Minutes of the parts of the study of quality."""
STUDIES |= {
    f"quality_{part}": Study(f"-m wavefilt.benchmarks.quality {part.replace('_', '-')} -o", minutes, "cpu")
    for part, minutes in QUALITY.items()
}


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("names", nargs=-1, type=click.Choice([*STUDIES]))
@click.option("--device", type=click.Choice(["gpu", "cpu"]), default="gpu", help="Studies to run without names.")
@click.option("--minutes", type=float, default=30.0, help="Time for all studies together.")
def publish(folder: Path, names: tuple[str, ...], device: str, minutes: float) -> None:
    """Measure results into FOLDER, from a checkout without changes."""
    folder.mkdir(parents=True, exist_ok=True)
    end, left, failed = time.monotonic() + 60 * minutes, list[str](), list[str]()
    for name in names or [name for name, study in STUDIES.items() if study.device == device]:
        study = STUDIES[name]
        if time.monotonic() + 60 * study.minutes > end:
            left.append(name)
            continue
        words = study.command.format(folder=folder).split()
        program = [sys.executable] if words[0] == "-m" else [sys.executable, "-m", "wavefilt"]
        started = time.monotonic()
        with (folder / f"{name}.log").open("w") as log:
            done = subprocess.run([*program, *words, str(folder / f"{name}.json")], stdout=log, stderr=log)
        failed += [name] if done.returncode else []
        click.echo(f"{name:20} {time.monotonic() - started:6.0f} s  {'failed' if done.returncode else 'done'}")
    if left:
        click.echo(f"left out, for lack of time: {', '.join(left)}")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}; see their logs in {folder}")


if __name__ == "__main__":
    publish()

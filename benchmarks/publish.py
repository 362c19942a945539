"""Measure every result that the documentation shows, each by its own command in a process of its own.

``python -m wavefilt.benchmarks.publish FOLDER gpu`` runs the studies of the GPU (about 38 minutes on an H200), ``cpu``
those for two cores (about 70 minutes); names of studies run some.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import click

from wavefilt.benchmarks.quality.harness import PARTS

STUDIES = {
    "gpu": {
        "scaling_h200": "wavefilt bench scaling -o",
        "cuda_h200": "wavefilt bench cuda -o",
        "cuda_layouts_h200": "wavefilt bench cuda --layouts -o",
        "blocks_h200": "wavefilt bench blocks -o",
        "laplace1d_h200": "wavefilt bench laplace 1d -o",
        "laplace2d_h200": "wavefilt bench laplace 2d -o",
        "ske_fit_h200": "wavefilt ske calibrate -o {folder}/h200.json --rows",
    },
    "cpu": {"scaling_cpu": "wavefilt bench scaling --most 8Mi -o", "cpu": "wavefilt bench cpu -o"}
    | {f"quality_{part.replace('-', '_')}": f"wavefilt.benchmarks.quality {part} -o" for part in PARTS},
}
"""Commands without the file of their result, by where they run."""
COMMANDS = STUDIES["gpu"] | STUDIES["cpu"]


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("names", nargs=-1, required=True, type=click.Choice([*STUDIES, *COMMANDS]))
def publish(folder: Path, names: tuple[str, ...]) -> None:
    """Measure results into FOLDER, from a checkout without changes: all of "gpu" or "cpu", or the studies named."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in [one for given in names for one in STUDIES.get(given, (given,))]:
        started, words = time.monotonic(), COMMANDS[name].format(folder=folder).split()
        with (folder / f"{name}.log").open("w") as log:
            program = [sys.executable, "-m", *words, str(folder / f"{name}.json")]
            done = subprocess.run(program, stdout=log, stderr=log)
        click.echo(f"{name:20} {time.monotonic() - started:6.0f} s  {'failed' if done.returncode else 'done'}")
        failed += bool(done.returncode)
    sys.exit(bool(failed))


if __name__ == "__main__":
    publish()

"""One command for many small files against a command for each: ``python -m wavefilt.benchmarks.throughput.batches``.

Some commands are timed, and so are batches of all files, in turn; the time of a command for each file is their median
times the number of files. Outputs of both must be the same bytes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import ROOT, result
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.common.measuring import signal, summary
from wavefilt.benchmarks.common.tables import Row, Table
from wavefilt.threads import available_cpus

FILES, ROUNDS, COMMANDS = 1000, 3, 12
"""Files of a batch, rounds of all measurements, and commands timed in each round."""
QUICK = 20, 1, 2


def make_npy(folder: Path, count: int) -> str:
    """Files of float32 that all differ."""
    for i, traces in enumerate(signal(24 * count, 1000).reshape(count, 24, 1000)):
        np.save(folder / f"{i:04}.npy", traces)
    return "npy, 24 x 1000"


def make_seg2(folder: Path, count: int) -> str:
    """Copies of the sample record."""
    for i in range(count):
        shutil.copyfile(ROOT / "samples/seismic.dat", folder / f"{i:04}.dat")
    return "SEG-2, 24 x 1024"


MAKERS: tuple[Callable[[Path, int], str], ...] = (make_npy, make_seg2)


def _timed(arguments: Sequence[str | Path]) -> float:
    """Seconds of ``wavefilt denoise -q ARGUMENTS``."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "wavefilt.cli", "denoise", "-q", *map(str, arguments)], check=True)
    return time.perf_counter() - start


def measure(make: Callable[[Path, int], str], count: int, rounds: int, commands: int) -> Row:
    """Milliseconds of a command for one file, and seconds of one for all with one core and with all cores.

    Raises Mismatch if their outputs differ.
    """
    cores = sorted({1, available_cpus()})
    singles: list[float] = []
    batches: dict[int, list[float]] = {n: [] for n in cores}
    with TemporaryDirectory() as name:
        folder, one, out = (Path(name) / part for part in ("in", "one", "all"))
        folder.mkdir()
        what = make(folder, count)
        files = sorted(folder.iterdir())
        _timed([files[0], "--out-dir", out])  # fills caches
        for turn in range(rounds):
            for file in files[turn * commands : (turn + 1) * commands]:
                singles.append(1e3 * _timed([file, "--out-dir", one]))
            for n in cores:
                shutil.rmtree(out)
                batches[n].append(_timed([folder / "*", "--out-dir", out, "-j", str(n)]))
                _compare(one, out, count)
    command, all_alone = summary(singles), 1e-3 * count * summary(singles)["median"]
    taken = {n: summary(seconds) for n, seconds in batches.items()}
    found = [{"cores": n, **times, "ratio": all_alone / times["median"]} for n, times in taken.items()]
    return {"name": what, "files": count, "commands": len(singles), "command": command, "batches": found}


def _compare(one: Path, out: Path, count: int) -> None:
    """Raise Mismatch unless the batch wrote every file, and those that commands wrote the same."""
    found = len(list(out.iterdir()))
    if found != count:
        raise Mismatch(f"the batch wrote {found} of {count} files")
    for path in one.iterdir():
        if path.read_bytes() != (out / path.name).read_bytes():
            raise Mismatch(f"{path.name} differs between a command and a batch")


def run(quick: bool = False) -> Row:
    """Every kind of file."""
    sizes = QUICK if quick else (FILES, ROUNDS, COMMANDS)
    return result("batches", quick=quick, rows=[measure(make, *sizes) for make in MAKERS])


def _rows(found: Row) -> Iterator[Row]:
    for row in found["rows"]:
        commands = 1e-3 * row["files"] * row["command"]["median"]
        for batch in row["batches"]:
            yield {**row, "commands": commands, "batch": batch, "rate": row["files"] / batch["median"]}


TABLE = Table(
    "{rows[0][files]} small files with one command per file and with one command for all files, in seconds: median "
    "(quartiles) on {environment[processor]}, {environment[cores]} cores, load of other work {environment[load]:.1f}. "
    "The first is {rows[0][files]} times the median of {rows[0][commands]} commands",
    {
        "traces x|samples": "{name}",
        "a command|a file": "{commands:n}",
        "|-j": "{batch[cores]}",
        "one command|for all": "{batch:quartiles}",
        "files|a second": "{rate:n}",
        "|ratio": "{batch[ratio]:.0f}",
    },
    _rows,
)


if __name__ == "__main__":
    main(run, TABLE)

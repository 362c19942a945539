"""What a volume takes on clusters, from the rates of one node: ``python -m wavefilt.benchmarks.throughput.planning``.

Chunks are read, computed and written at the same time, so a pass over the volume takes as long as the resource that
needs longest (`seconds`); passes come one after the other. Thresholds of each trace, where chunks hold whole traces,
take the last pass only; those of the whole record take passes before it in which details are counted (`passes`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from wavefilt.benchmarks.common.tables import Report, Row, Table, number
from wavefilt.benchmarks.values import RESULTS
from wavefilt.method import Method
from wavefilt.outofcore.sizes import in_bytes
from wavefilt.statistics.mergeable import State

NEEDED = ("cpu", "cuda_h200", "dask", "streaming")
ITEM = 4  # bytes of a float32 sample
MERGED = 16  # parts of a pass that `wavefilt.dask` merges at a time
SCOPES = {"trace": "each trace", "record": "the record"}


@dataclass(frozen=True)
class Node:
    """Bytes a second that one node reads or writes (``disk``), receives or sends (``network``), counts, denoises.

    ``merge`` is its time to merge the counts of one chunk, in seconds.
    """

    disk: float
    network: float
    look: float
    denoise: float
    merge: float


@dataclass(frozen=True)
class Site:
    """What all nodes have together: bytes a second of the file system, and seconds of the scheduler for a task."""

    shared: float
    task: float


@dataclass(frozen=True)
class Pass:
    """Bytes read, written, and sent between nodes (if there are many); seconds of one node; tasks."""

    read: float
    written: float
    sent: float
    computing: float
    tasks: float


@dataclass(frozen=True)
class Volume:
    """Bytes of float32 samples in chunks of so many bytes, the levels, and tasks for each chunk and pass."""

    size: int
    chunk: int
    level: int
    tasks: float

    @property
    def chunks(self) -> int:
        return -(-self.size // self.chunk)


def passes(volume: Volume, scope: str, node: Node) -> list[Pass]:
    """Those for the statistics, then the last: rule universal or bayes with σ of each level.

    Counting a chunk gives a table for each level. Sixteen are merged at a time, so that each is sent at most once, and
    so is what they were merged to: 16/15 of all tables.
    """
    last = Pass(volume.size, volume.size, 0, volume.size / node.denoise, volume.tasks * volume.chunks)
    if scope == "trace":
        return [last]
    counts = np.array([volume.size // ITEM >> i for i in range(1, volume.level + 1)], np.int64)
    state = State.of(Method(rule="bayes", scope="record"), counts, 1, np.dtype("f4"))
    tables = sum(table.nbytes for table in state.tables())
    sent = volume.chunks * tables * MERGED / (MERGED - 1)
    counting = Pass(volume.size, 0, sent, volume.size / node.look + volume.chunks * node.merge, last.tasks)
    return [counting] * state.passes + [last]


def seconds(one: Pass, node: Node, site: Site, nodes: int) -> dict[str, float]:
    """Of each resource: its amount over its rate. Nodes add up, the file system and the scheduler do not.

    disk: (read + written) / (disk · n), file system: (read + written) / shared, network, which carries both ways at
    once: (max(read, written) + sent · (n - 1)/n) / (network · n), computing / n, scheduler: tasks · task.
    """
    moved = one.read + one.written
    return {
        "disk": moved / (node.disk * nodes),
        "network": (max(one.read, one.written) + one.sent * (nodes - 1) / nodes) / (node.network * nodes),
        "computing": one.computing / nodes,
        "file system": moved / site.shared,
        "scheduler": one.tasks * site.task,
    }


def saturation(one: Pass, node: Node, site: Site) -> int:
    """Nodes from which a pass is as fast as the file system and the scheduler, and more of them are no use."""
    found = seconds(one, node, site, 1)
    found["network"] += one.sent / node.network
    fixed = max(found.pop("file system"), found.pop("scheduler"))
    return math.ceil(max(found.values()) / fixed)


def plan(volume: Volume, kinds: dict[str, Node], site: Site, nodes: Sequence[int]) -> list[Row]:
    """For each kind of node, scope and number of nodes: seconds, of which the statistics, bytes and bottlenecks."""
    rows = []
    for kind, node in kinds.items():
        for scope in SCOPES:
            all_passes = passes(volume, scope, node)
            for n in nodes:
                times = [seconds(one, node, site, n) for one in all_passes]
                spent = [max(found.values()) for found in times]
                row = {"node": kind, "scope": scope, "nodes": n, "passes": len(spent), "seconds": sum(spent)}
                row |= {"statistics": sum(spent[:-1]), "moved": sum(one.read + one.written for one in all_passes)}
                row["limits"] = list(dict.fromkeys(max(found, key=lambda name: found[name]) for found in times))
                rows.append(row | {"saturation": max(saturation(one, node, site) for one in all_passes)})
    return rows


def measured(results: Row, cores: int, gpus: int, disk: float, network: float) -> dict[str, Node]:
    """Nodes with the rates of the studies in `NEEDED`: those of one core, or GPU, times their number."""
    cpu, merging = results["cpu"], results["dask"]["merging"]
    case = next(row for row in cpu["cases"] if row["name"] == "denoise 16 Mi, bayes, sigma per level")
    denoise = ITEM * case["samples"] / case["numba"]["median"] / cpu["environment"]["threads"]
    looked = ITEM * merging["traces"] * merging["samples"] * merging["looks"]
    look, merge = looked / merging["spent"]["looks"], merging["spent"]["merging"] / merging["chunks"] / merging["looks"]
    by_cpu = Node(disk, network, cores * look, cores * denoise, merge / cores)
    case = next(row for row in results["cuda_h200"]["cases"] if row.get("where") == "pageable")
    gpu = ITEM * case["samples"] / (1e-3 * case["call"]["median"])
    return {f"{cores} cores": by_cpu, f"{cores} cores, {gpus} GPU": replace(by_cpu, denoise=gpus * gpu)}


def tasks_of(results: Row) -> float:
    """Tasks for each chunk and pass, as they were counted."""
    merging = results["dask"]["merging"]
    return float(merging["tasks"] / merging["chunks"] / (merging["looks"] + 1))


TABLE = Table(
    lambda found: f"{number(found['size'] / 1e12)} TB of float32",
    {
        "node": "{node}",
        "thresholds|of": lambda row: SCOPES[row["scope"]],
        "nodes": "{nodes}",
        "passes": "{passes}",
        "moved|TB": lambda row: number(row["moved"] / 1e12),
        "hours": lambda row: number(row["seconds"] / 3600),
        "statistics|hours": lambda row: number(row["statistics"] / 3600),
        "limited|by": lambda row: ", then ".join(row["limits"]),
        "saturates|at nodes": "{saturation}",
    },
)


def notes(results: Row, kinds: dict[str, Node], site: Site, volume: Volume) -> list[str]:
    """The rates used: measured and assumed."""
    rate = results["streaming"]["bytes"] / (1e-3 * results["streaming"]["limits"][0]["ms"]["median"])
    found = [f"{kind}: statistics pass {_rate(n.look)}, denoising pass {_rate(n.denoise)}" for kind, n in kinds.items()]
    node = next(iter(kinds.values()))
    return [
        f"Measured, of a node with {'; with '.join(found)}; {volume.tasks:.1f} tasks for each chunk and pass.",
        f"Assumed: a node's disk {_rate(node.disk)}, its network {_rate(node.network)}; the file system "
        f"{_rate(site.shared)} for all; the scheduler {1e3 * site.task:g} ms for a task; {volume.chunks} chunks.",
        f"Without dask, one trace of that size by `denoise_file` on {results['streaming']['environment']['cores']} "
        f"cores, {_rate(rate)}: {volume.size / rate / 3600:.0f} hours.",
    ]


def _rate(value: float) -> str:
    return f"{number(value / 1e9)} GB/s"


def load() -> Row:
    """The results needed. Raises FileNotFoundError that names the study to run."""
    found = {}
    for name in NEEDED:
        path = RESULTS / f"{name}.json"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing: run that study and save its JSON there")
        found[name] = json.loads(path.read_text())
    return found


def _above_zero(parse: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    """An option's values as ``what``. Raises BadParameter for other words and for what is not finite and above 0."""

    def convert(text: str) -> Any:
        try:
            value = parse(text)
        except ValueError:
            value = 0
        if not 0 < value < math.inf:
            raise click.BadParameter(f"{text!r} is no {what}")
        return value

    return convert


BYTES = _above_zero(in_bytes, "number of bytes; write it as 500MB or 100TB")
WHOLE = _above_zero(int, "whole number above 0")
OPTIONS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "volume": (BYTES, "100TB", "bytes of float32 samples"),
    "nodes": (lambda text: [WHOLE(part) for part in text.split(",")], "1,16,256", "numbers of nodes"),
    "disk": (BYTES, "5GB", "bytes a second that one node reads or writes"),
    "network": (BYTES, "12500MB", "bytes a second of a node's link, each way"),
    "shared": (BYTES, "100GB", "bytes a second of the file system, for all"),
    "task": (_above_zero(float, "number above 0"), "1", "milliseconds of the scheduler for a task"),
    "chunk": (BYTES, "128MiB", "bytes of a chunk"),
    "level": (WHOLE, "5", "levels of the transform"),
    "cores": (WHOLE, "16", "cores of a node"),
    "gpus": (WHOLE, "1", "GPUs of a node"),
}
"""How each is read, what is assumed to begin with, and its meaning."""


def planned(results: Row, **given: Any) -> Report:
    """Table and notes for these values of `OPTIONS`."""
    it = {name: read(default) for name, (read, default, _) in OPTIONS.items()} | given
    kinds = measured(results, it["cores"], it["gpus"], it["disk"], it["network"])
    volume = Volume(it["volume"], it["chunk"], it["level"], tasks_of(results))
    site = Site(it["shared"], 1e-3 * it["task"])
    sheet = TABLE({"rows": plan(volume, kinds, site, it["nodes"]), "size": volume.size})
    return Report([sheet], notes(results, kinds, site, volume))


@click.command(help=__doc__)
def main(**given: Any) -> None:
    """Print the plan."""
    click.echo(planned(load(), **given).text())


for _name, (_read, _default, _help) in OPTIONS.items():
    click.option(f"--{_name}", type=_read, default=_default, show_default=True, help=_help)(main)


if __name__ == "__main__":
    main()

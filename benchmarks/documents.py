"""Tables and numbers in the documentation, made from the files in `benchmarks/results`.

``python -m wavefilt.benchmarks.documents`` writes them; with ``--check`` it exits with 1 if a document would change.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from wavefilt.benchmarks.common import fuzzing
from wavefilt.benchmarks.cpu import denoise, modwt, panels
from wavefilt.benchmarks.gpu import blocks_report, launch_shapes, multi_gpu
from wavefilt.benchmarks.gpu import denoise as cuda
from wavefilt.benchmarks.gpu import modwt as stationary_gpu
from wavefilt.benchmarks.gpu import panels as sections_gpu
from wavefilt.benchmarks.laplace1d import report
from wavefilt.benchmarks.laplace2d import report as laplace2d_report
from wavefilt.benchmarks.quality import report as quality_report
from wavefilt.benchmarks.scaling import report as scaling_report
from wavefilt.benchmarks.ske import validation
from wavefilt.benchmarks.throughput import batches, dask_scaling, obspy_streams, planning, streaming
from wavefilt.benchmarks.values import value
from wavefilt.ske.calibration import load

ROOT = Path(__file__).resolve().parents[1]
VALUE = re.compile(r"(<!-- value ([^<>]+?) -->)[^<>]*(<!-- end -->)")
"""A number in a sentence, see `benchmarks/values.py`."""


def first_calls(result: dict[str, Any]) -> str:
    """Compile and load times of the CPU kernels in a sentence."""
    cold, cached = result["first_calls"]["cold"], result["first_calls"]["cached"]
    return (
        f"The first call compiles: {cold['db4 float32']:.0f} s for float32, {cold['db8 float64']:.0f} s for float64,\n"
        f"once for all wavelets. From the cache on disk a new process takes {cached['import']:.1f} s to import numba\n"
        f"and {cached['db4 float32']:.1f} s for its first call."
    )


@cache
def tables() -> dict[str, str]:
    """What stands between the markers of each name."""
    results = {
        name: json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())
        for name in (
            "batches",
            "cpu",
            "blocks_h200",
            "cuda_h200",
            "dask",
            "fuzzing",
            "laplace1d_cpu",
            "laplace1d_h200",
            "laplace2d_cpu",
            "laplace2d_h200",
            "launch_shapes_h200",
            "obspy",
            "quality",
            "scaling_cpu",
            "scaling_h200",
            "sections",
            "sections_h200",
            "several_gpus_h200",
            "ske_h200",
            "stationary",
            "stationary_h200",
            "streaming",
            "streaming_h200",
        )
    }
    return {
        "table of benchmarks/results/batches.json": batches.table(results["batches"]).markdown(),
        "table of benchmarks/results/cpu.json": f"```\n{denoise.table(results['cpu'])}\n```",
        "table of benchmarks/results/blocks_h200.json": blocks_report.markdown(results["blocks_h200"]),
        "table of benchmarks/results/cuda_h200.json": cuda.table(results["cuda_h200"]),
        "table of benchmarks/results/dask.json": "\n".join(
            [dask_scaling.table(results["dask"]).markdown(), *dask_scaling.notes(results["dask"])]
        ),
        "tables of benchmarks/results/fuzzing.json": fuzzing.markdown(results["fuzzing"]),
        "table of benchmarks/throughput/planning.py": planning.markdown(results),
        "table of benchmarks/results/laplace1d_cpu.json": report.markdown(results["laplace1d_cpu"]),
        "table of benchmarks/results/laplace1d_h200.json": report.markdown(results["laplace1d_h200"]),
        "table of benchmarks/results/laplace2d_cpu.json": laplace2d_report.markdown(results["laplace2d_cpu"]),
        "table of benchmarks/results/laplace2d_h200.json": laplace2d_report.markdown(results["laplace2d_h200"]),
        "table of benchmarks/results/launch_shapes_h200.json": (
            f"```\n{launch_shapes.table(results['launch_shapes_h200'])}\n```"
        ),
        "table of benchmarks/results/obspy.json": obspy_streams.table(results["obspy"]).markdown(),
        **{
            f"{chapter} of benchmarks/results/quality.json": text
            for chapter, text in quality_report.markdown(results["quality"]).items()
        },
        "table of benchmarks/results/scaling_cpu.json": scaling_report.markdown(results["scaling_cpu"]),
        "times of benchmarks/results/sections.json": panels.times_table(results["sections"]).markdown(),
        "gains of benchmarks/results/sections.json": panels.gains_table(results["sections"]).markdown(),
        "table of benchmarks/results/sections_h200.json": sections_gpu.table(results["sections_h200"]).markdown(),
        "table of benchmarks/results/scaling_h200.json": scaling_report.markdown(results["scaling_h200"]),
        "table of benchmarks/results/several_gpus_h200.json": multi_gpu.markdown(results["several_gpus_h200"]),
        "table of benchmarks/results/ske_h200.json": validation.table(results["ske_h200"], load("h200")),
        "table of benchmarks/results/stationary.json": modwt.table(results["stationary"]).markdown(),
        "table of benchmarks/results/stationary_h200.json": stationary_gpu.table(results["stationary_h200"]).markdown(),
        "table of benchmarks/results/streaming.json": streaming.table(results["streaming"]).markdown(),
        "table of benchmarks/results/streaming_h200.json": streaming.table(results["streaming_h200"]).markdown(),
        "first calls of benchmarks/results/cpu.json": first_calls(results["cpu"]),
    }


def updated(text: str) -> str:
    """The document with every marked table and value as the results give it. Raises ValueError for an unknown value."""
    for name, table in tables().items():
        start, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, found, rest = text.partition(start)
        if found:
            text = f"{before}{start}{table}\n{end}{rest.partition(end)[2]}"
    return VALUE.sub(lambda found: f"{found[1]}{value(found[2])}{found[3]}", text)


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def stale() -> dict[Path, str]:
    """Documents that differ from what the results give, with the text that they should have."""
    texts = {path: updated(path.read_text()) for path in documents()}
    return {path: text for path, text in texts.items() if text != path.read_text()}


def main(arguments: list[str]) -> int:
    """Write the stale documents, or with ``--check`` name them."""
    found = stale()
    for path, text in found.items():
        print(path.relative_to(ROOT))
        if "--check" not in arguments:
            path.write_text(text)
    return int("--check" in arguments and bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

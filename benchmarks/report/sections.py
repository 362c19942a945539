"""What is on the page of `wavefilt bench report`: a section for each JSON of a study, with tables, plots and notes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from wavefilt.benchmarks import viewing
from wavefilt.benchmarks.common import fuzzing
from wavefilt.benchmarks.common.tables import Report, Row, Sheet
from wavefilt.benchmarks.cpu import busy, by_threads, crossover, denoise, grains, modwt, peak_memory
from wavefilt.benchmarks.cpu import panels as two_dimensions
from wavefilt.benchmarks.gpu import (
    blocks,
    dual_tree,
    first_call,
    first_use,
    fresh_arrays,
    host_loops,
    launch_shapes,
    local_shrinkage,
    multi_gpu,
    panels,
    short_rows,
)
from wavefilt.benchmarks.gpu import crossover as gpu_crossover
from wavefilt.benchmarks.gpu import denoise as gpu_denoise
from wavefilt.benchmarks.gpu import modwt as gpu_modwt
from wavefilt.benchmarks.laplace1d import study as laplace1d
from wavefilt.benchmarks.laplace2d import study as laplace2d
from wavefilt.benchmarks.quality import leakage, ranking, real_noise_report, sections_report, trust
from wavefilt.benchmarks.quality import report as quality
from wavefilt.benchmarks.scaling import report as scaling
from wavefilt.benchmarks.ske import compiled, validation
from wavefilt.benchmarks.throughput import batches, dask_scaling, obspy_streams, streaming

from . import plots, summary
from .figures import Plot
from .outline import outline, outline_report
from .summary import Figure

RESULTS = Path(__file__).resolve().parents[1] / "results"


class NotAStudy(ValueError):
    """A file that no study wrote."""


DAMAGED = (KeyError, IndexError, TypeError, AttributeError, ValueError, ArithmeticError)
"""What comes of a result in which something is missing or of another kind."""


@dataclass(frozen=True)
class Section:
    """``machine`` are names and values of what the figures depend on; ``name`` is for links."""

    title: str
    source: str
    date: str
    machine: dict[str, str]
    report: Report
    plots: Sequence[Plot]
    figures: Sequence[Figure]
    name: str = ""

    @property
    def where(self) -> str:
        """The GPU or processor, without its particulars."""
        return next(iter(self.machine.values()), "").split(",")[0]

    @property
    def about(self) -> str:
        """Date, machine and file in a line."""
        return " · ".join(filter(None, (self.date, self.where, self.source)))


@dataclass(frozen=True)
class Kind:
    """A study: identified by the ``keys`` of its JSON and by its ``study``, if it has one."""

    title: str
    keys: Set[str]
    report: Callable[[Row], Report | Sheet]
    plots: Callable[[Row], Sequence[Plot]] = lambda result: ()
    study: str | None = None

    def fits(self, result: object) -> bool:
        if not isinstance(result, dict) or not self.keys <= result.keys():
            return False
        return self.study in (None, result.get("study"))

    def told(self, result: Row) -> Report:
        """Tables and notes."""
        found = self.report(result)
        return found if isinstance(found, Report) else Report([found])


def _of(title: str, study: str, report: Callable[[Row], Report | Sheet], more: Callable[[Row], Sequence[Plot]]) -> Kind:
    """A study with columns, and rows with times by column."""
    return Kind(title, {"columns", "rows"}, report, more, study)


KINDS = (
    _of("Scaling: run time against size", "scaling", scaling.report, outline),
    Kind("CPU: the numba backend and PyWavelets", {"cases", "first_calls"}, denoise.report, plots.cpu),
    Kind("CPU: run times by threads", {"rows", "caches", "copy"}, by_threads.report, plots.threads, "threads"),
    Kind("CPU: threads that pay", {"rows"}, grains.report, study="grains"),
    Kind("CPU: calls beside busy programs", {"rows"}, busy.TABLE, study="calls beside busy programs"),
    Kind("CPU: peak memory", {"rows"}, peak_memory.report, study="peak memory"),
    Kind("GPU: denoising and its kernels", {"cases", "kernels", "copy"}, gpu_denoise.report, plots.cuda),
    _of("Threads per block", "blocks", blocks.report, outline),
    _of("1-D Laplace operator: access to shared samples", "laplace1d", laplace1d.report, lambda r: outline(r, "2008")),
    _of("2-D Laplace filter: access to shared pixels", "laplace2d", laplace2d.report, lambda r: outline(r, "2017")),
    Kind("MODWT: the numba backend and PyWavelets' SWT", {"cases", "memory", "crossover"}, modwt.TABLE),
    Kind("MODWT on a GPU", {"rows"}, gpu_modwt.TABLE, study="modwt on a GPU"),
    Kind("Rule js on a GPU", {"rows"}, local_shrinkage.TABLE, study="js on a GPU"),
    Kind("Short rows on a GPU", {"rows"}, short_rows.TABLE, study="short rows on a GPU"),
    Kind("Dual-tree wavelets on a GPU", {"rows"}, dual_tree.TABLE, study="dual tree on a GPU"),
    Kind("First calls on a GPU", {"rows", "capability"}, first_call.TABLE, study="first calls on a GPU"),
    Kind("First use of a GPU", {"rows", "released"}, first_use.TABLE, study="first use of a GPU"),
    Kind("Arrays on a GPU, each met once", {"rows", "gathers"}, fresh_arrays.report, study="arrays met once"),
    Kind("NumPy arrays in a user's loop", {"rows", "constants"}, host_loops.report, study="loops over NumPy arrays"),
    Kind("Several GPUs of one host", {"gpus"}, multi_gpu.report, study="several GPUs"),
    Kind("Dask: a volume on one and on two processes", {"rows", "merging"}, dask_scaling.report, study="dask"),
    Kind("ObsPy streams: batch and loop", {"rows"}, obspy_streams.TABLE, study="obspy"),
    Kind("Two dimensions: PyWavelets and scikit-image", {"gains"}, two_dimensions.report, study="sections"),
    Kind("Two dimensions on a GPU", {"rows", "wavelet"}, panels.TABLE, study="sections on a GPU"),
    Kind("Batches: one command for many files", {"rows"}, batches.TABLE, study="batches"),
    Kind("Files larger than memory", {"limits"}, streaming.TABLE, study="streaming"),
    Kind("Fuzz tests of the readers", {"kinds", "long"}, fuzzing.report, study="fuzzing"),
    Kind(
        "SKE: kernels that its constants are fitted to",
        {"device", "microbenchmarks", "rows"},
        validation.shipped_report,
    ),
    Kind("SKE: predicted and measured kernels", {"device", "rows"}, validation.shipped_report, plots.ske),
    Kind("Kernels compiled for every GPU", {"rows", "ptxas"}, compiled.report, study="compiled kernels"),
    Kind(
        "Launch shapes: chosen by the model and fixed",
        {"fixed", "rows"},
        launch_shapes.report,
        plots.launch_shapes,
        "launch shapes",
    ),
    Kind("Crossover size of the GPU backend", {"calls", "first"}, gpu_crossover.report, plots.cuda_crossover),
    Kind("Crossover size of the numba backend", {"one row", "many rows"}, crossover.report, plots.crossover),
    Kind(
        "Quality: errors of each rule on known signals", {"parts", "columns"}, quality.report, plots.quality, "quality"
    ),
    Kind("Real noise: what is gained, and picks", {"gains", "picks"}, real_noise_report.report, study="real noise"),
    Kind(
        "Sections: what is gained beside other methods",
        {"cases", "tuned"},
        sections_report.report,
        study="quality of sections",
    ),
    Kind("Ranks that need no clean signal, and true ones", {"rows", "methods"}, ranking.report, study="ranking"),
    Kind("Leakage test: false alarms and power", {"alarms", "power"}, leakage.report, study="leakage"),
    Kind("Trust report: how often it is right", {"rows", "noise"}, trust.report, study="trust"),
    Kind("Viewing: from a change to the pixels", {"rows"}, viewing.report, study="viewing"),
    Kind("Another study", {"study", "columns", "rows"}, outline_report, outline),
)
"""In the order of their sections."""
FIGURES: dict[Callable[[Row], Sequence[Plot]], Callable[[Row], Iterable[Figure]]] = {
    plots.cpu: summary.cpu,
    plots.cuda: summary.cuda,
    plots.ske: summary.ske,
    plots.quality: summary.quality,
}
"""Of the studies in the summary, by their plots."""


def kind_of(result: object) -> tuple[int, Kind] | None:
    """The first kind that fits, with its place."""
    return next(((place, kind) for place, kind in enumerate(KINDS) if kind.fits(result)), None)


def sections(paths: Iterable[Path]) -> list[Section]:
    """Of every file. Raises NotAStudy, naming it, for another one; OSError if one cannot be read."""
    found = [section for _, section in sorted((_section(path) for path in paths), key=lambda pair: pair[0])]
    alike = {title: [other for other in found if other.title == title] for title in {one.title for one in found}}
    return [
        replace(section, title=section.title + _apart(section, alike[section.title]), name=f"study-{i}")
        for i, section in enumerate(found, 1)
    ]


def _apart(section: Section, alike: Sequence[Section]) -> str:
    """What tells it from others of its title: the machine or, on one machine, the file."""
    if len(alike) == 1:
        return ""
    apart = section.where if len({other.where for other in alike}) == len(alike) else section.source
    return f" ({' '.join(re.sub(r'[(]R[)]|Processor|@.*', '', apart).split())})"


def _section(path: Path) -> tuple[int, Section]:
    """With the place of its kind."""
    try:
        result = json.loads(path.read_bytes(), parse_constant=_no_number)
    except ValueError as error:
        raise NotAStudy(f"{path}: this is no JSON: {error}") from error
    found = kind_of(result)
    if found is None:
        raise NotAStudy(f"{path}: this is JSON, but no result of a study")
    place, kind = found
    try:
        figures = list(FIGURES[kind.plots](result)) if kind.plots in FIGURES else []
        made = kind.told(result), kind.plots(result), figures
        return place, Section(kind.title, path.name, _date(result), _machine(result), *made)
    except DAMAGED as error:
        raise NotAStudy(f"{path}: a damaged result of a study: {error!r}") from error


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _date(result: Row) -> str:
    return str(result.get("date") or result.get("environment", {}).get("date", ""))


def _machine(result: Row) -> dict[str, str]:
    """GPU, processor and what else the study recorded, the most telling first."""
    where = {**result.get("host", {}), **result.get("environment", {})}
    device = result.get("device")
    versions = where.get("versions") or result.get("versions") or {}
    facts = {
        "GPU": where.get("gpu") or (device["name"] if isinstance(device, dict) else device),
        "processor": where.get("processor"),
        "cores": where.get("cores") or result.get("cores"),
        "threads": where.get("threads"),
        "load": None if where.get("load") is None else f"{where['load']:.1f}",
        "Python": where.get("python"),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items() if version),
        "commit": where.get("commit"),
    }
    return {name: str(value) for name, value in facts.items() if value}

"""What is on the page of `wavefilt bench report`: a section for each JSON of a study, with tables, plots and notes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wavefilt.benchmarks.common import fuzzing
from wavefilt.benchmarks.common.tables import Sheet
from wavefilt.benchmarks.cpu import modwt
from wavefilt.benchmarks.cpu import panels as two_dimensions
from wavefilt.benchmarks.gpu import blocks_report, denoise, launch_shapes, multi_gpu, panels
from wavefilt.benchmarks.gpu import modwt as stationary_gpu
from wavefilt.benchmarks.laplace1d import report
from wavefilt.benchmarks.laplace2d import report as laplace2d_report
from wavefilt.benchmarks.quality import report as quality_report
from wavefilt.benchmarks.scaling import report as scaling_report
from wavefilt.benchmarks.ske import validation
from wavefilt.benchmarks.ske.fit import launches
from wavefilt.benchmarks.throughput import batches, dask_scaling, obspy_streams, streaming
from wavefilt.ske import calibration

from . import plots
from . import tables as sheets
from .figures import Plot
from .outline import outline

RESULTS = Path(__file__).resolve().parents[1] / "results"

Content = tuple[list[Sheet], list[str], list[Plot]]
"""Tables, notes and plots."""


class NotAStudy(ValueError):
    """A file that no study wrote."""


DAMAGED = (KeyError, IndexError, TypeError, AttributeError, ValueError, ArithmeticError)
"""What comes of a result in which something is missing or of another kind."""


@dataclass(frozen=True)
class Section:
    """``machine`` are names and values of what the figures depend on."""

    title: str
    source: str
    date: str
    machine: dict[str, str]
    sheets: Sequence[Sheet]
    notes: Sequence[str]
    plots: Sequence[Plot]


@dataclass(frozen=True)
class Kind:
    """A study, told by the ``keys`` of its JSON and by its ``study``, if it has one."""

    title: str
    keys: Set[str]
    content: Callable[[Any], Content]
    study: str | None = None

    def fits(self, result: Any) -> bool:
        return isinstance(result, dict) and self.keys <= result.keys() and self.study in (None, result.get("study"))


def _ske(result: Any) -> Content:
    """With the shipped calibration of the GPU; without one, only what was measured."""
    rows = [row for row in result["rows"] if "error" not in row]
    try:
        device = calibration.of(result["device"]["name"])
    except calibration.WrongDevice as error:
        return [sheets.measured(rows)], [f"No predictions: {error}."], []
    made = [launches(row) for row in rows]
    predictions = {name: [model(launch, device) for launch in made] for name, model in validation.MODELS.items()}
    return *sheets.from_markdown(validation.table(result, device, every=True)), plots.ske(rows, predictions)


OUTLINE = {"columns", "rows"}
"""Of the studies whose result has the form of `scaling.run`."""
KINDS = (
    Kind("Scaling: one denoise at the sizes of 2010", OUTLINE,
         lambda r: (list(scaling_report.sheets(r)), scaling_report.notes(r), outline(r)), "scaling"),
    Kind("CPU: the numba backend beside PyWavelets", {"cases", "first_calls"},
         lambda r: (*sheets.cpu(r), plots.cpu(r))),
    Kind("GPU: denoises and their kernels", {"cases", "kernels", "copy"},
         lambda r: (*sheets.from_markdown(denoise.table(r)), plots.cuda(r))),
    Kind("Threads of a block", {"study", "rows", "columns", "choices"},
         lambda r: ([*blocks_report.sheets(r)], blocks_report.notes(r), outline(r)), "blocks"),
    Kind("1-D Laplace operator: ways to read a sample", OUTLINE,
         lambda r: ([report.sheet(r)], report.notes(r), outline(r, "2008")), "laplace1d"),
    Kind("2-D Laplace filter: ways to share the pixels of a tile", OUTLINE,
         lambda r: ([laplace2d_report.sheet(r)], laplace2d_report.notes(r), outline(r, "2017")), "laplace2d"),
    Kind("MODWT: the numba backend beside PyWavelets' SWT", {"cases", "memory", "crossover"},
         lambda r: ([modwt.table(r)], [], [])),
    Kind("MODWT on a GPU", {"study", "rows"}, lambda r: ([stationary_gpu.table(r)], [], []), "modwt on a GPU"),
    Kind("Several GPUs of one host", {"study", "gpus"},
         lambda r: ([multi_gpu.table(r)], [multi_gpu.note(r)], []), "several GPUs"),
    Kind("Dask: a volume on one and two processes", {"study", "rows", "merging"},
         lambda r: ([dask_scaling.table(r)], dask_scaling.notes(r), []), "dask"),
    Kind("ObsPy streams: all traces in one call, and one by one", {"study", "rows", "repeats"},
         lambda r: ([obspy_streams.table(r)], [], []), "obspy"),
    Kind("Two dimensions: PyWavelets and scikit-image beside the numba backend", {"study", "gains"},
         lambda r: ([two_dimensions.times_table(r), two_dimensions.gains_table(r)], [], []), "sections"),
    Kind("Two dimensions on a GPU", {"study", "rows", "wavelet"},
         lambda r: ([panels.table(r)], [], []), "sections on a GPU"),
    Kind("Batches: one command for many files", {"study", "rows"}, lambda r: ([batches.table(r)], [], []), "batches"),
    Kind("Files larger than memory", {"study", "limits"}, lambda r: ([streaming.table(r)], [], []), "streaming"),
    Kind("Readers against bytes of a fuzzer", {"study", "kinds", "long"},
         lambda r: (fuzzing.tables(r), [f"Made by `{r['command']}`."], []), "fuzzing"),
    Kind("SKE: predicted and measured kernels", {"device", "rows"}, _ske),
    Kind("Launch shapes: the model's choice and a fixed one", {"fixed", "rows"},
         lambda r: ([sheets.launch_shapes(r)], launch_shapes.table(r).splitlines()[-1:], plots.launch_shapes(r)),
         "launch shapes"),
    Kind("From what size the GPU pays", {"calls", "first"},
         lambda r: (*sheets.cuda_crossover(r), plots.cuda_crossover(r))),
    Kind("From what size numba pays", {"one row", "many rows"},
         lambda r: (*sheets.crossover(r), plots.crossover(r))),
    Kind("Quality: how near each rule comes to a known signal", {"parts", "columns"},
         lambda r: (quality_report.sheets(r), quality_report.notes(r), plots.quality(r)), "quality"),
    Kind("Another study", {"study", *OUTLINE}, lambda r: ([sheets.outline(r)], [r["method"]], outline(r))),
)  # fmt: skip
"""In the order of their sections."""


def sections(paths: Iterable[Path]) -> list[Section]:
    """Of every file. Raises NotAStudy, naming it, for another one; OSError if one cannot be read."""
    found = [_section(path) for path in paths]
    return [section for _, section in sorted(found, key=lambda pair: pair[0])]


def _section(path: Path) -> tuple[int, Section]:
    """With the place of its kind."""
    try:
        result = json.loads(path.read_bytes(), parse_constant=_no_number)
    except ValueError as error:
        raise NotAStudy(f"{path}: this is no JSON: {error}") from error
    place = next((i for i, kind in enumerate(KINDS) if kind.fits(result)), None)
    if place is None:
        raise NotAStudy(f"{path}: this is JSON, but no result of a study")
    try:
        content = KINDS[place].content(result)
        return place, Section(KINDS[place].title, path.name, _date(result), _machine(result), *content)
    except DAMAGED as error:
        raise NotAStudy(f"{path}: a damaged result of a study: {error!r}") from error


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _date(result: dict[str, Any]) -> str:
    return str(result.get("date") or result.get("environment", {}).get("date", ""))


def _machine(result: dict[str, Any]) -> dict[str, str]:
    """GPU, processor and what else the study recorded, the most telling first."""
    where = {**result.get("host", {}), **result.get("environment", {})}
    device = result.get("device")
    versions = where.get("versions") or result.get("versions") or {}
    facts = {
        "GPU": where.get("gpu") or (device["name"] if isinstance(device, dict) else device),
        "processor": where.get("processor"),
        "cores": where.get("cores") or result.get("cores"), "threads": where.get("threads"),
        "load": None if where.get("load") is None else f"{where['load']:.1f}", "Python": where.get("python"),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items() if version),
        "commit": where.get("commit"),
    }  # fmt: skip
    return {name: str(value) for name, value in facts.items() if value}

"""Devices of the calibrated model: measured calibrations, and data sheets of GPUs that were not measured.

`wavefilt ske calibrate` makes a calibration; the one in `data/h200.json` is bundled. A data sheet holds published
figures only, each with its source; those in `data/data_sheets.json` are bundled, and `from_data_sheet` turns one into a
calibration with the help of the bundled H200.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from wavefilt.vocabulary import check

from .occupancy import amount

FORMAT, DATA_SHEET = 3, "data sheet"
FOLDER = Path(__file__).parent / "data"
DEFAULT, DEFAULT_SHEET = "h200", "h200-sheet"
COPIES = 0.85
"""Share of the published DRAM bandwidth that copies reach: 85 % on an A100 and an H100 PCIe, 93 % on an L40 (RRZE's
gpu-benches, "scale" of gpu-stream)."""
CAUTION = "From a data sheet, not measured: expect errors of 20 to 40 %; use the estimates to rank variants."

FIGURES = (
    "multiprocessors",
    "clock",  # the highest, in Hz
    "cache",  # bytes of L2
    "memory",  # bytes
    "dram bandwidth",  # bytes per second
    "l2 bandwidth",  # bytes per second, of reads; optional
    "l1 latency",  # cycles
    "shared latency",
    "l2 latency",
    "dram latency",
)
"""Figures of a data sheet."""
OPTIONAL = "l2 bandwidth"
LANES = {
    "7.0": (64, 32),
    "7.2": (64, 32),
    "7.5": (64, 2),
    "8.0": (64, 32),
    "8.6": (128, 2),
    "8.7": (128, 2),
    "8.9": (128, 2),
    "9.0": (128, 64),
    "10.0": (128, 64),
    "12.0": (128, 2),
}
"""Multiply-adds per cycle and multiprocessor in float32 and float64, by compute capability (CUDA's table of arithmetic
throughput)."""

Table = tuple[tuple[float, float], ...]
"""Pairs (x, value), by increasing x."""


class WrongDevice(ValueError):
    """A calibration is used for a device other than its own."""


@dataclass(frozen=True)
class Operation:
    """An instruction: ``latency`` in cycles until its result can be used, ``rate`` in warp instructions per cycle of a
    fully occupied multiprocessor."""

    latency: float
    rate: float


@dataclass(frozen=True)
class Calibration:
    """Constants of a device. Times are in seconds, latencies in clock cycles, sizes in bytes.

    Parameters
    ----------
    name, capability : str
        The name that the driver reports, and a compute capability of `wavefilt.ske.CAPABILITIES`.
    multiprocessors, cache, memory : int
        Number of multiprocessors, sizes of L2 and of the device memory.
    clock : float
        Frequency under load, in Hz.
    launch : float
        Time of an empty kernel in a CUDA graph.
    latency : mapping
        Latency of a load from "l1", "shared", "l2" and "dram".
    operations : mapping of str to Operation
    bandwidth, reads, writes : Table
        Bytes per second against the bytes touched: of equal amounts of reads and writes, of reads alone and of writes
        alone. The last two may be empty.
    barrier : Table
        Cycles of a barrier against the threads of the block.
    theta, fit : mapping
        Fitted parameters of the model, and the residuals of the fit.
    measured : mapping
        Date, device, versions, and the spread of the measurements.
    sources : mapping
        Sources of the figures, if the constants are from a data sheet.
    """

    name: str
    capability: str
    multiprocessors: int
    clock: float
    cache: int
    memory: int
    launch: float
    latency: Mapping[str, float]
    operations: Mapping[str, Operation]
    bandwidth: Table
    barrier: Table
    reads: Table = ()
    writes: Table = ()
    theta: Mapping[str, float] = field(default_factory=dict)
    fit: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def basis(self) -> str:
        """Origin of the constants: "calibration" or "data sheet"."""
        return DATA_SHEET if self.sources else "calibration"

    @property
    def caution(self) -> str:
        """A warning to print with the estimates; empty for a calibration."""
        return CAUTION if self.sources else ""

    def require(self, name: str) -> None:
        """Raise WrongDevice, with both names, unless ``name`` is the calibrated device."""
        if name != self.name:
            raise WrongDevice(
                f"this calibration is of {self.name}, not of {name}; make one with wavefilt ske calibrate -o FILE"
            )

    def to_json(self) -> str:
        """Return the text of a calibration file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Calibration:
        """Read a calibration file. Raises ValueError for any other text."""
        try:
            facts = json.loads(text)
            if facts.pop("format") != FORMAT:
                raise ValueError(f"its format must be {FORMAT}")
            for name in ("bandwidth", "barrier", "reads", "writes"):
                facts[name] = tuple((float(at), float(value)) for at, value in facts.get(name, ()))
            facts["operations"] = {name: Operation(**entry) for name, entry in facts["operations"].items()}
            return Calibration(**facts)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"this is not a calibration of a device: {error!r}") from error


@cache
def _data_sheets() -> dict[str, dict[str, Any]]:
    sheets: dict[str, dict[str, Any]] = json.loads((FOLDER / "data_sheets.json").read_text())
    return sheets


def names() -> list[str]:
    """Return the names of the bundled devices, calibrations first."""
    return [DEFAULT, *sorted(_data_sheets())]


def load(device: str) -> Calibration:
    """Return the bundled device of this name, or read a file whose name ends in ".json".

    A file holds a calibration or a data sheet. Raises ValueError, with the known names, for an unknown name and for a
    file that holds neither; OSError if a file cannot be read.
    """
    if device.endswith(".json"):
        text = Path(device).read_text()
        try:
            facts = json.loads(text)
        except ValueError:
            facts = None
        if isinstance(facts, dict) and facts.get("format") == DATA_SHEET:
            return from_data_sheet(facts)
        return Calibration.from_json(text)
    name = device.lower()
    check("device", name, names(), "a file NAME.json: a calibration or a data sheet")
    return default() if name == DEFAULT else from_data_sheet(_data_sheets()[name])


def default() -> Calibration:
    """Return the bundled calibration, for computers without a GPU."""
    return Calibration.from_json((FOLDER / f"{DEFAULT}.json").read_text())


def of(name: str) -> Calibration:
    """Return the bundled calibration of the device that the driver calls ``name``. Raises WrongDevice without one."""
    bundled = default()
    if name == bundled.name:
        return bundled
    sheets = [key for key, facts in _data_sheets().items() if facts["name"] == name]
    raise WrongDevice(
        f"no calibration of {name} is bundled (only {bundled.name}); "
        "make one with wavefilt ske calibrate -o FILE and give it as --device FILE"
        + "".join(f", or use its data sheet: --device {sheet}" for sheet in sheets)
    )


def from_data_sheet(facts: Mapping[str, Any]) -> Calibration:
    """Make a calibration of published figures, with the H200's constants where nothing is published.

    Rates of multiply-adds follow from the compute capability, with four issue slots and one wavefront per cycle.
    Bandwidths have the H200's curve against the share of L2 that is touched: within L2 scaled by the published L2
    bandwidths (by multiprocessors times clock where none is published), beyond it such that large copies reach
    `COPIES` of the published DRAM bandwidth. Launch time, barriers, instruction latencies and fitted parameters are
    those of the H200.

    Parameters
    ----------
    facts : mapping
        ``name``, ``capability``, and for each of `FIGURES` a mapping with ``value`` and ``source``.

    Raises
    ------
    ValueError
        If an entry is missing, unknown or wrong; it is named.
    """
    name, capability, figures, sources = _checked(facts)
    like = default()
    published = {key: entry["value"] for key, entry in _data_sheets()[DEFAULT_SHEET].items() if key in FIGURES}
    speed = figures["multiprocessors"] * figures["clock"] / (published["multiprocessors"] * published["clock"])
    inside = figures[OPTIONAL] / published[OPTIONAL] if OPTIONAL in figures else speed
    outside = COPIES * figures["dram bandwidth"] / like.bandwidth[-1][1]
    larger = figures["cache"] / like.cache

    def scaled(table: Table) -> Table:
        return tuple((at * larger, value * (inside if at <= like.cache else outside)) for at, value in table)

    lanes = dict(zip(("fma", "fma64"), LANES[capability], strict=True))
    operations = {key: Operation(like.operations[key].latency, lane / 32) for key, lane in lanes.items()}
    operations |= {"issue": Operation(1.0, 4.0), "wavefront": Operation(figures["shared latency"], 1.0)}
    return replace(
        like,
        name=name,
        capability=capability,
        multiprocessors=int(figures["multiprocessors"]),
        clock=figures["clock"],
        cache=int(figures["cache"]),
        memory=int(figures["memory"]),
        latency={place: figures[f"{place} latency"] for place in ("l1", "shared", "l2", "dram")},
        operations=operations,
        bandwidth=scaled(like.bandwidth),
        reads=scaled(like.reads),
        writes=scaled(like.writes),
        fit={},
        measured={},
        sources=sources,
    )


def _checked(facts: Mapping[str, Any]) -> tuple[str, str, dict[str, float], dict[str, str]]:
    """Return the name, capability, figures and sources of a data sheet."""
    name, capability = facts.get("name"), facts.get("capability")
    if not isinstance(name, str) or not name:
        raise ValueError("the name of the GPU is missing in this data sheet")
    check("capability", capability, LANES)
    entries = {key: entry for key, entry in facts.items() if key not in ("format", "name", "capability")}
    missing = [key for key in FIGURES if key not in entries and key != OPTIONAL]
    unknown = [key for key in entries if key not in FIGURES]
    if missing or unknown:
        wrong = [f"{key} is missing" for key in missing] + [f"{key} is unknown" for key in unknown]
        raise ValueError(f"data sheet of {name}: {', '.join(wrong)}")
    figures, sources = {}, {}
    for key, entry in entries.items():
        if not isinstance(entry, dict) or set(entry) != {"value", "source"} or not str(entry["source"]):
            raise ValueError(f"data sheet of {name}: {key} must have a value and a source")
        figures[key] = amount(key, entry["value"])
        if not figures[key]:
            raise ValueError(f"data sheet of {name}: {key} must be above 0")
        sources[key] = str(entry["source"])
    return name, str(capability), figures, sources

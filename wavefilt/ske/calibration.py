"""The calibration of a device: constants that microbenchmarks measured on it, and the parameters fitted to them.

`wavefilt ske calibrate` makes one; those in `devices/` are shipped. A calibration speaks of one kind of device only.
`published` makes one for a GPU that was not measured, from a data sheet; those in `sheets/` are shipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from wavefilt.vocabulary import check

from . import datasheet
from .datasheet import LANES, DataSheet

FORMAT = 2
FOLDER = Path(__file__).parent / "devices"
DEFAULT = "h200"
ITS_SHEET = "h200-sheet"
COPIES = 0.85
"""Of the published bandwidth of DRAM, what copies reach: 85 % on an A100 and on an H100 PCIe, 93 % on an L40 (RRZE's
gpu-benches, "scale" of gpu-stream)."""
CAUTION = "From a data sheet, not measured: expect errors of 20 to 40 %; the ranking is what it is for."

Table = tuple[tuple[float, float], ...]
"""Pairs (where, value), by increasing ``where``."""


class WrongDevice(ValueError):
    """A calibration of one device is to be used for another."""


@dataclass(frozen=True)
class Operation:
    """An instruction: ``latency`` in cycles until its result can be used, ``rate`` in warp instructions a cycle of a
    multiprocessor that has enough of them."""

    latency: float
    rate: float


@dataclass(frozen=True)
class Calibration:
    """Constants of a device. Times are in seconds, latencies in clock cycles, sizes in bytes.

    ``name`` is the driver's, ``capability`` one of `wavefilt.ske.CAPABILITIES`, ``clock`` the frequency in Hz that
    was seen under load, ``cache`` the size of L2. ``launch`` is the time of an empty kernel in a graph, ``queued``
    in a stream; ``block`` the cycles an SM needs to start a block, by its threads. ``latency`` is of a load from
    "l1", "shared", "l2" and "dram". ``bandwidth`` in bytes a second by the bytes touched, of as many reads as writes;
    ``reads`` and ``writes`` of the one or the other alone, where they are known; ``barrier`` in cycles, by threads of
    the block; ``strides`` how much longer a load of a warp takes whose lanes read so many elements apart; ``warps`` the
    seconds of one copy by the warps on an SM, from which the latency-hiding term was fitted. ``theta`` are the fitted
    parameters of the model, ``hiding`` and ``fit`` what the fits left over, and ``measured`` when, with what, and how
    far measurements were spread. ``sources`` are of the figures of a data sheet, if it was made from one.
    """

    name: str
    capability: str
    multiprocessors: int
    clock: float
    cache: int
    memory: int
    launch: float
    queued: float
    block: Table
    latency: Mapping[str, float]
    operations: Mapping[str, Operation]
    bandwidth: Table
    barrier: Table
    strides: Table
    warps: Table
    reads: Table = ()
    writes: Table = ()
    theta: Mapping[str, float] = field(default_factory=dict)
    hiding: Mapping[str, Any] = field(default_factory=dict)
    fit: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def basis(self) -> str:
        """Whether it is a "calibration" or made of a "data sheet"."""
        return datasheet.FORMAT if self.sources else "calibration"

    @property
    def caution(self) -> str:
        """What to know of its estimates, if there is something."""
        return CAUTION if self.sources else ""

    def require_measured(self) -> None:
        """Raise WrongDevice for a data sheet."""
        if self.sources:
            raise WrongDevice(
                f"{self.name} is known from a data sheet only, and this takes a calibration of the device"
            )

    def require(self, name: str, force: bool = False) -> None:
        """Raise WrongDevice, naming both, unless ``name`` is the device calibrated, or ``force`` is given."""
        if name != self.name and not force:
            raise WrongDevice(
                f"this calibration is of {self.name}, not of {name}; calibrate it with "
                "wavefilt ske calibrate -o FILE, or force the use of another device's"
            )

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Calibration:
        """Raises ValueError for anything but a calibration of this format."""
        try:
            facts = json.loads(text)
            if facts.pop("format") != FORMAT:
                raise ValueError(f"it must be of format {FORMAT}")
            for name in ("block", "bandwidth", "barrier", "strides", "warps", "reads", "writes"):
                facts[name] = tuple((float(at), float(value)) for at, value in facts.get(name, ()))
            facts["operations"] = {name: Operation(**entry) for name, entry in facts["operations"].items()}
            return Calibration(**facts)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"this is no calibration of a device: {error!r}") from error


def names() -> list[str]:
    """Devices whose calibration is shipped."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load(device: str) -> Calibration:
    """The shipped calibration or data sheet of this name, or that in a file whose name ends in .json.

    Raises ValueError, with the names there are, for another word, and for a file that is neither; OSError if a file
    cannot be read.
    """
    if device.endswith(".json"):
        return _made_of(Path(device).read_text())
    name = device.lower()
    check("device", name, [*names(), *datasheet.names()], "a file NAME.json: a calibration or a data sheet")
    folder = FOLDER if name in names() else datasheet.FOLDER
    return _made_of((folder / f"{name}.json").read_text())


def _made_of(text: str) -> Calibration:
    return published(DataSheet.from_json(text)) if datasheet.is_one(text) else Calibration.from_json(text)


def published(sheet: DataSheet) -> Calibration:
    """What a data sheet tells, and for what it does not the calibration of the default device.

    Rates of instructions follow from the compute capability, with four issue slots and one wavefront a cycle.
    Bandwidths within L2 have the shape of the default device's against the share of L2 that is touched, in proportion
    to the published bandwidths of L2 (to multiprocessors times clock where none is published); beyond it, copies reach
    `COPIES` of the published bandwidth of DRAM. Times and cycles of launches, blocks, barriers and instructions, and
    the parameters, are those of the default device.
    """
    like = default()
    its = DataSheet.from_json((datasheet.FOLDER / f"{ITS_SHEET}.json").read_text()).figures
    told = sheet.figures
    speed = told["multiprocessors"] * told["clock"] / (its["multiprocessors"] * its["clock"])
    inside = told["l2 bandwidth"] / its["l2 bandwidth"] if "l2 bandwidth" in told else speed
    outside = COPIES * told["dram bandwidth"] / like.bandwidth[-1][1]
    larger = told["cache"] / like.cache

    def scaled(table: Table) -> Table:
        return tuple((at * larger, value * (inside if at <= like.cache else outside)) for at, value in table)

    lanes = dict(zip(("fma", "fma64"), LANES[sheet.capability], strict=True))
    operations = {name: Operation(like.operations[name].latency, of / 32) for name, of in lanes.items()}
    operations |= {"issue": Operation(1.0, 4.0), "wavefront": Operation(told["shared latency"], 1.0)}
    return replace(
        like,
        name=sheet.name,
        capability=sheet.capability,
        multiprocessors=int(told["multiprocessors"]),
        clock=told["clock"],
        cache=int(told["cache"]),
        memory=int(told["memory"]),
        latency={place: told[f"{place} latency"] for place in ("l1", "shared", "l2", "dram")},
        operations=operations,
        bandwidth=scaled(like.bandwidth),
        reads=scaled(like.reads),
        writes=scaled(like.writes),
        warps=(),
        hiding={},
        fit={},
        measured={},
        sources=sheet.sources,
    )


def default() -> Calibration:
    """The shipped one that is used where there is no GPU."""
    return Calibration.from_json((FOLDER / f"{DEFAULT}.json").read_text())


def of(name: str) -> Calibration:
    """The shipped calibration of the device that the driver calls ``name``. Raises WrongDevice if there is none."""
    shipped = {calibration.name: calibration for calibration in map(load, names())}
    if name in shipped:
        return shipped[name]
    sheets = [sheet for sheet in datasheet.names() if load(sheet).name == name]
    raise WrongDevice(
        f"no calibration of {name} is shipped (there are: {', '.join(shipped) or 'none'}); "
        "make one with wavefilt ske calibrate -o FILE and give it as --device FILE"
        + "".join(f", or use its data sheet: --device {sheet}" for sheet in sheets)
    )

"""The calibration of a device: constants that microbenchmarks measured on it, and the parameters fitted to them.

`wavefilt ske calibrate` makes one; those in `devices/` are shipped. A calibration speaks of one kind of device only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wavefilt.vocabulary import check

FORMAT = 2
FOLDER = Path(__file__).parent / "devices"
DEFAULT = "h200"

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
    far measurements were spread.
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
    """The shipped calibration of this name, or the one in a file whose name ends in .json.

    Raises ValueError, with the names there are, for another word; OSError if a file cannot be read.
    """
    if device.endswith(".json"):
        return Calibration.from_json(Path(device).read_text())
    check("device", device.lower(), names(), "a file NAME.json that wavefilt ske calibrate wrote")
    return Calibration.from_json((FOLDER / f"{device.lower()}.json").read_text())


def default() -> Calibration:
    """The shipped one that is used where there is no GPU."""
    return load(DEFAULT)


def of(name: str) -> Calibration:
    """The shipped calibration of the device that the driver calls ``name``. Raises WrongDevice if there is none."""
    shipped = {calibration.name: calibration for calibration in map(load, names())}
    if name in shipped:
        return shipped[name]
    raise WrongDevice(
        f"no calibration of {name} is shipped (there are: {', '.join(shipped) or 'none'}); "
        "make one with wavefilt ske calibrate -o FILE and give it as --device FILE"
    )

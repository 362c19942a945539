"""The paper's two examples computed again, and which of its claims the model bears out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from wavefilt.vocabulary import Hiding

from .classic import Correction, Estimate, Kernel, blocks_of, estimate, threads_by_shared
from .tables import DEVICES, communication, computation

GRID = (480, 270)
"""Pixels, each a thread."""
WIDTH = 32
HEIGHTS = (*range(1, 17), 24, 32)
"""Blocks of 32 x 1 to 32 x 16 as in the paper, and two larger ones that are legal too."""
NEIGHBOURS = HEIGHTS[:16]
DEVICE = "GTX670"

KERNELS = {
    "resize": Kernel(computation({"int mul": 16, "add": 12, "compare": 3}), communication({"global": 6})),
    "rgb2gray": Kernel(244, communication({"global": 4})),  # printed as 6 * 500 = 2000
    "smooth": Kernel(960, communication({"global": 12})),
}
"""Of two the paper gives the sums only. None has registers, shared memory or barriers given."""

SHARED_OF_A_THREAD = 1156
"""Bytes of shared memory of a thread in the paper's H.264 intra prediction, 3000 threads in all."""
STREAMS = 3000


class Extreme(NamedTuple):
    """The least time, or a time above or below both neighbours, at blocks of this height."""

    kind: Literal["minimum", "high", "low"]
    height: int

    def __str__(self) -> str:
        return f"{self.kind} at {WIDTH}x{self.height}"


CLAIMED = (Extreme("minimum", 4), Extreme("high", 11), Extreme("low", 12), Extreme("high", 13))
"""What the paper says of its model."""
MEASURED = (Extreme("high", 7), Extreme("high", 15))
"""What it says of its measurements beyond that."""


def extremes(times: Mapping[int, float]) -> set[Extreme]:
    """The extremes of times by height, over heights 1 to 16."""
    found = {Extreme("minimum", min(NEIGHBOURS, key=lambda h: times[h]))}
    for h in NEIGHBOURS[1:-1]:
        if times[h] > max(times[h - 1], times[h + 1]):
            found.add(Extreme("high", h))
        if times[h] < min(times[h - 1], times[h + 1]):
            found.add(Extreme("low", h))
    return found


@dataclass(frozen=True)
class Reproduction:
    """Estimates of each kernel by the height of its blocks, for one reading of the paper."""

    hiding: Hiding
    correction: Correction | None
    estimates: dict[str, dict[int, Estimate]]

    def times(self, kernel: str) -> dict[int, float]:
        """Seconds by height."""
        return {h: e.Tn for h, e in self.estimates[kernel].items()}

    @property
    def extremes(self) -> dict[str, set[Extreme]]:
        """Of each kernel."""
        return {kernel: extremes(self.times(kernel)) for kernel in KERNELS}

    def mark(self, kernel: str, height: int) -> Extreme | None:
        """What to call the time at this height, if it is an extreme."""
        here = {extreme.kind: extreme for extreme in self.extremes[kernel] if extreme.height == height}
        return here.get("minimum") or next(iter(here.values()), None)

    @property
    def active(self) -> list[tuple[int, int]]:
        """nb and nw by height, the same for all kernels: the paper's Table 5."""
        return [(e.nb, e.nw) for e in self.estimates["resize"].values()]


def reproduce(hiding: Hiding = "product", correction: Correction | None = None) -> Reproduction:
    """Times of the three kernels on a GTX 670, 480 x 270 pixels, blocks 32 wide. Raises ValueError as `estimate`."""
    shapes = {h: (WIDTH * h, blocks_of(GRID, (WIDTH, h))) for h in HEIGHTS}
    estimates = {
        name: {h: estimate(kernel, DEVICE, *s, hiding=hiding, correction=correction) for h, s in shapes.items()}
        for name, kernel in KERNELS.items()
    }
    return Reproduction(hiding, correction, estimates)


def facts(result: Reproduction) -> dict[str, Any]:
    """The reproduction as a JSON object; times in seconds by height, ``nb`` and ``nw`` in the order of ``h``."""
    return {
        "device": DEVICE,
        "grid": list(GRID),
        "hiding": result.hiding,
        "correction": result.correction,
        "h": list(HEIGHTS),
        "kernels": {name: {str(h): t for h, t in result.times(name).items()} for name in KERNELS},
        "nb": [nb for nb, _ in result.active],
        "nw": [nw for _, nw in result.active],
        "claims": {str(c): {name: c in found for name, found in result.extremes.items()} for c in CLAIMED},
        "threads_by_shared": _by_shared(),
    }


def table(result: Reproduction) -> str:
    """The reproduction as text: times with their extremes, claims, and the example of shared memory."""
    found = result.extremes
    corrected = f"correction {result.correction}" if result.correction else "no correction"
    lines = [
        f"{DEVICE}, {GRID[0]} x {GRID[1]} pixels, hiding {result.hiding}, {corrected}; microseconds",
        f"{'block':<6}{'nb':>4}{'nw':>4}" + "".join(f"{name:>12}{'':8}" for name in KERNELS).rstrip(),
    ]
    for (nb, nw), h in zip(result.active, HEIGHTS, strict=True):
        marks = {name: result.mark(name, h) for name in KERNELS}
        kinds = {name: mark.kind if mark else "" for name, mark in marks.items()}
        cells = "".join(f"{1e6 * result.times(name)[h]:>12.3f} {kinds[name]:<7}" for name in KERNELS)
        lines.append(f"{f'{WIDTH}x{h}':<6}{nb:>4}{nw:>4}{cells}".rstrip())
    known = {*CLAIMED, *MEASURED, Extreme("low", 4)}
    new = sorted(set().union(*found.values()) - known, key=lambda extreme: (extreme.height, extreme.kind))
    lines.append("")
    for head, claims in {
        "claims of the paper about its model": CLAIMED,
        "measured there beyond that": MEASURED,
    }.items():
        lines.append(head)
        for claim in claims:
            verdicts = (f"{name} {'yes' if claim in some else 'NO'}" for name, some in found.items())
            lines.append(f"  {claim!s:<17}{', '.join(verdicts)}")
    lines += ["not mentioned there", f"  {', '.join(map(str, new)) or 'nothing'}"]
    lines += ["times of 32x1 and 32x2 (the paper calls both wrong) over that of 32x4;"]
    lines += ["of 32x4 to 32x16, the largest over the least (measured, these differ little)"]
    for name in KERNELS:
        times = result.times(name)
        flat = [times[h] for h in NEIGHBOURS[3:]]
        ratios = f"{times[1] / times[4]:.1f}, {times[2] / times[4]:.1f}; {max(flat) / min(flat):.2f}"
        lines.append(f"  {name:<17}{ratios}")
    total, per_sm = (list(threads.values()) for threads in _by_shared().values())
    lines += [
        "",
        f"H.264 example, {SHARED_OF_A_THREAD} bytes of shared memory a thread: threads on {', '.join(DEVICES)}",
        f"  {'as printed':<17}{', '.join(map(str, total))}",
        f"  {'SM by SM':<17}{', '.join(map(str, per_sm))}; {STREAMS} streams take {-(-STREAMS // per_sm[0])} "
        f"rounds on {next(iter(DEVICES))}",
    ]
    return "\n".join(lines)


def _by_shared() -> dict[str, dict[str, int]]:
    """Threads that shared memory leaves, by mode and device."""
    modes: tuple[Literal["total", "per_sm"], ...] = ("total", "per_sm")
    return {mode: {name: threads_by_shared(name, SHARED_OF_A_THREAD, mode) for name in DEVICES} for mode in modes}

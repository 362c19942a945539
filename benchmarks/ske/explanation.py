"""The estimated time of a kernel in its parts, beside the measured time: `wavefilt ske explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from wavefilt.backends.cuda.work_counts.transforms import Problem
from wavefilt.benchmarks.common.tables import Row, size
from wavefilt.plot import check_target, file_type, render
from wavefilt.ske.calibrated import LATENCY, CalibratedEstimate, estimate
from wavefilt.ske.calibration import Calibration

from . import fit
from .cases import Case
from .estimate import of_device, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PALETTE = ("#4d4d4d", "#999999", "#F0E442", "#56B4E9", "#CC79A7", "#0072B2", "#E69F00", "#009E73")
COLORS = dict(zip(("launch", "start", *LATENCY, "issue", "bandwidth"), PALETTE, strict=True))
"""Of the parts, in their order (Okabe and Ito's palette)."""
MEASURED = "#D55E00"


@dataclass(frozen=True)
class Explanation:
    """A case, the estimates of its launches, and its measured seconds if there are any."""

    case: Case
    device: Calibration
    found: Sequence[CalibratedEstimate]
    measured: float | None = None

    @property
    def seconds(self) -> float:
        """Estimated, of all launches."""
        return sum(one.seconds for one in self.found)

    @property
    def title(self) -> str:
        case = self.case
        samples = size(case.samples) if case.rows == 1 else f"{case.rows} x {size(case.samples)}"
        what = f"{case.kernel}, {case.wavelet}, {samples} samples"
        basis = " (data sheet)" if self.device.sources else ""
        return f"{what}, {case.threads} threads, tiles of {case.tile}: {self.device.name}{basis}"

    @property
    def comparison(self) -> str:
        """Estimated and measured time in a line."""
        if self.measured is None:
            return "not measured: that takes such a GPU, or --validation with results of wavefilt ske validate"
        error = self.seconds / self.measured - 1
        return f"measured {1e6 * self.measured:.2f} us, estimated {1e6 * self.seconds:.2f} us ({error:+.1%})"


def explained(
    kernel: str, wavelet: str, of: Problem, device: Calibration, rows: Sequence[Row] | None, here: bool
) -> Explanation:
    """The estimate, with the time in ``rows`` if the case is there, or else as measured on the GPU ``here``.

    Raises ValueError for rows without the case.
    """
    case = Case(kernel, wavelet, of.threads, of.samples, of.rows, of.tiles_of)
    if rows is not None:
        own = [row for row in rows if "seconds" in row and replace(Case.of(row), fit=False) == case]
        if not own:
            raise ValueError(f"no row has {', '.join(f'{key} {value}' for key, value in _key(case).items())}")
        launches, seconds = fit.launches(own[0]), float(own[0]["seconds"])
        return Explanation(case, device, [estimate(launch, device) for launch in launches], seconds)
    if not here:
        launches = fit.launches({**asdict(case), "launches": []})
        return Explanation(case, device, [estimate(launch, device) for launch in launches])
    from .measure import rows as measured

    (row,) = measured([case])
    return explained(kernel, wavelet, of, device, [row], here)


def _key(case: Case) -> Row:
    facts = asdict(case)
    del facts["fit"]
    return facts


def text(found: Explanation) -> str:
    """Every launch with its parts in microseconds, and the measured time."""
    return f"{found.title}\n\n{table(found.found, found.device)}\n\n{found.comparison}"


def facts(found: Explanation) -> Row:
    """For JSON."""
    launches = [asdict(one) for one in found.found]
    case = of_device(found.device) | _key(found.case)
    return case | {"estimate": found.seconds, "measured": found.measured, "launches": launches}


def to_file(found: Explanation, path: str) -> bytes:
    """`draw` as a file of the type that ``path`` ends in. Raises ValueError for an unknown one, ImportError without
    matplotlib."""
    check_target(path)
    return render(draw(found), file_type(path), 110)


def draw(found: Explanation) -> Figure:
    """A bar for each launch, stacked of its parts, one for the whole if there are several, and the measured time."""
    from matplotlib.figure import Figure

    from wavefilt.plot.appearance import LARGE, MEDIUM, SMALL, style

    bars = [(one.name, one.parts) for one in found.found]
    if len(bars) > 1:
        whole = {part: sum(one.parts[part] for one in found.found) for part in found.found[0].parts}
        bars.append(("whole", whole))
    figure = Figure(figsize=(9, 1.6 + 0.42 * (len(bars) + 1)), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    style(axes, grid=True)
    for place, (_, parts) in enumerate(bars):
        left = 0.0
        for part, seconds in parts.items():
            axes.barh(place, 1e6 * seconds, 0.62, left, color=COLORS[part], label=None if place else part)
            left += 1e6 * seconds
        axes.text(left, place, f" {left:.2f}", va="center", fontsize=SMALL)
    names = [name for name, _ in bars]
    if found.measured is not None:
        axes.barh(len(bars), 1e6 * found.measured, 0.62, color=MEASURED)
        axes.text(1e6 * found.measured, len(bars), f" {1e6 * found.measured:.2f}", va="center", fontsize=SMALL)
        names.append("measured")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel("time (µs)", fontsize=MEDIUM)
    figure.legend(loc="outside lower center", ncols=len(COLORS), fontsize=SMALL, frameon=False)
    figure.suptitle(found.title, fontsize=LARGE - 1)
    return figure

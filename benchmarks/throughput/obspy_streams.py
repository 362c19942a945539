"""ObsPy streams in one batch against a loop: ``python -m wavefilt.benchmarks.throughput.obspy_streams``.

Loops are ObsPy's ``stream.copy().filter("wavelet")``, which looks the filter up for each trace, and one of
`wavefilt.denoise` over the traces of a copy; the batch is ``wavefilt.obspy.denoise(stream)``, which copies as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from wavefilt import BackendUnavailable, backends
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result, version
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import signal, turns
from wavefilt.benchmarks.common.tables import Row, Table

if TYPE_CHECKING:
    from obspy import Stream

TOLERANCE = 1e-6  # of float32 results, relative to their norm


@dataclass(frozen=True)
class Case:
    """Traces of float32, as many lengths among them: ``samples``, and one less for each further one."""

    traces: int
    samples: int
    lengths: int = 1

    @property
    def name(self) -> str:
        return f"{self.traces} x {self.samples}" + (f", {self.lengths} lengths" if self.lengths > 1 else "")

    def stream(self) -> Stream:
        from obspy import Stream, Trace

        rows = signal(self.traces, self.samples)
        return Stream([Trace(row[i % self.lengths :].copy()) for i, row in enumerate(rows)])


SHAPES = ((3, 3000), (24, 4096), (1000, 3000), (1000, 3000, 20), (200, 3000, 200), (24, 360_000))
CASES = tuple(Case(*shape) for shape in SHAPES)
QUICK = (Case(3, 1024), Case(24, 1024), Case(24, 1024, 4))


def measure(case: Case, backend: str, repeats: int) -> Row:
    """Milliseconds of each method. Raises Mismatch if their results differ."""
    import wavefilt.obspy

    stream = case.stream()

    def loop() -> Stream:
        copy = stream.copy()
        for trace in copy:
            trace.data = wavefilt.denoise(trace.data, backend=backend)
        return copy

    calls: dict[str, Callable[[], Stream]] = {
        "filter": lambda: stream.copy().filter("wavelet", backend=backend),
        "loop": loop,
        "batch": lambda: wavefilt.obspy.denoise(stream, backend=backend),
    }
    results, what = [call() for call in calls.values()], f"{case.name}, {backend}"
    pairs = [(y.data, x.data) for x, *others in zip(*results, strict=True) for y in others]
    error = max(agreement(y, x, TOLERANCE, what) for y, x in pairs)
    times = turns(calls, repeats)
    ratio = times["loop"]["median"] / times["batch"]["median"]
    return {"name": case.name, **asdict(case), "backend": backend, "error": error, **times, "ratio": ratio}


def run(quick: bool = False, repeats: int = 7) -> Row:
    """Every case with every backend that can run here."""
    usable = [name for name, state in backends.available().items() if not isinstance(state, BackendUnavailable)]
    repeats = min(repeats, 3) if quick else repeats
    rows = [measure(case, name, repeats) for case in (QUICK if quick else CASES) for name in usable]
    found = result("obspy", quick=quick, repeats=repeats, rows=rows)
    found["environment"]["obspy"] = version("obspy")
    return found


def _title(found: Row) -> str:
    where = found["environment"]
    return (
        f"Denoising an ObsPy stream in milliseconds, median (quartiles): db8, bayes, float32, {where['processor']}, "
        f"{where['threads']} threads, load of other work {where['load'] or 0:.1f}, ObsPy {where['obspy']}"
        + (f", {where['gpu']}" if where["gpu"] else "")
    )


TABLE = Table(
    _title,
    {
        "traces x|samples": "{name}",
        "|backend": "{backend}",
        "trace by trace,|Stream.filter": "{filter:quartiles}",
        "trace by trace,|wavefilt.denoise": "{loop:quartiles}",
        "together,|wavefilt.obspy.denoise": "{batch:quartiles}",
        "last two,|ratio": "{ratio:.1f}",
    },
)


if __name__ == "__main__":
    main(run, TABLE)

"""Short rows denoised by one block each beside blocks that share rows: python -m wavefilt.benchmarks.gpu.short_rows.

With ``-o FILE`` the results are saved; data are resident on the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from unittest.mock import patch

from wavefilt.backends.cuda.runtime.interfaces import DeviceArray
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import events, signal
from wavefilt.benchmarks.common.tables import Row, Table
from wavefilt.method import Method

REPEATS = 25
CASES = (
    *((1, 1 << 12), (1, 1 << 14), (24, 1 << 10), (24, 2001), (240, 1 << 12), (64, 1 << 14), (1000, 2000)),
    *((1000, 5000), (4096, 1 << 10), (4096, 1 << 12), (4096, 1 << 13), (4096, 1 << 14), (100_000, 512)),
)
"""Traces and samples."""
RULES: dict[str, Row] = {
    "universal": {"rule": "universal", "sigma": "global"},
    "bayes": {"rule": "bayes", "sigma": "level"},
}
TOLERANCE = 1e-6
"""Of results; energies are summed in another order."""


def run(cases: Sequence[tuple[int, int]] = CASES, repeats: int = REPEATS) -> Row:
    """Milliseconds by the GPU's clock, with the estimate of the kernel. Raises Mismatch if results differ."""
    from wavefilt.backends.cuda.dwt.plan import DwtPlan
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.backends.cuda.work_counts import statistics, transforms
    from wavefilt.ske import calibration
    from wavefilt.ske.calibrated import estimate

    device, rows = calibration.load(calibration.DEFAULT), []
    for traces, samples in cases:
        x = cuda.to_device(signal(traces, samples))
        for rule, options in RULES.items():
            method = Method(wavelet="db8", **options)
            level = min(8, method.level_for(samples))
            row: Row = {"traces": traces, "samples": samples, "level": level, "rule": rule}
            found = []
            for name, shared in (("shared", True), ("alone", False)):
                out = cuda.device_array_like(x)
                with patch.object(DwtPlan, "alone", lambda *_: None) if shared else nullcontext():
                    row[name], alone = _time(method, level, x, out, repeats)
                found.append(out.copy_to_host())
            row["taken"] = alone
            row["error"] = agreement(found[1], found[0], TOLERANCE, f"{traces} x {samples}, {rule}")
            if alone and rule == "universal":
                problem = transforms.Problem(16, samples, traces, level)
                row["estimate"] = estimate(statistics.denoise(problem)[0], device).seconds
            rows.append(row)
    return result("short rows on a GPU", rows=rows)


def _time(method: Method, level: int, x: DeviceArray, out: DeviceArray, repeats: int) -> tuple[dict[str, float], bool]:
    """GPU time of a denoise, and whether it was one kernel."""
    from wavefilt.backends.cuda.denoiser import Denoiser
    from wavefilt.backends.cuda.dwt.plan import DwtPlan
    from wavefilt.backends.cuda.options import Options
    from wavefilt.backends.cuda.plan import Shape

    traces, samples = x.shape
    plan = DwtPlan(Shape.of(method.analysis(level), "float32", traces, (samples,)), Options())
    denoiser = Denoiser(plan, method, False)
    times = events(partial(denoiser.run, x.reshape(-1), out.reshape(-1)), repeats)
    plan.release()
    return times, denoiser.alone is not None


def _rows(found: Row) -> Iterator[Row]:
    for row in found["rows"]:
        shared, alone = (1e3 * row[name]["median"] for name in ("shared", "alone"))
        size = f"{row['traces']} x {row['samples']}"
        guess = f"{1e6 * row['estimate']:.3g}" if "estimate" in row else ""
        kernel = "one" if row["taken"] else "shared"
        yield row | {"name": size, "by": shared, "us": alone, "times": shared / alone, "guess": guess, "kernel": kernel}


TABLE = Table(
    "Short rows, db8, float32, us of GPU time: {environment[gpu]}",
    {
        "|traces x samples": "{name}",
        "|levels": "{level}",
        "|rule": "{rule}",
        "blocks share|rows": "{by:n}",
        "one block|a row": "{us:n}",
        "|times": "{times:.2f}",
        "|used": "{kernel}",
        "SKE|calibrated": "{guess}",
    },
    _rows,
)


if __name__ == "__main__":
    main(lambda quick: run(CASES[:2] if quick else CASES), TABLE)

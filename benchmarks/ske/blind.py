"""A blind test of the SKE model: predictions are committed before the first launch is measured.

``python -m wavefilt.benchmarks.ske.blind predict FILE`` writes cases and predictions, ``measure FILE`` adds the times.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path

from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Row
from wavefilt.ske import devices

from .baselines import MODELS
from .fit import Case, Shapes

MILLION = 1_000_000
TRANSFORMED = ((1, 3 * MILLION), (1, 11_000_003), (1, 50 * MILLION), (37, 700_001), (300, 120_000), (1500, 30_000))
ONE_BLOCK = ((48, 700), (200, 12_000), (300, 1400), (700, 4400), (1000, 9000), (2500, 900), (6000, 3000), (15_000, 400))
SEARCHED: Shapes = ((1, 1_700_000), (1, 9_300_000), (1, 45 * MILLION), (8, 2_500_000), (12, 5 * MILLION), (50, 400_000))
SEARCHED += ((200, 90_000), (700, 40_000), (3000, 20_000), (9000, 24_000))


def cases() -> Iterator[tuple[str, Case]]:
    """Yield launches with their set: "blind" for errors, "choice" for choices of block and tile.

    No filter, length or number of rows is among `fit.fit_cases`.
    """
    for wavelet, kernel, (rows, samples) in product(
        ("db2", "db6", "sym5", "db10"), ("forward", "inverse"), TRANSFORMED
    ):
        yield "blind", Case(kernel, wavelet, 0, samples, rows, 0)
    for wavelet, (rows, samples) in product(("db2", "db6", "sym8", "db16"), ONE_BLOCK):
        yield "blind", Case("one block", wavelet, 0, samples, rows, 0)
    for rows, samples in SEARCHED:
        yield "blind", Case("search", "db6", 0, samples, rows, 0)
    for wavelet, kernel, samples in product(("db3", "db7"), ("forward", "inverse"), (5 * MILLION, 40 * MILLION)):
        for threads, tile in product((64, 128, 256, 512), (1024, 2048, 4096)):
            yield "choice", Case(kernel, wavelet, threads, samples, tile=tile)


def predicted() -> Row:
    """Return the cases with the predictions of every model for the bundled H200, and a hash of both."""
    device = devices.default()
    rows = [
        asdict(case)
        | {"set": which, "predicted": [sum(model(one, device) for one in case.counted()) for model in MODELS.values()]}
        for which, case in cases()
    ]
    return {"device": {"name": device.name}, "models": [*MODELS], "frozen": digest(rows), "rows": rows}


def digest(rows: list[Row]) -> str:
    """Return a hash of cases and predictions."""
    own = [{name: row[name] for name in row if name not in ("seconds", "spread", "launches", "error")} for row in rows]
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()


def measured(frozen: Row) -> Row:
    """Return the result with the measured seconds. Raises ValueError if cases or predictions were changed."""
    from . import measure

    if digest(frozen["rows"]) != frozen["frozen"] or any("seconds" in row for row in frozen["rows"]):
        raise ValueError("the predictions are not those that were frozen, or they have been measured already")
    rows = [
        row | {name: found[name] for name in ("seconds", "spread", "launches", "error") if name in found}
        for row, found in zip(frozen["rows"], measure.rows(map(Case.of, frozen["rows"])), strict=True)
    ]
    return result("ske_blind") | frozen | {"rows": rows}


if __name__ == "__main__":
    action, path = sys.argv[1], Path(sys.argv[2])
    done = predicted() if action == "predict" else measured(json.loads(path.read_text()))
    path.write_text(json.dumps(done, indent=1) + "\n")

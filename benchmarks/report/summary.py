"""Figures of studies beside their targets; the page of `wavefilt bench report` opens with the ones that matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wavefilt.benchmarks.common.tables import Row, number, size
from wavefilt.benchmarks.ske import validation
from wavefilt.method import Method
from wavefilt.ske import calibration

DEFAULT = f"{Method().rule}, {Method().sigma}"
"""The default rule and its noise estimate, as the quality study names them."""


@dataclass(frozen=True)
class Figure:
    """``met`` is None without a target; a figure that ``matters`` is in the summary though its target is met."""

    what: str
    value: str
    target: str = ""
    met: bool | None = None
    matters: bool = False


def cpu(result: Row) -> Iterator[Figure]:
    """A quick run is not held against the targets."""
    for i, case in enumerate(result["cases"]):
        what = f"CPU: {case['name']}, as fast as PyWavelets on one core"
        target, met = ("", None) if result["quick"] else (f"at least {case['target']:g} times", case["met"])
        yield Figure(what, f"{number(case['ratio'])} times", target, met, matters=i == 0)


def cuda(result: Row) -> Iterator[Figure]:
    """The target of a denoise is about GPU time where the data is resident, else about the whole call."""
    cases = [case for case in result["cases"] if case["limit"] is not None]
    first = {("device" in case): case for case in reversed(cases)}
    for case in cases:
        resident = "device" in case
        ms, of = case["device" if resident else "call"]["median"], "GPU time" if resident else "whole call"
        what = f"GPU: {case['name']}, {case['rows']} x {size(case['samples'])} samples, {of}"
        met = ms <= case["limit"]
        yield Figure(what, f"{number(ms)} ms", f"at most {case['limit']:g} ms", met, case is first[resident])
    for peer in result["peers"]:
        least = peer["target"].removeprefix(">= ")
        ratio, met = f"{number(peer['ratio'])} times", peer["ratio"] >= float(least)
        yield Figure(f"GPU: as fast as {peer['name']}", ratio, f"at least {least} times", met)


def ske(result: Row) -> Iterator[Figure]:
    """Goals for launches of at least 10 μs that the model was not fitted to; of a blind test, if it is one."""
    rows = [row for row in result["rows"] if "error" not in row and row.get("set", "blind") == "blind"]
    try:
        device = calibration.of(result["device"]["name"])
    except calibration.WrongDevice:
        return
    found = validation.Validation(rows, device, validation.stored(result, device))
    errors = abs(found.errors()[found.held_out & found.long])
    if errors.size:
        kind = "in a blind test" if "set" in rows[0] else "to which it was not fitted"
        about = f"error of the calibrated model for launches of at least 10 μs, {kind}"
        yield Figure(f"SKE: mean {about}", f"{errors.mean():.1%}", "at most 8%", bool(errors.mean() <= 0.08), True)
        yield Figure(f"SKE: largest {about}", f"{errors.max():.1%}", "at most 25%", bool(errors.max() <= 0.25))


def quality(result: Row) -> Iterator[Figure]:
    records = result["parts"]["records"]
    gain, other = (
        sum(row["gain_db"][method] for row in records) / len(records)
        for method in (DEFAULT, "scikit-image BayesShrink")
    )
    what = f"Quality: gain in SNR by the default rule ({DEFAULT}), mean over {len(records)} records"
    yield Figure(f"{what}; by scikit-image's BayesShrink {other:.1f} dB", f"{gain:.1f} dB", matters=True)

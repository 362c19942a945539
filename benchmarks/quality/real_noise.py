"""Denoising in real noise: what the rules gain, what else a seismologist would use gains, and what becomes of picks.

``python -m wavefilt.benchmarks.quality.real_noise -o FILE`` measures it, in less than 20 minutes on two cores. It
takes the noise and the recorded events from ObsPy's test data, see `field_records`, and from the folder that the
variable ``WAVEFILT_FIELD_RECORDS`` names; events, onsets and windows are drawn from fixed seeds.

The library has its own parameters. Those of the alternatives are the best of a small grid on the other half of the
sources, for raw and for high-passed records each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

import wavefilt
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result, version
from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.quality import field_records
from wavefilt.benchmarks.quality.alternatives import (
    ALTERNATIVES,
    BASE,
    LIBRARY,
    ORACLES,
    RECORD,
    Alternative,
    Parameters,
    oracle,
)
from wavefilt.benchmarks.quality.earthquakes import FORMS, RATIOS, Records, real, synthetic
from wavefilt.benchmarks.quality.field_records import Event, Window
from wavefilt.benchmarks.quality.methods import Options
from wavefilt.benchmarks.quality.picking import FAR, errors
from wavefilt.benchmarks.quality.real_noise_report import report
from wavefilt.benchmarks.quality.signals import Samples

EVENTS, QUICK_EVENTS = 200, 42
"""Synthetic earthquakes."""
PLACES, QUICK_PLACES = 3, 1
"""Windows for each recorded event."""
PICKERS = ("AIC", "STA/LTA")
Method = Callable[[Records], Samples]


def run(quick: bool = False) -> Row:
    """Rows for JSON."""
    if version("obspy") is None:
        raise SystemExit("this study needs ObsPy and its test data: pip install obspy")
    places = field_records.folders()
    windows, screened = field_records.windows(places)
    counts = (QUICK_EVENTS, QUICK_PLACES) if quick else (EVENTS, PLACES)
    return study(windows, field_records.events(places), *counts) | {"screened": screened}


def study(windows: Sequence[Window], events: Sequence[Event], synthetics: int, places: int) -> Row:
    """Everything measured in given noise, with given events."""
    started = time.perf_counter()
    half = np.array(field_records.halves(windows))
    found: dict[str, list[Row]] = {"tuned": [], "gains": [], "recorded": [], "picks": []}
    for form in FORMS:
        records = synthetic(windows, form, synthetics)
        methods, chosen = _methods(records[np.arange(min(len(records), len(windows) * len(RATIOS)))], half)
        found["tuned"] += [{"form": form, **row} for row in chosen]
        outputs = {RECORD: records.x}
        outputs |= {name: method(records) for name, method in methods.items()}
        found["gains"] += [{"form": form, **row} for row in _gains(records, outputs)]
        if form == "high-passed":
            found["picks"] += _picks(records, outputs)
        if events:
            records = real(windows, form, events, places)
            outputs = {RECORD: records.x} | {name: method(records) for name, method in methods.items()}
            found["recorded"] += [{"form": form, **row} for row in _gains(records, outputs)]
    return result(
        "real noise",
        seconds=time.perf_counter() - started,
        obspy=version("obspy"),
        synthetics=synthetics,
        places=places,
        windows=[window.row() | {"half": int(own)} for window, own in zip(windows, half, strict=True)],
        events=[event.row() for event in events],
        **found,
    )


def _methods(tuning: Records, half: Samples) -> tuple[dict[str, Method], list[Row]]:
    """By name, what is compared, and what was chosen for each half of the windows on the other half's records."""
    methods: dict[str, Method] = {name: _library(options) for name, options in LIBRARY.items()}
    chosen = []
    for alternative in ALTERNATIVES:
        gains = [(choice, gain(tuning, alternative.function(tuning, **choice))) for choice in alternative.choices()]

        def best(own: int, gains: list[tuple[Parameters, Samples]] = gains) -> Parameters:
            others = half[tuning.group] != own
            return max(gains, key=lambda pair: float(np.mean(pair[1][others])))[0]

        parameters = best(0), best(1)
        methods[alternative.name] = _tuned(alternative, parameters, half)
        chosen.append({"method": alternative.name, "choices": len(gains), "parameters": parameters})
    for transform in ORACLES:
        methods[f"oracle, soft by band, {transform}"] = partial(oracle, transform=transform)
    return methods, chosen


def _library(options: Options) -> Method:
    return lambda records: np.asarray(wavefilt.denoise(records.x, **options))


def _tuned(alternative: Alternative, parameters: Sequence[Parameters], half: Samples) -> Method:
    """With the parameters of the half that the noise of a record is of."""

    def method(records: Records) -> Samples:
        y = np.empty_like(records.x)
        for own, chosen in enumerate(parameters):
            rows = np.flatnonzero(half[records.group] == own)
            if len(rows):
                y[rows] = alternative.function(records[rows], **chosen)
        return y

    return method


def gain(records: Records, y: Samples, within: bool = False) -> Samples:
    """Decibels that each record came nearer to the clean one, over all samples or the signal window alone."""
    places = np.arange(records.x.shape[-1])
    used = (places >= records.onset[:, None]) & (places <= records.end[:, None]) if within else np.ones(len(places))
    before, after = (np.sum((x - records.clean) ** 2 * used, axis=-1) for x in (records.x, y))
    return np.asarray(10 * np.log10(before / after))


def _peaks(records: Records, y: Samples) -> Samples:
    """Largest amplitude of each over that of the clean record, in the signal window."""
    windows = zip(y, records.clean, records.onset, records.end, strict=True)
    return np.array([np.abs(a[i:j]).max() / np.abs(b[i:j]).max() for a, b, i, j in windows])


def _gains(records: Records, outputs: dict[str, Samples]) -> Iterator[Row]:
    """In dB: means, and of the differences to the gain of `BASE` the mean, the 10th percentile and in the window."""
    base, base_within = (gain(records, outputs[BASE], within) for within in (False, True))
    for name, y in outputs.items():
        if name == RECORD:
            continue
        gains, within = gain(records, y), gain(records, y, within=True)
        yield {
            "method": name,
            "by_ratio": {f"{ratio} dB": float(gains[records.ratio == ratio].mean()) for ratio in RATIOS},
            "mean": float(gains.mean()),
            "over": float((gains - base).mean()),
            "over_p10": float(np.percentile(gains - base, 10)),
            "within": float(within.mean()),
            "over_within": float((within - base_within).mean()),
            "worst": float(gains.min()),
            "worse": int((gains < 0).sum()),
            "records": len(gains),
            "peak": float(np.median(_peaks(records, y))),
        }


def _picks(records: Records, outputs: dict[str, Samples]) -> Iterator[Row]:
    """Median error in seconds and share of outliers, with the floors, and without for the record and the library."""
    for picker in PICKERS:
        for name, y in outputs.items():
            for floored in (True, False):
                if not floored and name not in (RECORD, *LIBRARY):
                    continue
                far = errors(records, y, picker, floored)
                found = {f"{ratio} dB": far[records.ratio == ratio] for ratio in RATIOS}
                yield {
                    "picker": picker,
                    "method": name,
                    "floor": floored,
                    "median": {ratio: float(np.median(values)) for ratio, values in found.items()},
                    "outliers": {ratio: float(np.mean(values > FAR)) for ratio, values in found.items()},
                }


if __name__ == "__main__":
    main(run, report)

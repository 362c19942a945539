"""Numbers in prose, from the committed results.

A marker in a sentence, ``<!-- value FILE.json: NAME ARGUMENT -->20<!-- end -->``, calls a function of `VALUES`, which
formats one number of that result; the sentence gives the unit. The argument is the name of a case, say. A marker
never begins a line: Markdown would end the paragraph there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from wavefilt.benchmarks.common.tables import Row as Result
from wavefilt.benchmarks.common.tables import number

RESULTS = Path(__file__).resolve().parent / "results"


def _case(result: Result, name: str) -> Result:
    """By its name, or by its name, rows and samples (``NAME; 1 x 67108864``) where several cases share a name."""
    cases: list[Result] = result["cases"]
    names = {case["name"]: case for case in reversed(cases)}
    names |= {f"{case['name']}; {case.get('rows')} x {case['samples']}": case for case in cases}
    if name not in names:
        raise ValueError(f"no case {name!r}; there are {', '.join(map(repr, names))}")
    return names[name]


def _gains(result: Result, method: str, noise: str) -> list[float]:
    """In dB, of every record with this kind of noise."""
    return [record["gain_db"][method] for record in result["parts"]["records"] if record["noise"] == noise]


def _worse(result: Result, method: str) -> str:
    records = result["parts"]["records"]
    return f"{sum(record['gain_db'][method] < 0 for record in records)}"


def _gain_range(result: Result, argument: str) -> str:
    gains = _gains(result, *argument.split("; "))
    return f"{min(gains):.1f} to {max(gains):.1f}"


def _noise_gain(result: Result, argument: str) -> str:
    gains = _gains(result, *argument.split("; "))
    return f"{sum(gains) / len(gains):.1f}"


def _choice(result: Result, method: str) -> dict[str, float]:
    """In dB, over all records: mean and worst."""
    return dict(next(row for row in result["parts"]["choices"] if row["method"] == method)["records"])


def _mean_gain(result: Result, method: str) -> float:
    return _choice(result, method)["mean"]


def _real(result: Result, argument: str, events: str = "gains") -> Result:
    """What was gained in real noise, by FORM; METHOD."""
    form, method = argument.split("; ")
    return next(row for row in result[events] if (row["form"], row["method"]) == (form, method))


def _pick(result: Result, argument: str) -> dict[str, float]:
    """Of PICKER; METHOD; RATIO, or with "; no floor" after them: median error and share of outliers."""
    picker, method, ratio, *silent = argument.split("; ")
    wanted = (picker, method, not silent)
    row = next(r for r in result["picks"] if (r["picker"], r["method"], r["floor"]) == wanted)
    return {what: row[what][ratio] for what in ("median", "outliers")}


def _ranks(result: Result, argument: str) -> Result:
    """Of CASE; CRITERION, on the records for the test."""
    case, criterion = argument.split("; ")
    wanted = (case, criterion, "test")
    return next(row for row in result["rows"] if (row["case"], row["criterion"], row["half"]) == wanted)


def _sections(result: Result, argument: str) -> list[float]:
    """dB of GROUP; NOISE; METHOD, case by case: any noise where it is "any", less another method after "minus"."""
    group, noise, words = argument.split("; ")
    method, _, base = words.partition(" minus ")
    rows = [row for row in result["cases"] if row["group"] == group and noise in ("any", row["noise"])]
    return [row["gain_db"][method] - (row["gain_db"][base] if base else 0) for row in rows]


def _sections_mean(result: Result, argument: str) -> str:
    gains = _sections(result, argument)
    return f"{sum(gains) / len(gains):.1f}"


VALUES: dict[str, dict[str, Callable[[Result, str], str]]] = {
    "cpu.json": {
        # of a case: how many times faster numba is than PyWavelets; per cent that a copy takes of its time
        "speedup": lambda result, case: number(_case(result, case)["ratio"], 2),
        "share-of-copy": lambda result, case: f"{100 * _case(result, case)['share_of_copy']:.0f}",
    },
    "crossover.json": {
        # seconds to import numba and load compiled kernels; million samples that make up for it, for so many taps
        "loading-time": lambda result, _: number(result["load"], 2),
        "first-use": lambda result, taps: number(1e-6 * result["first"][taps], 2),
    },
    "cuda_h200.json": {
        # of a case: milliseconds of GPU time, of a call by the clock, GPU time over that of two copies on the device
        "device-time": lambda result, case: number(_case(result, case)["device"]["median"], 2),
        "call-time": lambda result, case: number(_case(result, case)["call"]["median"], 2),
        "copies": lambda result, case: number(
            _case(result, case)["device"]["median"] / (2 * result["copy"]["median"]), 2
        ),
    },
    "real_noise.json": {
        # dB of FORM; METHOD: the mean gain; over that of the defaults the mean, and the 10th percentile
        "gain": lambda result, argument: f"{_real(result, argument)['mean']:.1f}",
        "over": lambda result, argument: f"{_real(result, argument)['over']:.1f}",
        "percentile": lambda result, argument: f"{_real(result, argument)['over_p10']:.1f}",
        # records made worse of FORM; METHOD, those with recorded earthquakes
        "recorded-worse": lambda result, argument: f"{_real(result, argument, 'recorded')['worse']}",
        # per cent of picks more than 0.2 s away, and seconds of the median error: PICKER; METHOD; RATIO[; no floor]
        "outliers": lambda result, argument: f"{100 * _pick(result, argument)['outliers']:.0f}",
        "median": lambda result, argument: f"{_pick(result, argument)['median']:.2f}",
    },
    "ranking.json": {
        # of CASE; CRITERION: median rank correlation; dB that the choice, or the default, is worse than the best
        "correlation": lambda result, argument: f"{_ranks(result, argument)['correlation']:.2f}",
        "loss": lambda result, argument: f"{_ranks(result, argument)['loss']:.1f}",
        "loss-of-default": lambda result, argument: f"{_ranks(result, argument)['loss of default']:.1f}",
    },
    "sections_quality.json": {
        # dB of GROUP; NOISE; METHOD: the mean over its cases, the least and the largest
        "mean": _sections_mean,
        "least": lambda result, argument: f"{min(_sections(result, argument)):.1f}",
        "largest": lambda result, argument: f"{max(_sections(result, argument)):.1f}",
    },
    "quality.json": {
        # dB: on the sample record with its own noise, and over records with a noise as METHOD; NOISE
        "record-gain": lambda result, method: f"{_gains(result, method, 'its own')[0]:.1f}",
        "gain-range": _gain_range,
        "noise-gain": _noise_gain,
        # records that a method makes worse
        "worse": _worse,
        # over all records the mean, the worst, and the mean less that of the defaults
        "mean-gain": lambda result, method: f"{_mean_gain(result, method):.1f}",
        "worst-gain": lambda result, method: f"{_choice(result, method)['worst']:.1f}",
        "gain-difference": lambda result, method: (
            f"{_mean_gain(result, method) - _mean_gain(result, 'the defaults'):.1f}"
        ),
    },
}


def value(marker: str) -> str:
    """The number that a marker asks for. Raises ValueError for a file, name or case that does not exist."""
    file, _, rest = marker.partition(": ")
    name, _, argument = rest.partition(" ")
    if name not in VALUES.get(file, ()):
        known = ", ".join(f"{file}: {', '.join(names)}" for file, names in VALUES.items())
        raise ValueError(f"no value {marker!r}; there are {known}")
    return VALUES[file][name](json.loads((RESULTS / file).read_text()), argument)

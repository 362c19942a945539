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


def speedup(result: Result, case: str) -> str:
    """How many times faster numba is than PyWavelets."""
    return number(_case(result, case)["ratio"], 2)


def share_of_copy(result: Result, case: str) -> str:
    """Time of a copy over that of the case, in per cent."""
    return f"{100 * _case(result, case)['share_of_copy']:.0f}"


def device_time(result: Result, case: str) -> str:
    """Milliseconds of GPU time."""
    return number(_case(result, case)["device"]["median"], 2)


def call_time(result: Result, case: str) -> str:
    """Milliseconds of a call, by the clock."""
    return number(_case(result, case)["call"]["median"], 2)


def copies(result: Result, case: str) -> str:
    """GPU time over that of two copies of the same samples in device memory."""
    return number(_case(result, case)["device"]["median"] / (2 * result["copy"]["median"]), 2)


def loading_time(result: Result, _: str) -> str:
    """Seconds to import numba and to load compiled kernels from the cache."""
    return number(result["load"], 2)


def first_use(result: Result, taps: str) -> str:
    """Million samples from which numba is faster in a process that has yet to load it, for a filter of so many taps."""
    return number(1e-6 * result["first"][taps], 2)


def _gains(result: Result, noise: str, method: str) -> list[float]:
    """In dB, of every record with this kind of noise."""
    return [record["gain_db"][method] for record in result["parts"]["records"] if record["noise"] == noise]


def record_gain(result: Result, method: str) -> str:
    """Gain in dB on the sample record with its own noise."""
    return f"{_gains(result, 'its own', method)[0]:.1f}"


def gain_range(result: Result, argument: str) -> str:
    """Smallest and largest gain in dB over the records: ``METHOD; NOISE``."""
    method, _, noise = argument.partition("; ")
    gains = _gains(result, noise, method)
    return f"{min(gains):.1f} to {max(gains):.1f}"


def noise_gain(result: Result, argument: str) -> str:
    """Mean gain in dB over the records: ``METHOD; NOISE``."""
    method, _, noise = argument.partition("; ")
    gains = _gains(result, noise, method)
    return f"{sum(gains) / len(gains):.1f}"


def _mean_gain(result: Result, method: str) -> float:
    return float(next(row for row in result["parts"]["choices"] if row["method"] == method)["records"]["mean"])


def mean_gain(result: Result, method: str) -> str:
    """Mean gain in dB over all records."""
    return f"{_mean_gain(result, method):.1f}"


def gain_difference(result: Result, method: str) -> str:
    """Mean gain in dB over all records, less that of the defaults."""
    return f"{_mean_gain(result, method) - _mean_gain(result, 'the defaults'):.1f}"


VALUES: dict[str, tuple[Callable[[Result, str], str], ...]] = {
    "cpu.json": (speedup, share_of_copy),
    "crossover.json": (loading_time, first_use),
    "cuda_h200.json": (device_time, call_time, copies),
    "quality.json": (record_gain, gain_range, noise_gain, mean_gain, gain_difference),
}


def value(marker: str) -> str:
    """The number that a marker asks for. Raises ValueError for a file, name or case that does not exist."""
    file, _, rest = marker.partition(": ")
    name, _, argument = rest.partition(" ")
    functions = {function.__name__.replace("_", "-"): function for function in VALUES.get(file, ())}
    if name not in functions:
        known = ", ".join(
            f"{file}: {', '.join(f.__name__ for f in fs)}".replace("_", "-") for file, fs in VALUES.items()
        )
        raise ValueError(f"no value {marker!r}; there are {known}")
    return functions[name](json.loads((RESULTS / file).read_text()), argument)

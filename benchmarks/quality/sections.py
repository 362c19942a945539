"""Denoising of sections: what two-dimensional transforms gain, and what else is used on gathers.

``wavefilt bench quality sections -o FILE`` measures it, in about 20 minutes on one core. Models, noise and parameters
are of fixed seeds. Gathers of the field come from the folder that the variable ``WAVEFILT_FIELD_RECORDS`` names, noise
for them from ObsPy's test data, see `field_records`; without them that part is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import wavefilt
from wavefilt.benchmarks.common.environment import result as new_result
from wavefilt.benchmarks.common.environment import version
from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.quality import field_records
from wavefilt.benchmarks.quality.alternatives import Alternative, Parameters
from wavefilt.benchmarks.quality.methods import Options, missing
from wavefilt.benchmarks.quality.sections_alternatives import ALTERNATIVES, LIBRARY, alternatives
from wavefilt.benchmarks.quality.sections_models import TRACES, Case, cases, gathers
from wavefilt.benchmarks.quality.signals import Samples

DRAWS = 3
SLOW = ("rank reduction", "ebayes, mean, 16 spins")
"""Seconds a section: measured on one draw."""
SEED, TUNING_SEED = 2, 3
"""Of the noise that is measured, and of that on which alternatives are tuned."""
QUICK = np.s_[:64, 256:512]
"""What is taken of every section for `run` with ``quick``: one draw at 0 dB."""
Method = Callable[[Samples], Samples]
PACKAGES = ("obspy", *filter(None, ALTERNATIVES))


@dataclass(frozen=True)
class Step:
    """A case, by its words."""

    label: str
    row: Callable[[], Row]


def run(
    quick: bool = False,
    progress: Callable[[list[Step]], Iterable[Step]] = iter,
    keep: Callable[[Row], None] = lambda result: None,
) -> Row:
    """Rows of every case, for JSON; ``keep`` is given the result after each."""
    fields = gathers()
    windows = field_records.windows(field_records.folders()[:1])[0] if fields and version("obspy") else []
    chosen = [*cases(windows, fields)]
    draws = DRAWS
    if quick:
        draws = 1
        chosen = [replace(one, clean=one.clean[QUICK]) for one in chosen if one.ratio == 0]
    return study(chosen, draws, progress, keep)


def study(
    chosen: Sequence[Case],
    draws: int,
    progress: Callable[[list[Step]], Iterable[Step]] = iter,
    keep: Callable[[Row], None] = lambda result: None,
) -> Row:
    """Everything measured in the given cases."""
    absent = {name: why for name in PACKAGES if (why := missing(name))}
    facts = {"draws": draws, "missing": absent, "scikit-image": version("scikit-image"), "dascore": version("dascore")}
    result = new_result("quality of sections", seconds=0.0, **facts, times={}, cases=[], tuned=[])
    started = time.perf_counter()
    steps = [
        Step(f"{one.group} {one.section} {one.noise} {one.ratio} dB", partial(measured, one, draws, result))
        for one in chosen
    ]
    for step in progress(steps):
        result["cases"].append(step.row())
        result["seconds"] = time.perf_counter() - started
        keep(result)
    return result


def procedures(case: Case) -> Iterator[tuple[str, Method, Parameters | None]]:
    """What is compared, by name, with the parameters that were chosen for it, None for the library."""
    for name, options in LIBRARY.items():
        yield name, _library(options), None
    for alternative in alternatives():
        chosen = tuned(alternative, case)
        yield alternative.name, partial(alternative.function, **chosen), chosen


def measured(case: Case, draws: int, result: Row) -> Row:
    """Decibels gained in the mean over the draws; parameters chosen and times go into ``result``."""
    noisy, gains = case.draws(draws, SEED), {}
    about = {"group": case.group, "section": case.section, "noise": case.noise, "snr_db": case.ratio}
    for name, method, parameters in procedures(case):
        if parameters is not None:
            result["tuned"].append({"method": name, **about, "parameters": parameters})
        found = []
        for x in noisy[: 1 if name in SLOW else draws]:
            before = time.process_time()
            y = method(x)
            seconds = time.process_time() - before
            found.append(gain(case.clean, x, y))
            if case.group == "models":
                result["times"][name] = min(result["times"].get(name, seconds), seconds)
        gains[name] = float(np.mean(found))
    traces, samples = case.clean.shape
    return {**about, "traces": traces, "samples": samples, "gain_db": gains}


def _library(options: Options) -> Method:
    return lambda x: np.asarray(wavefilt.denoise(x, **options))


def tuned(alternative: Alternative, case: Case) -> Parameters:
    """The best parameters on another draw, of large sections on its first half of the traces alone."""
    half = slice(case.clean.shape[0] // (2 if case.clean.shape[0] >= TRACES // 2 else 1))
    clean, x = case.clean[half], case.draws(1, TUNING_SEED)[0, half]
    return max(alternative.choices(), key=lambda chosen: gain(clean, x, alternative.function(x, **chosen)))


def gain(clean: Samples, before: Samples, after: Samples) -> float:
    """Decibels that a section came nearer to the clean one."""
    far, near = (float(np.sum((x - clean) ** 2)) for x in (before, after))
    return float(10 * np.log10(far / near))

"""How well `wavefilt.compare` ranks methods: its order beside that of the true errors, on signals that are known.

``wavefilt bench quality ranking -o FILE`` runs it. Everything comes from fixed seeds. The parameters of the criterion
were chosen on the records called design (half of the sources of field noise, and half of the draws); those called test
are the other half.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import wavefilt
from wavefilt.benchmarks.common.environment import result as new_result
from wavefilt.benchmarks.common.environment import version
from wavefilt.benchmarks.common.tables import Column, Report, Row, Sheet, Table, number
from wavefilt.benchmarks.quality import field_records
from wavefilt.benchmarks.quality.earthquakes import FORMS, NOISE, synthetic
from wavefilt.benchmarks.quality.methods import Options
from wavefilt.benchmarks.quality.records import gather
from wavefilt.benchmarks.quality.sections import Step
from wavefilt.benchmarks.quality.signals import Samples, classic, published
from wavefilt.tuning import criterion
from wavefilt.tuning.intake import take
from wavefilt.vocabulary import RULES
from wavefilt.wavelets.filters import as_wavelet, max_level

DRAWS, QUICK_DRAWS = 5, 1
"""Draws of noise for each function, of either half."""
EVENTS, QUICK_EVENTS = 42, 12
"""Synthetic earthquakes, each at three signal-to-noise ratios."""
STRIDE = 4
"""Of the samples that J-invariance leaves out at once."""
HALVES = ("design", "test")
DEFAULT = "bayes"
OTHERS: dict[str, Options] = {
    "bayes, 8 levels": {"level": 8},
    "bayes, haar": {"wavelet": "haar"},
    "bayes, modwt": {"transform": "modwt"},
    "sure, 8 levels": {"rule": "sure", "level": 8},
    "sure, hard": {"rule": "sure", "shrink": "hard"},
    "fdr, modwt": {"rule": "fdr", "transform": "modwt"},
    "ebayes, mean, modwt, 8 levels": {"rule": "ebayes", "shrink": "mean", "transform": "modwt", "level": 8},
    "js, sym8": {"rule": "js", "wavelet": "sym8"},
    "js, sym8, modwt": {"rule": "js", "wavelet": "sym8", "transform": "modwt"},
}
METHODS: dict[str, Options] = {rule: {"rule": rule} for rule in RULES} | OTHERS
"""What is ranked, by options of `denoise`; there are fewer levels where the records have no more."""


Criterion = Callable[[Samples, Options], Samples]
"""From records, each a file of its own, and options that all methods have in common, to estimated errors over the
variance of the noise, (methods, records, parts of a record)."""


@dataclass(frozen=True)
class Case:
    """Records of a kind; if they are ``together`` as one file, the noise too is that of a file."""

    name: str
    half: str
    x: Samples
    clean: Samples
    together: bool = False


def run(
    quick: bool = False,
    progress: Callable[[list[Step]], Iterable[Step]] = iter,
    keep: Callable[[Row], None] = lambda result: None,
) -> Row:
    """Rows of all cases and criteria, for JSON; ``keep`` is given the result after each."""
    result = new_result("ranking", obspy=version("obspy"), methods=list(METHODS), default=DEFAULT, rows=[], seconds=0.0)
    started = time.perf_counter()
    for step in progress(list(_steps(quick))):
        result["rows"].append(step.row())
        result["seconds"] = time.perf_counter() - started
        keep(result)
    return result


def _steps(quick: bool) -> Iterator[Step]:
    white: dict[str, tuple[Criterion, Options]] = {
        'compare, sigma="global"': (estimated, {"sigma": "global"}),
        "compare": (estimated, {}),
        'Stein, sigma="global"': (stein, {"sigma": "global"}),
        "J-invariance": (left_out, {}),
    }
    coloured: dict[str, tuple[Criterion, Options]] = {
        "compare": (estimated, {}),
        "compare, noise window": (estimated, {"sigma": ("window", *NOISE)}),
        "Stein": (stein, {}),
        "J-invariance": (left_out, {}),
    }
    sample: dict[str, tuple[Criterion, Options]] = {name: white[name] for name in list(white)[:2]}
    cases = [(case, white) for case in _functions(QUICK_DRAWS if quick else DRAWS)]
    if version("obspy"):
        cases += [(case, coloured) for case in _earthquakes(QUICK_EVENTS if quick else EVENTS)]
    cases += [(case, sample) for case in _gather()]
    for case, criteria in cases:
        for name, (rank, options) in criteria.items():
            yield Step(f"{case.name}, {case.half}: {name}", partial(judged, case, name, rank, options))


def _functions(draws: int) -> Iterator[Case]:
    """The functions of the quality study, one record a file."""
    for half in HALVES:
        rng = np.random.default_rng(HALVES.index(half))
        for name, signals, ratio in (
            ("JMLR, sd ratio 3", published(), 3),
            ("JMLR, sd ratio 1", published(), 1),
            ("Donoho-Johnstone, sd ratio 7", classic(), 7),
        ):
            clean = np.repeat([f * (ratio / f.std()) for f in signals.values()], draws, axis=0)
            x = clean + rng.standard_normal(clean.shape)
            yield Case(name, half, x, clean)


def _earthquakes(events: int) -> Iterator[Case]:
    """Synthetic earthquakes in field noise."""
    windows, _ = field_records.windows(field_records.folders())
    halves = np.array(field_records.halves(windows))
    for number_of_half, half in enumerate(HALVES):
        for form in FORMS:
            records = synthetic(windows, form, events)
            records = records[np.flatnonzero(halves[records.group] == number_of_half)]
            yield Case(f"field noise, {form}", half, records.x, records.clean)


def _gather() -> Iterator[Case]:
    """The shot record of `samples`, as one file."""
    found = gather()
    if found is not None:
        yield Case("the sample record", "test", found[1], found[0], together=True)


def methods(samples: int) -> list[Options]:
    """`METHODS` for records of this length."""
    deepest = max_level(samples, as_wavelet("db8"))
    return [own | ({"level": min(own["level"], deepest)} if "level" in own else {}) for own in METHODS.values()]


def _criterion(x: Samples, options: Options) -> tuple[criterion.Criterion, list[criterion.Methods]]:
    """That of `wavefilt.compare`, whose numbers for a trace do not depend on the others, and what it is asked for."""
    taken = take(x, options.get("sigma", "level"))
    found = replace(criterion.Criterion.of(taken, 0, "numba"), parts=criterion.BLOCKS)
    return found, [criterion.methods_of({**options, **own}, taken) for own in methods(x.shape[1])]


def estimated(x: Samples, options: Options) -> Samples:
    """By `wavefilt.compare`."""
    found, tried = _criterion(x, options)
    return np.array([found.risk(one).blocks.reshape(found.parts, len(x)).T for one in tried])


def stein(x: Samples, options: Options) -> Samples:
    """Stein's estimate alone, by which `wavefilt.compare` has its pilot."""
    found, tried = _criterion(x, options)
    return np.array([found.stein(one)[0][:, None] for one in tried])


def left_out(x: Samples, options: Options) -> Samples:
    """The error at samples that are replaced by the mean of their neighbours before (Batson and Royer 2019)."""
    between = np.concatenate([x[:, 1:2], (x[:, 2:] + x[:, :-2]) / 2, x[:, -2:-1]], axis=1)
    found = []
    for own in methods(x.shape[1]):
        y = np.empty_like(x)
        for start in range(STRIDE):
            at = slice(start, None, STRIDE)
            masked = x.copy()
            masked[:, at] = between[:, at]
            y[:, at] = np.asarray(wavefilt.denoise(masked, backend="numba", **options, **own))[:, at]
        found.append(np.mean((y - x) ** 2, axis=1, keepdims=True))
    return np.array(found)


def judged(case: Case, name: str, rank: Criterion, options: Options) -> Row:
    """Rank correlations with the true errors, and dB by which the choice is worse than the best, over the files.

    ``apart`` is how many files have two best methods that the criterion tells apart, and ``right`` the share of these
    in which the first has the smaller error.
    """
    from scipy.stats import spearmanr

    power = np.mean((case.x - case.clean) ** 2, axis=1)
    outputs = (
        np.asarray(wavefilt.denoise(case.x, backend="numba", **options, **own)) for own in methods(case.x.shape[1])
    )
    errors = np.array([np.mean((y - case.clean) ** 2, axis=1) for y in outputs]) / power
    blocks = rank(case.x, options)
    if case.together:
        errors, blocks = errors.mean(axis=1, keepdims=True), blocks.reshape(len(blocks), 1, -1)
    correlation, loss, default, bias, right = [], [], [], [], []
    for true, parts in zip(errors.T, blocks.transpose(1, 0, 2), strict=True):
        risks = parts.mean(axis=1)
        first, second = np.argsort(risks)[:2]
        correlation.append(float(spearmanr(true, risks)[0]))
        loss.append(float(10 * np.log10(true[first] / true.min())))
        default.append(float(10 * np.log10(true[list(METHODS).index(DEFAULT)] / true.min())))
        bias.append(float(10 * np.log10(true[first] / max(risks[first], 1e-3))))
        behind = parts[second] - parts[first]
        if len(behind) > 1 and behind.mean() > criterion.standard_error(behind):
            right.append(bool(true[first] <= true[second]))
    return {
        "case": case.name,
        "half": case.half,
        "criterion": name,
        "files": len(correlation),
        "correlation": float(np.median(correlation)),
        "correlation p10": float(np.percentile(correlation, 10)),
        "loss": float(np.mean(loss)),
        "loss p90": float(np.percentile(loss, 90)),
        "loss of default": float(np.mean(default)),
        "overestimated": float(np.median(bias)) if rank is estimated else None,
        "apart": len(right) if rank is estimated else None,
        "right": float(np.mean(right)) if right else None,
    }


def report(result: Row) -> Report:
    """Both halves, and where and when."""
    return Report([_table(result, half) for half in HALVES[::-1]], notes(result))


def _table(result: Row, half: str) -> Sheet:
    columns: dict[str, Column] = {
        "records": "{case}",
        "criterion": "{criterion}",
        "files": "{files}",
        "rank correlation,|median": "{correlation:.2f}",
        "10th|percentile": "{correlation p10:.2f}",
        "loss of the choice,|mean": "{loss:.1f} dB",
        "90th percentile|of it": "{loss p90:.1f} dB",
        f"loss of {result['default']},|mean": "{loss of default:.1f} dB",
        "gain|overestimated by": lambda row: "" if row["overestimated"] is None else f"{row['overestimated']:+.1f} dB",
        "best two|told apart": lambda row: "" if row["apart"] is None else f"{row['apart']}",
        "and in|true order": lambda row: "" if row["right"] is None else f"{row['right']:.0%}",
    }
    what = "Test: records that no parameter was chosen on" if half == "test" else "Design: records that they were"
    title = f"{what}; order of {len(result['methods'])} methods"
    return Table(title, columns, lambda found: (row for row in found["rows"] if row["half"] == half))(result)


def notes(result: Row) -> list[str]:
    """Where and when."""
    where = result["environment"]
    about = f"ObsPy {result['obspy']}" if result["obspy"] else "without ObsPy, which has the field noise"
    return [
        f"{where['processor']}, {where['cores']} cores; {result['date']}; {number(result['seconds'])} s; {about}.",
        f"Methods: {'; '.join(result['methods'])}.",
    ]

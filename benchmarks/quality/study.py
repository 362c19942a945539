"""The quality study: how far the result is from the signal, by every rule, where others published how far theirs is.

`wavefilt bench quality -o FILE` runs it. Everything comes from fixed seeds.

published  the seven signals, methods and noise of Xing et al. (2021): 10⁴ Σ(y - f)²/Σf²
baseline   Donoho and Johnstone's four at a ratio of 7: root mean square error over σ, beside `quality_published`
fresh      the row chosen there against the best of the baseline, on draws that it was not chosen on
spins      means over consecutive shifts, and over those of `denoise`, spread through the longest period
records    seismic records with white and pink noise: decibels gained
choices    the defaults with one thing changed: mean and worst gain over the records, and over the four functions
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from wavefilt.benchmarks.common.environment import result as new_result
from wavefilt.benchmarks.common.environment import version
from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.quality.methods import Named, Options, Procedure
from wavefilt.benchmarks.quality.signals import Samples, classic, published

from . import methods
from . import published as literature
from . import records as quality_records

SEEDS, DRAWS, FRESH, NOISES = 400, 50, 200, 10
"""Of the parts published, baseline, fresh and records."""
QUICK = 20, 30, 20, 2
GRIDS = {"WaveLab": 7, "PyWavelets": 0}
"""Samples that the signal is delayed by. A low-pass coefficient k of WaveLab begins at sample 2k, that of PyWavelets at
2k - 7 for the 16 taps of sym8. Let the signal begin 7 samples later, and details of every level agree one by one.
"""
SETTING: Options = {"wavelet": "sym8", "mode": "periodization", "sigma": "global"}
LEVELS = 7
"""2³ to 2⁹ of 1024 samples, as in WavDen: ⌊log₂ ln n⌋ + 1 is 3."""


@dataclass(frozen=True)
class Step:
    """A row of a ``part``."""

    part: str
    label: str
    row: Callable[[], Row]


def run(
    quick: bool = False,
    progress: Callable[[list[Step]], Iterable[Step]] = iter,
    keep: Callable[[Row], None] = lambda result: None,
) -> Row:
    """Rows of every part, for JSON; ``keep`` is given the result after each."""
    seeds, draws, fresh, noises = QUICK if quick else (SEEDS, DRAWS, FRESH, NOISES)
    amounts = {"seeds": seeds, "draws": draws, "fresh": fresh, "noises": noises}
    result = new_result("quality", seconds=0.0, **amounts, columns=_columns(), parts={})
    steps = [*_published(seeds), *_baseline(draws), *_fresh(fresh), *_spins(), *_records(noises)]
    steps += _choices(noises, draws)
    started = time.perf_counter()
    for step in progress(steps):
        result["parts"].setdefault(step.part, []).append(step.row())
        result["seconds"] = time.perf_counter() - started
        keep(result)
    return result


def _columns() -> dict[str, Row]:
    """Who and what may be missing, and why."""
    no_gather = None if quality_records.gather() else "this is no checkout: there is no folder samples"
    return {
        name: {"heads": (name, ""), "what": what, "missing": why, "version": version(name)}
        for name, what, why in (
            ("wavefilt", "`denoise`, backend numba", None),
            ("scikit-image", "`denoise_wavelet`", methods.missing("scikit-image")),
            ("gather", "samples/seismic.dat", no_gather),
            ("earthquake", "the record of obspy.read()", methods.missing("obspy")),
        )
    }


def noises(seeds: int, samples: int) -> Samples:
    """Standard normal noise, each row of a seed of its own."""
    return np.array([np.random.default_rng(seed).standard_normal(samples) for seed in range(seeds)])


def draws_of(count: int, seed: int = 1) -> tuple[dict[str, Samples], Samples]:
    """Donoho and Johnstone's four, and so many draws of noise for them."""
    return classic(), np.random.default_rng(seed).standard_normal((count, 2048))


def _published(seeds: int) -> Iterator[Step]:
    signals, noise = published(), noises(seeds, 1024)

    def row(ratio: int, like: str, method: Named, grid: str) -> Row:
        means, errors, delay = {}, {}, GRIDS.get(grid, 0)
        for signal, f in signals.items():
            x = np.roll(f + f.std(ddof=1) / ratio * noise, delay, axis=1)
            y = np.roll(method(x, **SETTING, level=LEVELS), -delay, axis=1)
            loss = 1e4 * np.sum((y - f) ** 2, axis=1) / np.sum(f**2)
            means[signal], errors[signal] = float(loss.mean()), float(loss.std(ddof=1) / np.sqrt(seeds))
        return {"ratio": ratio, "method": method.name, "grid": grid, "like": like, "mean": means, "error": errors}

    chosen: list[tuple[str, Named, str]]
    chosen = [(like, method, grid) for like, method in methods.PUBLISHED for grid in GRIDS]
    chosen += [(like, method, "") for like, method in methods.SHIFTLESS]
    chosen += [("", method, "PyWavelets") for method in methods.OTHERS + methods.SCIKIT_IMAGE]
    for ratio in (3, 1):
        for like, method, grid in chosen:
            yield Step("published", f"{method.name}, ratio {ratio}", partial(row, ratio, like, method, grid))


def errors(
    method: Callable[..., Samples], signals: dict[str, Samples], noise: Samples, **options: object
) -> dict[str, Samples]:
    """Mean square error of every draw, by signal."""
    return {name: np.mean((method(f + noise, **options) - f) ** 2, axis=1) for name, f in signals.items()}


def _root(squares: dict[str, Samples]) -> dict[str, float]:
    return {name: float(np.sqrt(values.mean())) for name, values in squares.items()}


def _baseline(draws: int) -> Iterator[Step]:
    signals, noise = draws_of(draws)

    def row(method: Named, level: int, like: str) -> Row:
        squares = errors(method, signals, noise, **SETTING, level=level)
        fewer = {name: values[: literature.DRAWS] for name, values in squares.items()}
        found = {"method": method.name, "levels": level, "like": like}
        return found | {"rmse": _root(squares), "rmse of 30": _root(fewer)}

    chosen: list[tuple[Named, int, str]]
    chosen = [(method, 6, like) for like, method in methods.BASELINE.items()]
    chosen += [(method, level, "") for level, some in methods.BEYOND.items() for method in some]
    chosen += [(method, 6, "") for method in methods.SCIKIT_IMAGE]
    return (Step("baseline", one[0].name, partial(row, *one)) for one in chosen)


def _fresh(draws: int) -> Iterator[Step]:
    def row() -> Row:
        signals, noise = draws_of(draws, seed=2)
        best = errors(methods.BASELINE[literature.BEST], signals, noise, **SETTING, level=6)
        ours = errors(methods.WINNER, signals, noise, **SETTING, level=7)
        lower = {name: best[name] - ours[name] for name in signals}
        errors_lower = {name: float(d.mean() / (d.std(ddof=1) / np.sqrt(draws))) for name, d in lower.items()}
        found = {"method": methods.WINNER.name, "levels": 7, "against": literature.BEST, "rmse": _root(ours)}
        return found | {"rmse of the other": _root(best), "standard errors lower": errors_lower}

    yield Step("fresh", methods.WINNER.name, row)


def _spins() -> Iterator[Step]:
    signals, noise = draws_of(literature.DRAWS)
    method = methods.BASELINE["universal hard"]

    def consecutive(x: Samples, spins: int, **options: object) -> Samples:
        turns = (np.roll(method(np.roll(x, s, 1), **options), -s, 1) for s in range(spins))
        return np.asarray(np.mean(list(turns), axis=0))

    def row(spins: int) -> Row:
        ways: dict[str, Callable[..., Samples]] = {"consecutive": consecutive, "spread": method}
        found = {how: _root(errors(way, signals, noise, **SETTING, level=6, spins=spins)) for how, way in ways.items()}
        return {"method": method.name, "spins": spins, **found}

    for spins in (1, 2, 4, 8, 16, 32, 64):
        yield Step("spins", f"{method.name}, {spins} shifts", partial(row, spins))


def gain(clean: Samples, before: Samples, after: Samples) -> float:
    """Decibels, in the mean over the draws, that the records (draws, traces, samples) came nearer to the clean one."""
    far = [np.sum((x - clean) ** 2, axis=(1, 2)) for x in (before, after)]
    return float(np.mean(10 * np.log10(far[0] / far[1])))


def _cases(noises: int) -> Iterator[tuple[Row, Samples, Samples]]:
    """What a case is, the clean record (traces, samples), and it with noise (draws, traces, samples)."""
    known = {name: clean for name, clean in quality_records.records().items() if clean is not None}
    for name, clean in known.items():
        for colour in ("white", "pink"):
            for decibels in (0, 10):
                noisy = quality_records.disturbed(clean, colour, decibels, noises)
                yield {"signal": name, "noise": colour, "snr_db": decibels}, clean, noisy
    found = quality_records.gather()
    if found is not None:
        yield {"signal": "gather", "noise": "its own", "snr_db": 6}, found[0], found[1][None]


def _records(noises: int) -> Iterator[Step]:
    def row(case: Row, clean: Samples, noisy: Samples) -> Row:
        gains = {}
        for method in methods.RECORDS + methods.SCIKIT_IMAGE:
            y = method(noisy.reshape(-1, noisy.shape[-1]))
            gains[method.name] = gain(clean, noisy, y.reshape(noisy.shape))
        return case | {"gain_db": gains}

    for case, clean, noisy in _cases(noises):
        yield Step("records", " ".join(map(str, case.values())), partial(row, case, clean, noisy))


def _choices(noises: int, draws: int) -> Iterator[Step]:
    cases = [(clean, noisy) for _, clean, noisy in _cases(noises)]
    signals, noise = draws_of(draws)

    def row(method: Procedure) -> Row:
        records = [gain(clean, noisy, np.array([method(draw) for draw in noisy])) for clean, noisy in cases]
        functions = [-20 * np.log10(value) for value in _root(errors(method, signals, noise)).values()]
        both = {"records": records, "functions": functions}
        found = {name: {"mean": float(np.mean(gains)), "worst": float(min(gains))} for name, gains in both.items()}
        return {"method": method.name, **found}

    for method in methods.CHOICES:
        yield Step("choices", method.name, partial(row, method))

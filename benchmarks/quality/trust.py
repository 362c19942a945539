"""How often the trust report flags harmful denoises and harmless ones, beside local similarity and the leakage test.

``wavefilt bench quality trust -o FILE`` measures it. The limits of the report were chosen on the design set; the test
set has other seeds, and recorded noise and earthquakes of other stations. Everything comes from fixed seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np
from scipy.ndimage import uniform_filter1d

from wavefilt import trust
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Column, Report, Row, Table
from wavefilt.benchmarks.quality import trust_records
from wavefilt.benchmarks.quality.signals import Samples
from wavefilt.benchmarks.quality.trust_records import WINDOW, Case, harmful
from wavefilt.quality import leakage_test
from wavefilt.trust.significance import p_values

COUNTS, QUICK, NOISE = {"design": 200, "test": 500}, 20, 140
"""Records of each set, and records of noise alone."""
SEEDS = {"design": 4, "test": 6}
"""1 and 2 were those of earlier sets."""
RADIUS, TURNS, SURROGATES = 33, 15, 4
"""Of local similarity: samples of half the triangle that smooths, iterations, surrogates of what was removed."""
COLUMNS = "set; signal; noise; snr_db; shape; rule; grown; harmful; estimate; verdict"
"""Of the line of a record; both growths are of the record and of its worst window."""
OTHERS = ("local similarity", "its p-value", "leakage_test")


def run(
    quick: bool = False,
    progress: Callable[[list[tuple[str, Case]]], Iterable[tuple[str, Case]]] = iter,
) -> Row:
    """Both sets, noise alone, and a row for each record."""
    counts = dict.fromkeys(SEEDS, QUICK) if quick else COUNTS
    sets = {name: trust_records.cases(counts[name], seed, name == "test") for name, seed in SEEDS.items()}
    steps = [(name, case) for name, own in sets.items() for case in own]
    rows = []
    started = time.perf_counter()
    for name, case in progress(steps):
        rows.append({"set": name, **_row(case)})
    found = result("trust", definition=harmful.__doc__, noise=[*_noise(QUICK if quick else NOISE)])
    limits = {name: _limit([row for row in rows if row["set"] == "design"], name) for name in OTHERS}
    for row in rows:
        row["flagged"] = {"trust report": row["verdict"] == "harmful"}
        row["flagged"] |= {name: row[name] > limits[name] for name in OTHERS}
    found |= {"limits": limits, "rows": _rates(rows), "seconds": time.perf_counter() - started}
    return found | {"columns of records": COLUMNS, "records": [_line(row) for row in rows]}


def _line(row: Row) -> str:
    """A record in a line."""
    values = (row[name] for name in COLUMNS.split("; "))
    return "; ".join(" ".join(map(str, value)) if isinstance(value, list) else str(value) for value in values)


def _row(case: Case) -> Row:
    denoised = case.denoise(case.noisy)
    removed = case.noisy - denoised
    total, window = case.grown(denoised)
    report = trust.report(case.noisy, denoised, case.denoise)
    change, suspect = report.leakage.change, report.leakage.suspect
    similar, p = _similarity(case, denoised, removed)
    return {
        "signal": case.signal,
        "noise": case.noise,
        "snr_db": round(case.decibels, 1),
        "rule": case.rule,
        "shape": list(case.noisy.shape),
        "grown": [round(total, 3), round(window, 3)],
        "harmful": harmful(total, window),
        "estimate": [round(report.leakage.total, 3), round(float(np.max(change, where=suspect, initial=-1)), 3)],
        "verdict": report.verdict,
        "local similarity": similar,
        "its p-value": p,
        "leakage_test": float(-np.log10(np.maximum(leakage_test(denoised, removed).p_value, 1e-99)).max()),
    }


def local_similarity(a: Samples, b: Samples) -> Samples:
    """Fomel's (2007) local similarity of traces: the root of the product of two local least-squares factors.

    The factor c of b = c a is (λ² + H (a² - λ²) H)⁻¹ H a b, smoothed by H, with H a triangle and λ² the mean of a².
    """

    def factor(x: Samples, y: Samples) -> Samples:
        def smooth(values: Samples) -> Samples:
            return np.asarray(uniform_filter1d(uniform_filter1d(values, RADIUS, axis=-1), RADIUS, axis=-1))

        scale = np.mean(x**2, axis=-1, keepdims=True) + 1e-300
        rest = smooth(x * y) / scale
        found = np.zeros_like(rest)
        step, power = rest.copy(), np.sum(rest**2, axis=-1, keepdims=True)
        for _ in range(TURNS):  # conjugate gradients
            product = step + smooth((x**2 / scale - 1) * smooth(step))
            size = power / (np.sum(step * product, axis=-1, keepdims=True) + 1e-300)
            found += size * step
            rest = rest - size * product
            power, before = np.sum(rest**2, axis=-1, keepdims=True), power
            step = rest + power / (before + 1e-300) * step
        return smooth(found)

    return np.asarray(np.sqrt(np.abs(factor(a, b) * factor(b, a))))


def _windows(similar: Samples) -> Samples:
    """Means over windows."""
    return np.asarray(np.add.reduceat(similar, np.arange(0, similar.shape[1], WINDOW), axis=1) / WINDOW)


def _similarity(case: Case, denoised: Samples, removed: Samples) -> tuple[float, float]:
    """The largest of a window, and of all windows the largest -log10 of the p-value.

    The latter is against what was removed, its phases at random, put through the same denoise.
    """
    values = _windows(local_similarity(denoised, removed))
    rng = np.random.default_rng(5)
    null = []
    for _ in range(SURROGATES):
        spectrum = np.abs(np.fft.rfft(removed)) * np.exp(2j * np.pi * rng.random((1, removed.shape[1] // 2 + 1)))
        x = np.fft.irfft(spectrum, removed.shape[1])
        y = case.denoise(x)
        null.append(_windows(local_similarity(y, x - y)))
    p = p_values(values, np.array(null))
    return float(values.max()), float(-np.log10(max(p.min(), 1e-99)))


def _limit(rows: list[Row], name: str) -> float:
    """The value above which the rates of misses and false alarms are nearest to each other."""
    bad, good = (np.array([row[name] for row in rows if row["harmful"] is which]) for which in (True, False))
    limits = np.unique([*bad, *good])
    return float(min(limits, key=lambda limit: max(np.mean(bad <= limit), np.mean(good > limit))))


def _rates(rows: list[Row]) -> list[Row]:
    """Shares that are flagged, by set, and of the test set by noise and by signal."""
    groups = [(name, "all", [row for row in rows if row["set"] == name]) for name in SEEDS]
    for by in ("noise", "signal"):
        for value in dict.fromkeys(row[by] for row in rows if row["set"] == "test"):
            groups.append(("test", value, [row for row in rows if row["set"] == "test" and row[by] == value]))
    found = []
    for name, of, group in groups:
        kinds = {"harmful": True, "harmless": False, "between": None}
        parts = {kind: [row for row in group if row["harmful"] is which] for kind, which in kinds.items()}
        flagged = {
            kind: {how: _share(own, how) for how in ("trust report", *OTHERS)} for kind, own in parts.items() if own
        }
        counts = {kind: len(own) for kind, own in parts.items()}
        found.append({"set": name, "records": of, "counts": counts, "flagged": flagged})
    return found


def _share(rows: list[Row], how: str) -> float:
    return float(np.mean([row["flagged"][how] for row in rows]))


def _noise(count: int) -> Iterable[Row]:
    """Noise alone, by its kind: shares with any verdict but "none", and with "harmful"."""
    kinds = trust_records.kinds(test=True)
    for kind in kinds:
        rng = np.random.default_rng(10)
        verdicts = []
        for number in range(count // len(kinds)):
            x = trust_records.noise_alone(rng, (1, 2048) if number % 2 else (12, 512), kind, test=True)
            _, denoise = trust_records.drawn(rng, x)
            verdicts.append(trust.report(x, denoise(x), denoise).verdict)
        shares = {word: float(np.mean([v == word for v in verdicts])) for word in ("signal", "harmful")}
        yield {"noise": kind, "draws": len(verdicts), **shares}


def report(result: Row) -> Report:
    """Rates by set and kind, and false alarms in noise alone."""
    columns: dict[str, Column] = {"set": "{set}", "records": "{records}"}
    for kind in ("harmful", "harmless", "between"):
        columns[f"{kind},|records"] = f"{{counts[{kind}]}}"
        columns[f"{kind},|flagged"] = f"?{{flagged[{kind}][trust report]:.1%}}"
    for name in OTHERS:
        columns |= {f"{name},|{kind}": f"?{{flagged[{kind}][{name}]:.1%}}" for kind in ("harmful", "harmless")}
    noise: dict[str, Column] = {"noise": "{noise}", "draws": "{draws}"}
    noise |= {"signal removed": "{signal:.1%}", "harmful": "{harmful:.1%}"}
    return Report(
        [
            Table("Denoises that the trust report flags as harmful, beside other measures", columns)(result),
            Table("Noise alone, by the verdict", noise, "noise")(result),
        ],
        [result["note"]] if "note" in result else [],
    )

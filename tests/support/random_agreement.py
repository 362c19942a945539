"""Random denoises over every option in float32: how far the backends are from one another, and from float64.

    python -m tests.support.random_agreement [CASES] [--seed N] [--worst N]

prints the cases above 2e-6 of the largest sample, or the worst, and counts them by what they are due to: thresholds
that differ (a rule decides by counts or by differences of nearly equal numbers), or a threshold function that jumps or
is steep (hard, posterior mean and median), with the same thresholds. What is left is rounding in the transforms.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pywt

from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.vocabulary import ESTIMATORS, MODES, RULES, SHRINKS

WAVELETS = ("haar", "db2", "db4", "db8", "sym5", "sym8", "coif3", "bior4.4", "rbio2.8", "dmey", "db20")
LIMIT = 2e-6


class Case(NamedTuple):
    """Samples in float32 and options of `wavefilt.denoise`."""

    x: np.ndarray
    options: dict[str, Any]

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{' x '.join(map(str, self.x.shape))}: {told}"


def samples(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Waves, noise of a random level, and sometimes an offset, a trend or spikes."""
    n = shape[-1]
    time = np.arange(n) / n
    x = np.sin(2 * np.pi * rng.uniform(1, 40) * time) * rng.uniform(0, 5) + rng.standard_normal(shape)
    x += rng.choice([0, 0, 1, 100]) * rng.standard_normal() + rng.choice([0, 0, 10]) * time
    x[..., rng.integers(n)] += rng.choice([0, 0, 30])
    return (x * 10 ** rng.uniform(-3, 3)).astype("f4")


def case(rng: np.random.Generator, **fixed: Any) -> Case:
    """One at random, with the ``fixed`` options."""
    transform = fixed.get("transform", rng.choice(["dwt", "modwt", "dwt2"]))
    panels = transform == "dwt2"
    rows, n = int(rng.choice([1, 2, 5, 24])), int(rng.choice([rng.integers(40, 300), rng.integers(300, 4000)]))
    shape = (int(rng.integers(20, 80)), int(rng.integers(20, 120))) if panels else (rows, n)
    options: dict[str, Any] = {
        "wavelet": str(rng.choice(WAVELETS)),
        "mode": str(rng.choice(MODES)),
        "rule": str(rng.choice([*RULES, "number"])),
        "sigma": str(rng.choice(["level", "global", "number"])),
        "scope": str(rng.choice(["trace", "record"])),
    } | {name: value for name, value in fixed.items() if name != "transform"}
    if panels:
        options["axes"] = (-2, -1)
    elif transform == "modwt":
        options["transform"] = "modwt"
    elif rng.random() < 0.15:
        options["spins"] = int(rng.integers(2, 5))
    x = samples(rng, shape)
    spread = float(np.std(x))
    if options["rule"] == "number":
        options["rule"] = spread * float(rng.uniform(0.1, 3))
    if options["sigma"] == "number":
        options["sigma"] = spread * float(rng.uniform(0.1, 2))
    if not str(options["rule"]).endswith(("js", "block")) and rng.random() < 0.5:
        bayes = str(options["rule"]).startswith("ebayes")
        options.setdefault("shrink", str(rng.choice([*SHRINKS, *(ESTIMATORS if bayes else ())])))
    if rng.random() < 0.5:
        deepest = max(pywt.dwt_max_level(min(shape), options["wavelet"]), 1)
        options["level"] = int(rng.integers(1, deepest + 1))
        options["keep"] = int(rng.integers(0, 2))
    return Case(x, options)


class Distances(NamedTuple):
    """Largest differences in units of the largest sample of the result in float64."""

    apart: float
    """The backends in float32."""
    given: float
    """The same with the thresholds of float64."""
    reference: float
    """PyWavelets in float32, and in float64, with these thresholds."""
    steep: bool
    """Whether the threshold function changes more than a coefficient does."""
    local: bool
    """Whether coefficients are shrunk by those around them, whose rounding they have as well."""

    @property
    def due(self) -> str:
        """What a difference above the limit comes from."""
        if self.apart <= LIMIT:
            return ""
        return "thresholds" if self.given <= LIMIT else "steep" if self.steep else "rounding"


def distances(one: Case) -> Distances | None:
    """None for options that do not go together."""
    options = {name: value for name, value in one.options.items() if name != "axes"}
    options["dimensions"] = 2 if "axes" in one.options else 1
    told: list[Any] = []

    class Telling(Method):
        def thresholds(self, *arguments: Any) -> Any:
            told.append(super().thresholds(*arguments))
            return told[-1]

    class Given(Method):
        def thresholds(self, *_: Any) -> Any:
            return next(given)

    def denoised(x: np.ndarray, method: Method, backend: str) -> np.ndarray:
        return run(x, method, backend).samples.astype("f8")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exact = denoised(one.x.astype("f8"), Telling(**options), "pywavelets")
        except ValueError:
            return None
        method, own, same = Method(**options), [], []
        for name in ("pywavelets", "numba"):
            own.append(denoised(one.x, method, name))
            given = iter(told)
            same.append(denoised(one.x, Given(**options), name))
    unit = float(np.max(np.abs(exact))) or 1.0
    apart = [float(np.max(np.abs(a - b))) / unit for a, b in (own, same, (same[0], exact))]
    return Distances(*apart, method.shrink_word in ("hard", *ESTIMATORS), method.spec.local)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int, nargs="?", default=1800)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worst", type=int, default=20)
    arguments = parser.parse_args()
    rng, found = np.random.default_rng(arguments.seed), []
    while len(found) < arguments.cases:
        one = case(rng)
        apart = distances(one)
        if apart is not None:
            found.append((apart, str(one)))
    found.sort(reverse=True)
    for apart, told in found[: max(arguments.worst, sum(bool(apart.due) for apart, _ in found))]:
        print(f"{apart.apart:.1e} {apart.given:.1e} {apart.reference:.1e} {apart.due:10} {told}")
    print(f"above {LIMIT:g} of {len(found)}: {dict(Counter(apart.due for apart, _ in found if apart.due))}")
    largest = max(apart.given for apart, _ in found if not apart.steep)
    print(f"largest difference with the same thresholds, functions that are not steep: {largest:.1e}")


if __name__ == "__main__":
    main()

"""What the quality study compares, part by part: the library's rules with their options, and scikit-image's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pywt

import wavefilt
from wavefilt import backends
from wavefilt.arrays import Floats
from wavefilt.benchmarks.common.environment import version
from wavefilt.benchmarks.quality.signals import Samples
from wavefilt.method import Method
from wavefilt.thresholding import rules
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.vocabulary import ESTIMATORS, RULES, SHRINKS, SIGMAS, TRANSFORMS
from wavefilt.wavelets.filters import max_level

Options = dict[str, Any]
"""Of `denoise`."""
Thresholds = Callable[[backends.Pyramid, backends.Statistics, Floats], Floats]
"""From a transform, its statistics and the noise (levels, traces) to thresholds of that shape."""
WORDS = {"rule": RULES, "shrink": SHRINKS + ESTIMATORS, "sigma": SIGMAS, "transform": TRANSFORMS}


@dataclass(frozen=True)
class Procedure:
    """``options`` are those of `denoise`; ``thresholds``, if there are any, take the place of the rule's."""

    name: str
    options: Options = field(default_factory=dict)
    thresholds: Thresholds | None = None

    def __call__(self, x: Samples, **common: Any) -> Samples:
        """Denoise the rows of ``x``, by `denoise` itself where it can.

        It refuses levels none of whose details are free of the boundary, which the literature uses.
        """
        options = common | self.options
        level = options.pop("level", None)
        method = Method(**options)
        if level and method.spec.local:  # it shrinks the approximation too, which the parts below do not
            level = min(level, max_level(x.shape[1], method.bank))
        if self.thresholds is None and (level or 0) <= max_level(x.shape[1], method.bank):
            return np.asarray(wavefilt.denoise(x, level=level, backend="numba", **options))
        backend = backends.get("numba")
        pyramid = backend.decompose(np.ascontiguousarray(x), method.analysis(level or 0))
        statistics = backend.statistics([pyramid], "trace")
        sigma, found = method.thresholds(statistics, x.shape[1])
        if self.thresholds is not None:
            found = self.thresholds(pyramid, statistics, sigma)
        return np.asarray(backend.reconstruct(pyramid, Shrinkage(method.function(x.shape[1]), found, sigma)))


def above(pyramid: backends.Pyramid, statistics: backends.Statistics, sigma: Floats) -> Floats:
    """SURE's thresholds, which each are some |d|, raised so little that hard thresholding removes that one as well."""
    return np.asarray(np.nextafter(rules.sure(statistics, sigma, pyramid.samples), np.inf))


def minimax_for_soft(pyramid: backends.Pyramid, statistics: backends.Statistics, sigma: Floats) -> Floats:
    """Donoho and Johnstone's thresholds for soft shrinkage, to be applied hard."""
    return rules.minimax(statistics, sigma, pyramid.samples)


def wavden(pyramid: backends.Pyramid, statistics: backends.Statistics, sigma: Floats) -> Floats:
    """σ √(2 ln(n log₂ n)), for the n log₂ n details without decimation (Coifman and Donoho 1995)."""
    n = pyramid.samples
    return rules.universal(statistics, sigma, int(n * math.log2(n)))


def pooled_fdr(pyramid: backends.Pyramid, statistics: backends.Statistics, sigma: Floats) -> Floats:
    """`rules.fdr` on the details of all levels together, in units of the noise."""
    from scipy.special import ndtri

    found = np.empty(sigma.shape)
    for trace in range(sigma.shape[1]):
        x = np.concatenate([np.abs(d[trace]) / s for d, s in zip(pyramid.details, sigma[:, trace], strict=True)])
        limits = -ndtri(rules.FALSE * np.arange(1, len(x) + 1) / (2 * len(x)))
        passed = np.flatnonzero(np.sort(x)[::-1] >= limits)
        found[:, trace] = limits[passed[-1] if len(passed) else 0] * sigma[:, trace]
    return found


@dataclass(frozen=True)
class ScikitImage:
    """`denoise_wavelet` of each row, soft, with as many of the levels as it allows; mode and noise are its own."""

    method: str

    @property
    def name(self) -> str:
        return f"scikit-image {self.method}"

    def __call__(self, x: Samples, wavelet: str = "db8", level: int = 5, **others: object) -> Samples:
        from skimage.restoration import denoise_wavelet

        settings = {"wavelet": wavelet, "wavelet_levels": min(level, pywt.dwt_max_level(x.shape[1], wavelet))}
        return np.array([denoise_wavelet(row, method=self.method, **settings) for row in x])


def missing(package: str) -> str | None:
    """Why what needs a package is missing."""
    return None if version(package) else f"{package} is not installed: pip install {package}"


Named = Procedure | ScikitImage
SCIKIT_IMAGE: list[Named] = (
    [] if missing("scikit-image") else [ScikitImage(method) for method in ("BayesShrink", "VisuShrink")]
)


def procedure(words: str, thresholds: Thresholds | None = None, name: str | None = None) -> Procedure:
    """Rule, shrinkage, transform and sigma in words, which are its name: "fdr, hard, modwt"."""
    given = words.split(", ")
    return Procedure(name or words, {o: w for o, known in WORDS.items() for w in given if w in known}, thresholds)


PUBLISHED = (
    ("BlockJS", procedure("blockjs")),
    ("NeighBlock", procedure("neighblock")),
    ("SURE", procedure("sure, hard", above, "sure, hard above t")),
    ("SURE", procedure("sure, hard")),
)
"""Names in `published.XING` with what should give the same, on either grid."""
SHIFTLESS = (
    ("EbayesThresh", procedure("ebayes, mean, modwt")),
    ("EbayesThresh", procedure("ebayes-cauchy, mean, modwt")),
    ("TI threshold", procedure("universal, hard, modwt", wavden, "√(2 ln(n log₂ n)), hard, modwt")),
    ("smash", procedure("fdr, modwt")),
    ("smash", procedure("minimax, firm, modwt")),
)
"""The same without decimation, where the grid does not matter; beside smash the best of the library."""
OTHERS: list[Named] = [*(procedure(rule) for rule in RULES if "block" not in rule), procedure("js, modwt")]

BASELINE = {
    "universal soft": procedure("universal"),
    "universal hard": procedure("universal, hard"),
    "minimax soft": procedure("minimax"),
    "minimax hard": procedure("minimax, hard", minimax_for_soft, "minimax for soft, hard"),
    "SURE soft": procedure("sure"),
    "hybrid SURE soft": procedure("hybrid"),
    "FDR hard": procedure("fdr"),
    "FDR hard, global": procedure("fdr", pooled_fdr, "fdr of all levels"),
    "BayesShrink soft": procedure("bayes"),
    "BlockJS": procedure("blockjs"),
    "NeighBlock": procedure("neighblock"),
    "EB Laplace median": procedure("ebayes"),
    "TI universal hard": procedure("universal, hard, modwt"),
    "TI FDR hard": procedure("fdr, modwt"),
    "TI EB median": procedure("ebayes, modwt"),
    "TI SURE soft": procedure("sure, modwt"),
    "TI BayesShrink soft": procedure("bayes, modwt"),
}
"""By the name of the row in `published.BASELINE` that it should reach."""
WINNER = procedure("minimax, firm, modwt")
_DEEPER = ("fdr, modwt", "ebayes, mean, modwt", "ebayes-cauchy, modwt", "minimax, hard, modwt", WINNER.name)
BEYOND = {
    6: [procedure(words) for words in ("minimax, hard", "ebayes-cauchy", WINNER.name, "js", "js, modwt")],
    7: [procedure(words) for words in _DEEPER],
}
"""By levels, what the baseline does not have."""

_MORE = (
    "ebayes, mean, level",
    "bayes, modwt, level",
    "fdr, modwt, level",
    "ebayes, mean, modwt, level",
    "js, modwt, level",
)
RECORDS: list[Named] = [
    *(procedure(f"{rule}, {sigma}") for rule in RULES for sigma in SIGMAS),
    *map(procedure, (*_MORE, "minimax, firm, modwt, global")),
]
"""For seismic records, otherwise with the library's defaults."""

_CHANGES = """the defaults
wavelet=db2 | wavelet=db4 | wavelet=db6 | wavelet=db10 | wavelet=sym4 | wavelet=sym8 | wavelet=sym10 | wavelet=coif3
level=3 | level=4 | level=6 | mode=periodization | mode=smooth | sigma=global | scope=record | keep=1
shrink=garrote | shrink=hard | rule=sure | rule=fdr | rule=ebayes | rule=ebayes, shrink=mean
rule=ebayes, shrink=mean, sigma=global | rule=neighblock, sigma=global | spins=8 | transform=modwt
level=6, transform=modwt | rule=fdr, transform=modwt | rule=ebayes, shrink=mean, transform=modwt
rule=minimax, shrink=firm, sigma=global, transform=modwt
rule=js | rule=js, wavelet=sym8, mode=reflect | rule=js, transform=modwt"""


def _change(text: str) -> Procedure:
    pairs = (pair.split("=") for pair in text.split(", ") if "=" in pair)
    return Procedure(text, {key: int(value) if value.isdigit() else value for key, value in pairs})


CHOICES = [_change(text) for line in _CHANGES.splitlines() for text in line.split(" | ")]
"""Changes of the defaults."""

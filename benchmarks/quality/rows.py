"""What the quality study compares, part by part; see `wavefilt.benchmarks.quality.study`."""

from __future__ import annotations

from typing import Any

from wavefilt.benchmarks.quality.methods import Way, above, minimax_for_soft, pooled_fdr, wavden
from wavefilt.vocabulary import RULES, SIGMAS

TI = {"transform": "modwt"}
PUBLISHED = (
    ("BlockJS", Way("blockjs", {"rule": "blockjs"})),
    ("NeighBlock", Way("neighblock", {"rule": "neighblock"})),
    ("SURE", Way("sure, hard above t", {"rule": "sure", "shrink": "hard"}, above)),
    ("SURE", Way("sure, hard", {"rule": "sure", "shrink": "hard"})),
)
"""Names in `quality_published.XING` with what should give the same, on either grid."""
SHIFTLESS = (
    ("EbayesThresh", Way("ebayes, mean, modwt", {"rule": "ebayes", "shrink": "mean", **TI})),
    ("EbayesThresh", Way("ebayes-cauchy, mean, modwt", {"rule": "ebayes-cauchy", "shrink": "mean", **TI})),
    ("TI threshold", Way("√(2 ln(n log₂ n)), hard, modwt", {"rule": "universal", "shrink": "hard", **TI}, wavden)),
    ("smash", Way("fdr, modwt", {"rule": "fdr", **TI})),
    ("smash", Way("minimax, firm, modwt", {"rule": "minimax", "shrink": "firm", **TI})),
)
"""The same without decimation, where the grid does not matter; beside smash the best of the library."""
OTHERS = tuple(Way(name, {"rule": name}) for name in ("universal", "minimax", "sure", "hybrid", "bayes", "fdr",
                                                        "ebayes", "ebayes-cauchy"))  # fmt: skip

HARD = {"shrink": "hard"}
BASELINE = {
    "universal soft": Way("universal", {"rule": "universal"}),
    "universal hard": Way("universal, hard", {"rule": "universal", **HARD}),
    "minimax soft": Way("minimax", {"rule": "minimax"}),
    "minimax hard": Way("minimax for soft, hard", {"rule": "minimax", **HARD}, minimax_for_soft),
    "SURE soft": Way("sure", {"rule": "sure"}),
    "hybrid SURE soft": Way("hybrid", {"rule": "hybrid"}),
    "FDR hard": Way("fdr", {"rule": "fdr"}),
    "FDR hard, global": Way("fdr of all levels", {"rule": "fdr"}, pooled_fdr),
    "BayesShrink soft": Way("bayes", {"rule": "bayes"}),
    "BlockJS": Way("blockjs", {"rule": "blockjs"}),
    "NeighBlock": Way("neighblock", {"rule": "neighblock"}),
    "EB Laplace median": Way("ebayes", {"rule": "ebayes"}),
    "TI universal hard": Way("universal, hard, modwt", {"rule": "universal", **HARD, **TI}),
    "TI FDR hard": Way("fdr, modwt", {"rule": "fdr", **TI}),
    "TI EB median": Way("ebayes, modwt", {"rule": "ebayes", **TI}),
    "TI SURE soft": Way("sure, modwt", {"rule": "sure", **TI}),
    "TI BayesShrink soft": Way("bayes, modwt", {"rule": "bayes", **TI}),
}
"""By the name of the row in `quality_published.BASELINE` that it should reach."""
WINNER = Way("minimax, firm, modwt", {"rule": "minimax", "shrink": "firm", **TI})
BEYOND = (
    (6, Way("minimax, hard", {"rule": "minimax", **HARD})),
    (6, Way("ebayes-cauchy", {"rule": "ebayes-cauchy"})),
    (7, Way("fdr, modwt", {"rule": "fdr", **TI})),
    (7, Way("ebayes, mean, modwt", {"rule": "ebayes", "shrink": "mean", **TI})),
    (7, Way("ebayes-cauchy, modwt", {"rule": "ebayes-cauchy", **TI})),
    (7, Way("minimax, hard, modwt", {"rule": "minimax", **HARD, **TI})),
    (6, WINNER),
    (7, WINNER),
)
"""Levels, and what the baseline does not have."""

RECORDS = (
    *(Way(f"{rule}, {sigma}", {"rule": rule, "sigma": sigma}) for rule in RULES for sigma in SIGMAS),
    Way("ebayes, mean, level", {"rule": "ebayes", "shrink": "mean"}),
    Way("bayes, modwt, level", TI),
    Way("fdr, modwt, level", {"rule": "fdr", **TI}),
    Way("ebayes, mean, modwt, level", {"rule": "ebayes", "shrink": "mean", **TI}),
    Way("minimax, firm, modwt, global", {"rule": "minimax", "shrink": "firm", "sigma": "global", **TI}),
)
"""For seismic records, otherwise with the library's defaults."""

_CHANGES: tuple[dict[str, Any], ...] = (
    {},
    *({"wavelet": name} for name in ("db2", "db4", "db6", "db10", "sym4", "sym8", "sym10", "coif3")),
    *({"level": level} for level in (3, 4, 6)),
    *({"mode": mode} for mode in ("periodization", "smooth")),
    {"sigma": "global"}, {"scope": "record"}, {"keep": 1}, {"shrink": "garrote"}, {"shrink": "hard"},
    {"rule": "sure"}, {"rule": "fdr"}, {"rule": "ebayes"}, {"rule": "ebayes", "shrink": "mean"},
    {"rule": "ebayes", "shrink": "mean", "sigma": "global"}, {"rule": "neighblock", "sigma": "global"},
    {"spins": 8}, TI, {"level": 6, **TI}, {"rule": "fdr", **TI}, {"rule": "ebayes", "shrink": "mean", **TI},
    {"rule": "minimax", "shrink": "firm", "sigma": "global", **TI},
)  # fmt: skip
CHOICES = tuple(Way(", ".join(f"{k}={v}" for k, v in change.items()) or "the defaults", change) for change in _CHANGES)
"""Changes of the defaults."""

"""What the quality study compares, part by part; see `wavefilt.benchmarks.quality.study`."""

from __future__ import annotations

from collections.abc import Iterator

from wavefilt.benchmarks.quality.methods import Options, Procedure, above, minimax_for_soft, pooled_fdr, wavden
from wavefilt.vocabulary import RULES, SIGMAS

TI: Options = {"transform": "modwt"}
PUBLISHED = (
    ("BlockJS", Procedure("blockjs", {"rule": "blockjs"})),
    ("NeighBlock", Procedure("neighblock", {"rule": "neighblock"})),
    ("SURE", Procedure("sure, hard above t", {"rule": "sure", "shrink": "hard"}, above)),
    ("SURE", Procedure("sure, hard", {"rule": "sure", "shrink": "hard"})),
)
"""Names in `quality_published.XING` with what should give the same, on either grid."""
SHIFTLESS = (
    ("EbayesThresh", Procedure("ebayes, mean, modwt", {"rule": "ebayes", "shrink": "mean", **TI})),
    ("EbayesThresh", Procedure("ebayes-cauchy, mean, modwt", {"rule": "ebayes-cauchy", "shrink": "mean", **TI})),
    (
        "TI threshold",
        Procedure("√(2 ln(n log₂ n)), hard, modwt", {"rule": "universal", "shrink": "hard", **TI}, wavden),
    ),
    ("smash", Procedure("fdr, modwt", {"rule": "fdr", **TI})),
    ("smash", Procedure("minimax, firm, modwt", {"rule": "minimax", "shrink": "firm", **TI})),
)
"""The same without decimation, where the grid does not matter; beside smash the best of the library."""
_RULES = ("universal", "minimax", "sure", "hybrid", "bayes", "fdr", "ebayes", "ebayes-cauchy")
OTHERS = tuple(Procedure(name, {"rule": name}) for name in _RULES)

HARD: Options = {"shrink": "hard"}
BASELINE = {
    "universal soft": Procedure("universal", {"rule": "universal"}),
    "universal hard": Procedure("universal, hard", {"rule": "universal", **HARD}),
    "minimax soft": Procedure("minimax", {"rule": "minimax"}),
    "minimax hard": Procedure("minimax for soft, hard", {"rule": "minimax", **HARD}, minimax_for_soft),
    "SURE soft": Procedure("sure", {"rule": "sure"}),
    "hybrid SURE soft": Procedure("hybrid", {"rule": "hybrid"}),
    "FDR hard": Procedure("fdr", {"rule": "fdr"}),
    "FDR hard, global": Procedure("fdr of all levels", {"rule": "fdr"}, pooled_fdr),
    "BayesShrink soft": Procedure("bayes", {"rule": "bayes"}),
    "BlockJS": Procedure("blockjs", {"rule": "blockjs"}),
    "NeighBlock": Procedure("neighblock", {"rule": "neighblock"}),
    "EB Laplace median": Procedure("ebayes", {"rule": "ebayes"}),
    "TI universal hard": Procedure("universal, hard, modwt", {"rule": "universal", **HARD, **TI}),
    "TI FDR hard": Procedure("fdr, modwt", {"rule": "fdr", **TI}),
    "TI EB median": Procedure("ebayes, modwt", {"rule": "ebayes", **TI}),
    "TI SURE soft": Procedure("sure, modwt", {"rule": "sure", **TI}),
    "TI BayesShrink soft": Procedure("bayes, modwt", {"rule": "bayes", **TI}),
}
"""By the name of the row in `quality_published.BASELINE` that it should reach."""
WINNER = Procedure("minimax, firm, modwt", {"rule": "minimax", "shrink": "firm", **TI})
BEYOND = (
    (6, Procedure("minimax, hard", {"rule": "minimax", **HARD})),
    (6, Procedure("ebayes-cauchy", {"rule": "ebayes-cauchy"})),
    (7, Procedure("fdr, modwt", {"rule": "fdr", **TI})),
    (7, Procedure("ebayes, mean, modwt", {"rule": "ebayes", "shrink": "mean", **TI})),
    (7, Procedure("ebayes-cauchy, modwt", {"rule": "ebayes-cauchy", **TI})),
    (7, Procedure("minimax, hard, modwt", {"rule": "minimax", **HARD, **TI})),
    (6, WINNER),
    (7, WINNER),
)
"""Levels, and what the baseline does not have."""

RECORDS = (
    *(Procedure(f"{rule}, {sigma}", {"rule": rule, "sigma": sigma}) for rule in RULES for sigma in SIGMAS),
    Procedure("ebayes, mean, level", {"rule": "ebayes", "shrink": "mean"}),
    Procedure("bayes, modwt, level", TI),
    Procedure("fdr, modwt, level", {"rule": "fdr", **TI}),
    Procedure("ebayes, mean, modwt, level", {"rule": "ebayes", "shrink": "mean", **TI}),
    Procedure("minimax, firm, modwt, global", {"rule": "minimax", "shrink": "firm", "sigma": "global", **TI}),
)
"""For seismic records, otherwise with the library's defaults."""


def _changes() -> Iterator[Options]:
    """The defaults, and what is changed of them."""
    mean = {"rule": "ebayes", "shrink": "mean"}
    yield {}
    yield from ({"wavelet": name} for name in ("db2", "db4", "db6", "db10", "sym4", "sym8", "sym10", "coif3"))
    yield from ({"level": level} for level in (3, 4, 6))
    yield from ({"mode": mode} for mode in ("periodization", "smooth"))
    yield from ({"sigma": "global"}, {"scope": "record"}, {"keep": 1}, {"shrink": "garrote"}, {"shrink": "hard"})
    yield from ({"rule": "sure"}, {"rule": "fdr"}, {"rule": "ebayes"}, mean, {**mean, "sigma": "global"})
    yield from ({"rule": "neighblock", "sigma": "global"}, {"spins": 8}, TI, {"level": 6, **TI}, {"rule": "fdr", **TI})
    yield from ({**mean, **TI}, {"rule": "minimax", "shrink": "firm", "sigma": "global", **TI})


CHOICES = tuple(
    Procedure(", ".join(f"{k}={v}" for k, v in change.items()) or "the defaults", change) for change in _changes()
)
"""Changes of the defaults."""

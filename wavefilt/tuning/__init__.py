"""Choosing a method on one's own samples, without a clean signal: `compare`, `tune` and `estimate_sigma`."""

from .comparison import Comparison, Trial, compare
from .search import Tuning, tune
from .sigma import estimate_sigma

__all__ = ["Comparison", "Trial", "Tuning", "compare", "estimate_sigma", "tune"]

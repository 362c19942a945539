"""Advice on a record of one's own: compare and tune methods, and test a result.

All of them use the noise models of `wavefilt.noise`.
"""

from __future__ import annotations

from . import trust
from .comparison import Comparison, Trial, compare, tune
from .trust import TrustReport

__all__ = ["Comparison", "Trial", "TrustReport", "compare", "trust", "tune"]

"""The trust report: is there signal in what was removed, and did denoising bring the record nearer to the signal?"""

from __future__ import annotations

from wavefilt.trust.assessment import TrustReport, report
from wavefilt.trust.leakage import Leakage
from wavefilt.trust.verdicts import WORDS, Answer, Verdict

__all__ = ["WORDS", "Answer", "Leakage", "TrustReport", "Verdict", "report"]

"""What the trust report shows of a good denoise and of a harmful one. Needs matplotlib and the folder samples.

``python -m wavefilt.benchmarks.quality.trust_figure docs/images`` draws ``trust_good.png`` and ``trust_harmful.png``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import wavefilt
from wavefilt.benchmarks.quality.records import FOLDER
from wavefilt.method import Method
from wavefilt.trust.figures import figures

SHOWN = {"good": Method(transform="dtcwt", dimensions=2), "harmful": Method(rule="universal", level=6)}


def pictures() -> dict[str, bytes]:
    """The png file of each."""
    before = wavefilt.read(FOLDER / "seismic.dat")
    return {name: figures(before.apply(method).trust(before))["windows"] for name, method in SHOWN.items()}


if __name__ == "__main__":
    for name, picture in pictures().items():
        (Path(sys.argv[1]) / f"trust_{name}.png").write_bytes(picture)

"""The smallest memory limit of `wavefilt.denoise_file`, which cuts long traces into chunks."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import wavefilt


def least_memory(source: str | os.PathLike[str], **options: object) -> str:
    """Return the least ``max_memory`` for a file, which the error for a smaller one says."""
    target = Path(str(source).partition("::")[0]).with_name("never written")
    with pytest.raises(ValueError, match="least") as error:
        wavefilt.denoise_file(source, target, max_memory=1, **options)
    assert not target.exists()
    return re.findall(r"[\d.]+ [KMG]iB", str(error.value))[-1]

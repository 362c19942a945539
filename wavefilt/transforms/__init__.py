"""Wavelet transforms as objects: their bands of coefficients, analysis, synthesis, and how they can be cut up.

Each is computed here with PyWavelets and NumPy, which is the reference; backends accelerate those they name.
"""

from wavefilt.errors import OptionError, Words, options
from wavefilt.registry import Registry
from wavefilt.vocabulary import check

from .base import Analysis, Band, Pyramid, Transform
from .dtcwt import DTCWT
from .dtcwt2 import DTCWT2
from .dwt import DWT
from .dwt2 import DWT2
from .fk import FK
from .modwt import MODWT
from .modwt2 import MODWT2
from .wp import WP, WP_ENTROPY, WP_FULL

__all__ = [
    "DTCWT",
    "DTCWT2",
    "DWT",
    "DWT2",
    "FK",
    "MODWT",
    "MODWT2",
    "TRANSFORMS",
    "Analysis",
    "Band",
    "Pyramid",
    "Transform",
    "find",
    "words",
]

KINDS: tuple[Transform, ...] = (DWT, MODWT, DWT2, MODWT2, DTCWT, DTCWT2, FK, WP, WP_ENTROPY, WP_FULL)
TRANSFORMS: Registry[Transform] = Registry("transform", {kind.name: kind for kind in KINDS})
"""Every transform by its own name: the only list of transforms there is."""


def words() -> list[str]:
    """What the option ``transform`` may be."""
    TRANSFORMS.names()  # loads extensions
    return list(dict.fromkeys(kind.word for kind in TRANSFORMS.registered()))


def find(word: str | Transform, dimensions: int) -> Transform:
    """The transform that ``transform=word`` means for traces (1) or panels (2).

    Raises ValueError for an unknown word, and for a transform that does not have so many dimensions.
    """
    if isinstance(word, Transform):
        if word.dimensions == dimensions:
            return word
        word = word.word
    for _ in range(2):  # listing the names loads extensions
        for kind in TRANSFORMS.registered():
            if kind.word == word and kind.dimensions == dimensions:
                return kind
        TRANSFORMS.names()
    check("transform", word, words())
    if dimensions == 2:
        raise OptionError(options(transform=word), " is for traces, not for two dimensions")
    raise OptionError(options(transform=word), " is for panels: add ", Words("axes=(-2, -1)", "--two-dimensional"))

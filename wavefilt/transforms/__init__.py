"""Wavelet transforms as objects: their bands of coefficients, analysis, synthesis, and division into chunks.

All are computed here with PyWavelets and NumPy, as the reference; backends accelerate the transforms that they name.
"""

from wavefilt.errors import OptionError
from wavefilt.vocabulary import check

from .base import Analysis, Band, Pyramid, Transform
from .dual_tree import DTCWT, DTCWT2
from .fk import FK
from .packets import PACKETS
from .separable import DWT, DWT2, MODWT, MODWT2

__all__ = [
    "DTCWT",
    "DTCWT2",
    "DWT",
    "DWT2",
    "FK",
    "MODWT",
    "MODWT2",
    "PACKETS",
    "TRANSFORMS",
    "Analysis",
    "Band",
    "Pyramid",
    "Transform",
    "find",
    "words",
]

TRANSFORMS: dict[str, Transform] = {
    transform.name: transform for transform in (DWT, MODWT, DWT2, MODWT2, DTCWT, DTCWT2, FK, PACKETS["risk"])
}
"""Every transform by its name: the only list of transforms there is."""


def words() -> list[str]:
    """Return the values of the option ``transform``."""
    return list(dict.fromkeys(transform.word for transform in TRANSFORMS.values()))


def find(word: str | Transform, ndim: int, basis: str | None = None) -> Transform:
    """Return the transform for the options ``transform`` and ``basis``, of traces (``ndim`` 1) or sections (2).

    ``word`` may be a transform itself. Raises OptionError for an unknown word or basis, and for a transform that does
    not have this number of dimensions or no basis.
    """
    if isinstance(word, Transform):
        matches, word = [word], word.word
    else:
        check("transform", word, words())
        matches = list(TRANSFORMS.values())
    found = next((own for own in matches if (own.word, own.ndim) == (word, ndim)), None)
    if found is None:
        needs = "traces, not sections" if ndim == 2 else "sections: use `two_dimensional=True`, or two axes"
        raise OptionError(f"`transform={word!r}` is for {needs}")
    if basis is None:
        return found
    if found not in PACKETS.values():
        raise OptionError(f"`basis` is for `transform='wp'`, not {word}")
    check("basis", basis, PACKETS)
    return PACKETS[basis]

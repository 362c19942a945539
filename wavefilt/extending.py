"""Adding to wavefilt from another package: rules, threshold functions, boundary modes, formats, transforms, backends.

What is registered is known by its name everywhere: in `wavefilt.denoise`, in the command's options and, where it says
that it can, in streaming and Dask. A package that names a module in an entry point of the group ``wavefilt.extensions``
has it imported when a name is not known otherwise, so that its users import nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from wavefilt.arrays import Array
from wavefilt.thresholding.rules import RULES, RuleSpec
from wavefilt.thresholding.shrinkage import FUNCTIONS
from wavefilt.wavelets.boundary import EXTENSIONS, Terms

__all__ = ["RuleSpec", "register_mode", "register_rule", "register_shrink"]


def register_rule(name: str, spec: RuleSpec) -> None:
    """Add a threshold rule. Raises ValueError for a name that is taken."""
    RULES.register(name, spec)


def register_shrink(name: str, function: Callable[[Array, Array], Array]) -> None:
    """Add a threshold function of coefficients (real or complex, any shape) and thresholds that broadcast against them.

    Compiled backends call it on whole arrays, with NumPy. Raises ValueError for a name that is taken.
    """
    FUNCTIONS.register(name, function)


def register_mode(name: str, extension: Callable[[int, int], Terms]) -> None:
    """Add a boundary mode: sample i of the extension of n samples as (j, a, k, b, l, c), a x[j] + b x[k] + c x[l].

    ``i`` is any integer and the indices lie in [0, n). Transforms in this mode run on the reference backend. Raises
    ValueError for a name that is taken.
    """
    EXTENSIONS.register(name, extension)

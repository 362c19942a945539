"""Adding to wavefilt from another package: rules, threshold functions, boundary modes, formats, transforms, backends.

A registered name is known everywhere: in `wavefilt.denoise`, in the command's options and, if it declares so, in
streaming and Dask. A transform may also be passed as an object: ``denoise(x, transform=my_transform)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from wavefilt.arrays import Array
from wavefilt.backends.interface import Backend
from wavefilt.backends.registry import BACKENDS
from wavefilt.io.detection import Probe
from wavefilt.io.registry import Format, register_format
from wavefilt.thresholding.rules import RULES, Rule
from wavefilt.thresholding.shrinkage import FUNCTIONS
from wavefilt.transforms import TRANSFORMS, Analysis, Transform
from wavefilt.wavelets.boundary import EXTENSIONS, Terms

__all__ = [
    "Analysis",
    "Backend",
    "Format",
    "Probe",
    "Rule",
    "Transform",
    "register_backend",
    "register_format",
    "register_mode",
    "register_rule",
    "register_shrink",
    "register_transform",
]


def register_rule(name: str, rule: Rule) -> None:
    """Add a threshold rule under a name. Raises ValueError for a name that is taken."""
    RULES.register(name, replace(rule, name=name))


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
    _add("mode", EXTENSIONS, name, extension)


def register_transform(transform: Transform) -> None:
    """Add a transform under its own name; its attribute ``word`` is the value of the option ``transform``.

    It runs on the reference backend. Raises ValueError for a name that is taken.
    """
    _add("transform", TRANSFORMS, transform.name, transform)


def register_backend(name: str, make: Callable[..., Backend]) -> None:
    """Add a backend by what makes it, called once with its own options when it is first asked for by name.

    ``make`` raises BackendUnavailable, with what to install, where it cannot run. "auto" never takes it. Transforms,
    modes and dtypes that it does not have run on the reference backend. Raises ValueError for a name that is taken.
    """
    BACKENDS.register(name, make)


def _add(kind: str, table: dict[str, Any], name: str, entry: Any) -> None:
    """Add an entry to a table. Raises ValueError for a name that is taken or no identifier with hyphens."""
    if not name.replace("-", "_").isidentifier():
        raise ValueError(f"{kind} {name!r}: a name consists of letters, digits, hyphens and underscores")
    if name in table:
        raise ValueError(f"{kind} {name!r} is already registered")
    table[name] = entry
